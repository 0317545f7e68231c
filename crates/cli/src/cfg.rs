//! `lancet cfg`.

use std::io::Write;

use clap::error::ErrorKind;
use lancet::report::{cfg, dot, drawing, json, layout};

use crate::disasm::SyntaxArg;
use crate::output::Output;
use crate::subject::{Chosen, SubjectArgs, functions, misuse, shown};

/// Show the control-flow graph of a function, with its loops
#[derive(clap::Args)]
#[command(
    override_usage = "lancet cfg [OPTIONS] <FILE | --pid PID> <FUNCTION | --all>",
    after_help = EXAMPLES,
)]
pub struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    /// A name, a demangled name, or an address in it (0x...)
    #[arg(value_name = "FUNCTION")]
    function: Option<String>,
    /// All functions
    #[arg(long)]
    all: bool,
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// How to write instructions (dot, svg)
    #[arg(long, value_enum, default_value_t = SyntaxArg::Gnu)]
    syntax: SyntaxArg,
    /// Show at most this many instructions of a block (dot, svg); 0 shows all
    #[arg(long, value_name = "N", default_value_t = 24)]
    block_lines: usize,
}

const EXAMPLES: &str = "\
In text, each block stands on a line with what follows it; bars count the loops
around it, and * marks a header. In the drawings a loop is a box around its
blocks. The SVG is complete in itself; dot is for Graphviz.

Examples:
  lancet cfg /usr/bin/bash main
  lancet cfg /usr/bin/bash main --format svg > main.svg
  lancet cfg /usr/bin/bash 0x30000 --format dot --block-lines 0 | dot -Tpdf > function.pdf
  lancet cfg /usr/bin/bash --all --json";

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A line for each block
    Text,
    /// For Graphviz
    Dot,
    /// A drawing
    Svg,
    Json,
}

pub fn run(mut args: Args, output: &mut Output) -> anyhow::Result<()> {
    args.subject.shift("cfg", &mut args.function)?;
    let format = if args.json { Format::Json } else { args.format };
    match (&args.function, args.all) {
        (None, false) => {
            return Err(misuse("cfg", ErrorKind::MissingRequiredArgument, "FUNCTION or --all is missing").into());
        }
        (Some(_), true) => {
            return Err(misuse("cfg", ErrorKind::ArgumentConflict, "--all takes the place of FUNCTION").into());
        }
        (None, true) if format == Format::Svg => {
            return Err(misuse("cfg", ErrorKind::ArgumentConflict, "--format svg draws one function; name it").into());
        }
        _ => {}
    }
    let subject = args.subject.load("cfg")?;
    let list = functions(subject, args.function.as_deref())?;
    if format == Format::Json {
        let render = |(object, func): &Chosen| cfg::cfg(object, func, shown(subject, object));
        return Ok(json::write(&mut output.out, subject, &list, render)?);
    }
    let options = drawing::Options { syntax: args.syntax.into(), block_lines: args.block_lines, counts: None };
    for (i, (object, func)) in list.into_iter().enumerate() {
        match format {
            Format::Text => {
                if i > 0 {
                    writeln!(output.out)?;
                }
                cfg::cfg(object, func, None).write_text(&mut output.out, &output.text)?;
            }
            Format::Dot => {
                output.out.write_all(dot::dot(&drawing::drawing(&object.program, func, options)).as_bytes())?
            }
            Format::Svg => {
                output.out.write_all(layout::svg(&drawing::drawing(&object.program, func, options)).as_bytes())?
            }
            Format::Json => {}
        }
    }
    Ok(())
}
