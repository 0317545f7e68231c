//! Blocks of a region that is being read, and the ways into them, found when they are asked for: an indirect jump is
//! followed backwards through few of a region's blocks.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use rustc_hash::FxHashMap;

/// How control came from a predecessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Via {
    Taken,
    NotTaken,
    AfterCall,
    Other,
}

/// Blocks as the region knows them: by the offset at which they start, their leader.
pub(super) trait Blocks {
    /// Where the instructions of a block stand.
    fn insns(&self, leader: u32) -> Range<usize>;

    /// The leaders of the blocks before one.
    fn before(&self, leader: u32) -> Vec<(u32, Via)>;
}

/// The blocks that were asked for, numbered in that order.
#[derive(Default)]
pub(super) struct Ways(RefCell<Asked>);

#[derive(Default)]
struct Asked {
    blocks: Vec<Block>,
    numbers: FxHashMap<u32, u32>,
}

struct Block {
    leader: u32,
    insns: Range<usize>,
    /// Once asked for.
    before: Option<Rc<[(u32, Via)]>>,
}

impl Ways {
    /// To be called when there may be others.
    pub(super) fn clear(&mut self) {
        let Asked { blocks, numbers } = self.0.get_mut();
        blocks.clear();
        numbers.clear();
    }

    pub(super) fn number(&self, leader: u32, all: &dyn Blocks) -> usize {
        let Asked { blocks, numbers } = &mut *self.0.borrow_mut();
        let number = numbers.entry(leader).or_insert_with(|| {
            blocks.push(Block { leader, insns: all.insns(leader), before: None });
            blocks.len() as u32 - 1
        });
        *number as usize
    }

    pub(super) fn leader(&self, block: usize) -> u32 {
        self.0.borrow().blocks[block].leader
    }

    pub(super) fn insns(&self, block: usize) -> Range<usize> {
        self.0.borrow().blocks[block].insns.clone()
    }

    /// The blocks before one, if they were asked for.
    pub(super) fn known_before(&self, block: usize) -> Option<Rc<[(u32, Via)]>> {
        self.0.borrow().blocks[block].before.clone()
    }

    /// The blocks before one.
    pub(super) fn before(&self, block: usize, all: &dyn Blocks) -> Rc<[(u32, Via)]> {
        if let Some(known) = &self.0.borrow().blocks[block].before {
            return Rc::clone(known);
        }
        let leaders = all.before(self.leader(block));
        let before: Rc<[(u32, Via)]> =
            leaders.into_iter().map(|(leader, via)| (self.number(leader, all) as u32, via)).collect();
        self.0.borrow_mut().blocks[block].before = Some(Rc::clone(&before));
        before
    }
}
