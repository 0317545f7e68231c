//! `lancet loops`.

use lancet::report::{json, loops};
use rayon::prelude::*;

use crate::output::Output;
use crate::subject::{Chosen, SubjectArgs, functions, shown};

/// Show the loops of a function, or of all
#[derive(clap::Args)]
#[command(
    override_usage = "lancet loops [OPTIONS] <FILE | --pid PID> [FUNCTION]",
    after_help = EXAMPLES,
)]
pub struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    /// A name, a demangled name, or an address in it (0x...): its loops, with their blocks and edges
    #[arg(value_name = "FUNCTION")]
    function: Option<String>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
A loop is named by the address of its header, and is indented below the loop
that it is in. INSNS counts instructions and CALLS blocks that end in a call,
nested loops included. Functions without loops are left out.

Examples:
  lancet loops /usr/bin/bash
  lancet loops /usr/lib/x86_64-linux-gnu/libc.so.6 qsort_r
  lancet loops --pid 1234 --object libc --json";

pub fn run(mut args: Args, output: &mut Output) -> anyhow::Result<()> {
    args.subject.shift("loops", &mut args.function)?;
    let subject = args.subject.load("loops")?;
    let mut list = functions(subject, args.function.as_deref())?;
    if args.function.is_none() {
        list.retain(|(_, func)| !func.loops.is_empty());
    }
    if args.json {
        let render = |(object, func): &Chosen| loops::loops(object, func, shown(subject, object));
        return Ok(json::write(&mut output.out, subject, &list, render)?);
    }
    let list: Vec<_> =
        list.par_iter().map(|(object, func)| loops::loops(object, func, shown(subject, object))).collect();
    loops::write_text(subject, &list, args.function.is_some(), &mut output.out, &output.text)?;
    Ok(())
}
