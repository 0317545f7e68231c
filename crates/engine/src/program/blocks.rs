//! The blocks of a region, and where control goes between them.

use std::cmp::Ordering;

use lancet_isa::{Effects, Insn, Svma, Target};

use super::table::JumpTable;
use crate::image::Image;

#[derive(Debug, Default)]
pub(super) struct RegionCfg {
    /// By address.
    pub(super) blocks: Vec<RegionBlock>,
    pub(super) tables: Vec<JumpTable>,
    /// Some of the blocks overlap.
    pub(super) overlaps: bool,
    /// An indirect jump, and a label that it may go to.
    pub(super) labels: Vec<(Svma, Svma)>,
    /// The last instruction of a hardware loop, and the first. Nested loops may end together.
    pub(super) repeats: Vec<(Svma, Svma)>,
    /// The blocks through which indirect jumps were followed backwards, sorted: another way into one of them may lead to
    /// other tables.
    pub(super) followed: Vec<Svma>,
    /// Where an instruction of a block mentions an address of the image, and the address; sorted.
    pub(super) mentions: Vec<(Svma, Svma)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RegionBlock {
    pub(super) start: Svma,
    pub(super) len: u32,
    pub(super) insns: u32,
    pub(super) effects: Effects,
    pub(super) end: End,
    /// The block that a jump or a taken branch leads to, or [`NO_BLOCK`] of this region. For a call: [`NOT_FOLLOWED`], if what
    /// stands behind it was not read because of it.
    pub(super) to: u32,
}

pub(super) const NO_BLOCK: u32 = u32::MAX;
/// When the call was read, it was known not to come back.
pub(super) const NOT_FOLLOWED: u32 = 0;

/// How a block ends. Addresses may lie outside the region, except where said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Runs into what follows.
    Fall,
    Jump(Svma),
    /// To the address, or into what follows.
    Branch(Svma),
    /// The last instruction closes hardware loops, to the tops of all [`RegionCfg::repeats`] that end with it.
    /// Otherwise it runs into what follows.
    Repeat,
    /// From which it may come back to what follows.
    Call(Target),
    Return,
    Stop,
    /// To the targets of the tables, and to the labels, whose jump is this block's last instruction.
    Tables,
    /// Through a pointer in a fixed place (a PLT stub).
    Slot(Svma),
    /// Through a pointer that is not a table's: a tail call if the stack is as on entry.
    Pointer,
    /// Nobody knows.
    Unresolved,
    /// No instruction decodes behind the block.
    Bad(Svma),
}

impl RegionBlock {
    pub(super) fn end_address(&self) -> Svma {
        self.start + u64::from(self.len)
    }
}

impl RegionCfg {
    pub(super) fn block_at(&self, at: Svma) -> Option<usize> {
        self.blocks.binary_search_by_key(&at, |block| block.start).ok()
    }

    /// The block at an address, which often is the likely one, and rarely far from it.
    pub(super) fn block_near(&self, likely: usize, at: Svma) -> Option<usize> {
        let likely = likely.min(self.blocks.len().checked_sub(1)?);
        let mut step = 1;
        let (low, high) = match self.blocks[likely].start.cmp(&at) {
            Ordering::Equal => return Some(likely),
            Ordering::Less => {
                while self.blocks.get(likely + step).is_some_and(|block| block.start < at) {
                    step *= 2;
                }
                (likely + step / 2, (likely + step + 1).min(self.blocks.len()))
            }
            Ordering::Greater => {
                while step <= likely && self.blocks[likely - step].start > at {
                    step *= 2;
                }
                (likely.saturating_sub(step), likely - step / 2)
            }
        };
        self.blocks[low..high].binary_search_by_key(&at, |block| block.start).ok().map(|i| low + i)
    }

    /// Adds blocks, which are sorted by address. The numbers of blocks that jumps know are as if the new ones stood behind the
    /// others. Where a jump knows none, it is looked up.
    pub(super) fn add_blocks(&mut self, new: &[RegionBlock]) {
        if new.is_empty() {
            return;
        }
        let old = std::mem::take(&mut self.blocks);
        let mut merged: Vec<RegionBlock> = Vec::with_capacity(old.len() + new.len());
        let mut numbers: Vec<u32> = Vec::with_capacity(old.len() + new.len());
        let mut numbers_of_new: Vec<u32> = Vec::with_capacity(new.len());
        let mut rest = &old[..];
        for block in new.iter().map(Some).chain([None]) {
            let count = block.map_or(rest.len(), |block| rest.partition_point(|other| other.start <= block.start));
            let (before, behind) = rest.split_at(count);
            let first = merged.len() as u32;
            numbers.extend(first..first + count as u32);
            merged.extend_from_slice(before);
            rest = behind;
            numbers_of_new.extend(block.map(|_| merged.len() as u32));
            merged.extend(block);
        }
        numbers.append(&mut numbers_of_new);
        self.blocks = merged;
        for i in 0..self.blocks.len() {
            let block = &self.blocks[i];
            let (End::Jump(to) | End::Branch(to)) = block.end else { continue };
            self.blocks[i].to = match numbers.get(block.to as usize) {
                Some(number) => *number,
                None => self.block_near(i + 1, to).map_or(NO_BLOCK, |to| to as u32),
            };
        }
    }

