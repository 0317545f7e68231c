//! What counting costs, measured in increments: the figure that a placement is judged by.

use std::iter::Sum;
use std::ops::AddAssign;

use lancet_engine::program::Func;

use super::flow::{Degrees, FlowGraph, Shape};
use super::{Counts, Placement, Slot, Weights};

/// Of one function, or of many together. Runs are exact below 2^53.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Cost {
    pub blocks: u64,
    /// Places in the code with an increment.
    pub sites: u64,
    /// Those that need a block of their own, because their edge joins a fork to a junction.
    pub new_blocks: u64,
    /// How often blocks run: what a counter on every block would cost.
    pub block_runs: f64,
    /// How often increments run.
    pub increments: f64,
}

impl Cost {
    /// By what was counted.
    pub fn measured(func: &Func, placement: &Placement, counts: &Counts) -> Cost {
        let block_runs = counts.blocks.iter().map(|runs| *runs as f64).sum();
        Cost::new(func, placement, block_runs, |slot| counts.of(slot) as f64)
    }

    /// By what is expected.
    pub fn expected(func: &Func, placement: &Placement, weights: &Weights) -> Cost {
        // Every run of a block starts at an edge or an entry.
        let mut blocks = vec![0.0; func.blocks.len()];
        let edges = func.edges.iter().map(|edge| edge.to).zip(&weights.edges);
        for (block, weight) in edges.chain(func.entries.iter().copied().zip(&weights.entries)) {
            blocks[block.0 as usize] += weight;
        }
        Cost::new(func, placement, blocks.iter().sum(), |slot| match slot {
            Slot::Block(id) => blocks.get(id.0 as usize).copied().unwrap_or(0.0),
            _ => weights.of(slot),
        })
    }

    fn new(func: &Func, placement: &Placement, block_runs: f64, runs: impl Fn(Slot) -> f64) -> Cost {
        let mut flow = FlowGraph::default();
        flow.rebuild(&Shape::of(func, &placement.open, &placement.joined, &placement.derived));
        let mut degrees = Degrees::default();
        degrees.count(&flow);
        let links = placement.counters.iter().filter_map(|slot| flow.link_of(*slot));
        Cost {
            blocks: func.blocks.len() as u64,
            sites: placement.counters.len() as u64,
            new_blocks: links.filter(|link| degrees.is_critical(&flow.links()[*link])).count() as u64,
            block_runs,
            increments: placement.counters.iter().map(|slot| runs(*slot)).sum(),
        }
    }

    /// The share of increments that is left, where a counter on every block is 1. None if nothing ran.
    pub fn share(&self) -> Option<f64> {
        (self.block_runs > 0.0).then(|| self.increments / self.block_runs)
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.blocks += other.blocks;
        self.sites += other.sites;
        self.new_blocks += other.new_blocks;
        self.block_runs += other.block_runs;
        self.increments += other.increments;
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Cost>>(costs: I) -> Cost {
        costs.fold(Cost::default(), |mut sum, cost| {
            sum += cost;
            sum
        })
    }
}
