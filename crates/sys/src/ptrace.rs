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
    /// It has made a thread, which is under control, too; [`event_message`] is its number.
    NewThread,
    /// It is about to end, and cannot be kept from it; its registers and its memory are still there.
    Ending,
    /// It runs a new program, of which nothing has run yet.
    NewProgram,
    /// Another event.
    Event(i32),
}

/// What became of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Stopped(Stop),
    /// It ended.
    Gone,
}

/// The number of the calling thread, which the kernel knows as the one in control.
pub fn own_number() -> u32 {
    // SAFETY: it takes nothing, changes nothing and cannot fail.
    unsafe { libc::gettid() }.cast_unsigned()
}

/// Takes a thread under control without stopping it.
pub fn seize(thread: u32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, thread, libc::PTRACE_O_TRACESYSGOOD.into())
}

/// The same, and threads that it makes are under control from their first moment, too.
pub fn seize_with_new_threads(thread: u32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, thread, (libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE).into())
}

/// What is under control from its first moment: threads and processes that are made, whatever programs they run.
/// Without TRACEEXEC the kernel would send a signal for a new program.
const FAMILY: i32 =
    libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEEXEC;

/// The same of a process that has one thread, with all processes that it makes. It stops when it becomes a new program.
pub fn seize_with_family(process: u32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, process, FAMILY.into())
}

/// From now on a stopped thread of such a process, and all that it makes, stop once more before they end.
pub fn stop_at_end(thread: u32) -> io::Result<()> {
    request(libc::PTRACE_SETOPTIONS, thread, (FAMILY | libc::PTRACE_O_TRACEEXIT).into())
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

/// Where a stopped thread goes on. Cheaper than all registers.
pub fn instruction_pointer(thread: u32) -> io::Result<u64> {
    peek(thread, std::mem::offset_of!(libc::user, regs.rip))
}

/// Where a stopped thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    /// Where it goes on.
    pub instruction: u64,
    /// The top of its stack.
    pub stack: u64,
    /// What it keeps for itself lies around here, and is no part of its stack.
    pub own: u64,
}

pub fn whereabouts(thread: u32) -> io::Result<Whereabouts> {
    let all = registers(thread)?;
    Ok(Whereabouts { instruction: all.rip, stack: all.rsp, own: all.fs_base })
}

pub fn set_instruction_pointer(thread: u32, to: u64) -> io::Result<()> {
    let offset = std::mem::offset_of!(libc::user, regs.rip);
    // SAFETY: address and value are numbers to the kernel. It changes another process, never this one.
    checked(unsafe { libc::ptrace(libc::PTRACE_POKEUSER, thread.cast_signed(), offset, to) })
}

/// One word of what the kernel keeps of a stopped thread.
fn peek(thread: u32, offset: usize) -> io::Result<u64> {
    let mut word = 0_u64;
    // SAFETY: the kernel writes one word; the system call itself is used because the library's function returns the word
    // instead, which may look like an error.
    let result = unsafe {
        libc::syscall(
            libc::SYS_ptrace,
            libc::c_long::from(libc::PTRACE_PEEKUSER),
            i64::from(thread),
            offset,
            &raw mut word,
        )
    };
    checked(result)?;
    Ok(word)
}

/// What a thread tells with its last event: for a new thread, its number.
pub fn event_message(thread: u32) -> io::Result<u64> {
    let mut message = 0_u64;
    // SAFETY: the kernel writes one word, or fails and writes nothing.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, thread.cast_signed(), 0, &raw mut message) };
    checked(result)?;
    Ok(message)
}

/// Waits for one thread. Until it is let run, the same is told again, and if this process ends before, the kernel gives
/// the thread the signal that it was stopped with.
pub fn wait(thread: u32) -> io::Result<Status> {
    Ok(wait_for(thread, 0)?.unwrap_or(Status::Gone))
}

/// The same, but whenever a signal interrupts it ([`Ticks`](crate::ticks::Ticks)), it asks whether to go on; `None` if not.
pub fn wait_while(thread: u32, mut go_on: impl FnMut() -> bool) -> io::Result<Option<Status>> {
    wait_for_while(thread, 0, &mut go_on)
}

