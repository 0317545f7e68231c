//! Plans of tools on Blackfin: the same [`Plan`] that functions of other instruction sets are cloned with.
//!
//! A plan speaks of edges, entries and exits; the editor in place knows addresses. What has no address of its own, such as
//! the way back of a hardware loop, cannot be counted there. A function with such a point, or with one that the editor
//! refuses, is left alone as a whole, so that no counter is ever half right.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use lancet_blackfin_sim::Environment as Machine;
use lancet_engine::layout::inplace::{Deed, Environment, NoPayload, Order, Place};
use lancet_engine::plan::{Action, Plan, Point};
use lancet_engine::program::{BlockId, EdgeId, EdgeKind, ExitKind, Func, FuncId, Program};
use lancet_isa::Flow;

use crate::simulate::{self, Options, Ran};
use crate::{Error, dsp};

/// Adds what was planned, runs the program on the simulator with the user's own input and output, and gives the run, the
/// counters, and the functions that were left alone.
pub fn run_plan(
    program: &Program,
    name: &Path,
    plan: &Plan,
    args: Vec<Vec<u8>>,
) -> Result<(Ran, Vec<u64>, BTreeSet<FuncId>), Error> {
    let environment = Environment::guess(program);
    let mut left_alone = BTreeSet::new();
    let mut points: Vec<(FuncId, Place, Deed)> = Vec::new();
    for (id, planned) in plan.funcs() {
        let func = program.func(id);
        let places = planned.insertions.iter().map(|insertion| {
            // Routines are called by points files here.
            let Action::Count(counter) = insertion.action else { return None };
            Some((id, place(program, func, insertion.at)?, Deed::Count(counter.0)))
        });
        match places.collect::<Option<Vec<_>>>() {
            Some(places) if planned.note.is_none() => points.extend(places),
            _ => {
                left_alone.insert(id);
            }
        }
    }
    let file = loop {
        let list: Vec<(Place, Deed)> = points.iter().map(|(_, place, deed)| (*place, *deed)).collect();
        let order = Order { points: &list, counters: plan.counters(), environment, ..Order::new(&NoPayload) };
        let (edited, file) = dsp::edit(program, &name.display().to_string(), &order)?;
        let refused: BTreeSet<Place> = edited.refused.iter().map(|(place, _)| *place).collect();
        let owners: BTreeSet<FuncId> =
            points.iter().filter(|(_, place, _)| refused.contains(place)).map(|(id, ..)| *id).collect();
        if owners.is_empty() {
            break (edited.counters_at, file);
        }
        points.retain(|(id, ..)| !owners.contains(id));
        left_alone.extend(owners);
    };
    let (counters_at, file) = file;
    let failed = |cause| Error::File { path: std::env::temp_dir().display().to_string(), cause };
    let folder = tempfile::tempdir().map_err(failed)?;
    let path = folder.path().join("edited");
    std::fs::write(&path, file).map_err(failed)?;
    let machine = match environment {
        Environment::Virtual => Machine::Virtual,
        Environment::Operating => Machine::Operating,
    };
    let options = Options { environment: machine, timing: false, trace: None, limit: None, args };
    let ran = simulate::run(&path, &options, io::stdin(), io::stdout(), io::stderr())?;
    let counter = |i: u32| {
        let bytes = ran.simulator.memory(counters_at.wrapping_add(8 * i), 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    let counters = (0..plan.counters()).map(counter).collect();
    Ok((ran, counters, left_alone))
}

/// The address where control passes a point and nothing else does.
fn place(program: &Program, func: &Func, point: Point) -> Option<Place> {
    let start = |id: BlockId| func.block(id).start.0 as u32;
    let ways_in = |id: BlockId| func.edges.iter().filter(|edge| edge.to == id).count();
    match point {
        Point::Block(id) => Some(Place::Before(start(id))),
        Point::Before(at) => Some(Place::Before(at.0 as u32)),
        Point::After(at) => Some(Place::After(at.0 as u32)),
        Point::Entry(i) => {
            let id = *func.entries.get(i as usize)?;
            (ways_in(id) == 0).then(|| Place::Before(start(id)))
        }
        Point::Exit(i) => exit(program, func, i),
        Point::Edge(EdgeId(i)) => {
            let edge = func.edges.get(i as usize)?;
            if ways_in(edge.to) == 1 && !func.entries.contains(&edge.to) {
                return Some(Place::Before(start(edge.to)));
            }
            let last = program.insns(func.block(edge.from)).last().copied()?;
            let closes_loop = func.successors(edge.from).iter().any(|edge| edge.kind == EdgeKind::Repeat);
            match edge.kind {
                EdgeKind::Jump | EdgeKind::Taken => Some(Place::Taken(last.at.0 as u32)),
                EdgeKind::Fall if !closes_loop => Some(Place::After(last.at.0 as u32)),
                _ => None,
            }
        }
    }
}

fn exit(program: &Program, func: &Func, i: u32) -> Option<Place> {
    let exit = func.exits.get(i as usize)?;
    let last = program.insns(func.block(exit.from)).last().copied()?;
    let at = last.at.0 as u32;
    match (exit.kind, last.flow) {
        (ExitKind::TailCall(_), Flow::Branch(_)) => Some(Place::Taken(at)),
        (ExitKind::Return | ExitKind::TailCall(_) | ExitKind::Unresolved, _) => Some(Place::Before(at)),
        (ExitKind::RunsInto(_), Flow::Jump(_)) => Some(Place::Taken(at)),
        (ExitKind::RunsInto(_), flow) if flow.falls_through() => Some(Place::After(at)),
        _ => None,
    }
}
