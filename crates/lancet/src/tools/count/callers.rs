//! What the counts of callers tell of the functions that they call.
//!
//! A stub that leads to another object is left alone, so it has no counters. But it runs whenever control is sent to it,
//! and where that happens was counted: its callers' blocks tell. A stub that is also called from a function without
//! counts stays uncounted. One whose first call goes through the loader's lazy binding executes a few instructions more
//! that time.
//!
//! A function that was entered less often than it was called is one that control ended in the middle of, and its own
//! counters did not show it. The block that it starts with takes that: the least that explains the counters.

use std::collections::BTreeMap;

use lancet_engine::program::{BlockId, ExitKind, FoundBy, Func, FuncId, Program};
use lancet_isa::Target;

use super::{Counts, Cut};

/// Fills in the counts of stubs, and where control ended; the counts of the other functions are there already.
pub(super) fn tell(program: &Program, counts: &mut [Option<Counts>], cuts: &BTreeMap<FuncId, Vec<Cut>>) {
    let runs = calls(program, counts);
    for ((id, counts), runs) in (0..).map(FuncId).zip(counts).zip(runs) {
        let func = program.func(id);
        match (is_stub(func), counts, runs) {
            (true, counts, runs) => {
                let cuts = cuts.get(&id).cloned().unwrap_or_default();
                *counts = runs.and_then(|runs| of_stub(func, runs, cuts));
            }
            (false, Some(counts), Some(runs)) => stop_missing(func, counts, runs),
            (false, ..) => {}
        }
    }
}

fn is_stub(func: &Func) -> bool {
    func.found_by == FoundBy::Plt
}

/// How often each function was called by name; none where not all is known. Calls through pointers are not among them.
fn calls(program: &Program, counts: &[Option<Counts>]) -> Vec<Option<u64>> {
    let mut runs: Vec<Option<u64>> = vec![Some(0); counts.len()];
    for (func, counts) in program.funcs().iter().zip(counts).filter(|(func, _)| !is_stub(func)) {
        let block = |block: BlockId| {
            let counts = counts.as_ref()?;
            let stopped = counts.stopped.iter().filter(|(at, _)| *at == block).map(|(_, times)| times).sum();
            Some(counts.calls_in(func, block).saturating_sub(stopped))
        };
        let calls = func.calls.iter().map(|call| (call.to, block(call.block)));
        let exit = |i: usize| counts.as_ref().and_then(|counts| counts.exits.get(i)).copied();
        let tail_calls = func.exits.iter().enumerate().filter_map(|(i, leaving)| match leaving.kind {
            ExitKind::TailCall(to) => Some((to, exit(i))),
            _ => None,
        });
        for (to, count) in calls.chain(tail_calls) {
            if let Some(callee) = target(program, to) {
                let sum = &mut runs[callee.0 as usize];
                *sum = sum.zip(count).map(|(sum, count)| sum.saturating_add(count));
            }
        }
    }
    runs
}

fn target(program: &Program, to: Target) -> Option<FuncId> {
    match to {
        Target::Direct(at) => program.func_starting_at(at),
        Target::Slot(_) | Target::Computed => None,
    }
}

/// None if it is not one block that leaves at its end.
fn of_stub(func: &Func, runs: u64, cuts: Vec<Cut>) -> Option<Counts> {
    let stayed: i64 = cuts.iter().map(|cut| cut.times).sum();
    match (&func.blocks[..], &func.edges[..], &func.exits[..]) {
        ([_], [], [_]) => Some(Counts {
            blocks: vec![runs],
            entries: vec![runs; func.entries.len().min(1)],
            exits: vec![runs.saturating_add_signed(-stayed)],
            cuts,
            ..Counts::default()
        }),
        _ => None,
    }
}

fn stop_missing(func: &Func, counts: &mut Counts, called: u64) {
    let (Some(start), Some(entered)) = (func.entries.first(), counts.entries.first_mut()) else { return };
    let Some(missing @ 1..) = called.checked_sub(*entered) else { return };
    let Some(block) = counts.blocks.get_mut(start.0 as usize) else { return };
    *entered = called;
    *block = block.saturating_add(missing);
    counts.stopped.push((*start, missing));
}
