//! Attaches to a process, finds the function in which it spends most of its time, and measures ten calls of it.
//!
//! `cargo run -p lancet --example measure_hotspot -- PID`

use std::time::Duration;

use lancet::live::Live;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid = std::env::args().nth(1).ok_or("usage: measure_hotspot PID")?.parse()?;
    let mut live = Live::attach(pid)?;

    let profile = live.profile(Duration::from_secs(1), 999)?;
    let hottest = live.most_frequent(&profile).ok_or("no samples")?;
    let function = live.function_at(hottest)?;

    let graph = live.func(function);
    println!("most frequent: {hottest}, in {} at {}", live.name(function), live.entry(function));
    println!("{} blocks, {} edges, {} loops", graph.blocks.len(), graph.edges.len(), graph.loops.len());

    let measured = live.measure(function, 10, Duration::from_secs(5))?;
    for time in &measured.times {
        println!("{time:.0} ns, {:.0} cycles", time * measured.clock);
    }
    match measured.ipc() {
        Ok(ipc) => println!("ipc (calibrated) = {ipc:.6}"),
        Err(why) => println!("ipc not known: {why}"),
    }
    Ok(())
}
