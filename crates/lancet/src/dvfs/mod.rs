//! Where to slow the clock down: the case study of DSPInst, from the program to the plot.
//!
//! ```text
//! program ─> run as it is ─────────────────────────────────────────> time, energy
//!         ─> dsp/phases.rs: instrument every LSETUP, run ─> phases ─> select ─> slow.rs: instrument, run ─> time, energy
//! ```
//!
//! A phase is what runs from one LSETUP to the next. A phase that misses the data cache often waits for the SDRAM, whose
//! speed does not depend on the core's clock: there the core may be slow. Two thresholds choose phases: misses in one
//! execution, which must pay for the change of voltage, and misses per cycle. Phases that start at the same LSETUP are
//! chosen together, because the program is told there; chosen phases that follow each other are one region, inside which
//! nothing is changed.

mod plot;
mod slow;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use lancet_blackfin_sim::{Captured, Config, End, Environment, Simulator, Stats, TimingConfig};
use lancet_engine::image::Image;
use lancet_engine::layout::inplace::{self, Tactics};
use lancet_engine::program::Program;
use serde::Serialize;

pub use crate::dsp::phases::{Phase, Profile};
use crate::{Error, dsp};
pub use plot::{bars, misses_over_time, sweep_curve};

/// What makes a phase worth slowing down.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Thresholds {
    /// Data cache misses of one execution, on average.
    pub misses: f64,
    pub misses_per_cycle: f64,
}

impl Default for Thresholds {
    /// In the simulator's model a miss stalls for about 60 cycles at full speed: 20 of them last as long as the regulator
    /// takes to settle, and with 6 in 1,000 cycles the processor waits more than a third of its time. With fewer, the
    /// consumer programs lose more percent of time than they save of energy.
    fn default() -> Thresholds {
        Thresholds { misses: 20.0, misses_per_cycle: 0.006 }
    }
}

/// Slices of time in the picture of misses, at the least.
const SLICES_OF_A_RUN: u64 = 256;

/// Time and energy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    pub seconds: f64,
    /// In volt² cycles.
    pub energy: f64,
}

impl Cost {
    fn of(stats: &Stats) -> Cost {
        Cost { seconds: stats.seconds, energy: stats.energy }
    }

    fn minus(self, other: Cost) -> Cost {
        Cost { seconds: self.seconds - other.seconds, energy: self.energy - other.energy }
    }
}

/// A phase's start in the report.
#[derive(Clone, Debug, Serialize)]
pub struct Region {
    /// The LSETUP that it starts at.
    pub start: String,
    pub function: String,
    pub executions: u64,
    pub cycles: u64,
    pub misses: u64,
    pub misses_per_cycle: f64,
}

/// What came of one program.
#[derive(Clone, Debug, Serialize)]
pub struct Study {
    pub program: String,
    pub thresholds: Thresholds,
    /// Phases by start and end, and how often one was executed.
    pub phases: usize,
    pub executions: u64,
    pub chosen: Vec<Region>,
    /// How often the clock was changed.
    pub clock_changes: u64,
    /// The whole program, as it is and slowed down.
    pub original: Cost,
    pub scaled: Cost,
    /// The chosen phases. Slowed down, they bear all that the instrumentation costs.
    pub region_original: Cost,
    pub region_scaled: Cost,
}

/// By how many percent something changed.
fn change(from: f64, to: f64) -> f64 {
    if from == 0.0 { 0.0 } else { 100.0 * (to / from - 1.0) }
}

impl Study {
    /// Percent: energy and time of the region, energy and time of the program.
    pub fn changes(&self) -> [f64; 4] {
        [
            change(self.region_original.energy, self.region_scaled.energy),
            change(self.region_original.seconds, self.region_scaled.seconds),
            change(self.original.energy, self.scaled.energy),
            change(self.original.seconds, self.scaled.seconds),
        ]
    }

    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}: {} phases, executed {} times", self.program, self.phases, self.executions)?;
        let Thresholds { misses, misses_per_cycle } = self.thresholds;
        writeln!(out, "chosen: at least {misses} misses an execution and {misses_per_cycle} a cycle")?;
        for region in &self.chosen {
            writeln!(
                out,
                "  {}  {:>8} executions  {:>12} cycles  {:>9} misses  {:.4} a cycle  {}",
                region.start, region.executions, region.cycles, region.misses, region.misses_per_cycle, region.function
            )?;
        }
        writeln!(out, "{} changes of clock and voltage", self.clock_changes)?;
        let [region_energy, region_time, energy, time] = self.changes();
        let share = 100.0 * self.region_original.seconds / self.original.seconds.max(f64::MIN_POSITIVE);
        writeln!(out, "region   energy {region_energy:+7.1} %   time {region_time:+7.1} %   {share:.1} % of the time")?;
        writeln!(out, "program  energy {energy:+7.1} %   time {time:+7.1} %")
    }
}

