//! Traps in a process: threads that come to one stop, somebody looks at them, and they go on.
//!
//! ```text
//! at ─ trap ─> stopped: Lancet looks ─────────────────┐
//!         └──> nobody watches: handler of the signal ─┴─> copy of the instruction ─> behind `at`
//! ```
//!
//! A trap that nobody answers would kill the process, so before the first one is written the process gets a handler for
//! its signal, which leads the thread to the copy. Lancet may be killed at any moment, threads may start before Lancet
//! knows of them, and children inherit everything: all run on. No instruction is ever run by single steps.
//!
//! A stopped thread still has its signal, in case that Lancet is killed before it answers. So the thread is first led to
//! the copy, where the handler leaves it; only then may its signal be taken, and only then may it go elsewhere.

use std::time::{Duration, Instant};

use lancet_isa::Avma;
use lancet_sys::ptrace::{self, Registers, Status, Stop};

use super::call::Call;
use super::threads::{Stopped, StoppedThread, reap, seized, threads_of, with_all_stopped};
use super::{LiveError, Target, room};

/// An instruction that is a trap, and its copy elsewhere, which goes on behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrapPoint {
    pub at: Avma,
    pub copy: Avma,
}

pub const TRAP: u8 = 0xcc;
const TRAP_SIGNAL: i32 = 5;
const SYS_SIGNAL_ACTION: u64 = 13;
const SIGNAL_SET_BYTES: u64 = 8;
/// `SA_SIGINFO`, `SA_RESTORER`, `SA_ONSTACK`, `SA_RESTART`, `SA_NODEFER`.
const ACTION_FLAGS: u64 = 0x4 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x4000_0000;
const MOST_TRIES: usize = 200;
/// After a trap the next one is looked for at once for a while, then now and then.
const KEEN: Duration = Duration::from_micros(200);
const NAP: Duration = Duration::from_micros(100);

/// The handler: looks the trap up in the table behind it, and changes where the thread goes on.
const HANDLER: [u8; 0x38] = [
    0x48, 0x8b, 0x82, 0xa8, 0, 0, 0, // mov rax, [rdx + 168]: behind the trap
    0x48, 0x8d, 0x0d, 0x4a, 0, 0, 0, // lea rcx, [table]
    0x48, 0x8b, 0x31, // next: mov rsi, [rcx]
    0x48, 0x85, 0xf6, 0x74, 0x0b, // test rsi, rsi; jz none
    0x48, 0x39, 0xc6, 0x74, 0x08, // cmp rsi, rax; je found
    0x48, 0x83, 0xc1, 0x10, 0xeb, 0xed, // add rcx, 16; jmp next
    0x0f, 0x0b, // none: ud2, since a trap of the program's own would end it, too
    0x48, 0x8b, 0x49, 0x08, // found: mov rcx, [rcx + 8]
    0x48, 0x89, 0x8a, 0xa8, 0, 0, 0, 0xc3, // mov [rdx + 168], rcx; ret
    0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05, // restorer: mov eax, 15; syscall
    0x66, 0x90,
];
const RESTORER: u64 = 0x2f;
const ACTION: u64 = HANDLER.len() as u64;

/// The handler at `at`, what the kernel wants to know of it, and its table.
fn guard(at: Avma, points: &[TrapPoint]) -> Vec<u8> {
    let mut code = HANDLER.to_vec();
    for word in [at.0, ACTION_FLAGS, at.0 + RESTORER, 0] {
        code.extend(word.to_le_bytes());
    }
    for point in points {
        // The second is for threads that were led there already.
        for from in [point.at.0 + 1, point.copy.0] {
            code.extend(from.to_le_bytes());
            code.extend(point.copy.0.to_le_bytes());
        }
    }
    code.extend([0; 8]);
    code
}

/// What a look at a stopped thread decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Continue,
    /// No more looks: the traps are taken away.
    Stop,
}

