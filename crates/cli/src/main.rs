//! The `lancet` command: parses arguments, prints, exits. Everything else is in the library.
//!
//! One file per command; each is arguments, help, and a `run` that asks the library for a report and writes it.
//! Exit status: 0, or 1 for an error in one line on standard error (`lancet: FILE: where: what`), or 2 for arguments
//! that make no sense; of a program that was run, its own. Output that nobody reads any more (`| head`) is no error.
#![forbid(unsafe_code)]

mod annotate;
mod beside;
mod cfg;
mod child;
mod count;
mod counting;
mod diff;
mod disasm;
mod dvfs;
mod functions;
mod in_place;
mod live_count;
mod loops;
mod measure;
mod output;
mod profile;
mod progress;
mod replace;
mod report;
mod rewrite;
mod sampling;
mod sim;
mod stat;
mod status;
mod subject;
mod top;

use std::io;
use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lancet_sys::allocator::{self, Allocator};

use output::{Output, WhenColor};

#[derive(Parser)]
#[command(name = "lancet", version, about, long_about = None, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Use this many threads; by default one for each core
    #[arg(long, value_name = "N", global = true, display_order = 900)]
    threads: Option<NonZeroUsize>,
    /// Colour the output; by default only on a terminal
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, global = true, display_order = 901)]
    color: WhenColor,
}

const EXAMPLES: &str = "\
FILE is an ELF program or shared library for x86-64 or Blackfin, stripped or not. FUNCTION is a
name, a demangled name with or without its parameters, or an address in the
function (0x...). The JSON that --json writes is described in docs/json.md.

Examples:
  lancet functions --sort loops /usr/bin/bash
  lancet loops /usr/bin/bash
  lancet cfg /usr/lib/x86_64-linux-gnu/libc.so.6 qsort_r --format svg > qsort.svg
  lancet disasm --pid 1234 malloc
  lancet sim --stats decoder.elf
  lancet profile --pid 1234 --seconds 5
  lancet top --pid 1234
  lancet count gzip -9 file";

#[derive(Subcommand)]
enum Command {
    Functions(functions::Args),
    Loops(loops::Args),
    Cfg(cfg::Args),
    Disasm(disasm::Args),
    Sim(sim::Args),
    Dvfs(dvfs::Args),
    Profile(profile::Args),
    Diff(diff::Args),
    Stat(stat::Args),
    Top(top::Args),
    Count(count::Args),
    Rewrite(rewrite::Args),
    Report(report::Args),
    Measure(measure::Args),
    Replace(replace::Args),
    Status(status::StatusArgs),
    Undo(status::UndoArgs),
    Annotate(annotate::Args),
}

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    allocator::give_back_soon(0);
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match run(cli) {
        Ok(status) => status,
        Err(error) => match error.downcast_ref::<clap::Error>() {
            Some(error) => usage(error),
            None => failure(&error),
        },
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    if let Some(threads) = cli.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build_global()?;
    }
    let mut output = Output::new(cli.color);
    match cli.command {
        Command::Functions(args) => functions::run(args, &mut output)?,
        Command::Loops(args) => loops::run(args, &mut output)?,
        Command::Cfg(args) => cfg::run(args, &mut output)?,
        Command::Disasm(args) => disasm::run(args, &mut output)?,
        Command::Dvfs(args) => dvfs::run(&args, &mut output)?,
        // Standard output is the program's.
        Command::Sim(args) => {
            drop(output);
            return sim::run(&args);
        }
        Command::Count(args) => match args.live()? {
            Some(live) => live_count::run(&live, &mut output)?,
            None => {
                drop(output);
                return count::run(&args, cli.color);
            }
        },
        Command::Profile(args) => profile::run(args, &mut output)?,
        Command::Diff(args) => diff::run(args, &mut output)?,
        Command::Stat(args) => stat::run(args, &mut output)?,
        // The terminal is its own.
        Command::Top(args) => {
            drop(output);
            top::run(args)?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Rewrite(args) => rewrite::run(args, &mut output)?,
        Command::Annotate(args) => annotate::run(args, &mut output)?,
        Command::Report(args) => report::run(args, &mut output)?,
        Command::Measure(args) => measure::run(args, &mut output)?,
        Command::Replace(args) => replace::run(args, &mut output)?,
        Command::Status(args) => status::status(args, &mut output)?,
        Command::Undo(args) => status::undo(args, &mut output)?,
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// What clap has to say: help, the version, or what is wrong with the arguments.
fn usage(error: &clap::Error) -> ExitCode {
    // Nobody is left to hear of a failure.
    let _ = error.print();
    ExitCode::from(error.exit_code().clamp(0, 2) as u8)
}

fn failure(error: &anyhow::Error) -> ExitCode {
    // Errors of inputs come from the library, with their names. A bare one is from writing the output.
    match error.downcast_ref::<io::Error>() {
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
        Some(error) => eprintln!("lancet: standard output: {error}"),
        None => eprintln!("lancet: {error:#}"),
    }
    ExitCode::FAILURE
}
