//! Why a patch cannot be written, each in one line that names the file, the place and the cause.

use std::io;

use lancet_isa::Svma;

#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    #[error("{name}: cannot be edited: {what}")]
    CannotEdit { name: String, what: String },
    #[error("{name}: the patch does not fit: {what} at {at}")]
    BadPatch { name: String, at: Svma, what: String },
    #[error("{name}: at {at} are the bytes {found:02x?}, not {expected:02x?} as the patch says")]
    OldBytes { name: String, at: Svma, expected: Vec<u8>, found: Vec<u8> },
    #[error("{name}: there is no pointer at {place} that could lead elsewhere: {what}")]
    NoPointer { name: String, place: Svma, what: &'static str },
    #[error("{name}: {what}: a rewritten copy would not have these rights, and should not")]
    Privileged { name: String, what: &'static str },
    #[error("{out}: is the input itself ({name}); write to another file")]
    OwnInput { name: String, out: String },
    #[error("{out}: exists and is not a regular file")]
    NotAFile { out: String },
    #[error("{out}: {action}: {cause}")]
    Io { out: String, action: &'static str, cause: io::Error },
}
