//! All headers of the input, and what follows from them.

use std::ops::Range;

use object::elf::{self, DynamicTag};

use super::SinkError;
use super::raw::{Codec, Dynamic, FileHeader, Section, Segment};
use crate::image::Image;

/// From here on section indices have special meanings, and the counts in the header do not suffice.
pub(super) const MOST_SECTIONS: usize = 0xff00;
pub(super) const MOST_SEGMENTS: usize = 0xffff;

pub(super) const MIN_PAGE: u64 = 0x1000;
const MAX_PAGE: u64 = 0x1_0000;

/// All headers of the input.
pub(super) struct Headers {
    pub codec: Codec,
    pub file: FileHeader,
    pub segments: Vec<Segment>,
    /// Empty if the file has none.
    pub sections: Vec<Section>,
    /// File offset and contents of every dynamic entry, up to and with all that are `DT_NULL` at the end.
    pub dynamic: Vec<(usize, Dynamic)>,
}

impl Headers {
    /// Where the header's fields begin: behind the identification.
    pub const START: usize = 16;

    pub fn read(image: &Image) -> Result<Headers, SinkError> {
        let (codec, data) = (Codec::of(image), image.data());
        let cannot = |what: &str| SinkError::CannotEdit { name: image.name().to_owned(), what: what.to_owned() };
        let file: FileHeader = codec.read(data, Headers::START).ok_or_else(|| cannot("its header is cut"))?;
        if file.segments == MOST_SEGMENTS as u64 || file.sections_at != 0 && file.sections == 0 {
            return Err(cannot("it has more headers than its ELF header can count"));
        }
        let segments = codec.read_array(data, file.segments_at, file.segments);
        let segments: Vec<Segment> = segments.ok_or_else(|| cannot("its program headers are cut"))?;
        let sections = if file.sections_at == 0 { 0 } else { file.sections };
        let sections = codec.read_array(data, file.sections_at, sections);
        let sections = sections.ok_or_else(|| cannot("its section headers are cut"))?;
        let dynamic = match segments.iter().find(|segment| segment.is(elf::PT_DYNAMIC)) {
            Some(segment) => dynamic_entries(codec, data, segment),
            None => Vec::new(),
        };
        Ok(Headers { codec, file, segments, sections, dynamic })
    }

    /// What is loaded. Like everywhere, a segment without memory counts for nothing.
    pub fn loads(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|segment| segment.is(elf::PT_LOAD) && segment.mem_size != 0)
    }

    pub fn first_load(&self) -> Option<&Segment> {
        self.loads().min_by_key(|load| load.at)
    }

    /// Where the file header ends.
    pub fn header_end(&self) -> u64 {
        (Headers::START + self.codec.size_of::<FileHeader>()) as u64
    }

    /// Where the program header table is in the file.
    pub fn segment_table(&self) -> Range<u64> {
        let size = self.segments.len() * self.codec.size_of::<Segment>();
        self.file.segments_at..self.file.segments_at + size as u64
    }

    /// Where the section header table is in the file.
    pub fn section_table(&self) -> Range<u64> {
        match self.sections.len() {
            0 => 0..0,
            count => self.file.sections_at..self.file.sections_at + count as u64 * self.file.section_size,
        }
    }

    /// What the loader works by: pages of the smallest size that this file was linked for. Linkers for x86-64 once
    /// aligned to 2 MiB, though no machine has only such pages; more than 64 KiB says nothing about pages.
    pub fn page(&self) -> u64 {
        let aligned = self.loads().map(|load| load.align).filter(|align| align.is_power_of_two());
        aligned.max().unwrap_or(0).clamp(MIN_PAGE, MAX_PAGE)
    }

    /// The first address behind everything that is loaded.
    pub fn first_free(&self) -> u64 {
        let end = self.loads().map(Segment::mem_end).max().unwrap_or(0);
        end.checked_next_multiple_of(self.page()).unwrap_or(u64::MAX)
    }

    /// The value of a dynamic entry and where its record is.
    pub fn dynamic(&self, tag: DynamicTag) -> Option<(usize, u64)> {
        let mut entries = self.dynamic.iter().take_while(|entry| !entry.1.is(elf::DT_NULL));
        entries.find(|entry| entry.1.is(tag)).map(|(at, entry)| (*at, entry.value))
    }
}

fn dynamic_entries(codec: Codec, data: &[u8], segment: &Segment) -> Vec<(usize, Dynamic)> {
    let size = codec.size_of::<Dynamic>();
    let room = segment.span();
    let starts = (room.start as usize..room.end.min(data.len() as u64) as usize).step_by(size);
    let mut entries = Vec::new();
    let mut ended = false;
    for at in starts {
        let Some(entry) = codec.read::<Dynamic>(data, at).filter(|_| at + size <= room.end as usize) else { break };
        if ended && !entry.is(elf::DT_NULL) {
            break;
        }
        ended |= entry.is(elf::DT_NULL);
        entries.push((at, entry));
    }
    entries
}
