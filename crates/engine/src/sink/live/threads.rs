//! All threads of a process, stopped for a moment.
//!
//! Threads come and go, so they are listed again until no new one appears. A thread that was about to get a signal
//! keeps it. When a [`Stopped`] is dropped everything runs on, also if Lancet fails; if Lancet is killed, the kernel does
//! the same.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use lancet_isa::Avma;
use lancet_sys::priority::Urgent;
use lancet_sys::ptrace::{self, Status, Stop, Whereabouts};

use super::LiveError;

const NO_SUCH_PROCESS: i32 = 3;
const NOT_PERMITTED: i32 = 1;

/// One stopped thread. What is in its registers is asked only if it matters: everybody waits.
#[derive(Clone, Copy)]
pub struct StoppedThread {
    pub tid: u32,
    signal: Option<i32>,
    /// When it was asked to stop.
    since: Instant,
}

impl StoppedThread {
    /// Where it goes on; nowhere if it was killed meanwhile.
    pub fn ip(&self) -> Option<Avma> {
        ptrace::instruction_pointer(self.tid).ok().map(Avma)
    }

    /// The same, and where its stack is.
    pub fn whereabouts(&self) -> Option<Whereabouts> {
        ptrace::whereabouts(self.tid).ok()
    }

    /// The signal that it was about to get.
    pub fn signal(&self) -> Option<i32> {
        self.signal
    }
}

/// A process with all threads stopped. They run on when it is dropped.
pub struct Stopped {
    pid: u32,
    threads: Vec<StoppedThread>,
    _urgent: Urgent,
}

impl Stopped {
    pub fn all(pid: u32) -> Result<Stopped, LiveError> {
        let mut stopped = Stopped { pid, threads: Vec::new(), _urgent: Urgent::new() };
        let mut seized: Vec<u32> = Vec::new();
        loop {
            let new: Vec<u32> = threads_of(pid)?.into_iter().filter(|tid| !seized.contains(tid)).collect();
            if new.is_empty() {
                break;
            }
            // First all are seized, which stops none; then all stop together.
            let mut waiting = Vec::new();
            for tid in new {
                seized.push(tid);
                if seize(pid, tid)? {
                    waiting.push(tid);
                }
            }
            stopped.threads.reserve(waiting.len());
            let mut asked = Vec::with_capacity(waiting.len());
            for tid in waiting {
                let since = Instant::now();
                match ptrace::interrupt(tid) {
                    Ok(()) => asked.push((tid, since)),
                    Err(_) => reap(pid, &[tid]),
                }
            }
            for (tid, since) in asked {
                stopped.wait(tid, since)?;
            }
            // Every moment counts now: asking how many there are is cheaper than asking who.
            if count_threads(pid) == Some(stopped.threads.len()) {
                break;
            }
        }
        if stopped.threads.is_empty() {
            return Err(LiveError::Ended { pid });
        }
        Ok(stopped)
    }

    fn wait(&mut self, tid: u32, since: Instant) -> Result<(), LiveError> {
        let signal = match ptrace::wait(tid).map_err(self.failed("cannot wait for a thread"))? {
            Status::Gone => return Ok(()),
            Status::Stopped(Stop::Signal(signal)) => Some(signal),
            Status::Stopped(_) => None,
        };
        self.threads.push(StoppedThread { tid, signal, since });
        Ok(())
    }

    pub fn threads(&self) -> &[StoppedThread] {
        &self.threads
    }

    /// Lets a thread go on elsewhere. Takes effect at once.
    pub fn move_to(&mut self, index: usize, to: Avma) -> Result<(), LiveError> {
        ptrace::set_instruction_pointer(self.threads[index].tid, to.0).map_err(self.failed("cannot move a thread"))
    }

    /// Lets all run on, in the order in which they were stopped; how long one of them stood at most.
    pub fn release(mut self) -> Duration {
        self.detach()
    }

    fn detach(&mut self) -> Duration {
        let mut longest = Duration::ZERO;
        let mut killed = Vec::new();
        for thread in self.threads.drain(..) {
            match ptrace::detach(thread.tid, thread.signal) {
                Ok(()) => longest = longest.max(thread.since.elapsed()),
                Err(_) => killed.push(thread.tid),
            }
        }
        reap(self.pid, &killed);
        longest
    }

    fn failed(&self, what: &'static str) -> impl Fn(io::Error) -> LiveError + use<> {
        let pid = self.pid;
        move |cause| LiveError::System { pid, what: what.into(), cause }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.detach();
    }
}

/// Seizes a thread; `false` if it has ended.
pub(super) fn seize(pid: u32, tid: u32) -> Result<bool, LiveError> {
    seized(pid, tid, ptrace::seize(tid))
}

/// What an attempt to seize a thread came to.
pub(super) fn seized(pid: u32, tid: u32, result: io::Result<()>) -> Result<bool, LiveError> {
    match result {
        Ok(()) => Ok(true),
        Err(error) => match error.raw_os_error() {
            Some(NO_SUCH_PROCESS) => Ok(false),
            // A main thread that has ended while others run on.
            Some(NOT_PERMITTED) if is_dead(pid, tid) => Ok(false),
            Some(NOT_PERMITTED) => Err(LiveError::Refused { pid, why: crate::image::why_not_attached(pid) }),
            _ => Err(LiveError::System { pid, what: "cannot take control of it".into(), cause: error }),
        },
    }
}

/// Hears that threads under control have ended, which cannot be let go: as long as nobody does, their process cannot end.
pub(super) fn reap(pid: u32, tids: &[u32]) {
    for tid in tids.iter().filter(|tid| **tid != pid) {
        let _ = ptrace::wait(*tid);
    }
    // The main thread comes last, and not before those that Lancet does not know of.
    if tids.contains(&pid) {
        let _ = ptrace::poll(pid);
    }
}

pub(super) fn threads_of(pid: u32) -> Result<Vec<u32>, LiveError> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).map_err(|_| LiveError::Ended { pid })?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// How many threads a process has that have not ended: the folder of threads has a link for each, and two of its own.
fn count_threads(pid: u32) -> Option<usize> {
    let folder = fs::metadata(format!("/proc/{pid}/task")).ok()?;
    usize::try_from(folder.nlink()).ok()?.checked_sub(2)
}

fn is_dead(pid: u32, tid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, None | Some('Z' | 'X'))
}
