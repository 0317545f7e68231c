//! System calls that another process makes for Lancet.
//!
//! One thread is stopped and led to a few instructions that save its registers on its own stack, make the call, give the
//! registers back and jump to where the thread was. They stand in bytes that are mapped executable and never run: the
//! rest of a page behind the end of a code segment.
//!
//! ```text
//! thread ─> save registers, below the red zone ─> syscall ─> restore ─> where it was
//!                                                    └ Lancet stops it here and reads the result
//! ```
//!
//! So the thread finds its way back by itself at every moment, whether Lancet lives or not. A thread that was inside a
//! system call is led back to the instruction that makes it, which the kernel would have done too.

use std::io;

use lancet_isa::Avma;
use lancet_sys::ptrace::{self, Registers, Status, Stop};

use super::LiveError;
use super::memory::Memory;
use super::threads::{seize, state_of, threads_of};

/// A system call: its number and its arguments.
pub(super) struct Call {
    pub number: u64,
    pub arguments: [u64; 6],
}

/// The instructions and what follows them need no more.
pub(super) const SCRATCH_BYTES: u64 = 192;
/// Where a text for the call can stand.
const TEXT_OFFSET: u64 = 160;
const LONGEST_TEXT: usize = 31;
/// Signals that arrive in between are delivered first.
const MOST_TRIES: usize = 100;

/// Registers in the order in which they are saved.
const SAVE: [&[u8]; 9] =
    [&[0x50], &[0x57], &[0x56], &[0x52], &[0x41, 0x52], &[0x41, 0x50], &[0x41, 0x51], &[0x51], &[0x41, 0x53]];
const RESTORE: [&[u8]; 9] =
    [&[0x41, 0x5b], &[0x59], &[0x41, 0x59], &[0x41, 0x58], &[0x41, 0x5a], &[0x5a], &[0x5e], &[0x5f], &[0x58]];
/// `mov reg, imm64` for rax, rdi, rsi, rdx, r10, r8, r9.
const LOAD: [[u8; 2]; 7] =
    [[0x48, 0xb8], [0x48, 0xbf], [0x48, 0xbe], [0x48, 0xba], [0x49, 0xba], [0x49, 0xb8], [0x49, 0xb9]];
const BELOW_RED_ZONE: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 0x80];
const ABOVE_RED_ZONE: [u8; 8] = [0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// `jmp [rip]`: the address follows.
const JUMP_THERE: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0];

fn stub(call: &Call, back: u64) -> Vec<u8> {
    let mut code = Vec::with_capacity(SCRATCH_BYTES as usize);
    code.extend(BELOW_RED_ZONE);
    SAVE.iter().for_each(|push| code.extend(*push));
    for (load, value) in LOAD.iter().zip(std::iter::once(&call.number).chain(&call.arguments)) {
        code.extend(load);
        code.extend(value.to_le_bytes());
    }
    code.extend(SYSCALL);
    RESTORE.iter().for_each(|pop| code.extend(*pop));
    code.extend(ABOVE_RED_ZONE);
    code.extend(JUMP_THERE);
    code.extend(back.to_le_bytes());
    code
}

/// Where the thread is, once a system call that was interrupted has been taken back to its start.
fn at_rest(registers: &Registers) -> Registers {
    const RESTART_BLOCK: i64 = -516;
    const RESTART_SYSCALL: u64 = 219;
    let mut rest = *registers;
    if registers.orig_rax.cast_signed() >= 0 {
        match registers.rax.cast_signed() {
            -514..=-512 => (rest.rax, rest.rip) = (registers.orig_rax, registers.rip.wrapping_sub(2)),
            RESTART_BLOCK => (rest.rax, rest.rip) = (RESTART_SYSCALL, registers.rip.wrapping_sub(2)),
            _ => {}
        }
    }
    rest.orig_rax = u64::MAX;
    rest
}

/// One thread under control, for calls one after the other. It runs on when this is dropped.
pub(super) struct Caller<'m> {
    pid: u32,
    tid: u32,
    memory: &'m Memory,
    /// Where the instructions go, and what stands there.
    scratch: Avma,
    old: Vec<u8>,
}

