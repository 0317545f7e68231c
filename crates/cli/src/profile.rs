//! `lancet profile`.

use std::ffi::OsString;
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::error::ErrorKind;
use lancet::collect::{Launch, Recording, Sampler, Scope};
use lancet::profile::{Profile, Programs, folded, write_firefox, write_flame_graph, write_pprof};
use lancet::report::profile;

use crate::output::Output;
use crate::sampling::{RateArgs, ScopeArgs, name_of};
use crate::subject::misuse;

/// Sample a process or a command: hot functions, loops, instructions, call chains
#[derive(clap::Args)]
#[command(
    override_usage = "lancet profile [OPTIONS] <--pid PID | --cpu N | --system>\n       lancet profile [OPTIONS] -- COMMAND [ARGUMENT]...",
    after_help = EXAMPLES,
)]
pub struct Args {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Run this and sample it until it ends
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Sample for so long; a command is sampled until it ends
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,
    #[command(flatten)]
    rate: RateArgs,
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Leave out functions with less than this share of all samples
    #[arg(long, value_name = "PERCENT", default_value_t = 0.5)]
    least: f64,
}

const EXAMPLES: &str = "\
Nothing is stopped or changed. Call chains come from the unwind tables that
programs carry, also stripped ones, so frame pointers are not needed. OWN is the
share of samples in a function itself, TOTAL also in what it called; loops and
the hottest instructions stand below their function.

Examples:
  lancet profile --pid 1234
  lancet profile --pid 1234 --seconds 30 --format flame > flame.svg
  lancet profile --format firefox -- ./program input > profile.json
  lancet profile --event cache-misses --every 10000 --pid 1234
  lancet profile --system --seconds 2 --json";

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Tables
    Text,
    /// A flame graph as SVG
    Flame,
    /// One line for each call chain, with its samples
    Folded,
    /// For profiler.firefox.com
    Firefox,
    /// For pprof, gzipped
    Pprof,
    Json,
}

pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

const DEFAULT_TIME: Duration = Duration::from_secs(5);

pub fn run(args: Args, output: &mut Output) -> anyhow::Result<()> {
    let (subject, recording) = record(&args)?;
    let mut programs = Programs::default();
    let profile = Profile::new(&recording, &mut programs);
    let format = if args.json { Format::Json } else { args.format };
    let out = &mut output.out;
    match format {
        Format::Folded => {
            for (line, count) in folded(&recording, &profile) {
                writeln!(out, "{line} {count}")?;
            }
        }
        Format::Flame => write_flame_graph(&folded(&recording, &profile), &subject, out)?,
        Format::Firefox => write_firefox(&recording, &profile, &subject, out)?,
        Format::Pprof => write_pprof(&recording, &profile, out)?,
        Format::Text | Format::Json => {
            let options = profile::Options { least_percent: args.least, instructions: 10 };
            let report = profile::profile(subject, &recording, &profile, &programs, options);
            match format {
                Format::Json => report.write_json(out)?,
                _ => report.write_text(out, &output.text)?,
            }
        }
    }
    Ok(())
}

/// Samples, and names what was sampled.
fn record(args: &Args) -> anyhow::Result<(String, Recording)> {
    let options = args.rate.options()?;
    match (args.scope.scope(), args.command.split_first()) {
        (Some(_), Some(_)) => {
            Err(misuse("profile", ErrorKind::ArgumentConflict, "COMMAND takes the place of --pid, --cpu and --system")
                .into())
        }
        (None, None) => {
            let missing = "one of --pid, --cpu, --system and COMMAND is missing";
            Err(misuse("profile", ErrorKind::MissingRequiredArgument, missing).into())
        }
        (Some(scope), None) => {
            let mut sampler = Sampler::start(scope, &options).map_err(lancet::Error::from)?;
            let end = Instant::now() + args.seconds.unwrap_or(DEFAULT_TIME);
            while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
                sampler.take_within(left.min(Duration::from_millis(100))).map_err(lancet::Error::from)?;
            }
            let recording = sampler.finish().map_err(lancet::Error::from)?;
            if let Scope::Process(pid) = scope
                && recording.samples.is_empty()
                && let Some(why) = why_it_stands(pid)
            {
                bail!("process {pid}: no samples: {why}");
            }
            Ok((name_of(scope), recording))
        }
        (None, Some((program, arguments))) => {
            let mut command = Command::new(program);
            command.args(arguments);
            // What the command prints is not the report.
            command.stdout(std::io::stderr());
            let launch = Launch::new(command).map_err(lancet::Error::from)?;
            let mut sampler = Sampler::launch(&launch, &options).map_err(lancet::Error::from)?;
            let mut child = launch.go().map_err(lancet::Error::from)?;
            let end = args.seconds.map(|time| Instant::now() + time);
            while child.try_wait()?.is_none() && end.is_none_or(|end| Instant::now() < end) {
                sampler.take_within(Duration::from_millis(50)).map_err(lancet::Error::from)?;
            }
            let recording = sampler.finish().map_err(lancet::Error::from)?;
            let line: Vec<_> = args.command.iter().map(|part| part.to_string_lossy()).collect();
            Ok((line.join(" "), recording))
        }
    }
}

/// Why a process does not run, if somebody has stopped it.
fn why_it_stands(pid: u32) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    match value("State:")?.chars().next()? {
        'T' => Some(format!("it is stopped (kill -CONT {pid} lets it run on)")),
        't' => Some(format!("process {} has stopped it, as a debugger does, and must let it go", value("TracerPid:")?)),
        _ => None,
    }
}
