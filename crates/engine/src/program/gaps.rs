//! Hidden procedures: code that neither tables nor calls lead to, but a pointer does.
//!
//! Hand-written assembly without unwind information, entered only through a table of functions or an address that an
//! instruction takes. Looked for last, and only in what nothing else covers, so that it costs no precision.

use lancet_isa::Svma;
use rayon::prelude::*;

use super::FoundBy;
use super::discover::{Discovery, Region, is_padding};
use super::seeds::Seed;
use crate::image::RelocKind;

impl Discovery<'_> {
    /// Code that nothing covers, and that a pointer in data leads to.
    pub(super) fn pointed_to_in_gaps(&self) -> Vec<Seed> {
        let gaps = self.gaps();
        let labels = self.labels_in_holes();
        if gaps.is_empty() && labels.is_empty() {
            return Vec::new();
        }
        let in_gap = |at: Svma| {
            let i = gaps.partition_point(|(start, _)| *start <= at);
            i > 0 && at < gaps[i - 1].1
        };
        // Most pointers lead to data.
        let code = self.image.code_ranges();
        let in_code = |at: Svma| code.iter().any(|range| range.contains(at));
        let wanted = |at: Svma| in_code(at) && (in_gap(at) || labels.binary_search(&at).is_ok());
        let relocated = self.image.relocations().par_iter().filter_map(|reloc| match reloc.kind {
            RelocKind::Relative(to) => Some(to).filter(|to| wanted(*to)),
            _ => None,
        });
        let mut found: Vec<Svma> = relocated.collect();
        if !self.image.kind().is_position_independent() {
            found.extend(self.words_in_data(&wanted));
        }
        let mentioned = self.regions.par_iter().flat_map_iter(|region| Self::constants_in_code(region, &wanted));
        found.par_extend(mentioned);
        found.sort_unstable();
        found.dedup();
        let seed = |start| Seed { start, end: None, found_by: FoundBy::Pointer, part: false, referenced: true };
        found.into_iter().map(seed).collect()
    }

    /// Labels inside functions whose control flow does not come there, by address. Start-up code is written so: what an
    /// event leads to stands in the middle of it.
    fn labels_in_holes(&self) -> Vec<Svma> {
        let in_a_hole = |at: &Svma| {
            let Some(region) = self.containing(*at).map(|i| &self.regions[i]) else { return false };
            let mut blocks = region.cfg.blocks.iter().zip(&region.reached);
            region.start() != *at
                && !blocks.any(|(block, reached)| *reached && *at >= block.start && *at < block.end_address())
        };
        // Symbols are in the order of their addresses.
        let mut labels: Vec<Svma> = self.image.symbols().iter().map(|symbol| symbol.svma).filter(in_a_hole).collect();
        labels.dedup();
        labels
    }

    /// Ranges of code, padding aside, that no region's code covers.
    fn gaps(&self) -> Vec<(Svma, Svma)> {
        let covered_by = |region: &Region| {
            let others = region.parts[1..].iter().map(|part| (part.start, part.end));
            [(region.start(), region.code_end())].into_iter().chain(others).collect::<Vec<_>>()
        };
        let covered = self.regions.par_iter().flat_map_iter(|region| covered_by(region));
        let mut covered: Vec<(Svma, Svma)> = covered.collect();
        covered.sort_unstable();
        let mut gaps = Vec::new();
        for range in self.image.code_ranges() {
            let mut at = range.start;
            let first = covered.partition_point(|(start, _)| *start < range.start);
            let inside = covered[first..].iter().take_while(|(start, _)| *start < range.end());
            for (start, end) in inside.copied().chain([(range.end(), range.end())]) {
                if start > at {
                    gaps.push((at, start));
                }
                at = at.max(end);
            }
        }
        gaps.into_par_iter().filter(|(start, end)| !is_padding(self.image, *start, *end)).collect()
    }

    /// Pointer-sized words of the data of a program at a fixed address.
    fn words_in_data(&self, wanted: &(dyn Fn(Svma) -> bool + Sync)) -> Vec<Svma> {
        let size = u64::from(self.image.isa().facts().pointer_bytes);
        let data = self.image.segments().par_iter().filter(|segment| !segment.executable);
        let words = data.flat_map(|segment| {
            let aligned = Svma(segment.svma.0.next_multiple_of(size));
            let count = segment.file_size.saturating_sub(aligned - segment.svma) / size;
            (0..count).into_par_iter().filter_map(move |i| self.image.pointer_at(aligned + i * size))
        });
        words.filter(|to| wanted(*to)).collect()
    }

    /// Addresses that the instructions of a region that can run mention.
    pub(super) fn constants_in_code(region: &Region, wanted: &dyn Fn(Svma) -> bool) -> Vec<Svma> {
        let blocks = &region.cfg.blocks;
        let can_run = |at: Svma| {
            let before = blocks.partition_point(|block| block.start <= at).checked_sub(1);
            before.is_some_and(|i| region.reached[i] && blocks[i].end_address() > at)
        };
        let mentions = region.cfg.mentions.iter().filter(|(from, to)| wanted(*to) && can_run(*from));
        mentions.map(|(_, to)| *to).collect()
    }
}
