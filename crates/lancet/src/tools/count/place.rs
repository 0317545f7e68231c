//! Which links carry counters: those that a maximum spanning tree leaves over.
//!
//! Kruskal's algorithm on the flow graph: all leaks first, since nothing can count them, then the other
//! links by descending weight, each if it joins two trees. Links that must be counted are never tried. Among equal
//! weights those are preferred for the tree where a counter would be most trouble: critical links, because it needs a
//! block of its own there, and among them taken branches, because that block needs a jump back. What the jump costs can
//! also be told to the [`Placer`], which then trades increments for jumps.
//!
//! If the graph without the links that must be counted is connected, `links - nodes + 1` counters are left. If not (a
//! landing pad from which control only goes round in circles), the tree is a forest, with one counter more for each
//! further tree; the flow then is determined just as well.

use lancet_engine::program::{BlockId, EdgeId, EdgeKind, Func};

use super::flow::{Degrees, FlowGraph, Link, Node, Role, Shape};
use super::{Derived, Placement, Slot, Weights, refill};

/// Places counters, one function after the other.
#[derive(Clone, Default, Debug)]
pub struct Placer {
    flow: FlowGraph,
    degrees: Degrees,
    candidates: Vec<Candidate>,
    trees: Trees,
    /// By link.
    on_tree: Vec<bool>,
    /// What a jump costs, where an increment costs 1.
    jump_price: f64,
}

/// A link that may be on the tree, as one number that sorts fast. The smallest are tried first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Candidate(u128);

impl Candidate {
    fn new(weight: f64, ease: Ease, link: usize) -> Candidate {
        // The bits of numbers that are not negative are in the order of the numbers; the heaviest is to be first.
        Candidate(u128::from(!weight.to_bits()) << 64 | (ease as u128) << 32 | link as u128)
    }

    fn link(self) -> usize {
        self.0 as u32 as usize
    }
}

/// How easily a counter is put on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ease {
    /// In a new block, with a jump back.
    NewBlockAside,
    /// In a new block that control falls through.
    NewBlock,
    /// In a block that is there.
    InBlock,
}

impl Placer {
    /// A placer that minimizes increments plus `jump_price` times the jumps that increments in blocks of their own
    /// need. The default is 0: as few increments as possible.
    pub fn with_jump_price(jump_price: f64) -> Placer {
        Placer { jump_price: jump_price.max(0.0), ..Placer::default() }
    }

    /// Chooses where to count. `open` are the blocks with a system call, if control may end or begin inside of them
    /// (see [`Placement::open`]); they are in no particular order. `joined` edges are always counted, and so are `derived`
    /// blocks.
    pub fn place(
        &mut self,
        func: &Func,
        weights: &Weights,
        open: &[BlockId],
        joined: &[EdgeId],
        derived: &[Derived],
    ) -> Placement {
        self.place_shape(&Shape::of(func, open, joined, derived), weights)
    }

    pub(super) fn place_shape(&mut self, shape: &Shape<'_>, weights: &Weights) -> Placement {
        let open = shape.tidy_open();
        let shape = Shape { open: &open, ..*shape };
        self.flow.rebuild(&shape);
        self.degrees.count(&self.flow);
        self.grow_tree(&shape, weights);
        let (joined, derived) = (shape.joined.to_vec(), shape.derived.to_vec());
        Placement { counters: self.off_tree(), open, joined, derived }
    }

    fn grow_tree(&mut self, shape: &Shape<'_>, weights: &Weights) {
        let links = self.flow.links();
        self.trees.reset(self.flow.nodes());
        refill(&mut self.on_tree, links.len(), false);
        self.candidates.clear();
        for (i, link) in links.iter().enumerate() {
            match link.role {
                Role::Leak => self.on_tree[i] = self.trees.join(link.from, link.to),
                Role::Free => {
                    let weight = self.flow.slot(i).map_or(0.0, |slot| weights.of(slot));
                    let ease = self.ease(shape, i, link);
                    let price = if ease == Ease::NewBlockAside { 1.0 + self.jump_price } else { 1.0 };
                    self.candidates.push(Candidate::new(weight * price, ease, i));
                }
                Role::Counted | Role::Absent => {}
            }
        }
        self.candidates.sort_unstable();
        for candidate in &self.candidates {
            let i = candidate.link();
            self.on_tree[i] = self.trees.join(links[i].from, links[i].to);
        }
    }

    fn ease(&self, shape: &Shape<'_>, i: usize, link: &Link) -> Ease {
        if !self.degrees.is_critical(link) {
            Ease::InBlock
        } else if shape.edges.get(i).is_some_and(|edge| edge.kind == EdgeKind::Fall) {
            Ease::NewBlock
        } else {
            Ease::NewBlockAside
        }
    }

    fn off_tree(&self) -> Vec<Slot> {
        let links = self.flow.links().iter().zip(&self.on_tree).enumerate();
        let counted = links.filter(|(_, (link, on_tree))| !**on_tree && link.role != Role::Absent);
        counted.filter_map(|(i, _)| self.flow.slot(i)).collect()
    }
}

pub(super) fn every_edge(shape: &Shape<'_>) -> Placement {
    let open = shape.tidy_open();
    let mut flow = FlowGraph::default();
    flow.rebuild(&Shape { open: &open, ..*shape });
    let countable = flow.links().iter().enumerate().filter(|(_, link)| matches!(link.role, Role::Free | Role::Counted));
    Placement {
        counters: countable.filter_map(|(i, _)| flow.slot(i)).collect(),
        open,
        joined: shape.joined.to_vec(),
        derived: shape.derived.to_vec(),
    }
}

/// Disjoint sets of nodes, each a tree so far.
#[derive(Clone, Default, Debug)]
struct Trees {
    /// Towards the set's representative, which stands for itself.
    parent: Vec<Node>,
    /// Of representatives.
    size: Vec<u32>,
}

impl Trees {
    fn reset(&mut self, nodes: usize) {
        self.parent.clear();
        self.parent.extend(0..nodes as Node);
        refill(&mut self.size, nodes, 1);
    }

    fn find(&mut self, mut node: Node) -> Node {
        while self.parent[node as usize] != node {
            let above = self.parent[self.parent[node as usize] as usize];
            self.parent[node as usize] = above;
            node = above;
        }
        node
    }

    /// False if they were in one tree before.
    fn join(&mut self, a: Node, b: Node) -> bool {
        let (mut a, mut b) = (self.find(a), self.find(b));
        if a == b {
            return false;
        }
        if self.size[a as usize] < self.size[b as usize] {
            std::mem::swap(&mut a, &mut b);
        }
        self.parent[b as usize] = a;
        self.size[a as usize] += self.size[b as usize];
        true
    }
}
