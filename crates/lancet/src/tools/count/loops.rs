//! Loops with fewer increments than a spanning tree needs, or with cheaper ones.
//!
//! Two things go beyond Ball and Larus, in loops that control leaves by their edges alone ([`rounds`]):
//!
//! - *Induction.* If each run of a block `u` adds a constant `s` to a register `r` that nothing else in the loop
//!   changes, then over a visit of the loop, whatever paths control took, modulo 2^64 and so through every overflow,
//!
//!   ```text
//!   s * runs(u) = r at the exit - r at the entry
//!   ```
//!
//!   What `r` was at the entry is kept in a spare register, the difference is added to a counter at the exit, and
//!   [`Solver`](super::Solver) divides. To the flow graph `u` is two nodes with a counted link between them, so that
//!   Kruskal's algorithm can put an edge on the tree that had a counter before: nothing is left in the loop.
//! - *Registers.* A counter that must stay in the loop counts in a spare register, and is added to memory at the exit.
//!
//! The price: what is in a register when a process is killed is lost, and likewise the rounds of a visit that a signal
//! handler leaves by `siglongjmp`. So neither is done unless it is asked for.

use lancet_engine::layout::Survey;
use lancet_engine::plan::{Action, CounterId, FuncPlan, Held, Point};
use lancet_engine::program::rounds::{self, ClosedLoop, Step};
use lancet_engine::program::{BlockId, EdgeId, Func, FuncId, Program};
use lancet_isa::{Reg, RegSet};

use super::{Derived, Placement, Slot, Weights};

/// Where the rounds of a loop are counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, serde::Serialize, serde::Deserialize)]
pub enum Rounds {
    /// In memory, each as it happens: nothing is lost, however the process ends.
    #[default]
    Memory,
    /// Not at all where an induction variable tells their number at the end of the loop.
    Induction,
    /// And otherwise in registers, until the end of the loop.
    Registers,
}

/// A way in and a way out cost about so much, where an increment in memory costs 1.
const PRICE_OF_VISIT: f64 = 3.0;

/// The closed loops of a function, with the registers that are left in them.
#[derive(Default)]
pub struct Loops {
    loops: Vec<Spared>,
    /// What is kept in registers: by what, in which of `loops`.
    kept: Vec<Kept>,
}

struct Spared {
    of: ClosedLoop,
    spare: RegSet,
    /// How often it is expected to be entered.
    entered: f64,
}

struct Kept {
    slot: Slot,
    reg: Reg,
    index: usize,
    /// The register that tells the number of rounds.
    induction: Option<Reg>,
}

impl Loops {
    pub fn find(program: &Program, survey: &Survey, id: FuncId, weights: &Weights, rounds: Rounds) -> Loops {
        let func = program.func(id);
        if rounds == Rounds::Memory || func.loops.is_empty() {
            return Loops::default();
        }
        let spared = |of: ClosedLoop| {
            let spare = survey.spare_registers(program, id, &of);
            let edges = of.edges_in.iter().map(|edge| weights.of(Slot::Edge(*edge)));
            let entered = edges.chain(of.entries.iter().map(|entry| weights.of(Slot::Entry(*entry)))).sum();
            Spared { of, spare, entered }
        };
        let loops = rounds::closed_loops(program, func).into_iter().map(spared).collect();
        Loops { loops, kept: Vec::new() }
    }

    /// Chooses blocks whose runs an induction variable tells, in order.
    pub fn derive(&mut self, func: &Func, weights: &Weights) -> Vec<Derived> {
        let mut derived: Vec<Derived> = Vec::new();
        // Outer loops come first: there is less to do for those.
        for i in 0..self.loops.len() {
            for Step { block, reg, by } in self.loops[i].of.steps.clone() {
                let is_known = derived.iter().any(|derived| derived.block == block);
                if !is_known
                    && self.pays(i, runs(func, weights, block))
                    && self.keep(func, Slot::Block(block), i, Some(reg))
                {
                    derived.push(Derived { block, by });
                }
            }
        }
        derived.sort_by_key(|derived| derived.block);
        derived
    }

