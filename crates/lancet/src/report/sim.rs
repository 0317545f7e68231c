//! What a simulated run came to.

use std::io::{self, Write};

use lancet_blackfin_sim::Stats;
use serde::Serialize;

/// Counts of a run, in the units of [`Stats`].
#[derive(Clone, Debug, Serialize)]
pub struct SimReport {
    pub program: String,
    /// The exit status that the program gave.
    pub status: i32,
    pub instructions: u64,
    pub cycles: u64,
    pub stalls: StallReport,
    pub instruction_cache_misses: u64,
    pub data_cache_misses: u64,
    pub data_cache_evictions: u64,
    pub write_backs: u64,
    pub mispredicted_branches: u64,
    pub interrupts: u64,
    pub exceptions: u64,
    pub clock_changes: u64,
    pub seconds: f64,
    /// In volt² cycles: only ratios mean something.
    pub energy: f64,
}

/// Cycles in which the processor waited, by what for.
#[derive(Clone, Debug, Serialize)]
pub struct StallReport {
    pub total: u64,
    pub fetch: u64,
    pub read: u64,
    pub write: u64,
    pub hazard: u64,
    pub sync: u64,
}

impl SimReport {
    pub fn new(program: String, status: i32, stats: &Stats) -> SimReport {
        let stalls = stats.stalls;
        SimReport {
            program,
            status,
            instructions: stats.instructions,
            cycles: stats.cycles,
            stalls: StallReport {
                total: stalls.total(),
                fetch: stalls.fetch,
                read: stalls.read,
                write: stalls.write,
                hazard: stalls.hazard,
                sync: stalls.sync,
            },
            instruction_cache_misses: stats.instruction_cache_misses,
            data_cache_misses: stats.data_cache_misses.iter().sum(),
            data_cache_evictions: stats.data_cache_evictions.iter().sum(),
            write_backs: stats.write_backs,
            mispredicted_branches: stats.mispredicted_branches,
            interrupts: stats.interrupts,
            exceptions: stats.exceptions,
            clock_changes: stats.clock_changes,
            seconds: stats.seconds,
            energy: stats.energy,
        }
    }

    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let per = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        writeln!(out, "instructions             {:>15}", self.instructions)?;
        let rate = per(self.cycles, self.instructions);
        writeln!(out, "cycles                   {:>15}  {rate:.2} per instruction", self.cycles)?;
        let share = 100.0 * per(self.stalls.total, self.cycles);
        writeln!(out, "stalls                   {:>15}  {share:.1} % of the cycles", self.stalls.total)?;
        let stalls = [
            ("instruction fetch", self.stalls.fetch),
            ("data reads", self.stalls.read),
            ("data writes", self.stalls.write),
            ("address registers", self.stalls.hazard),
            ("synchronization", self.stalls.sync),
        ];
        for (name, cycles) in stalls {
            writeln!(out, "  {name:<22} {cycles:>15}")?;
        }
        let counts = [
            ("instruction cache misses", self.instruction_cache_misses),
            ("data cache misses", self.data_cache_misses),
            ("data cache evictions", self.data_cache_evictions),
            ("lines written back", self.write_backs),
            ("mispredicted branches", self.mispredicted_branches),
            ("interrupts", self.interrupts),
            ("exceptions", self.exceptions),
            ("clock changes", self.clock_changes),
        ];
        for (name, count) in counts {
            writeln!(out, "{name:<24} {count:>15}")?;
        }
        writeln!(out, "time                     {:>15.6}  seconds", self.seconds)?;
        writeln!(out, "energy                   {:>15.0}  volt\u{b2} cycles", self.energy)
    }
}
