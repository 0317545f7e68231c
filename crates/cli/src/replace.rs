//! `lancet replace`.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use lancet::live::{How, Live};
use lancet::report::live::ReplaceReport;

use crate::output::Output;

/// Replace a function of a running process by one of a file
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The process; it stands still for a moment
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: u32,
    /// A name, a demangled name, or an address in it (0x...)
    #[arg(value_name = "FUNCTION")]
    function: String,
    /// A relocatable object, a shared library, or raw code; and which function of it, if it is not called the same
    #[arg(long, value_name = "FILE[:SYMBOL]")]
    with: OsString,
    /// How calls get there
    #[arg(long, value_enum, default_value_t = HowArg::Entry)]
    how: HowArg,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
The new code goes to memory of its own, near the program's code and never
writable. References to symbols are resolved in the process. Arguments and
results must be the same: nothing checks that. Threads that are inside the old
function finish there.

Examples:
  lancet replace --pid 1234 vecadd --with vecadd-avx.o
  lancet replace --pid 1234 vecadd --with fast.o:vecadd_avx2 --how call-sites
  lancet status --pid 1234
  lancet undo --pid 1234";

#[derive(Clone, Copy, clap::ValueEnum)]
enum HowArg {
    /// A jump where the function begins: all calls
    Entry,
    /// Each direct call and each slot of the loader; calls through other pointers stay
    CallSites,
}

pub fn run(args: Args, output: &mut Output) -> anyhow::Result<()> {
    let how = match args.how {
        HowArg::Entry => How::Entry,
        HowArg::CallSites => How::CallSites,
    };
    let (file, symbol) = split(&args.with);
    let mut live = Live::attach(args.pid)?;
    let replaced = live.replace(&args.function, &file, symbol.as_deref(), how)?;
    let report = ReplaceReport::new(args.pid, how.name(), &replaced);
    match args.json {
        true => writeln!(output.out, "{}", serde_json::to_string(&report)?)?,
        false => report.write_text(&mut output.out, &output.text)?,
    }
    Ok(())
}

/// A colon may be part of a file's name.
fn split(with: &OsString) -> (PathBuf, Option<String>) {
    let whole = Path::new(with);
    match with.to_str().and_then(|text| text.rsplit_once(':')) {
        Some((file, symbol)) if !whole.exists() => (PathBuf::from(file), Some(symbol.to_owned())),
        _ => (whole.to_owned(), None),
    }
}
