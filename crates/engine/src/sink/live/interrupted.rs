//! Threads in the handler of a signal, which will go on where the signal came.
//!
//! Nothing but a thread's stack tells that. The kernel saves there, in a row: the stack pointer, where the thread was, its
//! flags, and its segments, code first. Whatever looks like that counts.
//!
//! ```text
//! top of the stack ─ handler and what it called ─ saved: stack pointer, where, flags, segments ─ what was interrupted
//!                                                        └> perhaps another stack, perhaps interrupted in a handler, too
//! ```
//!
//! A stack is searched from its top to its end, or for a megabyte: what the kernel saved lies above what the handler
//! itself has used since, however deep the stack was before. From there the search goes on at the saved stack pointer,
//! so handlers of their own stacks (`sigaltstack`), and handlers that were interrupted themselves, are followed to the
//! last. What a program put aside to run later, on a stack that no thread is on, is not seen.
//!
//! Everybody waits for the search. So what it needs is prepared before, and stacks are read many at a time. A thread's
//! own storage usually lies behind its stack, in the same mapping, and is larger than what most threads have on the stack.
//! No stack has it in its middle, so a stack that begins below it also ends below it. And what the kernel saves is large:
//! the many threads that have less than that on their stacks are in no handler, and need not be read.

use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use lancet_isa::Avma;
use lancet_sys::frame::least_signal_frame;
use lancet_sys::remote::MOST_PIECES;

use super::{LiveError, Memory, room};
use crate::image::maps::Mapping;

/// More than a handler uses, with all that it calls.
const DEEPEST: u64 = 1 << 20;
/// So much is read at once.
const ROOM: usize = 256 << 10;
const WORD: u64 = 8;
/// What is saved may lie across the end of a piece that was read.
const OVERLAP: u64 = 3 * WORD;
/// So many words are looked at together.
const AT_ONCE: usize = 16;
const USER_CODE_SEGMENT: u16 = 0x33;
/// All segments, as the kernel saves them; older ones do not save that of the stack.
const SEGMENTS: [u64; 2] = [0x2b_0000_0000_0033, 0x33];

/// Where a thread's stack begins.
#[derive(Clone, Copy)]
pub(super) struct Top {
    pub at: u64,
    /// Where the thread keeps what is its own; nothing is known of it if that is not above the top.
    pub own: u64,
}

/// What is known of a process before it is stopped.
pub(super) struct Stacks {
    pid: u32,
    mapped: Vec<Mapping>,
    sizes: Option<File>,
    /// How much was mapped, in pages.
    size: Option<u64>,
    /// A stack that is smaller has no saved context.
    least: u64,
    room: Vec<u8>,
}

impl Stacks {
    pub fn prepare(pid: u32) -> Result<Stacks, LiveError> {
        let sizes = File::open(format!("/proc/{pid}/statm")).ok();
        let size = size(sizes.as_ref());
        let mut room = vec![0; ROOM];
        // Memory that was never touched is slow the first time.
        room.fill(1);
        Ok(Stacks { pid, mapped: room::mappings(pid)?, sizes, size, least: least_signal_frame(), room })
    }

    pub fn mapped(&self) -> &[Mapping] {
        &self.mapped
    }

    /// An address that a stopped thread will come back to from a handler, if `matters` for one of them. `tops` are the
    /// threads' stacks.
    pub fn comes_back(&mut self, memory: &Memory, tops: &[Top], matters: impl Fn(u64) -> bool) -> Option<Avma> {
        // Stacks come and go with threads. Asking how much is mapped is cheaper than asking what.
        let size = size(self.sizes.as_ref());
        if size.is_none() || size != self.size {
            self.mapped = room::mappings(self.pid).unwrap_or_default();
        }
        search(&self.mapped, self.least, &mut self.room, memory, tops, matters)
    }
}

fn search(
    mapped: &[Mapping],
    least: u64,
    room: &mut [u8],
    memory: &Memory,
    tops: &[Top],
    matters: impl Fn(u64) -> bool,
) -> Option<Avma> {
    let (queued, waiting) = (Vec::with_capacity(tops.len()), VecDeque::with_capacity(tops.len()));
    let mut search = Search { mapped, least, queued, waiting };
    tops.iter().for_each(|top| search.queue(*top));
    while let Some((pieces, len)) = search.next_batch(room.len() as u64) {
        let read = memory.read_many(&pieces, &mut room[..len]);
        let (mut from, mut left) = (0, pieces.iter());
        while let Some(piece) = left.next() {
            let end = from + (piece.end - piece.start) as usize;
            let words = room[from..end.min(read)].as_chunks::<8>().0;
            if let Some(at) = search.look(words, &matters) {
                return Some(at);
            }
            from = end;
            if end > read {
                // The stack ended sooner than its mapping said. What comes behind it was not read.
                search.waiting.extend(left.cloned());
                break;
            }
        }
    }
    None
}

