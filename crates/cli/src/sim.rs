//! `lancet sim`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use lancet::blackfin_sim::Environment;
use lancet::dsp::{Measured, Notes};
use lancet::report::sim::SimReport;
use lancet::simulate::{self, Options};

/// Run a Blackfin program on a simulated ADSP-BF548
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Who serves exceptions: the simulator, which knows the system calls of libgloss, or the program
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = EnvironmentArg::Virtual)]
    environment: EnvironmentArg,
    /// Say how long it took and why, on standard error; models caches, memory and clock
    #[arg(long)]
    stats: bool,
    /// As --stats, in JSON
    #[arg(long)]
    json: bool,
    /// Model caches, memory and clock without saying anything
    #[arg(long)]
    timing: bool,
    /// Say what the program counted, on standard error: the notes that lancet rewrite left beside it
    #[arg(long, value_name = "NOTES")]
    notes: Option<PathBuf>,
    /// Write every instruction with the registers it changes
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Give up after so many instructions
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// An ELF program for Blackfin
    #[arg(value_name = "PROGRAM")]
    program: PathBuf,
    /// Its arguments
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

const EXAMPLES: &str = "\
Standard input and output are the program's, and so is the exit status. Options
of lancet stand before PROGRAM. A program that cannot go on ends with its
registers on standard error and status 1.

Examples:
  lancet sim decoder.elf picture.jpg
  lancet sim --environment operating --stats firmware.elf
  lancet sim --trace steps.txt --limit 100000 decoder.elf
  lancet sim --notes counting.elf.notes counting.elf";

#[derive(Clone, Copy, clap::ValueEnum)]
enum EnvironmentArg {
    Virtual,
    Operating,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let environment = match args.environment {
        EnvironmentArg::Virtual => Environment::Virtual,
        EnvironmentArg::Operating => Environment::Operating,
    };
    let notes = args.notes.as_deref().map(read_notes).transpose()?;
    let measures_time = notes.as_ref().is_some_and(|notes| notes.phases.is_some());
    let options = Options {
        environment,
        timing: args.stats || args.json || args.timing || measures_time,
        trace: args.trace.clone(),
        limit: args.limit,
        args: args.args.iter().map(|arg| arg.clone().into_vec()).collect(),
    };
    let ran = simulate::run(&args.program, &options, io::stdin(), io::stdout(), io::stderr())?;
    let report = SimReport::new(args.program.display().to_string(), ran.status, &ran.stats);
    let mut errors = io::stderr().lock();
    if args.json {
        writeln!(errors, "{}", serde_json::to_string(&report)?)?;
    } else if args.stats {
        report.write_text(&mut errors)?;
    }
    if let Some(notes) = &notes {
        let measured = Measured::read(notes, &ran.simulator);
        if args.json {
            writeln!(errors, "{}", serde_json::to_string(&measured)?)?;
        } else {
            measured.write_text(&mut errors)?;
        }
    }
    // As of a process: the low 8 bits.
    Ok(ExitCode::from(ran.status as u8))
}

fn read_notes(path: &Path) -> anyhow::Result<Notes> {
    let name = || path.display().to_string();
    let text = std::fs::read(path).with_context(name)?;
    serde_json::from_slice(&text).with_context(name)
}
