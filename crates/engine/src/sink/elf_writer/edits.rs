//! Changes of bytes that are already in the file: overwrites, pointers, and the hook for the start-up code.
//!
//! The hook of a program is its entry point. A library has none that the loader would call, so it is `DT_INIT`, which
//! runs before all of `DT_INIT_ARRAY`. Without a `DT_INIT` a spare entry of the dynamic section becomes one: GNU ld
//! leaves some at the end. Other linkers do not, so the dynamic section moves to where it can grow (`output.rs`).

use lancet_isa::Svma;
use object::elf;
use rustc_hash::FxHashMap;

use super::SinkError;
use super::headers::Headers;
use super::raw::Dynamic;
use crate::image::{Image, Kind, RelocFormat, RelocKind};
use crate::layout::{Overwrite, Repoint};

/// Where the start-up code of a patch gets control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// In place of a program's entry point, where it has to go on.
    Entry { old: Svma },
    /// As a library's `DT_INIT`, with the arguments `argc`, `argv`, `envp`. If there was one, it has to be called with
    /// the same.
    Init { old: Option<Svma> },
}

impl Hook {
    /// What the start-up code must go on with.
    pub fn old(self) -> Option<Svma> {
        match self {
            Hook::Entry { old } => Some(old),
            Hook::Init { old } => old,
        }
    }

    pub(super) fn of(image: &Image, headers: &Headers) -> Result<Hook, SinkError> {
        let cannot = |what: &str| SinkError::CannotEdit { name: image.name().to_owned(), what: what.to_owned() };
        if image.kind() != Kind::SharedLibrary {
            let old = image.entry().ok_or_else(|| cannot("its entry point is not in its code"))?;
            return Ok(Hook::Entry { old });
        }
        if headers.dynamic.is_empty() {
            return Err(cannot("it has no dynamic section"));
        }
        Ok(Hook::Init { old: headers.dynamic(elf::DT_INIT).map(|(_, old)| Svma(old)) })
    }
}

/// Where the dynamic section has `DT_INIT`, or can have it.
fn init_entry(headers: &Headers) -> Option<usize> {
    // The last DT_NULL ends the table and must stay.
    let mut ends = headers.dynamic.iter().filter(|entry| entry.1.is(elf::DT_NULL)).map(|entry| entry.0);
    let spare = ends.next().filter(|_| ends.next().is_some());
    headers.dynamic(elf::DT_INIT).map(|(at, _)| at).or(spare)
}

/// The bytes of a file that is being edited.
pub(super) struct Edits<'a> {
    pub image: &'a Image,
    pub headers: &'a Headers,
    pub bytes: &'a mut [u8],
}

impl Edits<'_> {
    pub fn overwrite(&mut self, edit: &Overwrite) -> Result<(), SinkError> {
        let name = || self.image.name().to_owned();
        let bad = |what: &str| SinkError::BadPatch { name: name(), at: edit.at, what: what.to_owned() };
        if edit.old.len() != edit.new.len() {
            return Err(bad("an overwrite that changes the length"));
        }
        let start = file_offset(self.image, edit.at, edit.old.len()).ok_or_else(|| bad("no bytes in the file"))?;
        let place = &mut self.bytes[start..start + edit.old.len()];
        if *place != *edit.old {
            let (expected, found) = (edit.old.clone(), place.to_vec());
            return Err(SinkError::OldBytes { name: name(), at: edit.at, expected, found });
        }
        place.copy_from_slice(&edit.new);
        Ok(())
    }

    /// Makes pointers lead elsewhere, by what the loader computes them from.
    pub fn repoint(&mut self, repoints: &[Repoint]) -> Result<(), SinkError> {
        let addends = self.addends(repoints);
        for repoint in repoints {
            let no_pointer =
                |what| SinkError::NoPointer { name: self.image.name().to_owned(), place: repoint.place, what };
            match self.image.relocation_at(repoint.place).map(|reloc| reloc.kind) {
                Some(RelocKind::Relative(_)) => {}
                Some(_) => return Err(no_pointer("its relocation is not a relative one")),
                None if self.image.kind().is_position_independent() => {
                    return Err(no_pointer("it has no relocation"));
                }
                None => {}
            }
            // REL and RELR keep the addend where the pointer will be, and so does a program that is not relocated.
            let in_place = || file_offset(self.image, repoint.place, self.headers.codec.word_bytes());
            let at = addends.get(&repoint.place.0).copied().or_else(in_place);
            at.and_then(|at| self.headers.codec.put_word(self.bytes, at, repoint.to.0))
                .ok_or_else(|| no_pointer("it has no bytes in the file"))?;
        }
        Ok(())
    }

    /// Where the explicit addends for some places are in the file.
    fn addends(&self, repoints: &[Repoint]) -> FxHashMap<u64, usize> {
        let codec = self.headers.codec;
        let word = codec.word_bytes();
        let mut wanted: FxHashMap<u64, Option<usize>> = repoints.iter().map(|it| (it.place.0, None)).collect();
        let tables = self.image.relocation_tables().iter().filter(|table| table.0 == RelocFormat::Rela);
        for (_, range) in tables.filter(|_| !repoints.is_empty()) {
            // Offset, kind and symbol, addend: a word each.
            for at in range.clone().step_by(3 * word) {
                let place = codec.word(self.bytes, at).and_then(|place| wanted.get_mut(&place));
                // The first order for a place counts, as in the image.
                if let Some(addend @ None) = place {
                    *addend = Some(at + 2 * word);
                }
            }
        }
        wanted.into_iter().filter_map(|(place, addend)| Some((place, addend?))).collect()
    }

    /// Lets a library's `DT_INIT` be `to`, if there is a place for it.
    pub fn hook_init(&mut self, to: Svma) -> bool {
        let Some(at) = init_entry(self.headers) else { return false };
        let record = self.headers.codec.encode(&[Dynamic::init(to.0)]);
        self.bytes[at..at + record.len()].copy_from_slice(&record);
        true
    }
}

/// Where the file has `len` bytes of memory at `at`.
fn file_offset(image: &Image, at: Svma, len: usize) -> Option<usize> {
    let segment = image.segments().iter().find(|segment| segment.contains(at))?;
    let skip = at - segment.svma;
    (skip.checked_add(len as u64)? <= segment.file_size).then_some((segment.offset.0 + skip) as usize)
}
