//! A process's memory, through `/proc/PID/mem`.
//!
//! Writing this way does not need the page to be writable: the kernel gives the process a private copy. So code is
//! never writable and executable at the same time, not even for a moment.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use lancet_isa::Avma;

use super::LiveError;

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

    /// As many bytes as are mapped there, at most as many as there is room for.
    pub fn read_some<'b>(&self, at: Avma, room: &'b mut [u8]) -> &'b [u8] {
        let read = self.file.read_at(room, at.0).unwrap_or(0);
        &room[..read]
    }

    pub fn write(&self, at: Avma, bytes: &[u8]) -> Result<(), LiveError> {
        self.file.write_all_at(bytes, at.0).map_err(|cause| self.failed("cannot write", at, cause))
    }

    fn failed(&self, what: &str, at: Avma, cause: io::Error) -> LiveError {
        // What has no memory any more has ended.
        if cause.kind() == io::ErrorKind::UnexpectedEof
            && !std::path::Path::new(&format!("/proc/{}/maps", self.pid)).exists()
        {
            return LiveError::Ended { pid: self.pid };
        }
        LiveError::System { pid: self.pid, what: format!("{what} its memory at {at}"), cause }
    }
}
