//! The buffers in which a region is read.
//!
//! One worker reuses them for all its regions. Instructions are found by *offset*: the parts of the region stand one behind
//! the other, each followed by a gap longer than any instruction, so that running out of a part never runs into the next.

use std::cell::OnceCell;
use std::ops::Range;

use lancet_isa::{Insn, Svma};

use super::jump_tables::Computed;
use super::region::Slice;
use super::ways::{Via, Ways};

#[derive(Default)]
pub(super) struct Scratch {
    pub(super) insns: Vec<Insn>,
    pub(super) runs: Vec<Run>,
    /// The run of each instruction.
    pub(super) run_of: Vec<u32>,
    /// Index + 1 into `insns` of the instruction that starts at this offset.
    pub(super) at_offset: Vec<u32>,
    pub(super) leaders: Vec<u32>,
    /// For each offset: [`NO_LEADER`], [`LEADER`], or in the end one more than that and the number of the block.
    pub(super) leader_at: Vec<u32>,
    /// For each offset: index + 1 into `sources` of the last instruction found that leads there.
    pub(super) source_at: Vec<u32>,
    pub(super) sources: Vec<Source>,
    pub(super) work: Vec<u32>,
    /// Calls behind which nothing was decoded, because of what they are given.
    pub(super) last_calls: Vec<usize>,
    pub(super) hardware_loops: Vec<(Svma, Svma)>,
    /// The indirect jumps.
    pub(super) jumps: Vec<usize>,
    /// What was found of blocks when jumps were last followed.
    pub(super) ways: Ways,
    /// Where the tables that were known then lead: the offset, and the jump. Sorted.
    pub(super) from_tables: Vec<(u32, usize)>,
    /// All calls by address, if somebody asked.
    pub(super) calls: OnceCell<Vec<(Svma, usize)>>,
    pub(super) followed: FollowedCode,
    pub(super) computed: Computed,
    /// See [`RegionCfg::mentions`].
    pub(super) mentions: Vec<(Svma, Svma)>,
}

pub(super) const NO_LEADER: u32 = 0;
pub(super) const LEADER: u32 = 1;

/// An instruction that leads to an offset: it jumps there, or runs into code that was decoded before.
#[derive(Clone, Copy)]
pub(super) struct Source {
    pub(super) insn: u32,
    pub(super) via: Via,
    /// Index + 1 of the one that was found before.
    pub(super) before: u32,
}

/// The code through which indirect jumps were followed backwards. As long as there is no other way into it, and no other
/// jump, there is no need to follow any again.
#[derive(Default)]
pub(super) struct FollowedCode {
    /// By offset: does an instruction of it start there?
    pub(super) at_offset: Vec<bool>,
    /// Where that is so.
    pub(super) offsets: Vec<u32>,
    /// Exceptions lead into it: every call may be another way.
    pub(super) has_pad: bool,
    /// There may be something to follow.
    pub(super) is_stale: bool,
}

impl FollowedCode {
    pub(super) fn add(&mut self, offset: u32) {
        if !std::mem::replace(&mut self.at_offset[offset as usize], true) {
            self.offsets.push(offset);
        }
    }

    /// Control was found to come to an offset.
    pub(super) fn enter(&mut self, offset: u32) {
        self.is_stale |= self.at_offset[offset as usize];
    }

    pub(super) fn clear(&mut self) {
        self.offsets.drain(..).for_each(|offset| self.at_offset[offset as usize] = false);
        (self.has_pad, self.is_stale) = (false, false);
    }
}

/// Instructions that were decoded one behind the other.
#[derive(Clone)]
pub(super) struct Run {
    /// Of its first instruction.
    pub(super) offset: u32,
    /// In `insns`.
    pub(super) insns: Range<usize>,
}

/// Zeroing so many bytes' worth of offsets is cheaper than looking for those that are used. A region without a stated
/// end may cover megabytes of which it uses little.
const FEW_BYTES: usize = 1 << 16;

impl Scratch {
    pub(super) fn begin(&mut self, len: usize) {
        if self.at_offset.len() < len {
            self.at_offset.resize(len, 0);
            self.leader_at.resize(len, NO_LEADER);
            self.source_at.resize(len, 0);
            self.followed.at_offset.resize(len, false);
        }
    }

    pub(super) fn lead(&mut self, offset: u32) {
        self.followed.enter(offset);
        let leader = &mut self.leader_at[offset as usize];
        if *leader == NO_LEADER {
            *leader = LEADER;
            self.leaders.push(offset);
            self.work.push(offset);
        }
    }

    /// Is it one of [`Scratch::last_calls`]?
    pub(super) fn is_last_call(&self, call: &Insn) -> bool {
        self.last_calls.iter().any(|last| self.insns[*last].at == call.at)
    }

    /// Notes which instruction leads to a leader.
    pub(super) fn add_source(&mut self, offset: u32, insn: usize, via: Via) {
        let last = &mut self.source_at[offset as usize];
        self.sources.push(Source { insn: insn as u32, via, before: *last });
        *last = self.sources.len() as u32;
    }
}

/// Forgets instructions that were found by offset.
pub(super) fn clear_insns(slices: &[Slice<'_>], insns: &mut Vec<Insn>, at_offset: &mut [u32]) {
    for slice in slices {
        let used = slice.base as usize..slice.base as usize + slice.code.len();
        if slice.code.len() < FEW_BYTES {
            at_offset[used].fill(0);
        } else {
            let inside = |insn: &&Insn| insn.at >= slice.start && insn.at - slice.start < slice.code.len() as u64;
            for insn in insns.iter().filter(inside) {
                at_offset[slice.base as usize + (insn.at - slice.start) as usize] = 0;
            }
        }
    }
    insns.clear();
}
