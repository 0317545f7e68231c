//! `lancet rewrite` of programs that are edited in place (Blackfin).

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use lancet::Image;
use lancet::dsp::{self, Tool};
use lancet::layout::inplace::Tactics;

use crate::beside;
use crate::output::Output;
use crate::rewrite::Tool as Wanted;

#[derive(clap::Args)]
#[group(skip)]
pub struct Args {
    /// Blackfin: which instructions get what; see docs/points.md
    #[arg(long, value_name = "FILE")]
    points: Option<PathBuf>,
    /// Blackfin: an object file with the routines that the points file calls
    #[arg(long, value_name = "OBJECT", requires = "points")]
    object: Option<PathBuf>,
    /// Blackfin: how control leaves the old code
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    tactics: TacticsArg,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum TacticsArg {
    /// Jumps where they are safe, else traps
    #[default]
    Cheapest,
    Jumps,
    Traps,
}

/// Is the program of an instruction set that is edited in place?
pub fn is_for(file: &Path) -> anyhow::Result<bool> {
    Ok(Image::open(file)?.isa().facts().edited_in_place)
}

/// Writes the program, and beside it notes that say what is where in its memory.
pub fn run(
    file: &Path,
    out: &Path,
    wanted: Wanted,
    args: &Args,
    explain: bool,
    output: &mut Output,
) -> anyhow::Result<()> {
    let tool = match (wanted, &args.points) {
        (Wanted::Count, None) => Tool::Count,
        (Wanted::Null, None) => Tool::Null,
        (Wanted::Phases, None) => Tool::Phases,
        (Wanted::Points, Some(points)) => Tool::Points { file: points, object: args.object.as_deref() },
        (Wanted::Points, None) => anyhow::bail!("--tool points needs --points FILE"),
        (_, Some(_)) => anyhow::bail!("--points needs --tool points"),
    };
    let tactics = match args.tactics {
        TacticsArg::Cheapest => Tactics::Cheapest,
        TacticsArg::Jumps => Tactics::JumpsOnly,
        TacticsArg::Traps => Tactics::TrapsOnly,
    };
    let (program, notes) = dsp::rewrite(file, &tool, tactics)?;
    beside::write(out, |file| file.write_all(&program)).with_context(|| out.display().to_string())?;
    let mut path = out.as_os_str().to_owned();
    path.push(".notes");
    let path = PathBuf::from(path);
    let text = serde_json::to_vec(&notes)?;
    beside::write(&path, |file| file.write_all(&text)).with_context(|| path.display().to_string())?;
    notes.write_text(explain, &mut output.out)?;
    Ok(writeln!(output.out, "{:>8} say what is where in its memory", path.display())?)
}
