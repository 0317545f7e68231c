//! Editing in place, for programs whose addresses must all stay: Blackfin, as DSPInst does it.
//!
//! The old text keeps its layout to the byte. Where something is to be added, one of two tactics leads there:
//!
//! | tactic | in the old text | costs | needs |
//! | --- | --- | --- | --- |
//! | [`Tactic::Jump`] | `JUMP.L` at the start of the block | about 30 cycles to count | that every way into the block is known, and 4 bytes (or 2, and an island near by) |
//! | [`Tactic::Trap`] | `RAISE` and NOPs in place of the instruction | about 145 cycles to count | an event controller, and code that runs below the event's level |
//!
//! ```text
//!   block:  JUMP.L copy ──> copy:  what is added          point:  RAISE    ──> handler: finds the point by RETI,
//!           (dead bytes)           the instructions,              NOP                   what is added, the instruction
//!   next:  <── JUMP.L ──────────   re-expressed           next:  <── RTI ────────────   re-expressed
//! ```
//!
//! Invariants. No register that the program can see changes, apart from RETE and the event's own RETI. Return addresses,
//! loop registers and everything on the stack are what they were, because instructions that use their own address are
//! re-expressed with the old one ([`reexpress`]). No memory of the program is written: what is added has a stack of its
//! own. A point that cannot be served under these rules is refused, with the reason.

mod actions;
mod code;
mod constants;
mod events;
mod jump;
mod levels;
mod reexpress;
mod room;
mod trap;

use std::collections::BTreeMap;
use std::fmt;

use lancet_isa::blackfin::{AllReg, EncodeError};
use lancet_isa::{Reg, Svma};

pub use actions::{SAVED_PFCTL, SAVED_SYSCFG};
pub use levels::Environment;
pub use room::Room;

use super::{Chunk, ChunkKind, NewSection, NewSymbol, Overwrite, Patch};
use crate::program::{Part, Program};
use actions::Runtime;
use code::Code;
use levels::Levels;
use room::Allocator;

/// Where to add something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Just before an instruction, however control came there.
    Before(u32),
    /// Just behind an instruction that goes on to the next one; behind a conditional branch, where it is not taken.
    After(u32),
    /// Where the direct jump or the conditional branch at this address is taken.
    Taken(u32),
    /// Where a hardware loop goes round once more: from the instruction at its bottom to its top.
    Again { bottom: u32, top: u32 },
    /// Where control passes behind the instruction at the bottom of hardware loops, because none goes round once more.
    Done(u32),
}

/// Which side of the instruction.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Place::Before(_) => "before",
            Place::After(_) => "after",
            Place::Taken(_) => "taken",
            Place::Again { .. } => "again",
            Place::Done(_) => "done",
        })
    }
}

impl Place {
    pub fn at(self) -> u32 {
        match self {
            Place::Before(at) | Place::After(at) | Place::Taken(at) | Place::Done(at) => at,
            Place::Again { bottom, .. } => bottom,
        }
    }
}

/// What to add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Add one to the 64-bit counter of this number.
    Count(u32),
    /// Call a routine of the payload, with this in R0 and the address of the place in R1. All registers are protected.
    Call { routine: u32, argument: u32 },
    /// Call a routine of the payload with the arguments that [`Order::invocations`] states under this number.
    Invoke(u32),
    /// As `Call`, but only if the first word of the payload's data is not `unless` (0 to 3).
    Switch { routine: u32, argument: u32, unless: u8 },
    /// Set the first word of the payload's data.
    Set(u8),
}

/// A call with arguments of one's own: up to three in R0 to R2, the others on the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    pub routine: u32,
    pub arguments: Vec<Operand>,
}

/// What a routine is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    Number(u32),
    /// What a register holds at the place.
    Register(AllReg),
}

impl Operand {
    /// The register of this number, if a routine can be given what it holds: one of 32 bits that a program can change.
    pub fn register(reg: Reg) -> Option<Operand> {
        actions::operand(reg).map(Operand::Register)
    }
}

