//! Unwind tables for moved code: exceptions, back-traces and profilers' call chains go through clones as through the
//! originals.
//!
//! One block of read-only bytes is made, to replace the old tables:
//!
//! ```text
//! LSDAs           landing pads of the clones; the old ones stay where they are
//! .eh_frame       a copy of the old table as far as its code stays, then FDEs for the clones, and a terminator
//! .eh_frame_hdr   the search table, over the old code and the new
//! ```
//!
//! The old table is copied because debuggers take one section of that name, and because walkers of the chain stop at
//! its terminator; the search table alone would do for the unwinders of running programs. FDEs of code that has moved
//! are not copied: the search table leads to them where they are, for the moment in which a jump leaves the old code.
//!
//! | file | what |
//! | --- | --- |
//! | `entry.rs`, `rules.rs` | the old table: entries field by field, and the programs in them |
//! | `copy.rs` | the old table at its new place |
//! | `moved.rs`, `lsda.rs` | entries and landing pads for a piece of moved code |
//! | `draft.rs`, `pointer.rs` | writing them |
//!
//! Invariants: at every copied instruction, and at what was added in front of it, the rules are those of the original;
//! a call is in the same call site as before. A function for which [`obstacle`] finds nothing can be moved.

mod copy;
mod draft;
mod entry;
mod lsda;
mod moved;
mod pointer;
mod rules;

use gimli::{DwEhPe, Endianity, RunTimeEndian, constants};
use lancet_isa::Svma;
use lancet_isa::runtime::SignalCode;
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use crate::image::{Fde, Image};
use crate::layout::MovedPiece;
use crate::program::Part;
use copy::{Copied, copy};
use draft::{Area, Draft, Target};
use entry::Table;
use lsda::Pads;
use moved::{Source, sound_entry};
use rules::Machine;

