//! ELF records as plain values, read from and written to bytes of either class and byte order.
//!
//! The image reader keeps what analysis needs; a writer must carry over every field, so it has records of its own.
//! Each record names its fields once, in the order of the file, and reading and writing both follow that list.

use std::ops::Range;

use lancet_isa::Endian;
use object::elf::{self, DynamicTag, ProgramType, SectionType};

use crate::image::Image;

/// How numbers stand in this file.
#[derive(Clone, Copy)]
pub(super) struct Codec {
    wide: bool,
    little: bool,
}

/// A record of the file: its fields in the file's order, with their widths in bytes.
pub(super) trait Record: Default + Clone {
    fn fields(&mut self, wide: bool) -> Vec<(&mut u64, usize)>;
}

impl Codec {
    /// Opening an image checks that its headers agree with the instruction set.
    pub fn of(image: &Image) -> Codec {
        let facts = image.isa().facts();
        Codec { wide: facts.pointer_bytes == 8, little: matches!(facts.endian, Endian::Little) }
    }

    pub fn word_bytes(self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    /// The highest address.
    pub fn last_address(self) -> u64 {
        if self.wide { u64::MAX } else { u32::MAX.into() }
    }

    pub fn size_of<R: Record>(self) -> usize {
        R::default().fields(self.wide).iter().map(|field| field.1).sum()
    }

    pub fn get(self, bytes: &[u8], at: usize, width: usize) -> Option<u64> {
        let bytes = bytes.get(at..at.checked_add(width)?)?;
        let join = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        Some(if self.little { bytes.iter().rev().fold(0, join) } else { bytes.iter().fold(0, join) })
    }

    pub fn word(self, bytes: &[u8], at: usize) -> Option<u64> {
        self.get(bytes, at, self.word_bytes())
    }

    /// Writes what fits of a value; `None` if the place is not inside `bytes`.
    pub fn put(self, bytes: &mut [u8], at: usize, width: usize, value: u64) -> Option<()> {
        let place = bytes.get_mut(at..at.checked_add(width)?)?;
        for (index, byte) in place.iter_mut().enumerate() {
            let shift = if self.little { index } else { width - 1 - index };
            *byte = (value >> (8 * shift)) as u8;
        }
        Some(())
    }

    pub fn put_word(self, bytes: &mut [u8], at: usize, value: u64) -> Option<()> {
        self.put(bytes, at, self.word_bytes(), value)
    }

    pub fn read<R: Record>(self, bytes: &[u8], mut at: usize) -> Option<R> {
        let mut record = R::default();
        for (field, width) in record.fields(self.wide) {
            *field = self.get(bytes, at, width)?;
            at += width;
        }
        Some(record)
    }

    pub fn read_array<R: Record>(self, bytes: &[u8], at: u64, count: u64) -> Option<Vec<R>> {
        let (at, size) = (usize::try_from(at).ok()?, self.size_of::<R>());
        (0..usize::try_from(count).ok()?).map(|index| self.read(bytes, at.checked_add(index * size)?)).collect()
    }

    pub fn encode<R: Record>(self, records: &[R]) -> Vec<u8> {
        let mut bytes = vec![0; records.len() * self.size_of::<R>()];
        let mut at = 0;
        for record in records {
            for (field, width) in record.clone().fields(self.wide) {
                // In bounds: `bytes` was made for exactly these fields.
                let _ = self.put(&mut bytes, at, width, *field);
                at += width;
            }
        }
        bytes
    }
}

/// The header behind the sixteen bytes of identification.
#[derive(Clone, Default)]
pub(super) struct FileHeader {
    pub kind: u64,
    pub machine: u64,
    pub version: u64,
    pub entry: u64,
    pub segments_at: u64,
    pub sections_at: u64,
    pub flags: u64,
    pub header_size: u64,
    pub segment_size: u64,
    pub segments: u64,
    pub section_size: u64,
    pub sections: u64,
    pub names: u64,
}

impl Record for FileHeader {
    fn fields(&mut self, wide: bool) -> Vec<(&mut u64, usize)> {
        let word = if wide { 8 } else { 4 };
        vec![
            (&mut self.kind, 2),
            (&mut self.machine, 2),
            (&mut self.version, 4),
            (&mut self.entry, word),
            (&mut self.segments_at, word),
            (&mut self.sections_at, word),
            (&mut self.flags, 4),
            (&mut self.header_size, 2),
            (&mut self.segment_size, 2),
            (&mut self.segments, 2),
            (&mut self.section_size, 2),
            (&mut self.sections, 2),
            (&mut self.names, 2),
        ]
    }
}

/// A program header.
#[derive(Clone, Debug, Default)]
pub(super) struct Segment {
    pub kind: u64,
    pub flags: u64,
    pub offset: u64,
    pub at: u64,
    pub physical: u64,
    pub file_size: u64,
    pub mem_size: u64,
    pub align: u64,
}

impl Segment {
    pub fn is(&self, kind: ProgramType) -> bool {
        self.kind == u64::from(kind.0)
    }

