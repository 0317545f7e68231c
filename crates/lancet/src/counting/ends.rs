//! Where the threads of a program end, with everything that it starts.
//!
//! A fatal signal or SIGKILL ends a thread in the middle of a block, and the process cannot note that itself. The kernel
//! stops a traced thread once more before it ends, and then its registers tell where. So the program is traced from before
//! its first instruction, with all processes and threads that it makes; every other stop is passed on as it came:
//!
//! | stop | answer |
//! | --- | --- |
//! | a signal is to be delivered | it is delivered |
//! | the process was stopped by job control | it stays so, until it is continued |
//! | a new thread, process or program | it runs on |
//! | a thread is about to end | its place is noted, it ends |
//!
//! Tracing is the work of one operating system thread. When that ends, because the program did or with Lancet itself, the
//! kernel lets go of all that still run.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::mpsc;
use std::thread::JoinHandle;

use lancet_engine::image::{Image, file_at};

use lancet_isa::{Avma, FileOff, Svma};
use lancet_sys::ptrace::{self, Status, Stop};
use lancet_sys::spawn::{Held, Started};

/// Places in files, and how many threads ended there. A file may have several names: device and inode tell it.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Ends(BTreeMap<(u64, u64), BTreeMap<FileOff, u64>>);

impl Ends {
    fn add(&mut self, file: &Path, at: FileOff) {
        if let Some(file) = identity(file) {
            *self.0.entry(file).or_default().entry(at).or_default() += 1;
        }
    }

    /// Those in the code of an object, by its addresses.
    pub(crate) fn within(&self, object: &Image) -> BTreeMap<Svma, u64> {
        let ends = object.path().and_then(identity).and_then(|file| self.0.get(&file)).into_iter().flatten();
        ends.filter_map(|(at, times)| Some((address(object, *at)?, *times))).collect()
    }
}

fn identity(file: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(file).ok().map(|file| (file.dev(), file.ino()))
}

fn address(object: &Image, at: FileOff) -> Option<Svma> {
    let mut code = object.segments().iter().filter(|segment| segment.executable);
    let within = |offset: u64| at.0.checked_sub(offset);
    code.find_map(|segment| {
        let distance = within(segment.offset.0).filter(|distance| *distance < segment.file_size)?;
        Some(segment.svma + distance)
    })
}

/// How a program ended, and where its threads did.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    /// An error says why nothing is known of them.
    pub ends: io::Result<Ends>,
}

/// A program that runs and whose ends are watched.
#[derive(Debug)]
pub struct Watched {
    pid: u32,
    tracer: JoinHandle<io::Result<Ended>>,
}

impl Watched {
    /// Starts a program. If it may not be traced, it runs all the same.
    pub fn start(command: Command) -> io::Result<Watched> {
        let (tell, told) = mpsc::channel();
        let tracer = std::thread::spawn(move || {
            let held = Held::new(command)?;
            let pid = held.pid();
            let traced = ptrace::seize_with_family(pid);
            let started = held.let_go()?;
            // Nobody listens any more if Lancet is about to end.
            let _ = tell.send(pid);
            trace(pid, started, traced)
        });
        match told.recv() {
            Ok(pid) => Ok(Watched { pid, tracer }),
            // It ended before it could say so.
            Err(_) => Err(joined(tracer).err().unwrap_or_else(|| io::ErrorKind::Other.into())),
        }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for its end. An error says that it could not be run.
    pub fn wait(self) -> io::Result<Ended> {
        joined(self.tracer)
    }
}

fn joined(tracer: JoinHandle<io::Result<Ended>>) -> io::Result<Ended> {
    tracer.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

fn trace(pid: u32, started: Started, traced: io::Result<()>) -> io::Result<Ended> {
    let mut ends = Ends::default();
    loop {
        let told = match ptrace::wait_for_any() {
            Ok((thread, status)) if thread != pid || status != Status::Gone => (thread, status),
            over => {
                // If it never became its program, who started it waits for its end, and may have been faster.
                let mut child = started.result()?;
                over?;
                return Ok(Ended { status: child.wait()?, ends: traced.map(|()| ends) });
            }
        };
        // A thread may be killed while it is stopped: then it does not need the answer, and has more to tell.
        let _ = match told {
            (thread, Status::Gone) => ptrace::forget(thread),
            (thread, Status::Stopped(stop)) => match stop {
                Stop::Signal(signal) => ptrace::resume(thread, Some(signal)),
                Stop::Group => ptrace::listen(thread),
                Stop::Ending => {
                    note(thread, &mut ends);
                    ptrace::resume(thread, None)
                }
                Stop::NewProgram => {
                    // Not before: who starts a program that cannot be run waits for it, and would take that stop away.
                    ptrace::stop_at_end(thread).and_then(|()| ptrace::resume(thread, None))
                }
                Stop::Interrupted | Stop::SystemCall | Stop::NewThread | Stop::Event(_) => ptrace::resume(thread, None),
            },
        };
    }
}

fn note(thread: u32, ends: &mut Ends) {
    let place = ptrace::instruction_pointer(thread).ok().and_then(|at| file_at(thread, Avma(at)));
    if let Some((file, at)) = place {
        ends.add(&file, at);
    }
}
