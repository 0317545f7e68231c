//! `lancet report`.

use std::path::PathBuf;

use lancet::tools::count::Counted;

use crate::counting::ReportArgs;
use crate::output::Output;

/// Show what a rewritten program counted
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files that rewritten programs left; those of the same program are added up
    #[arg(value_name = "COUNTS", required = true)]
    counts: Vec<PathBuf>,
    /// Where the rewritten program is now
    #[arg(long, value_name = "OUT")]
    program: Option<PathBuf>,
    /// Where the program is now that it was made from
    #[arg(long, value_name = "FILE")]
    original: Option<PathBuf>,
    #[command(flatten)]
    report: ReportArgs,
}

const EXAMPLES: &str = "\
Examples:
  lancet rewrite /usr/bin/gzip -o gzip.counting
  ./gzip.counting -9 < data > data.gz && lancet report gzip.counting.counts
  lancet report --json -o gzip.json gzip.counting.counts";

pub fn run(args: Args, output: &mut Output) -> anyhow::Result<()> {
    let objects = Counted::open_all(&args.counts, args.program.as_deref(), args.original.as_deref())?;
    args.report.write(&objects, None, &mut output.out, &output.text)
}
