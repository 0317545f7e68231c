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
//! Everybody waits for the search. So what it needs is prepared before, and stacks are read many at a time.

use std::collections::VecDeque;
use std::fs;
use std::ops::Range;

use lancet_isa::Avma;
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
const USER_CODE_SEGMENT: u16 = 0x33;
/// All segments, as the kernel saves them; older ones do not save that of the stack.
const SEGMENTS: [u64; 2] = [0x2b_0000_0000_0033, 0x33];

/// What is known of a process before it is stopped.
pub(super) struct Stacks {
    pid: u32,
    mapped: Vec<Mapping>,
    /// How much was mapped, in pages.
    size: Option<u64>,
    room: Vec<u8>,
}

impl Stacks {
    pub fn prepare(pid: u32) -> Result<Stacks, LiveError> {
        let size = size(pid);
        let mut room = vec![0; ROOM];
        // Memory that was never touched is slow the first time.
        room.fill(1);
        Ok(Stacks { pid, mapped: room::mappings(pid)?, size, room })
    }

    pub fn mapped(&self) -> &[Mapping] {
        &self.mapped
    }

    /// An address that a stopped thread will come back to from a handler, if `matters` for one of them. `tops` are the
    /// threads' stack pointers.
    pub fn comes_back(&mut self, memory: &Memory, tops: &[u64], matters: impl Fn(u64) -> bool) -> Option<Avma> {
        // Stacks come and go with threads. Asking how much is mapped is cheaper than asking what.
        if size(self.pid) != self.size {
            self.mapped = room::mappings(self.pid).unwrap_or_default();
        }
        search(&self.mapped, &mut self.room, memory, tops, matters)
    }
}

fn search(
    mapped: &[Mapping],
    room: &mut [u8],
    memory: &Memory,
    tops: &[u64],
    matters: impl Fn(u64) -> bool,
) -> Option<Avma> {
    let mut search = Search { mapped, queued: Vec::new(), waiting: VecDeque::new() };
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
    /// Stacks that were searched, or will be.
    queued: Vec<Range<u64>>,
    /// What is still to be read.
    waiting: VecDeque<Range<u64>>,
}

impl Search<'_> {
    /// Searches the stack with this top, if that is not part of another search.
    fn queue(&mut self, top: u64) {
        let top = top / WORD * WORD;
        if !self.queued.iter().any(|stack| stack.contains(&top)) {
            let stack = stack_from(top, self.mapped);
            self.waiting.push_back(stack.clone());
            self.queued.push(stack);
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
        for (index, segments) in words.iter().enumerate().skip(2) {
            if u16::from_le_bytes([segments[0], segments[1]]) != USER_CODE_SEGMENT {
                continue;
            }
            let at = u64::from_le_bytes(words[index - 2]);
            if matters(at) {
                return Some(Avma(at));
            }
            if index > 2 && SEGMENTS.contains(&u64::from_le_bytes(*segments)) {
                self.queue(u64::from_le_bytes(words[index - 3]));
            }
        }
        None
    }
}

/// From its top to the end of its mapping: beyond is the stack of another thread, or nothing.
fn stack_from(top: u64, mapped: &[Mapping]) -> Range<u64> {
    let next = mapped.partition_point(|mapping| mapping.range.end.0 <= top);
    // One that begins above the top has grown since.
    let end = mapped.get(next).map_or(top, |mapping| mapping.range.end.0);
    top..end.min(top.saturating_add(DEEPEST))
}

/// How much a process has mapped.
fn size(pid: u32) -> Option<u64> {
    fs::read_to_string(format!("/proc/{pid}/statm")).ok()?.split(' ').next()?.parse().ok()
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
        let tops: Vec<u64> = tops.iter().map(|index| bounds(stacks[*index]).start).collect();
        let memory = Memory::open(std::process::id()).expect("our own");
        search(&mapped, &mut vec![0; room], &memory, &tops, |at| at == SOUGHT) == Some(Avma(SOUGHT))
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
    fn it_is_found_across_pieces_however_they_are_cut() {
        for before in 0..16 {
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
        let tops = [0x2000, bounds(&saved).start];
        let at = search(&mapped, &mut vec![0; ROOM], &memory, &tops, |at| at == SOUGHT);
        assert_eq!(at, Some(Avma(SOUGHT)));
    }

    #[test]
    fn stacks_end_with_their_mapping() {
        let mapped = [mapping(0x1000..0x3000), mapping(0x8000..0x80_0000)];
        assert_eq!(stack_from(0x2ff0, &mapped), 0x2ff0..0x3000);
        assert_eq!(stack_from(0x8000, &mapped), 0x8000..0x8000 + DEEPEST);
        // A stack that has grown since.
        assert_eq!(stack_from(0x7ff0, &mapped), 0x7ff0..0x7ff0 + DEEPEST);
    }
}
