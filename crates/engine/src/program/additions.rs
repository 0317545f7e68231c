//! Blocks that are added to a region that was read before.
//!
//! One more in the middle of a large region would move all blocks behind it and change the numbers that jumps know. So new
//! blocks stand apart until all of them are known, and then join the others in one step.

use std::ops::ControlFlow;

use lancet_isa::{Effects, Svma};

use super::blocks::{End, NO_BLOCK, RegionBlock, RegionCfg};
use crate::image::Image;

/// New blocks of a region. Nothing leads to them by number yet.
#[derive(Default)]
pub(super) struct Additions {
    /// By address.
    blocks: Vec<RegionBlock>,
}

impl Additions {
    /// The last block, old or new, that starts at or before an address.
    pub(super) fn block_before<'b>(&'b self, cfg: &'b RegionCfg, at: Svma) -> Option<&'b RegionBlock> {
        let last = |blocks: &'b [RegionBlock]| blocks[..blocks.partition_point(|block| block.start <= at)].last();
        [last(&cfg.blocks), last(&self.blocks)].into_iter().flatten().max_by_key(|block| block.start)
    }

    /// Where the first block starts that stands behind an address.
    pub(super) fn first_behind(&self, cfg: &RegionCfg, at: Svma) -> Option<Svma> {
        let first = |blocks: &[RegionBlock]| Some(blocks.get(blocks.partition_point(|block| block.start <= at))?.start);
        [first(&cfg.blocks), first(&self.blocks)].into_iter().flatten().min()
    }

    pub(super) fn add(&mut self, block: RegionBlock) {
        let place = self.blocks.partition_point(|other| other.start < block.start);
        self.blocks.insert(place, block);
    }

    /// Makes a block start at an instruction in the middle of one, where none [overlap](RegionCfg::overlaps); `false` if there
    /// is none. Where the indirect jumps go does not change: they are followed backwards from block to block, not from
    /// entries.
    pub(super) fn split(&mut self, cfg: &mut RegionCfg, image: &Image, at: Svma) -> bool {
        let start = match self.block_before(cfg, at) {
            Some(block) if at < block.end_address() => block.start,
            _ => return false,
        };
        let by_start = |block: &RegionBlock| block.start.cmp(&start);
        let block = match cfg.blocks.binary_search_by(by_start) {
            Ok(i) => &mut cfg.blocks[i],
            Err(_) => match self.blocks.binary_search_by(by_start) {
                Ok(i) => &mut self.blocks[i],
                Err(_) => return false,
            },
        };
        let Some(tail) = cut(image, block, at) else { return false };
        if cfg.followed.binary_search(&start).is_ok()
            && let Err(place) = cfg.followed.binary_search(&at)
        {
            cfg.followed.insert(place, at);
        }
        self.add(tail);
        true
    }

    /// Joins the new blocks to those of the region.
    pub(super) fn join(self, cfg: &mut RegionCfg) {
        cfg.add_blocks(&self.blocks);
    }
}

/// Lets a block end before one of its instructions, and gives the rest of it.
fn cut(image: &Image, block: &mut RegionBlock, at: Svma) -> Option<RegionBlock> {
    let code = image.bytes(block.start, u64::from(block.len)).unwrap_or(&[]);
    let mut head =
        RegionBlock { len: 0, insns: 0, effects: Effects::default(), end: End::Fall, to: NO_BLOCK, ..*block };
    let mut tail = RegionBlock { start: at, end: block.end, to: block.to, ..head };
    let mut on_boundary = false;
    // The block decoded before.
    let _ = image.isa().decode(code, block.start, &mut |insn| {
        on_boundary |= insn.at == at;
        let half = if insn.at < at { &mut head } else { &mut tail };
        half.len += u32::from(insn.len);
        half.insns += 1;
        half.effects = half.effects.then(insn.effects);
        ControlFlow::Continue(())
    });
    on_boundary.then(|| {
        *block = head;
        tail
    })
}