    /// Where it is in the file.
    pub fn span(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.file_size)
    }

    pub fn mem_end(&self) -> u64 {
        self.at.saturating_add(self.mem_size)
    }
}

impl Record for Segment {
    fn fields(&mut self, wide: bool) -> Vec<(&mut u64, usize)> {
        let word = if wide { 8 } else { 4 };
        let mut fields = vec![
            (&mut self.kind, 4),
            (&mut self.offset, word),
            (&mut self.at, word),
            (&mut self.physical, word),
            (&mut self.file_size, word),
            (&mut self.mem_size, word),
            (&mut self.align, word),
        ];
        fields.insert(if wide { 1 } else { 6 }, (&mut self.flags, 4));
        fields
    }
}

/// A section header.
#[derive(Clone, Debug, Default)]
pub(super) struct Section {
    /// Offset into the section of names.
    pub name: u64,
    pub kind: u64,
    pub flags: u64,
    pub at: u64,
    pub offset: u64,
    pub size: u64,
    pub link: u64,
    pub info: u64,
    pub align: u64,
    pub entry_size: u64,
}

impl Section {
    pub fn is(&self, kind: SectionType) -> bool {
        self.kind == u64::from(kind.0)
    }

    pub fn is_loaded(&self) -> bool {
        self.flags & elf::SHF_ALLOC.0 != 0
    }

    /// Where it is in the file: nowhere if it has no bytes there.
    pub fn span(&self) -> Range<u64> {
        let in_file = !self.is(elf::SHT_NOBITS) && !self.is(elf::SHT_NULL);
        self.offset..self.offset.saturating_add(if in_file { self.size } else { 0 })
    }
}

impl Record for Section {
    fn fields(&mut self, wide: bool) -> Vec<(&mut u64, usize)> {
        let word = if wide { 8 } else { 4 };
        vec![
            (&mut self.name, 4),
            (&mut self.kind, 4),
            (&mut self.flags, word),
            (&mut self.at, word),
            (&mut self.offset, word),
            (&mut self.size, word),
            (&mut self.link, 4),
            (&mut self.info, 4),
            (&mut self.align, word),
            (&mut self.entry_size, word),
        ]
    }
}

#[derive(Clone, Default)]
pub(super) struct Symbol {
    pub name: u64,
    pub info: u64,
    pub other: u64,
    pub section: u64,
    pub at: u64,
    pub size: u64,
}

impl Record for Symbol {
    fn fields(&mut self, wide: bool) -> Vec<(&mut u64, usize)> {
        let name = (&mut self.name, 4);
        let (info, other, section) = ((&mut self.info, 1), (&mut self.other, 1), (&mut self.section, 2));
        match wide {
            true => vec![name, info, other, section, (&mut self.at, 8), (&mut self.size, 8)],
            false => vec![name, (&mut self.at, 4), (&mut self.size, 4), info, other, section],
        }
    }
}

/// An entry of the dynamic section.
#[derive(Clone, Default)]
pub(super) struct Dynamic {
    pub tag: u64,
    pub value: u64,
}

impl Record for Dynamic {
    fn fields(&mut self, wide: bool) -> Vec<(&mut u64, usize)> {
        let word = if wide { 8 } else { 4 };
        vec![(&mut self.tag, word), (&mut self.value, word)]
    }
}

impl Dynamic {
    pub fn init(at: u64) -> Dynamic {
        Dynamic { tag: elf::DT_INIT.0 as u64, value: at }
    }

    pub fn is(&self, tag: DynamicTag) -> bool {
        self.tag == tag.0 as u64
    }
}
