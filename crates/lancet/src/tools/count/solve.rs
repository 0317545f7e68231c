//! All counts of a function from those of its counters.
//!
//! What flows into a node flows out of it. The links without a counter are a forest, so some node has only one of
//! them: a leaf, whose balance gives that link's count. Taking the link away makes the next leaf. Every link is looked
//! at a constant number of times, and no adjacency lists are needed: a node remembers how many unknown links it has and
//! the exclusive-or of their numbers, which is the number itself once one is left.
//!
//! When all links are known every node must balance. In each tree of the forest the last node's balance was not used
//! to compute anything, so this is a check; so is that no count but a leak's is negative.
//!
//! A thread that is stopped in the middle of a block (by a fatal signal, or by another thread's `exit`) has entered it
//! and not left. Every frame below is in a call, where a leak takes it; the topmost one the caller can name in
//! `stopped`, as qpt did with a back-trace. Unnamed, it shows as an imbalance of one, here or as a wrong count.

use std::fmt;

use lancet_engine::program::{BlockId, Func};
use lancet_isa::Svma;

use super::flow::{FlowGraph, Node, Role, Shape};
use super::{Counts, Placement, refill};

/// The counters of a function do not fit its control flow.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FlowError {
    #[error("function at {func}: {counters} counts for {slots} counters")]
    WrongNumber { func: Svma, slots: usize, counters: usize },
    #[error("function at {func}: counter {counter} does not belong to it")]
    Foreign { func: Svma, counter: usize },
    #[error("function at {func}: too few counters around the block at {block}")]
    Undetermined { func: Svma, block: Svma },
    #[error("function at {func}: {place} cannot have run {count} times")]
    Impossible { func: Svma, place: Place, count: i128 },
    #[error("function at {func}: {place} is entered {surplus} times more than left")]
    Unbalanced { func: Svma, place: Place, surplus: i128 },
}

/// Something in a function that has a count, by the addresses of its blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Outside,
    Block(Svma),
    Edge { from: Svma, to: Svma },
    Entry(Svma),
    Exit(Svma),
    Leak(Svma),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Outside => write!(f, "the world outside"),
            Place::Block(at) => write!(f, "the block at {at}"),
            Place::Edge { from, to } => write!(f, "the edge from the block at {from} to {to}"),
            Place::Entry(at) => write!(f, "the entry at {at}"),
            Place::Exit(from) => write!(f, "the exit from the block at {from}"),
            Place::Leak(from) => write!(f, "the way out of the middle of the block at {from}"),
        }
    }
}

/// What went wrong, by the numbers of the flow graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    WrongNumber,
    Foreign { counter: usize },
    Undetermined { node: Node },
    Impossible { link: usize, count: i128 },
    TooMany { node: Node, count: i128 },
    Unbalanced { node: Node, surplus: i128 },
}

/// Solves functions, one after the other.
#[derive(Clone, Default, Debug)]
pub struct Solver {
    flow: FlowGraph,
    /// By link. All sums fit: there are fewer than 2^33 links, each below 2^64 in counters.
    counts: Vec<i128>,
    nodes: Vec<NodeState>,
    /// Nodes that had one unknown link when they were put here.
    leaves: Vec<Node>,
    /// By link.
    known: Vec<bool>,
}

#[derive(Clone, Copy, Default, Debug)]
struct NodeState {
    /// How much more flows in than out, by the known links.
    surplus: i128,
    unknown: u32,
    /// The exclusive-or of the unknown links' numbers.
    links: u32,
}

impl Solver {
    /// `counters` are in the order of the placement. `stopped` names a block once for each thread that was stopped in
    /// the middle of it; it may be empty.
    pub fn solve(
        &mut self,
        func: &Func,
        placement: &Placement,
        counters: &[u64],
        stopped: &[BlockId],
    ) -> Result<Counts, FlowError> {
        let shape = Shape::of(func, &placement.open, &placement.joined);
        self.solve_shape(&shape, placement, counters, stopped)
            .map_err(|fault| self.explain(func, placement, counters, fault))
    }

    pub(super) fn solve_shape(
        &mut self,
        shape: &Shape<'_>,
        placement: &Placement,
        counters: &[u64],
        stopped: &[BlockId],
    ) -> Result<Counts, Fault> {
        let open = shape.tidy_open();
        self.flow.rebuild(&Shape { open: &open, ..*shape });
        self.set_known(placement, counters)?;
        for block in stopped.iter().filter(|block| (block.0 as usize) < shape.blocks) {
            // It went outside by a way of its own.
            self.nodes[block.0 as usize].surplus -= 1;
            self.nodes[self.flow.outside() as usize].surplus += 1;
        }
        self.find_unknown()?;
        self.peel();
        self.check()?;
        self.collect(open.len())
    }

