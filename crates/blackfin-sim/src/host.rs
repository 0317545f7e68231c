//! What the program sees of the world: files, the console, time.
//!
//! The simulator itself does no I/O. Whoever runs it hands in a [`Host`]; [`Captured`] keeps everything in memory, for
//! tests; [`Files`] works on the files of the machine.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An error number of newlib, which the program finds in `errno`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub u32);

impl Errno {
    pub const NO_ENTRY: Errno = Errno(2);
    pub const IO: Errno = Errno(5);
    pub const BAD_FILE: Errno = Errno(9);
    pub const ACCESS: Errno = Errno(13);
    pub const FAULT: Errno = Errno(14);
    pub const EXISTS: Errno = Errno(17);
    pub const INVALID: Errno = Errno(22);
    pub const TOO_MANY_FILES: Errno = Errno(24);
    pub const NOT_SEEKABLE: Errno = Errno(29);
    pub const NOT_IMPLEMENTED: Errno = Errno(88);
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Errno {
        match error.kind() {
            ErrorKind::NotFound => Errno::NO_ENTRY,
            ErrorKind::PermissionDenied => Errno::ACCESS,
            ErrorKind::AlreadyExists => Errno::EXISTS,
            ErrorKind::InvalidInput => Errno::INVALID,
            _ => Errno::IO,
        }
    }
}

/// How newlib's `open` asks for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFlags(pub u32);

impl OpenFlags {
    pub fn reads(self) -> bool {
        self.0 & 3 != 1
    }

    pub fn writes(self) -> bool {
        self.0 & 3 != 0
    }

    pub fn appends(self) -> bool {
        self.0 & 0x8 != 0
    }

    pub fn creates(self) -> bool {
        self.0 & 0x200 != 0
    }

    pub fn truncates(self) -> bool {
        self.0 & 0x400 != 0
    }

    pub fn exclusive(self) -> bool {
        self.0 & 0x800 != 0
    }
}

/// What `fstat` tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileStatus {
    pub is_terminal: bool,
    pub bytes: u32,
}

pub trait Host {
    fn write(&mut self, fd: u32, bytes: &[u8]) -> Result<u32, Errno>;

    fn read(&mut self, fd: u32, buffer: &mut [u8]) -> Result<u32, Errno>;

    fn open(&mut self, path: &str, flags: OpenFlags) -> Result<u32, Errno> {
        let _ = (path, flags);
        Err(Errno::NO_ENTRY)
    }

    fn close(&mut self, fd: u32) -> Result<(), Errno> {
        let _ = fd;
        Ok(())
    }

    fn seek(&mut self, fd: u32, to: SeekFrom) -> Result<u32, Errno> {
        let _ = (fd, to);
        Err(Errno::NOT_SEEKABLE)
    }

    fn status(&mut self, fd: u32) -> Result<FileStatus, Errno> {
        let _ = fd;
        Ok(FileStatus { is_terminal: true, bytes: 0 })
    }

    fn remove(&mut self, path: &str) -> Result<(), Errno> {
        let _ = path;
        Err(Errno::NO_ENTRY)
    }

    /// Since 1970.
    fn now(&mut self) -> Duration {
        Duration::ZERO
    }
}

/// Keeps what the program writes; it reads what it was given. Time stands still.
#[derive(Debug, Default)]
pub struct Captured {
    pub input: std::io::Cursor<Vec<u8>>,
    pub output: Vec<u8>,
    pub errors: Vec<u8>,
}

impl Captured {
    /// What the program wrote, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }
}

impl Host for Captured {
    fn write(&mut self, fd: u32, bytes: &[u8]) -> Result<u32, Errno> {
        match fd {
            1 => self.output.extend_from_slice(bytes),
            2 => self.errors.extend_from_slice(bytes),
            _ => return Err(Errno::BAD_FILE),
        }
        Ok(bytes.len() as u32)
    }

    fn read(&mut self, fd: u32, buffer: &mut [u8]) -> Result<u32, Errno> {
        if fd != 0 {
            return Err(Errno::BAD_FILE);
        }
        Ok(self.input.read(buffer)? as u32)
    }
}

/// Files of the machine, and three streams.
pub struct Files<I, O, E> {
    pub input: I,
    pub output: O,
    pub errors: E,
    open: BTreeMap<u32, File>,
}

/// A program that opens more is out of control.
const MAX_FILES: usize = 256;

impl<I: Read, O: Write, E: Write> Files<I, O, E> {
    pub fn new(input: I, output: O, errors: E) -> Files<I, O, E> {
        Files { input, output, errors, open: BTreeMap::new() }
    }

    fn file(&mut self, fd: u32) -> Result<&mut File, Errno> {
        self.open.get_mut(&fd).ok_or(Errno::BAD_FILE)
    }
}

impl<I: Read, O: Write, E: Write> Host for Files<I, O, E> {
    fn write(&mut self, fd: u32, bytes: &[u8]) -> Result<u32, Errno> {
        match fd {
            0 => return Err(Errno::BAD_FILE),
            1 => self.output.write_all(bytes)?,
            2 => self.errors.write_all(bytes)?,
            _ => self.file(fd)?.write_all(bytes)?,
        }
        Ok(bytes.len() as u32)
    }

    fn read(&mut self, fd: u32, buffer: &mut [u8]) -> Result<u32, Errno> {
        let read = match fd {
            0 => self.input.read(buffer)?,
            1 | 2 => return Err(Errno::BAD_FILE),
            _ => self.file(fd)?.read(buffer)?,
        };
        Ok(read as u32)
    }

    fn open(&mut self, path: &str, flags: OpenFlags) -> Result<u32, Errno> {
        if self.open.len() >= MAX_FILES {
            return Err(Errno::TOO_MANY_FILES);
        }
        let file = OpenOptions::new()
            .read(flags.reads())
            .write(flags.writes() && !flags.appends())
            .append(flags.writes() && flags.appends())
            .create(flags.creates() && !flags.exclusive() && flags.writes())
            .create_new(flags.creates() && flags.exclusive() && flags.writes())
            .truncate(flags.truncates() && flags.writes() && !flags.appends())
            .open(path)?;
        let fd = (3..).find(|fd| !self.open.contains_key(fd)).ok_or(Errno::TOO_MANY_FILES)?;
        self.open.insert(fd, file);
        Ok(fd)
    }

    fn close(&mut self, fd: u32) -> Result<(), Errno> {
        match fd {
            0..=2 => Ok(()),
            _ => self.open.remove(&fd).map(|_| ()).ok_or(Errno::BAD_FILE),
        }
    }

    fn seek(&mut self, fd: u32, to: SeekFrom) -> Result<u32, Errno> {
        if fd < 3 {
            return Err(Errno::NOT_SEEKABLE);
        }
        let position = self.file(fd)?.seek(to)?;
        u32::try_from(position).map_err(|_| Errno::INVALID)
    }

    fn status(&mut self, fd: u32) -> Result<FileStatus, Errno> {
        if fd < 3 {
            return Ok(FileStatus { is_terminal: true, bytes: 0 });
        }
        let bytes = self.file(fd)?.metadata()?.len();
        Ok(FileStatus { is_terminal: false, bytes: bytes.try_into().unwrap_or(u32::MAX) })
    }

    fn remove(&mut self, path: &str) -> Result<(), Errno> {
        Ok(std::fs::remove_file(path)?)
    }

    fn now(&mut self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}
