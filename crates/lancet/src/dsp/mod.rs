//! Instrumenting Blackfin programs, and reading back what they measured.
//!
//! [`rewrite`] adds what a tool asks for and returns the new file with [`Notes`]: what is where in its memory, which points
//! were served by which tactic, and which were refused and why. After a run on the simulator, [`report`] reads the
//! measurements out of the machine's memory. The program itself needs no way to write files.

mod object;
mod points;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use lancet_blackfin_sim::Simulator;
use lancet_engine::image::Image;
use lancet_engine::layout::inplace::{Deed, Edited, Environment, NoPayload, Order, Payload, Place, Tactic, Tactics};
use lancet_engine::program::Program;
use lancet_engine::sink::elf_writer;
use lancet_isa::Svma;
use lancet_isa::blackfin::{Op, decode};
use serde::{Deserialize, Serialize};

use crate::{Error, names};
use object::Analysis;
use points::Wish;

/// What to add.
pub enum Tool<'a> {
    /// Count every block, and every direct jump or branch that is taken.
    Count,
    /// What a points file says, with the routines of an object file.
    Points { file: &'a Path, object: Option<&'a Path> },
}

/// What is where in a rewritten program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Notes {
    pub program: String,
    pub counters: Vec<CounterNote>,
    /// Where the analysis routines keep their data.
    pub analysis_data: Option<String>,
    pub points: PointTotals,
    /// Addresses, and why nothing was added there.
    pub refused: Vec<(String, String)>,
    pub bytes: u32,
    pub bytes_on_chip: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CounterNote {
    /// `block`, `taken` or `point`.
    pub what: String,
    /// The instruction.
    pub at: String,
    pub function: String,
    /// Where the counter is.
    pub counter: u32,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct PointTotals {
    pub jumps: usize,
    pub traps: usize,
    pub refused: usize,
}

/// Makes the instrumented program.
pub fn rewrite(path: &Path, tool: &Tool<'_>, tactics: Tactics) -> Result<(Vec<u8>, Notes), Error> {
    let program = Program::analyse(Arc::new(Image::open(path)?));
    let name = path.display().to_string();
    let mut wanted = Wanted::default();
    let mut analysis = None;
    match tool {
        Tool::Count => wanted.count_everything(&program),
        Tool::Points { file, object } => {
            let text = std::fs::read_to_string(file)
                .map_err(|cause| Error::File { path: file.display().to_string(), cause })?;
            let wrong = |what| Error::Points { path: file.display().to_string(), what };
            let rules = points::parse(&text).map_err(wrong)?;
            let routines = wanted.rules(&program, &rules);
            let switched = rules.iter().any(|rule| rule.wish == Wish::On);
            analysis = match object {
                Some(object) => {
                    let mut opened = Analysis::open(object, &routines)?;
                    opened.starts_on = !switched;
                    Some(opened)
                }
                None if routines.is_empty() && !switched => None,
                None => return Err(wrong("it calls routines, but there is no object".to_owned())),
            };
        }
    }
    let payload: &dyn Payload = analysis.as_ref().map_or(&NoPayload, |analysis| analysis);
    let order = Order {
        points: &wanted.points,
        counters: wanted.counters.len() as u32,
        payload,
        start: None,
        environment: Environment::guess(&program),
        tactics,
    };
    let (edited, file) = edit(&program, &name, &order)?;
    let notes = notes(&program, name, wanted, &edited, analysis.is_some());
    Ok((file, notes))
}

/// The program with what was ordered, as a file.
pub fn edit(program: &Program, name: &str, order: &Order<'_>) -> Result<(Edited, Vec<u8>), Error> {
    let edited = lancet_engine::layout::inplace::edit(program, order)
        .map_err(|cause| Error::InPlace { program: name.to_owned(), cause })?;
    let (file, _) = elf_writer::write_to_vec(program.image(), &edited.patch)
        .map_err(|cause| Error::Unwritten { program: name.to_owned(), cause: cause.to_string() })?;
    Ok((edited, file))
}

/// The name of the function that an address is in.
pub fn function_at(program: &Program, at: u32) -> String {
    let func = program.func_at(Svma(at.into()));
    func.map_or_else(String::new, |id| names::of_function(program, program.func(id)))
}

/// Points, and what their counters are for.
#[derive(Default)]
struct Wanted {
    points: Vec<(Place, Deed)>,
    counters: Vec<(&'static str, Place)>,
}

impl Wanted {
    fn count(&mut self, what: &'static str, place: Place) {
        self.points.push((place, Deed::Count(self.counters.len() as u32)));
        self.counters.push((what, place));
    }

    fn count_everything(&mut self, program: &Program) {
        let mut seen = BTreeMap::new();
        for block in program.funcs().iter().flat_map(|func| func.blocks.iter()) {
            let last = program.insns(block).last().map(|insn| insn.at);
            seen.insert(block.start.0 as u32, last.map_or(0, |at| at.0 as u32));
        }
        for (start, last) in seen {
            self.count("block", Place::Before(start));
            let bytes = program.image().bytes_from(Svma(last.into())).unwrap_or_default();
            if decode(bytes, last).is_ok_and(|insn| matches!(insn.op, Op::Branch { .. })) {
                self.count("taken", Place::Taken(last));
            }
        }
    }

    /// What the rules ask for. Returns the routines that they call, by number.
    fn rules(&mut self, program: &Program, rules: &[points::Rule]) -> Vec<String> {
        let switched = rules.iter().any(|rule| matches!(rule.wish, Wish::On | Wish::Off));
        let mut routines: Vec<String> = Vec::new();
        for rule in rules {
            for at in rule.places(program) {
                let place = if rule.after { Place::After(at) } else { Place::Before(at) };
                let number = self.points.len() as u32;
                match &rule.wish {
                    Wish::Count => self.count("point", place),
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
        routines
    }
}

fn notes(program: &Program, name: String, wanted: Wanted, edited: &Edited, analysis: bool) -> Notes {
    let refused: BTreeMap<Place, String> =
        edited.refused.iter().map(|(place, why)| (*place, why.to_string())).collect();
    let served = wanted.counters.iter().enumerate().filter(|(_, (_, place))| !refused.contains_key(place));
    let counters = served.map(|(i, (what, place))| CounterNote {
        what: (*what).to_owned(),
        at: format!("{:#x}", place.at()),
        function: function_at(program, place.at()),
        counter: edited.counters_at + 8 * i as u32,
    });
    let by = |tactic| edited.placed.iter().filter(|placed| placed.tactic == tactic).count();
    Notes {
        program: name,
        counters: counters.collect(),
        analysis_data: analysis.then(|| format!("{:#x}", edited.payload_data_at)),
        points: PointTotals { jumps: by(Tactic::Jump), traps: by(Tactic::Trap), refused: edited.refused.len() },
        refused: refused.into_iter().map(|(place, why)| (format!("{:#x}", place.at()), why)).collect(),
        bytes: edited.bytes,
        bytes_on_chip: edited.bytes_on_chip,
    }
}

impl Notes {
    /// What was done, in a few lines; with `explain`, every refusal.
    pub fn write_text(&self, explain: bool, out: &mut dyn Write) -> io::Result<()> {
        let PointTotals { jumps, traps, refused } = self.points;
        writeln!(
            out,
            "{jumps} points by jumps (about 10 cycles a block), {traps} by traps (about 150 cycles a point)"
        )?;
        writeln!(out, "{} bytes added, {} of them in on-chip memory", self.bytes, self.bytes_on_chip)?;
        if refused > 0 {
            let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
            self.refused.iter().for_each(|(_, why)| *reasons.entry(why).or_default() += 1);
            writeln!(out, "{refused} points refused:")?;
            for (why, count) in reasons {
                writeln!(out, "  {count:>6}  {why}")?;
            }
        }
        if explain {
            for (at, why) in &self.refused {
                writeln!(out, "{at}: {why}")?;
            }
        }
        Ok(())
    }
}

/// A counter after a run.
#[derive(Clone, Debug, Serialize)]
pub struct Count<'n> {
    #[serde(flatten)]
    pub note: &'n CounterNote,
    pub count: u64,
}

/// Reads the counters out of a machine that has run the program.
pub fn report<'n>(notes: &'n Notes, simulator: &Simulator) -> Vec<Count<'n>> {
    let value = |note: &CounterNote| {
        let bytes = simulator.memory(note.counter, 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    notes.counters.iter().map(|note| Count { note, count: value(note) }).collect()
}
