//! A file's bytes, mapped instead of read.
//!
//! Lancet looks at a fraction of a large file (headers, the text, the unwind tables), so mapping saves the copy and
//! shares the page cache with every other process that runs the same program.

use std::fs::File;
use std::io;
use std::ops::Deref;

/// The bytes of a regular file, mapped private and read-only.
///
/// If another process shortens the file while it is mapped, touching the lost pages raises SIGBUS, as in every tool
/// that maps its input (linkers, debuggers). Package managers and linkers replace files instead of shortening them.
#[derive(Debug)]
pub struct Mapped(memmap2::Mmap);

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Maps a whole regular file. An empty file gives an empty slice.
pub fn map_file(file: &File) -> io::Result<Mapped> {
    // SAFETY: the mapping is private and read-only, it lives as long as the `Mapped` that lends out its bytes, and no
    // part of Lancet writes to a file that it has mapped. A writer in another process can change the bytes under us;
    // the readers above treat every byte as hostile and look at each value once per decision, so this can give wrong
    // answers but no memory error beyond the SIGBUS described above.
    unsafe { memmap2::Mmap::map(file) }.map(Mapped)
}
