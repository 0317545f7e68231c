//! Plans of tools on Blackfin: the same [`Plan`] that functions of other instruction sets are cloned with.
//!
//! A plan speaks of edges, entries and exits; the editor in place knows addresses. An edge that no instruction of its own
//! leads over, such as where a call comes back to a block with other ways in, cannot be counted there. A function with such
//! a point, or with one that the editor refuses, is left alone as a whole, so that no counter is ever half right.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use lancet_blackfin_sim::Environment as Machine;
use lancet_engine::layout::inplace::{
    Deed, Environment, Invocation, NoPayload, Operand, Order, Payload, Place, Refusal,
};
use lancet_engine::plan::{Action, Argument, PayloadCall, Plan, Point};
use lancet_engine::program::{BlockId, EdgeId, EdgeKind, ExitKind, Func, FuncId, Program};
use lancet_isa::{Facts, Flow};

use super::object::{Analysis, SWITCH_BYTES};
use crate::simulate::{self, Options, Ran};
use crate::{Error, dsp};

/// Functions that were left alone, and why.
pub type LeftAlone = BTreeMap<FuncId, String>;

/// A program with what was planned.
pub struct Planned {
    /// The new program, an ELF file.
    pub file: Vec<u8>,
    pub environment: Environment,
    /// Where counter 0 is in its memory; each takes 8 bytes.
    pub counters_at: u32,
    /// Where the data of the payload are.
    pub payload_data_at: u32,
    pub left_alone: LeftAlone,
}

/// Adds what was planned, runs the program on the simulator with the user's own input and output, and gives the run, the
/// counters, and the functions that were left alone.
pub fn run_plan(
    program: &Program,
    name: &Path,
    plan: &Plan,
    args: Vec<Vec<u8>>,
) -> Result<(Ran, Vec<u64>, LeftAlone), Error> {
    let Planned { file, environment, counters_at, left_alone, .. } = edit_plan(program, name, plan)?;
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

/// Adds what was planned.
pub fn edit_plan(program: &Program, name: &Path, plan: &Plan) -> Result<Planned, Error> {
    let environment = Environment::guess(program);
    let mut left_alone = LeftAlone::new();
    let mut points: Vec<(FuncId, Place, Deed)> = Vec::new();
    let mut calls = Calls::default();
    for (id, planned) in plan.funcs() {
        let func = program.func(id);
        if planned.note.is_some() {
            left_alone.insert(id, "edges of it arrive together".to_owned());
            continue;
        }
        let places = planned.insertions.iter().map(|insertion| {
            let deed = match insertion.action {
                Action::Count(counter) => Deed::Count(counter.0),
                Action::Call(call) => {
                    let called = plan.payload_call(call).ok_or("there is no such call")?;
                    calls.invoke(called, program.image().isa().facts())?
                }
                Action::Set { .. } | Action::CountIn(_) | Action::Add { .. } => {
                    return Err("no registers are held on Blackfin".to_owned());
                }
            };
            let place = place(program, func, insertion.at)
                .ok_or_else(|| format!("no instruction passes {} alone", text(func, insertion.at)))?;
            Ok((id, place, deed))
        });
        match places.collect::<Result<Vec<_>, _>>() {
            Ok(places) => points.extend(places),
            Err(why) => {
                left_alone.insert(id, why);
            }
        }
    }
    let analysis =
        plan.payload().map(|module| Analysis::new(module.clone(), calls.routines, true, program.image().isa()));
    let analysis = analysis.transpose()?;
    let payload: &dyn Payload = analysis.as_ref().map_or(&NoPayload, |analysis| analysis);
    loop {
        let list: Vec<(Place, Deed)> = points.iter().map(|(_, place, deed)| (*place, *deed)).collect();
        let invocations = &calls.invocations;
        let order = Order { points: &list, counters: plan.counters(), invocations, environment, ..Order::new(payload) };
        let (edited, file) = dsp::edit(program, &name.display().to_string(), &order)?;
        let refused: BTreeMap<Place, Refusal> = edited.refused.iter().copied().collect();
        if refused.is_empty() {
            let payload_data_at = edited.payload_data_at.wrapping_add(SWITCH_BYTES);
            let counters_at = edited.counters_at;
            return Ok(Planned { file, environment, counters_at, payload_data_at, left_alone });
        }
        for (id, place, _) in &points {
            if let Some(why) = refused.get(place) {
                left_alone.entry(*id).or_insert_with(|| format!("{:#x}: {why}", place.at()));
            }
        }
        points.retain(|(id, ..)| !left_alone.contains_key(id));
    }
}

/// Calls of a plan, as the editor wants them.
#[derive(Default)]
struct Calls {
    /// Where the routines are in the payload.
    routines: Vec<u64>,
    invocations: Vec<Invocation>,
}

impl Calls {
    fn invoke(&mut self, call: &PayloadCall, facts: &Facts) -> Result<Deed, String> {
        let known = self.routines.iter().position(|offset| *offset == call.offset);
        let routine = known.unwrap_or_else(|| {
            self.routines.push(call.offset);
            self.routines.len() - 1
        }) as u32;
        let operand = |argument: &Argument| match *argument {
            Argument::Number(number) => {
                let narrow =
                    u32::try_from(number).or_else(|_| i32::try_from(number.cast_signed()).map(i32::cast_unsigned));
                narrow.map(Operand::Number).map_err(|_| format!("{number:#x} is no argument of 32 bits"))
            }
            Argument::Register(reg) => Operand::register(reg)
                .ok_or_else(|| format!("{} is no register of 32 bits of the program's own", facts.reg_name(reg))),
        };
        let arguments = call.arguments.iter().map(operand).collect::<Result<_, _>>()?;
        self.invocations.push(Invocation { routine, arguments });
        Ok(Deed::Invoke(self.invocations.len() as u32 - 1))
    }
}

/// A point, for people.
fn text(func: &Func, point: Point) -> String {
    let start = |id: BlockId| func.block(id).start;
    match point {
        Point::Block(id) => format!("the block at {}", start(id)),
        Point::Before(at) | Point::After(at) => format!("{at}"),
        Point::Entry(_) => "the entry".to_owned(),
        Point::Exit(i) => {
            func.exits.get(i as usize).map_or_else(String::new, |exit| format!("the exit from {}", start(exit.from)))
        }
        Point::Edge(EdgeId(i)) => func.edges.get(i as usize).map_or_else(String::new, |edge| {
            format!("the edge from the block at {} to {}", start(edge.from), start(edge.to))
        }),
    }
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
            let at = last.at.0 as u32;
            match edge.kind {
                EdgeKind::Jump | EdgeKind::Taken => Some(Place::Taken(at)),
                EdgeKind::Repeat => Some(Place::Again { bottom: at, top: start(edge.to) }),
                EdgeKind::Fall if closes_loop => Some(Place::Done(at)),
                EdgeKind::Fall => Some(Place::After(at)),
                EdgeKind::CallReturn | EdgeKind::Table => None,
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
