//! How often each edge is expected to run.
//!
//! From an earlier profile, or estimated from the structure of the function alone, in one walk from its entry
//! downwards:
//!
//! - a loop that is entered `N` times runs its header `10 N` times, and its exits share the `N`;
//! - what stays at a branch is split evenly;
//! - ways that can only end in a trap or in a call that never returns are cold, as are the entries other than the
//!   first (landing pads).
//!
//! Only the order of the weights matters for the tree. Estimates are rounded to 20 bits of mantissa, so that sums that
//! should be equal are, and kept within 10^±150, so that neither deep nesting nor a long chain of branches leaves the
//! range of `f64`. Its arithmetic is the same on every machine.

use lancet_engine::program::dfs::Dfs;
use lancet_engine::program::graph::{Edge, Graph};
use lancet_engine::program::loops::{LoopForest, LoopId};
use lancet_engine::program::{ExitKind, Func};

use super::flow::{Node, Shape};
use super::{Counts, Slot, refill};

const TRIPS: f64 = 10.0;
/// The share of a block's runs that a cold way out gets, and the weight of a cold entry.
const COLD: f64 = 1.0 / 1024.0;
const LEAST: f64 = 1e-150;
const MOST: f64 = 1e150;
/// How far outwards the loops that an edge leaves are looked for. Real code does not nest so deep, and made-up code
/// must not cost quadratic time.
const NESTING: usize = 32;
const NONE: u32 = u32::MAX;

/// The weights of one function. Never negative, never NaN.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Weights {
    pub(super) edges: Vec<f64>,
    pub(super) entries: Vec<f64>,
    pub(super) exits: Vec<f64>,
}

impl Weights {
    /// From an earlier profile of the same function. `estimate` decides between ways that ran equally often, as in
    /// parts that did not run at all.
    pub fn from_profile(profile: &Counts, estimate: &Weights) -> Weights {
        let join = |counts: &[u64], estimates: &[f64]| {
            // At most half a run, and in the order of the estimates.
            let both = counts.iter().zip(estimates);
            both.map(|(count, estimate)| *count as f64 + 0.5 * estimate / (1.0 + estimate)).collect()
        };
        Weights {
            edges: join(&profile.edges, &estimate.edges),
            entries: join(&profile.entries, &estimate.entries),
            exits: join(&profile.exits, &estimate.exits),
        }
    }

    /// 0 for what the function does not have, and for blocks.
    pub fn of(&self, slot: Slot) -> f64 {
        let (weights, i) = match slot {
            Slot::Block(_) => return 0.0,
            Slot::Edge(id) => (&self.edges, id.0),
            Slot::Entry(i) => (&self.entries, i),
            Slot::Exit(i) => (&self.exits, i),
        };
        weights.get(i as usize).copied().unwrap_or(0.0)
    }
}

/// Estimates weights, one function after the other.
#[derive(Clone, Default, Debug)]
pub struct Estimator {
    weights: Weights,
    pairs: Vec<(Node, Node)>,
    roots: Vec<Node>,
    /// Blocks and outside, with edges and, numbered after them, exits.
    graph: Graph,
    dfs: Dfs,
    /// By node: its place in reverse postorder.
    place: Vec<u32>,
    /// By node: it can only end in a trap or a call that never returns.
    cold: Vec<bool>,
    /// By node.
    runs: Vec<f64>,
    /// By edge and exit: the outermost loop that it leaves, or `NONE`.
    leaves: Vec<u32>,
    /// By loop.
    loops: Vec<LoopRuns>,
    /// By way out of the block at hand.
    shares: Vec<Share>,
}

#[derive(Clone, Copy, Default, Debug)]
struct LoopRuns {
    entered: f64,
    /// How many ways, cold ones aside, have this as the outermost loop that they leave.
    ways_out: u32,
}

/// What a way out of a block gets of the block's runs.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Share {
    Cold,
    /// It leaves a loop, so seldom.
    Leaves(f64),
    /// It shares evenly with its like what the others leave over.
    Even,
}

impl Estimator {
    pub fn estimate(&mut self, func: &Func) -> &Weights {
        self.estimate_shape(&Shape::of(func, &[], &[], &[]), &func.loops)
    }

    pub(super) fn estimate_shape(&mut self, shape: &Shape<'_>, loops: &LoopForest) -> &Weights {
        self.search(shape);
        self.find_cold(shape);
        self.find_leaving(shape, loops);
        self.spread(shape, loops);
        &self.weights
    }

    fn search(&mut self, shape: &Shape<'_>) {
        let outside = shape.blocks as Node;
        self.pairs.clear();
        self.pairs.extend(shape.edges.iter().map(|edge| (edge.from.0, edge.to.0)));
        self.pairs.extend(shape.exits.iter().map(|exit| (exit.from.0, outside)));
        self.graph.rebuild(shape.blocks + 1, &self.pairs);
        self.roots.clear();
        self.roots.extend(shape.entries.iter().map(|id| id.0));
        self.dfs.compute(self.graph.forward(), &self.roots);
        refill(&mut self.place, shape.blocks + 1, 0);
        for (node, place) in self.dfs.reverse_postorder().zip(1..) {
            self.place[node as usize] = place;
        }
    }

    /// Does the link go back to where the search came from? Without such links there are no cycles.
    fn goes_back(&self, from: Node, to: Node) -> bool {
        self.place[to as usize] <= self.place[from as usize]
    }