/// Code that comes along, to be called.
///
/// While a routine runs, CYCLES and the performance monitor stand still. Their controls are on the stack:
/// [`SAVED_PFCTL`] and [`SAVED_SYSCFG`] bytes above SP at the routine's start, 4 more for the start-up routine. What
/// stands there counts again afterwards.
pub trait Payload {
    /// Bytes of data that it needs.
    fn data_bytes(&self) -> u32;

    /// The code, to stand at `code_at` with its data from `data_at` on.
    fn place(&self, code_at: u32, data_at: u32) -> Result<PlacedPayload, EncodeError>;
}

/// A payload at its addresses.
#[derive(Clone, Debug, Default)]
pub struct PlacedPayload {
    pub code: Vec<u8>,
    /// The addresses of its routines, by number.
    pub routines: Vec<u32>,
    /// The beginning of its data; the rest is zero.
    pub data: Vec<u8>,
}

/// Nothing comes along.
pub struct NoPayload;

impl Payload for NoPayload {
    fn data_bytes(&self) -> u32 {
        0
    }

    fn place(&self, _: u32, _: u32) -> Result<PlacedPayload, EncodeError> {
        Ok(PlacedPayload::default())
    }
}

/// What is to be done to a program.
pub struct Order<'a> {
    pub points: &'a [(Place, Deed)],
    pub counters: u32,
    pub payload: &'a dyn Payload,
    /// For [`Deed::Invoke`].
    pub invocations: &'a [Invocation],
    /// A routine of the payload that is called before everything else of the program that can be instrumented.
    pub start: Option<u32>,
    pub environment: Environment,
    /// Which tactics may be used.
    pub tactics: Tactics,
}

impl<'a> Order<'a> {
    /// Nothing yet.
    pub fn new(payload: &'a dyn Payload) -> Order<'a> {
        let (environment, tactics) = (Environment::Virtual, Tactics::Cheapest);
        Order { points: &[], counters: 0, payload, invocations: &[], start: None, environment, tactics }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Tactics {
    /// Jumps where they are safe, else traps.
    #[default]
    Cheapest,
    JumpsOnly,
    /// Traps for every point, as in the paper.
    TrapsOnly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tactic {
    Jump,
    Trap,
}

impl Tactic {
    /// What it costs to count at one place: the mean over the counts of all blocks of `crc.op.elf`, in cycles of the
    /// simulator's model.
    pub fn cycles_of_a_count(self) -> u32 {
        match self {
            Tactic::Jump => 30,
            Tactic::Trap => 145,
        }
    }
}

impl fmt::Display for Tactic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tactic::Jump => "jump",
            Tactic::Trap => "trap",
        })
    }
}

/// Why something cannot be added at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refusal {
    #[error("no instruction that control reaches starts there")]
    NoInstruction,
    #[error("it runs in an event handler, or may be called from one")]
    InHandler,
    #[error("it runs before the vector of the trap is set")]
    InStartUp,
    #[error("interrupts are disabled there (CLI)")]
    InterruptsDisabled,
    #[error("the instruction uses the event registers (RETI, RETN, RETE)")]
    UsesEventRegisters,
    #[error("the instruction changes the event state")]
    ChangesEventState,
    #[error("not all ways into its function are known")]
    UnknownEntries,
    #[error("its block has no room for a jump, and none is near by")]
    NoRoom,
    #[error("it is all of a hardware loop's last block, where no jump may stand")]
    LoopBottom,
    #[error("the instruction at the bottom of a hardware loop uses the loop registers")]
    LoopRegisters,
    #[error("it cannot be told from another point, whose trap returns to the same address")]
    KeyCollision,
    #[error("the target depends on the instruction's own address")]
    PcRelativeTarget,
    #[error("there is no event controller to trap to")]
    NoTraps,
    #[error("the program uses all events that a trap could")]
    EventInUse,
    #[error("the program sets its interrupt mask to what may not let traps through")]
    OwnMask,
    #[error("control does not pass behind this instruction, or it has no such exit")]
    NoSuchExit,
    #[error("the new code is out of reach")]
    OutOfReach,
}

/// A point that was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    pub place: Place,
    pub tactic: Tactic,
}

