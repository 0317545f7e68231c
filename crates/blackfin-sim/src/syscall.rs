//! The system calls of libgloss.
//!
//! `EXCPT 0` with the number in P0 and in R0 the address of up to six arguments. The result goes to R0, an error number to
//! R2. (libgloss/bfin/syscalls.c and libgloss/syscall.h of newlib.)

use crate::core::Core;
use crate::error::Trouble;
use crate::exception::Cause;
use crate::host::{Errno, FileStatus, Host, OpenFlags};
use std::io::SeekFrom;

mod number {
    pub const EXIT: u32 = 1;
    pub const OPEN: u32 = 2;
    pub const CLOSE: u32 = 3;
    pub const READ: u32 = 4;
    pub const WRITE: u32 = 5;
    pub const LSEEK: u32 = 6;
    pub const UNLINK: u32 = 7;
    pub const GETPID: u32 = 8;
    pub const KILL: u32 = 9;
    pub const FSTAT: u32 = 10;
    pub const ARGVLEN: u32 = 12;
    pub const ARGV: u32 = 13;
    pub const STAT: u32 = 15;
    pub const CHMOD: u32 = 16;
    pub const UTIME: u32 = 17;
    pub const TIME: u32 = 18;
    pub const GETTIMEOFDAY: u32 = 19;
    pub const TIMES: u32 = 20;
    pub const LINK: u32 = 21;
    pub const ARGC: u32 = 22;
    pub const ARGNLEN: u32 = 23;
    pub const ARGN: u32 = 24;
}

/// Longer transfers are done in part, as `read` and `write` may.
const MAX_TRANSFER: u32 = 1 << 20;
const MAX_PATH: u32 = 4096;

/// What a system call came to.
pub enum Called {
    Returned,
    Exited(i32),
}

/// Runs the system call that the registers ask for. `args` are those of the program, its name first.
pub fn call(core: &mut Core, host: &mut dyn Host, args: &[Vec<u8>]) -> Result<Called, Trouble> {
    let (function, block) = (core.state.r[8], core.state.r[0]);
    let mut words = [0; 6];
    for (word, offset) in words.iter_mut().zip((0..).step_by(4)) {
        // Calls with fewer arguments may stand at the very end of memory.
        *word = read_word(core, block.wrapping_add(offset)).unwrap_or(0);
    }
    if core.mem.bytes(block, 4).is_none() && function != number::GETPID {
        return Err(Trouble::Exception { cause: Cause::DataMiss, address: Some(block) });
    }
    if function == number::EXIT {
        return Ok(Called::Exited(words[0] as i32));
    }
    let (result, errno) = match dispatch(core, host, args, function, words) {
        Some(Ok(value)) => (value, 0),
        Some(Err(Errno(errno))) => (u32::MAX, errno),
        None => return Err(Trouble::UnknownSystemCall { number: function }),
    };
    core.state.r[0] = result;
    core.state.r[1] = 0;
    core.state.r[2] = errno;
    Ok(Called::Returned)
}

/// `None` if there is no such call.
fn dispatch(
    core: &mut Core,
    host: &mut dyn Host,
    args: &[Vec<u8>],
    function: u32,
    [a, b, c, ..]: [u32; 6],
) -> Option<Result<u32, Errno>> {
    Some(match function {
        number::OPEN => path(core, a).and_then(|path| host.open(&path, OpenFlags(b))),
        number::CLOSE => host.close(a).map(|()| 0),
        number::READ => read(core, host, a, b, c.min(MAX_TRANSFER)),
        number::WRITE => {
            let bytes = core.mem.bytes(b, c.min(MAX_TRANSFER) as usize).ok_or(Errno::FAULT);
            bytes.and_then(|bytes| host.write(a, bytes))
        }
        number::LSEEK => match c {
            0 => host.seek(a, SeekFrom::Start(b.into())),
            1 => host.seek(a, SeekFrom::Current((b as i32).into())),
            2 => host.seek(a, SeekFrom::End((b as i32).into())),
            _ => Err(Errno::INVALID),
        },
        number::UNLINK => path(core, a).and_then(|path| host.remove(&path)).map(|()| 0),
        number::GETPID => Ok(1),
        number::FSTAT => host.status(a).and_then(|status| write(core, b, &stat_block(status))).map(|()| 0),
        number::TIME => {
            let seconds = host.now().as_secs() as u32;
            let stored = if a == 0 { Ok(()) } else { write(core, a, &seconds.to_le_bytes()) };
            stored.map(|()| seconds)
        }
        number::GETTIMEOFDAY => {
            let now = host.now();
            let value = [now.as_secs() as u32, now.subsec_micros()].map(u32::to_le_bytes).concat();
            write(core, a, &value).map(|()| 0)
        }
        number::ARGC => Ok(args.len() as u32),
        number::ARGNLEN => args.get(a as usize).map(|arg| arg.len() as u32).ok_or(Errno::INVALID),
        number::ARGN => match args.get(a as usize) {
            Some(arg) => write(core, b, &[arg, &b"\0"[..]].concat()).map(|()| 0),
            None => Err(Errno::INVALID),
        },
        number::KILL
        | number::ARGVLEN
        | number::ARGV
        | number::STAT
        | number::CHMOD
        | number::UTIME
        | number::TIMES
        | number::LINK => Err(Errno::NOT_IMPLEMENTED),
        _ => return None,
    })
}

fn read_word(core: &Core, addr: u32) -> Option<u32> {
    let bytes = core.mem.bytes(addr, 4)?;
    Some(u32::from_le_bytes(*bytes.first_chunk()?))
}

fn write(core: &mut Core, addr: u32, bytes: &[u8]) -> Result<(), Errno> {
    let code_changed = core.mem.write(addr, bytes).ok_or(Errno::FAULT)?;
    core.code_changed |= code_changed;
    Ok(())
}

fn read(core: &mut Core, host: &mut dyn Host, fd: u32, addr: u32, len: u32) -> Result<u32, Errno> {
    // Nothing may be lost from the file if there is no memory for it.
    core.mem.bytes(addr, len as usize).ok_or(Errno::FAULT)?;
    let mut buffer = vec![0; len as usize];
    let count = host.read(fd, &mut buffer)?.min(len);
    write(core, addr, &buffer[..count as usize])?;
    Ok(count)
}

fn path(core: &Core, addr: u32) -> Result<String, Errno> {
    let mut path = Vec::new();
    for at in 0..MAX_PATH {
        match core.mem.bytes(addr.wrapping_add(at), 1) {
            Some([0]) => return String::from_utf8(path).map_err(|_| Errno::INVALID),
            Some(byte) => path.extend_from_slice(byte),
            None => return Err(Errno::FAULT),
        }
    }
    Err(Errno::INVALID)
}

/// newlib's `struct stat` for Blackfin: dev 2, ino 2, mode 4, nlink 2, uid 2, gid 2, rdev 2, size 4, three times of 8,
/// blksize 4, blocks 4, spare 8.
fn stat_block(status: FileStatus) -> [u8; 60] {
    const CHARACTER_DEVICE: u32 = 0o020_000;
    const REGULAR_FILE: u32 = 0o100_000;
    let mode = if status.is_terminal { CHARACTER_DEVICE | 0o620 } else { REGULAR_FILE | 0o644 };
    let mut block = [0; 60];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(4, &mode.to_le_bytes());
    put(8, &1u16.to_le_bytes());
    put(16, &status.bytes.to_le_bytes());
    put(44, &512u32.to_le_bytes());
    put(48, &status.bytes.div_ceil(512).to_le_bytes());
    block
}