/// Waits for any thread under control and any child, and tells which. Nothing is taken: a child that has ended is told
/// again until somebody waits for it, and so is a thread.
pub fn wait_for_any() -> io::Result<(u32, Status)> {
    let any = Waited { kind: libc::P_ALL, id: 0 };
    loop {
        let (number, told) = wait_id(any, libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT)?;
        match told {
            Told::Nothing => {}
            Told::Stopped(code) => return Ok((number, Status::Stopped(meaning(code)))),
            Told::Ended => return Ok((number, Status::Gone)),
            Told::Gone => return Err(io::Error::from_raw_os_error(libc::ECHILD)),
        }
    }
}

/// Lets the kernel forget a thread that has ended, and tell its parent.
pub fn forget(thread: u32) -> io::Result<()> {
    wait_id(one(thread), libc::WEXITED | libc::WNOHANG).map(|_| ())
}

/// What a thread has to tell, if it has already.
pub fn poll(thread: u32) -> io::Result<Option<Status>> {
    wait_for(thread, libc::WNOHANG)
}

/// Takes away from a stopped thread the signal that it would get if this process ended.
pub fn take_signal(thread: u32) -> io::Result<()> {
    wait_id(one(thread), libc::WSTOPPED | libc::WNOHANG).map(|_| ())
}

/// What one thread has to tell; `None` if that is nothing yet, and the call shall not wait.
fn wait_for(thread: u32, options: i32) -> io::Result<Option<Status>> {
    wait_for_while(thread, options, &mut || true)
}

fn wait_for_while(thread: u32, options: i32, go_on: &mut dyn FnMut() -> bool) -> io::Result<Option<Status>> {
    let options = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | options;
    match wait_id_while(one(thread), options, go_on)?.1 {
        Told::Nothing => Ok(None),
        Told::Stopped(code) => Ok(Some(Status::Stopped(meaning(code)))),
        Told::Gone => Ok(Some(Status::Gone)),
        Told::Ended => {
            // Only now the kernel may forget it.
            forget(thread)?;
            Ok(Some(Status::Gone))
        }
    }
}

enum Told {
    Nothing,
    /// A signal, and an event above it.
    Stopped(i32),
    Ended,
    /// There is no such thread any more.
    Gone,
}

/// Whom to wait for.
#[derive(Clone, Copy)]
struct Waited {
    kind: libc::idtype_t,
    id: u32,
}

fn one(thread: u32) -> Waited {
    Waited { kind: libc::P_PID, id: thread }
}

/// Who has something to tell, and what.
fn wait_id(whom: Waited, options: i32) -> io::Result<(u32, Told)> {
    wait_id_while(whom, options, &mut || true)
}

fn wait_id_while(whom: Waited, options: i32, go_on: &mut dyn FnMut() -> bool) -> io::Result<(u32, Told)> {
    loop {
        // SAFETY: a structure of numbers, for which zeros are valid.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes one `siginfo_t`.
        let result = unsafe { libc::waitid(whom.kind, whom.id, &raw mut info, options | libc::__WALL) };
        match (result, io::Error::last_os_error()) {
            (0, _) => {
                // SAFETY: for what `waitid` tells, the kernel sets these fields; without news they are zero.
                let (number, code) = unsafe { (info.si_pid().cast_unsigned(), info.si_status()) };
                let told = match info.si_code {
                    0 => Told::Nothing,
                    libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED => Told::Ended,
                    _ => Told::Stopped(code),
                };
                return Ok((number, told));
            }
            (_, error) => match error.raw_os_error() {
                Some(libc::EINTR) if go_on() => {}
                Some(libc::EINTR) => return Ok((whom.id, Told::Nothing)),
                Some(libc::ECHILD) => return Ok((whom.id, Told::Gone)),
                _ => return Err(error),
            },
        }
    }
}

