//! Which region an address is in.
//!
//! Asked for every call and every jump that leaves its region, so it must not be a search through all regions: the
//! text is cut into equal buckets, each of which knows the parts that start in it. There are a few
//! buckets for every part, so what is left to search is a part or two.

use lancet_isa::Svma;

use super::discover::Region;
use super::func::Part;

/// On average. More cost memory, fewer cost steps.
const BUCKETS_PER_PART: u64 = 8;

#[derive(Default)]
pub(super) struct Index {
    /// By address.
    entries: Vec<Entry>,
    /// For each bucket: the number of entries that start before its end.
    before_end: Vec<u32>,
    /// Where the first bucket starts, and the binary logarithm of its size.
    base: Svma,
    shift: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    part: Part,
    region: u32,
    is_main: bool,
}

impl Index {
    pub(super) fn new(regions: &[Box<Region>]) -> Index {
        let mut entries = Vec::with_capacity(regions.len());
        for (region, number) in regions.iter().zip(0..) {
            let entry = |(i, part): (usize, &Part)| Entry { part: *part, region: number, is_main: i == 0 };
            entries.extend(region.parts.iter().enumerate().map(entry));
        }
        entries.sort_by_key(|entry| entry.part.start);
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Index::default() };
        let (base, span) = (first.part.start, last.part.start - first.part.start);
        let most = entries.len() as u64 * BUCKETS_PER_PART;
        let shift = (0..64).find(|shift| span >> shift < most).unwrap_or(63);
        let mut before_end: Vec<u32> = Vec::with_capacity((span >> shift) as usize + 1);
        for (entry, number) in entries.iter().zip(0..) {
            // Buckets before this one end before the entry starts.
            before_end.resize(((entry.part.start - base) >> shift) as usize, number);
        }
        before_end.push(entries.len() as u32);
        Index { entries, before_end, base, shift }
    }

    fn find(&self, at: Svma) -> Option<&Entry> {
        if at < self.base {
            return None;
        }
        let bucket = usize::try_from((at - self.base) >> self.shift).ok()?;
        let bucket = bucket.min(self.before_end.len().checked_sub(1)?);
        let first = bucket.checked_sub(1).map_or(0, |before| self.before_end[before] as usize);
        let inside = &self.entries[first..self.before_end[bucket] as usize];
        // The last that starts at or before the address, which may be one of an earlier bucket.
        let last = (first + inside.partition_point(|entry| entry.part.start <= at)).checked_sub(1)?;
        Some(&self.entries[last]).filter(|entry| entry.part.contains(at))
    }

    /// The region that an address is in, and whether it starts there.
    pub(super) fn place_of(&self, at: Svma) -> Option<(u32, bool)> {
        self.find(at).map(|entry| (entry.region, entry.is_main && entry.part.start == at))
    }

    /// The region that an address is in.
    pub(super) fn containing(&self, at: Svma) -> Option<usize> {
        self.find(at).map(|entry| entry.region as usize)
    }

    /// The region that starts at an address.
    pub(super) fn starting_at(&self, at: Svma) -> Option<u32> {
        self.place_of(at).filter(|(_, is_start)| *is_start).map(|(region, _)| region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::discover::Region;

    #[test]
    fn parts_are_found_wherever_they_stand() {
        let part = |start: u64, len: u64| Part { start: Svma(start), end: Svma(start + len) };
        let far = 0xffff_ffff_8000_0000;
        let parts = [vec![part(0x1000, 0x20), part(far, 0x10)], vec![part(0x1020, 0x1)], vec![part(0x9_0000, 0x100)]];
        let regions: Vec<Box<Region>> = parts.into_iter().map(|parts| Box::new(Region::of_parts(parts))).collect();
        let index = Index::new(&regions);
        for (at, region, starts) in [
            (0xfff, None, false),
            (0x1000, Some(0), true),
            (0x101f, Some(0), false),
            (0x1020, Some(1), true),
            (0x1021, None, false),
            (0x9_0000, Some(2), true),
            (0x9_00ff, Some(2), false),
            (0x9_0100, None, false),
            (far - 1, None, false),
            (far, Some(0), false),
            (far + 0x10, None, false),
            (u64::MAX, None, false),
        ] {
            assert_eq!(index.containing(Svma(at)), region, "{at:#x}");
            assert_eq!(index.starting_at(Svma(at)).is_some(), starts, "{at:#x}");
        }
        assert_eq!(Index::default().containing(Svma(0)), None);
        assert_eq!(Index::new(&[]).containing(Svma(0x1000)), None);
    }
}
