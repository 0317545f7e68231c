//! What takes time besides the instructions themselves: caches, memories, the clock.
//!
//! The external memory runs on the system clock, so its latency in core cycles grows with the core's frequency: that is
//! what makes slowing the core down cheap in code that waits for memory.
//!
//! The model of a miss. After `first` system cycles a line begins to come, and takes `line` more; the bus carries one line
//! at a time. The processor waits for the word it asked for, which comes first, not for the rest of the line. A store does
//! not wait for its line (it stands in the store buffer), only for the bus to take the request. A dirty line that was
//! pushed out is written after the fill and occupies the bus for another `line`.
//!
//! Default numbers: DDR SDRAM on a 16-bit bus at the system clock moves 4 bytes a cycle, so a line takes 8; the first word
//! comes after activation of the row (3), CAS latency (3) and the way through the controllers and back (about 10). The
//! last number and the latency of L2 are assumptions; all are configurable.

pub mod cache;
pub mod clock;
pub mod pmu;

use cache::{Bank, Found, LINE, Victim};
use clock::Clock;
use pmu::{Events, Pmu};

/// How time passes.
#[derive(Clone, Debug, PartialEq)]
pub struct TimingConfig {
    /// What is cached from the start, as if a boot loader had set it up. When the program writes IMEM_CONTROL or
    /// DMEM_CONTROL, they decide.
    pub instruction_cache: bool,
    pub data_caches: DataCaches,
    /// System cycles from a request to the first word of SDRAM.
    pub sdram_first: u32,
    /// System cycles in which SDRAM moves a line.
    pub sdram_line: u32,
    /// Core cycles from a request to the first word of L2.
    pub l2_first: u32,
    /// Core cycles that PLL and voltage regulator take to settle.
    pub settle: u32,
}

/// Which halves of the L1 data banks are caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataCaches {
    None,
    BankA,
    Both,
}

impl Default for TimingConfig {
    fn default() -> TimingConfig {
        TimingConfig {
            instruction_cache: true,
            data_caches: DataCaches::Both,
            sdram_first: 16,
            sdram_line: 8,
            l2_first: 9,
            settle: 1000,
        }
    }
}

/// The state of all that takes time.
pub struct Timing {
    /// Without it, only the clock works: there are no caches and no stalls.
    pub on: bool,
    config: TimingConfig,
    instruction_cache: Option<Bank<4>>,
    data_caches: [Option<Bank<2>>; 2],
    /// Address bit 23, not 14, chooses the data bank.
    bank_by_bit_23: bool,
    /// The cycle from which the bus to the SDRAM is free.
    bus_free: u64,
    /// Core cycles of the configured numbers, at the present clock.
    first: u64,
    line: u64,
    /// The last instruction line that was fetched.
    fetched: u32,
    pub clock: Clock,
    pub pmu: Pmu,
    pub events: Events,
    pub stats: MemoryStats,
}

/// What the memories did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    pub instruction_fills: u64,
    pub write_backs: u64,
}

/// Memories by how long they take.
enum Speed {
    L1,
    L2,
    External,
}

fn speed(addr: u32) -> Speed {
    match addr >> 20 {
        0xFEB => Speed::L2,
        0xFF0..=0xFFF => Speed::L1,
        _ => Speed::External,
    }
}

impl Timing {
    pub fn new(config: Option<TimingConfig>) -> Timing {
        let on = config.is_some();
        let config = config.unwrap_or_default();
        let (instructions, data) = (config.instruction_cache, config.data_caches);
        let mut timing = Timing {
            on,
            clock: Clock::new(config.settle),
            config,
            instruction_cache: None,
            data_caches: [None, None],
            bank_by_bit_23: false,
            bus_free: 0,
            first: 0,
            line: 0,
            fetched: u32::MAX,
            pmu: Pmu::default(),
            events: Events::default(),
            stats: MemoryStats::default(),
        };
        if on {
            timing.set_instruction_cache(instructions);
            timing.set_data_caches(data, false);
        }
        timing.clock_changed();
        timing
    }

    fn set_instruction_cache(&mut self, on: bool) {
        if on != self.instruction_cache.is_some() {
            self.instruction_cache = on.then(Bank::new);
            self.fetched = u32::MAX;
        }
    }

    fn set_data_caches(&mut self, caches: DataCaches, bank_by_bit_23: bool) {
        let wanted = [caches != DataCaches::None, caches == DataCaches::Both];
        for (bank, wanted) in self.data_caches.iter_mut().zip(wanted) {
            if wanted != bank.is_some() {
                *bank = wanted.then(Bank::new);
            }
        }
        self.bank_by_bit_23 = bank_by_bit_23;
    }

    /// IMEM_CONTROL was written.
    pub fn instruction_control(&mut self, value: u32) {
        if self.on {
            self.set_instruction_cache(value & 1 << 2 != 0);
        }
    }

    /// DMEM_CONTROL was written.
    pub fn data_control(&mut self, value: u32) {
        if self.on {
            let caches = match value >> 2 & 3 {
                3 => DataCaches::Both,
                2 => DataCaches::BankA,
                _ => DataCaches::None,
            };
            self.set_data_caches(caches, value & 1 << 4 != 0);
        }
    }

