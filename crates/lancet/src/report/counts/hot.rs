//! Loops and branches with their counts.

use lancet_engine::program::{BlockId, EdgeKind, ExitKind, Func, FuncId, LoopId, Program};
use lancet_isa::Svma;

use crate::tools::count::{Counted, Counts, Slot};

/// How often a loop ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopCount {
    pub func: FuncId,
    pub id: LoopId,
    pub header: Svma,
    pub depth: u32,
    pub irreducible: bool,
    /// How often control came in from outside of it.
    pub entered: u64,
    /// How often its header ran.
    pub trips: u64,
    /// Executed in it, nested loops included.
    pub instructions: u64,
}

impl LoopCount {
    /// None if it never ran, or if control can also enter it elsewhere than at its header.
    pub fn trips_per_entry(&self) -> Option<f64> {
        (self.entered > 0 && !self.irreducible).then(|| self.trips as f64 / self.entered as f64)
    }
}

/// The loops of a function, parents before children.
pub fn loops(counted: &Counted, func: FuncId) -> Vec<LoopCount> {
    let Some(counts) = counted.counts(func) else { return Vec::new() };
    let f = counted.program.func(func);
    if f.loops.is_empty() {
        return Vec::new();
    }
    let graph = f.graph();
    let of_loop = |(id, l): (LoopId, &lancet_engine::program::Loop)| {
        let edges = f.loops.entry_edges(&graph, id).map(|edge| counts.edges.get(edge.index as usize));
        let entries = f.entries.iter().zip(&counts.entries).filter(|(block, _)| f.loops.contains(id, block.0));
        let blocks = f.loops.blocks(id).iter().map(|node| counted.block_instructions(func, BlockId(*node)));
        LoopCount {
            func,
            id,
            header: f.block(BlockId(l.header)).start,
            depth: l.depth,
            irreducible: l.irreducible,
            entered: edges.flatten().sum::<u64>() + entries.map(|(_, count)| count).sum::<u64>(),
            trips: counts.of(Slot::Block(BlockId(l.header))),
            instructions: blocks.sum(),
        }
    };
    f.loops.iter().map(of_loop).collect()
}

/// How often a conditional branch went which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchCount {
    pub func: FuncId,
    pub block: BlockId,
    pub taken: u64,
    pub not_taken: u64,
}

impl BranchCount {
    pub fn runs(&self) -> u64 {
        self.taken.saturating_add(self.not_taken)
    }

    /// The branch itself.
    pub fn at(&self, program: &Program) -> Svma {
        let block = program.func(self.func).block(self.block);
        program.insns(block).last().map_or(block.start, |insn| insn.at)
    }

    /// How often it went the rarer way.
    pub fn rarer(&self) -> u64 {
        self.taken.min(self.not_taken)
    }

    /// The share of the more frequent way: from 0.5 to 1.
    pub fn bias(&self) -> f64 {
        1.0 - self.rarer() as f64 / self.runs().max(1) as f64
    }
}

/// The conditional branches of a function that ran, by address. Leaving the function is a way, too.
pub fn branches(counted: &Counted, func: FuncId) -> Vec<BranchCount> {
    let Some(counts) = counted.counts(func) else { return Vec::new() };
    let f = counted.program.func(func);
    let branch = |block: BlockId| {
        let (taken, not_taken) = ways(f, counts, block)?;
        Some(BranchCount { func, block, taken, not_taken }).filter(|branch| branch.runs() > 0)
    };
    f.block_ids().filter_map(branch).collect()
}

fn ways(func: &Func, counts: &Counts, block: BlockId) -> Option<(u64, u64)> {
    let first = func.block(block).first_edge() as usize;
    let edges = func.successors(block).iter().zip(counts.edges.get(first..)?);
    let of = |kind: EdgeKind| edges.clone().find(|(edge, _)| edge.kind == kind).map(|(_, count)| *count);
    let exits = func.exits.partition_point(|exit| exit.from < block);
    let mut exits =
        func.exits[exits..].iter().zip(counts.exits.get(exits..)?).take_while(|(exit, _)| exit.from == block);
    let exit = exits.find(|(exit, _)| matches!(exit.kind, ExitKind::TailCall(_))).map(|(_, count)| *count);
    Some((of(EdgeKind::Taken).or(exit)?, of(EdgeKind::Fall)?))
}
