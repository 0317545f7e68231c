//! How the objects of a process share each thread's counters.
//!
//! All that are rewritten for one run get slots that do not overlap. A slot is as large as the object's code, which is known
//! before anything was analysed, and about three times what its counters need. Most programs have the same few libraries
//! at the end of the loader's list, so slots are given out from there: then rewritten copies serve other programs, too.

use std::path::Path;

use lancet_engine::image::Image;
use lancet_engine::layout::{NOTES_SECTION, PAGE};
use lancet_isa::runtime::VARIABLE;

use super::libraries::Library;
use crate::rewrite::{Sharing, Slot};

/// How the program counts that libraries are rewritten for. One that was rewritten before leaves the threads' base
/// register to what was added then.
pub fn of_program(program: &Image) -> Sharing {
    if program.section(NOTES_SECTION).is_some() { Sharing::Atomic } else { Sharing::PerThread(Slot::PROGRAM) }
}

/// How its libraries count, in the same order.
pub fn of_libraries(program: &Image, libraries: &[Library]) -> Vec<Sharing> {
    let mut sharings = vec![Sharing::Atomic; libraries.len()];
    // In a run of another run, a process may load libraries of both.
    let is_nested = std::env::var_os(VARIABLE).is_some();
    if of_program(program) == Sharing::Atomic || room_for(program) > Slot::FOR_PROGRAM || is_nested {
        return sharings;
    }
    let mut slots = Vec::new();
    let mut at = Slot::FOR_PROGRAM;
    for (i, library) in libraries.iter().enumerate().rev() {
        let index = slots.len() as u32 + 1;
        let len = room_of(&library.path);
        if let Some(len) = len.filter(|len| index < Slot::MOST && *len <= Slot::ROOM - at) {
            slots.push((i, Slot { index, at, len, end: 0 }));
            at += len;
        }
    }
    // Copies depend on it, so it does not change with every library.
    let end = at.next_power_of_two().min(Slot::ROOM);
    for (i, slot) in slots {
        sharings[i] = Sharing::PerThread(Slot { end, ..slot });
    }
    sharings
}

fn room_of(library: &Path) -> Option<u32> {
    Image::open(library).ok().map(|image| room_for(&image))
}

fn room_for(image: &Image) -> u32 {
    let code: u64 = image.code_ranges().iter().map(|range| range.len).sum();
    // Notes of handlers need some, however small the library is.
    u32::try_from(code.next_multiple_of(PAGE) + 2 * PAGE).unwrap_or(u32::MAX)
}
