//! `lancet disasm`.

use clap::error::ErrorKind;
use lancet::isa::Syntax;
use lancet::report::{disasm, json};

use crate::output::Output;
use crate::subject::{Chosen, SubjectArgs, functions, misuse, shown};

/// Disassemble a function by block, with edges, loops, jump tables and source lines
#[derive(clap::Args)]
#[command(
    override_usage = "lancet disasm [OPTIONS] <FILE | --pid PID> <FUNCTION>",
    after_help = EXAMPLES,
)]
pub struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    /// A name, a demangled name, or an address in it (0x...)
    #[arg(value_name = "FUNCTION")]
    function: Option<String>,
    /// How to write instructions
    #[arg(long, value_enum, default_value_t = SyntaxArg::Gnu)]
    syntax: SyntaxArg,
    /// Also the registers and flags that are live before each instruction
    #[arg(long)]
    liveness: bool,
    /// Also the bytes of each instruction
    #[arg(long)]
    bytes: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
A block begins with its address and where control comes from (<-), and ends with
where it goes (->).

Examples:
  lancet disasm /usr/bin/bash main
  lancet disasm /usr/bin/gdb 'std::vector<int>::push_back' --syntax intel
  lancet disasm --pid 1234 --object libc malloc --liveness";

#[derive(Clone, Copy, clap::ValueEnum)]
pub enum SyntaxArg {
    /// AT&T, as the GNU tools write it
    Gnu,
    Intel,
}

impl From<SyntaxArg> for Syntax {
    fn from(syntax: SyntaxArg) -> Syntax {
        match syntax {
            SyntaxArg::Gnu => Syntax::Gnu,
            SyntaxArg::Intel => Syntax::Vendor,
        }
    }
}

pub fn run(mut args: Args, output: &mut Output) -> anyhow::Result<()> {
    args.subject.shift("disasm", &mut args.function)?;
    let Some(function) = &args.function else {
        return Err(misuse("disasm", ErrorKind::MissingRequiredArgument, "FUNCTION is missing").into());
    };
    let subject = args.subject.load("disasm")?;
    let list = functions(&subject, Some(function))?;
    let options = disasm::Options { syntax: args.syntax.into(), liveness: args.liveness };
    if args.json {
        let render = |(object, func): &Chosen| disasm::disasm(object, func, options, shown(&subject, object));
        return Ok(json::write(&mut output.out, &subject, &list, render)?);
    }
    for (object, func) in list {
        let facts = object.program.image().isa().facts();
        let listing = disasm::disasm(object, func, options, None);
        let text_options = disasm::TextOptions { bytes: args.bytes };
        listing.write_text(facts, text_options, &mut output.out, &output.text)?;
    }
    Ok(())
}
