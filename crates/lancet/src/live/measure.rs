//! One function, call by call: time, instructions, cycles.
//!
//! Three things are put together: times of some calls, by [`stub`] or [`timed`](super::timed); exact instruction counts of other calls, by a clone
//! that counts its blocks; and the core's clock, calibrated against the time-stamp counter before, between and after.
//! Each costs nothing while another is taken. Where the machine counts cycles and instructions itself, instructions per
//! cycle come from these counters: both are sampled, and samples in the function are compared.

use std::time::{Duration, Instant};

use lancet_engine::collect::{EventName, Every};
use lancet_isa::{Avma, Svma};
use lancet_sys::clock;

use super::{BlockCounts, Change, Found, Live, Receipt, Room, entry, reach, stub};
use crate::Error;

/// What a function's calls came to.
#[derive(Clone, Debug)]
pub struct Measured {
    pub function: String,
    /// Nanoseconds of each call, in order, callees included.
    pub times: Vec<f64>,
    /// Instructions of a call, counted exactly: all, with those of what it calls.
    pub instructions: Total,
    /// Those of the function itself. The error says why they could not be counted.
    pub own_instructions: Total,
    /// Core cycles in a nanosecond.
    pub clock: f64,
    /// Nanoseconds below which a time means nothing: two readings of the clock that follow each other differ by less.
    pub resolution: f64,
    /// By the machine's own counters, where there are any.
    pub counters: Option<Counters>,
}

/// What was counted, or why nothing was.
type Total = Result<Counted, String>;

/// Samples of a function's own instructions, by the machine's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    pub cycles: u64,
    pub instructions: u64,
}

impl Counters {
    /// Both are sampled after the same number of events.
    pub fn ipc(self) -> Option<f64> {
        (self.cycles >= LEAST_SAMPLES).then(|| self.instructions as f64 / self.cycles as f64)
    }
}

/// So many instructions in so many calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    pub calls: u64,
    pub total: u64,
    /// Nothing but whole calls was counted. Else there may be some that were under way, or were left by a jump.
    pub whole: bool,
}

impl Counted {
    pub fn per_call(self) -> Result<f64, String> {
        match self.calls {
            0 => Err("no call while instructions were counted".into()),
            calls => Ok(self.total as f64 / calls as f64),
        }
    }
}

impl Measured {
    /// Core cycles of a typical call.
    pub fn cycles(&self) -> Option<f64> {
        self.median().map(|time| time * self.clock)
    }

    pub fn median(&self) -> Option<f64> {
        let mut sorted = self.times.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }

    /// Instructions per cycle by exact counts and the calibrated clock, or why that is not known. Times and counts are of
    /// different calls, so calls must be alike, or so many that their mean is known.
    pub fn ipc(&self) -> Result<f64, String> {
        let per_call = self.instructions.clone()?.per_call()?;
        let mut sorted = self.times.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |part: f64| sorted.get(((sorted.len() - 1) as f64 * part) as usize).copied().unwrap_or(0.0);
        if sorted.is_empty() || at(0.5) < LEAST_READINGS * self.resolution {
            return Err(format!("calls are too short for a clock that tells {:.0} ns apart", self.resolution));
        }
        if at(0.9) <= ALIKE * at(0.1) {
            return Ok(per_call / (at(0.5) * self.clock));
        }
        let count = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / count;
        let variance = sorted.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        if (variance / count).sqrt() > MOST_DOUBT * mean {
            return Err(format!("calls differ too much ({:.0} to {:.0} ns) for so few", at(0.1), at(0.9)));
        }
        Ok(per_call / (mean * self.clock))
    }
}

/// A time of fewer readings of the clock is mostly that of the readings.
const LEAST_READINGS: f64 = 10.0;
/// Calls are alike if of ten the second longest takes at most so many times what the second shortest takes.
const ALIKE: f64 = 1.2;
/// The standard error of a mean that is still a result.
const MOST_DOUBT: f64 = 0.05;
/// Fewer samples say nothing.
const LEAST_SAMPLES: u64 = 30;
/// A sample for so many cycles or instructions, for so long.
const EVENTS_EACH: u64 = 200_003;
const SAMPLED: Duration = Duration::from_millis(500);
/// At most so many calls are timed.
const MOST_CALLS: u64 = 65536;
const POLL: Duration = Duration::from_millis(2);

