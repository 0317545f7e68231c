//! How the objects of a process share each thread's counters.
//!
//! Where slots overlap, an object must change its code when it is loaded. So those that are rewritten for one run get slots
//! that do not. A slot is as large as the object's code, which is known before anything was analysed, and about three times
//! what its counters need. Most programs have the same few libraries at the end of the loader's list, so slots are given
//! out from there: then rewritten copies serve other programs, too.

use std::path::Path;

use lancet_engine::image::Image;
use lancet_engine::layout::PAGE;

use super::libraries::Library;
use crate::rewrite::Slot;

/// Those of libraries, in the same order.
pub fn of_libraries(libraries: &[Library]) -> Vec<Slot> {
    let mut slots = vec![Slot::LIBRARY; libraries.len()];
    let mut next = Slot::LIBRARY;
    for (slot, library) in slots.iter_mut().zip(libraries).rev() {
        let len = room_of(&library.path);
        if let Some(len) = len.filter(|len| next.index < Slot::MOST && *len <= Slot::ROOM - next.at) {
            *slot = next;
            next = Slot { index: next.index + 1, at: next.at + len };
        }
    }
    slots
}

fn room_of(library: &Path) -> Option<u32> {
    let image = Image::open(library).ok()?;
    let code: u64 = image.code_ranges().iter().map(|range| range.len).sum();
    // Notes of handlers need some, however small the library is.
    u32::try_from(code.next_multiple_of(PAGE) + 2 * PAGE).ok()
}
