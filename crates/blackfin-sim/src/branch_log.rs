//! The trace buffer (TBUF): the last 16 changes of flow, as source and target.
//!
//! Reads take entries out, the newest first, target before source. Runs of the same branch can be folded into one entry;
//! the hardware then sets bit 0 of the target (or, of every second branch, of the source).

use std::collections::VecDeque;

const POWERED: u32 = 1 << 0;
const ENABLED: u32 = 1 << 1;
const STOP_WHEN_FULL: u32 = 1 << 2;
const FOLD_ONE: u32 = 1 << 3;
const FOLD_TWO: u32 = 1 << 4;

/// The entries the hardware has.
const ENTRIES: usize = 16;

pub struct BranchLog {
    pub control: u32,
    entries: VecDeque<Entry>,
    /// The target of the newest entry was read.
    half_read: bool,
}

struct Entry {
    from: u32,
    to: u32,
}

impl BranchLog {
    pub fn new() -> BranchLog {
        BranchLog { control: 0, entries: VecDeque::new(), half_read: false }
    }

    pub fn is_on(&self) -> bool {
        self.control & (POWERED | ENABLED) == POWERED | ENABLED
    }

    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Logs a change of flow; `false` if the buffer is full and the program wants to know.
    #[must_use]
    pub fn record(&mut self, from: u32, to: u32, in_exception: bool) -> bool {
        let stop_when_full = self.control & STOP_WHEN_FULL != 0;
        if !self.is_on() || in_exception && stop_when_full {
            return true;
        }
        if self.entries.len() == ENTRIES {
            if stop_when_full {
                return false;
            }
            self.entries.pop_front();
        }
        let same = |entry: &Entry| entry.from & !1 == from && entry.to & !1 == to;
        let newest = self.entries.len().wrapping_sub(1);
        if self.control & (FOLD_ONE | FOLD_TWO) != 0
            && let Some(entry) = self.entries.get_mut(newest).filter(|entry| same(entry))
        {
            entry.to |= 1;
            return true;
        }
        if self.control & FOLD_TWO != 0
            && let Some(entry) = self.entries.get_mut(newest.wrapping_sub(1)).filter(|entry| same(entry))
        {
            entry.from |= 1;
            return true;
        }
        self.entries.push_back(Entry { from, to });
        true
    }

    /// Reads TBUF.
    pub fn read(&mut self) -> u32 {
        let Some(newest) = self.entries.back() else { return 0 };
        let value = if self.half_read { newest.from } else { newest.to };
        if self.half_read {
            self.entries.pop_back();
        }
        self.half_read = !self.half_read;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_first_and_folded() {
        let mut log = BranchLog::new();
        assert!(log.record(1, 2, false));
        assert_eq!(log.len(), 0, "off");
        log.control = POWERED | ENABLED | FOLD_ONE;
        for _ in 0..3 {
            assert!(log.record(0x10, 0x20, false));
        }
        assert!(log.record(0x30, 0x40, false));
        assert_eq!(log.len(), 2);
        assert_eq!([log.read(), log.read(), log.read(), log.read()], [0x40, 0x30, 0x21, 0x10]);
        assert_eq!(log.read(), 0);
    }

    #[test]
    fn full_is_told_or_overwritten() {
        let mut log = BranchLog::new();
        log.control = POWERED | ENABLED | STOP_WHEN_FULL;
        for i in 0..ENTRIES as u32 {
            assert!(log.record(i * 4, 0x100, false));
        }
        assert!(!log.record(0x80, 0x100, false));
        assert!(log.record(0x80, 0x100, true), "not in exception handlers");
        log.control = POWERED | ENABLED;
        assert!(log.record(0x80, 0x100, false));
        assert_eq!(log.len(), ENTRIES as u32);
        assert_eq!(log.read(), 0x100);
        assert_eq!(log.read(), 0x80);
    }
}
