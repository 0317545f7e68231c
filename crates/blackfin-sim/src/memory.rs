//! The memories of the BF548.
//!
//! | what | where | size |
//! |---|---|---|
//! | SDRAM | 0 | 128 MB, or what the configuration says |
//! | L2 | 0xFEB0_0000 | 128 KB |
//! | L1 data banks A, B | 0xFF80_0000, 0xFF90_0000 | 32 KB each; the upper halves may be cache |
//! | L1 instructions | 0xFFA0_0000 | 48 KB |
//! | L1 instructions, cache | 0xFFA1_0000 | 16 KB |
//! | scratchpad | 0xFFB0_0000 | 4 KB |
//!
//! (ADSP-BF54x Hardware Reference, "Memory".) The memory-mapped registers from 0xFFC0_0000 on are not here.
//!
//! The interpreter's fast path reaches SDRAM only, by one bounds check. While protection tables are on, or for memory that
//! holds decoded code (stores), it must not: the SDRAM is then moved to where the fast path does not look, and the
//! decoded range is refused. Everything else goes through the checked path of [`crate::core::Core`].

use std::ops::Range;

/// A memory on the chip.
struct Region {
    base: u32,
    len: u32,
}

const CHIP: [Region; 6] = [
    Region { base: 0xFEB0_0000, len: 0x2_0000 },
    Region { base: 0xFF80_0000, len: 0x8000 },
    Region { base: 0xFF90_0000, len: 0x8000 },
    Region { base: 0xFFA0_0000, len: 0xC000 },
    Region { base: 0xFFA1_0000, len: 0x4000 },
    Region { base: 0xFFB0_0000, len: 0x1000 },
];

const CHIP_BYTES: usize = {
    let (mut total, mut i) = (0, 0);
    while i < CHIP.len() {
        total += CHIP[i].len as usize;
        i += 1;
    }
    total
};

pub struct Memory {
    /// The SDRAM, where the fast path sees it. Empty while `guarded` holds it.
    open: Vec<u8>,
    guarded: Vec<u8>,
    chip: Vec<u8>,
    code: CodeMap,
}

/// Where a byte is kept.
#[derive(Clone, Copy)]
enum Place {
    Sdram(usize),
    Chip(usize),
}

impl Memory {
    pub fn new(sdram_bytes: u32) -> Memory {
        Memory {
            open: vec![0; sdram_bytes as usize],
            guarded: Vec::new(),
            chip: vec![0; CHIP_BYTES],
            code: CodeMap::new(sdram_bytes as usize),
        }
    }

    /// As a new one with so much SDRAM, nothing of which was decoded.
    pub fn reset(mut self, sdram_bytes: u32) -> Memory {
        self.guard(false);
        if self.open.len() != sdram_bytes as usize {
            return Memory::new(sdram_bytes);
        }
        self.open.fill(0);
        self.chip.fill(0);
        self.forget_code();
        self
    }

    /// Hides the SDRAM from the fast path, or shows it again.
    pub fn guard(&mut self, on: bool) {
        if on != self.open.is_empty() {
            std::mem::swap(&mut self.open, &mut self.guarded);
        }
    }

    fn sdram(&self) -> &[u8] {
        if self.open.is_empty() { &self.guarded } else { &self.open }
    }

    /// The fast path of loads: aligned, in SDRAM, not guarded.
    #[inline(always)]
    pub fn load<const N: usize>(&self, addr: u32) -> Option<[u8; N]> {
        let at = addr as usize;
        if at & (N - 1) != 0 {
            return None;
        }
        self.open.get(at..at + N)?.try_into().ok()
    }

    /// The fast path of stores: as [`Memory::load`], and nothing decoded is overwritten.
    #[inline(always)]
    pub fn store<const N: usize>(&mut self, addr: u32, bytes: [u8; N]) -> Option<()> {
        let at = addr as usize;
        if at & (N - 1) != 0 || self.code.in_range(addr) {
            return None;
        }
        *self.open.get_mut(at..at + N)?.first_chunk_mut()? = bytes;
        Some(())
    }

    /// Can a jump go there with nothing more to check than the alignment?
    #[inline(always)]
    pub fn is_plain_code(&self, addr: u32) -> bool {
        addr & 1 == 0 && (addr as usize) < self.open.len()
    }

    fn place(&self, addr: u32, len: usize) -> Option<Place> {
        let at = addr as usize;
        if at < self.sdram().len() {
            return (at + len <= self.sdram().len()).then_some(Place::Sdram(at));
        }
        let mut offset = 0;
        for region in &CHIP {
            let within = addr.wrapping_sub(region.base);
            if within < region.len {
                return (within as usize + len <= region.len as usize).then_some(Place::Chip(offset + within as usize));
            }
            offset += region.len as usize;
        }
        None
    }

    /// Bytes wherever there is memory; no protection is looked at.
    pub fn bytes(&self, addr: u32, len: usize) -> Option<&[u8]> {
        match self.place(addr, len)? {
            Place::Sdram(at) => self.sdram().get(at..at + len),
            Place::Chip(at) => self.chip.get(at..at + len),
        }
    }

    /// Writes wherever there is memory. Tells whether decoded code was overwritten; `None` if there is no memory.
    #[must_use]
    pub fn write(&mut self, addr: u32, bytes: &[u8]) -> Option<bool> {
        let place = self.place(addr, bytes.len())?;
        if bytes.is_empty() {
            return Some(false);
        }
        let target = match place {
            Place::Sdram(at) if self.open.is_empty() => self.guarded.get_mut(at..at + bytes.len())?,
            Place::Sdram(at) => self.open.get_mut(at..at + bytes.len())?,
            Place::Chip(at) => self.chip.get_mut(at..at + bytes.len())?,
        };
        target.copy_from_slice(bytes);
        Some(self.code.holds(place, bytes.len()))
    }

