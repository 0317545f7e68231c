//! Many pieces of another process's memory with one system call, and whether two processes have the same memory.
//!
//! Whoever may trace the process may read it. What the process itself may not read cannot be read this way.

use std::io;
use std::ops::Range;

/// The kernel takes no more pieces at once.
pub const MOST_PIECES: usize = libc::UIO_MAXIOV as usize;

/// Reads pieces one behind the other, up to the first byte that cannot be read. How many bytes were read.
///
/// # Errors
///
/// `InvalidInput` if they do not fit; else what the kernel says, also if the first byte cannot be read.
pub fn read_many(pid: u32, pieces: &[Range<u64>], into: &mut [u8]) -> io::Result<usize> {
    let len: u64 = pieces.iter().map(|piece| piece.end.saturating_sub(piece.start)).sum();
    if len > into.len() as u64 || pieces.len() > MOST_PIECES {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let there = |piece: &Range<u64>| libc::iovec {
        iov_base: piece.start as *mut libc::c_void,
        iov_len: piece.end.saturating_sub(piece.start) as usize,
    };
    let remote: Vec<libc::iovec> = pieces.iter().map(there).collect();
    // SAFETY: the kernel writes at most `into.len()` bytes to `into`, which is borrowed for that long, and reads both
    // lists, which live until it returns. The addresses of the other process are numbers to this one.
    let read = unsafe {
        libc::process_vm_readv(pid.cast_signed(), &raw const local, 1, remote.as_ptr(), remote.len() as u64, 0)
    };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Two processes run in the same memory: one was made to share that of the other.
pub fn have_same_memory(one: u32, other: u32) -> io::Result<bool> {
    const KCMP_VM: libc::c_long = 1;
    // SAFETY: all arguments are numbers, and nothing is changed.
    match unsafe { libc::syscall(libc::SYS_kcmp, i64::from(one), i64::from(other), KCMP_VM, 0_i64, 0_i64) } {
        -1 => Err(io::Error::last_os_error()),
        order => Ok(order == 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(bytes: &[u8]) -> Range<u64> {
        let start = bytes.as_ptr() as u64;
        start..start + bytes.len() as u64
    }

    #[test]
    fn pieces_come_one_behind_the_other_up_to_what_cannot_be_read() {
        let own = std::process::id();
        let mut room = [0; 16];
        assert_eq!(read_many(own, &[range(b"first"), range(b"second")], &mut room).ok(), Some(11));
        assert_eq!(&room[..11], b"firstsecond");
        assert_eq!(read_many(own, &[range(b"first"), 8..10, range(b"third")], &mut room).ok(), Some(5));
        let nothing = 8..10;
        assert!(read_many(own, std::slice::from_ref(&nothing), &mut room).is_err());
        assert!(read_many(own, &[range(&[0; 17])], &mut room).is_err());
    }
}
