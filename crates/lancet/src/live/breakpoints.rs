//! Breakpoints: a closure runs whenever a thread of the process comes to a place, with its registers and its memory.
//!
//! ```no_run
//! use std::time::Duration;
//! use lancet::live::{Breakpoints, Live, Next, Place};
//!
//! # fn main() -> Result<(), lancet::Error> {
//! let mut live = Live::attach(1234)?;
//! let vecadd = live.function("vecadd")?;
//! let mut breakpoints = Breakpoints::default();
//! breakpoints.add(Place::Entry(vecadd), |hit| {
//!     println!("thread {}: n = {}", hit.thread, hit.registers.rcx);
//!     Next::Continue
//! });
//! live.run(&mut breakpoints, Duration::from_secs(1))?;
//! # Ok(())
//! # }
//! ```
//!
//! Two forms. A trap stops a thread at any instruction ([`lancet_engine::sink::live`] says how). Injected code at
//! entries, exits and edges needs no trap: the thread leaves its registers in memory, and waits there until the closure
//! has run ([`parked`](super::parked)); that is several times faster. Other threads run on in both.

use std::time::{Duration, Instant};

use lancet_engine::plan::{Argument, Plan, Point};
use lancet_engine::program::{EdgeId, ExitKind};
pub use lancet_engine::sink::live::Next;
use lancet_engine::sink::live::{LiveError, Memory, Observer, TRAP, TrapPoint};
use lancet_isa::{Avma, Svma};
use lancet_sys::ptrace::Registers;

use super::parked::Slot;
use super::{Change, Found, Live, Overwrite, entry};
use crate::Error;

/// Where a thread is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before this instruction, by a trap.
    At(Avma),
    /// Where a function begins, by injected code; and so the others.
    Entry(Found),
    /// Where a function returns, or goes on to another in its place.
    Exit(Found),
    /// Between two blocks of a function.
    Edge(Found, EdgeId),
}

/// A thread at a breakpoint.
pub struct Hit<'m> {
    pub thread: u32,
    pub at: Avma,
    /// Changes take effect. With injected code there are only general registers and flags, of which the stack pointer and
    /// the instruction pointer cannot be changed.
    pub registers: Registers,
    memory: &'m Memory,
}

impl Hit<'_> {
    pub fn read(&self, at: Avma, len: u64) -> Result<Vec<u8>, Error> {
        Ok(self.memory.read(at, len)?)
    }

    pub fn write(&self, at: Avma, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.memory.write(at, bytes)?)
    }
}

type Callback<'c> = Box<dyn FnMut(&mut Hit<'_>) -> Next + 'c>;

/// Places, and what to do there.
#[derive(Default)]
pub struct Breakpoints<'c>(Vec<(Place, Callback<'c>)>);

impl<'c> Breakpoints<'c> {
    pub fn add(&mut self, place: Place, callback: impl FnMut(&mut Hit<'_>) -> Next + 'c) {
        self.0.push((place, Box::new(callback)));
    }
}

/// A place of injected code: whose it is, and where.
#[derive(Clone, Copy)]
struct Injected {
    breakpoint: usize,
    at: Avma,
}

impl Live {
    /// Sets the breakpoints, runs their closures until one says that it is enough or for a time, and takes everything
    /// back. How many times they ran.
    pub fn run(&mut self, breakpoints: &mut Breakpoints<'_>, time: Duration) -> Result<u64, Error> {
        let places: Vec<Place> = breakpoints.0.iter().map(|(place, _)| *place).collect();
        let mut set = Set::default();
        let ran = self.set_traps(&places, &mut set).and_then(|()| self.inject(&places, &mut set)).and_then(|()| {
            let memory = self.target.memory();
            let mut looking = Looking { set: &set, breakpoints, memory, looks: 0 };
            let traps: Vec<TrapPoint> = set.traps.iter().map(|(point, _)| *point).collect();
            let trapped = self.target.watch(&traps, Instant::now() + time, &mut looking)?;
            Ok(trapped + looking.looks)
        });
        let taken_back = self.take_back(&set);
        let ran = ran?;
        taken_back.map(|()| ran)
    }

    fn set_traps(&mut self, places: &[Place], set: &mut Set) -> Result<(), Error> {
        let mut overwrites = Vec::new();
        for (breakpoint, place) in places.iter().enumerate() {
            let Place::At(at) = *place else { continue };
            let found = self.function_at(at)?;
            let stated = Svma(at.0.wrapping_sub(self.object(found).bias));
            let one = entry::Entry::of_instruction(self, found, stated)?;
            let copy = self.insert_copy(&one, at)?;
            set.traps.push((TrapPoint { at, copy }, breakpoint));
            let old = self.target.memory().read(at, 1)?;
            overwrites.push(Overwrite { at, old, new: vec![TRAP], shut_from: None, leads_on: None });
        }
        if overwrites.is_empty() {
            return Ok(());
        }
        let traps: Vec<TrapPoint> = set.traps.iter().map(|(point, _)| *point).collect();
        self.target.guard_traps(&traps)?;
        let (command, subject) = (self.command.clone(), "breakpoints".into());
        let change = Change { command, subject, how: "trap".into(), overwrites, moves: Vec::new() };
        set.patches.push(self.target.commit(change)?.id);
        Ok(())
    }