    /// Remembers that instructions were decoded from here.
    pub fn mark_code(&mut self, addr: u32, len: u32) {
        if let Some(place) = self.place(addr, len as usize) {
            self.code.mark(place, addr, len as usize);
        }
    }

    /// Was the halfword at `addr` decoded?
    pub fn is_decoded(&self, addr: u32) -> bool {
        self.place(addr, 2).is_some_and(|place| self.code.holds(place, 2))
    }

    pub fn forget_code(&mut self) {
        self.code.clear();
    }
}

/// Which halfwords were decoded.
struct CodeMap {
    /// One bit a halfword: the SDRAM, then the memories on the chip.
    bits: Vec<u64>,
    chip_first: usize,
    /// SDRAM addresses from the lowest to behind the highest decoded one.
    range: Range<u32>,
    chip_used: bool,
}

impl CodeMap {
    fn new(sdram_bytes: usize) -> CodeMap {
        let chip_first = sdram_bytes.div_ceil(128) * 64;
        let halfwords = chip_first + CHIP_BYTES / 2;
        CodeMap { bits: vec![0; halfwords.div_ceil(64)], chip_first, range: 0..0, chip_used: false }
    }

    #[inline(always)]
    fn in_range(&self, addr: u32) -> bool {
        addr.wrapping_sub(self.range.start) < self.range.end - self.range.start
    }

    fn index(&self, place: Place) -> usize {
        match place {
            Place::Sdram(at) => at / 2,
            Place::Chip(at) => self.chip_first + at / 2,
        }
    }

    fn mark(&mut self, place: Place, addr: u32, len: usize) {
        // A store is asked for its first byte alone: the range starts where the widest one does that reaches into it.
        let start = addr & !3;
        match place {
            Place::Sdram(_) if self.range.is_empty() => self.range = start..addr + len as u32,
            Place::Sdram(_) => {
                self.range = self.range.start.min(start)..self.range.end.max(addr + len as u32);
            }
            Place::Chip(_) => self.chip_used = true,
        }
        let first = self.index(place);
        for bit in first..first + len / 2 {
            if let Some(word) = self.bits.get_mut(bit / 64) {
                *word |= 1 << (bit % 64);
            }
        }
    }

    fn holds(&self, place: Place, len: usize) -> bool {
        let first = self.index(place);
        let last = match place {
            Place::Sdram(at) => (at + len - 1) / 2,
            Place::Chip(at) => self.chip_first + (at + len - 1) / 2,
        };
        (first..=last).any(|bit| self.bits.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 != 0))
    }

    fn clear(&mut self) {
        let words = self.range.start as usize / 128..(self.range.end as usize).div_ceil(128);
        self.bits[words].fill(0);
        if self.chip_used {
            self.bits[self.chip_first / 64..].fill(0);
        }
        self.range = 0..0;
        self.chip_used = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_path_sees_only_aligned_open_sdram() {
        let mut memory = Memory::new(0x1000);
        assert_eq!(memory.store(0x10, 0x1234_5678u32.to_le_bytes()), Some(()));
        assert_eq!(memory.load::<4>(0x10), Some(0x1234_5678u32.to_le_bytes()));
        assert_eq!(memory.load::<4>(0x12), None);
        assert_eq!(memory.load::<4>(0xFFE), None);
        assert_eq!(memory.load::<4>(0xFF80_0000), None);
        memory.guard(true);
        assert_eq!(memory.load::<4>(0x10), None);
        assert_eq!(memory.bytes(0x10, 4), Some(&0x1234_5678u32.to_le_bytes()[..]));
        memory.guard(false);
        assert!(memory.load::<4>(0x10).is_some());
    }

    #[test]
    fn stores_into_decoded_code_are_noticed() {
        let mut memory = Memory::new(0x1000);
        memory.mark_code(0x100, 4);
        memory.mark_code(0x200, 2);
        memory.mark_code(0xFFA0_0000, 2);
        // Between the two: refused by the fast path, harmless to the checked one.
        assert_eq!(memory.store(0x180, [0u8]), None);
        assert_eq!(memory.write(0x180, &[0]), Some(false));
        assert_eq!(memory.write(0x103, &[0]), Some(true));
        assert_eq!(memory.write(0x0FC, &[0; 8]), Some(true));
        assert_eq!(memory.write(0xFFA0_0000, &[0; 2]), Some(true));
        memory.forget_code();
        assert_eq!(memory.write(0x103, &[0]), Some(false));
        assert_eq!(memory.write(0xFFA0_0000, &[0; 2]), Some(false));
        assert_eq!(memory.store(0x180, [0u8]), Some(()));
        // A word whose second half was decoded.
        memory.mark_code(0x102, 2);
        assert_eq!(memory.store(0x100, [0u8; 4]), None);
        assert_eq!(memory.write(0x100, &[0; 4]), Some(true));
    }

    #[test]
    fn regions_do_not_run_into_each_other() {
        let mut memory = Memory::new(0x1000);
        assert_eq!(memory.write(0xFF80_7FFC, &[1; 4]), Some(false));
        assert_eq!(memory.write(0xFF80_7FFE, &[1; 4]), None);
        assert_eq!(memory.write(0x0FFE, &[1; 4]), None);
        assert_eq!(memory.bytes(0xFFC0_0000, 4), None);
    }
}