/// Whoever looks at stopped threads.
pub trait Observer {
    /// A thread has come to a point, given by its index. Changes of its registers take effect.
    fn trapped(&mut self, point: usize, thread: u32, registers: &mut Registers) -> Next;

    /// Nobody is stopped at this moment. What it decides, if there was something to do.
    fn between(&mut self) -> Result<Option<Next>, LiveError>;
}

impl Target {
    /// Gives the process a handler that answers traps at the points when nobody watches.
    pub fn guard_traps(&mut self, points: &[TrapPoint]) -> Result<(), LiveError> {
        let (pid, Some(first)) = (self.pid, points.first()) else { return Ok(()) };
        if has_handler(pid)? && self.placed("trap handler").is_none() {
            let why = "it handles SIGTRAP itself, which breakpoints need".into();
            return Err(LiveError::Refused { pid, why });
        }
        let size = guard(Avma(0), points).len() as u64;
        let at = self.reserve(first.at, size, 0)?.code;
        self.memory.write(at, &guard(at, points))?;
        self.remember("trap handler".into(), at, size)?;
        self.set_action(at.0 + ACTION)
    }

    /// Takes the handler away, once no thread can need it: there are no traps any more.
    pub fn unguard_traps(&mut self) -> Result<(), LiveError> {
        for _ in 0..MOST_TRIES {
            let waits =
                |thread: &StoppedThread| thread.signal() == Some(TRAP_SIGNAL) || is_pending(self.pid, thread.tid);
            if !with_all_stopped(self.pid, |stopped: Stopped| Ok(stopped.threads().iter().any(waits)))? {
                // The default action is what a structure of zeros says, and the table ends in one.
                let Some((at, _)) = self.placed("trap handler") else { return Ok(()) };
                let zeros = self.reserve(at, SIGNAL_SET_BYTES * 4, 0)?.code;
                return self.set_action(zeros.0);
            }
            std::thread::sleep(NAP);
        }
        Ok(())
    }

    fn set_action(&self, action: u64) -> Result<(), LiveError> {
        let call = Call {
            number: SYS_SIGNAL_ACTION,
            arguments: [TRAP_SIGNAL.unsigned_abs().into(), action, 0, SIGNAL_SET_BYTES, 0, 0],
        };
        let result = room::caller(self.pid, &self.memory)?.call(&call)?;
        room::check(self.pid, "its handler of SIGTRAP cannot be set", result)
    }

    /// Shows every thread that comes to one of the points, until a moment. How many there were.
    pub fn watch(&self, points: &[TrapPoint], until: Instant, observer: &mut dyn Observer) -> Result<u64, LiveError> {
        let mut watch = Watch { pid: self.pid, points, threads: Vec::new(), looks: 0 };
        if !points.is_empty() {
            watch.add_threads()?;
        }
        let mut keen_until = Instant::now();
        while Instant::now() < until && (points.is_empty() || !watch.threads.is_empty()) {
            let step = match watch.step(observer)? {
                Step::Nothing => observer.between()?.map_or(Step::Nothing, Step::Looked),
                step => step,
            };
            match step {
                Step::Nothing if Instant::now() < keen_until => std::hint::spin_loop(),
                Step::Nothing => std::thread::sleep(NAP),
                Step::Looked(Next::Stop) => break,
                Step::Looked(Next::Continue) => keen_until = Instant::now() + KEEN,
            }
        }
        Ok(watch.looks)
    }
}

/// The process handles the signal.
fn has_handler(pid: u32) -> Result<bool, LiveError> {
    has_trap_signal(&format!("/proc/{pid}/status"), "SigCgt:").ok_or(LiveError::Ended { pid })
}

/// A trap that the thread has run into has not been told to anybody yet. A thread may stop before that.
fn is_pending(pid: u32, tid: u32) -> bool {
    has_trap_signal(&format!("/proc/{pid}/task/{tid}/status"), "SigPnd:").unwrap_or(false)
}

