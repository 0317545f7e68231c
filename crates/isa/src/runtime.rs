//! The code that keeps counters where they cannot be lost.
//!
//! It runs inside the edited program, before anything else of it, and consists of nothing but instructions and system
//! calls. It maps a file over the counters: whatever ends the program, the counts are in the file.
//!
//! The file has a header of one page, then *shards*: copies of the counters, each with an owner.
//!
//! ```text
//! header   64 bytes of identity, then whatever the maker of the file wants to remember
//! shard    owner's process or thread id (8 bytes), its pid namespace (8), a thread's process id (8), nothing up to 64; the
//!          counters
//! shard    ...
//! ```
//!
//! Shards are multiples of a page. A process takes the first shard whose owner is gone, and counts on from what is
//! there, or adds one at the end; a lock on the file makes that one step. After `fork` the child takes another, so no
//! two processes ever write to the same shard. If anything fails, one line says so and the program runs on, uncounted.
//!
//! An object that may have threads has no counters in its image. Each thread has an *area*, mapped anywhere, and the
//! thread's base register (gs on x86-64) holds its distance from the *window*. All objects of a process share areas: each
//! has its own place there, the same in every area, where it maps a shard of its own file.
//!
//! ```text
//! area     head: whose it is | shard of the program | shard of a library | ...
//! window   head: the last area, the objects of this process | memory that nobody reads, for a thread without an area
//! ```
//!
//! Code is written for one place, and for the window at [`WINDOW`]. An object that finds something else there when it is
//! loaded takes another place, and changes all fields of its code that depend on it, which are listed behind it.
//!
//! Threads get areas and shards at a *gate*: every way into edited code of an object from elsewhere leads through one. It
//! compares the thread with the one whose shard it has; a new thread starts with its creator's, and so does a process that
//! was forked. Areas and shards of threads that are gone are taken again. Where the base register is used already, nothing
//! is counted; where there is no place at all, edited code cannot run.
//!
//! A signal's handler may never return to where the thread was interrupted. In a program that can have handlers a gate
//! therefore also tells whether the kernel called, by what only the kernel puts on the stack. Where the thread was
//! interrupted is then noted among the counters of the object whose code that was, in a table of [`CUT_CELLS`] cells: a
//! distance from the start of this code, and how often control was taken away there and has not come back. What finds no
//! cell is counted in the last one, whose distance stays 0.

use crate::addr::Svma;
use crate::edit::Field;

/// Where counters of threads seem to be, if nothing else is there: below 2 GiB, so that one offset reaches them.
pub const WINDOW: u32 = 0x7000_0000;
/// The most bytes of the window.
pub const WINDOW_LEN: u32 = 0x0f00_0000;
/// Bytes of the window, and of an area, in front of the first shard.
pub const WINDOW_HEAD: u32 = 0x5000;
/// The most objects of a process that can share areas.
pub const MOST_OBJECTS: u32 = 254;
/// In an area: which thread has a shard of each object.
pub const CELLS: u32 = 64;
const CELL_LEN: u32 = 8;
/// Stands in front of the list of fields that are for threads' areas, if it is no longer true.
pub const UNKNOWN_PLACES: u8 = 1;

/// The cells for places where control was taken away. Handlers that return use them too, so there is room for a function or
/// two of which every instruction is interrupted.
pub const CUT_CELLS: u32 = 256;
/// Each has so many numbers.
pub const CUT_NUMBERS: u32 = 2;

/// Bytes of a counts file in front of the first shard.
pub const HEADER_LEN: u64 = 4096;
/// So many bytes of the header must agree.
pub const IDENTITY_LEN: u64 = 64;
/// Where in the header the 8 bytes are whose hexadecimal digits `%n` in a path stands for.
pub const NAME_AT: u64 = 32;
/// Bytes of a shard in front of its first counter.
pub const SHARD_HEADER_LEN: u64 = 64;
/// Bytes of the state, with what a program may read of its thread's own memory before it has any.
pub const STATE_LEN: u64 = 192;
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
    /// The path of the file, `%p` in it for the process id, `%n` for digits that tell one program from another; writable. A
    /// relative one is relative to the directory that the program starts in, wherever it goes.
    pub path: Svma,
    /// [`STATE_LEN`] zero bytes that the code remembers things in; writable.
    pub state: Svma,
    pub shard: Shard,
    /// A multiple of the page size.
    pub shard_len: u64,
    pub start_up: StartUp,
    /// Where in a shard the table of cuts is, if there is one.
    pub cuts: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shard {
    /// All threads share the one in the image: page-aligned, writable.
    At(Svma),
    PerThread(ThreadPlace),
}

/// Where threads have their shards of an object, unless another object is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadPlace {
    /// Bytes behind the head of an area.
    pub at: u32,
    /// Below [`MOST_OBJECTS`].
    pub index: u32,
}

impl ThreadPlace {
    /// At [`WINDOW`].
    pub fn shard(self) -> u32 {
        WINDOW + WINDOW_HEAD + self.at
    }

    /// At [`WINDOW`].
    pub fn cell(self) -> u32 {
        WINDOW + CELLS + CELL_LEN * self.index
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTime {
    pub bytes: Vec<u8>,
    pub start_up: Svma,
    /// To be called where control may go on in a new thread or process, which is told by a result of zero. Changes no
    /// register but the flags.
    pub forked: Svma,
    /// Gates lead here: see [`Edit::gate`](crate::edit::Edit::gate).
    pub new_thread: Svma,
    /// In the code, if threads have shards: to be filled with where fields are listed that are for their areas.
    pub own_places: Option<Field>,
    /// With a table of cuts.
    pub signals: Option<SignalCode>,
}

/// What notes where handlers interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalCode {
    /// Gates lead here.
    pub entry: Svma,
    /// In the code: to be filled with the end of all new code.
    pub text_end: Field,
    /// From a call of a handler on, so far the frame is this large.
    pub frame: (Svma, Svma),
    pub frame_len: u8,
}