    fn insert_copy(&mut self, one: &entry::Entry, at: Avma) -> Result<Avma, Error> {
        let copy = self.target.reserve(at, one.displaced_size(), 0)?.code;
        let (code, _) = one.displaced(copy).ok_or_else(|| Error::NoJump {
            pid: self.pid(),
            function: at.to_string(),
            why: "the instruction cannot run elsewhere".into(),
        })?;
        self.target.memory().write(copy, &code)?;
        Ok(copy)
    }

    fn inject(&mut self, places: &[Place], set: &mut Set) -> Result<(), Error> {
        let mut functions: Vec<Found> = Vec::new();
        for found in places.iter().filter_map(|place| place.function()) {
            if !functions.contains(&found) {
                functions.push(found);
            }
        }
        let Some(first) = functions.first() else { return Ok(()) };
        let near = self.entry(*first);
        let slot = Slot::new(self.target.reserve(near, 0, Slot::SIZE)?.data);
        slot.open(self.target.memory())?;
        set.slot = Some(slot);
        for found in functions {
            self.refuse_if_changed(found)?;
            let mut plan = Plan::new();
            plan.set_payload(Slot::payload());
            let begin = set.injected.len();
            for (breakpoint, place) in places.iter().enumerate().filter(|(_, place)| place.function() == Some(found)) {
                for (point, at) in self.points(*place) {
                    let index = set.injected.len() as u64;
                    set.injected.push(Injected { breakpoint, at });
                    let call = plan.call("", &[Argument::Number(slot.at.0), Argument::Number(index)])?;
                    plan.edit(found.id).call(point, call);
                }
            }
            let what = format!("breakpoints {} {begin} {places:?}", slot.at);
            let room = self.clones_room(&[found], &plan, &what, 0)?;
            set.patches.push(self.lead_to_clones(&[found], 1, &plan, room, "breakpoint")?.id);
        }
        Ok(())
    }

    /// Where in the control flow a place is.
    fn points(&self, place: Place) -> Vec<(Point, Avma)> {
        let Some(found) = place.function() else { return Vec::new() };
        let (func, bias) = (self.func(found), self.object(found).bias);
        let actual = |at: Svma| Avma(at.0.wrapping_add(bias));
        match place {
            Place::At(_) => Vec::new(),
            Place::Entry(_) => vec![(Point::Entry(0), actual(func.entry))],
            Place::Exit(_) => {
                let leaves = |kind: &ExitKind| matches!(kind, ExitKind::Return | ExitKind::TailCall(_));
                let exits = func.exits.iter().enumerate().filter(|(_, exit)| leaves(&exit.kind));
                exits.map(|(i, exit)| (Point::Exit(i as u32), actual(func.block(exit.from).start))).collect()
            }
            Place::Edge(_, edge) => {
                let to = func.edges.get(edge.0 as usize).map(|edge| actual(func.block(edge.to).start));
                to.into_iter().map(|to| (Point::Edge(edge), to)).collect()
            }
        }
    }

    fn take_back(&mut self, set: &Set) -> Result<(), Error> {
        if let Some(slot) = set.slot {
            slot.close(self.target.memory())?;
        }
        for id in set.patches.iter().rev() {
            self.target.revert(*id)?;
        }
        if !set.traps.is_empty() {
            self.target.unguard_traps()?;
        }
        Ok(())
    }
}

impl Place {
    /// Whose code is injected for it.
    fn function(self) -> Option<Found> {
        match self {
            Place::At(_) => None,
            Place::Entry(found) | Place::Exit(found) | Place::Edge(found, _) => Some(found),
        }
    }
}

/// What was done to the process.
#[derive(Default)]
struct Set {
    /// With the breakpoint that each is of.
    traps: Vec<(TrapPoint, usize)>,
    injected: Vec<Injected>,
    slot: Option<Slot>,
    patches: Vec<u64>,
}

struct Looking<'l, 'c> {
    set: &'l Set,
    breakpoints: &'l mut Breakpoints<'c>,
    memory: &'l Memory,
    /// At places of injected code.
    looks: u64,
}

impl Observer for Looking<'_, '_> {
    fn trapped(&mut self, point: usize, thread: u32, registers: &mut Registers) -> Next {
        let (point, breakpoint) = self.set.traps[point];
        let mut hit = Hit { thread, at: point.at, registers: *registers, memory: self.memory };
        let next = self.breakpoints.0[breakpoint].1(&mut hit);
        *registers = hit.registers;
        next
    }

    fn between(&mut self) -> Result<Option<Next>, LiveError> {
        let Some(slot) = self.set.slot else { return Ok(None) };
        let Some(parked) = slot.look(self.memory)? else { return Ok(None) };
        let Some(place) = self.set.injected.get(parked.place).copied() else { return Ok(None) };
        let registers = Registers { rip: place.at.0, ..parked.registers };
        let mut hit = Hit { thread: parked.thread, at: place.at, registers, memory: self.memory };
        let next = self.breakpoints.0[place.breakpoint].1(&mut hit);
        slot.answer(self.memory, &parked, &hit.registers)?;
        self.looks += 1;
        Ok(Some(next))
    }
}
