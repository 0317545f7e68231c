//! The truth: control is walked through a function, and every step is counted.

use lancet_engine::program::{BlockId, ExitKind};

use super::made::Random;
use crate::tools::count::flow::Shape;
use crate::tools::count::{Counts, Placement};

/// What a walk did.
pub struct Truth {
    pub counts: Counts,
    /// Where it was stopped in the middle of a block.
    pub stopped: Vec<BlockId>,
}

impl Truth {
    pub fn counters(&self, placement: &Placement) -> Vec<u64> {
        placement.counters.iter().map(|slot| self.counts.of(*slot)).collect()
    }

    /// Are these the counts, as far as they can be known: exactly, or within one for each time that it was stopped?
    pub fn is_told_by(&self, told: &Counts) -> bool {
        let threads = self.stopped.len() as u64;
        let near = |a: &[u64], b: &[u64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.abs_diff(*b) <= threads);
        let near_signed =
            |a: &[i64], b: &[i64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.abs_diff(*b) <= threads);
        let truth = &self.counts;
        let stopped: u64 = told.stopped.iter().map(|(_, threads)| threads).sum();
        near(&truth.blocks, &told.blocks)
            && near(&truth.edges, &told.edges)
            && near(&truth.entries, &told.entries)
            && near(&truth.exits, &told.exits)
            && near_signed(&truth.calls_not_returned, &told.calls_not_returned)
            && near_signed(&truth.ended_inside, &told.ended_inside)
            && stopped <= threads
    }
}

/// In per cent of the visits of a call or of an open block, or of all blocks.
#[derive(Clone, Copy)]
pub struct Habits {
    pub vanishes: usize,
    pub throws: usize,
    pub returns_twice: usize,
    pub is_stopped: usize,
}

#[derive(Clone, Copy)]
enum Way {
    Edge(usize),
    Exit(usize),
}

/// By index in the shape.
#[derive(Clone, Copy)]
enum Leak {
    Call(usize),
    Open(usize),
}

#[derive(Clone, Default)]
struct Block {
    ways: Vec<Way>,
    leak: Option<Leak>,
    never_returns: Option<usize>,
}

struct Walker<'a> {
    shape: Shape<'a>,
    blocks: Vec<Block>,
    truth: Truth,
    /// Blocks inside which control has yet to come back a second time.
    second: Vec<usize>,
}

/// Enters the function `visits` times and takes at most `steps` steps each time. `shape.open` must be tidy.
pub fn walk(shape: Shape<'_>, r: &mut Random, habits: Habits, visits: usize, steps: usize) -> Truth {
    let mut blocks = vec![Block::default(); shape.blocks];
    for (i, edge) in shape.edges.iter().enumerate() {
        blocks[edge.from.0 as usize].ways.push(Way::Edge(i));
    }
    for (i, exit) in shape.exits.iter().enumerate() {
        let block = &mut blocks[exit.from.0 as usize];
        match exit.kind {
            ExitKind::NoReturn => block.never_returns = Some(i),
            _ => block.ways.push(Way::Exit(i)),
        }
    }
    for (i, open) in shape.open.iter().enumerate() {
        blocks[open.0 as usize].leak = Some(Leak::Open(i));
    }
    for (i, call) in shape.calls.iter().enumerate() {
        blocks[call.block.0 as usize].leak = Some(Leak::Call(i));
    }
    let counts = Counts {
        cuts: Vec::new(),
        blocks: vec![0; shape.blocks],
        edges: vec![0; shape.edges.len()],
        entries: vec![0; shape.entries.len()],
        exits: vec![0; shape.exits.len()],
        calls_not_returned: vec![0; shape.calls.len()],
        ended_inside: vec![0; shape.open.len()],
        stopped: Vec::new(),
    };
    let mut walker = Walker { shape, blocks, truth: Truth { counts, stopped: Vec::new() }, second: Vec::new() };
    for _ in 0..visits {
        let entry = if r.chance(90) { 0 } else { r.below(shape.entries.len()) };
        let block = walker.enter(entry);
        let mut left = steps;
        walker.run(block, r, habits, &mut left);
        while let Some(block) = walker.second.pop() {
            if let Some(next) = walker.leave(block, r) {
                walker.run(next, r, habits, &mut left);
            }
        }
    }
    walker.truth
}

impl Walker<'_> {
    /// Counts where the block is first named as an entry.
    fn enter(&mut self, entry: usize) -> usize {
        let block = self.shape.entries[entry];
        let first = self.shape.entries.iter().position(|other| *other == block).unwrap_or(entry);
        self.truth.counts.entries[first] += 1;
        block.0 as usize
    }

    fn run(&mut self, mut block: usize, r: &mut Random, habits: Habits, left: &mut usize) {
        loop {
            self.truth.counts.blocks[block] += 1;
            if *left == 0 || r.chance(habits.is_stopped) {
                self.truth.stopped.push(BlockId(block as u32));
                return;
            }
            *left -= 1;
            if let Some(next) = self.call(block, r, habits) {
                match next {
                    Some(next) => block = next,
                    None => return,
                }
                continue;
            }
            match self.leave(block, r) {
                Some(next) => block = next,
                None => return,
            }
        }
    }

    /// What happens inside: nothing of note, or control goes on elsewhere or nowhere.
    fn call(&mut self, block: usize, r: &mut Random, habits: Habits) -> Option<Option<usize>> {
        let counts = &mut self.truth.counts;
        let leak = match self.blocks[block].leak? {
            Leak::Call(i) => &mut counts.calls_not_returned[i],
            Leak::Open(i) => &mut counts.ended_inside[i],
        };
        match self.blocks[block].never_returns {
            Some(exit) => counts.exits[exit] += 1,
            None if r.chance(habits.returns_twice) => {
                *leak -= 1;
                self.second.push(block);
                return None;
            }
            None if r.chance(habits.vanishes) => {}
            None => return None,
        }
        *leak += 1;
        let caught = self.shape.entries.len() > 1 && r.chance(habits.throws);
        Some(caught.then(|| self.enter(1 + r.below(self.shape.entries.len() - 1))))
    }

    /// Out of the end of a block, if there is a way.
    fn leave(&mut self, block: usize, r: &mut Random) -> Option<usize> {
        let ways = &self.blocks[block].ways;
        if ways.is_empty() {
            self.truth.stopped.push(BlockId(block as u32));
            return None;
        }
        match ways[r.below(ways.len())] {
            Way::Edge(i) => {
                self.truth.counts.edges[i] += 1;
                Some(self.shape.edges[i].to.0 as usize)
            }
            Way::Exit(i) => {
                self.truth.counts.exits[i] += 1;
                None
            }
        }
    }
}
