//! Dynamic relocations: what the loader writes into the image before it runs.
//!
//! Position-independent files keep no addresses in their data, only orders to compute them; so tables of functions
//! and of jump targets cannot be read without the relocations.

use std::ops::Range;

use lancet_isa::{DynamicReloc, Svma, elf_dynamic_relocs};
use object::Endianness;
use object::elf;
use object::read::elf::{FileHeader, Rel, Rela, Relr};

use super::headers::{Class, Headers, array};
use super::tables::{RelocFormat, Tables};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reloc {
    pub place: Svma,
    pub kind: RelocKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelocKind {
    /// An address of this image.
    Relative(Svma),
    /// What this resolver of the image returns.
    Irelative(Svma),
    /// The address of a dynamic symbol, plus the addend.
    Symbol { index: u32, addend: i64 },
    /// A copy of another object's data.
    Copy { index: u32 },
    /// Something about a thread-local variable.
    Tls,
    /// Any other, by its number.
    Other(u32),
}

/// All dynamic relocations, sorted by place, one for each place.
pub(super) fn read(data: &[u8], headers: &Headers, tables: &Tables) -> Vec<Reloc> {
    let reader = Reader { data, headers, numbers: elf_dynamic_relocs(headers.machine) };
    let mut relocs = Vec::new();
    for (format, range) in &tables.relocations {
        match headers.class {
            Class::Elf32 => reader.table::<elf::FileHeader32<Endianness>>(*format, range, &mut relocs),
            Class::Elf64 => reader.table::<elf::FileHeader64<Endianness>>(*format, range, &mut relocs),
        }
    }
    // Stable, so the first order for a place wins; DT_RELA may include what DT_JMPREL names again.
    relocs.sort_by_key(|reloc| reloc.place);
    relocs.dedup_by_key(|reloc| reloc.place);
    relocs
}

struct Reader<'a> {
    data: &'a [u8],
    headers: &'a Headers,
    numbers: &'static [(u32, DynamicReloc)],
}

impl Reader<'_> {
    fn table<Elf>(&self, format: RelocFormat, range: &Range<usize>, relocs: &mut Vec<Reloc>)
    where
        Elf: FileHeader<Endian = Endianness>,
    {
        let endian = self.headers.endian;
        match format {
            RelocFormat::Rela => {
                let mips64el = self.headers.mips64el;
                relocs.extend(array::<Elf::Rela>(self.data, range).iter().map(|entry| Reloc {
                    place: Svma(entry.r_offset(endian).into()),
                    kind: self.kind(
                        entry.r_type(endian, mips64el),
                        entry.r_sym(endian, mips64el),
                        entry.r_addend(endian).into(),
                    ),
                }));
            }
            RelocFormat::Rel => {
                relocs.extend(array::<Elf::Rel>(self.data, range).iter().map(|entry| {
                    let place = Svma(entry.r_offset(endian).into());
                    let addend = self.word(place).unwrap_or(0) as i64;
                    Reloc { place, kind: self.kind(entry.r_type(endian), entry.r_sym(endian), addend) }
                }));
            }
            RelocFormat::Relr => self.relr::<Elf>(range, relocs),
        }
    }

    fn kind(&self, number: elf::RelocationType, index: u32, addend: i64) -> RelocKind {
        match self.numbers.iter().find(|known| known.0 == number.0).map(|known| known.1) {
            Some(DynamicReloc::Relative) => RelocKind::Relative(Svma(addend as u64)),
            Some(DynamicReloc::Irelative) => RelocKind::Irelative(Svma(addend as u64)),
            Some(DynamicReloc::Symbol) => RelocKind::Symbol { index, addend },
            Some(DynamicReloc::Copy) => RelocKind::Copy { index },
            Some(DynamicReloc::Tls) => RelocKind::Tls,
            None => RelocKind::Other(number.0),
        }
    }

    /// Relative relocations as a bitmap: an even word is a place, an odd one tells which of the words behind the
    /// last place are places too. Eight bytes can stand for 63 relocations, so a hostile table is stopped by what
    /// holds in a sound one: places rise, and each is a word of the file.
    fn relr<Elf>(&self, range: &Range<usize>, relocs: &mut Vec<Reloc>)
    where
        Elf: FileHeader<Endian = Endianness>,
    {
        let pointer = u64::from(self.headers.class.pointer_bytes());
        let most = self.data.len() / usize::from(self.headers.class.pointer_bytes());
        let mut next = 0u64;
        let mut lowest = 0u64;
        let mut found = 0;
        let mut add = |place: u64| -> bool {
            let Some(addend) = self.word(Svma(place)).filter(|_| place >= lowest && found < most) else {
                return false;
            };
            relocs.push(Reloc { place: Svma(place), kind: RelocKind::Relative(Svma(addend)) });
            lowest = place.saturating_add(pointer);
            found += 1;
            true
        };
        for entry in array::<Elf::Relr>(self.data, range) {
            let word: u64 = entry.get(self.headers.endian).into();
            if word & 1 == 0 {
                if !add(word) {
                    return;
                }
                next = word.wrapping_add(pointer);
                continue;
            }
            for bit in 1..pointer * 8 {
                if word >> bit & 1 != 0 && !add(next.wrapping_add((bit - 1) * pointer)) {
                    return;
                }
            }
            next = next.wrapping_add((pointer * 8 - 1) * pointer);
        }
    }

    fn word(&self, at: Svma) -> Option<u64> {
        read_pointer(self.data, self.headers, at)
    }
}

/// The pointer-sized word that the file has for `at`.
pub(super) fn read_pointer(data: &[u8], headers: &Headers, at: Svma) -> Option<u64> {
    headers.pointer_in(data.get(headers.file_range_from(at)?)?)
}
