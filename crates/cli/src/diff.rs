//! `lancet diff`.

use std::ffi::{OsStr, OsString};
use std::io::Write;

use anyhow::anyhow;
use lancet::report::diff;
use lancet::report::profile::ProfileReport;

use crate::output::Output;

/// Compare two profiles that `lancet profile --json` wrote
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The profile before
    #[arg(value_name = "BEFORE")]
    before: OsString,
    /// The profile after
    #[arg(value_name = "AFTER")]
    after: OsString,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Functions are compared by name and object, by their own share of all samples.

Examples:
  lancet profile --pid 1234 --json > before.json
  lancet diff before.json after.json";

pub fn run(args: Args, output: &mut Output) -> anyhow::Result<()> {
    let diff = diff::diff(&read(&args.before)?, &read(&args.after)?);
    match args.json {
        true => writeln!(output.out, "{}", serde_json::to_string(&diff)?)?,
        false => diff.write_text(&mut output.out, &output.text)?,
    }
    Ok(())
}

fn read(path: &OsStr) -> anyhow::Result<ProfileReport> {
    let name = path.to_string_lossy();
    let text = std::fs::read_to_string(path).map_err(|error| anyhow!("{name}: cannot read: {error}"))?;
    serde_json::from_str(&text).map_err(|error| anyhow!("{name}: not a profile that lancet wrote: {error}"))
}
