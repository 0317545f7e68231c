//! `lancet sim`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::ExitCode;

use lancet::blackfin_sim::Environment;
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
  lancet sim --trace steps.txt --limit 100000 decoder.elf";

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
    let options = Options {
        environment,
        timing: args.stats || args.json || args.timing,
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
    // As of a process: the low 8 bits.
    Ok(ExitCode::from(ran.status as u8))
}