/// Why a function cannot be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    #[error("its entry in .eh_frame cannot be read: {0}")]
    Entry(gimli::Error),
    #[error("its {what} has the encoding {encoding:#x}, which cannot be moved")]
    Encoding { what: &'static str, encoding: u8 },
    #[error("its frame rules cannot be read: {0}")]
    Rules(gimli::Error),
    #[error("its landing pads should be at {at}, which is not in the file")]
    NoPads { at: Svma },
    #[error("its landing pads cannot be read: {0}")]
    Pads(gimli::Error),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnwindError {
    #[error("unwind table of the code at {at}: {obstacle}")]
    Obstacle { at: Svma, obstacle: Obstacle },
    #[error("unwind table: {what} at {at}: {value:#x} does not fit")]
    NoRoom { what: &'static str, at: Svma, value: u64 },
}

/// New tables, all in one block.
#[derive(Clone, Debug)]
pub struct Tables {
    pub bytes: Vec<u8>,
    pub lsdas: Part,
    pub eh_frame: Part,
    pub eh_frame_hdr: Part,
}

/// What keeps the code of `fde` from being moved.
pub fn obstacle(image: &Image, fde: &Fde) -> Option<Obstacle> {
    let table = Table::of(image)?;
    let check = || -> Result<(), Obstacle> {
        let (cie, entry) = sound_entry(&table, fde)?;
        let mut machine = Machine::new(table, &cie).map_err(Obstacle::Rules)?;
        let mut rules = table.rules(&cie, &entry, fde.start);
        while let Some((_, rule)) = rules.next_rule().map_err(Obstacle::Rules)? {
            machine.run(&rule).map_err(Obstacle::Rules)?;
        }
        Pads::read(image, &table, fde)?;
        Ok(())
    };
    check().err()
}

/// Pieces are dealt out to threads in so many at once.
const PIECES_AT_ONCE: usize = 256;

/// Where the parts of the block start.
const FRAMES_ALIGN: usize = 8;
const HEADER_ALIGN: usize = 4;

const RELATIVE: DwEhPe = DwEhPe(constants::DW_EH_PE_pcrel.0 | constants::DW_EH_PE_sdata4.0);
/// Entries of the search table: relative to its start. It is the only encoding that unwinders search by halves.
const IN_HEADER: DwEhPe = DwEhPe(constants::DW_EH_PE_datarel.0 | constants::DW_EH_PE_sdata4.0);
const HEADER_VERSION: u8 = 1;

/// Tables for an image to which these pieces are added; they will stand at `at`, which is aligned to 16. `None` if
/// the image has no unwind tables.
pub fn tables(
    image: &Image,
    pieces: &[MovedPiece],
    signals: Option<&SignalCode>,
    at: Svma,
) -> Result<Option<Tables>, UnwindError> {
    let Some(table) = Table::of(image) else { return Ok(None) };
    let source = Source::new(image, table, pieces);
    let mut drafts: Vec<Draft> =
        pieces.par_chunks(PIECES_AT_ONCE).map(|pieces| source.draft(pieces)).collect::<Result<_, _>>()?;
    let endian = table.endian();
    if let Some(signals) = signals {
        drafts.extend(source.calling_frame(signals)?);
    }

    let mut bytes = Vec::new();
    for draft in &drafts {
        bytes.extend_from_slice(&draft.lsdas);
    }
    let lsdas_end = bytes.len();
    bytes.resize(lsdas_end.next_multiple_of(FRAMES_ALIGN), 0);
    let frames = bytes.len();
    let copied = copy(table, at + frames as u64, &moved_fdes(image, pieces))?;
    bytes.extend_from_slice(&copied.bytes);
    let new_frames = bytes.len();
    for draft in &drafts {
        bytes.extend_from_slice(&draft.frames);
    }
    bytes.extend_from_slice(&[0; 4]);
    let frames_end = bytes.len();

    let mut listed = old_fdes(image, &table, &copied, at + frames as u64);
    let (mut lsdas_at, mut frames_at) = (0, new_frames);
    for draft in &drafts {
        let place = DraftPlace { lsdas: lsdas_at, frames: frames_at, old_frames: frames };
        place.fill(draft, &copied, table.raw.address_size, endian, at, &mut bytes)?;
        listed.extend(draft.fdes.iter().map(|&(start, fde)| (start, at + frames_at as u64 + fde.into())));
        lsdas_at += draft.lsdas.len();
        frames_at += draft.frames.len();
    }
    listed.par_sort_unstable();
    bytes.resize(bytes.len().next_multiple_of(HEADER_ALIGN), 0);
    let header = bytes.len();
    search_table(&listed, at + header as u64, at + frames as u64, endian, &mut bytes)?;

    let part = |start: usize, end: usize| Part { start: at + start as u64, end: at + end as u64 };
    let (lsdas, eh_frame) = (part(0, lsdas_end), part(frames, frames_end));
    let eh_frame_hdr = part(header, bytes.len());
    Ok(Some(Tables { bytes, lsdas, eh_frame, eh_frame_hdr }))
}

/// The offsets of the FDEs whose code has moved as a whole.
fn moved_fdes(image: &Image, pieces: &[MovedPiece]) -> FxHashSet<u32> {
    let mut moved: Vec<(Svma, Svma)> = pieces.iter().map(|piece| (piece.old_start, piece.old_end)).collect();
    moved.par_sort_unstable();
    let is_moved = |fde: &&Fde| {
        let next = moved.partition_point(|(start, _)| *start <= fde.start);
        next > 0 && fde.end() <= moved[next - 1].1
    };
    image.fdes().iter().filter(is_moved).map(|fde| fde.offset).collect()
}

/// The start of the code of each old FDE, and where its entry is now.
fn old_fdes(image: &Image, table: &Table<'_>, copied: &Copied, copy_at: Svma) -> Vec<(Svma, Svma)> {
    let place = |fde: &Fde| match copied.fde(fde.offset) {
        Some(new) => copy_at + u64::from(new),
        None => table.svma(fde.offset as usize),
    };
    image.fdes().iter().map(|fde| (fde.start, place(fde))).collect()
}

/// Where in the block the entries of a draft went, as offsets.
struct DraftPlace {
    lsdas: usize,
    frames: usize,
    /// Where the copy of the old table is.
    old_frames: usize,
}

impl DraftPlace {
    /// Fills in the pointers in the entries of a draft, which is in `bytes`, which will stand at `at`.
    fn fill(
        &self,
        draft: &Draft,
        copied: &Copied,
        address_size: u8,
        endian: RunTimeEndian,
        at: Svma,
        bytes: &mut [u8],
    ) -> Result<(), UnwindError> {
        for blank in &draft.blanks {
            let offset = blank.at as usize
                + match blank.area {
                    Area::Lsdas => self.lsdas,
                    Area::Frames => self.frames,
                };
            let size = pointer::size(blank.encoding, address_size).unwrap_or(0);
            let (field, place) = (&mut bytes[offset..offset + size], at + offset as u64);
            let (filled, to) = match blank.to {
                Target::Cie(old) => {
                    // All CIEs of moved code can be moved themselves.
                    let cie = self.old_frames + copied.cies.get(&old).copied().unwrap_or_default() as usize;
                    (pointer::put(field, endian, false, (offset - cie) as u64), at + cie as u64)
                }
                Target::At(to) => (pointer::put_pointer(field, endian, blank.encoding, place, to), to),
                Target::Lsda(lsda) => {
                    let to = at + (self.lsdas + lsda as usize) as u64;
                    (pointer::put_pointer(field, endian, blank.encoding, place, to), to)
                }
            };
            filled.ok_or(UnwindError::NoRoom { what: "pointer to code or pads", at: place, value: to.0 })?;
        }
        Ok(())
    }
}

/// Appends `.eh_frame_hdr`, which will stand at `at`.
fn search_table(
    fdes: &[(Svma, Svma)],
    at: Svma,
    eh_frame: Svma,
    endian: RunTimeEndian,
    bytes: &mut Vec<u8>,
) -> Result<(), UnwindError> {
    bytes.extend_from_slice(&[HEADER_VERSION, RELATIVE.0, constants::DW_EH_PE_udata4.0, IN_HEADER.0]);
    let start = bytes.len();
    bytes.resize(start + 8 + 8 * fdes.len(), 0);
    let (head, entries) = bytes[start..].split_at_mut(8);
    let put = |field: &mut [u8], from: Svma, to: Svma| {
        let fits = i32::try_from((to - from) as i64);
        fits.map(|distance| endian.write_u32(field, distance as u32)).map_err(|_| UnwindError::NoRoom {
            what: "entry of .eh_frame_hdr",
            at: to,
            value: to - from,
        })
    };
    put(&mut head[..4], at + 4, eh_frame)?;
    put(&mut head[4..], Svma(0), Svma(fdes.len() as u64))?;
    for (entry, &(code, fde)) in entries.chunks_exact_mut(8).zip(fdes) {
        put(&mut entry[..4], at, code)?;
        put(&mut entry[4..], at, fde)?;
    }
    Ok(())
}