    /// The block that starts where block `i` ends.
    pub(super) fn next(&self, i: usize) -> Option<usize> {
        let end = self.blocks[i].end_address();
        match self.blocks.get(i + 1) {
            Some(next) if next.start == end => Some(i + 1),
            _ => self.block_near(i + 1, end),
        }
    }

    /// Shows each block of the region that control may reach from block `i`.
    fn next_blocks(&self, i: usize, mut see: impl FnMut(usize)) {
        let block = &self.blocks[i];
        let jump = || (block.to != NO_BLOCK).then_some(block.to as usize);
        match block.end {
            End::Fall | End::Call(_) => self.next(i).into_iter().for_each(see),
            End::Jump(_) => jump().into_iter().for_each(see),
            End::Branch(_) => jump().into_iter().chain(self.next(i)).for_each(see),
            _ => self.successors(block, &mut |to| self.block_near(i + 1, to).into_iter().for_each(&mut see)),
        }
    }

    /// Shows each address outside the region that control may reach from block `i`, and any in the middle of it where
    /// no block is.
    pub(super) fn ways_out(&self, i: usize, see: &mut dyn FnMut(Svma)) {
        let block = &self.blocks[i];
        let stays = match block.end {
            End::Fall => self.next(i).is_some(),
            End::Jump(_) => block.to != NO_BLOCK,
            End::Branch(_) => block.to != NO_BLOCK && self.next(i).is_some(),
            _ => false,
        };
        if !stays {
            self.successors(block, see);
        }
    }

    /// Shows each address that control may reach from a block, outside the region too.
    pub(super) fn successors(&self, block: &RegionBlock, see: &mut dyn FnMut(Svma)) {
        let next = block.end_address();
        match block.end {
            End::Fall | End::Call(_) => see(next),
            End::Jump(to) => see(to),
            End::Branch(taken) => {
                see(taken);
                see(next);
            }
            End::Repeat => {
                self.tops_of(block).for_each(&mut *see);
                see(next);
            }
            End::Tables => {
                for table in self.tables_of(block) {
                    table.targets.iter().for_each(|to| see(*to));
                }
                let range = block.start..block.end_address();
                self.labels.iter().filter(|(jump, _)| range.contains(jump)).for_each(|(_, to)| see(*to));
            }
            End::Return | End::Stop | End::Slot(_) | End::Pointer | End::Unresolved | End::Bad(_) => {}
        }
    }

    /// Where the hardware loops start again that a block closes.
    pub(super) fn tops_of(&self, block: &RegionBlock) -> impl Iterator<Item = Svma> {
        let range = block.start..block.end_address();
        self.repeats.iter().filter(move |(last, _)| range.contains(last)).map(|(_, first)| *first)
    }

    pub(super) fn tables_of(&self, block: &RegionBlock) -> impl Iterator<Item = &JumpTable> {
        let range = block.start..block.end_address();
        self.tables.iter().filter(move |table| range.contains(&table.jump))
    }

    /// Marks the blocks that run, if control enters at `entries` and does not come back from the calls whose blocks are
    /// not `returning`.
    pub(super) fn reach(&self, entries: impl Iterator<Item = Svma>, returning: &[bool], reached: &mut [bool]) {
        // Most of them are in order.
        let mut likely = 0;
        let found = entries.filter_map(|at| {
            let block = self.block_near(likely, at);
            likely = block.map_or(likely, |block| block + 1);
            block
        });
        let mut work: Vec<usize> = found.collect();
        work.iter().for_each(|i| reached[*i] = true);
        while let Some(i) = work.pop() {
            if !returning[i] {
                continue;
            }
            self.next_blocks(i, |next| {
                if !std::mem::replace(&mut reached[next], true) {
                    work.push(next);
                }
            });
        }
    }
}

/// What may be addresses among the constants of an instruction.
pub(super) fn mentioned(image: &Image, insn: &Insn) -> impl Iterator<Item = Svma> {
    let is_movable = image.kind().is_position_independent();
    (if is_movable { insn.mentions.movable() } else { insn.mentions }).iter()
}

/// Adds what an instruction mentions, if it is in the image.
#[inline]
pub(super) fn note_mentions(image: &Image, insn: &Insn, mentions: &mut Vec<(Svma, Svma)>) {
    // Most mention nothing.
    if insn.mentions.is_empty() {
        return;
    }
    for to in mentioned(image, insn) {
        if image.bytes(to, 1).is_some() {
            mentions.push((insn.at, to));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jump(start: u64, target: u64, to: u32) -> RegionBlock {
        let (effects, end) = (Effects::default(), End::Jump(Svma(target)));
        RegionBlock { start: Svma(start), len: 2, insns: 1, effects, end, to }
    }

    #[test]
    fn jumps_know_their_blocks_once_others_have_joined() {
        let blocks = vec![jump(0x10, 0x30, 1), jump(0x30, 0x10, 0), jump(0x50, 0x20, NO_BLOCK)];
        let mut cfg = RegionCfg { blocks, ..RegionCfg::default() };
        // The first of the new ones is number 3 until then.
        cfg.add_blocks(&[jump(0x20, 0x60, 4), jump(0x60, 0x50, 2), jump(0x62, 0x90, NO_BLOCK)]);
        let found: Vec<(u64, u32)> = cfg.blocks.iter().map(|block| (block.start.0, block.to)).collect();
        assert_eq!(found, [(0x10, 2), (0x20, 4), (0x30, 0), (0x50, 1), (0x60, 3), (0x62, NO_BLOCK)]);
    }
}
