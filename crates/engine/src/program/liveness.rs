//! Which registers and flags hold a value that something may still read.
//!
//! Backward data flow over the blocks of one function. A block is summed up in one [`Effects`]; what may be read
//! after it comes from its successors and from a *boundary* set: what the world outside the function may read when
//! control leaves it there. A register set is one machine word, so a step is a few bit operations. Blocks wait in a
//! queue that starts in postorder. A block goes back into the queue only when the set of one of its successors has
//! grown, at most 64 times each, so the cost is bounded on any graph.
//!
//! The analysis errs to one side: what it calls dead is dead, provided that the effects and the boundaries say
//! too much rather than too little. Blocks that no entry reaches are solved like all others.

use std::collections::VecDeque;

use lancet_isa::{Effects, Facts, RegSet};

use super::dfs::Dfs;
use super::graph::{Graph, Node, reset};

/// How control may leave a function, and so what may be read behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// To the caller, by the calling convention.
    Return,
    /// To another function that takes this one's place, by the calling convention.
    TailCall,
    /// To a place that is not known, under rules that are not known.
    Unknown,
    /// Nowhere: the program ends here or traps.
    Never,
}

impl Exit {
    /// What may be read once control has left.
    pub fn live(self, facts: &Facts) -> RegSet {
        let kept = facts.abi.preserved | RegSet::of(facts.stack_pointer);
        match self {
            Exit::Return => facts.abi.results | kept,
            Exit::TailCall => facts.abi.arguments | kept,
            Exit::Unknown => RegSet::ALL,
            Exit::Never => RegSet::EMPTY,
        }
    }
}

/// What is live before something with these effects, given what is live after it.
pub fn before(effects: Effects, live_after: RegSet) -> RegSet {
    effects.reads | live_after.without(effects.kills)
}

/// The instructions of one block as one.
pub fn block_effects(insns: impl IntoIterator<Item = Effects>) -> Effects {
    insns.into_iter().fold(Effects::default(), Effects::then)
}

/// Steps backward through a block: for each instruction from the last to the first, what is live after it and
/// before it.
pub fn steps_back<I>(live_out: RegSet, insns: I) -> impl Iterator<Item = Step>
where
    I: IntoIterator<Item = Effects, IntoIter: DoubleEndedIterator>,
{
    insns.into_iter().rev().scan(live_out, |live, effects| {
        let after = *live;
        *live = before(effects, after);
        Some(Step { before: *live, after })
    })
}

/// What is live around one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    pub before: RegSet,
    pub after: RegSet,
}

#[derive(Clone, Default, Debug)]
pub struct Liveness {
    live_in: Vec<RegSet>,
    live_out: Vec<RegSet>,
    queue: VecDeque<Node>,
    queued: Vec<bool>,
}

impl Liveness {
    pub fn new(graph: &Graph, dfs: &Dfs, effects: &[Effects], boundary: &[RegSet]) -> Liveness {
        let mut liveness = Liveness::default();
        liveness.compute(graph, dfs, effects, boundary);
        liveness
    }

    /// `effects` and `boundary` are by node; `dfs` is a forward search of `graph`.
    ///
    /// # Panics
    /// If there are fewer effects or boundaries than nodes.
    pub fn compute(&mut self, graph: &Graph, dfs: &Dfs, effects: &[Effects], boundary: &[RegSet]) {
        let nodes = graph.nodes();
        reset(&mut self.live_in, nodes, RegSet::EMPTY);
        self.live_out.clear();
        self.live_out.extend_from_slice(&boundary[..nodes]);
        reset(&mut self.queued, nodes, true);
        self.queue.clear();
        self.queue.extend(dfs.postorder());
        self.queue.extend((0..nodes as Node).rev().filter(|&n| !dfs.reached(n)));

        while let Some(node) = self.queue.pop_front() {
            let n = node as usize;
            self.queued[n] = false;
            let out = graph.successors(node).iter().fold(self.live_out[n], |out, &s| out | self.live_in[s as usize]);
            self.live_out[n] = out;
            let live = before(effects[n], out);
            if live == self.live_in[n] {
                continue;
            }
            self.live_in[n] = live;
            for &p in graph.predecessors(node) {
                if !std::mem::replace(&mut self.queued[p as usize], true) {
                    self.queue.push_back(p);
                }
            }
        }
    }

    /// Live where the block begins.
    pub fn live_in(&self, node: Node) -> RegSet {
        self.live_in[node as usize]
    }

    /// Live behind the block's last instruction, on some way on.
    pub fn live_out(&self, node: Node) -> RegSet {
        self.live_out[node as usize]
    }

    /// All of [`Liveness::live_in`], by node.
    pub fn live_ins(&self) -> &[RegSet] {
        &self.live_in
    }

    /// All of [`Liveness::live_out`], by node.
    pub fn live_outs(&self) -> &[RegSet] {
        &self.live_out
    }
}
