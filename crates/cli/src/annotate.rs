//! `lancet annotate`.

use std::path::PathBuf;

use lancet::lookup;
use lancet::report::counts::annotate::{Options, annotate};
use lancet::tools::count::Counted;

use crate::disasm::SyntaxArg;
use crate::output::Output;

/// Show a function with how often each of its instructions or source lines ran
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file that a rewritten program left
    #[arg(value_name = "COUNTS")]
    counts: PathBuf,
    /// A name, a demangled name, or an address in it (0x...)
    #[arg(value_name = "FUNCTION")]
    function: String,
    /// Where the rewritten program is now
    #[arg(long, value_name = "OUT")]
    program: Option<PathBuf>,
    /// Where the program is now that it was made from
    #[arg(long, value_name = "FILE")]
    original: Option<PathBuf>,
    /// Source lines in place of instructions; needs debug information
    #[arg(long)]
    source: bool,
    /// How to write instructions
    #[arg(long, value_enum, default_value_t = SyntaxArg::Gnu)]
    syntax: SyntaxArg,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  lancet rewrite /usr/bin/gzip -o gzip.counting
  ./gzip.counting -9 < data > data.gz && lancet annotate gzip.counting.counts deflate
  lancet annotate --source program.counts main";

pub fn run(args: Args, output: &mut Output) -> anyhow::Result<()> {
    let counted = Counted::open(&args.counts, args.program.as_deref(), args.original.as_deref())?;
    let (_, id) = lookup::find_in(&[&counted.program], &args.function)?;
    let options = Options { syntax: args.syntax.into(), source: args.source };
    let annotated = annotate(&counted, id, counted.instructions(), options).ok_or_else(|| {
        lancet::Error::NotCounted { program: counted.name().to_owned(), function: args.function.clone() }
    })?;
    match args.json {
        true => serde_json::to_writer(&mut output.out, &annotated)?,
        false => annotated.write_text(&mut output.out, &output.text)?,
    }
    Ok(())
}
