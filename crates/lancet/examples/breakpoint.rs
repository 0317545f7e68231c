//! Attaches to a process, and prints the first argument of a function whenever it is called, for ten seconds.
//!
//! `cargo run -p lancet --example breakpoint -- PID FUNCTION [trap]`

use std::time::Duration;

use lancet::live::{Breakpoints, Live, Next, Place};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [pid, name, rest @ ..] = &arguments[..] else { return Err("usage: breakpoint PID FUNCTION [trap]".into()) };
    let mut live = Live::attach(pid.parse()?)?;
    let function = live.function(name)?;
    let place = match rest.is_empty() {
        true => Place::Entry(function),
        false => Place::At(live.entry(function)),
    };
    let mut breakpoints = Breakpoints::default();
    breakpoints.add(place, |hit| {
        println!("thread {} at {}: {}", hit.thread, hit.at, hit.registers.rdi);
        Next::Continue
    });
    let hits = live.run(&mut breakpoints, Duration::from_secs(10))?;
    drop(breakpoints);
    println!("{hits} calls");
    Ok(())
}
