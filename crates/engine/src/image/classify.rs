//! What an image is, by its headers: instruction set, kind of program, where its code is.

use lancet_isa::{Endian, Isa, Svma};
use object::{Endianness, elf};

use super::error::ImageError;
use super::headers::Headers;
use super::tables::Tables;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// At a fixed address, with shared libraries.
    Executable,
    /// At a fixed address, alone.
    Static,
    /// Position-independent program, with shared libraries.
    Pie,
    /// Position-independent program, alone.
    StaticPie,
    SharedLibrary,
}

impl Kind {
    pub fn is_position_independent(self) -> bool {
        !matches!(self, Kind::Executable | Kind::Static)
    }
}

/// A range of addresses with code, all of it in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeRange {
    /// The section's name; empty if there are no section headers.
    pub name: String,
    pub start: Svma,
    pub len: u64,
}

impl CodeRange {
    pub fn end(&self) -> Svma {
        self.start + self.len
    }

    pub fn contains(&self, at: Svma) -> bool {
        at >= self.start && at - self.start < self.len
    }

    /// Holds stubs that lead to other objects' functions (`.plt`, `.plt.got`, `.plt.sec`, `.iplt`).
    pub fn is_plt(&self) -> bool {
        self.name.starts_with(".plt") || self.name == ".iplt"
    }
}

pub(super) fn isa_of(headers: &Headers, name: &str) -> Result<&'static dyn Isa, ImageError> {
    let unsupported =
        |what: String| ImageError::UnsupportedMachine { name: name.to_owned(), machine: headers.machine, what };
    let isa = lancet_isa::for_elf_machine(headers.machine)
        .ok_or_else(|| unsupported(lancet_isa::elf_machine_name(headers.machine).unwrap_or("unknown").into()))?;
    let facts = isa.facts();
    let endian = match headers.endian {
        Endianness::Little => Endian::Little,
        Endianness::Big => Endian::Big,
    };
    if facts.endian != endian || facts.pointer_bytes != headers.class.pointer_bytes() {
        let bits = headers.class.pointer_bytes() * 8;
        return Err(unsupported(format!("{} as {bits}-bit {endian:?}-endian file", facts.name)));
    }
    Ok(isa)
}

pub(super) fn kind_of(headers: &Headers, tables: &Tables, name: &str) -> Result<Kind, ImageError> {
    let interpreted = headers.extra(elf::PT_INTERP).is_some();
    let marked_pie = tables.dynamic.get(elf::DT_FLAGS_1).is_some_and(|flags| flags & elf::DF_1_PIE.0 != 0);
    // Before DF_1_PIE an interpreter was the mark of a program. (The C library has one as well, and a name.)
    let named = tables.dynamic.get(elf::DT_SONAME).is_some();
    match elf::FileType(headers.file_type) {
        elf::ET_EXEC if interpreted || !tables.dynamic.is_empty() => Ok(Kind::Executable),
        elf::ET_EXEC => Ok(Kind::Static),
        elf::ET_DYN if marked_pie && !interpreted => Ok(Kind::StaticPie),
        elf::ET_DYN if marked_pie || interpreted && !named => Ok(Kind::Pie),
        elf::ET_DYN => Ok(Kind::SharedLibrary),
        other => {
            let what = match other {
                elf::ET_REL => "an object file, not yet linked".to_owned(),
                elf::ET_CORE => "a core dump".to_owned(),
                other => format!("{}", other.0),
            };
            Err(ImageError::UnsupportedType { name: name.to_owned(), what })
        }
    }
}

pub(super) fn code_ranges(headers: &Headers) -> Vec<CodeRange> {
    let in_executable_memory = |at: Svma, len: u64| {
        headers.segment_at(at).is_some_and(|segment| segment.executable) && headers.file_range(at, len).is_some()
    };
    let sections = headers.sections.iter().filter(|section| {
        section.is_executable()
            && section.offset.is_some()
            && section.size != 0
            && in_executable_memory(section.svma, section.size)
    });
    let mut ranges: Vec<CodeRange> = sections
        .map(|section| CodeRange { name: section.name.clone(), start: section.svma, len: section.size })
        .collect();
    if ranges.is_empty() {
        let segments = headers.segments.iter().filter(|segment| segment.executable && segment.file_size != 0);
        ranges = segments
            .map(|segment| CodeRange { name: String::new(), start: segment.svma, len: segment.file_size })
            .collect();
    }
    ranges.sort_by_key(|range| range.start);
    // Sections of a sound file do not overlap; of two that do, the first in memory keeps the room.
    let mut end = Svma(0);
    ranges.retain(|range| {
        let free = range.start >= end;
        if free {
            end = range.end();
        }
        free
    });
    ranges
}
