//! Into a process that runs, and out again.
//!
//! ```text
//! reserve ──> write code ──> commit: stop all threads, check, move, write, let go ──> revert: the same with old bytes
//! room.rs     nobody is      threads.rs, below
//! call.rs     stopped
//! ```
//!
//! What must be true at every moment, so that Lancet may be killed at any of them:
//! - the journal knows of a change before it is made;
//! - code is complete before anything leads to it;
//! - a thread inside bytes that will change is first moved to a copy of them, which does the same whether the bytes have
//!   changed or not;
//! - each place is changed by one write, from bytes that work to bytes that work;
//! - new memory stays mapped for ever.
//!
//! Permissions are the kernel's: who may trace a process may change it.

mod call;
mod error;
mod interrupted;
mod journal;
mod memory;
mod room;
mod sharers;
mod spans;
mod stuck;
mod threads;
mod traps;

use std::ops::Range;
use std::time::{Duration, SystemTime};

use lancet_isa::Avma;

pub use error::LiveError;
pub use journal::{Entry, Region, State, Written};
pub use memory::Memory;
pub use traps::{Next, Observer, TRAP, TrapPoint};

use crate::image::{Process, start_time};
use interrupted::{Stacks, Top};
use journal::{Journal, Placed};
use spans::Spans;
use stuck::Patience;
use threads::{Attempt, StoppedThread, attempt};

/// A process that can be changed.
pub struct Target {
    pid: u32,
    memory: Memory,
    journal: Journal,
}

/// Reserved memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub code: Avma,
    pub data: Avma,
}

/// Bytes to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overwrite {
    pub at: Avma,
    /// What must stand there now.
    pub old: Vec<u8>,
    /// One instruction, or data: when it is taken back, no thread can be inside.
    pub new: Vec<u8>,
    /// Instructions begin from here on, at which no thread may be, and to which none may come back.
    pub shut_from: Option<Avma>,
    /// Where it leads, if it is a jump that only another one leads to.
    pub leads_on: Option<Avma>,
}

/// A change of a process.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// The command that asks for it.
    pub command: String,
    /// What it is about.
    pub subject: String,
    pub how: String,
    pub overwrites: Vec<Overwrite>,
    /// Where a thread goes on that stands at an instruction inside overwritten bytes.
    pub moves: Vec<(Avma, Avma)>,
}

/// What a change came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub id: u64,
    /// How long threads stood still.
    pub pause: Duration,
    pub threads: usize,
    /// Threads that had to be moved.
    pub moved: usize,
}

/// The first region; more follow if it is full.
const FIRST_CODE: u64 = 1 << 20;
const FIRST_DATA: u64 = 1 << 20;
/// Code begins at addresses that processors like.
const ALIGN: u64 = 64;
/// So often threads are let go that stand where nothing may stand.
const MOST_TRIES: usize = 200;

