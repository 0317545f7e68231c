//! What calls cost with everything below them.
//!
//! How often each call was made is exact; what a call cost below is not counted. A function's cost is therefore shared
//! among its callers by the number of their calls, as gprof does: exact if there is one caller, otherwise as if all calls
//! cost the same. Calls through pointers take part as calls of unknown callers. Functions that call each other in a circle
//! are one: what comes into the circle pays for all of it, and calls inside of it cost nothing.

use lancet_engine::program::dfs::Dfs;
use lancet_engine::program::graph::Graph;
use lancet_engine::program::{BlockId, ExitKind, FuncId};
use lancet_isa::Target;

use crate::tools::count::Counted;

/// All calls by name from one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallCost {
    pub from: FuncId,
    /// Its last instruction calls, or jumps there for good.
    pub block: BlockId,
    pub to: FuncId,
    pub calls: u64,
    /// Instructions of the callee and of everything below.
    pub cost: u64,
}

/// The calls that were made, by caller and block.
pub fn of(counted: &Counted) -> Vec<CallCost> {
    let mut calls = made(counted);
    let count = counted.program.funcs().len();
    let edges: Vec<(u32, u32)> = calls.iter().map(|call| (call.from.0, call.to.0)).collect();
    let (circle_of, circles) = circles(&Graph::new(count, &edges));
    let circle = |id: FuncId| circle_of[id.0 as usize] as usize;
    let mut costs = vec![0u128; circles];
    let mut entered = vec![0u128; circles];
    for (id, _) in counted.funcs() {
        costs[circle(id)] += u128::from(counted.func_instructions(id));
        entered[circle(id)] += u128::from(counted.calls(id));
    }
    for call in calls.iter().filter(|call| circle(call.from) == circle(call.to)) {
        let entered = &mut entered[circle(call.to)];
        *entered = entered.saturating_sub(u128::from(call.calls));
    }
    // Callers come before whom they call, so from the last to the first everything below is known.
    let mut by_caller: Vec<usize> = (0..calls.len()).collect();
    by_caller.sort_by_key(|i| std::cmp::Reverse(circle(calls[*i].from)));
    for i in by_caller {
        let call = &mut calls[i];
        let (from, to) = (circle(call.from), circle(call.to));
        if from != to {
            let share = costs[to] * u128::from(call.calls) / entered[to].max(u128::from(call.calls)).max(1);
            call.cost = u64::try_from(share).unwrap_or(u64::MAX);
            costs[from] += share;
        }
    }
    calls
}

fn made(counted: &Counted) -> Vec<CallCost> {
    let program = &counted.program;
    let target = |to: Target| match to {
        Target::Direct(at) => program.func_starting_at(at).filter(|id| counted.counts(*id).is_some()),
        Target::Slot(_) | Target::Computed => None,
    };
    let mut made = Vec::new();
    for (from, counts) in counted.funcs() {
        let func = program.func(from);
        let calls = func.calls.iter().map(|call| (call.block, call.to, counts.calls_in(func, call.block)));
        let exits = func.exits.iter().zip(&counts.exits).filter_map(|(exit, count)| match exit.kind {
            ExitKind::TailCall(to) => Some((exit.from, to, *count)),
            _ => None,
        });
        let found = calls.chain(exits).filter(|(_, _, calls)| *calls > 0);
        made.extend(
            found.filter_map(|(block, to, calls)| Some(CallCost { from, block, to: target(to)?, calls, cost: 0 })),
        );
    }
    made.sort_by_key(|call| (call.from, call.block));
    made
}

/// By node its circle, and how many there are. A circle that leads to another has the lower number.
fn circles(graph: &Graph) -> (Vec<u32>, usize) {
    let nodes: Vec<u32> = (0..graph.nodes() as u32).collect();
    let forward = Dfs::new(graph.forward(), &nodes);
    let mut circle_of = vec![u32::MAX; graph.nodes()];
    let (mut circles, mut waiting) = (0, Vec::new());
    for root in forward.reverse_postorder() {
        if circle_of[root as usize] != u32::MAX {
            continue;
        }
        waiting.push(root);
        while let Some(node) = waiting.pop() {
            if circle_of[node as usize] == u32::MAX {
                circle_of[node as usize] = circles;
                waiting.extend(graph.predecessors(node).iter().filter(|node| circle_of[**node as usize] == u32::MAX));
            }
        }
        circles += 1;
    }
    (circle_of, circles as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_call_each_other_are_one() {
        let graph = Graph::new(5, &[(0, 1), (1, 2), (2, 1), (2, 3), (4, 3), (0, 3)]);
        let (circle_of, circles) = circles(&graph);
        assert_eq!(circles, 4);
        assert_eq!(circle_of[1], circle_of[2]);
        for (from, to) in [(0, 1), (2, 3), (4, 3)] {
            assert!(circle_of[from] < circle_of[to]);
        }
    }
}
