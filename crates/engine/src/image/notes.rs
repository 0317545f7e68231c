//! The build id: a fingerprint that the linker puts into a note, the same in a file and in its debug file.

use object::elf;
use object::read::elf::NoteIterator;
use object::{Endianness, elf::FileHeader32, elf::FileHeader64};

use super::headers::{Class, Headers, Section};

pub(super) fn build_id<'a>(data: &'a [u8], headers: &Headers) -> Option<&'a [u8]> {
    let in_sections =
        headers.sections.iter().filter(|section| section.kind == elf::SHT_NOTE.0).filter_map(Section::file_range);
    let in_segments =
        headers.extras.iter().filter(|extra| extra.kind == elf::PT_NOTE.0).map(|extra| extra.range.clone());
    in_sections.chain(in_segments).find_map(|range| match headers.class {
        Class::Elf32 => {
            let notes = NoteIterator::<FileHeader32<Endianness>>::new(headers.endian, 4, &data[range]).ok()?;
            find(notes, headers.endian)
        }
        Class::Elf64 => {
            let notes = NoteIterator::<FileHeader64<Endianness>>::new(headers.endian, 4, &data[range]).ok()?;
            find(notes, headers.endian)
        }
    })
}

fn find<'a, Elf>(notes: NoteIterator<'a, Elf>, endian: Endianness) -> Option<&'a [u8]>
where
    Elf: object::read::elf::FileHeader<Endian = Endianness>,
{
    let mut sound = notes.map_while(Result::ok);
    let id = sound.find(|note| note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID)?;
    Some(id.desc()).filter(|id| !id.is_empty())
}
