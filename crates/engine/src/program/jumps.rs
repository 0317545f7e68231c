//! The indirect jumps of a region while it is being decoded.
//!
//! Code found behind a table may lead to another way into the table's jump, or into another jump, so all are resolved
//! again until nothing changes. Following a jump backwards is dear; what was seen on the way is remembered with its
//! result, which holds as long as the blocks seen, and the ways into them, are the same.

use lancet_isa::Svma;
use rustc_hash::FxHashMap;

use super::jump_tables::{self, IsTarget, Origins, Resolution, View};
use super::table::JumpTable;
use super::ways::Via;

#[derive(Default)]
pub(super) struct Jumps {
    pub(super) tables: Vec<JumpTable>,
    /// A jump, and a label that it may go to.
    pub(super) labels: Vec<(Svma, Svma)>,
    /// Those that go through a pointer.
    pointers: Vec<Svma>,
    /// By the leader of the jump's block.
    followed: FxHashMap<u32, Followed>,
}

/// Where a jump's target comes from, and what that was read off.
struct Followed {
    origins: Origins,
    seen: Vec<Seen>,
    /// The ways into the blocks of `seen`, one block's behind the other's.
    preds: Vec<(u32, Via)>,
}

/// A block. Blocks are known by their leaders.
struct Seen {
    leader: u32,
    insns: usize,
    /// How many blocks are before it; `None`: nobody asked.
    preds: Option<usize>,
}

impl Followed {
    fn new(view: &View<'_>, block: usize) -> Followed {
        let (origins, blocks) = jump_tables::follow(view, block);
        let mut followed = Followed { origins, seen: Vec::with_capacity(blocks.len()), preds: Vec::new() };
        for block in blocks {
            let known = view.ways.known_before(block);
            let preds = known.as_deref().unwrap_or_default();
            let (leader, insns) = (view.ways.leader(block), view.block(block).len());
            followed.seen.push(Seen { leader, insns, preds: known.is_some().then_some(preds.len()) });
            followed.preds.extend(preds.iter().map(|(pred, via)| (view.ways.leader(*pred as usize), *via)));
        }
        followed
    }

    /// Are the blocks that were seen, and the ways into them, the same?
    fn holds(&self, view: &View<'_>) -> bool {
        let mut known = &self.preds[..];
        self.seen.iter().all(|seen| {
            let block = view.block_at(seen.leader);
            if view.block(block).len() != seen.insns {
                return false;
            }
            let Some(count) = seen.preds else { return true };
            let (before, rest) = known.split_at(count);
            known = rest;
            let preds = view.before(block);
            preds.iter().map(|(pred, via)| (view.ways.leader(*pred as usize), *via)).eq(before.iter().copied())
        })
    }
}

impl Jumps {
    pub(super) fn is_resolved(&self, jump: Svma) -> bool {
        self.tables.iter().any(|table| table.jump == jump) || self.labels.iter().any(|(from, _)| *from == jump)
    }

    /// All blocks that were looked at, by leader, and how many instructions they had.
    pub(super) fn seen_blocks(&self) -> impl Iterator<Item = (u32, usize)> {
        self.followed.values().flat_map(|followed| followed.seen.iter().map(|seen| (seen.leader, seen.insns)))
    }

    pub(super) fn is_pointer(&self, jump: Svma) -> bool {
        self.pointers.contains(&jump)
    }

    /// Where the jumps go.
    pub(super) fn targets(&self) -> impl Iterator<Item = Svma> {
        let in_tables = self.tables.iter().flat_map(|table| table.targets.iter().copied());
        in_tables.chain(self.labels.iter().map(|(_, to)| *to))
    }

    /// How many ways are known, in a number that grows with what is found.
    pub(super) fn ways(&self) -> usize {
        let in_tables: usize = self.tables.iter().map(|table| table.targets.len()).sum();
        in_tables + self.labels.len() + self.pointers.len()
    }

    /// Forgets where jumps go, but not where their targets come from.
    pub(super) fn forget(&mut self) {
        self.tables.clear();
        self.labels.clear();
        self.pointers.clear();
    }

    /// Resolves the jump that ends a block, if it was not before. `to_follow`: what is known of where its target comes from
    /// may not hold any more.
    pub(super) fn resolve(&mut self, view: &View<'_>, block: usize, to_follow: bool, is_target: &IsTarget<'_>) {
        let Some(jump) = view.block(block).last().map(|insn| insn.at) else { return };
        if self.is_pointer(jump) || self.is_resolved(jump) {
            return;
        }
        let leader = view.ways.leader(block);
        if self.followed.get(&leader).is_none_or(|followed| to_follow && !followed.holds(view)) {
            self.followed.insert(leader, Followed::new(view, block));
        }
        match jump_tables::conclude(view, jump, &self.followed[&leader].origins, is_target) {
            Resolution::Found { tables, labels } => {
                self.tables.extend(tables);
                self.labels.extend(labels.into_iter().map(|to| (jump, to)));
            }
            Resolution::Pointer | Resolution::PointerArray => self.pointers.push(jump),
            Resolution::Unknown => {}
        }
    }
}