    fn find_cold(&mut self, shape: &Shape<'_>) {
        refill(&mut self.cold, shape.blocks + 1, false);
        for &node in self.dfs.postorder() {
            let mut ways = self.graph.out_edges(node).peekable();
            self.cold[node as usize] =
                ways.peek().is_some() && ways.all(|way| self.is_cold(shape, node, way.to, way.index as usize));
        }
    }

    fn is_cold(&self, shape: &Shape<'_>, from: Node, to: Node, link: usize) -> bool {
        match link.checked_sub(shape.edges.len()) {
            None => self.cold[to as usize] && !self.goes_back(from, to),
            Some(exit) => matches!(shape.exits[exit].kind, ExitKind::NoReturn | ExitKind::Stop | ExitKind::Bad(_)),
        }
    }

    fn find_leaving(&mut self, shape: &Shape<'_>, loops: &LoopForest) {
        refill(&mut self.loops, loops.len(), LoopRuns::default());
        refill(&mut self.leaves, self.pairs.len(), NONE);
        if loops.is_empty() {
            return;
        }
        for (link, &(from, to)) in self.pairs.iter().enumerate() {
            if let Some(left) = outermost_left(loops, from, to, shape.blocks as Node) {
                self.leaves[link] = left.0;
                if !self.is_cold(shape, from, to, link) {
                    self.loops[left.0 as usize].ways_out += 1;
                }
            }
        }
    }

    /// From the entries downwards, gives every block its runs and shares them out among its ways out.
    fn spread(&mut self, shape: &Shape<'_>, loops: &LoopForest) {
        refill(&mut self.runs, shape.blocks + 1, 0.0);
        refill(&mut self.weights.edges, shape.edges.len(), 0.0);
        refill(&mut self.weights.exits, shape.exits.len(), 0.0);
        refill(&mut self.weights.entries, shape.entries.len(), COLD);
        if let Some(first) = self.weights.entries.first_mut() {
            *first = 1.0;
        }
        for (entry, weight) in shape.entries.iter().zip(&self.weights.entries) {
            self.runs[entry.0 as usize] += weight;
        }
        let mut shares = std::mem::take(&mut self.shares);
        for node in self.dfs.reverse_postorder().filter(|node| (*node as usize) < shape.blocks) {
            let mut runs = self.runs[node as usize];
            if let Some(inside) = loops.innermost(node).filter(|id| loops.get(*id).header == node) {
                self.loops[inside.0 as usize].entered = runs;
                runs *= TRIPS;
            }
            let runs = runs.clamp(LEAST, MOST);
            shares.clear();
            shares.extend(self.graph.out_edges(node).map(|way| self.share(shape, way, runs)));
            let even = even_share(&mut shares, runs);
            for (way, share) in self.graph.out_edges(node).zip(&shares) {
                let weight = rounded(match share {
                    Share::Cold => runs * COLD,
                    Share::Leaves(runs) => *runs,
                    Share::Even => even,
                });
                match (way.index as usize).checked_sub(shape.edges.len()) {
                    None => self.weights.edges[way.index as usize] = weight,
                    Some(exit) => self.weights.exits[exit] = weight,
                }
                if !self.goes_back(node, way.to) {
                    self.runs[way.to as usize] += weight;
                }
            }
        }
        self.shares = shares;
    }

    fn share(&self, shape: &Shape<'_>, way: Edge, runs: f64) -> Share {
        // Where everything is cold, nothing is colder than the rest.
        if !self.cold[way.from as usize] && self.is_cold(shape, way.from, way.to, way.index as usize) {
            return Share::Cold;
        }
        match self.leaves[way.index as usize] {
            NONE => Share::Even,
            left => {
                let left = self.loops[left as usize];
                let ways = self.graph.successors(way.from).len() as f64;
                Share::Leaves((left.entered / f64::from(left.ways_out.max(1))).min(runs / ways))
            }
        }
    }
}

/// What each of the even shares is. Where control cannot stay in the loop, the ways that leave it are the even ones.
fn even_share(shares: &mut [Share], runs: f64) -> f64 {
    if !shares.contains(&Share::Even) {
        for share in shares.iter_mut().filter(|share| matches!(share, Share::Leaves(_))) {
            *share = Share::Even;
        }
    }
    let (mut rest, mut even) = (runs, 0u32);
    for share in shares {
        match share {
            Share::Cold => rest -= runs * COLD,
            Share::Leaves(runs) => rest -= *runs,
            Share::Even => even += 1,
        }
    }
    rest.max(runs * COLD) / f64::from(even.max(1))
}

/// The outermost loop around `from` that does not contain `to`.
fn outermost_left(loops: &LoopForest, from: Node, to: Node, outside: Node) -> Option<LoopId> {
    let is_left = |id: &LoopId| to == outside || !loops.contains(*id, to);
    let innermost = loops.innermost(from).filter(is_left);
    std::iter::successors(innermost, |id| loops.get(*id).parent.filter(is_left)).take(NESTING).last()
}

/// To 20 bits of mantissa.
fn rounded(weight: f64) -> f64 {
    const DROPPED: u64 = 1 << 32;
    f64::from_bits((weight.to_bits() + DROPPED / 2) & !(DROPPED - 1))
}