/// Is the signal in one of the sets that the kernel shows in a file?
fn has_trap_signal(path: &str, set: &str) -> Option<bool> {
    let status = std::fs::read_to_string(path).ok()?;
    let signals = status.lines().find_map(|line| line.strip_prefix(set)).map_or("0", str::trim);
    let signals = u64::from_str_radix(signals, 16).unwrap_or(0);
    Some(signals >> (TRAP_SIGNAL - 1) & 1 != 0)
}

enum Step {
    Nothing,
    Looked(Next),
}

/// Threads that are watched. They are let go when it is dropped.
struct Watch<'p> {
    pid: u32,
    points: &'p [TrapPoint],
    threads: Vec<u32>,
    looks: u64,
}

impl Watch<'_> {
    /// Takes control of threads that are not watched yet, until there are none.
    fn add_threads(&mut self) -> Result<(), LiveError> {
        loop {
            let new: Vec<u32> = threads_of(self.pid)?.into_iter().filter(|tid| !self.threads.contains(tid)).collect();
            let before = self.threads.len();
            for tid in new {
                let result = ptrace::seize_with_new_threads(tid);
                // One that a watched thread has made is under control already.
                if (result.is_err() && is_ours(self.pid, tid)) || seized(self.pid, tid, result)? {
                    self.threads.push(tid);
                }
            }
            if self.threads.len() == before {
                return Ok(());
            }
        }
    }

    /// Answers one stop, if there is one.
    fn step(&mut self, observer: &mut dyn Observer) -> Result<Step, LiveError> {
        for index in 0..self.threads.len() {
            let tid = self.threads[index];
            match ptrace::poll(tid).map_err(self.failed("cannot wait for a thread"))? {
                None => {}
                Some(Status::Gone) => {
                    self.threads.remove(index);
                    return Ok(Step::Nothing);
                }
                Some(Status::Stopped(stop)) => return self.answer(tid, stop, observer),
            }
        }
        Ok(Step::Nothing)
    }

    fn answer(&mut self, tid: u32, stop: Stop, observer: &mut dyn Observer) -> Result<Step, LiveError> {
        let mut step = Step::Nothing;
        let mut signal = None;
        match stop {
            Stop::Group => {
                return ptrace::listen(tid).or_else(ended).map(|()| step).map_err(self.failed("cannot wait"));
            }
            Stop::NewThread => self.add_made_by(tid),
            Stop::Event(_) | Stop::Interrupted | Stop::SystemCall | Stop::Ending | Stop::NewProgram => {}
            Stop::Signal(TRAP_SIGNAL) => match self.point_of(tid) {
                Some((point, mut registers)) => {
                    registers.rip = self.points[point].at.0;
                    let old = registers;
                    step = Step::Looked(observer.trapped(point, tid, &mut registers));
                    self.looks += 1;
                    lead_on(tid, &old, registers, self.points[point].copy)
                        .or_else(ended)
                        .map_err(self.failed("cannot go on"))?;
                }
                None => signal = Some(TRAP_SIGNAL),
            },
            Stop::Signal(other) => signal = Some(other),
        }
        ptrace::resume(tid, signal).or_else(ended).map_err(self.failed("cannot let a thread run on"))?;
        Ok(step)
    }

    /// Takes note of a thread that one has just made. It is under control, and stopped until somebody lets it run.
    fn add_made_by(&mut self, tid: u32) {
        let made = ptrace::event_message(tid).ok().and_then(|made| u32::try_from(made).ok());
        if let Some(made) = made.filter(|made| !self.threads.contains(made)) {
            self.threads.push(made);
        }
    }

    /// Lets a stopped thread go. A trap that is under way is answered by the process's own handler.
    fn let_go(&mut self, tid: u32, stop: Stop) -> std::io::Result<()> {
        let signal = match stop {
            Stop::Signal(signal) => Some(signal),
            _ => None,
        };
        if stop == Stop::NewThread {
            self.add_made_by(tid);
        }
        ptrace::detach(tid, signal)
    }

    /// Which trap a thread has run into.
    fn point_of(&self, tid: u32) -> Option<(usize, Registers)> {
        let registers = ptrace::registers(tid).ok()?;
        let point = self.points.iter().position(|point| point.at.0 + 1 == registers.rip)?;
        Some((point, registers))
    }

    fn failed(&self, what: &'static str) -> impl Fn(std::io::Error) -> LiveError + use<> {
        let pid = self.pid;
        move |cause| LiveError::System { pid, what: what.into(), cause }
    }
}

