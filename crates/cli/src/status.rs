//! `lancet status` and `lancet undo`.

use std::io::Write;

use lancet::live::{self, Target};
use lancet::report::live::{StatusReport, UndoReport};

use crate::output::Output;

/// Show what is changed in a running process, and by which command
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  lancet status --pid 1234\n  lancet status --pid 1234 --json")]
pub struct StatusArgs {
    /// The process; it is not stopped
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: u32,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Take changes of a running process back
#[derive(clap::Args)]
#[command(after_help = UNDO_EXAMPLES)]
pub struct UndoArgs {
    /// The process; it stands still for a moment
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: u32,
    /// Only this patch; by default all, the last one first
    #[arg(value_name = "ID")]
    id: Option<u64>,
    /// Write JSON, a line for each patch
    #[arg(long)]
    json: bool,
}

const UNDO_EXAMPLES: &str = "\
The original bytes are put back, also if the Lancet that changed them was killed.
New memory stays, since threads may still be in it.

Examples:
  lancet undo --pid 1234
  lancet undo --pid 1234 2";

pub fn status(args: StatusArgs, output: &mut Output) -> anyhow::Result<()> {
    let (regions, patches) = live::status(args.pid).map_err(lancet::Error::from)?;
    let report = StatusReport::new(args.pid, &regions, &patches);
    match args.json {
        true => writeln!(output.out, "{}", serde_json::to_string(&report)?)?,
        false => report.write_text(&mut output.out, &output.text)?,
    }
    Ok(())
}

pub fn undo(args: UndoArgs, output: &mut Output) -> anyhow::Result<()> {
    let mut target = Target::open(args.pid).map_err(lancet::Error::from)?;
    let ids: Vec<u64> = match args.id {
        Some(id) => vec![id],
        None => target.patches().iter().rev().map(|patch| patch.id).collect(),
    };
    if ids.is_empty() && !args.json {
        writeln!(output.out, "process {}: nothing is changed", args.pid)?;
    }
    for id in ids {
        let function = target.patches().iter().find(|patch| patch.id == id).map(|patch| patch.subject.clone());
        let receipt = target.revert(id).map_err(lancet::Error::from)?;
        let report = UndoReport::new(function.unwrap_or_default(), &receipt);
        match args.json {
            true => writeln!(output.out, "{}", serde_json::to_string(&report)?)?,
            false => report.write_text(&mut output.out, &output.text)?,
        }
    }
    Ok(())
}