struct Search<'m> {
    mapped: &'m [Mapping],
    least: u64,
    /// Stacks that were searched, or will be.
    queued: Vec<Range<u64>>,
    /// What is still to be read.
    waiting: VecDeque<Range<u64>>,
}

impl Search<'_> {
    /// Searches the stack with this top, if that is not part of another search.
    fn queue(&mut self, Top { at, own }: Top) {
        let top = at / WORD * WORD;
        if !self.queued.iter().any(|stack| stack.contains(&top)) {
            let mut stack = stack_from(top, self.mapped);
            if own > top {
                stack.end = stack.end.min(own);
            }
            if stack.end - top >= self.least {
                self.waiting.push_back(stack.clone());
                self.queued.push(stack);
            }
        }
    }

    /// As much as there is room for, and how many bytes that is.
    fn next_batch(&mut self, room: u64) -> Option<(Vec<Range<u64>>, usize)> {
        let mut pieces = Vec::new();
        let mut used = 0;
        while pieces.len() < MOST_PIECES && room - used > OVERLAP {
            let Some(mut piece) = self.waiting.pop_front() else { break };
            if piece.end - piece.start > room - used {
                let cut = piece.start + (room - used);
                self.waiting.push_front(cut - OVERLAP..piece.end);
                piece.end = cut;
            }
            used += piece.end - piece.start;
            pieces.push(piece);
        }
        (!pieces.is_empty()).then_some((pieces, used as usize))
    }

    /// An address that the kernel may have saved here, and that matters. Stacks of what was interrupted are queued.
    fn look(&mut self, words: &[[u8; 8]], matters: impl Fn(u64) -> bool) -> Option<Avma> {
        for (index, several) in words.chunks(AT_ONCE).enumerate() {
            // Most of a stack looks like nothing of the kind, and is passed over in the fewest steps.
            if !several.as_flattened().as_chunks::<2>().0.iter().fold(false, |any, half| any | is_segment(*half)) {
                continue;
            }
            let first = index * AT_ONCE;
            for index in first.max(2)..first + several.len() {
                if let Some(at) = self.look_at(words, index, &matters) {
                    return Some(at);
                }
            }
        }
        None
    }

    /// The same, if the segments are this word.
    fn look_at(&mut self, words: &[[u8; 8]], index: usize, matters: impl Fn(u64) -> bool) -> Option<Avma> {
        let segments = words[index];
        if !is_segment([segments[0], segments[1]]) {
            return None;
        }
        let at = u64::from_le_bytes(words[index - 2]);
        if matters(at) {
            return Some(Avma(at));
        }
        if index > 2 && SEGMENTS.contains(&u64::from_le_bytes(segments)) {
            self.queue(Top { at: u64::from_le_bytes(words[index - 3]), own: 0 });
        }
        None
    }
}

fn is_segment(half: [u8; 2]) -> bool {
    u16::from_le_bytes(half) == USER_CODE_SEGMENT
}

/// From its top to the end of its mapping: beyond is the stack of another thread, or nothing.
fn stack_from(top: u64, mapped: &[Mapping]) -> Range<u64> {
    let next = mapped.partition_point(|mapping| mapping.range.end.0 <= top);
    // One that begins above the top has grown since; one far above is another.
    let near = mapped.get(next).filter(|mapping| mapping.range.start.0.saturating_sub(top) < DEEPEST);
    let end = near.map_or(top, |mapping| mapping.range.end.0);
    top..end.min(top.saturating_add(DEEPEST))
}

