//! The L1 caches: which lines are in them, not what is in the lines.
//!
//! (ADSP-BF54x Hardware Reference, "Memory": lines of 32 bytes, least recently used replaced. Instructions: 16 KB, four
//! sub-banks of 4 KB chosen by address bits 13:12, in each 32 sets of four ways chosen by bits 9:5. Data: two banks of
//! 16 KB, chosen by bit 14 (or 23, by DMEM_CONTROL), in each four sub-banks by bits 13:12, in each 64 sets of two ways
//! by bits 10:5.)

/// Bytes of a line.
pub const LINE: u32 = 32;

/// A line that was pushed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    pub dirty: bool,
}

/// What an access found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Hit,
    /// The line is in the cache now; another one may have been pushed out.
    Filled(Option<Victim>),
}

/// No line has this number: the highest address is 2^32 - 1.
const EMPTY: u32 = u32::MAX;

/// One 16 KB bank of `WAYS` ways; the ways of a set stand in the order of their last use.
pub struct Bank<const WAYS: usize> {
    sets: Vec<Set<WAYS>>,
    /// Bits of the address, above the line's, that choose the set within a sub-bank.
    set_bits: u32,
}

#[derive(Clone, Copy)]
struct Set<const WAYS: usize> {
    lines: [u32; WAYS],
    dirty: [bool; WAYS],
}

impl<const WAYS: usize> Bank<WAYS> {
    pub fn new() -> Bank<WAYS> {
        // 16 KB in four sub-banks.
        let sets_each = (4096 / LINE as usize) / WAYS;
        let set = Set { lines: [EMPTY; WAYS], dirty: [false; WAYS] };
        Bank { sets: vec![set; 4 * sets_each], set_bits: sets_each.trailing_zeros() }
    }

    #[inline(always)]
    fn set(&mut self, addr: u32) -> Option<&mut Set<WAYS>> {
        let within = (addr / LINE) & ((1 << self.set_bits) - 1);
        let sub_bank = addr >> 12 & 3;
        self.sets.get_mut((sub_bank << self.set_bits | within) as usize)
    }

    /// Reads or writes the line of `addr`; a missing one is filled.
    #[inline(always)]
    pub fn access(&mut self, addr: u32, write: bool) -> Found {
        let line = addr / LINE;
        let Some(set) = self.set(addr) else { return Found::Hit };
        if set.lines[0] == line {
            set.dirty[0] |= write;
            return Found::Hit;
        }
        set.search(line, write)
    }

    /// Takes the line of `addr` out, or only cleans it. Tells whether it was dirty.
    pub fn flush(&mut self, addr: u32, invalidate: bool) -> bool {
        let line = addr / LINE;
        let Some(set) = self.set(addr) else { return false };
        let Some(way) = set.lines.iter().position(|&there| there == line) else { return false };
        if invalidate {
            set.lines[way] = EMPTY;
        }
        std::mem::take(&mut set.dirty[way])
    }
}

impl<const WAYS: usize> Set<WAYS> {
    /// Looks at the other ways than the most recent one, and makes the line the most recent.
    fn search(&mut self, line: u32, write: bool) -> Found {
        let way = self.lines.iter().position(|&there| there == line);
        let last = way.unwrap_or(WAYS - 1);
        let victim = match way {
            Some(_) => None,
            None => (self.lines[last] != EMPTY).then_some(Victim { dirty: self.dirty[last] }),
        };
        let dirty = way.is_some() && self.dirty[last] || write;
        self.lines.copy_within(0..last, 1);
        self.dirty.copy_within(0..last, 1);
        self.lines[0] = line;
        self.dirty[0] = dirty;
        if way.is_some() { Found::Hit } else { Found::Filled(victim) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_goes() {
        let mut bank = Bank::<2>::new();
        // Bit 11 is no part of the set: these three share one.
        let (a, b, c) = (0x1000, 0x1800, 0x1_1000);
        assert_eq!(bank.access(a, true), Found::Filled(None));
        assert_eq!(bank.access(b, false), Found::Filled(None));
        assert_eq!(bank.access(a + 31, false), Found::Hit);
        assert_eq!(bank.access(c, false), Found::Filled(Some(Victim { dirty: false })), "b was used longest ago");
        assert_eq!(bank.access(b, false), Found::Filled(Some(Victim { dirty: true })), "a was written");
        assert_eq!(bank.access(c, false), Found::Hit);
    }

    #[test]
    fn a_bank_holds_16_kb() {
        fn check<const WAYS: usize>() {
            let mut bank = Bank::<WAYS>::new();
            let lines = || (0..16384).step_by(LINE as usize);
            assert!(lines().all(|addr| bank.access(addr, false) == Found::Filled(None)));
            assert!(lines().all(|addr| bank.access(addr, false) == Found::Hit));
        }
        check::<2>();
        check::<4>();
    }

    #[test]
    fn flush_cleans_or_empties() {
        let mut bank = Bank::<2>::new();
        bank.access(0x40, true);
        assert!(bank.flush(0x44, false));
        assert!(!bank.flush(0x44, false), "clean now");
        assert_eq!(bank.access(0x40, true), Found::Hit);
        assert!(bank.flush(0x40, true));
        assert_eq!(bank.access(0x40, false), Found::Filled(None));
    }
}
