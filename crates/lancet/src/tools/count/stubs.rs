//! How often the stubs ran that lead to other objects.
//!
//! A stub is left alone, so it has no counters. But it runs whenever control is sent to it, and where that happens was
//! counted: its callers' blocks tell. A stub that is also called from a function without counts stays uncounted. One
//! whose first call goes through the loader's lazy binding executes a few instructions more that time.

use lancet_engine::program::{ExitKind, FoundBy, Func, FuncId, Program};
use lancet_isa::Target;

use super::Counts;

/// Fills in the counts of stubs; those of the other functions are there already.
pub(super) fn count(program: &Program, counts: &mut [Option<Counts>]) {
    // None: not all is known.
    let mut runs: Vec<Option<u64>> = vec![Some(0); counts.len()];
    let is_stub = |func: &Func| func.found_by == FoundBy::Plt;
    for (func, counts) in program.funcs().iter().zip(counts.iter()).filter(|(func, _)| !is_stub(func)) {
        let block = |block: usize| counts.as_ref().and_then(|counts| counts.blocks.get(block)).copied();
        let calls = func.calls.iter().map(|call| (call.to, block(call.block.0 as usize)));
        let exit = |i: usize| counts.as_ref().and_then(|counts| counts.exits.get(i)).copied();
        let tail_calls = func.exits.iter().enumerate().filter_map(|(i, leaving)| match leaving.kind {
            ExitKind::TailCall(to) => Some((to, exit(i))),
            _ => None,
        });
        for (to, count) in calls.chain(tail_calls) {
            if let Some(stub) = target(program, to) {
                let sum = &mut runs[stub.0 as usize];
                *sum = sum.zip(count).map(|(sum, count)| sum.saturating_add(count));
            }
        }
    }
    for ((func, counts), runs) in program.funcs().iter().zip(counts).zip(runs).filter(|((func, _), _)| is_stub(func)) {
        *counts = runs.and_then(|runs| of_stub(func, runs));
    }
}

fn target(program: &Program, to: Target) -> Option<FuncId> {
    match to {
        Target::Direct(at) => program.func_starting_at(at),
        Target::Slot(_) | Target::Computed => None,
    }
}

/// None if it is not one block that leaves at its end.
fn of_stub(func: &Func, runs: u64) -> Option<Counts> {
    match (&func.blocks[..], &func.edges[..], &func.exits[..]) {
        ([_], [], [_]) => Some(Counts {
            blocks: vec![runs],
            entries: vec![runs; func.entries.len().min(1)],
            exits: vec![runs],
            ..Counts::default()
        }),
        _ => None,
    }
}
