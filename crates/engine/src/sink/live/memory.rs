//! A process's memory, through `/proc/PID/mem`.
//!
//! Writing this way does not need the page to be writable: the kernel gives the process a private copy. So code is
//! never writable and executable at the same time, not even for a moment.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use lancet_isa::Avma;
use lancet_sys::remote;

use super::LiveError;

const BAD_ADDRESS: i32 = 14;

pub struct Memory {
    pid: u32,
    file: File,
}

impl Memory {
    pub fn open(pid: u32) -> Result<Memory, LiveError> {
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem"));
        let file = file.map_err(|cause| match cause.kind() {
            io::ErrorKind::PermissionDenied => LiveError::Refused { pid, why: crate::image::why_not_attached(pid) },
            _ => LiveError::System { pid, what: format!("cannot open /proc/{pid}/mem"), cause },
        })?;
        Ok(Memory { pid, file })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn read(&self, at: Avma, len: u64) -> Result<Vec<u8>, LiveError> {
        let mut bytes = vec![0; len as usize];
        self.file.read_exact_at(&mut bytes, at.0).map_err(|cause| self.failed("cannot read", at, cause))?;
        Ok(bytes)
    }

    /// Reads pieces one behind the other, up to the first byte that cannot be read. How many bytes those are.
    pub fn read_many(&self, pieces: &[Range<u64>], room: &mut [u8]) -> usize {
        match remote::read_many(self.pid, pieces, room) {
            Ok(read) => read,
            Err(error) if error.raw_os_error() == Some(BAD_ADDRESS) => 0,
            // Some kernels, and some containers, do not have the call.
            Err(_) => {
                let mut read = 0;
                for piece in pieces {
                    let (start, len) = (read, (piece.end - piece.start) as usize);
                    let Some(room) = room.get_mut(start..start + len) else { break };
                    read += self.file.read_at(room, piece.start).unwrap_or(0);
                    if read < start + len {
                        break;
                    }
                }
                read
            }
        }
    }

    pub fn write(&self, at: Avma, bytes: &[u8]) -> Result<(), LiveError> {
        self.file.write_all_at(bytes, at.0).map_err(|cause| self.failed("cannot write", at, cause))
    }

    fn failed(&self, what: &str, at: Avma, cause: io::Error) -> LiveError {
        // The memory that was opened is gone. A process that has ended has none; one that runs a new program has other.
        if let io::ErrorKind::UnexpectedEof | io::ErrorKind::WriteZero = cause.kind() {
            return match std::fs::read(format!("/proc/{}/maps", self.pid)) {
                Ok(maps) if !maps.is_empty() => LiveError::OtherProgram { pid: self.pid },
                _ => LiveError::Ended { pid: self.pid },
            };
        }
        LiveError::System { pid: self.pid, what: format!("{what} its memory at {at}"), cause }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_new_program_has_other_memory() {
        let mut command = Command::new("sh");
        command.args(["-c", "read line; exec cat"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().expect("sh");
        let pid = child.id();
        let memory = Memory::open(pid).expect("our own child");
        child.stdin.as_mut().expect("a pipe").write_all(b"go\n").expect("it reads");
        while std::fs::read_to_string(format!("/proc/{pid}/comm")).expect("it is there") != "cat\n" {
            std::thread::yield_now();
        }
        let error = |result: Result<(), LiveError>| result.err().map(|error| error.to_string());
        let changed = Some(format!("process {pid}: it has become another program"));
        assert_eq!(error(memory.read(Avma(0x1000), 1).map(|_| ())), changed);
        assert_eq!(error(memory.write(Avma(0x1000), &[0])), changed);
        drop(child.stdin.take());
        child.wait().expect("our own child");
        assert_eq!(error(memory.write(Avma(0x1000), &[0])), Some(format!("process {pid}: it has ended")));
    }
}
