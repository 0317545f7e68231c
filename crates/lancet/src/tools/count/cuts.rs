//! Where control was taken away in the middle of a block, and never came back.
//!
//! A signal's handler may jump elsewhere (`siglongjmp`), end the process, or return to another place. The run-time code
//! notes where in the new code it interrupted ([`lancet_isa::runtime`]). A signal without a handler, `SIGKILL` among them,
//! ends a process without its knowing; then whoever watches it from outside may know ([`crate::counting::Watched`]).
//!
//! Here that is told in terms of the original: which block was entered and not left, and how many of its instructions
//! ran. What was added to a program has instructions too, and some of them count; so the code is laid out once more, from
//! the notes, and must come out as it is in the rewritten program.
//!
//! ```text
//! entry code   body: added code | instructions ... last | added code for the way on      aside: added code | jump
//!              ^ counts the way in                         ^ counts the way on              ^ counts the way
//! ```
//!
//! Before a way is counted, control is still in the block in front of it; afterwards, in the one behind it. A function that
//! was called or jumped to counts as entered, even if control never got to the code that counts that. One that is about to
//! be left has not been left, even if that was counted.

use std::collections::BTreeMap;

use lancet_engine::image::Image;
use lancet_engine::layout::{ChunkKind, Layout, MovedPiece};
use lancet_engine::plan::CounterId;
use lancet_engine::program::{BlockId, EdgeKind, ExitKind, FoundBy, Func, FuncId, Program};
use lancet_isa::runtime::{CUT_CELLS, CUT_NUMBERS};
use lancet_isa::{Flow, Svma, Target, decode_one};

use super::{NotedFunc, Notes, Slot};

/// How many numbers the notes of cuts need.
pub const NUMBERS: u32 = CUT_CELLS * CUT_NUMBERS;

/// What installs a handler.
const INSTALLS_A_HANDLER: [&str; 8] =
    ["__sysv_signal", "bsd_signal", "sigaction", "signal", "sigset", "sigvec", "ssignal", "sysv_signal"];

/// May functions of this object be handlers of signals?
pub fn may_handle_signals(image: &Image) -> bool {
    image.interpreter().is_none() && image.needed().next().is_none()
        || image.imports().any(|name| INSTALLS_A_HANDLER.contains(&name))
}

/// Control was taken away inside a block, for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    pub block: BlockId,
    /// So many of its instructions had run.
    pub ran: u32,
    /// This one of the function's counters has so much too little: the way in was not counted yet, or the way out was
    /// counted too early.
    pub missing: Option<(u32, i64)>,
    /// Negative if control came here without having been taken away: in a new process.
    pub times: i64,
}

/// By function; and how often nothing tells where.
pub(super) type Located = (BTreeMap<FuncId, Vec<Cut>>, u64);

/// Where control was taken away, and how often.
pub(super) struct Taken<'a> {
    /// As distances from the start of the new code; 0 where that is not known.
    pub by_handlers: &'a BTreeMap<u64, i64>,
    /// By addresses of the rewritten program.
    pub by_ends: &'a BTreeMap<Svma, u64>,
}

/// `traced` is the layout of the notes, if it can be had.
pub(super) fn locate(
    program: &Program,
    rewritten: &Image,
    notes: &Notes,
    traced: Option<&Layout>,
    taken: &Taken<'_>,
) -> Located {
    let mut located = Located::default();
    let code = traced.and_then(|layout| {
        let code = layout.patch.chunks.iter().find(|chunk| chunk.kind == ChunkKind::Code)?;
        Some((layout, code))
    });
    let handlers = taken.by_handlers.iter().map(|(distance, times)| {
        let at = code.filter(|_| *distance != 0).map(|(_, code)| code.at + *distance);
        (at, *times)
    });
    let ends = taken.by_ends.iter().map(|(at, times)| (Some(*at), times.cast_signed()));
    for (at, times) in handlers.chain(ends).filter(|(_, times)| *times != 0) {
        let place = code.zip(at).and_then(|((layout, code), at)| {
            let pc = arrival(program, layout, at);
            // In code that belongs to no function: whoever called it is in a call.
            let Some(piece) = piece_at(layout, pc) else { return Some(stub_at(program, pc)) };
            let range = (piece.new_start - code.at) as usize..(piece.new_end - code.at) as usize;
            let is_same = code.bytes.get(range) == rewritten.bytes(piece.new_start, piece.new_end - piece.new_start);
            is_same.then(|| cut(program, notes, piece, pc))?
        });
        match place {
            Some(Where::Outside) => {}
            Some(Where::Inside { func, block, ran, missing }) => {
                located.0.entry(func).or_default().push(Cut { block, ran, missing, times });
            }
            None => located.1 += times.unsigned_abs(),
        }
    }
    located
}

/// Where control comes to from a jump in the old text.
fn arrival(program: &Program, layout: &Layout, mut pc: Svma) -> Svma {
    // A short one leads to one that leads on.
    for _ in 0..2 {
        let Some(there) = layout.patch.overwrites.iter().find(|there| there.at == pc) else { break };
        match decode_one(program.image().isa(), &there.new, pc).map(|insn| insn.flow) {
            Ok(Flow::Jump(Target::Direct(to))) => pc = to,
            _ => break,
        }
    }
    pc
}

