//! `lancet count`.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use clap::Parser;
use lancet::counting::{Ends, Options, Prepared};
use lancet::tools::count::Counted;
use regex::Regex;

use crate::child;
use crate::counting::ReportArgs;
use crate::output::{WhenColor, text_for};
use crate::profile::seconds;
use crate::rewrite;

/// Run a program and count exactly how often everything in it runs
#[derive(clap::Args)]
#[command(override_usage = "lancet count [OPTIONS] PROGRAM [ARGS]...\n       lancet count --pid PID [OPTIONS] FUNCTION...", after_help = EXAMPLES)]
pub struct Args {
    /// Also count in the shared libraries that the program loads at its start
    #[arg(long)]
    libs: bool,
    /// Count only functions whose name matches this regular expression
    #[arg(long, value_name = "PATTERN")]
    functions: Option<Regex>,
    /// Where the rounds of a loop without calls are counted
    #[arg(long, value_name = "WHERE", value_enum, default_value_t)]
    rounds: rewrite::Where,
    /// Watch where each thread ends, so that counts are exact even for one that a fatal signal or SIGKILL ends
    #[arg(long, conflicts_with = "rounds")]
    ends: bool,
    /// Only tell how many instructions were executed
    #[arg(long, conflicts_with_all = ["format", "json", "top"])]
    total: bool,
    /// First list the functions that are not counted, each with the reason
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    report: ReportArgs,
    /// Count in a running process instead: what follows are functions of it, all of one object
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["libs", "functions", "rounds", "ends", "total", "explain"])]
    pid: Option<u32>,
    /// With --pid, count for so long
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds, requires = "pid")]
    seconds: Duration,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// What to count in a running process.
pub struct LiveArgs {
    pub pid: u32,
    pub functions: Vec<String>,
    pub seconds: Duration,
    pub json: bool,
}

/// What follows `--pid PID`: options may stand behind functions, because they are not a program's.
#[derive(clap::Parser)]
#[command(name = "lancet count", no_binary_name = true)]
struct LiveWords {
    #[arg(value_name = "FUNCTION", required = true)]
    functions: Vec<String>,
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,
    #[arg(long)]
    json: bool,
}

impl Args {
    /// If a running process is meant.
    pub fn live(&self) -> Result<Option<LiveArgs>, clap::Error> {
        let Some(pid) = self.pid else { return Ok(None) };
        let LiveWords { functions, seconds, json } = LiveWords::try_parse_from(&self.command)?;
        let json = json || self.report.is_json();
        Ok(Some(LiveArgs { pid, functions, seconds: seconds.unwrap_or(self.seconds), json }))
    }
}

const EXAMPLES: &str = "\
Standard input and output are the program's, and so is the exit status; the
report goes to standard error or to the file of -o. Options of lancet stand
before PROGRAM. Rewritten copies are kept in ~/.cache/lancet. A program that
cannot be edited runs uncounted, with the reason.

Where a signal ends a thread in the middle of a function, a count of it may be
off by one, unless --ends is given. Then the program is traced (ptrace), with
all that it starts. It can notice that: debuggers, strace and set-uid programs
do not work inside.

With --pid, calls in the process are led to copies of the functions that count
their blocks, and back again at the end.

Examples:
  lancet count gzip -9 < data > data.gz
  lancet count --libs bzip2 -k file
  lancet count --json -o counts.json ./program argument
  lancet count --total ./program
  lancet count --ends ./server
  lancet count --pid 1234 --seconds 1 hash_lookup hash_insert";

pub fn run(args: &Args, color: WhenColor) -> anyhow::Result<ExitCode> {
    let Some((name, arguments)) = args.command.split_first() else { return Ok(ExitCode::FAILURE) };
    let Some(program) = child::find(name) else {
        eprintln!("lancet: {}: there is no such program", name.to_string_lossy());
        return Ok(ExitCode::from(child::NOT_FOUND));
    };
    let wanted = rewrite::wanted(args.functions.as_ref());
    let pattern = args.functions.as_ref().map_or("", Regex::as_str);
    if args.explain {
        let explained = rewrite::open(&program, args.functions.as_ref())
            .and_then(|editor| Ok(rewrite::explain(&editor, &mut io::stderr().lock())?));
        // Whatever is wrong with it will be told below.
        drop(explained);
    }
    let options = Options { wanted: &wanted, wanted_name: pattern, libraries: args.libs, rounds: args.rounds.rounds() };
    let prepared = match Prepared::new(&program, &options) {
        Ok(prepared) => prepared,
        Err(reason) => {
            eprintln!("lancet: {reason}; it runs uncounted");
            let error = Command::new(&program).arg0(name).args(arguments).exec();
            return Ok(not_runnable(&program, &error));
        }
    };
    for reason in prepared.left_out() {
        eprintln!("lancet: left out: {reason}");
    }
    let mut command = prepared.command();
    command.arg0(name).args(arguments);
    let ran = match args.ends {
        true => child::run_watched(command).map(|ended| (ended.status, Some(ended.ends))),
        false => child::run(command).map(|status| (status, None)),
    };
    let (status, ends) = match ran {
        Ok((status, ends)) => (status, ends.transpose()),
        Err(error) => return Ok(not_runnable(&program, &error)),
    };
    let ends = ends.unwrap_or_else(|error| {
        eprintln!("lancet: {}: its ends cannot be watched: {error}", program.display());
        None
    });
    if let Err(error) = report(args, &prepared, status, ends.as_ref(), color) {
        eprintln!("lancet: {error:#}");
    }
    // A signal ends this process at once, and nothing would be tidied up.
    drop(prepared);
    Ok(child::end_as(status))
}

fn not_runnable(program: &Path, error: &io::Error) -> ExitCode {
    eprintln!("lancet: {}: cannot run it: {error}", program.display());
    ExitCode::from(child::NOT_RUNNABLE)
}

/// What cannot be known of a program that a signal ended: it had no handler, or one that let it come to this.
fn doubt(status: ExitStatus, objects: &[Counted]) -> Option<String> {
    let signal = status.signal()?;
    let name = nix::sys::signal::Signal::try_from(signal).map_or(String::new(), |signal| format!(" ({signal})"));
    let threads = objects.iter().map(|counted| counted.shards).max().unwrap_or(1);
    let which = match threads {
        1 => "the function that ran last".to_owned(),
        threads => format!("the functions that ran last in {threads} threads and processes"),
    };
    let place = "where it was in the middle of a block";
    Some(format!("ended by signal {signal}{name}: {which} may be off by one, {place} (--ends would tell)"))
}

fn report(
    args: &Args,
    prepared: &Prepared,
    status: ExitStatus,
    ends: Option<&Ends>,
    color: WhenColor,
) -> anyhow::Result<()> {
    let objects = prepared.counted(ends.unwrap_or(&Ends::default()))?;
    let mut doubt = doubt(status, &objects).filter(|_| ends.is_none());
    if args.total || !args.report.is_text() {
        // Such a report has no place for it.
        if let Some(doubt) = doubt.take() {
            eprintln!("lancet: {doubt}");
        }
    }
    let stderr = io::stderr();
    let text = text_for(&stderr, color);
    let mut out = BufWriter::new(stderr.lock());
    match args.total {
        true => args.report.write_total(&objects, &mut out)?,
        false => args.report.write(&objects, doubt, &mut out, &text)?,
    }
    Ok(out.flush()?)
}
