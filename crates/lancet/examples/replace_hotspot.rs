//! Attaches to a process, finds the function in which it spends most of its time, and replaces its calls by calls of code
//! given as raw bytes (`objcopy -O binary -j .text new.o new.bin`).
//!
//! `cargo run -p lancet --example replace_hotspot -- PID new.bin`

use std::time::Duration;

use lancet::live::{How, Live};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: replace_hotspot PID FILE";
    let pid = arguments.next().ok_or(usage)?.parse()?;
    let code = std::fs::read(arguments.next().ok_or(usage)?)?;
    let mut live = Live::attach(pid)?;

    let profile = live.profile(Duration::from_secs(1), 999)?;
    let hottest = live.most_frequent(&profile).ok_or("no samples")?;
    let function = live.function_at(hottest)?;
    println!("hot function: {} at {}", live.name(function), live.entry(function));

    let new = live.insert(live.entry(function), &code)?;
    let done = live.lead(function, new, How::CallSites)?;
    println!("{} calls lead to {new}; threads stood still for {:?}", done.places, done.receipt.pause);
    Ok(())
}
