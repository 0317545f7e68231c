//! Functions that no program has, by hand or from a seeded generator.

use lancet_engine::program::dfs::Dfs;
use lancet_engine::program::graph::Graph;
use lancet_engine::program::{BlockId, Call, Edge, EdgeKind, Exit, ExitKind, LoopForest};
use lancet_isa::{Svma, Target};

use crate::tools::count::flow::Shape;
use crate::tools::count::weights::{Estimator, Weights};

/// SplitMix64 (Steele, Lea, Flood 2014).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

#[derive(Default, Debug)]
pub struct Made {
    pub blocks: usize,
    pub edges: Vec<Edge>,
    pub entries: Vec<BlockId>,
    pub exits: Vec<Exit>,
    pub calls: Vec<Call>,
    pub open: Vec<BlockId>,
}

impl Made {
    pub fn shape(&self) -> Shape<'_> {
        Shape {
            blocks: self.blocks,
            edges: &self.edges,
            entries: &self.entries,
            exits: &self.exits,
            calls: &self.calls,
            open: &self.open,
            joined: &[],
            derived: &[],
        }
    }

    /// Entered at block 0.
    pub fn new(blocks: usize, edges: &[(u32, u32)], exits: &[(u32, ExitKind)]) -> Made {
        let mut made = Made { blocks, entries: vec![BlockId(0)], ..Made::default() };
        for &(from, to) in edges {
            made.edge(from as usize, to as usize, EdgeKind::Jump);
        }
        made.exits.extend(exits.iter().map(|&(from, kind)| Exit { from: BlockId(from), kind }));
        made
    }

    pub fn loops(&self) -> LoopForest {
        let pairs: Vec<(u32, u32)> = self.edges.iter().map(|edge| (edge.from.0, edge.to.0)).collect();
        let roots: Vec<u32> = self.entries.iter().map(|entry| entry.0).collect();
        let graph = Graph::new(self.blocks, &pairs);
        LoopForest::new(&graph, &Dfs::new(graph.forward(), &roots))
    }

    pub fn estimate(&self) -> Weights {
        Estimator::default().estimate_shape(&self.shape(), &self.loops()).clone()
    }

    fn edge(&mut self, from: usize, to: usize, kind: EdgeKind) {
        self.edges.push(Edge { from: BlockId(from as u32), to: BlockId(to as u32), kind });
    }

    fn exit(&mut self, from: usize, kind: ExitKind) {
        self.exits.push(Exit { from: BlockId(from as u32), kind });
    }

    /// Up to `most` blocks of every kind that compilers make, and some that they do not: parallel edges, self loops,
    /// blocks that nothing reaches, entries named twice, circles without a way out.
    pub fn random(r: &mut Random, most: usize) -> Made {
        let blocks = 1 + r.below(most);
        let mut made = Made { blocks, entries: vec![BlockId(0)], ..Made::default() };
        for from in 0..blocks {
            made.end_block(r, from);
        }
        while r.chance(35) {
            made.entries.push(BlockId(r.below(blocks) as u32));
        }
        while r.chance(30) {
            made.open.push(BlockId(r.below(blocks) as u32));
        }
        made
    }

    fn end_block(&mut self, r: &mut Random, from: usize) {
        let elsewhere = Svma(0x1000);
        let next = if from + 1 < self.blocks { from + 1 } else { r.below(self.blocks) };
        let any = r.below(self.blocks);
        match r.below(16) {
            0..5 => {
                self.edge(from, any, EdgeKind::Taken);
                self.edge(from, next, EdgeKind::Fall);
            }
            5 => {
                self.exit(from, ExitKind::TailCall(Target::Direct(elsewhere)));
                self.edge(from, next, EdgeKind::Fall);
            }
            6 => self.edge(from, any, EdgeKind::Jump),
            7 => self.edge(from, next, EdgeKind::Fall),
            8 => {
                for _ in 0..1 + r.below(4) {
                    let to = r.below(self.blocks);
                    self.edge(from, to, EdgeKind::Table);
                }
            }
            9..12 => {
                self.calls.push(Call { block: BlockId(from as u32), to: Target::Computed, returns: true });
                if r.chance(90) {
                    self.edge(from, next, EdgeKind::CallReturn);
                } else {
                    self.exit(from, ExitKind::RunsInto(elsewhere));
                }
            }
            12 => {
                self.calls.push(Call { block: BlockId(from as u32), to: Target::Computed, returns: false });
                self.exit(from, ExitKind::NoReturn);
            }
            13 => self.exit(from, ExitKind::Unresolved),
            14 => self.exit(from, ExitKind::Stop),
            _ => self.exit(from, ExitKind::Return),
        }
    }
}