/// A program that was profiled.
pub struct Profiled {
    name: String,
    program: Program,
    pub profile: Profile,
    pub original: Cost,
    cycles: u64,
    output: Vec<u8>,
}

impl Profiled {
    /// Runs the program as it is, and with every LSETUP instrumented.
    pub fn new(path: &Path) -> Result<Profiled, Error> {
        let image = Arc::new(Image::open(path)?);
        let program = Program::analyse(image.clone());
        let name = path.display().to_string();
        if inplace::Environment::guess(&program) != inplace::Environment::Operating {
            return Err(Error::NotOperating { program: name });
        }
        let (stats, host, _) = run(&name, image.data())?;
        let slice = (stats.cycles / SLICES_OF_A_RUN).max(1).ilog2() + 1;
        let (file, notes) = dsp::phases::rewrite(&program, &name, slice, Tactics::Cheapest)?;
        let (_, instrumented, simulator) = run(&name, &file)?;
        if instrumented.output != host.output {
            return Err(Error::OutputChanged { program: name });
        }
        let none = || Error::NotOperating { program: name.clone() };
        let profile = Profile::read(notes.phases.as_ref().ok_or_else(none)?, &simulator);
        let (original, cycles) = (Cost::of(&stats), stats.cycles);
        Ok(Profiled { name, program, profile, original, cycles, output: host.output })
    }

    /// Chooses phases, slows them down, and runs the program again.
    pub fn scale(&self, thresholds: Thresholds) -> Result<Study, Error> {
        let starts = self.profile.by_start();
        let chosen: Vec<usize> = (0..starts.len()).filter(|&i| is_worth_it(&starts[i], thresholds)).collect();
        let cycles: u64 = chosen.iter().map(|&i| starts[i].cycles).sum();
        // At full speed a cycle costs what it costs over the whole run.
        let at_full_speed = cycles as f64 / self.cycles.max(1) as f64;
        let region_original =
            Cost { seconds: self.original.seconds * at_full_speed, energy: self.original.energy * at_full_speed };
        let (scaled, clock_changes) = if chosen.is_empty() {
            (self.original, 0)
        } else {
            let file = slow::slow_down(&self.program, &self.name, &self.profile, &chosen)?;
            let (stats, host, _) = run(&self.name, &file)?;
            if host.output != self.output {
                return Err(Error::OutputChanged { program: self.name.clone() });
            }
            (Cost::of(&stats), stats.clock_changes)
        };
        let region = |&i: &usize| {
            let at = self.profile.points[i];
            let start = &starts[i];
            Region {
                start: format!("{at:#x}"),
                function: dsp::function_at(&self.program, at),
                executions: start.executions,
                cycles: start.cycles,
                misses: start.misses,
                misses_per_cycle: start.misses as f64 / start.cycles.max(1) as f64,
            }
        };
        Ok(Study {
            program: self.name.clone(),
            thresholds,
            phases: self.profile.phases.len(),
            executions: self.profile.phases.iter().map(|phase| phase.executions).sum(),
            chosen: chosen.iter().map(region).collect(),
            clock_changes,
            original: self.original,
            scaled,
            region_original,
            region_scaled: scaled.minus(self.original.minus(region_original)),
        })
    }
}

fn is_worth_it(phase: &Phase, thresholds: Thresholds) -> bool {
    let misses = phase.misses as f64;
    phase.executions > 0
        && misses / phase.executions as f64 >= thresholds.misses
        && misses / phase.cycles.max(1) as f64 >= thresholds.misses_per_cycle
}

/// Runs a program with caches and timing.
fn run(name: &str, file: &[u8]) -> Result<(Stats, Captured, Simulator), Error> {
    let failed = |cause| Error::Simulation { program: name.to_owned(), cause };
    let config = Config {
        environment: Environment::Operating,
        timing: Some(TimingConfig::default()),
        args: vec![name.as_bytes().to_vec()],
        ..Config::default()
    };
    let mut host = Captured::default();
    let mut simulator = Simulator::load(file, config).map_err(failed)?;
    match simulator.run(&mut host).map_err(failed)? {
        End::Exited(0) => Ok((simulator.stats(), host, simulator)),
        End::Exited(status) => Err(Error::SimulationFailed { program: name.to_owned(), status }),
        End::Limit => Err(Error::SimulationLimit { program: name.to_owned(), limit: u64::MAX }),
    }
}
