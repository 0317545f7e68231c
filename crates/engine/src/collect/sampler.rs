//! Taking samples.
//!
//! On each CPU one ring collects what all events write there. A process's threads have one event on every CPU, because
//! only so can they pass it on to the threads and processes that they start. Records are sorted by time before they are
//! used: a mapping is often made on another CPU than the one where it is first sampled.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use lancet_sys::perf::{self, Event, Every, Record, Ring, Sampling, Watch};
use rustc_hash::FxHashMap;

use super::record::{self, Parsed, RawSample};
use super::recording::{Frame, Place, Recording, Sample, Thread};
use super::space::Spaces;
use super::{CollectError, EventName, Launch};
use crate::image::Process;

/// Whom to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A process with all its threads, and what they start.
    Process(u32),
    Cpu(u32),
    System,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub event: EventName,
    pub every: Every,
    /// Bytes of the stack in a sample; chains that reach further are cut.
    pub stack_bytes: u32,
}

/// Rings of this many pages if the kernel allows, else of less.
const MOST_PAGES: usize = 2048;
const LEAST_PAGES: usize = 16;
/// The reader is woken when so much waits, and looks by itself after a while.
const WAKE_BYTES: u32 = 512 * 1024;
const PATIENCE: Duration = Duration::from_millis(100);

pub struct Sampler {
    events: Vec<Event>,
    /// With the index of the event that it was mapped for.
    rings: Vec<(usize, Ring)>,
    spaces: Spaces,
    recording: Recording,
    threads: FxHashMap<(u32, u32), u32>,
    names: FxHashMap<(u32, u32), String>,
    started: Instant,
    batch: Batch,
}

/// Records of all rings, copied, to be sorted.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    records: Vec<Waiting>,
}

struct Waiting {
    time: u64,
    kind: u32,
    misc: u16,
    start: usize,
    len: usize,
}

impl Sampler {
    /// Begins to sample what runs.
    pub fn start(scope: Scope, options: &Options) -> Result<Sampler, CollectError> {
        let mut spaces = Spaces::default();
        let whom = match scope {
            Scope::Process(pid) => {
                spaces.insert(Process::open(pid)?);
                format!("process {pid}")
            }
            Scope::Cpu(cpu) => format!("CPU {cpu}"),
            Scope::System => "the system".into(),
        };
        let mut opening =
            Opening { options, whom, kernel: true, from_exec: false, events: Vec::new(), rings: Vec::new() };
        match scope {
            Scope::Process(pid) => opening.process(pid)?,
            Scope::Cpu(cpu) => {
                let online = online_cpus();
                if !online.contains(&cpu) {
                    let online = online.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                    return Err(CollectError::NoSuchCpu { cpu, online });
                }
                opening.open(None, cpu)?;
            }
            Scope::System => online_cpus().into_iter().try_for_each(|cpu| opening.open(None, cpu))?,
        }
        let sampler = opening.finish(spaces)?;
        for event in &sampler.events {
            event.enable().map_err(CollectError::Lost)?;
        }
        Ok(sampler)
    }

    /// Prepares to sample a program from its first instruction.
    pub fn launch(launch: &Launch, options: &Options) -> Result<Sampler, CollectError> {
        let pid = launch.pid();
        let mut spaces = Spaces::default();
        spaces.expect(pid);
        let whom = format!("process {pid}");
        let mut opening =
            Opening { options, whom, kernel: true, from_exec: true, events: Vec::new(), rings: Vec::new() };
        online_cpus().into_iter().try_for_each(|cpu| opening.open(Some(pid), cpu))?;
        opening.finish(spaces)
    }

    /// Waits for samples, at most a moment, and takes them in.
    pub fn take(&mut self) -> Result<(), CollectError> {
        self.take_within(PATIENCE)
    }

