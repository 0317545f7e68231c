//! `lancet dvfs`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use lancet::dvfs::{self, Profiled, Study, Thresholds};

use crate::beside;
use crate::output::Output;

/// Slow the clock down where a Blackfin program waits for memory, and say what that saves
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// ELF programs for Blackfin, for the operating environment
    #[arg(value_name = "PROGRAM", required = true)]
    programs: Vec<PathBuf>,
    /// Choose phases with at least so many data cache misses in one execution
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().misses)]
    misses: f64,
    /// Choose phases with at least so many data cache misses per cycle
    #[arg(long, value_name = "RATE", default_value_t = Thresholds::default().misses_per_cycle)]
    misses_per_cycle: f64,
    /// Also try other thresholds of misses per cycle
    #[arg(long)]
    sweep: bool,
    /// Write pictures to this folder: bars.svg, and for each program NAME.misses.svg and NAME.sweep.svg
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
The program is run on the simulator: as it is; with every zero-overhead loop
setup instrumented, which divides the run into phases; and with clock and
voltage lowered (500 MHz at 1.20 V to 250 MHz at 1.00 V) in the phases that the
two thresholds choose. Energy is V\u{b2}f over time.

Examples:
  lancet dvfs decoder.elf
  lancet dvfs --misses-per-cycle 0.01 --plots plots decoder.elf";

/// Misses per cycle that --sweep tries.
const SWEEP: [f64; 9] = [0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.008, 0.010];

pub fn run(args: &Args, output: &mut Output) -> anyhow::Result<()> {
    let thresholds = Thresholds { misses: args.misses, misses_per_cycle: args.misses_per_cycle };
    let mut studies = Vec::new();
    let mut answers = Vec::new();
    for program in &args.programs {
        let profiled = Profiled::new(program)?;
        let study = profiled.scale(thresholds)?;
        let mut sweep = Vec::new();
        for misses_per_cycle in SWEEP.into_iter().filter(|_| args.sweep) {
            sweep.push(profiled.scale(Thresholds { misses_per_cycle, ..thresholds })?);
        }
        if let Some(folder) = &args.plots {
            let name = program.file_name().unwrap_or_default().to_string_lossy();
            write(folder, &format!("{name}.misses.svg"), &dvfs::misses_over_time(&name, &profiled.profile))?;
            if args.sweep {
                write(folder, &format!("{name}.sweep.svg"), &dvfs::sweep_curve(&name, &sweep))?;
            }
        }
        if args.json {
            answers.push(serde_json::json!({ "study": study, "sweep": sweep }));
        } else {
            study.write_text(&mut output.out)?;
            write_sweep(&sweep, &mut output.out)?;
        }
        studies.push(study);
    }
    if let Some(folder) = &args.plots {
        write(folder, "bars.svg", &dvfs::bars(&studies))?;
    }
    if args.json {
        writeln!(output.out, "{}", serde_json::json!({ "programs": answers }))?;
    }
    Ok(())
}

fn write_sweep(sweep: &[Study], out: &mut impl Write) -> std::io::Result<()> {
    for study in sweep {
        let [_, _, energy, time] = study.changes();
        let rate = study.thresholds.misses_per_cycle;
        let chosen = study.chosen.len();
        writeln!(out, "threshold {rate:.3}: {chosen:>3} chosen, energy {energy:+6.1} %, time {time:+6.1} %")?;
    }
    Ok(())
}

fn write(folder: &Path, name: &str, svg: &str) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let path = folder.join(name);
    beside::write(&path, |file| file.write_all(svg.as_bytes())).with_context(|| path.display().to_string())
}
