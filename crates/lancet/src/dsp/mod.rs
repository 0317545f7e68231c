//! Instrumenting Blackfin programs, and reading back what they measured.
//!
//! ```text
//! program ─> Tool ─> points ─> engine: edited in place ─> new program, Notes
//!                                 new program ─> simulator ─> its memory, Notes ─> Measured
//! ```
//!
//! The program itself needs no way to write files: [`Notes`] say what is where in its memory, and [`Measured`] is read out
//! of the machine that ran it. They also say which points were served by which tactic, and which were refused and why.

mod count;
mod measured;
mod notes;
mod object;
pub(crate) mod phases;
mod plan;
mod points;

use std::path::Path;
use std::sync::Arc;

use lancet_engine::image::Image;
use lancet_engine::layout::inplace::{
    self, Deed, Edited, Environment, NoPayload, Order, Payload, Place, PlacedPayload, Tactics,
};
use lancet_engine::load::Module;
use lancet_engine::program::Program;
use lancet_engine::sink::elf_writer;
use lancet_isa::Svma;
use lancet_isa::blackfin::{Assembler, EncodeError, Op, ReturnFrom};

pub use measured::Measured;
pub use notes::{BlockNote, EdgeNote, Notes, PhasesNote, PlacedNote, PointNote, Totals};
pub use plan::{LeftAlone, Planned, edit_plan, run_plan};

use crate::{Error, names};
use object::Analysis;
use points::Wish;

/// What to add.
pub enum Tool<'a> {
    /// Count every block and every edge.
    Count,
    /// Call a routine that does nothing before every instruction.
    Null,
    /// Cycles and data cache misses from one LSETUP to the next.
    Phases,
    /// What a points file says, with the routines of an object file.
    Points { file: &'a Path, object: Option<&'a Path> },
}

/// Slices of time for the phases of a program whose cycles nobody knows yet: 2^20 cycles each.
const PHASE_SLICE: u32 = 20;

/// Makes the instrumented program.
pub fn rewrite(path: &Path, tool: &Tool<'_>, tactics: Tactics) -> Result<(Vec<u8>, Notes), Error> {
    let program = Program::analyse(Arc::new(Image::open(path)?));
    let name = path.display().to_string();
    let environment = Environment::guess(&program);
    let mut wanted = Wanted::default();
    let mut order = Order { environment, tactics, ..Order::new(&NoPayload) };
    let analysis;
    match tool {
        Tool::Count => count::everything(&program, &mut wanted),
        Tool::Null => {
            order.payload = &Nothing;
            let calls = instructions(&program).into_iter().map(|at| (Place::Before(at), NO_OP));
            wanted.points.extend(calls);
        }
        Tool::Phases => return phases::rewrite(&program, &name, PHASE_SLICE, tactics),
        Tool::Points { file, object } => {
            let text = std::fs::read_to_string(file)
                .map_err(|cause| Error::File { path: file.display().to_string(), cause })?;
            let wrong = |what| Error::Points { path: file.display().to_string(), what };
            let rules = points::parse(&text).map_err(wrong)?;
            let routines = wanted.rules(&program, &rules).map_err(wrong)?;
            let switched = rules.iter().any(|rule| rule.wish == Wish::On);
            match object {
                Some(object) => {
                    let module = Module::open(object)?;
                    module.must_be_for(program.image().isa())?;
                    let offset = |name: &String| module.function(Some(name), name).map(|routine| routine.offset);
                    let offsets = routines.iter().map(offset).collect::<Result<_, _>>()?;
                    analysis = Analysis::new(Arc::new(module), offsets, !switched, program.image().isa())?;
                    order.payload = &analysis;
                }
                None if routines.is_empty() && !switched => {}
                None => return Err(wrong("it calls routines, but there is no object".to_owned())),
            }
        }
    }
    order.points = &wanted.points;
    order.counters = wanted.counters;
    let (edited, file) = edit(&program, &name, &order)?;
    let notes = notes::of(&program, name, &wanted, &edited, order.payload.data_bytes() > 0);
    Ok((file, notes))
}

/// The program with what was ordered, as a file.
pub fn edit(program: &Program, name: &str, order: &Order<'_>) -> Result<(Edited, Vec<u8>), Error> {
    let edited = inplace::edit(program, order).map_err(|cause| Error::InPlace { program: name.to_owned(), cause })?;
    let (file, _) = elf_writer::write_to_vec(program.image(), &edited.patch)?;
    Ok((edited, file))
}

/// The name of the function that an address is in.
pub fn function_at(program: &Program, at: u32) -> String {
    let func = program.func_at(Svma(at.into()));
    func.map_or_else(String::new, |id| names::of_function(program, program.func(id)))
}

/// All instructions that control reaches, by address.
fn instructions(program: &Program) -> Vec<u32> {
    let blocks = program.funcs().iter().flat_map(|func| func.blocks.iter());
    let mut all: Vec<u32> = blocks.flat_map(|block| program.insns(block)).map(|insn| insn.at.0 as u32).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// An analysis that does nothing.
struct Nothing;

const NO_OP: Deed = Deed::Call { routine: 0, argument: 0 };

impl Payload for Nothing {
    fn data_bytes(&self) -> u32 {
        0
    }

    fn place(&self, code_at: u32, _: u32) -> Result<PlacedPayload, EncodeError> {
        let mut out = Assembler::new(code_at);
        out.op(Op::Return(ReturnFrom::Subroutine))?;
        Ok(PlacedPayload { code: out.finish(), routines: vec![code_at], data: Vec::new() })
    }
}

/// Points, and what their counters are for.
#[derive(Default)]
struct Wanted {
    points: Vec<(Place, Deed)>,
    counters: u32,
    /// Places that a points file counts, with the numbers of their counters.
    counted: Vec<(Place, u32)>,
    blocks: Vec<count::WantedBlock>,
    edges: Vec<count::WantedEdge>,
}

impl Wanted {
    /// Counts at a place; gives the number of the counter.
    fn count(&mut self, place: Place) -> u32 {
        let counter = self.counters;
        self.points.push((place, Deed::Count(counter)));
        self.counters += 1;
        counter
    }

    /// What the rules ask for. Returns the routines that they call, by number.
    fn rules(&mut self, program: &Program, rules: &[points::Rule]) -> Result<Vec<String>, String> {
        let switched = rules.iter().any(|rule| matches!(rule.wish, Wish::On | Wish::Off));
        let mut routines: Vec<String> = Vec::new();
        for rule in rules {
            let places = rule.places(program);
            if places.is_empty() {
                return Err(format!("line {}: no instruction is like that", rule.line));
            }
            for at in places {
                let place = if rule.after { Place::After(at) } else { Place::Before(at) };
                let number = self.points.len() as u32;
                match &rule.wish {
                    Wish::Count => {
                        let counter = self.count(place);
                        self.counted.push((place, counter));
                    }
                    Wish::On => self.points.push((place, Deed::Set(1))),
                    Wish::Off => self.points.push((place, Deed::Set(0))),
                    Wish::Call(name) => {
                        let known = routines.iter().position(|routine| routine == name);
                        let routine = known.unwrap_or_else(|| {
                            routines.push(name.clone());
                            routines.len() - 1
                        }) as u32;
                        let deed = if switched {
                            Deed::Switch { routine, argument: number, unless: 0 }
                        } else {
                            Deed::Call { routine, argument: number }
                        };
                        self.points.push((place, deed));
                    }
                }
            }
        }
        Ok(routines)
    }
}
