//! Moving instructions and making new ones.
//!
//! Layout decides *where* code goes; an instruction set knows *how* it is written. Bytes are emitted before their
//! address is known, with [`Field`]s for what depends on it; [`Edit::fill`] completes them.

use crate::addr::Svma;
use crate::regs::{Reg, RegSet};
use crate::runtime::{RunTime, RunTimePlaces};

/// How an instruction depends on where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movable {
    /// Not at all: its bytes may stand anywhere.
    AsIs,
    /// It refers to `target` by a distance in `field`.
    Refers { field: Field, target: Svma },
    /// It transfers control directly: [`Edit::transfer`] writes it anew.
    Transfers,
    /// It must stay: what it does depends on its own address.
    Never(&'static str),
}

/// A place in emitted code that is filled in once addresses are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Offset of its first byte.
    pub offset: u32,
    /// Offset that the distance counts from.
    pub origin: u32,
    pub kind: FieldKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A signed distance of one byte.
    Near,
    /// A signed distance of four bytes.
    Far,
    /// Four bytes, not a distance: where something is in each thread's area, if the object has the place that was chosen for
    /// it. A prefix that makes the operand the thread's own stands [`OWN_PREFIX`] bytes in front.
    Own,
}

/// From the prefix to a field of [`FieldKind::Own`].
pub const OWN_PREFIX: u32 = 5;

impl Field {
    /// The same field in code that `by` bytes were put in front of.
    pub fn shifted(self, by: u32) -> Field {
        Field { offset: self.offset + by, origin: self.origin + by, kind: self.kind }
    }
}

/// How far a transfer of control must reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Near,
    Far,
}

/// What new code may overwrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    pub regs: RegSet,
}

/// What a call that is added to a program is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    Number(u64),
    /// What a register holds there.
    Register(Reg),
}

/// Where a counter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// At an address that its fields are filled with.
    Shared,
    /// At such an address, for threads that run at the same time: no increment is lost, and each costs more.
    Contended,
    /// So many bytes behind the object's first counter, in the thread's area; its fields are filled with where that is.
    PerThread(u32),
}

/// Which counter a field of [`Edit::mark`] or [`Edit::count_marked`] is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    Row,
    Note,
    /// The first row's.
    Column,
}

/// What a gate looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateKind {
    /// A thread that has no shard of its own.
    pub threads: bool,
    /// A call by the kernel, of a signal's handler.
    pub signals: bool,
}

/// What a gate refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateDest {
    Target,
    /// Of the run-time code.
    State,
    /// Where a thread's area tells which thread has a shard of the object.
    Cell,
    NewThread,
    Signal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{from} cannot reach {to}")]
pub struct OutOfReach {
    pub from: Svma,
    pub to: Svma,
}

/// New code could not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("new code for {at} cannot be encoded: {why}")]
pub struct EncodeError {
    pub at: Svma,
    pub why: String,
}

pub trait Edit: Send + Sync {
    /// Shows `visit` each instruction of `code`: its length, and how it depends on its place. `code` is made of whole
    /// instructions.
    fn walk(&self, code: &[u8], at: Svma, visit: &mut dyn FnMut(usize, Movable));

    /// May an instruction in `code` be one that must stay? A quick look at the bytes: it may say yes too often.
    fn may_stay(&self, code: &[u8]) -> bool;

    /// Writes the direct jump, branch or call at the start of `code` anew, to reach near or far. Returns the field for
    /// its target. (A branch that exists in a near form only becomes a near one around a far jump.)
    fn transfer(&self, code: &[u8], reach: Reach, out: &mut Vec<u8>) -> Field;

    /// The length of an instruction at the start of `code` that must stay first where pointers lead to, because the
    /// machine may check for it; 0 if there is none.
    fn landing_mark(&self, code: &[u8]) -> usize;

    /// Visits the addresses in a range (its end included) to which an operand may refer, wherever in `code` it stands, and
    /// whatever is in between: it visits too many. An operand and what is behind it in its instruction are at most
    /// [`Edit::longest_mention`] bytes.
    fn mentions(&self, code: &[u8], at: Svma, range: (Svma, Svma), visit: &mut dyn FnMut(Svma));

    fn longest_mention(&self) -> usize;

    fn jump(&self, reach: Reach, out: &mut Vec<u8>) -> Field;

    /// Adds one to a 64-bit counter. `fields` gets those for its address. Returns how long `out` was when the
    /// instruction was in it that counts.
    fn count(&self, counter: Counter, free: Free, out: &mut Vec<u8>, fields: &mut Vec<Field>) -> usize;

    /// Gives a register the value of another, or zero.
    fn set(&self, reg: Reg, from: Option<Reg>, out: &mut Vec<u8>);

    /// Adds one to a register, and changes nothing else.
    fn count_in(&self, reg: Reg, out: &mut Vec<u8>);

    /// Adds to a 64-bit counter what `reg` holds; with `since`, how much more `reg` holds than `since`, which may be
    /// overwritten. `fields` gets those for its address.
    fn add(
        &self,
        counter: Counter,
        reg: Reg,
        since: Option<Reg>,
        free: Free,
        out: &mut Vec<u8>,
        fields: &mut Vec<Field>,
    );

    /// Remembers in `note` which row of counters the next [`Edit::count_marked`] means.
    fn mark(&self, row: Counter, note: Counter, free: Free, out: &mut Vec<u8>, fields: &mut Vec<(Field, Marked)>);

    /// Adds one to the counter in this column of the row that `note` remembers.
    fn count_marked(
        &self,
        note: Counter,
        column: u32,
        free: Free,
        out: &mut Vec<u8>,
        fields: &mut Vec<(Field, Marked)>,
    );

    /// To stand behind a call that may have returned in a new process: if it did, calls the run-time code for that,
    /// whose address the field wants.
    fn check_fork(&self, out: &mut Vec<u8>) -> Field;

    /// May the system call at the end of `code`, which is the start of its block, go on in a new thread or process?
    fn may_fork(&self, code: &[u8]) -> bool;

    /// Calls a routine that changes no register but those of [`Edit::kept_around_calls`]; all are afterwards as they were.
    /// Arguments beyond what registers can hold are left out.
    fn call(&self, arguments: &[Argument], out: &mut Vec<u8>) -> Field;

    /// Begins a call that returns to the address `back`, wherever it stands itself: a jump to the target must follow,
    /// written by [`Edit::jump`] or [`Edit::jump_as_call`].
    fn call_from(&self, back: u64, out: &mut Vec<u8>);

    /// Behind [`Edit::call_from`]: a jump to where the indirect call at the start of `code` leads. What it refers to by a
    /// distance, it refers to in the same field. `false` if that is no such call.
    fn jump_as_call(&self, code: &[u8], out: &mut Vec<u8>) -> bool;

    /// What a routine may use.
    fn kept_around_calls(&self) -> RegSet;

    /// Registers and flags that a gate changes.
    fn gate_changes(&self) -> RegSet;

    /// Goes on to a target; first to the run-time code if a gate of this kind must.
    fn gate(&self, kind: GateKind, out: &mut Vec<u8>) -> Vec<(Field, GateDest)>;

    /// The code that keeps counters in a file. Its length depends on nothing but the kind of start-up.
    fn run_time(&self, places: &RunTimePlaces) -> Result<RunTime, EncodeError>;

    /// Fills a field of `code`, which stands at `at`, so that it refers to `to`.
    fn fill(&self, code: &mut [u8], at: Svma, field: Field, to: Svma) -> Result<(), OutOfReach>;

    /// Instructions that do nothing.
    fn pad(&self, len: usize, out: &mut Vec<u8>);
}