    /// The core's or the system's frequency may have changed.
    pub fn clock_changed(&mut self) {
        let ratio = self.clock.point().megahertz / self.clock.system_mhz();
        let core_cycles = |system: u32| (f64::from(system) * ratio).ceil() as u64;
        self.first = core_cycles(self.config.sdram_first);
        self.line = core_cycles(self.config.sdram_line);
    }

    /// An instruction fetch of the lines `first..=last` (line numbers); returns the cycles it stalls.
    #[inline(always)]
    pub fn fetch(&mut self, first: u32, last: u32, now: u64) -> u64 {
        if first == self.fetched && last == first { 0 } else { self.fetch_lines(first, last, now) }
    }

    fn fetch_lines(&mut self, first: u32, last: u32, now: u64) -> u64 {
        let mut stall = 0;
        for line in first..=last {
            if line == self.fetched {
                continue;
            }
            self.fetched = line;
            // The fetch unit takes 64 bits at a time.
            self.events.fetches += u64::from(LINE / 8);
            let addr = line * LINE;
            stall += match (speed(addr), &mut self.instruction_cache) {
                (Speed::L1, _) => 0,
                (speed, Some(cache)) => match cache.access(addr, false) {
                    Found::Hit => 0,
                    Found::Filled(_) => {
                        self.stats.instruction_fills += 1;
                        self.wait(speed, now + stall)
                    }
                },
                // Without a cache each 64 bits are a request of their own.
                (Speed::L2, None) => u64::from(self.config.l2_first * LINE / 8),
                (Speed::External, None) => self.first * u64::from(LINE / 8),
            };
        }
        self.events.code_stalls += stall;
        stall
    }

    /// A data read; returns the cycles it stalls.
    #[inline(always)]
    pub fn read(&mut self, addr: u32, now: u64) -> u64 {
        match self.data_access(addr, false) {
            Access::Fast => 0,
            access => self.slow_read(access, addr, now),
        }
    }

    /// A data write; returns the cycles it stalls.
    #[inline(always)]
    pub fn write(&mut self, addr: u32, now: u64) -> u64 {
        match self.data_access(addr, true) {
            Access::Fast => 0,
            access => self.slow_write(access, addr, now),
        }
    }

    #[inline(always)]
    fn bank(&self, addr: u32) -> usize {
        // With one cache, bank A serves all addresses.
        let shift = if self.bank_by_bit_23 { 23 } else { 14 };
        if self.data_caches[1].is_some() { (addr >> shift & 1) as usize } else { 0 }
    }

    #[inline(always)]
    fn data_access(&mut self, addr: u32, write: bool) -> Access {
        if addr >= 0xFF00_0000 {
            return Access::Fast;
        }
        let bank = self.bank(addr);
        match &mut self.data_caches[bank] {
            Some(cache) => match cache.access(addr, write) {
                Found::Hit => Access::Fast,
                Found::Filled(victim) => Access::Fill { bank, victim },
            },
            None => Access::Uncached,
        }
    }

    #[cold]
    fn slow_read(&mut self, access: Access, addr: u32, now: u64) -> u64 {
        let stall = self.wait(speed(addr), now);
        self.account(access);
        self.events.read_stalls += stall;
        stall
    }

    #[cold]
    fn slow_write(&mut self, access: Access, addr: u32, now: u64) -> u64 {
        let stall = match speed(addr) {
            Speed::External => {
                let start = now.max(self.bus_free);
                self.bus_free = start + self.first + self.line;
                start - now
            }
            _ => 0,
        };
        self.account(access);
        self.events.write_stalls += stall;
        stall
    }

    /// Waits for the first word of a line; the bus is busy with the rest of it.
    fn wait(&mut self, speed: Speed, now: u64) -> u64 {
        match speed {
            Speed::L1 => 0,
            Speed::L2 => self.config.l2_first.into(),
            Speed::External => {
                let start = now.max(self.bus_free);
                self.bus_free = start + self.first + self.line;
                start + self.first - now
            }
        }
    }

    fn account(&mut self, access: Access) {
        if let Access::Fill { bank, victim } = access {
            self.events.fills[bank & 1] += 1;
            if let Some(Victim { dirty }) = victim {
                self.events.evictions[bank & 1] += 1;
                if dirty {
                    self.stats.write_backs += 1;
                    self.bus_free += self.line;
                }
            }
        }
    }

    /// `FLUSH` and `FLUSHINV`: writes a line back and keeps or drops it.
    pub fn flush_data(&mut self, addr: u32, invalidate: bool) {
        let bank = self.bank(addr);
        if let Some(cache) = &mut self.data_caches[bank]
            && cache.flush(addr, invalidate)
        {
            self.stats.write_backs += 1;
            self.bus_free += self.line;
        }
    }

    /// `PREFETCH`: gets a line without waiting for it.
    pub fn prefetch(&mut self, addr: u32, now: u64) {
        let access = self.data_access(addr, false);
        if matches!(access, Access::Fill { .. }) {
            self.wait(speed(addr), now);
            self.account(access);
        }
    }

    /// `IFLUSH`: drops a line of instructions.
    pub fn flush_instructions(&mut self, addr: u32) {
        self.fetched = u32::MAX;
        if let Some(cache) = &mut self.instruction_cache {
            cache.flush(addr, true);
        }
    }
}

/// What an access to data comes to.
#[derive(Clone, Copy)]
enum Access {
    /// In L1.
    Fast,
    Fill {
        bank: usize,
        victim: Option<Victim>,
    },
    Uncached,
}