impl Live {
    /// Times `calls` calls of a function, and counts the instructions of others; waits for them at most `patience`, twice.
    pub fn measure(&mut self, found: Found, calls: u64, patience: Duration) -> Result<Measured, Error> {
        let mut clocks = vec![clock::cycles_per_tick()];
        let (begin, begin_ticks) = (Instant::now(), clock::ticks());
        let times = self.time_calls(found, calls.clamp(1, MOST_CALLS), patience)?;
        let ticks_per_ns = (clock::ticks() - begin_ticks) as f64 / begin.elapsed().as_nanos().max(1) as f64;
        clocks.push(clock::cycles_per_tick());
        let [own_instructions, instructions] = self.instructions_of_call(found, calls, patience)?;
        clocks.push(clock::cycles_per_tick());
        clocks.sort_by(f64::total_cmp);
        let function = self.name(found);
        if times.is_empty() {
            return Err(Error::NotCalled { pid: self.pid(), function, seconds: patience.as_secs_f64() });
        }
        let reading = clock::reading_ticks();
        let times = times.iter().map(|ticks| ticks.saturating_sub(reading) as f64 / ticks_per_ns).collect();
        let resolution = clock::step_ticks().max(reading) as f64 / ticks_per_ns;
        let counters = self.sample_counters(found)?;
        let clock = clocks[1] * ticks_per_ns;
        Ok(Measured { function, times, instructions, own_instructions, clock, resolution, counters })
    }

    /// Samples cycles and instructions, if the machine counts them.
    fn sample_counters(&self, found: Found) -> Result<Option<Counters>, Error> {
        let [Ok(cycles), Ok(instructions)] = ["cycles", "instructions"].map(EventName::parse) else { return Ok(None) };
        if !cycles.is_counted_here() || !instructions.is_counted_here() {
            return Ok(None);
        }
        let [cycles, instructions] = [cycles, instructions].map(|event| self.samples_in(found, event));
        Ok(Some(Counters { cycles: cycles?, instructions: instructions? }))
    }

    /// How many samples of an event fall into a function itself.
    pub(super) fn samples_in(&self, found: Found, event: EventName) -> Result<u64, Error> {
        let every = Every::Events(EVENTS_EACH);
        let recording = self.sample(SAMPLED, event, every)?;
        let (func, bias) = (self.func(found), self.object(found).bias);
        let is_inside = |at: Avma| func.parts.iter().any(|part| part.contains(Svma(at.0.wrapping_sub(bias))));
        Ok(self.addresses(&recording).filter(|at| is_inside(*at)).count() as u64)
    }

    fn time_calls(&mut self, found: Found, calls: u64, patience: Duration) -> Result<Vec<u64>, Error> {
        self.refuse_if_changed(found)?;
        let data = self.times_room(self.entry(found), calls)?;
        self.target.memory().write(data, &stub::fresh(calls))?;
        let receipt = match self.may_unwind(found) {
            true => self.time_in_clone(found, data)?,
            false => self.time_in_stub(found, data)?,
        };
        let until = Instant::now() + patience;
        let done = |live: &Live| Ok::<_, Error>(stub::count(&live.target.memory().read(data, stub::TIMES)?));
        while done(self)? < calls && Instant::now() < until {
            std::thread::sleep(POLL);
        }
        self.target.revert(receipt.id)?;
        let count = done(self)?.min(calls);
        let times = self.target.memory().read(data + stub::TIMES, count * 8)?;
        Ok(times.as_chunks::<8>().0.iter().map(|time| u64::from_le_bytes(*time)).collect())
    }