/// An edited program.
#[derive(Debug, Default)]
pub struct Edited {
    pub patch: Patch,
    pub placed: Vec<Placed>,
    pub refused: Vec<(Place, Refusal)>,
    /// Where counter 0 is; each takes 8 bytes.
    pub counters_at: u32,
    /// Where the data of the payload is.
    pub payload_data_at: u32,
    /// Bytes of new code and data, and how many of them are in on-chip memory, where they do not disturb the caches.
    pub bytes: u32,
    pub bytes_on_chip: u32,
}

#[derive(Debug, thiserror::Error)]
pub enum InPlaceError {
    #[error("there is no room for {bytes} more bytes of {what}")]
    NoRoom { what: &'static str, bytes: u32 },
    #[error("the start-up code cannot be hooked in: {why}")]
    NoStart { why: Refusal },
    #[error("new code cannot be encoded: {0}")]
    Encode(#[from] EncodeError),
}

/// Adds what was ordered to a program.
pub fn edit(program: &Program, order: &Order<'_>) -> Result<Edited, InPlaceError> {
    let code = Code::read(program);
    let levels = Levels::of(program, &code, order.environment);
    let mut room = Allocator::new(Room::of(program.image(), order.environment));
    let runtime = Runtime::place(&mut room, order, levels.event())?;
    let mut points: BTreeMap<u32, Vec<(Place, Deed)>> = BTreeMap::new();
    for point in order.points {
        points.entry(point.0.at()).or_default().push(*point);
    }
    let mut work = Work { program, code: &code, levels: &levels, runtime: &runtime, room, edited: Edited::default() };
    work.edited.counters_at = runtime.counters_at;
    work.edited.payload_data_at = runtime.payload_data_at;
    let may_trap = order.environment == Environment::Operating && order.tactics != Tactics::JumpsOnly;
    let hooked = if may_trap || order.start.is_some() { jump::hook_start(&mut work)? } else { Ok(()) };
    if let (Err(why), true) = (hooked, order.start.is_some()) {
        return Err(InPlaceError::NoStart { why });
    }
    let rest = match order.tactics {
        Tactics::TrapsOnly => points.into_iter().map(|(at, list)| (at, list, Refusal::NoTraps)).collect(),
        Tactics::Cheapest | Tactics::JumpsOnly => jump::serve(&mut work, points)?,
    };
    if may_trap && hooked.is_ok() {
        trap::serve(&mut work, rest)?;
    } else {
        for (_, list, why) in rest {
            work.edited.refused.extend(list.into_iter().map(|(place, _)| (place, why)));
        }
    }
    Ok(work.finish())
}

/// What all steps share.
struct Work<'a> {
    program: &'a Program,
    code: &'a Code,
    levels: &'a Levels,
    runtime: &'a Runtime,
    room: Allocator,
    edited: Edited,
}

impl Work<'_> {
    fn overwrite(&mut self, at: u32, new: Vec<u8>) {
        let old = self.program.image().bytes(Svma(at.into()), new.len() as u64).unwrap_or_default().to_vec();
        self.edited.patch.overwrites.push(Overwrite { at: Svma(at.into()), old, new });
    }

    fn finish(mut self) -> Edited {
        let patch = &mut self.edited.patch;
        for (at, bytes, code) in self.room.take() {
            self.edited.bytes += bytes.len() as u32;
            if room::is_on_chip(at) {
                self.edited.bytes_on_chip += bytes.len() as u32;
            }
            let (at, size) = (Svma(at.into()), bytes.len() as u64);
            let (name, kind) =
                if code { (".lancet.text", ChunkKind::Code) } else { (".lancet.data", ChunkKind::Data { size }) };
            patch.sections.push(NewSection { name, range: Part { start: at, end: at + size } });
            patch.chunks.push(Chunk { at, bytes, kind });
        }
        patch.chunks.sort_by_key(|chunk| chunk.at);
        patch.sections.sort_by_key(|section| section.range.start);
        let counters =
            NewSymbol { name: "__lancet_counters".to_owned(), at: Svma(self.edited.counters_at.into()), size: 0 };
        patch.symbols.push(counters);
        self.edited.placed.sort_by_key(|placed| placed.place);
        self.edited.refused.sort();
        self.edited
    }
}
