//! Where control was taken away in the middle of a block by a signal's handler, and never came back.
//!
//! A handler may jump elsewhere (`siglongjmp`), end the process, or return to another place. The run-time code notes
//! where in the new code it interrupted ([`lancet_isa::runtime`]). Here that is told in terms of the original: which
//! block was entered and not left, and how many of its instructions ran. What was added to a program has instructions
//! too, and some of them count; so the code is laid out once more, from the notes, and must come out as it is in the
//! rewritten program.
//!
//! ```text
//! entry code   body: added code | instructions ... last | added code for the way on      aside: added code | jump
//!              ^ counts the way in                         ^ counts the way on              ^ counts the way
//! ```
//!
//! Before a way is counted, control is still in the block in front of it; afterwards, in the one behind it.
//!
//! Signals without a handler, `SIGKILL` among them, end a process without its knowing: nothing can note that.

use std::collections::BTreeMap;

use lancet_engine::image::Image;
use lancet_engine::layout::{ChunkKind, Layout, MovedPiece};
use lancet_engine::plan::CounterId;
use lancet_engine::program::{BlockId, EdgeKind, Func, FuncId, Program};
use lancet_isa::Svma;
use lancet_isa::runtime::{CUT_CELLS, CUT_NUMBERS};

use super::{Notes, Slot};

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
    /// The way out of the block had not been counted yet.
    pub inside: bool,
    /// This one of the function's counters had not counted the way into it yet.
    pub uncounted: Option<u32>,
    /// Negative if control came here without having been taken away: in a new process.
    pub times: i64,
}

/// By function; and how often nothing tells where.
pub(super) type Located = (BTreeMap<FuncId, Vec<Cut>>, u64);

/// `cuts` are distances from the start of the new code, and times. `traced` is the layout of the notes, if it can be had.
pub(super) fn locate(
    program: &Program,
    rewritten: &Image,
    notes: &Notes,
    traced: Option<&Layout>,
    cuts: &BTreeMap<u64, i64>,
) -> Located {
    let mut located = Located::default();
    let cuts = cuts.iter().filter(|(_, times)| **times != 0);
    for (distance, times) in cuts {
        let found = traced.filter(|_| *distance != 0).map(|layout| {
            let code = layout.patch.chunks.iter().find(|chunk| chunk.kind == ChunkKind::Code)?;
            let pc = code.at + *distance;
            let Some(piece) = piece_at(layout, pc) else { return Some(None) };
            let range = (piece.new_start - code.at) as usize..(piece.new_end - code.at) as usize;
            let is_same = code.bytes.get(range) == rewritten.bytes(piece.new_start, piece.new_end - piece.new_start);
            is_same.then_some(Some((piece, pc)))
        });
        match found.flatten() {
            // In code that belongs to no function: whoever called it is in a call.
            Some(None) => {}
            Some(Some((piece, pc))) => match cut(program, notes, piece, pc) {
                Some(Where::Outside) => {}
                Some(Where::Inside { block, ran, inside, uncounted }) => {
                    let cut = Cut { block, ran, inside, uncounted, times: *times };
                    located.0.entry(piece.func).or_default().push(cut);
                }
                None => located.1 += times.unsigned_abs(),
            },
            None => located.1 += times.unsigned_abs(),
        }
    }
    located
}

fn piece_at(layout: &Layout, pc: Svma) -> Option<&MovedPiece> {
    let after = layout.pieces.partition_point(|piece| piece.new_start <= pc);
    layout.pieces[..after].last().filter(|piece| pc < piece.new_end)
}

enum Where {
    /// Control had left the function.
    Outside,
    Inside {
        block: BlockId,
        ran: u32,
        inside: bool,
        uncounted: Option<u32>,
    },
}

/// None if it cannot be told.
fn cut(program: &Program, notes: &Notes, piece: &MovedPiece, pc: Svma) -> Option<Where> {
    let func = program.func(piece.func);
    let noted = &notes.funcs[notes.funcs.binary_search_by_key(&func.entry, |noted| noted.entry).ok()?];
    let index = |counter: CounterId| counter.0.checked_sub(noted.first);
    let slot = |counter: CounterId| noted.placement.counters.get(index(counter)? as usize).copied();
    // The last that was counted between two addresses.
    let counted = |from: Svma, to: Svma| {
        let (start, end) = (partition(piece, from), partition(piece, to));
        piece.counted[start..end].last().map(|(_, counter)| *counter)
    };
    let in_block = |block, ran, inside| Where::Inside { block, ran, inside, uncounted: None };
    let whole = |block: BlockId| in_block(block, func.block(block).insns, true);
    let start_of = |block: BlockId| in_block(block, 0, true);
    if pc >= piece.body_end {
        let aside = piece.asides[..piece.asides.partition_point(|aside| aside.at <= pc)].last()?;
        let from = block_at(func, aside.like)?;
        return match counted(aside.at, pc).map(slot) {
            None => Some(whole(from)),
            Some(slot) => match slot? {
                Slot::Edge(edge) => Some(start_of(func.edges[edge.0 as usize].to)),
                _ => Some(Where::Outside),
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
            // It was called, so it counts as entered.
            Slot::Entry(_) => Some(Where::Inside { block, ran: 0, inside: true, uncounted: index(*counter) }),
            Slot::Edge(edge) => Some(whole(func.edges[edge.0 as usize].from)),
            _ => Some(start_of(block)),
        };
    }
    let ran = instructions_before(program, func, block, spans.last()?.old + (pc - spans.last()?.body));
    match counted(span.body, pc).map(slot) {
        None => Some(in_block(block, ran, true)),
        Some(slot) => match slot? {
            Slot::Edge(edge) => Some(start_of(func.edges[edge.0 as usize].to)),
            // Counted in front of the instruction that leaves, which has not run.
            Slot::Exit(_) => Some(in_block(block, ran, false)),
            _ => None,
        },
    }
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
