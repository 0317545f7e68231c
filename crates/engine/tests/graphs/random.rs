//! Random graphs from a seeded generator, so that a failure can be repeated.

use lancet_engine::program::graph::{Graph, Node};

/// SplitMix64 (Steele, Lea, Flood 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.word() % bound as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

pub struct Case {
    pub nodes: usize,
    pub edges: Vec<(Node, Node)>,
    pub entries: Vec<Node>,
    pub graph: Graph,
}

impl Case {
    pub fn new(nodes: usize, edges: &[(Node, Node)], entries: &[Node]) -> Case {
        Case { nodes, edges: edges.to_vec(), entries: entries.to_vec(), graph: Graph::new(nodes, edges) }
    }

    /// The nodes that `starts` reach, `start`s included, without ever touching `removed`.
    pub fn reach(&self, starts: &[Node], removed: Option<Node>) -> Vec<bool> {
        let mut reached = vec![false; self.nodes];
        let mut work: Vec<Node> = starts.iter().copied().filter(|&n| Some(n) != removed).collect();
        while let Some(node) = work.pop() {
            if !std::mem::replace(&mut reached[node as usize], true) {
                let next = self.edges.iter().filter(|e| e.0 == node && Some(e.1) != removed);
                work.extend(next.map(|e| e.1));
            }
        }
        reached
    }
}

/// Sparse to dense graphs, some with the look of compiled code (a spine of fall-throughs with jumps), with self
/// loops, parallel edges, unreachable nodes, and up to three entries, which may repeat.
pub fn case(seed: u64) -> Case {
    let mut r = Random::new(seed);
    let nodes = 1 + r.below(14);
    let mut edges = Vec::new();
    if r.chance(60) {
        for n in 1..nodes {
            if r.chance(85) {
                edges.push((n as Node - 1, n as Node));
            }
        }
    }
    for _ in 0..r.below(2 * nodes + 1) {
        edges.push((r.below(nodes) as Node, r.below(nodes) as Node));
    }
    // Any order of the edge list must do.
    for i in (1..edges.len()).rev() {
        edges.swap(i, r.below(i + 1));
    }
    let mut entries = vec![0];
    while entries.len() < 3 && r.chance(25) {
        entries.push(r.below(nodes) as Node);
    }
    Case::new(nodes, &edges, &entries)
}
