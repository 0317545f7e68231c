//! Why a process cannot be changed, in one line that names it.

use std::io;

use lancet_isa::Avma;

use crate::image::ImageError;

#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("process {pid}: cannot take control of it: {why}")]
    Refused { pid: u32, why: String },
    #[error("process {pid}: it has ended")]
    Ended { pid: u32 },
    #[error("process {pid}: it has become another program")]
    OtherProgram { pid: u32 },
    #[error("process {pid}: thread {tid} does not stop: {why}")]
    Unstoppable { pid: u32, tid: u32, why: String },
    #[error("process {pid}: {what}: {cause}")]
    System { pid: u32, what: String, cause: io::Error },
    #[error("process {pid}: no room for {bytes} bytes within reach of {near}")]
    NoRoom { pid: u32, bytes: u64, near: Avma },
    #[error("process {pid}: {at}: its bytes are {found}, not {expected}: it was changed by somebody else")]
    Changed { pid: u32, at: Avma, found: String, expected: String },
    #[error("process {pid}: a thread stays at {at}, in bytes that must change; nothing was changed")]
    Busy { pid: u32, at: Avma },
    #[error("process {pid}: there is no patch {id}")]
    NoSuchPatch { pid: u32, id: u64 },
    #[error("process {pid}: patch {id} lies below patch {above}, which must be undone first")]
    Covered { pid: u32, id: u64, above: u64 },
    #[error("{path}: {what}: {cause}")]
    Journal { path: String, what: &'static str, cause: io::Error },
    #[error("process {pid}: another lancet is changing it")]
    Locked { pid: u32 },
}
