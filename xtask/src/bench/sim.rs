//! `cargo xtask bench sim`: how fast the Blackfin simulator is, on one core.
//!
//! The consumer programs of testdata/blackfin, without a model of time and with one, in millions of instructions a
//! second of CPU time. Where `bfin-elf-run` is on the PATH, the GNU simulator runs the same programs in the same rounds,
//! and the ratios are held against the bars. The minimum over the rounds counts.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::{measure, shell};

#[derive(clap::Args)]
pub struct Options {
    /// How often to run everything; the minimum counts
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Programs to run instead
    programs: Vec<PathBuf>,
}

// The bars: how often as fast as the GNU simulator.
const MIN_WITHOUT_TIMING: f64 = 5.0;
const MIN_WITH_TIMING: f64 = 1.5;

const PROGRAMS: [&str; 4] = ["djpeg", "mp3player", "mpeg4dec", "mpeg4enc"];
const PEER: &str = "bfin-elf-run";

/// What `lancet sim --json` tells.
#[derive(Deserialize)]
struct Stats {
    instructions: u64,
}

/// CPU seconds of one program.
struct Measured {
    plain: f64,
    timed: f64,
    peer: Option<f64>,
}

pub fn run(options: &Options) -> Result<ExitCode> {
    ensure!(options.rounds > 0, "--rounds must be at least 1");
    let lancet = shell::build_lancet()?;
    let folder = shell::root()?.join("testdata/blackfin/consumer/elf");
    let programs = match &options.programs[..] {
        [] => PROGRAMS.map(|name| folder.join(format!("{name}.O2.elf"))).to_vec(),
        given => given.to_vec(),
    };
    let peer = shell::find_program(PEER);
    println!("{:<16} {:>12} {:>14} {:>14} {:>14}", "", "instructions", "no timing", "timing", "GNU");
    println!("{:<16} {:>12} {:>14} {:>14} {:>14}", "", "millions", "millions/s", "millions/s", "millions/s");
    let mut good = true;
    for program in &programs {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let millions = instructions(&lancet, program)? as f64 / 1e6;
        let cost = measure(&lancet, peer.as_deref(), program, options.rounds)?;
        let rate = |seconds: f64| format!("{:.1}", millions / seconds);
        let peer_rate = cost.peer.map_or("-".to_owned(), rate);
        println!("{name:<16} {millions:>12.1} {:>14} {:>14} {peer_rate:>14}", rate(cost.plain), rate(cost.timed));
        if let Some(peer) = cost.peer {
            good &= bar("no timing", peer / cost.plain, MIN_WITHOUT_TIMING);
            good &= bar("timing", peer / cost.timed, MIN_WITH_TIMING);
        }
    }
    if peer.is_none() {
        println!("{PEER} is not on the PATH: nothing to compare with");
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn bar(what: &str, ratio: f64, bar: f64) -> bool {
    let reached = ratio >= bar;
    let verdict = if reached { "ok" } else { "MISSED" };
    println!("  {what:<14} {ratio:>6.2} times the GNU simulator   bar at least {bar}   {verdict}");
    reached
}

fn instructions(lancet: &Path, program: &Path) -> Result<u64> {
    let mut command = Command::new(lancet);
    command.args(["sim", "--json"]).arg(program);
    let done = command.output().with_context(|| format!("cannot run `{}`", shell::words(&command)))?;
    ensure!(done.status.success(), "`{}` failed ({})", shell::words(&command), done.status);
    let stats: Stats = serde_json::from_slice(&done.stderr).context("the statistics are no JSON")?;
    Ok(stats.instructions)
}

fn measure(lancet: &Path, peer: Option<&Path>, program: &Path, rounds: u32) -> Result<Measured> {
    let cpu = |command: &Command| anyhow::Ok(measure::cost_of(command)?.cpu().as_secs_f64());
    let (mut plain, mut timed) = (Command::new(lancet), Command::new(lancet));
    plain.arg("sim").arg(program);
    timed.args(["sim", "--timing"]).arg(program);
    let peer = peer.map(|path| {
        let mut command = Command::new(path);
        command.arg(program);
        command
    });
    let mut best = Measured { plain: f64::INFINITY, timed: f64::INFINITY, peer: None };
    for _ in 0..rounds {
        best.plain = best.plain.min(cpu(&plain)?);
        best.timed = best.timed.min(cpu(&timed)?);
        if let Some(command) = &peer {
            best.peer = Some(best.peer.unwrap_or(f64::INFINITY).min(cpu(command)?));
        }
    }
    Ok(best)
}
