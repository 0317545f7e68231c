//! What can be wrong with a file or a process, each in one line that names it, the place and the cause.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("{name}: {action}: {cause}")]
    Io { name: String, action: &'static str, cause: io::Error },
    #[error("{name}: {what}")]
    NotAFile { name: String, what: &'static str },
    #[error("{name}: not an ELF file: {what}")]
    NotElf { name: String, what: String },
    #[error("{name}: unsupported machine {machine} ({what})")]
    UnsupportedMachine { name: String, machine: u16, what: String },
    #[error("{name}: unsupported ELF type: {what}")]
    UnsupportedType { name: String, what: String },
    #[error("{name}: {place}: {what}")]
    Malformed { name: String, place: String, what: String },
    #[error("process {pid}: {what}")]
    Process { pid: u32, what: String },
}

/// A fault inside a file whose name the reader that found it does not know.
#[derive(Debug)]
pub(super) struct Fault {
    pub place: String,
    pub what: String,
}

impl Fault {
    pub fn new(place: impl Into<String>, what: impl Into<String>) -> Fault {
        Fault { place: place.into(), what: what.into() }
    }

    pub fn in_file(self, name: &str) -> ImageError {
        ImageError::Malformed { name: name.to_owned(), place: self.place, what: self.what }
    }
}
