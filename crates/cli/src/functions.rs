//! `lancet functions`.

use lancet::report::{functions, json};
use regex::{Regex, RegexBuilder};

use crate::output::Output;
use crate::subject::SubjectArgs;

/// List the functions, and whether they are fully understood
#[derive(clap::Args)]
#[command(
    override_usage = "lancet functions [OPTIONS] <FILE | --pid PID>",
    after_help = EXAMPLES,
)]
pub struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Write JSON
    #[arg(long)]
    json: bool,
    /// Only totals
    #[arg(long, conflicts_with_all = ["sort", "filter", "partial"])]
    summary: bool,
    /// Order of the list; the largest numbers come first
    #[arg(long, value_name = "BY", value_enum, default_value_t = Sort::Address)]
    sort: Sort,
    /// Only functions whose name matches this regular expression
    #[arg(long, value_name = "PATTERN")]
    filter: Option<String>,
    /// Only functions that are not fully understood
    #[arg(long)]
    partial: bool,
}

const EXAMPLES: &str = "\
FOUND BY says what first told that a function starts there: symbol, fde (unwind
table), entry, init, ifunc, plt, call, jump or pointer. A partial function has
control flow that is not known; the reason follows its name.

Examples:
  lancet functions /usr/bin/gdb
  lancet functions --sort size --filter '^std::' /usr/bin/gdb
  lancet functions --pid $$ --object libc --json
  lancet functions --partial /usr/bin/python3
  lancet functions --summary /usr/lib/x86_64-linux-gnu/libc.so.6";

#[derive(Clone, Copy, clap::ValueEnum)]
enum Sort {
    Address,
    Size,
    Name,
    Blocks,
    Loops,
}

impl From<Sort> for functions::SortBy {
    fn from(sort: Sort) -> Self {
        match sort {
            Sort::Address => Self::Address,
            Sort::Size => Self::Size,
            Sort::Name => Self::Name,
            Sort::Blocks => Self::Blocks,
            Sort::Loops => Self::Loops,
        }
    }
}

pub fn run(args: Args, output: &mut Output) -> anyhow::Result<()> {
    let filter = args.filter.as_deref().map(pattern).transpose()?;
    let subject = args.subject.load("functions")?;
    if args.summary {
        let summary = functions::summary(subject);
        match args.json {
            true => json::write_value(&mut output.out, subject, "summary", &summary)?,
            false => summary.write_text(&mut output.out)?,
        }
        return Ok(());
    }
    let mut list = functions::functions(subject);
    list.retain(|function| {
        let named = |name: &str| filter.as_ref().is_none_or(|filter| filter.is_match(name));
        (named(&function.name) || function.symbol.as_deref().is_some_and(named))
            && (!args.partial || function.reason.is_some())
    });
    functions::sort(&mut list, args.sort.into());
    match args.json {
        true => json::write(&mut output.out, subject, &list, |function| function)?,
        false => functions::write_text(subject, &list, &mut output.out, &output.text)?,
    }
    Ok(())
}

fn pattern(pattern: &str) -> Result<Regex, clap::Error> {
    RegexBuilder::new(pattern).build().map_err(|error| {
        // The crate's explanation has several lines; the last says what is wrong.
        let text = error.to_string();
        let what = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        crate::subject::misuse(
            "functions",
            clap::error::ErrorKind::ValueValidation,
            &format!("--filter: {pattern}: {what}"),
        )
    })
}
