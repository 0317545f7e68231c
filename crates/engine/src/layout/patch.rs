//! What layout decided, for a sink to write: into a file or into a process.
//!
//! A [`Patch`] is complete: every byte is final and every address is as stated in the file (a sink into a process adds
//! the object's bias). New code and tables go to fresh address ranges behind the image; the old text stays where it
//! is, except for the [`Overwrite`]s.

use lancet_isa::Svma;

use crate::program::Part;

/// Bytes for a new, loaded address range.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// Page-aligned.
    pub at: Svma,
    pub bytes: Vec<u8>,
    pub kind: ChunkKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkKind {
    /// Readable and executable: clones, stubs, read-only tables.
    Code,
    /// Readable and writable, `bytes` are its beginning and the rest up to `size` is zero: counters.
    Data { size: u64 },
}

/// Bytes of the image that change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overwrite {
    pub at: Svma,
    /// What must stand there now.
    pub old: Vec<u8>,
    pub new: Vec<u8>,
}

/// A pointer that the loader relocates (`R_*_RELATIVE`) and that shall lead elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repoint {
    /// Where the pointer is.
    pub place: Svma,
    pub to: Svma,
}

/// A symbol for something new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSymbol {
    pub name: String,
    pub at: Svma,
    pub size: u64,
}

/// Names a piece of a chunk as a section, for tools that read section headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSection {
    pub name: &'static str,
    pub range: Part,
}

#[derive(Debug, Clone, Default)]
pub struct Patch {
    pub chunks: Vec<Chunk>,
    pub overwrites: Vec<Overwrite>,
    pub repoints: Vec<Repoint>,
    pub symbols: Vec<NewSymbol>,
    pub sections: Vec<NewSection>,
    /// Runs before anything else of the image: as the entry point of a program (it goes on to the old one by itself),
    /// or as the initializer of a shared library, which gets `argc`, `argv` and `envp` as arguments (it calls the old
    /// `DT_INIT` by itself, with the same arguments; if there is none, it returns). What the old one is, tells
    /// [`hook`](crate::sink::elf_writer::hook).
    pub start_up: Option<Svma>,
    /// The new table of unwind information, replacing the old one: where `.eh_frame_hdr` is, and its size.
    pub eh_frame_hdr: Option<Part>,
}
