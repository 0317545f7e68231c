//! Lists in the new code that are for Lancet, when it sees the file again.
//!
//! Each is a section of the output. But a file without section headers stays without: there, a list is found by the mark that
//! it begins with.
//!
//! ```text
//! mark     16 bytes, at a multiple of 16
//! length   u64, little-endian
//! list
//! ```

use lancet_isa::Svma;

use super::CodeChunk;
use crate::image::{Image, Segment};
use crate::program::Part;

const ALIGN: u64 = 16;

pub struct List {
    pub section: &'static str,
    mark: &'static [u8; ALIGN as usize],
}

/// What counters mean: [`Keep::notes`](super::Keep::notes).
pub const NOTES: List = List { section: ".lancet.notes", mark: b"Lancet's notes:\0" };
/// What changes if threads have counters of the object elsewhere.
pub(super) const PLACES: List = List { section: ".lancet.places", mark: b"Lancet's places\0" };

impl List {
    /// Adds it to new code. Returns the section, and where in it the list starts.
    pub(super) fn put(&self, code: &mut CodeChunk, list: &[u8]) -> (Part, Svma) {
        let section = code.aligned_end();
        code.put(section, self.mark);
        code.put(code.end(), &(list.len() as u64).to_le_bytes());
        let start = code.end();
        code.put(start, list);
        (Part { start: section, end: code.end() }, start)
    }

    /// Where it is in a rewritten file, and its bytes.
    pub fn find<'a>(&self, image: &'a Image) -> Option<(Svma, &'a [u8])> {
        let at = match image.sections() {
            // What was rewritten last is at the highest address.
            [] => image.segments().iter().rev().filter(|it| it.executable).find_map(|it| self.last_in(image, it))?,
            _ => image.section(self.section)?.svma,
        };
        let (mark, rest) = image.bytes_from(at)?.split_first_chunk::<{ ALIGN as usize }>()?;
        let (len, rest) = rest.split_first_chunk().filter(|_| mark == self.mark)?;
        let list = rest.get(..usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
        Some((at + (mark.len() + len.len()) as u64, list))
    }

    fn last_in(&self, image: &Image, segment: &Segment) -> Option<Svma> {
        let start = Svma(segment.svma.0.checked_next_multiple_of(ALIGN)?);
        let mut chunks = image.bytes_from(start)?.chunks_exact(ALIGN as usize);
        Some(start + chunks.rposition(|chunk| chunk == self.mark)? as u64 * ALIGN)
    }
}