    /// As [`take`](Self::take), with a moment of one's own.
    pub fn take_within(&mut self, patience: Duration) -> Result<(), CollectError> {
        let waited: Vec<&Event> = self.rings.iter().map(|(event, _)| &self.events[*event]).collect();
        let before = Instant::now();
        perf::wait_for_any(&waited, patience).map_err(CollectError::Lost)?;
        // Events of a process that has ended are always ready.
        if before.elapsed() < Duration::from_millis(1) && self.rings_are_empty() {
            std::thread::sleep(patience.min(Duration::from_millis(20)));
        }
        self.drain();
        Ok(())
    }

    fn rings_are_empty(&self) -> bool {
        self.rings.iter().all(|(_, ring)| ring.is_empty())
    }

    /// What was recorded so far.
    pub fn recording(&mut self) -> &mut Recording {
        self.recording.elapsed = self.started.elapsed();
        self.recording.objects.clone_from(&self.spaces.objects.list);
        &mut self.recording
    }

    /// Ends sampling.
    pub fn finish(mut self) -> Result<Recording, CollectError> {
        for event in &self.events {
            event.disable().map_err(CollectError::Lost)?;
        }
        self.drain();
        self.recording();
        Ok(self.recording)
    }

    fn drain(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        batch.bytes.clear();
        batch.records.clear();
        for (_, ring) in &mut self.rings {
            ring.drain(|record| {
                let start = batch.bytes.len();
                batch.bytes.extend_from_slice(record.body);
                let time = record::time_of(&record);
                batch.records.push(Waiting {
                    time,
                    kind: record.kind,
                    misc: record.misc,
                    start,
                    len: record.body.len(),
                });
            });
        }
        batch.records.sort_by_key(|record| record.time);
        for waiting in &batch.records {
            let body = &batch.bytes[waiting.start..waiting.start + waiting.len];
            self.record(&Record { kind: waiting.kind, misc: waiting.misc, body });
        }
        self.batch = batch;
    }

    fn record(&mut self, record: &Record<'_>) {
        match record::parse(record) {
            Parsed::Sample(sample) => self.sample(&sample),
            Parsed::Mapped { pid, start, len, offset, path } => {
                self.spaces.mapped(pid, start, len, offset, Path::new(&*String::from_utf8_lossy(path)));
            }
            Parsed::Named { pid, tid, exec, name } => {
                if exec {
                    self.spaces.executed(pid);
                }
                let name = String::from_utf8_lossy(name).into_owned();
                if let Some(known) = self.threads.get(&(pid, tid)) {
                    self.recording.threads[*known as usize].name.clone_from(&name);
                }
                self.names.insert((pid, tid), name);
            }
            Parsed::Forked { pid, parent } => self.spaces.forked(pid, parent),
            Parsed::Exited { pid, tid } if pid == tid => self.spaces.ended(pid),
            Parsed::Lost(count) => self.recording.lost += count,
            Parsed::Exited { .. } | Parsed::Other => {}
        }
    }

    fn sample(&mut self, sample: &RawSample<'_>) {
        let mut chain: Vec<Place> = sample.kernel_addresses().map(Place::Kernel).collect();
        if let Some(user) = &sample.user {
            let (space, objects) = self.spaces.of(sample.pid);
            let mut addresses = Vec::new();
            space.unwinder(objects).chain(user, &mut addresses);
            chain.extend(addresses.iter().map(|at| space.place(*at)));
        }
        if chain.is_empty() {
            chain.push(Place::Unknown(sample.ip));
        }
        let Some(stack) = self.recording.stack_of(chain.into_iter().rev().map(|place| Frame { place })) else { return };
        let thread = self.thread(sample.pid, sample.tid);
        self.recording.samples.push(Sample { time: sample.time, thread, stack, weight: sample.period });
    }

