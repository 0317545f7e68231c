//! What a run came to.

use crate::core::Core;

/// Counts and sums since the start. Without timing there are no stalls for memory and no cache misses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    pub instructions: u64,
    pub cycles: u64,
    pub stalls: Stalls,
    /// Lines that were filled.
    pub instruction_cache_misses: u64,
    /// Of data bank A and B.
    pub data_cache_misses: [u64; 2],
    pub data_cache_evictions: [u64; 2],
    /// Dirty lines that were written to memory.
    pub write_backs: u64,
    pub mispredicted_branches: u64,
    pub interrupts: u64,
    pub exceptions: u64,
    /// Changes of clock or voltage.
    pub clock_changes: u64,
    pub seconds: f64,
    /// In volt² cycles: V²f over time. Only ratios mean something.
    pub energy: f64,
}

/// Cycles in which the processor waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// For instructions.
    pub fetch: u64,
    /// For data to read.
    pub read: u64,
    /// For the bus to take data.
    pub write: u64,
    /// For registers of the address generators.
    pub hazard: u64,
    /// In CSYNC and SSYNC.
    pub sync: u64,
}

impl Stalls {
    pub fn total(&self) -> u64 {
        self.fetch + self.read + self.write + self.hazard + self.sync
    }
}

impl Stats {
    pub(crate) fn new(core: &Core) -> Stats {
        let (events, memory) = (&core.timing.events, core.timing.stats);
        let (seconds, energy) = core.timing.clock.totals();
        Stats {
            instructions: core.instructions,
            cycles: core.cycles,
            stalls: Stalls {
                fetch: events.code_stalls,
                read: events.read_stalls,
                write: events.write_stalls,
                hazard: events.hazards,
                sync: events.sync_stalls,
            },
            instruction_cache_misses: memory.instruction_fills,
            data_cache_misses: events.fills,
            data_cache_evictions: events.evictions,
            write_backs: memory.write_backs,
            mispredicted_branches: events.mispredicted,
            interrupts: events.interrupts,
            exceptions: events.exceptions,
            clock_changes: core.timing.clock.changes,
            seconds,
            energy,
        }
    }
}
