//! Places to write, joined where they lie on one page of code.
//!
//! Everybody stands still while they are read, compared and written, and each access takes longer than it takes to copy a
//! page. Nobody changes code between two places at that moment; between two pieces of data somebody might, who shares the
//! memory and is no thread of the process.

use std::ops::Range;

use lancet_isa::Avma;

use super::journal::Written;
use super::{LiveError, Memory, changed};

const PAGE: u64 = 4096;

/// A piece of memory with its places, as indices.
struct Span {
    range: Range<u64>,
    places: Vec<usize>,
}

/// What to write, and what must stand there before.
pub(super) struct Spans<'w> {
    writes: &'w [Written],
    /// The old bytes are written over the new ones.
    back: bool,
    spans: Vec<Span>,
}

/// The places with what they will be, ready to be written.
pub(super) struct Checked(Vec<(Avma, Vec<u8>)>);

impl<'w> Spans<'w> {
    pub fn new(writes: &'w [Written], back: bool, is_code: impl Fn(u64) -> bool) -> Spans<'w> {
        let mut order: Vec<usize> = (0..writes.len()).collect();
        order.sort_by_key(|index| writes[*index].at);
        let mut spans: Vec<Span> = Vec::new();
        for index in order {
            let (at, end) = (writes[index].at, writes[index].at + writes[index].old.len() as u64);
            match spans.last_mut() {
                Some(last) if last.range.start / PAGE == (end - 1) / PAGE && is_code(at) => {
                    last.range.end = end.max(last.range.end);
                    last.places.push(index);
                }
                _ => spans.push(Span { range: at..end, places: vec![index] }),
            }
        }
        Spans { writes, back, spans }
    }

    /// Reads and compares all places.
    pub fn check(&self, memory: &Memory) -> Result<Checked, LiveError> {
        let mut ready = Vec::with_capacity(self.spans.len());
        for Span { range, places } in &self.spans {
            let mut bytes = memory.read(Avma(range.start), range.end - range.start)?;
            for place in places {
                let write = &self.writes[*place];
                let (before, after) = if self.back { (&write.new, &write.old) } else { (&write.old, &write.new) };
                let begin = (write.at - range.start) as usize;
                let found = &mut bytes[begin..begin + before.len()];
                if found != before.as_slice() {
                    return Err(changed(memory.pid(), write, found, before));
                }
                found.copy_from_slice(after);
            }
            ready.push((Avma(range.start), bytes));
        }
        Ok(Checked(ready))
    }
}

impl Checked {
    pub fn write(&self, memory: &Memory) -> Result<(), LiveError> {
        self.0.iter().try_for_each(|(at, bytes)| memory.write(*at, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_memory() -> Memory {
        Memory::open(std::process::id()).expect("our own")
    }

    fn write(area: &[u8], offset: usize, old: &[u8], new: &[u8]) -> Written {
        let at = area.as_ptr() as u64 + offset as u64;
        Written { at, old: old.to_vec(), new: new.to_vec(), leads_on: None }
    }

    #[test]
    fn places_of_one_page_of_code_are_one_span() {
        let area = vec![7_u8; 3 * PAGE as usize];
        let begin = (PAGE - area.as_ptr() as u64 % PAGE) as usize;
        let place = |offset| write(&area, begin + offset, &[7, 7], &[1, 2]);
        let writes = [place(100), place(10), place(5000), place(4095)];
        let spans = |is_code: bool| Spans::new(&writes, false, |_| is_code).spans.len();
        // The last crosses the boundary between the pages.
        assert_eq!((spans(true), spans(false)), (3, 4));
    }

    #[test]
    fn only_the_places_change_and_change_back() {
        let area = vec![7_u8; 64];
        let writes = [write(&area, 8, &[7, 7], &[1, 2]), write(&area, 20, &[7], &[3])];
        let memory = own_memory();
        let read = || memory.read(Avma(area.as_ptr() as u64), 64).expect("our own");
        let mut expected = [7; 64];
        (expected[8], expected[9], expected[20]) = (1, 2, 3);
        let there = Spans::new(&writes, false, |_| true);
        there.check(&memory).and_then(|ready| ready.write(&memory)).expect("as expected");
        assert_eq!(read(), expected);
        assert!(matches!(there.check(&memory), Err(LiveError::Changed { .. })));
        let back = Spans::new(&writes, true, |_| true);
        back.check(&memory).and_then(|ready| ready.write(&memory)).expect("as expected");
        assert_eq!(read(), [7; 64]);
    }
}
