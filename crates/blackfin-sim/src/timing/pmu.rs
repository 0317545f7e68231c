//! The performance monitor: two counters of 32 bits, each for one event.
//!
//! Event codes are those of the Blackfin Processor Programming Reference, "Performance Monitoring Unit", as Linux lists them
//! (arch/blackfin/kernel/perf_event.c). The simulator counts everything it can in [`Events`] anyway; a counter is the
//! difference to when it was last looked at, so counting costs nothing.

/// How often each event happened, or how many cycles it took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    pub loop_iterations: [u64; 2],
    pub direct_jumps: u64,
    pub mispredicted: u64,
    pub predicted_taken: u64,
    pub sync_stalls: u64,
    pub exceptions: u64,
    pub syncs: u64,
    pub instructions: u64,
    pub interrupts: u64,
    pub misaligned: u64,
    pub hazards: u64,
    pub code_stalls: u64,
    pub fetches: u64,
    pub read_stalls: u64,
    pub write_stalls: u64,
    /// Of the two data banks.
    pub fills: [u64; 2],
    pub evictions: [u64; 2],
}

impl Events {
    fn get(&self, code: u8) -> u64 {
        match code {
            0x00 => self.loop_iterations[0],
            0x01 => self.loop_iterations[1],
            0x04 => self.direct_jumps,
            0x06 => self.mispredicted,
            0x09 => self.predicted_taken,
            0x0A => self.sync_stalls,
            0x0B => self.exceptions,
            0x0C => self.syncs,
            0x0D => self.instructions,
            0x0E => self.interrupts,
            0x0F => self.misaligned,
            0x10 => self.hazards,
            0x81 | 0x82 => self.code_stalls,
            0x83 => self.fetches,
            0x90 | 0x98 | 0x99 => self.read_stalls + self.write_stalls,
            0x92 | 0x93 => self.write_stalls,
            0x95 => self.read_stalls,
            0x9A => self.fills[0],
            0x9B => self.fills[1],
            0x9C => self.evictions[0],
            0x9D => self.evictions[1],
            0x9E => self.fills.iter().sum(),
            // The others do not happen here: DMA, collisions, low priority.
            _ => 0,
        }
    }
}

/// One of the two counters, as it was when last looked at.
#[derive(Clone, Copy, Default)]
struct Counter {
    value: u32,
    /// What its event's total was then.
    seen: u64,
}

/// Where the fields of PFCTL for a counter are.
struct Fields {
    enable: u32,
    event: u32,
}

const FIELDS: [Fields; 2] = [Fields { enable: 3, event: 5 }, Fields { enable: 14, event: 16 }];
const POWERED: u32 = 1 << 0;
const IN_USER_MODE: u32 = 1;
const IN_SUPERVISOR_MODE: u32 = 2;

#[derive(Default)]
pub struct Pmu {
    control: u32,
    counters: [Counter; 2],
}

impl Pmu {
    fn event(&self, which: usize) -> u8 {
        (self.control >> FIELDS[which].event) as u8
    }

    fn counts(&self, which: usize, supervisor: bool) -> bool {
        let mode = if supervisor { IN_SUPERVISOR_MODE } else { IN_USER_MODE };
        self.control & POWERED != 0 && self.control >> FIELDS[which].enable & mode != 0
    }

    /// Brings the counters up to date. Must be called before the mode changes.
    pub fn update(&mut self, events: &Events, supervisor: bool) {
        for which in 0..2 {
            let total = events.get(self.event(which));
            let counts = self.counts(which, supervisor);
            let counter = &mut self.counters[which];
            if counts {
                counter.value = counter.value.wrapping_add((total - counter.seen) as u32);
            }
            counter.seen = total;
        }
    }

    pub fn control(&self) -> u32 {
        self.control
    }

    pub fn set_control(&mut self, value: u32, events: &Events, supervisor: bool) {
        self.update(events, supervisor);
        self.control = value;
        for which in 0..2 {
            self.counters[which].seen = events.get(self.event(which));
        }
    }

    pub fn counter(&mut self, which: usize, events: &Events, supervisor: bool) -> u32 {
        self.update(events, supervisor);
        self.counters[which & 1].value
    }

    pub fn set_counter(&mut self, which: usize, value: u32, events: &Events, supervisor: bool) {
        self.update(events, supervisor);
        self.counters[which & 1].value = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_only_while_enabled_and_in_the_right_mode() {
        let mut events = Events::default();
        let mut pmu = Pmu::default();
        events.fills[0] = 5;
        // Counter 0: fills of bank A in supervisor mode. Counter 1: instructions in both modes.
        let control = POWERED | 2 << 3 | 0x9A << 5 | 3 << 14 | 0x0D << 16;
        pmu.set_control(control, &events, true);
        events.fills[0] = 8;
        events.instructions = 100;
        assert_eq!(pmu.counter(0, &events, true), 3);
        pmu.update(&events, true);
        events.fills[0] = 10;
        events.instructions = 150;
        assert_eq!(pmu.counter(0, &events, false), 3, "user mode does not count");
        assert_eq!(pmu.counter(1, &events, false), 150);
        pmu.set_control(control & !POWERED, &events, true);
        events.fills[0] = 20;
        assert_eq!(pmu.counter(0, &events, true), 3);
        pmu.set_counter(0, 7, &events, true);
        pmu.set_control(control, &events, true);
        events.fills[0] = 21;
        assert_eq!(pmu.counter(0, &events, true), 8);
    }
}
