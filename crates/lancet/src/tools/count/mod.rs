//! Counting every edge of a function with as few increments as possible.
//!
//! A counter on every block is simple and slow. Control that enters a block also leaves it (Kirchhoff), so most
//! counts follow from others. Ball and Larus ("Optimally profiling and tracing programs", TOPLAS 1994; used by qp
//! and qpt) choose the counted edges well: estimate how often each edge runs, keep the heaviest spanning tree free of
//! counters, and count the other edges. The tree has no cycle, so its counts follow from the rest, leaf by leaf.
//!
//! ```text
//! Func ──> Weights ──> Placement ──> (the program runs) ──> counters ──> Counts
//!          weights.rs  place.rs                                          solve.rs
//! ```
//!
//! On request, loops get by with less than that (`loops.rs`).
//!
//! All three see the function as one circulation (`flow.rs`): its blocks, the world *outside* of it, and between them
//! the edges, entries and exits. Control that vanishes in a callee (`exit`, `longjmp`, an exception) or comes back
//! twice (`setjmp`, `fork`) is flow through a *leak*, a fake edge from the call to the outside. Leaks cannot carry a
//! counter, so they are always on the tree; only they may come out negative.
//!
//! Each step has a type that holds its scratch memory ([`Estimator`], [`Placer`], [`Solver`]): a program has a hundred
//! thousand functions, and one such value per thread serves them all. The results do not depend on what it was used
//! for before.

mod callers;
mod cost;
mod counted;
mod cuts;
pub mod file;
mod flow;
mod instrument;
mod loops;
mod notes;
mod place;
mod solve;
mod weights;

#[cfg(test)]
mod tests;

use lancet_engine::program::{BlockId, EdgeId, Func};

pub use cost::Cost;
pub use counted::Counted;
pub use cuts::{Cut, may_handle_signals};
pub use file::{CountsError, CountsFile};
pub use instrument::{CountPlan, instrument, noted_plan};
pub use loops::Rounds;
pub use notes::{Manner, NotedFunc, Notes, Original};
pub use place::Placer;
pub use solve::{FlowError, Place, Solver};
pub use weights::{Estimator, Weights};

/// What a counter counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Slot {
    /// Where every block is counted ([`Placement::every_block`]), and where its count is [`Derived`].
    Block(BlockId),
    Edge(EdgeId),
    /// Control comes in from elsewhere at this one of [`Func::entries`]; edges to the same block are not meant.
    Entry(u32),
    /// Control leaves through this one of [`Func::exits`].
    Exit(u32),
}

/// Where the counters of a function are.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Placement {
    /// By counter.
    pub counters: Vec<Slot>,
    /// Blocks without a call inside which control may end or begin all the same: those with a system call, which may
    /// be `exit`, `execve` or `clone`. In order.
    pub open: Vec<BlockId>,
    /// Edges through jump tables that several jumps share: each has a counter, and none can be inferred from it being
    /// the only way to its target. In order.
    pub joined: Vec<EdgeId>,
    /// Blocks whose counters follow from registers: see [`loops`]. In order.
    pub derived: Vec<Derived>,
}

/// The counter of a block counts `by` for each run, modulo 2^64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Derived {
    pub block: BlockId,
    /// Not 0.
    pub by: i64,
}

impl Placement {
    /// How many numbers it needs: its counters and, for joined edges, a note of which jump was taken.
    pub fn numbers(&self) -> u32 {
        self.counters.len() as u32 + u32::from(!self.joined.is_empty())
    }

    /// A counter on every block. It says nothing of edges, so there is nothing to solve: the counters are the counts
    /// of the blocks. For comparison.
    pub fn every_block(func: &Func) -> Placement {
        Placement { counters: func.block_ids().map(Slot::Block).collect(), ..Placement::default() }
    }

    /// A counter on everything that can carry one. For comparison: [`Solver::solve`] then only checks.
    pub fn every_edge(func: &Func, open: &[BlockId]) -> Placement {
        place::every_edge(&flow::Shape::of(func, open, &[], &[]))
    }
}

/// How often everything in a function ran.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// How often control entered the block.
    pub blocks: Vec<u64>,
    pub edges: Vec<u64>,
    /// By index in [`Func::entries`]. Where that names a block twice, the first has the count.
    pub entries: Vec<u64>,
    pub exits: Vec<u64>,
    /// By index in [`Func::calls`]: how often the call did not come back. Negative if it came back more often than
    /// it was made.
    pub calls_not_returned: Vec<i64>,
    /// By index in [`Placement::open`]: how often control ended inside the block. Negative if it began there.
    pub ended_inside: Vec<i64>,
    /// Where control is known to have been taken away in the middle of a block, for good.
    pub cuts: Vec<Cut>,
    /// Where control seems to have ended in the middle of a block, and how often: by a fatal signal, the end of the
    /// process, or a signal's handler that jumps elsewhere. A count may differ from the truth by that number in all, or
    /// by the rounds of a loop that were not yet in memory ([`Rounds`]).
    pub stopped: Vec<(BlockId, u64)>,
}

impl Counts {
    /// How often this instruction of a block ran, by its place in the block.
    pub fn runs(&self, block: BlockId, insn: u32) -> u64 {
        let cuts = self.cuts.iter().filter(|cut| cut.block == block && cut.ran <= insn);
        let entered = self.blocks.get(block.0 as usize).copied().unwrap_or(0);
        entered.saturating_add_signed(-cuts.map(|cut| cut.times).sum::<i64>())
    }

    /// How often the call at the end of a block was made.
    pub fn calls_in(&self, func: &Func, block: BlockId) -> u64 {
        self.runs(block, func.block(block).insns.saturating_sub(1))
    }

    /// 0 for what the function does not have.
    pub fn of(&self, slot: Slot) -> u64 {
        let (counts, i) = match slot {
            Slot::Block(id) => (&self.blocks, id.0),
            Slot::Edge(id) => (&self.edges, id.0),
            Slot::Entry(i) => (&self.entries, i),
            Slot::Exit(i) => (&self.exits, i),
        };
        counts.get(i as usize).copied().unwrap_or(0)
    }
}

/// [`Placer::place`] for a single function.
pub fn place(func: &Func, weights: &Weights, open: &[BlockId]) -> Placement {
    Placer::default().place(func, weights, open, &[], &[])
}

/// [`Solver::solve`] for a single function.
pub fn solve(func: &Func, placement: &Placement, counters: &[u64]) -> Result<Counts, FlowError> {
    Solver::default().solve(func, placement, counters)
}

/// Makes `vec` hold exactly `len` times `value`, in the memory it has.
fn refill<T: Clone>(vec: &mut Vec<T>, len: usize, value: T) {
    vec.clear();
    vec.resize(len, value);
}
