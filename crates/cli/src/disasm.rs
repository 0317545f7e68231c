//! `lancet disasm`.

use std::num::ParseIntError;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use lancet::Svma;
use lancet::isa::{self, Syntax};
use lancet::report::{disasm, json, raw};

use crate::output::Output;
use crate::subject::{Chosen, SubjectArgs, functions, misuse, shown};

/// Disassemble a function by block, with edges, loops, jump tables and source lines
#[derive(clap::Args)]
#[command(
    override_usage = "lancet disasm [OPTIONS] <FILE | --pid PID> <FUNCTION>\n       \
                      lancet disasm --raw ISA [--at ADDRESS] [OPTIONS] <FILE>",
    after_help = EXAMPLES,
)]
pub struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    /// A name, a demangled name, or an address in it (0x...)
    #[arg(value_name = "FUNCTION")]
    function: Option<String>,
    /// FILE is a memory dump of this instruction set, not an ELF file
    #[arg(long, value_name = "ISA", value_parser = isa_names(), conflicts_with_all = ["pid", "function", "liveness"])]
    raw: Option<String>,
    /// Where the first byte of the dump was
    #[arg(long, value_name = "ADDRESS", value_parser = address, requires = "raw", default_value = "0")]
    at: u64,
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
  lancet disasm --pid 1234 --object libc malloc --liveness
  lancet disasm --raw blackfin --at 0xffa00000 l1.bin";

fn isa_names() -> PossibleValuesParser {
    PossibleValuesParser::new(isa::all().map(|isa| isa.facts().name))
}

fn address(text: &str) -> Result<u64, ParseIntError> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    }
}

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
    if let Some(name) = &args.raw {
        return raw(&args, name, output);
    }
    args.subject.shift("disasm", &mut args.function)?;
    let Some(function) = &args.function else {
        return Err(misuse("disasm", ErrorKind::MissingRequiredArgument, "FUNCTION is missing").into());
    };
    let subject = args.subject.load("disasm")?;
    let list = functions(subject, Some(function))?;
    let options = disasm::Options { syntax: args.syntax.into(), liveness: args.liveness };
    if args.json {
        let render = |(object, func): &Chosen| disasm::disasm(object, func, options, shown(subject, object));
        return Ok(json::write(&mut output.out, subject, &list, render)?);
    }
    for (object, func) in list {
        let facts = object.program.image().isa().facts();
        let listing = disasm::disasm(object, func, options, None);
        let text_options = disasm::TextOptions { bytes: args.bytes };
        listing.write_text(facts, text_options, &mut output.out, &output.text)?;
    }
    Ok(())
}

/// A dump has neither functions nor names: everything in it is shown.
fn raw(args: &Args, name: &str, output: &mut Output) -> anyhow::Result<()> {
    let wanted = isa::all().find(|isa| isa.facts().name == name);
    let (Some(isa), Some(file)) = (wanted, args.subject.file()) else {
        return Err(misuse("disasm", ErrorKind::MissingRequiredArgument, "FILE is missing").into());
    };
    let dump = raw::Dump::read(file.as_ref(), isa, Svma(args.at), args.syntax.into())?;
    if args.json {
        dump.write_json(&mut output.out)?
    } else {
        dump.write_text(args.bytes, &mut output.out, &output.text)?
    }
    Ok(())
}
