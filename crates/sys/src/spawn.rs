//! A new process that waits before it becomes its program, so that it can be watched from the start.
//!
//! The child tells its number and waits for a byte; `Command::spawn` returns only once the program runs, so it is called
//! in a thread of its own.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread::JoinHandle;

/// A process that is about to run a program.
#[derive(Debug)]
pub struct Held {
    pid: u32,
    go: PipeWriter,
    spawning: JoinHandle<io::Result<Child>>,
}

impl Held {
    pub fn new(mut command: Command) -> io::Result<Held> {
        let (mut number, tell) = io::pipe()?;
        let (wait, go) = io::pipe()?;
        let (tell_raw, wait_raw, go_raw) = (tell.as_raw_fd(), wait.as_raw_fd(), go.as_raw_fd());
        // SAFETY: between fork and exec only async-signal-safe calls are made, on descriptors that the closure's
        // owner keeps open until `spawn` returns.
        unsafe {
            command.pre_exec(move || {
                let pid = libc::getpid().to_ne_bytes();
                let mut byte = 0_u8;
                // If Lancet ends, the wait must end too: no writer may be left.
                libc::close(go_raw);
                if libc::write(tell_raw, pid.as_ptr().cast(), pid.len()) != pid.len().cast_signed()
                    || libc::read(wait_raw, (&raw mut byte).cast(), 1) != 1
                {
                    return Err(io::Error::from_raw_os_error(libc::ECANCELED));
                }
                Ok(())
            });
        }
        let spawning = std::thread::spawn(move || spawn(command, tell, wait));
        let mut pid = [0; 4];
        match number.read_exact(&mut pid) {
            Ok(()) => Ok(Held { pid: u32::from_ne_bytes(pid), go, spawning }),
            // No process was made; the reason is with `spawn`.
            Err(error) => Err(joined(spawning).err().unwrap_or(error)),
        }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets it become its program.
    pub fn go(self) -> io::Result<Child> {
        self.let_go()?.result()
    }

    /// Lets it go, and does not wait until it is its program.
    pub fn let_go(mut self) -> io::Result<Started> {
        self.go.write_all(&[1])?;
        Ok(Started { spawning: self.spawning })
    }
}

/// A process that becomes a program.
#[derive(Debug)]
pub struct Started {
    spawning: JoinHandle<io::Result<Child>>,
}

impl Started {
    /// Waits until it is its program. If it cannot be, also for its end.
    pub fn result(self) -> io::Result<Child> {
        joined(self.spawning)
    }
}

fn spawn(mut command: Command, tell: PipeWriter, wait: PipeReader) -> io::Result<Child> {
    let child = command.spawn();
    drop((tell, wait));
    child
}

fn joined(spawning: JoinHandle<io::Result<Child>>) -> io::Result<Child> {
    spawning.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}
