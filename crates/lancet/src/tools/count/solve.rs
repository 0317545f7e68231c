//! All counts of a function from those of its counters.
//!
//! What flows into a node flows out of it. The links without a counter are a forest, so some node has only one of
//! them: a leaf, whose balance gives that link's count. Taking the link away makes the next leaf. Every link is looked
//! at a constant number of times, and no adjacency lists are needed: a node remembers how many unknown links it has and
//! the exclusive-or of their numbers, which is the number itself once one is left.
//!
//! A thread that is stopped in the middle of a block (by a fatal signal, by another thread's `exit`, or by a signal's
//! handler that jumps elsewhere) has entered it and not left. Every frame below is in a call, where a leak takes it; of the topmost one nothing tells where it was.
//! It shows where more flows into a part of the tree than out of it, although the one link between that part and the
//! rest leads inwards, and so would have to run backwards. Then it was stopped in that part, and the block behind the
//! link takes it. That is the least that explains the counters: the world outside is the root of the tree and its leaves
//! are taken off first, so whatever really happened stopped at least as many threads in each part. A count can
//! therefore differ from the truth by the number of such ends at most, and without any it is exact. Where it is known that
//! control was taken away ([`Cut`]), that is taken into account beforehand.
//!
//! What is left is checked: no link but a leak may run backwards, and no node may be left more often than entered.

use std::fmt;

use lancet_engine::program::{BlockId, Func};
use lancet_isa::Svma;

use super::flow::{FlowGraph, Node, Role, Shape};
use super::{Counts, Cut, Placement, Slot, refill};

/// The counters of a function do not fit its control flow.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FlowError {
    #[error("function at {func}: {counters} counts for {slots} counters")]
    WrongNumber { func: Svma, slots: usize, counters: usize },
    #[error("function at {func}: counter {counter} does not belong to it")]
    Foreign { func: Svma, counter: usize },
    #[error("function at {func}: counter {counter} is no multiple of its loop's step")]
    Uneven { func: Svma, counter: usize },
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

/// The runs of a derived block by its counter.
fn runs(placement: &Placement, block: BlockId, counter: u64) -> Option<i128> {
    let derived = placement.derived.iter().find(|derived| derived.block == block)?;
    let (sum, by) = (counter as i64, derived.by);
    (by != 0 && sum.checked_rem(by) == Some(0)).then(|| i128::from(sum) / i128::from(by))
}

