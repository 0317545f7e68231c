//! All threads of a process, stopped for a moment.
//!
//! Threads come and go, so they are listed again until no new one appears. A thread that was about to get a signal
//! keeps it. When a [`Stopped`] is dropped everything runs on, also if Lancet fails; if Lancet is killed, the kernel does
//! the same.
//!
//! A thread may not be able to stop: the kernel lets one that waits for its child of vfork do nothing else, however long
//! that takes. All others would stand still with it, so they are let go soon, and it is tried again later.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use lancet_isa::Avma;
use lancet_sys::priority::Urgent;
use lancet_sys::ptrace::{self, Status, Stop, Whereabouts};
use lancet_sys::ticks::Ticks;

use super::stuck::{self, Patience, Stuck};
use super::{LiveError, sharers};

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
    _ticks: Ticks,
    _urgent: Urgent,
}

/// What came of an attempt to stop all threads, and to do something then.
pub(super) enum Attempt<T> {
    Done(T),
    /// One did not stop. All run on.
    Stuck(Stuck),
}

/// Stops all threads once and lets `work` have them. It runs in a thread of its own: when that ends, the kernel lets go
/// even of a thread that was asked to stop and has not done so.
pub(super) fn attempt<T: Send>(
    pid: u32,
    work: impl FnOnce(Stopped) -> Result<T, LiveError> + Send,
) -> Result<Attempt<T>, LiveError> {
    let in_control = || match Stopped::all(pid)? {
        Attempt::Done(stopped) => work(stopped).map(Attempt::Done),
        Attempt::Stuck(stuck) => Ok(Attempt::Stuck(stuck)),
    };
    let joined = std::thread::scope(|scope| {
        let spawned = std::thread::Builder::new().spawn_scoped(scope, in_control);
        spawned.map(std::thread::ScopedJoinHandle::join)
    });
    match joined {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(cause) => Err(LiveError::System { pid, what: "cannot start a thread that stops it".into(), cause }),
    }
}

/// The same, again and again for a while if a thread does not stop.
pub(super) fn with_all_stopped<T: Send>(
    pid: u32,
    mut work: impl FnMut(Stopped) -> Result<T, LiveError> + Send,
) -> Result<T, LiveError> {
    let mut patience = Patience::default();
    loop {
        match attempt(pid, &mut work)? {
            Attempt::Done(done) => return Ok(done),
            Attempt::Stuck(stuck) => patience.wait(stuck)?,
        }
    }
}

impl Stopped {
    fn all(pid: u32) -> Result<Attempt<Stopped>, LiveError> {
        let sharers = sharers::find(pid);
        let ticks = Ticks::new(stuck::TICK).map_err(|cause| LiveError::System {
            pid,
            what: "cannot set a timer for stopping it".into(),
            cause,
        })?;
        let mut stopped = Stopped { pid, threads: Vec::new(), _ticks: ticks, _urgent: Urgent::new() };
        let mut seized: Vec<u32> = Vec::new();
        let mut begun = None;
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
            let begun = *begun.get_or_insert_with(Instant::now);
            for (index, (tid, since)) in asked.iter().enumerate() {
                if !stopped.wait(*tid, *since, begun)? {
                    stopped.give_up(&asked[index + 1..]);
                    return Ok(Attempt::Stuck(Stuck { pid, tid: *tid }));
                }
            }
            // Every moment counts now: asking how many there are is cheaper than asking who.
            if count_threads(pid) == Some(stopped.threads.len()) {
                break;
            }
        }
        if stopped.threads.is_empty() {
            return Err(LiveError::Ended { pid });
        }
        sharers::refuse(pid, &sharers)?;
        Ok(Attempt::Done(stopped))
    }

    /// Waits for a thread that was asked to stop; `false` if it does not within the time that all may stand still.
    fn wait(&mut self, tid: u32, since: Instant, begun: Instant) -> Result<bool, LiveError> {
        let stuck = Stuck { pid: self.pid, tid };
        let waited = ptrace::wait_while(tid, || stuck.may_still_stop(begun.elapsed()));
        match waited.map_err(self.failed("cannot wait for a thread"))? {
            None => return Ok(false),
            Some(status) => self.take(tid, since, status),
        }
        Ok(true)
    }

    fn take(&mut self, tid: u32, since: Instant, status: Status) {
        let signal = match status {
            Status::Gone => return,
            Status::Stopped(Stop::Signal(signal)) => Some(signal),
            Status::Stopped(_) => None,
        };
        self.threads.push(StoppedThread { tid, signal, since });
    }

    /// Lets all run on that have stopped, also those that nobody has waited for yet. The kernel lets go of the others when
    /// this thread ends, and they do not stop then.
    fn give_up(mut self, asked: &[(u32, Instant)]) {
        for (tid, since) in asked {
            if let Ok(Some(status)) = ptrace::poll(*tid) {
                self.take(*tid, *since, status);
            }
        }
        self.release();
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
    matches!(state_of(pid, tid), None | Some('Z' | 'X'))
}

/// The kernel's letter for what a thread does.
pub(super) fn state_of(pid: u32, tid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
}