/// How much a process has mapped.
fn size(sizes: Option<&File>) -> Option<u64> {
    let mut text = [0; 32];
    let len = sizes?.read_at(&mut text, 0).ok()?;
    str::from_utf8(&text[..len]).ok()?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUGHT: u64 = 0x1234;

    fn mapping(range: Range<u64>) -> Mapping {
        Mapping {
            range: Avma(range.start)..Avma(range.end),
            executable: false,
            offset: 0,
            file: (String::new(), 0),
            name: String::new(),
            deleted: false,
        }
    }

    fn bounds(words: &[u64]) -> Range<u64> {
        let start = words.as_ptr() as u64;
        start..start + 8 * words.len() as u64
    }

    /// Searches stacks that are memory of this process; `tops` are indices of stacks.
    fn found(stacks: &[&[u64]], tops: &[usize], room: usize) -> bool {
        let mut mapped: Vec<Mapping> = stacks.iter().map(|words| mapping(bounds(words))).collect();
        mapped.sort_by_key(|mapping| mapping.range.start);
        let tops: Vec<Top> = tops.iter().map(|index| Top { at: bounds(stacks[*index]).start, own: 0 }).collect();
        let memory = Memory::open(std::process::id()).expect("our own");
        search(&mapped, 0, &mut vec![0; room], &memory, &tops, |at| at == SOUGHT) == Some(Avma(SOUGHT))
    }

    #[test]
    fn what_the_kernel_saves_is_found() {
        let saved = [7, SOUGHT, 0x246, SEGMENTS[0], 9];
        let other = [7, SOUGHT + 1, 0x246, SEGMENTS[0], SOUGHT, 0, 0x32];
        assert!(found(&[&saved], &[0], ROOM));
        assert!(found(&[&other, &saved], &[0, 1], ROOM));
        assert!(!found(&[&other, &saved], &[0], ROOM));
    }

    #[test]
    fn a_stack_ends_before_what_its_thread_keeps_behind_it() {
        let stack = [1, 2, 3, 7, SOUGHT, 0x246, SEGMENTS[0], 9];
        let Range { start, end } = bounds(&stack);
        let found = |own, least| {
            let memory = Memory::open(std::process::id()).expect("our own");
            search(&[mapping(start..end)], least, &mut vec![0; ROOM], &memory, &[Top { at: start, own }], |at| {
                at == SOUGHT
            })
            .is_some()
        };
        assert!(!found(start + 24, 0));
        // Storage in another place says nothing, nor does none.
        assert!(found(end + 4096, 0) && found(start - 8, 0) && found(0, 0));
        // Only what can hold a saved context is read.
        assert!(found(0, end - start) && !found(0, end - start + 8));
    }

    #[test]
    fn it_is_found_across_pieces_however_they_are_cut() {
        for before in 0..40 {
            let mut stack = vec![5; before];
            stack.extend([7, SOUGHT, 0x246, SEGMENTS[0], 9]);
            assert!(found(&[&[1; 3], &stack], &[0, 1], 64), "{before}");
        }
    }

    #[test]
    fn the_stack_of_what_was_interrupted_is_searched_too() {
        let innermost = [1, 2, SOUGHT, 0x246, SEGMENTS[0]];
        let between = [3, bounds(&innermost).start, 0x99, 0x246, SEGMENTS[1], 4];
        let top = [bounds(&between).start, 0x98, 0x202, SEGMENTS[0]];
        assert!(found(&[&innermost, &between, &top], &[2], ROOM));
        // Whoever saved itself does not keep the search going for ever.
        let mut circle = [0, 0x98, 0x202, SEGMENTS[0]];
        circle[0] = bounds(&circle).start;
        assert!(!found(&[&circle], &[0], ROOM));
    }

    #[test]
    fn what_cannot_be_read_does_not_hide_the_rest() {
        let saved = [7, SOUGHT, 0x246, SEGMENTS[0]];
        let memory = Memory::open(std::process::id()).expect("our own");
        let mapped = [mapping(0x1000..0x3000), mapping(bounds(&saved))];
        let tops = [0x2000, bounds(&saved).start].map(|at| Top { at, own: 0 });
        let at = search(&mapped, 0, &mut vec![0; ROOM], &memory, &tops, |at| at == SOUGHT);
        assert_eq!(at, Some(Avma(SOUGHT)));
    }

    #[test]
    fn stacks_end_with_their_mapping() {
        let mapped = [mapping(0x1000..0x3000), mapping(0x8000..0x80_0000)];
        assert_eq!(stack_from(0x2ff0, &mapped), 0x2ff0..0x3000);
        assert_eq!(stack_from(0x8000, &mapped), 0x8000..0x8000 + DEEPEST);
        // A stack that has grown since, and none.
        assert_eq!(stack_from(0x7ff0, &mapped), 0x7ff0..0x7ff0 + DEEPEST);
        assert!(stack_from(0x7ff0, &[mapping(0x8000_0000..0x9000_0000)]).is_empty());
    }
}
