//! A wait that ends after a while.
//!
//! Some calls of the kernel wait for ever and take no time limit. A timer that sends a signal to the waiting thread again
//! and again makes them return every time (`EINTR`), so that the thread can decide whether it goes on waiting. Again and
//! again, because a single signal might come just before the call.

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

/// Calls of the thread that made this are interrupted at an interval as long as it lives.
#[derive(Debug)]
pub struct Ticks {
    timer: libc::timer_t,
}

impl Ticks {
    pub fn new(every: Duration) -> io::Result<Ticks> {
        static SIGNAL: OnceLock<Option<i32>> = OnceLock::new();
        let signal = SIGNAL.get_or_init(take_signal).ok_or(io::ErrorKind::ResourceBusy)?;
        unblock(signal)?;
        // SAFETY: a structure of numbers and pointers, for which zeros are valid.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = crate::ptrace::own_number().cast_signed();
        let mut timer: libc::timer_t = std::ptr::null_mut();
        // SAFETY: the kernel reads one `sigevent` and writes one number of a timer. The signal has a handler.
        checked(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) })?;
        let ticks = Ticks { timer };
        let interval = libc::timespec { tv_sec: every.as_secs().cast_signed(), tv_nsec: every.subsec_nanos().into() };
        let times = libc::itimerspec { it_interval: interval, it_value: interval };
        // SAFETY: the timer exists, and the kernel reads one `itimerspec`.
        checked(unsafe { libc::timer_settime(ticks.timer, 0, &raw const times, std::ptr::null_mut()) })?;
        Ok(ticks)
    }
}

impl Drop for Ticks {
    fn drop(&mut self) {
        // SAFETY: the timer exists, and nobody uses it afterwards. A signal that is still on its way finds its handler,
        // which stays for ever.
        unsafe { libc::timer_delete(self.timer) };
    }
}

/// Takes a real-time signal that nobody has a handler for, and gives it one that does nothing.
fn take_signal() -> Option<i32> {
    extern "C" fn nothing(_: i32) {}
    (libc::SIGRTMIN()..=libc::SIGRTMAX()).rev().find(|signal| {
        // SAFETY: a structure of numbers and pointers, for which zeros are valid.
        let (mut old, mut new): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
        new.sa_sigaction = nothing as extern "C" fn(i32) as libc::sighandler_t;
        // SAFETY: the first call only asks. The handler does nothing, so it may run at any moment; without SA_RESTART it
        // ends calls that wait. The signal is one that this process would have died of.
        unsafe {
            libc::sigaction(*signal, std::ptr::null(), &raw mut old) == 0
                && old.sa_sigaction == libc::SIG_DFL
                && libc::sigaction(*signal, &raw const new, std::ptr::null_mut()) == 0
        }
    })
}

/// The calling thread may have inherited that it does not get the signal.
fn unblock(signal: i32) -> io::Result<()> {
    // SAFETY: a structure of numbers, for which zeros are valid.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the calls write to and read from one `sigset_t`, and concern the calling thread alone.
    checked(unsafe {
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut())
    })
}

fn checked(result: i32) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