fn meaning(code: i32) -> Stop {
    let signal = code & 0xff;
    match code >> 8 {
        0 if signal == libc::SIGTRAP | 0x80 => Stop::SystemCall,
        0 => Stop::Signal(signal),
        libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Stop::Interrupted,
        libc::PTRACE_EVENT_STOP => Stop::Group,
        libc::PTRACE_EVENT_CLONE => Stop::NewThread,
        libc::PTRACE_EVENT_EXIT => Stop::Ending,
        libc::PTRACE_EVENT_EXEC => Stop::NewProgram,
        event => Stop::Event(event),
    }
}

/// A request whose argument is a number.
fn request(request: libc::c_uint, thread: u32, argument: c_long) -> io::Result<()> {
    // SAFETY: none of the requests above takes a pointer; the kernel checks that the thread may be traced.
    checked(unsafe { libc::ptrace(request, thread.cast_signed(), 0 as c_long, argument) })
}

fn checked(result: c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    /// A process that says when it is ready, and when it gets SIGUSR1.
    fn listener() -> (std::process::Child, impl Iterator<Item = String>) {
        let script = "trap 'echo got; exit' USR1; echo ready; while :; do sleep 0.01; done";
        let mut child = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().expect("sh");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        (child, lines)
    }

    #[test]
    fn who_ends_while_a_signal_is_on_its_way_leaves_it() {
        let (mut child, mut lines) = listener();
        assert_eq!(lines.next().as_deref(), Some("ready"));
        let pid = child.id();
        // To the kernel, a thread that ends is a tracer that ends.
        let tracer = std::thread::spawn(move || {
            seize(pid).expect("our own child");
            let sent = Command::new("kill").args(["-USR1", &pid.to_string()]).status();
            assert!(sent.is_ok_and(|status| status.success()));
            loop {
                match wait(pid).expect("it lives") {
                    Status::Stopped(Stop::Signal(libc::SIGUSR1)) => break,
                    Status::Stopped(Stop::Signal(other)) => resume(pid, Some(other)).expect("it lives"),
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(wait(pid).expect("it lives"), Status::Stopped(Stop::Signal(libc::SIGUSR1)));
        });
        tracer.join().expect("no panic");
        assert_eq!(lines.next().as_deref(), Some("got"));
        assert!(child.wait().is_ok_and(|status| status.success()));
    }

    #[test]
    fn a_wait_ends_if_nobody_wants_to_go_on() {
        let (mut child, mut lines) = listener();
        assert_eq!(lines.next().as_deref(), Some("ready"));
        let pid = child.id();
        let tracer = std::thread::spawn(move || {
            seize(pid).expect("our own child");
            let _ticks = crate::ticks::Ticks::new(std::time::Duration::from_millis(1)).expect("a timer");
            // Nobody has asked it to stop.
            let mut asked = 0;
            loop {
                let waited = wait_while(pid, || {
                    asked += 1;
                    asked < 3
                });
                match waited.expect("it lives") {
                    None => break,
                    // The shell hears of the end of its children.
                    Some(Status::Stopped(Stop::Signal(signal))) => resume(pid, Some(signal)).expect("it lives"),
                    Some(other) => panic!("{other:?}"),
                }
            }
            // It was asked to stop, and nobody waits for it: the end of the one in control takes that back.
            interrupt(pid).expect("our own child");
        });
        tracer.join().expect("no panic");
        let sent = Command::new("kill").args(["-USR1", &pid.to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        assert_eq!(lines.next().as_deref(), Some("got"));
        assert!(child.wait().is_ok_and(|status| status.success()));
    }

    #[test]
    fn single_registers_are_those_of_all_registers() {
        let (mut child, mut lines) = listener();
        lines.next();
        let pid = child.id();
        seize(pid).expect("our own child");
        interrupt(pid).expect("our own child");
        while let Status::Stopped(Stop::Signal(signal)) = wait(pid).expect("it lives") {
            resume(pid, Some(signal)).expect("it lives");
        }
        let all = registers(pid).expect("it is stopped");
        assert_eq!(instruction_pointer(pid).ok(), Some(all.rip));
        set_instruction_pointer(pid, all.rip + 1).expect("it is stopped");
        assert_eq!(registers(pid).ok().map(|now| now.rip), Some(all.rip + 1));
        child.kill().expect("our own child");
        while wait(pid).expect("it was ours") != Status::Gone {}
    }
}
