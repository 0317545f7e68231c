//! `cargo xtask bench dvfs`: what slowing the clock saves, next to what the paper on DSPInst reports.
//!
//! Runs `lancet dvfs --sweep` on the four consumer programs and prints what comes out, with nothing to pass or fail. The
//! pictures go to the target folder.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::shell;

#[derive(clap::Args)]
pub struct Options {
    /// Choose phases with at least so many data cache misses per cycle; by default what lancet dvfs does
    #[arg(long)]
    misses_per_cycle: Option<f64>,
}

const PROGRAMS: [&str; 4] = ["djpeg", "mpeg4dec", "mpeg4enc", "mp3player"];

#[derive(Deserialize)]
struct Answers {
    programs: Vec<Answer>,
}

#[derive(Deserialize)]
struct Answer {
    study: Study,
    sweep: Vec<Study>,
}

#[derive(Deserialize)]
struct Study {
    thresholds: Thresholds,
    chosen: Vec<serde_json::Value>,
    clock_changes: u64,
    original: Cost,
    scaled: Cost,
    region_original: Cost,
    region_scaled: Cost,
}

#[derive(Deserialize)]
struct Thresholds {
    misses_per_cycle: f64,
}

#[derive(Deserialize)]
struct Cost {
    seconds: f64,
    energy: f64,
}

/// By how many percent the second differs from the first: energy, time.
fn changes(from: &Cost, to: &Cost) -> (f64, f64) {
    let percent = |from: f64, to: f64| if from == 0.0 { 0.0 } else { 100.0 * (to / from - 1.0) };
    (percent(from.energy, to.energy), percent(from.seconds, to.seconds))
}

pub fn run(options: &Options) -> Result<ExitCode> {
    let lancet = shell::build_lancet()?;
    let folder = shell::root()?.join("testdata/blackfin/consumer/elf");
    let plots = shell::target_dir()?.join("bench/dvfs");
    println!(
        "{:<15} {:>6} {:>8} {:>16} {:>16} {:>16} {:>16}",
        "", "chosen", "changes", "region energy", "region time", "program energy", "program time"
    );
    let mut sum = (0.0, 0.0);
    let mut sweeps = Vec::new();
    let mut command = Command::new(&lancet);
    command.args(["dvfs", "--json", "--sweep", "--plots"]).arg(&plots);
    if let Some(rate) = options.misses_per_cycle {
        command.arg("--misses-per-cycle").arg(rate.to_string());
    }
    command.args(PROGRAMS.map(|name| folder.join(format!("{name}.op.elf"))));
    let answers: Answers = serde_json::from_slice(&shell::output(&mut command)?).context("no JSON")?;
    for (name, Answer { study, sweep }) in PROGRAMS.into_iter().zip(answers.programs) {
        let region = changes(&study.region_original, &study.region_scaled);
        let program = changes(&study.original, &study.scaled);
        sum = (sum.0 + program.0, sum.1 + program.1);
        line(
            name,
            &format!("{}", study.chosen.len()),
            &format!("{}", study.clock_changes),
            [region.0, region.1, program.0, program.1].map(Some),
        );
        sweeps.push((name, sweep));
    }
    let count = PROGRAMS.len() as f64;
    line("mean", "", "", [None, None, Some(sum.0 / count), Some(sum.1 / count)]);
    line("paper, mpeg4dec", "21", "", [Some(-65.3), Some(3.3), Some(-6.2), Some(0.3)]);
    line("paper, mean", "", "", [None, None, Some(-7.6), Some(0.8)]);
    println!("\nenergy and time of the program by the threshold of misses per cycle:");
    for (name, sweep) in &sweeps {
        print!("{name:<11}");
        for study in sweep {
            let (energy, time) = changes(&study.original, &study.scaled);
            print!("  {:.3}: {energy:+.1}/{time:+.1}", study.thresholds.misses_per_cycle);
        }
        println!();
    }
    println!("pictures: {}", plots.display());
    Ok(ExitCode::SUCCESS)
}

fn line(name: &str, phases: &str, changes: &str, values: [Option<f64>; 4]) {
    let [a, b, c, d] = values.map(|value| value.map_or(String::new(), |value| format!("{value:+.1} %")));
    println!("{name:<15} {phases:>6} {changes:>8} {a:>16} {b:>16} {c:>16} {d:>16}");
}