    /// Leads calls of a function through code that times them in the memory at `data`.
    fn time_in_stub(&mut self, found: Found, data: Avma) -> Result<Receipt, Error> {
        let entry = entry::Entry::of(self, found)?;
        let near = self.entry(found);
        let size = stub::MOST_CODE + entry.displaced_size();
        let code = self.lasting_room(format!("timing {near}"), near, size, 0)?.code;
        let timing = stub::timing(code, data);
        let displaced_at = code + timing.code.len() as u64;
        let cannot = || Error::NoJump {
            pid: self.pid(),
            function: self.name(found),
            why: "the code at its entry cannot run elsewhere".into(),
        };
        let (displaced, moves) = entry.displaced(displaced_at).ok_or_else(cannot)?;
        let memory = self.target.memory();
        memory.write(code, &timing.code)?;
        memory.write(displaced_at, &displaced)?;
        let change = Change {
            command: self.command.clone(),
            subject: self.name(found),
            how: "timing".into(),
            overwrites: vec![entry.jump(self.pid(), timing.entry)?],
            moves,
        };
        Ok(self.target.commit(change)?)
    }

    /// Memory for so many times; the same every time.
    fn times_room(&mut self, near: Avma, calls: u64) -> Result<Avma, Error> {
        Ok(self.lasting_room(format!("times {calls}"), near, 0, stub::data_size(calls))?.data)
    }

    /// Memory for code or data that is known by a name.
    fn lasting_room(&mut self, key: String, near: Avma, code: u64, data: u64) -> Result<Room, Error> {
        if let Some((at, _)) = self.target.placed(&key) {
            return Ok(Room { code: at, data: at });
        }
        let room = self.target.reserve(near, code, data)?;
        let (at, len) = if code > 0 { (room.code, code) } else { (room.data, data) };
        self.target.remember(key, at, len)?;
        Ok(room)
    }

    /// Instructions of the function itself, and of all that a call runs.
    fn instructions_of_call(&mut self, found: Found, calls: u64, patience: Duration) -> Result<[Total; 2], Error> {
        let why = match self.counted_together(found) {
            Ok(functions) => match self.counted(functions, calls, patience)? {
                [Err(why), _] => why,
                counted => return Ok(counted),
            },
            Err(why) => why,
        };
        let [own, _] = self.counted(vec![found], calls, patience)?;
        Ok([own, Err(why)])
    }

    /// What must be counted so that all is that a call runs, or why it cannot.
    fn counted_together(&self, found: Found) -> Result<Vec<Found>, String> {
        let program = &self.object(found).program;
        let ids = reach::reached(program, found.id)?;
        let functions: Vec<Found> = ids.into_iter().map(|id| Found { object: found.object, id }).collect();
        let unwound = functions.iter().find(|function| self.may_unwind(**function));
        match unwound {
            Some(function) if functions.len() > 1 => {
                Err(format!("exceptions may pass through {}, which calls others", self.name(*function)))
            }
            _ => Ok(functions),
        }
    }

    /// Counts in calls of the first function: its own instructions, and those of all of them.
    fn counted(&mut self, functions: Vec<Found>, calls: u64, patience: Duration) -> Result<[Total; 2], Error> {
        let first = functions[0];
        // Threads that were in it already come to the clone in the middle where exceptions may pass.
        let from_begin = !self.may_unwind(first);
        match self.count_within(functions, patience, calls) {
            Ok(counts) => {
                let instructions = |count: &BlockCounts| count.instructions(self.func(count.function));
                let whole = from_begin && counts[0].all_left(self.func(first));
                let counted = |total| Counted { calls: counts[0].calls(), total, whole };
                let (own, all) = (instructions(&counts[0]), counts.iter().map(instructions).sum());
                Ok([own, all].map(|total| Ok(counted(total))))
            }
            Err(Error::Layout { cause, .. }) => Ok([Err(cause.to_string()), Err(cause.to_string())]),
            Err(error @ (Error::NoJump { .. } | Error::AlreadyChanged { .. })) => {
                Ok([Err(error.to_string()), Err(error.to_string())])
            }
            Err(other) => Err(other),
        }
    }
}
