//! Stopping threads of another process, looking at their registers, and letting them go.
//!
//! Threads are seized (`PTRACE_SEIZE`), which neither stops them nor sends a signal, and then interrupted. A stop that
//! was asked for is told apart from signals that arrive meanwhile, so that none is lost. Requests must come from the
//! operating system thread that seized; when that thread or its process ends, the kernel lets the target run on.
//!
//! Signals are numbers: the real-time ones, which thread libraries use among themselves, have no names.

use std::io;
use std::mem::MaybeUninit;

use libc::c_long;

/// The general registers of a stopped thread.
pub type Registers = libc::user_regs_struct;

/// Why a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was interrupted.
    Interrupted,
    /// It is part of a process that was stopped by job control.
    Group,
    /// This signal is about to be delivered.
    Signal(i32),
    /// It is about to enter a system call, or has left one.
    SystemCall,
    /// Another event that was asked for, by its number.
    Event(i32),
}

/// What became of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Stopped(Stop),
    /// It ended.
    Gone,
}

/// Takes a thread under control without stopping it.
pub fn seize(thread: u32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, thread, libc::PTRACE_O_TRACESYSGOOD.into())
}

/// The same, and threads that it makes are under control from their first moment, too.
pub fn seize_with_new_threads(thread: u32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, thread, (libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE).into())
}

/// Asks a seized thread to stop; [`wait`] tells when it did.
pub fn interrupt(thread: u32) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, thread, 0)
}

/// Lets a stopped thread run, with a signal that it was about to get.
pub fn resume(thread: u32, signal: Option<i32>) -> io::Result<()> {
    request(libc::PTRACE_CONT, thread, signal.unwrap_or(0).into())
}

/// Lets a stopped thread run until it enters or leaves a system call.
pub fn resume_to_system_call(thread: u32) -> io::Result<()> {
    request(libc::PTRACE_SYSCALL, thread, 0)
}

/// Leaves a thread of a stopped process stopped, but hears when that changes.
pub fn listen(thread: u32) -> io::Result<()> {
    request(libc::PTRACE_LISTEN, thread, 0)
}

/// Gives up control of a stopped thread; it runs on.
pub fn detach(thread: u32, signal: Option<i32>) -> io::Result<()> {
    request(libc::PTRACE_DETACH, thread, signal.unwrap_or(0).into())
}

pub fn registers(thread: u32) -> io::Result<Registers> {
    let mut registers = MaybeUninit::<Registers>::uninit();
    // SAFETY: the kernel writes exactly one `user_regs_struct`, or fails and writes nothing.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETREGS, thread.cast_signed(), 0, registers.as_mut_ptr()) };
    checked(result)?;
    // SAFETY: the request succeeded, so all of it was written.
    Ok(unsafe { registers.assume_init() })
}

pub fn set_registers(thread: u32, registers: &Registers) -> io::Result<()> {
    // SAFETY: the kernel reads exactly one `user_regs_struct`. It changes another process, never this one.
    checked(unsafe { libc::ptrace(libc::PTRACE_SETREGS, thread.cast_signed(), 0, std::ptr::from_ref(registers)) })
}

/// Waits for one thread.
pub fn wait(thread: u32) -> io::Result<Status> {
    Ok(wait_for(thread, libc::__WALL)?.unwrap_or(Status::Gone))
}

/// What a thread has to tell, if it has already.
pub fn poll(thread: u32) -> io::Result<Option<Status>> {
    wait_for(thread, libc::__WALL | libc::WNOHANG)
}

/// What one thread has to tell; `None` if that is nothing yet, and the call shall not wait.
fn wait_for(thread: u32, options: i32) -> io::Result<Option<Status>> {
    loop {
        let mut status = 0;
        // SAFETY: the kernel writes one `int` to `status`.
        let found = unsafe { libc::waitpid(thread.cast_signed(), &raw mut status, options) };
        match (found, io::Error::last_os_error()) {
            (0, _) => return Ok(None),
            (1.., _) => return Ok(Some(meaning(status))),
            (_, error) => match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::ECHILD) => return Ok(Some(Status::Gone)),
                _ => return Err(error),
            },
        }
    }
}

fn meaning(status: i32) -> Status {
    if !libc::WIFSTOPPED(status) {
        return Status::Gone;
    }
    let signal = libc::WSTOPSIG(status);
    Status::Stopped(match status >> 16 {
        0 if signal == libc::SIGTRAP | 0x80 => Stop::SystemCall,
        0 => Stop::Signal(signal),
        libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Stop::Interrupted,
        libc::PTRACE_EVENT_STOP => Stop::Group,
        event => Stop::Event(event),
    })
}

/// A request whose argument is a number.
fn request(request: libc::c_uint, thread: u32, argument: c_long) -> io::Result<()> {
    // SAFETY: none of the requests above takes a pointer; the kernel checks that the thread may be traced.
    checked(unsafe { libc::ptrace(request, thread.cast_signed(), 0 as c_long, argument) })
}

fn checked(result: c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
