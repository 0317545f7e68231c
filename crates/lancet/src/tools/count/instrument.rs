//! From functions to a plan with as few counters as possible.

use lancet_engine::layout::Survey;
use lancet_engine::plan::{Action, CounterId, FuncPlan, Plan, Point};
use lancet_engine::program::{BlockId, Edge, EdgeId, Func, FuncId, Program};
use lancet_isa::{Flow, Reg};
use rayon::prelude::*;

use super::cuts::NUMBERS;
use super::loops::{Loops, Rounds};
use super::notes::{NotedFunc, Notes};
use super::{Counted, Estimator, Placement, Placer, Slot, Weights};

/// What an increment that needs a jump of its own costs more than one that does not.
const JUMP_PRICE: f64 = 1.0;

/// A plan that counts every edge.
#[derive(Debug, Default)]
pub struct CountPlan {
    pub plan: Plan,
    pub funcs: Vec<NotedFunc>,
    /// The first of the numbers that say where handlers interrupted, behind all others.
    pub cuts: Option<CounterId>,
    /// Registers hold something.
    pub holds: bool,
}

/// Counts everything in the functions that can be edited. An earlier `profile` of the same program tells which edges
/// to spare; without one they are estimated. `rounds` says where the rounds of loops may be counted, and `cuts` whether it
/// is noted where handlers interrupt.
pub fn instrument(
    program: &Program,
    survey: &Survey,
    profile: Option<&Counted>,
    rounds: Rounds,
    cuts: bool,
) -> CountPlan {
    let editable = survey.edited().filter(|id| are_rows(program.func(*id), survey.joined(*id)));
    let editable: Vec<FuncId> = editable.collect();
    let place = |(estimator, placer): &mut (Estimator, Placer), id: &FuncId| {
        let func = program.func(*id);
        let estimate = estimator.estimate(func);
        let open = open_blocks(program, func);
        let joined = survey.joined(*id);
        let from_profile = profile.and_then(|profile| profile.counts(*id));
        let from_profile = from_profile.map(|counts| Weights::from_profile(counts, estimate));
        let weights = from_profile.as_ref().unwrap_or(estimate);
        let mut loops = Loops::find(program, survey, *id, weights, rounds);
        let derived = loops.derive(func, weights);
        let mut placement = placer.place(func, weights, &open, joined, &derived);
        if rounds == Rounds::Registers {
            loops.keep_counters(func, weights, &placement);
        }
        // Their counters are rows, so they come last, by edge, which is by source and target.
        let is_joined = |slot: &Slot| matches!(slot, Slot::Edge(id) if joined.binary_search(id).is_ok());
        placement.counters.sort_by_key(is_joined);
        (placement, loops)
    };
    let scratch = || (Estimator::default(), Placer::with_jump_price(JUMP_PRICE));
    let placements: Vec<(Placement, Loops)> = editable.par_iter().map_init(scratch, place).collect();
    let mut made = CountPlan::default();
    for (id, (placement, loops)) in editable.into_iter().zip(placements) {
        let first = made.plan.counters_for(placement.numbers());
        let planned = made.plan.edit(id);
        loops.plan(&placement, first, planned);
        plan_counters(planned, &placement, first, |slot| loops.counted_in(slot));
        made.holds |= !planned.held.is_empty() || !placement.derived.is_empty();
        made.funcs.push(NotedFunc { entry: program.func(id).entry, first: first.0, placement });
    }
    made.cuts = cuts.then(|| made.plan.counters_for(NUMBERS));
    made
}

/// The plan that these notes are of, unless registers hold anything.
pub fn noted_plan(program: &Program, notes: &Notes) -> CountPlan {
    let mut made = CountPlan::default();
    for noted in &notes.funcs {
        let first = made.plan.counters_for(noted.placement.numbers());
        if let Some(id) = program.func_starting_at(noted.entry) {
            plan_counters(made.plan.edit(id), &noted.placement, first, |_| None);
        }
    }
    made.cuts = notes.manner.cuts.then(|| made.plan.counters_for(NUMBERS));
    made
}

fn plan_counters(planned: &mut FuncPlan, placement: &Placement, first: CounterId, held: impl Fn(Slot) -> Option<Reg>) {
    for (counter, slot) in (first.0..).map(CounterId).zip(&placement.counters) {
        match (slot, held(*slot)) {
            // Its counter gets what registers hold.
            (Slot::Block(_), _) => {}
            (_, Some(reg)) => planned.act(point(*slot), Action::CountIn(reg)),
            (_, None) => planned.count(point(*slot), counter),
        }
    }
    if !placement.joined.is_empty() {
        planned.note = Some(CounterId(first.0 + placement.counters.len() as u32));
    }
}

fn point(slot: Slot) -> Point {
    match slot {
        Slot::Block(id) => Point::Block(id),
        Slot::Edge(id) => Point::Edge(id),
        Slot::Entry(i) => Point::Entry(i),
        Slot::Exit(i) => Point::Exit(i),
    }
}

/// Do all jumps among joined edges lead to the same targets? Otherwise their counters cannot be told apart.
fn are_rows(func: &Func, joined: &[EdgeId]) -> bool {
    let edges: Vec<&Edge> = joined.iter().map(|id| &func.edges[id.0 as usize]).collect();
    let rows: Vec<&[&Edge]> = edges.chunk_by(|a, b| a.from == b.from).collect();
    rows.windows(2).all(|pair| pair[0].iter().map(|edge| edge.to).eq(pair[1].iter().map(|edge| edge.to)))
}

/// Blocks with a system call, in which control may end or begin.
fn open_blocks(program: &Program, func: &Func) -> Vec<BlockId> {
    let isa = program.image().isa();
    let may = |part: &lancet_engine::program::Part| {
        program.image().bytes(part.start, part.size()).is_none_or(|code| isa.may_call_system(code))
    };
    if !func.parts.iter().any(may) {
        return Vec::new();
    }
    let has_call = |id: &BlockId| {
        let block = func.block(*id);
        let may = program.image().bytes(block.start, u64::from(block.len)).is_none_or(|code| isa.may_call_system(code));
        may && program.insns(block).iter().any(|insn| insn.flow == Flow::System)
    };
    func.block_ids().filter(has_call).collect()
}