/// What went wrong, by the numbers of the flow graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    WrongNumber,
    Foreign { counter: usize },
    Uneven { counter: usize },
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
    /// Where control ended in the middle of a block, and how often.
    stopped: Vec<(BlockId, u64)>,
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
    /// `counters` are in the order of the placement.
    pub fn solve(&mut self, func: &Func, placement: &Placement, counters: &[u64]) -> Result<Counts, FlowError> {
        self.solve_cut(func, placement, counters, &[])
    }

    /// The same where it is known of some threads that they were stopped.
    pub fn solve_cut(
        &mut self,
        func: &Func,
        placement: &Placement,
        counters: &[u64],
        cuts: &[Cut],
    ) -> Result<Counts, FlowError> {
        let shape = Shape::of(func, &placement.open, &placement.joined, &placement.derived);
        let mut counters = counters.to_vec();
        for cut in cuts {
            if let Some((i, by)) = cut.missing
                && let Some(counter) = counters.get_mut(i as usize)
            {
                *counter = counter.wrapping_add_signed(by.wrapping_mul(cut.times));
            }
        }
        let counters = &counters[..];
        self.solve_shape(&shape, placement, counters, cuts)
            .map_err(|fault| self.explain(func, placement, counters, fault))
    }

    pub(super) fn solve_shape(
        &mut self,
        shape: &Shape<'_>,
        placement: &Placement,
        counters: &[u64],
        cuts: &[Cut],
    ) -> Result<Counts, Fault> {
        let open = shape.tidy_open();
        self.flow.rebuild(&Shape { open: &open, ..*shape });
        self.set_known(placement, counters)?;
        for cut in cuts.iter().filter(|cut| (cut.block.0 as usize) < self.flow.blocks()) {
            self.nodes[self.flow.out_of(cut.block) as usize].surplus -= i128::from(cut.times);
            self.nodes[self.flow.outside() as usize].surplus += i128::from(cut.times);
        }
        self.find_unknown()?;
        self.peel()?;
        self.check()?;
        let counts = self.collect(open.len())?;
        Ok(Counts { cuts: cuts.to_vec(), ..counts })
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
            let count = match *slot {
                Slot::Block(block) => runs(placement, block, *count).ok_or(Fault::Uneven { counter })?,
                _ => i128::from(*count),
            };
            self.counts[link] = count;
            self.nodes[ends.from as usize].surplus -= count;
            self.nodes[ends.to as usize].surplus += count;
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

    fn peel(&mut self) -> Result<(), Fault> {
        let outside = self.flow.outside();
        self.stopped.clear();
        self.leaves.clear();
        let leaves = self.flow.inner_nodes().filter(|node| self.nodes[*node as usize].unknown == 1);
        self.leaves.extend(leaves);
        while let Some(leaf) = self.leaves.pop() {
            let NodeState { unknown: 1, links: link, .. } = self.nodes[leaf as usize] else { continue };
            let ends = self.flow.links()[link as usize];
            if ends.to == leaf {
                self.stop_surplus(leaf)?;
            }
            let surplus = std::mem::take(&mut self.nodes[leaf as usize]).surplus;
            let (count, other) = if ends.from == leaf { (surplus, ends.to) } else { (-surplus, ends.from) };
            self.counts[link as usize] = count;
            let next = &mut self.nodes[other as usize];
            // What the leaf had too much of is the other node's now.
            next.surplus += surplus;
            next.unknown -= 1;
            next.links ^= link;
            if next.unknown == 1 && other != outside {
                self.leaves.push(other);
            }
        }
        Ok(())
    }

    /// What came to a node and cannot leave it was stopped there, and went outside by a way of its own.
    fn stop_surplus(&mut self, node: Node) -> Result<(), Fault> {
        let surplus = self.nodes[node as usize].surplus;
        if surplus > 0 {
            let times = u64::try_from(surplus).map_err(|_| Fault::Unbalanced { node, surplus })?;
            self.stopped.extend(self.flow.block_of(node).map(|block| (block, times)));
            self.nodes[node as usize].surplus = 0;
            self.nodes[self.flow.outside() as usize].surplus += surplus;
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), Fault> {
        let mut nodes = 0..self.flow.nodes() as Node;
        if let Some(node) = nodes.clone().find(|node| self.nodes[*node as usize].unknown != 0) {
            return Err(Fault::Undetermined { node });
        }
        for node in self.flow.inner_nodes() {
            self.stop_surplus(node)?;
        }
        match nodes.find(|node| self.nodes[*node as usize].surplus != 0) {
            Some(node) => Err(Fault::Unbalanced { node, surplus: self.nodes[node as usize].surplus }),
            None => Ok(()),
        }
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
        blocks.truncate(self.flow.blocks());
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
            stopped: self.stopped.clone(),
            cuts: Vec::new(),
        })
    }

    fn explain(&self, func: &Func, placement: &Placement, counters: &[u64], fault: Fault) -> FlowError {
        let block = |node: Node| func.blocks.get(self.flow.block_of(node)?.0 as usize).map(|block| block.start);
        let at = |node: Node| block(node).unwrap_or(func.entry);
        let node_place = |node: Node| block(node).map_or(Place::Outside, Place::Block);
        let entry = func.entry;
        match fault {
            Fault::WrongNumber => {
                FlowError::WrongNumber { func: entry, slots: placement.counters.len(), counters: counters.len() }
            }
            Fault::Uneven { counter } => FlowError::Uneven { func: entry, counter },
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
