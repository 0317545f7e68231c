//! `perf_event_open`: events that the kernel counts or samples.
//!
//! An [`Event`] is one descriptor: one event of one thread or of all, on one CPU or on all. What is sampled arrives in
//! a [`Ring`], which several events on the same CPU can share. The meaning of the numbers in an [`EventCode`] is the
//! kernel's (`linux/perf_event.h`); names for them are given elsewhere.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use perf_event_open_sys::bindings as raw;
use perf_event_open_sys::ioctls;

pub use crate::ring::{Record, Ring};

/// Numbers that name an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventCode {
    /// Hardware, software, cache, raw, or a unit's own number.
    pub kind: u32,
    pub config: u64,
}

/// When a sample is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// After so many events.
    Events(u64),
    /// So that there are about as many in a second.
    PerSecond(u64),
}

/// What samples carry beside instruction pointer, thread, time, CPU, period and the kernel's call chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    pub every: Every,
    /// Bytes of the user's stack, from the stack pointer on.
    pub stack_bytes: u32,
    /// Wake a reader once so many bytes wait.
    pub wake_bytes: u32,
}

/// Whom an event watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// A thread; `None` for all that run on the CPU.
    pub thread: Option<u32>,
    /// `None` for wherever the thread runs. With `inherit` a ring needs one CPU.
    pub cpu: Option<u32>,
    /// Also threads and processes that it starts.
    pub inherit: bool,
    /// Also what the kernel does on its behalf.
    pub kernel: bool,
    /// Begin when the thread calls exec, rather than when it is enabled.
    pub from_exec: bool,
}

/// One event of one thread, or of one CPU.
#[derive(Debug)]
pub struct Event(OwnedFd);

/// What an event has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub value: u64,
    /// Nanoseconds in which it was enabled, and in which it had a counter.
    pub enabled: u64,
    pub running: u64,
}

/// User registers in samples: bp, sp and ip, by the kernel's numbers for x86.
const SAMPLED_REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;

impl Event {
    /// An event that only counts.
    pub fn counter(code: EventCode, watch: Watch) -> io::Result<Event> {
        open(&mut attributes(code, watch), watch)
    }

    /// An event that writes samples, and what is needed to make sense of them: mappings, names, forks, exits.
    pub fn sampler(code: EventCode, watch: Watch, sampling: Sampling) -> io::Result<Event> {
        let mut attr = attributes(code, watch);
        match sampling.every {
            Every::Events(period) => attr.__bindgen_anon_1.sample_period = period,
            Every::PerSecond(frequency) => {
                attr.__bindgen_anon_1.sample_freq = frequency;
                attr.set_freq(1);
            }
        }
        attr.sample_type = u64::from(
            raw::PERF_SAMPLE_IP
                | raw::PERF_SAMPLE_TID
                | raw::PERF_SAMPLE_TIME
                | raw::PERF_SAMPLE_CPU
                | raw::PERF_SAMPLE_PERIOD
                | raw::PERF_SAMPLE_CALLCHAIN
                | raw::PERF_SAMPLE_REGS_USER
                | raw::PERF_SAMPLE_STACK_USER,
        );
        attr.sample_regs_user = SAMPLED_REGISTERS;
        attr.sample_stack_user = sampling.stack_bytes;
        // The user's part of the chain would follow frame pointers, which are not there.
        attr.set_exclude_callchain_user(1);
        attr.set_sample_id_all(1);
        attr.set_mmap(1);
        attr.set_mmap2(1);
        attr.set_comm(1);
        attr.set_comm_exec(1);
        attr.set_task(1);
        attr.set_watermark(1);
        attr.__bindgen_anon_2.wakeup_watermark = sampling.wake_bytes;
        attr.set_use_clockid(1);
        attr.clockid = libc::CLOCK_MONOTONIC;
        open(&mut attr, watch)
    }

    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: the descriptor is an open perf event, and the argument is a flag word.
        checked(unsafe { ioctls::ENABLE(self.0.as_raw_fd(), 0) })
    }

    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: as in `enable`.
        checked(unsafe { ioctls::DISABLE(self.0.as_raw_fd(), 0) })
    }

    /// Writes to the ring of `other`, which must watch the same CPU.
    pub fn share_ring_of(&self, other: &Event) -> io::Result<()> {
        // SAFETY: both descriptors are open perf events; the kernel checks that their rings may be shared.
        checked(unsafe { ioctls::SET_OUTPUT(self.0.as_raw_fd(), other.0.as_raw_fd()) })
    }

    pub fn read(&self) -> io::Result<Reading> {
        let mut bytes = [0; 24];
        let count = nix::unistd::read(&self.0, &mut bytes)?;
        let word = |i: usize| bytes.as_chunks::<8>().0.get(i).map_or(0, |word| u64::from_ne_bytes(*word));
        match count {
            24 => Ok(Reading { value: word(0), enabled: word(1), running: word(2) }),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The ring for its samples, of `pages` pages, a power of two.
    pub fn ring(&self, pages: usize) -> io::Result<Ring> {
        Ring::map(self.0.as_fd(), pages)
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until one of the events has something to read, or all of them are over.
pub fn wait_for_any(events: &[&Event], patience: Duration) -> io::Result<()> {
    let mut waited: Vec<PollFd> = events.iter().map(|event| PollFd::new(event.0.as_fd(), PollFlags::POLLIN)).collect();
    let patience = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
    match nix::poll::poll(&mut waited, patience) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn attributes(code: EventCode, watch: Watch) -> raw::perf_event_attr {
    let mut attr = raw::perf_event_attr::default();
    attr.size = size_of::<raw::perf_event_attr>() as u32;
    attr.type_ = code.kind;
    attr.config = code.config;
    attr.read_format = u64::from(raw::PERF_FORMAT_TOTAL_TIME_ENABLED | raw::PERF_FORMAT_TOTAL_TIME_RUNNING);
    attr.set_disabled(1);
    attr.set_inherit(watch.inherit.into());
    attr.set_exclude_kernel((!watch.kernel).into());
    attr.set_exclude_hv(1);
    attr.set_enable_on_exec(watch.from_exec.into());
    attr
}

fn open(attr: &mut raw::perf_event_attr, watch: Watch) -> io::Result<Event> {
    let or_all = |number: Option<u32>| number.map_or(-1, |number| number.cast_signed());
    // SAFETY: `attr` is initialized and states its own size. The event cannot touch this process's memory: its ring is
    // mapped separately.
    let descriptor = unsafe {
        perf_event_open_sys::perf_event_open(
            attr,
            or_all(watch.thread),
            or_all(watch.cpu),
            -1,
            raw::PERF_FLAG_FD_CLOEXEC.into(),
        )
    };
    checked(descriptor)?;
    // SAFETY: the kernel has just made this descriptor, and nobody else owns it.
    Ok(Event(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}

fn checked(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