impl<'m> Caller<'m> {
    pub fn new(pid: u32, memory: &'m Memory, scratch: Avma) -> Result<Caller<'m>, LiveError> {
        let old = memory.read(scratch, SCRATCH_BYTES)?;
        let mut threads = threads_of(pid)?;
        // One that sleeps where it cannot be interrupted might keep Lancet waiting.
        threads.sort_by_cached_key(|tid| state_of(pid, *tid) == Some('D'));
        for tid in threads {
            if seize(pid, tid)? {
                return Ok(Caller { pid, tid, memory, scratch, old });
            }
        }
        Err(LiveError::Ended { pid })
    }

    /// Puts a text beside the instructions, for a call that needs one.
    pub fn text(&self, text: &str) -> Result<u64, LiveError> {
        let mut bytes: Vec<u8> = text.bytes().take(LONGEST_TEXT).collect();
        bytes.push(0);
        self.memory.write(self.scratch + TEXT_OFFSET, &bytes)?;
        Ok((self.scratch + TEXT_OFFSET).0)
    }

    /// Makes the call. The result is the kernel's: negative numbers are errors.
    pub fn call(&self, call: &Call) -> Result<i64, LiveError> {
        for _ in 0..MOST_TRIES {
            let Some(before) = self.stop()? else { continue };
            let back = at_rest(&before);
            self.memory.write(self.scratch, &stub(call, back.rip))?;
            let led = Registers { rip: self.scratch.0, ..back };
            ptrace::set_registers(self.tid, &led).map_err(self.failed("cannot lead a thread to a system call"))?;
            // To the call, and behind it.
            if self.to_system_call(&back)? && self.to_system_call(&back)? {
                let result = ptrace::registers(self.tid).map_err(self.failed("cannot read a result"))?.rax;
                ptrace::set_registers(self.tid, &back).map_err(self.failed("cannot lead a thread back"))?;
                return Ok(result.cast_signed());
            }
        }
        let cause = io::Error::from(io::ErrorKind::TimedOut);
        Err(LiveError::System { pid: self.pid, what: "signals keep a system call from being made".into(), cause })
    }

    /// Stops the thread; `None` if a signal came first.
    fn stop(&self) -> Result<Option<Registers>, LiveError> {
        // One that is stopped already cannot be interrupted, and need not be.
        if let Ok(registers) = ptrace::registers(self.tid) {
            return Ok(Some(registers));
        }
        ptrace::interrupt(self.tid).map_err(self.failed("cannot stop a thread"))?;
        match ptrace::wait(self.tid).map_err(self.failed("cannot wait for a thread"))? {
            Status::Gone => Err(LiveError::Ended { pid: self.pid }),
            Status::Stopped(Stop::Signal(signal)) => {
                ptrace::resume(self.tid, Some(signal)).map_err(self.failed("cannot pass on a signal"))?;
                Ok(None)
            }
            Status::Stopped(_) => ptrace::registers(self.tid).map(Some).map_err(self.failed("cannot read registers")),
        }
    }

    /// Runs to the next edge of a system call. `false` if a signal came in between; the thread is back then.
    fn to_system_call(&self, back: &Registers) -> Result<bool, LiveError> {
        ptrace::resume_to_system_call(self.tid).map_err(self.failed("cannot resume a thread"))?;
        match ptrace::wait(self.tid).map_err(self.failed("cannot wait for a thread"))? {
            Status::Gone => Err(LiveError::Ended { pid: self.pid }),
            Status::Stopped(Stop::SystemCall) => Ok(true),
            Status::Stopped(other) => {
                ptrace::set_registers(self.tid, back).map_err(self.failed("cannot lead a thread back"))?;
                let signal = if let Stop::Signal(signal) = other { Some(signal) } else { None };
                ptrace::resume(self.tid, signal).map_err(self.failed("cannot pass on a signal"))?;
                Ok(false)
            }
        }
    }

    fn failed(&self, what: &'static str) -> impl Fn(io::Error) -> LiveError + use<> {
        let pid = self.pid;
        move |cause| LiveError::System { pid, what: what.into(), cause }
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        let _ = self.memory.write(self.scratch, &self.old);
        // Only a stopped thread can be let go.
        if ptrace::detach(self.tid, None).is_err()
            && ptrace::interrupt(self.tid).is_ok()
            && let Ok(Status::Stopped(stop)) = ptrace::wait(self.tid)
        {
            let signal = if let Stop::Signal(signal) = stop { Some(signal) } else { None };
            let _ = ptrace::detach(self.tid, signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instructions_fit_and_decode() {
        let call = Call { number: 9, arguments: [1, 2, 3, 4, 5, 6] };
        let code = stub(&call, 0x1234);
        assert!(code.len() as u64 <= TEXT_OFFSET && TEXT_OFFSET + (LONGEST_TEXT as u64) < SCRATCH_BYTES);
        let isa = lancet_isa::for_elf_machine(62).expect("x86-64");
        let mut insns = 0;
        let decoded = isa.decode(&code[..code.len() - 8], lancet_isa::Svma(0), &mut |_| {
            insns += 1;
            std::ops::ControlFlow::Continue(())
        });
        assert_eq!((decoded, insns), (Ok(()), 1 + 9 + 7 + 1 + 9 + 1 + 1));
    }
}