    /// Keeps counters in registers, the busiest first, each in the outermost loop that it can be kept in.
    pub fn keep_counters(&mut self, func: &Func, weights: &Weights, placement: &Placement) {
        let edges = placement.counters.iter().filter_map(|slot| match slot {
            Slot::Edge(id) if placement.joined.binary_search(id).is_err() => Some((weights.of(*slot), *id)),
            _ => None,
        });
        let mut edges: Vec<(f64, EdgeId)> = edges.collect();
        edges.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for (weight, id) in edges {
            let edge = &func.edges[id.0 as usize];
            for i in 0..self.loops.len() {
                let within = |block: BlockId| func.loops.contains(self.loops[i].of.id, block.0);
                if within(edge.from)
                    && within(edge.to)
                    && self.pays(i, weight)
                    && self.keep(func, Slot::Edge(id), i, None)
                {
                    break;
                }
            }
        }
    }

    fn pays(&self, index: usize, runs: f64) -> bool {
        runs >= PRICE_OF_VISIT * self.loops[index].entered
    }

    /// Takes a register for a loop, if there is one left in it and in all that are in it or around it.
    fn keep(&mut self, func: &Func, slot: Slot, index: usize, induction: Option<Reg>) -> bool {
        let of = |i: usize| self.loops[i].of.id;
        let overlap = |a, b| func.loops.encloses(a, b) || func.loops.encloses(b, a);
        let taken = self.kept.iter().filter(|kept| overlap(of(kept.index), of(index)));
        let taken = taken.fold(RegSet::EMPTY, |taken, kept| taken | RegSet::of(kept.reg));
        let Some(reg) = self.loops[index].spare.without(taken).iter().next() else { return false };
        self.kept.push(Kept { slot, reg, index, induction });
        true
    }

    /// Plans what is kept in registers. What is added at a point goes before whatever else is done there.
    pub fn plan(&self, placement: &Placement, first: CounterId, plan: &mut FuncPlan) {
        let counter = |slot: Slot| {
            let index = placement.counters.iter().position(|other| *other == slot);
            index.map(|index| CounterId(first.0 + index as u32))
        };
        for Kept { slot, reg, index, induction } in &self.kept {
            let of = &self.loops[*index].of;
            plan.held.push(Held { reg: *reg, within: of.id });
            let edges = of.edges_out.iter().map(|edge| Point::Edge(*edge));
            let (added, since) = (induction.unwrap_or(*reg), induction.map(|_| *reg));
            for point in edges.chain(of.exits.iter().map(|exit| Point::Exit(*exit))) {
                if let Some(counter) = counter(*slot) {
                    plan.act(point, Action::Add { counter, reg: added, since });
                }
            }
        }
        for Kept { reg, index, induction, .. } in &self.kept {
            let of = &self.loops[*index].of;
            let edges = of.edges_in.iter().map(|edge| Point::Edge(*edge));
            for point in edges.chain(of.entries.iter().map(|entry| Point::Entry(*entry))) {
                plan.act(point, Action::Set { reg: *reg, from: *induction });
            }
        }
    }

    /// The register that a counter is kept in, in its loop. What is derived has none: it is not counted there.
    pub fn counted_in(&self, slot: Slot) -> Option<Reg> {
        let mut counted = self.kept.iter().filter(|kept| kept.induction.is_none());
        counted.find(|kept| kept.slot == slot).map(|kept| kept.reg)
    }
}

/// How often a block is expected to run.
fn runs(func: &Func, weights: &Weights, block: BlockId) -> f64 {
    let edges = (0..).map(EdgeId).zip(&func.edges).filter(|(_, edge)| edge.to == block);
    let entries = func.entries.iter().enumerate().filter(|(_, entry)| **entry == block);
    let edges: f64 = edges.map(|(id, _)| weights.of(Slot::Edge(id))).sum();
    edges + entries.map(|(i, _)| weights.of(Slot::Entry(i as u32))).sum::<f64>()
}
