//! `lancet measure`.

use std::io::Write;
use std::time::Duration;

use anyhow::anyhow;
use clap::error::ErrorKind;
use lancet::live::{Found, Live};
use lancet::report::measure;

use crate::output::Output;
use crate::profile::seconds;
use crate::subject::misuse;

/// Measure a function of a running process call by call: time, instructions, cycles
#[derive(clap::Args)]
#[command(override_usage = "lancet measure [OPTIONS] --pid PID <FUNCTION | --hottest>", after_help = EXAMPLES)]
pub struct Args {
    /// The process; it stands still for a few moments
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: u32,
    /// A name, a demangled name, or an address in it (0x...)
    #[arg(value_name = "FUNCTION", conflicts_with = "hottest")]
    function: Option<String>,
    /// The function with the most samples in a second
    #[arg(long)]
    hottest: bool,
    /// How many calls
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=65536))]
    calls: u64,
    /// How long to wait for them
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    seconds: Duration,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Calls are timed one at a time by a few instructions at the function's entry and
at its return; other calls run through a copy that counts its blocks, and those
of all that it calls if that is known. Then the function is as it was. IPC needs
the instructions of all that was timed. Without hardware counters the core's clock is calibrated
against the time-stamp counter, for cycles and instructions per cycle (IPC).

Examples:
  lancet measure --pid 1234 stream_collide
  lancet measure --pid 1234 --hottest --calls 10 --json";

pub fn run(args: Args, output: &mut Output) -> anyhow::Result<()> {
    let mut live = Live::attach(args.pid)?;
    let found = match (&args.function, args.hottest) {
        (Some(function), _) => live.function(function)?,
        (None, true) => hottest(&mut live)?,
        (None, false) => {
            return Err(
                misuse("measure", ErrorKind::MissingRequiredArgument, "FUNCTION or --hottest is missing").into()
            );
        }
    };
    let measured = live.measure(found, args.calls, args.seconds)?;
    let report = measure::measure(args.pid, &measured);
    match args.json {
        true => writeln!(output.out, "{}", serde_json::to_string(&report)?)?,
        false => report.write_text(&mut output.out, &output.text)?,
    }
    Ok(())
}

fn hottest(live: &mut Live) -> anyhow::Result<Found> {
    let recording = live.profile(Duration::from_secs(1), 999)?;
    let at = live.most_frequent(&recording);
    let at = at.ok_or_else(|| anyhow!("process {}: no samples: it does not run", live.pid()))?;
    Ok(live.function_at(at)?)
}
