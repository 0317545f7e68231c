//! Counting every block and every edge.
//!
//! Every block has a counter, and so has every conditional branch, for where it is taken. The other edges follow: what
//! enters a block also leaves it, unless it vanishes in a call or comes from elsewhere. [`edges`] solves for one unknown
//! edge after the other; hardware loops, which have no branch to put a counter on, come out of it.

use std::collections::{BTreeMap, BTreeSet};

use lancet_engine::layout::inplace::Place;
use lancet_engine::program::{BlockId, EdgeKind, Func, Program};
use lancet_isa::Flow;

use super::Wanted;
use super::notes::{BlockNote, EdgeNote};

pub struct WantedBlock {
    pub at: u32,
    pub counter: u32,
    pub entered: bool,
    pub leaks: bool,
}

pub struct WantedEdge {
    pub from: u32,
    pub to: u32,
    pub kind: EdgeKind,
    /// The branch, and its counter.
    pub counter: Option<(u32, u32)>,
}

pub fn everything(program: &Program, wanted: &mut Wanted) {
    // Functions may share code: each block and edge is counted once.
    let mut blocks: BTreeMap<u32, (bool, bool)> = BTreeMap::new();
    let mut edges: BTreeMap<(u32, u32, EdgeKind), Option<u32>> = BTreeMap::new();
    for func in program.funcs() {
        let entries: BTreeSet<BlockId> = func.entries.iter().copied().collect();
        for id in func.block_ids() {
            let at = func.block(id).start.0 as u32;
            let (entered, leaks) = blocks.entry(at).or_default();
            *entered |= entries.contains(&id) || !func.is_complete();
            *leaks |= may_leak(program, func, id);
        }
        for edge in &func.edges {
            let (from, to) = (func.block(edge.from), func.block(edge.to).start.0 as u32);
            let branch = (edge.kind == EdgeKind::Taken)
                .then(|| program.insns(from).last().map(|insn| insn.at.0 as u32))
                .flatten();
            edges.insert((from.start.0 as u32, to, edge.kind), branch);
        }
    }
    for (at, (entered, leaks)) in blocks {
        let counter = wanted.count(Place::Before(at));
        wanted.blocks.push(WantedBlock { at, counter, entered, leaks });
    }
    for ((from, to, kind), branch) in edges {
        let counter = branch.map(|branch| (branch, wanted.count(Place::Taken(branch))));
        wanted.edges.push(WantedEdge { from, to, kind, counter });
    }
}

/// May control that enters the block not leave it over an edge?
fn may_leak(program: &Program, func: &Func, id: BlockId) -> bool {
    func.call_of(id).is_some()
        || func.exits_of(id).next().is_some()
        || program.insns(func.block(id)).iter().any(|insn| insn.flow == Flow::System)
}

/// The counts of all edges that are known, or follow from what is.
pub fn edges(blocks: &[BlockNote], notes: &[EdgeNote], count: impl Fn(u32) -> u64) -> Vec<Option<u64>> {
    let of_block: BTreeMap<u32, &BlockNote> = blocks.iter().map(|block| (block.at, block)).collect();
    let runs = |at: u32| of_block.get(&at).and_then(|block| block.counter).map(&count);
    let mut counts: Vec<Option<u64>> = notes.iter().map(|edge| edge.counter.map(&count)).collect();
    let (mut into, mut out_of): (BTreeMap<u32, Vec<usize>>, BTreeMap<u32, Vec<usize>>) = Default::default();
    for (i, edge) in notes.iter().enumerate() {
        into.entry(edge.to).or_default().push(i);
        out_of.entry(edge.from).or_default().push(i);
    }
    // Sides of blocks on which all control is seen: its edges add up to the block's count.
    let closed_into = into.iter().filter(|(at, _)| of_block.get(at).is_some_and(|block| !block.entered_from_elsewhere));
    let closed_out = out_of.iter().filter(|(at, _)| of_block.get(at).is_some_and(|block| !block.leaves_for_elsewhere));
    let sums: Vec<(u64, &Vec<usize>)> =
        closed_into.chain(closed_out).filter_map(|(at, edges)| Some((runs(*at)?, edges))).collect();
    loop {
        let mut progress = false;
        for (sum, edges) in &sums {
            let mut unknown = edges.iter().filter(|&&i| counts[i].is_none());
            if let (Some(&only), None) = (unknown.next(), unknown.next()) {
                let others = edges.iter().filter_map(|&i| counts[i]).fold(0, u64::saturating_add);
                counts[only] = Some(sum.saturating_sub(others));
                progress = true;
            }
        }
        if !progress {
            return counts;
        }
    }
}