impl Target {
    pub fn open(pid: u32) -> Result<Target, LiveError> {
        // Refuses what is no process of ours, and 32-bit programs.
        Process::open(pid)?;
        let started = start_time(pid)?;
        let mut target = Target { pid, memory: Memory::open(pid)?, journal: Journal::lock(pid, &started)? };
        room::forget_other_program(pid, &mut target.journal.content)?;
        room::settle(pid, &target.memory, &mut target.journal)?;
        Ok(target)
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Changes that are in force, or may be.
    pub fn patches(&self) -> &[Entry] {
        &self.journal.content.patches
    }

    pub fn regions(&self) -> &[Region] {
        &self.journal.content.regions
    }

    /// Memory for code and data within reach of `near`. Nothing leads there yet.
    pub fn reserve(&mut self, near: Avma, code: u64, data: u64) -> Result<Room, LiveError> {
        const REACH: u64 = 1 << 31;
        let fits = |region: &Region| {
            let end = region.start + region.code + region.data;
            let far = near.0.abs_diff(region.start).max(near.0.abs_diff(end));
            far < REACH - (64 << 20)
                && region.code - region.code_used >= code.saturating_add(ALIGN)
                && region.data - region.data_used >= data.saturating_add(ALIGN)
        };
        let region = match self.journal.content.regions.iter().position(fits) {
            Some(index) => &mut self.journal.content.regions[index],
            None => {
                let (code, data) =
                    (code.saturating_add(ALIGN).max(FIRST_CODE), data.saturating_add(ALIGN).max(FIRST_DATA));
                room::make(self.pid, &self.memory, &mut self.journal, near, code, data)?
            }
        };
        let room = Room {
            code: Avma(region.start + region.code_used),
            data: Avma(region.start + region.code + region.data_used),
        };
        region.code_used += code.next_multiple_of(ALIGN);
        region.data_used += data.next_multiple_of(ALIGN);
        self.journal.save()?;
        Ok(room)
    }

    /// Memory of its own with the page layout of a loaded object: `code` bytes, then `data` bytes.
    pub fn reserve_apart(&mut self, near: Avma, code: u64, data: u64) -> Result<Room, LiveError> {
        let region = room::make(self.pid, &self.memory, &mut self.journal, near, code, data)?;
        (region.code_used, region.data_used) = (region.code, region.data);
        let room = Room { code: Avma(region.start), data: Avma(region.start + region.code) };
        self.journal.save()?;
        Ok(room)
    }

    /// Code that was placed before under the same name, with its length.
    pub fn placed(&self, key: &str) -> Option<(Avma, u64)> {
        let placed = self.journal.content.placed.iter().find(|placed| placed.key == key)?;
        Some((Avma(placed.at), placed.len))
    }

    /// Remembers placed code by a name, so that it is not placed twice.
    pub fn remember(&mut self, key: String, at: Avma, len: u64) -> Result<(), LiveError> {
        self.journal.content.placed.push(Placed { key, at: at.0, len });
        self.journal.save()
    }

    /// Makes a change, with all threads stopped.
    pub fn commit(&mut self, change: Change) -> Result<Receipt, LiveError> {
        let id = self.journal.content.next_id;
        let written = |o: &Overwrite| Written {
            at: o.at.0,
            old: o.old.clone(),
            new: o.new.clone(),
            leads_on: o.leads_on.map(|to| to.0),
        };
        let writes: Vec<Written> = change.overwrites.iter().map(written).collect();
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let shut = change.overwrites.iter();
        let shut = shut.filter_map(|o| o.shut_from.map(|from| from.0..o.at.0 + o.new.len() as u64));
        let mut shut: Vec<Range<u64>> = shut.collect();
        shut.sort_by_key(|range| range.start);
        let Change { command, subject, how, moves, .. } = change;
        Spans::new(&writes, false, |_| false).check(&self.memory)?;
        self.journal.content.next_id += 1;
        let state = State::Writing;
        self.journal.content.patches.push(Entry { id, state, command, subject, how, time, writes: writes.clone() });
        self.journal.save()?;
        match self.write_all(&writes, false, &shut, &moves) {
            Ok((pause, threads, moved)) => {
                if let Some(entry) = self.journal.content.patches.last_mut() {
                    entry.state = State::Applied;
                }
                self.journal.save()?;
                Ok(Receipt { id, pause, threads, moved })
            }
            Err(error) => {
                self.journal.content.patches.pop();
                self.journal.save()?;
                Err(error)
            }
        }
    }

    /// Takes a change back.
    pub fn revert(&mut self, id: u64) -> Result<Receipt, LiveError> {
        let patches = &self.journal.content.patches;
        let pid = self.pid;
        let index = patches.iter().position(|entry| entry.id == id).ok_or(LiveError::NoSuchPatch { pid, id })?;
        let entry = patches[index].clone();
        if let Some(above) = patches[index + 1..].iter().find(|later| overlap(&entry, later)) {
            return Err(LiveError::Covered { pid, id, above: above.id });
        }
        // What was never written needs no undoing.
        let mut writes = Vec::new();
        for write in entry.writes {
            let found = self.memory.read(Avma(write.at), write.old.len() as u64)?;
            if found == write.new {
                writes.push(write);
            } else if found != write.old {
                return Err(changed(pid, &write, &found, &write.new));
            }
        }
        let (pause, threads, moved) = match writes.is_empty() {
            true => (Duration::ZERO, 0, 0),
            false => {
                let ways: Vec<(u64, u64)> =
                    writes.iter().filter_map(|write| Some((write.at, write.leads_on?))).collect();
                let mut shut: Vec<Range<u64>> = ways.iter().map(|(at, _)| *at..at + 1).collect();
                shut.sort_by_key(|range| range.start);
                let moves: Vec<(Avma, Avma)> = ways.iter().map(|(at, to)| (Avma(*at), Avma(*to))).collect();
                self.write_all(&writes, true, &shut, &moves)?
            }
        };
        self.journal.content.patches.remove(index);
        self.journal.save()?;
        Ok(Receipt { id, pause, threads, moved })
    }

    /// Writes all, with all threads stopped and none in a place that is shut; some are moved away. `back` writes the old
    /// bytes.
    fn write_all(
        &self,
        writes: &[Written],
        back: bool,
        shut: &[Range<u64>],
        moves: &[(Avma, Avma)],
    ) -> Result<(Duration, usize, usize), LiveError> {
        let mut inside = Avma(0);
        let mut patience = Patience::default();
        for _ in 0..MOST_TRIES {
            // What can be found out before anybody is stopped is.
            let mut stacks = Stacks::prepare(self.pid)?;
            let code: Vec<_> = stacks.mapped().iter().filter(|mapping| mapping.executable).cloned().collect();
            let is_code = |at| code.iter().any(|mapping| mapping.range.contains(&Avma(at)));
            let spans = Spans::new(writes, back, is_code);
            let tried = attempt(self.pid, |mut stopped| {
                let to_move = match self.to_move(stopped.threads(), shut, moves, &mut stacks) {
                    Ok(to_move) => to_move,
                    Err(ip) => return Ok(Err(ip)),
                };
                let ready = spans.check(&self.memory)?;
                for (index, to) in &to_move {
                    stopped.move_to(*index, *to)?;
                }
                ready.write(&self.memory)?;
                let threads = stopped.threads().len();
                Ok(Ok((stopped.release(), threads, to_move.len())))
            });
            match tried? {
                Attempt::Done(Ok(done)) => return Ok(done),
                Attempt::Done(Err(ip)) => {
                    inside = ip;
                    std::thread::sleep(Duration::from_micros(50));
                }
                Attempt::Stuck(stuck) => patience.wait(stuck)?,
            }
        }
        Err(LiveError::Busy { pid: self.pid, at: inside })
    }

    /// Threads in places that are shut, by their index, and where they shall go on; or where one is that cannot be moved.
    fn to_move(
        &self,
        threads: &[StoppedThread],
        shut: &[Range<u64>],
        moves: &[(Avma, Avma)],
        stacks: &mut Stacks,
    ) -> Result<Vec<(usize, Avma)>, Avma> {
        let mut to_move = Vec::new();
        if shut.is_empty() {
            // No instruction begins inside of what is written, so nobody can be there.
            return Ok(to_move);
        }
        let mut tops = Vec::with_capacity(threads.len());
        for (index, thread) in threads.iter().enumerate() {
            let Some(there) = thread.whereabouts() else { continue };
            let ip = Avma(there.instruction);
            tops.push(Top { at: there.stack, own: there.own });
            if is_in(shut, ip.0) {
                let (_, to) = moves.iter().find(|(from, _)| *from == ip).ok_or(ip)?;
                to_move.push((index, *to));
            }
        }
        match stacks.comes_back(&self.memory, &tops, |at| is_in(shut, at)) {
            Some(ip) => Err(ip),
            None => Ok(to_move),
        }
    }
}

/// The ranges are in order, and apart.
fn is_in(ranges: &[Range<u64>], at: u64) -> bool {
    let after = ranges.partition_point(|range| range.start <= at);
    after.checked_sub(1).is_some_and(|last| ranges[last].contains(&at))
}

/// What the journal says of a process, without touching the process.
pub fn status(pid: u32) -> Result<(Vec<Region>, Vec<Entry>), LiveError> {
    Process::open(pid)?;
    let mut content = Journal::read(pid, &start_time(pid)?)?.content;
    room::forget_other_program(pid, &mut content)?;
    if let Some(expected) = content.expected
        && room::is_there(pid, &expected)?
    {
        let journal::Expected { start, code, data } = expected;
        content.regions.push(Region { start, code, data, code_used: 0, data_used: 0 });
    }
    Ok((content.regions, content.patches))
}

fn overlap(a: &Entry, b: &Entry) -> bool {
    let meet = |x: &Written, y: &Written| x.at < y.at + y.new.len() as u64 && y.at < x.at + x.new.len() as u64;
    a.writes.iter().any(|x| b.writes.iter().any(|y| meet(x, y)))
}

fn changed(pid: u32, write: &Written, found: &[u8], expected: &[u8]) -> LiveError {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    LiveError::Changed { pid, at: Avma(write.at), found: hex(found), expected: hex(expected) }
}