    fn set_known(&mut self, placement: &Placement, counters: &[u64]) -> Result<(), Fault> {
        if placement.counters.len() != counters.len() {
            return Err(Fault::WrongNumber);
        }
        refill(&mut self.counts, self.flow.links().len(), 0);
        refill(&mut self.known, self.flow.links().len(), false);
        refill(&mut self.nodes, self.flow.nodes(), NodeState::default());
        for (counter, (slot, count)) in placement.counters.iter().zip(counters).enumerate() {
            let link = self.flow.link_of(*slot).ok_or(Fault::Foreign { counter })?;
            let ends = self.flow.links()[link];
            if ends.role == Role::Absent || std::mem::replace(&mut self.known[link], true) {
                return Err(Fault::Foreign { counter });
            }
            self.counts[link] = i128::from(*count);
            self.nodes[ends.from as usize].surplus -= i128::from(*count);
            self.nodes[ends.to as usize].surplus += i128::from(*count);
        }
        Ok(())
    }

    fn find_unknown(&mut self) -> Result<(), Fault> {
        for (i, link) in self.flow.links().iter().enumerate() {
            if self.known[i] || link.role == Role::Absent {
                continue;
            }
            if link.from == link.to {
                return Err(Fault::Undetermined { node: link.from });
            }
            for end in [link.from, link.to] {
                let node = &mut self.nodes[end as usize];
                node.unknown += 1;
                node.links ^= i as u32;
            }
        }
        Ok(())
    }

    fn peel(&mut self) {
        self.leaves.clear();
        let leaves = self.nodes.iter().enumerate().filter(|(_, node)| node.unknown == 1);
        self.leaves.extend(leaves.map(|(i, _)| i as Node));
        while let Some(leaf) = self.leaves.pop() {
            let NodeState { surplus, unknown: 1, links: link } = self.nodes[leaf as usize] else { continue };
            let ends = self.flow.links()[link as usize];
            let (count, other) = if ends.from == leaf { (surplus, ends.to) } else { (-surplus, ends.from) };
            self.counts[link as usize] = count;
            self.nodes[leaf as usize] = NodeState::default();
            let next = &mut self.nodes[other as usize];
            // What the leaf had too much of is the other node's now.
            next.surplus += surplus;
            next.unknown -= 1;
            next.links ^= link;
            if next.unknown == 1 {
                self.leaves.push(other);
            }
        }
    }

    fn check(&self) -> Result<(), Fault> {
        for (i, node) in self.nodes.iter().enumerate() {
            if node.unknown != 0 {
                return Err(Fault::Undetermined { node: i as Node });
            }
            if node.surplus != 0 {
                return Err(Fault::Unbalanced { node: i as Node, surplus: node.surplus });
            }
        }
        Ok(())
    }

    fn collect(&self, open: usize) -> Result<Counts, Fault> {
        let whole = |link: usize| {
            let count = self.counts[link];
            u64::try_from(count).map_err(|_| Fault::Impossible { link, count })
        };
        let signed = |link: usize| {
            let count = self.counts[link];
            i64::try_from(count).map_err(|_| Fault::Impossible { link, count })
        };
        let mut blocks = vec![0i128; self.flow.nodes()];
        for (link, count) in self.flow.links().iter().zip(&self.counts) {
            blocks[link.to as usize] += count;
        }
        blocks.pop();
        let blocks = (0..).zip(blocks).map(|(node, count)| {
            let whole = u64::try_from(count);
            whole.map_err(|_| Fault::TooMany { node, count })
        });
        Ok(Counts {
            edges: self.flow.edges().map(whole).collect::<Result<_, _>>()?,
            entries: self.flow.entries().map(whole).collect::<Result<_, _>>()?,
            exits: self.flow.exits().map(whole).collect::<Result<_, _>>()?,
            blocks: blocks.collect::<Result<_, _>>()?,
            calls_not_returned: self.flow.call_leaks().iter().map(|i| signed(*i as usize)).collect::<Result<_, _>>()?,
            ended_inside: self.flow.open_leaks(open).map(signed).collect::<Result<_, _>>()?,
        })
    }

    fn explain(&self, func: &Func, placement: &Placement, counters: &[u64], fault: Fault) -> FlowError {
        let block = |node: Node| func.blocks.get(node as usize).map(|block| block.start);
        let at = |node: Node| block(node).unwrap_or(func.entry);
        let node_place = |node: Node| block(node).map_or(Place::Outside, Place::Block);
        let entry = func.entry;
        match fault {
            Fault::WrongNumber => {
                FlowError::WrongNumber { func: entry, slots: placement.counters.len(), counters: counters.len() }
            }
            Fault::Foreign { counter } => FlowError::Foreign { func: entry, counter },
            Fault::Undetermined { node } => FlowError::Undetermined { func: entry, block: at(node) },
            Fault::TooMany { node, count } => FlowError::Impossible { func: entry, place: node_place(node), count },
            Fault::Unbalanced { node, surplus } => {
                FlowError::Unbalanced { func: entry, place: node_place(node), surplus }
            }
            Fault::Impossible { link, count } => {
                let ends = self.flow.links()[link];
                let place = match link {
                    _ if ends.role == Role::Leak => Place::Leak(at(ends.from)),
                    _ if self.flow.edges().contains(&link) => Place::Edge { from: at(ends.from), to: at(ends.to) },
                    _ if self.flow.entries().contains(&link) => Place::Entry(at(ends.to)),
                    _ => Place::Exit(at(ends.from)),
                };
                FlowError::Impossible { func: entry, place, count }
            }
        }
    }
}