    fn thread(&mut self, pid: u32, tid: u32) -> u32 {
        *self.threads.entry((pid, tid)).or_insert_with(|| {
            let comm = || fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
            let told = self.names.get(&(pid, tid)).or_else(|| self.names.get(&(pid, pid))).cloned();
            let name = told.unwrap_or_else(|| comm().trim_end().to_owned());
            self.recording.threads.push(Thread { pid, tid, name });
            self.recording.threads.len() as u32 - 1
        })
    }
}

/// Events and rings as they are opened.
struct Opening<'a> {
    options: &'a Options,
    whom: String,
    /// Try to see the kernel too, until it refuses.
    kernel: bool,
    from_exec: bool,
    events: Vec<Event>,
    rings: Vec<(u32, usize, Ring)>,
}

impl Opening<'_> {
    /// All threads, until no new ones appear. Those that start later inherit.
    fn process(&mut self, pid: u32) -> Result<(), CollectError> {
        let mut known = Vec::new();
        loop {
            let threads = threads_of(pid);
            let new: Vec<u32> = threads.into_iter().filter(|thread| !known.contains(thread)).collect();
            if new.is_empty() {
                return Ok(());
            }
            for thread in new {
                known.push(thread);
                for cpu in online_cpus() {
                    match self.open(Some(thread), cpu) {
                        // It ended meanwhile.
                        Err(CollectError::Refused { cause, .. })
                            if cause.raw_os_error() == Some(NO_SUCH_PROCESS) && thread != pid => {}
                        other => other?,
                    }
                }
            }
        }
    }

    fn open(&mut self, thread: Option<u32>, cpu: u32) -> Result<(), CollectError> {
        let event = self.event(thread, cpu)?;
        match self.rings.iter().find(|(of, ..)| *of == cpu) {
            Some((_, owner, _)) => event.share_ring_of(&self.events[*owner]).map_err(CollectError::NoRing)?,
            None => {
                let ring = largest_ring(&event).map_err(CollectError::NoRing)?;
                self.rings.push((cpu, self.events.len(), ring));
            }
        }
        self.events.push(event);
        Ok(())
    }

    fn event(&mut self, thread: Option<u32>, cpu: u32) -> Result<Event, CollectError> {
        let sampling =
            Sampling { every: self.options.every, stack_bytes: self.options.stack_bytes & !7, wake_bytes: WAKE_BYTES };
        loop {
            let inherit = thread.is_some();
            let watch = Watch { thread, cpu: Some(cpu), inherit, kernel: self.kernel, from_exec: self.from_exec };
            match Event::sampler(self.options.event.code, watch, sampling) {
                Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied && self.kernel => self.kernel = false,
                Err(cause) => {
                    let (whom, event) = (self.whom.clone(), self.options.event.name.clone());
                    return Err(CollectError::Refused { whom, event, cause });
                }
                Ok(event) => return Ok(event),
            }
        }
    }

    fn finish(self, spaces: Spaces) -> Result<Sampler, CollectError> {
        Ok(Sampler {
            events: self.events,
            rings: self.rings.into_iter().map(|(_, event, ring)| (event, ring)).collect(),
            spaces,
            recording: Recording::new(self.options.event.clone(), self.kernel),
            threads: FxHashMap::default(),
            names: FxHashMap::default(),
            started: Instant::now(),
            batch: Batch::default(),
        })
    }
}

const NO_SUCH_PROCESS: i32 = 3;

/// Locked memory is limited for those without privileges.
fn largest_ring(event: &Event) -> io::Result<Ring> {
    let mut pages = MOST_PAGES;
    loop {
        match event.ring(pages) {
            Err(_) if pages > LEAST_PAGES => pages /= 2,
            result => return result,
        }
    }
}

pub(super) fn threads_of(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// `0-3,5` in `/sys/devices/system/cpu/online`.
pub(super) fn online_cpus() -> Vec<u32> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let mut cpus = Vec::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            cpus.extend(first..=last);
        }
    }
    if cpus.is_empty() { vec![0] } else { cpus }
}
