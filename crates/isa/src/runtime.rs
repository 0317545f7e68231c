//! The code that keeps counters where they cannot be lost.
//!
//! It runs inside the edited program, before anything else of it, and consists of nothing but instructions and system
//! calls. It maps a file over the counters: whatever ends the program, the counts are in the file.
//!
//! The file has a header of one page, then *shards*: copies of the counters, each with an owner.
//!
//! ```text
//! header   64 bytes of identity, then whatever the maker of the file wants to remember
//! shard    owner's process id (8 bytes), its pid namespace (8), zero up to 64; the counters
//! shard    ...
//! ```
//!
//! Shards are multiples of a page. A process takes the first shard whose owner is gone, and counts on from what is
//! there, or adds one at the end; a lock on the file makes that one step. After `fork` the child takes another, so no
//! two processes ever write to the same shard. If anything fails, one line says so and the program runs on, uncounted.

use crate::addr::Svma;

/// Bytes of a counts file in front of the first shard.
pub const HEADER_LEN: u64 = 4096;
/// So many bytes of the header must agree.
pub const IDENTITY_LEN: u64 = 64;
/// Where in the header the 8 bytes are whose hexadecimal digits `%n` in a path stands for.
pub const NAME_AT: u64 = 32;
/// Bytes of a shard in front of its first counter.
pub const SHARD_HEADER_LEN: u64 = 64;
/// The longest path of a counts file, with its end.
pub const PATH_LEN: u64 = 2048;
/// The variable that names the counts file.
pub const VARIABLE: &str = "LANCET_COUNTS";

/// How the code gets control, and what it goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartUp {
    /// As a program's entry point.
    Program { old: Svma },
    /// As a library's initializer.
    Library { old: Option<Svma> },
}

/// Where everything is that the code uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTimePlaces {
    /// The code itself.
    pub at: Svma,
    /// What the header of the file must be.
    pub header: Svma,
    /// The path of the file, `%p` in it for the process id, `%n` for digits that tell one program from another; writable.
    pub path: Svma,
    /// The first shard: page-aligned, writable.
    pub shard: Svma,
    /// A multiple of the page size.
    pub shard_len: u64,
    pub start_up: StartUp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTime {
    pub bytes: Vec<u8>,
    pub start_up: Svma,
    /// To be called in a new process that has a copy of its parent's memory. Changes no register but the flags.
    pub forked: Svma,
}