/// Gives a thread new registers. Unless they lead elsewhere, it goes on at the copy.
fn lead_on(tid: u32, old: &Registers, new: Registers, copy: Avma) -> std::io::Result<()> {
    ptrace::set_registers(tid, &Registers { rip: copy.0, ..new })?;
    if new.rip != old.rip {
        ptrace::take_signal(tid)?;
        ptrace::set_instruction_pointer(tid, new.rip)?;
    }
    Ok(())
}

/// Lancet has control of a thread.
fn is_ours(pid: u32, tid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).unwrap_or_default();
    let tracer =
        status.lines().find_map(|line| line.strip_prefix("TracerPid:")).and_then(|pid| pid.trim().parse().ok());
    tracer == Some(ptrace::own_number())
}

/// A thread that was killed while it was stopped cannot be asked for anything.
fn ended(error: std::io::Error) -> Result<(), std::io::Error> {
    const NO_SUCH_PROCESS: i32 = 3;
    if error.raw_os_error() == Some(NO_SUCH_PROCESS) { Ok(()) } else { Err(error) }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        // One that waits for its child does not stop for as long as that takes. Others must not wait for it, so each is let
        // go as soon as it has stopped.
        let (mut asked, mut killed) = (Vec::new(), Vec::new());
        loop {
            for tid in std::mem::take(&mut self.threads) {
                match ptrace::interrupt(tid) {
                    Ok(()) => asked.push(tid),
                    Err(_) => killed.push(tid),
                }
            }
            if asked.is_empty() {
                break;
            }
            let before = asked.len();
            asked.retain(|tid| match ptrace::poll(*tid) {
                Ok(None) => true,
                Ok(Some(Status::Gone)) => false,
                Ok(Some(Status::Stopped(stop))) => {
                    if self.let_go(*tid, stop).is_err() {
                        killed.push(*tid);
                    }
                    false
                }
                Err(_) => {
                    killed.push(*tid);
                    false
                }
            });
            if asked.len() == before {
                std::thread::sleep(NAP);
            }
        }
        reap(self.pid, &killed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lancet_isa::{Svma, Syntax};

    #[test]
    fn the_handler_decodes_and_finds_its_table() {
        let points = [TrapPoint { at: Avma(0x10), copy: Avma(0x20) }];
        let bytes = guard(Avma(0x1000), &points);
        let isa = lancet_isa::for_elf_machine(62).expect("x86-64");
        let mut lines = Vec::new();
        let code = &bytes[..HANDLER.len()];
        isa.listing(code, Svma(0x1000), Syntax::Vendor, &|_| None, &mut |line| {
            lines.push((line.at.0, line.text.to_owned()));
        });
        assert!(lines.iter().all(|(_, text)| !text.contains("bad")), "{lines:#?}");
        assert!(lines.iter().any(|(at, _)| *at == 0x1000 + RESTORER));
        let table = ACTION as usize + 32;
        assert!(lines[1].1.contains(&format!("{:x}", 0x1000 + table)), "{lines:#?}");
        let words = [0x11_u64, 0x20, 0x20, 0x20, 0].map(u64::to_le_bytes).concat();
        assert_eq!(bytes[table..], words);
    }
}