/// Stubs are left alone, and their callers tell how often they run.
fn stub_at(program: &Program, pc: Svma) -> Where {
    let Some(id) = program.func_at(pc).filter(|id| program.func(*id).found_by == FoundBy::Plt) else {
        return Where::Outside;
    };
    let func = program.func(id);
    match block_at(func, pc) {
        Some(block) => {
            Where::Inside { func: id, block, ran: instructions_before(program, func, block, pc), missing: None }
        }
        None => Where::Outside,
    }
}

fn piece_at(layout: &Layout, pc: Svma) -> Option<&MovedPiece> {
    let after = layout.pieces.partition_point(|piece| piece.new_start <= pc);
    layout.pieces[..after].last().filter(|piece| pc < piece.new_end)
}

enum Where {
    /// Control had left the function for another.
    Outside,
    Inside {
        func: FuncId,
        block: BlockId,
        ran: u32,
        missing: Option<(u32, i64)>,
    },
}

fn noted<'a>(program: &Program, notes: &'a Notes, id: FuncId) -> Option<&'a NotedFunc> {
    let entry = program.func(id).entry;
    Some(&notes.funcs[notes.funcs.binary_search_by_key(&entry, |noted| noted.entry).ok()?])
}

/// None if it cannot be told.
fn cut(program: &Program, notes: &Notes, piece: &MovedPiece, pc: Svma) -> Option<Where> {
    let id = piece.func;
    let func = program.func(id);
    let noted = noted(program, notes, id)?;
    let index = |counter: CounterId| counter.0.checked_sub(noted.first);
    let slot = |counter: CounterId| noted.placement.counters.get(index(counter)? as usize).copied();
    // The last that was counted between two addresses.
    let counted = |from: Svma, to: Svma| {
        let (start, end) = (partition(piece, from), partition(piece, to));
        piece.counted[start..end].last().map(|(_, counter)| *counter)
    };
    let in_block = |block, ran, missing| Where::Inside { func: id, block, ran, missing };
    let whole = |block: BlockId| in_block(block, func.block(block).insns, None);
    let start_of = |block: BlockId| in_block(block, 0, None);
    if pc >= piece.body_end {
        let aside = piece.asides[..piece.asides.partition_point(|aside| aside.at <= pc)].last()?;
        let from = block_at(func, aside.like)?;
        return match counted(aside.at, pc).map(slot) {
            None => Some(whole(from)),
            Some(slot) => match slot? {
                Slot::Edge(edge) => Some(start_of(func.edges[edge.0 as usize].to)),
                Slot::Exit(exit) => Some(jumped(program, notes, func.exits.get(exit as usize)?.kind)),
                _ => None,
            },
        };
    }
    // The block's own span: there are others behind system calls.
    let spans = &piece.spans[..piece.spans.partition_point(|span| span.begin <= pc)];
    let (block, span) = spans.iter().rev().find_map(|span| Some((func.block_starting_at(span.old)?, span)))?;
    if pc < span.body {
        let next = piece.counted.get(partition(piece, pc)).filter(|(at, _)| *at <= span.body);
        let Some((_, counter)) = next else { return Some(start_of(block)) };
        return match slot(*counter)? {
            Slot::Entry(_) => Some(in_block(block, 0, Some((index(*counter)?, 1)))),
            Slot::Edge(edge) => Some(whole(func.edges[edge.0 as usize].from)),
            _ => Some(start_of(block)),
        };
    }
    let ran = instructions_before(program, func, block, spans.last()?.old + (pc - spans.last()?.body));
    match counted(span.body, pc) {
        None => Some(in_block(block, ran, None)),
        Some(counter) => match slot(counter)? {
            Slot::Edge(edge) => Some(start_of(func.edges[edge.0 as usize].to)),
            // Counted in front of the instruction that leaves, which has not run.
            Slot::Exit(_) => Some(in_block(block, ran, Some((index(counter)?, -1)))),
            _ => None,
        },
    }
}

/// A branch has left a function, and control is in front of what is entered by that.
fn jumped(program: &Program, notes: &Notes, exit: ExitKind) -> Where {
    let ExitKind::TailCall(Target::Direct(to)) = exit else { return Where::Outside };
    let Some(id) = program.func_starting_at(to) else { return Where::Outside };
    let (Some(noted), Some(block)) = (noted(program, notes, id), program.func(id).entries.first()) else {
        return Where::Outside;
    };
    let counter = noted.placement.counters.iter().position(|slot| *slot == Slot::Entry(0));
    Where::Inside { func: id, block: *block, ran: 0, missing: counter.map(|counter| (counter as u32, 1)) }
}

/// How many of the counting instructions end at or before an address.
fn partition(piece: &MovedPiece, at: Svma) -> usize {
    piece.counted.partition_point(|(end, _)| *end <= at)
}

fn block_at(func: &Func, at: Svma) -> Option<BlockId> {
    func.block_ids().find(|id| (func.block(*id).start..func.block(*id).end()).contains(&at))
}

/// Instructions of a block that have run when control is at `at`, or would be if the block's last instruction had its
/// old length. One that leaves the block for good has not run as long as control is there.
fn instructions_before(program: &Program, func: &Func, block: BlockId, at: Svma) -> u32 {
    use EdgeKind::{CallReturn, Fall, Taken};
    let insns = program.insns(func.block(block));
    let ran = insns.iter().take_while(|insn| insn.at < at).count() as u32;
    let stays = func.successors(block).iter().any(|edge| matches!(edge.kind, Fall | Taken | CallReturn));
    if stays { ran } else { ran.min(insns.len() as u32 - 1) }
}
