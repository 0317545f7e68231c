//! `lancet count`.

use std::io::Write;
use std::time::Duration;

use lancet::live::{Found, Live};
use lancet::report::measure::live_counts;

use crate::output::Output;
use crate::profile::seconds;

/// Count how often the blocks of functions run in a running process
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The process; it stands still for two moments
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: u32,
    /// Names, demangled names, or addresses in them (0x...), all of one object
    #[arg(value_name = "FUNCTION", required = true)]
    functions: Vec<String>,
    /// Count for so long
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    seconds: Duration,
    /// Write JSON, a line for each function
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Calls are led to copies of the functions that count their blocks, and back again
at the end. Threads share the counters; increments that collide lose one.

Examples:
  lancet count --pid 1234 main_loop
  lancet count --pid 1234 hash_lookup hash_insert --seconds 1 --json";

pub fn run(args: Args, output: &mut Output) -> anyhow::Result<()> {
    let mut live = Live::attach(args.pid)?;
    let functions: Result<Vec<Found>, _> = args.functions.iter().map(|function| live.function(function)).collect();
    for counts in live.count(&functions?, args.seconds, None)? {
        let report = live_counts(&live, &counts);
        match args.json {
            true => writeln!(output.out, "{}", serde_json::to_string(&report)?)?,
            false => report.write_text(&mut output.out, &output.text)?,
        }
    }
    Ok(())
}
