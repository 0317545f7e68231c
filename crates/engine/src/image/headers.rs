//! The ELF headers of either class and byte order, read once into plain values.
//!
//! Everything that follows works on these values and never looks at the raw headers again. What leaves here holds:
//! - every file range (of a segment, of a section) is inside the file;
//! - loadable segments do not wrap around the address space, do not overlap, and are sorted by address;
//! - the number of headers is bounded by the size of the file.

use std::ops::Range;

use lancet_isa::{FileOff, Svma};
use object::read::ReadRef;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endian, Endianness, elf};

use super::data::range_in;
use super::error::Fault;

/// A longer section name is cut: thousands of sections that share one huge name must not cost a copy each.
const LONGEST_SECTION_NAME: usize = 255;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Elf32,
    Elf64,
}

impl Class {
    pub fn pointer_bytes(self) -> u8 {
        match self {
            Class::Elf32 => 4,
            Class::Elf64 => 8,
        }
    }
}

/// A part of the file that is loaded into memory (`PT_LOAD`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub svma: Svma,
    pub mem_size: u64,
    pub offset: FileOff,
    pub file_size: u64,
    pub readable: bool,
    pub writable: bool,
    pub executable: bool,
}

impl Segment {
    pub fn contains(&self, at: Svma) -> bool {
        at >= self.svma && at - self.svma < self.mem_size
    }

    pub(super) fn file_range(&self) -> Range<usize> {
        // Checked against the file's size when the header was read.
        self.offset.0 as usize..(self.offset.0 + self.file_size) as usize
    }
}

/// A section as the linker named it. A stripped file may have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    pub name: String,
    pub svma: Svma,
    pub size: u64,
    /// `None` if it takes no room in the file (`SHT_NOBITS`).
    pub offset: Option<FileOff>,
    /// `SHT_*`
    pub kind: u32,
    /// `SHF_*`
    pub flags: u64,
    pub(super) link: u32,
}

impl Section {
    /// Takes part in the running program, at `svma`.
    pub fn is_loaded(&self) -> bool {
        self.flags & elf::SHF_ALLOC.0 != 0
    }

    pub fn is_executable(&self) -> bool {
        self.is_loaded() && self.flags & elf::SHF_EXECINSTR.0 != 0
    }

    pub fn contains(&self, at: Svma) -> bool {
        self.is_loaded() && at >= self.svma && at - self.svma < self.size
    }

    pub(super) fn file_range(&self) -> Option<Range<usize>> {
        self.offset.map(|at| at.0 as usize..(at.0 + self.size) as usize)
    }
}

/// A program header that is no `PT_LOAD`, with a file range: `PT_DYNAMIC`, `PT_INTERP`, `PT_NOTE`, ...
#[derive(Clone, Debug)]
pub(super) struct Extra {
    pub kind: u32,
    pub svma: Svma,
    pub range: Range<usize>,
}

#[derive(Debug)]
pub(super) struct Headers {
    pub class: Class,
    pub endian: Endianness,
    pub machine: u16,
    /// This one packs the fields of a relocation in a way of its own.
    pub mips64el: bool,
    pub file_type: u16,
    pub entry: u64,
    pub segments: Vec<Segment>,
    pub extras: Vec<Extra>,
    pub sections: Vec<Section>,
}

/// Which headers of the file mean something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// A file that can be loaded.
    Whole,
    /// A separate debug file: its program headers describe the bytes of another file.
    SectionsOnly,
}

/// Why there are no headers to speak of.
pub(super) enum NoHeaders {
    NotElf(String),
    Fault(Fault),
}

impl From<Fault> for NoHeaders {
    fn from(fault: Fault) -> NoHeaders {
        NoHeaders::Fault(fault)
    }
}

impl Headers {
    pub fn read(data: &[u8], scope: Scope) -> Result<Headers, NoHeaders> {
        let not_elf = |what: String| Err(NoHeaders::NotElf(what));
        if data.is_empty() {
            return not_elf("the file is empty".into());
        }
        if !data.starts_with(&elf::ELFMAG) {
            let start: Vec<String> = data.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            return not_elf(format!("it starts with {}, not with 7f 45 4c 46", start.join(" ")));
        }
        let class = match data.get(4) {
            Some(&class) if class == elf::ELFCLASS32.0 => Class::Elf32,
            Some(&class) if class == elf::ELFCLASS64.0 => Class::Elf64,
            Some(class) => return not_elf(format!("class {class} at offset 4 is neither 32-bit nor 64-bit")),
            None => return not_elf("it ends inside the identification".into()),
        };
        Ok(match class {
            Class::Elf32 => read_as::<elf::FileHeader32<Endianness>>(data, class, scope)?,
            Class::Elf64 => read_as::<elf::FileHeader64<Endianness>>(data, class, scope)?,
        })
    }

    /// The loadable segment whose memory holds `at`.
    pub fn segment_at(&self, at: Svma) -> Option<&Segment> {
        let after = self.segments.partition_point(|segment| segment.svma <= at);
        self.segments[..after].last().filter(|segment| segment.contains(at))
    }

    /// Where the file has the bytes from `at` to the end of its segment's file-backed part.
    pub fn file_range_from(&self, at: Svma) -> Option<Range<usize>> {
        let segment = self.segment_at(at)?;
        let skip = at - segment.svma;
        let range = segment.file_range();
        (skip < segment.file_size).then(|| range.start + skip as usize..range.end)
    }

    /// Where the file has `size` bytes of memory at `at`.
    pub fn file_range(&self, at: Svma, size: u64) -> Option<Range<usize>> {
        let whole = self.file_range_from(at)?;
        let size = usize::try_from(size).ok().filter(|&size| size <= whole.len())?;
        Some(whole.start..whole.start + size)
    }

    /// The pointer at the start of `bytes`.
    pub fn pointer_in(&self, bytes: &[u8]) -> Option<u64> {
        Some(match self.class {
            Class::Elf32 => self.endian.read_u32(*bytes.first_chunk()?).into(),
            Class::Elf64 => self.endian.read_u64(*bytes.first_chunk()?),
        })
    }

    pub fn gimli_endian(&self) -> gimli::RunTimeEndian {
        match self.endian {
            Endianness::Little => gimli::RunTimeEndian::Little,
            Endianness::Big => gimli::RunTimeEndian::Big,
        }
    }

    pub fn extra(&self, kind: elf::ProgramType) -> Option<&Extra> {
        self.extras.iter().find(|extra| extra.kind == kind.0)
    }

    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }
}

fn read_as<Elf>(data: &[u8], class: Class, scope: Scope) -> Result<Headers, Fault>
where
    Elf: FileHeader<Endian = Endianness>,
{
    let bad = |what: object::read::Error| Fault::new("ELF header", what.to_string());
    let header = Elf::parse(data).map_err(|error| {
        let cut = data.len() < size_of::<Elf>();
        if cut { Fault::new("ELF header", "the file ends inside it") } else { bad(error) }
    })?;
    let endian = header.endian().map_err(bad)?;
    let (segments, extras) = match scope {
        Scope::Whole => {
            let at: u64 = header.e_phoff(endian).into();
            let headers = header.program_headers(endian, data).map_err(|error| table_fault("program", at, error))?;
            if headers.is_empty() && header.e_phnum(endian) == elf::PN_XNUM {
                let what = "the ELF header leaves their number to section header 0, which states none";
                return Err(Fault::new(format!("program header table at offset {at:#x}"), what));
            }
            program_headers::<Elf>(headers, endian, at, data.len())?
        }
        Scope::SectionsOnly => (Vec::new(), Vec::new()),
    };
    let at: u64 = header.e_shoff(endian).into();
    let headers = header.section_headers(endian, data).map_err(|error| table_fault("section", at, error))?;
    let names = match header.e_shstrndx(endian) {
        elf::SHN_UNDEF => Default::default(),
        _ => header
            .section_strings(endian, data, headers)
            .map_err(|error| Fault::new("ELF header", format!("names of sections: {error}")))?,
    };
    Ok(Headers {
        class,
        endian,
        machine: header.e_machine(endian).0,
        mips64el: header.is_mips64el(endian),
        file_type: header.e_type(endian).0,
        entry: header.e_entry(endian).into(),
        segments,
        extras,
        sections: section_headers::<Elf>(headers, names, endian, data)?,
    })
}

/// How long a file must be for what its headers say is loaded. `start` need only reach behind the program headers.
pub(super) fn loaded_length(start: &[u8]) -> Option<u64> {
    fn of<Elf: FileHeader<Endian = Endianness>>(start: &[u8]) -> Option<u64> {
        let header = Elf::parse(start).ok()?;
        let endian = header.endian().ok()?;
        let headers = header.program_headers(endian, start).ok()?.iter();
        let ends = headers.filter(|header| header.p_type(endian) == elf::PT_LOAD).map(|header| {
            let (offset, size): (u64, u64) = (header.p_offset(endian).into(), header.p_filesz(endian).into());
            offset.checked_add(size)
        });
        ends.collect::<Option<Vec<u64>>>()?.into_iter().max()
    }
    match start.get(4) {
        Some(&class) if class == elf::ELFCLASS32.0 => of::<elf::FileHeader32<Endianness>>(start),
        _ => of::<elf::FileHeader64<Endianness>>(start),
    }
}

fn table_fault(table: &str, at: u64, error: object::read::Error) -> Fault {
    Fault::new(format!("{table} header table at offset {at:#x}"), error.to_string())
}

fn program_headers<Elf: FileHeader>(
    headers: &[Elf::ProgramHeader],
    endian: Elf::Endian,
    table: u64,
    file_len: usize,
) -> Result<(Vec<Segment>, Vec<Extra>), Fault> {
    let mut segments = Vec::new();
    let mut extras = Vec::new();
    for (index, header) in headers.iter().enumerate() {
        let fault = |what: String| {
            let at = table + (index * size_of::<Elf::ProgramHeader>()) as u64;
            Fault::new(format!("program header {index} at offset {at:#x}"), what)
        };
        let svma: u64 = header.p_vaddr(endian).into();
        let (offset, file_size): (u64, u64) = (header.p_offset(endian).into(), header.p_filesz(endian).into());
        let range = range_in(file_len, offset, file_size);
        let kind = header.p_type(endian);
        if kind != elf::PT_LOAD {
            if let Some(range) = range {
                extras.push(Extra { kind: kind.0, svma: Svma(svma), range });
            } else if USED_EXTRAS.contains(&kind) {
                return Err(fault(past_the_end(offset, file_size, file_len)));
            }
            continue;
        }
        let mem_size: u64 = header.p_memsz(endian).into();
        if mem_size == 0 {
            continue;
        }
        if range.is_none() {
            return Err(fault(past_the_end(offset, file_size, file_len)));
        }
        if file_size > mem_size {
            return Err(fault(format!("{file_size:#x} bytes of the file for {mem_size:#x} bytes of memory")));
        }
        let address_space_end = u64::MAX >> (64 - 8 * u32::from(address_bytes::<Elf>()));
        if svma.checked_add(mem_size - 1).is_none_or(|last| last > address_space_end) {
            return Err(fault(format!("{mem_size:#x} bytes at {svma:#x} wrap around the address space")));
        }
        let flags = header.p_flags(endian).0;
        segments.push(Segment {
            svma: Svma(svma),
            mem_size,
            offset: FileOff(offset),
            file_size,
            readable: flags & elf::PF_R.0 != 0,
            writable: flags & elf::PF_W.0 != 0,
            executable: flags & elf::PF_X.0 != 0,
        });
    }
    segments.sort_by_key(|segment| segment.svma);
    for pair in segments.windows(2) {
        if pair[1].svma - pair[0].svma < pair[0].mem_size {
            let what = format!("loadable segments at {} and {} overlap", pair[0].svma, pair[1].svma);
            return Err(Fault::new(format!("program header table at offset {table:#x}"), what));
        }
    }
    Ok((segments, extras))
}

/// Program headers besides `PT_LOAD` that are read, so they must be right.
const USED_EXTRAS: [elf::ProgramType; 4] = [elf::PT_DYNAMIC, elf::PT_INTERP, elf::PT_NOTE, elf::PT_GNU_EH_FRAME];

fn section_headers<'data, Elf: FileHeader>(
    headers: &'data [Elf::SectionHeader],
    names: object::read::StringTable<'data, &'data [u8]>,
    endian: Elf::Endian,
    data: &'data [u8],
) -> Result<Vec<Section>, Fault> {
    let mut sections = Vec::with_capacity(headers.len());
    for (index, header) in headers.iter().enumerate() {
        let kind = header.sh_type(endian);
        let name = match kind {
            elf::SHT_NULL => "",
            _ => section_name(header.sh_name(endian), &names),
        };
        let (offset, size): (u64, u64) = (header.sh_offset(endian).into(), header.sh_size(endian).into());
        let in_file = kind != elf::SHT_NOBITS && kind != elf::SHT_NULL;
        if in_file && range_in(data.len(), offset, size).is_none() {
            let place = format!("section header {index} ({name})");
            return Err(Fault::new(place, past_the_end(offset, size, data.len())));
        }
        sections.push(Section {
            name: name.to_owned(),
            svma: Svma(header.sh_addr(endian).into()),
            // Section 0 of a file with very many sections keeps a count here.
            size: if kind == elf::SHT_NULL { 0 } else { size },
            offset: in_file.then_some(FileOff(offset)),
            kind: kind.0,
            flags: header.sh_flags(endian).0,
            link: header.sh_link(endian),
        });
    }
    Ok(sections)
}

fn section_name<'data>(offset: u32, names: &object::read::StringTable<'data, &'data [u8]>) -> &'data str {
    let bytes = names.get(offset).unwrap_or_default();
    utf8_prefix(&bytes[..bytes.len().min(LONGEST_SECTION_NAME)])
}

/// Names are text by custom only: what is not UTF-8 ends the name.
pub(super) fn utf8_prefix(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

fn past_the_end(offset: u64, size: u64, file_len: usize) -> String {
    format!("{size:#x} bytes at offset {offset:#x} end past the file's {file_len:#x} bytes")
}

fn address_bytes<Elf: FileHeader>() -> u8 {
    size_of::<Elf::Word>() as u8
}

/// Reads an array of `count` raw structures whose range was checked before.
pub(super) fn array<'a, T: object::pod::Pod>(data: &'a [u8], range: &Range<usize>) -> &'a [T] {
    let count = range.len() / size_of::<T>();
    data.read_slice_at(range.start as u64, count).unwrap_or(&[])
}

#[cfg(test)]
#[allow(dead_code, reason = "the tests of whole images use all of it")]
#[path = "../../tests/image/tiny_elf.rs"]
mod tiny_elf;

#[cfg(test)]
mod tests {
    use super::tiny_elf::{BUILD_ID, DATA_SHIFT, Form, tiny_elf};
    use super::*;
    use crate::image::symbols::{self, Strings};
    use crate::image::tables::Tables;
    use crate::image::{frames::Frames, notes, relocs};

    /// Every class and byte order tells the same story; the machine does not matter here.
    #[test]
    fn all_four_forms() {
        for (is_64, big_endian) in [(false, false), (false, true), (true, false), (true, true)] {
            let elf = tiny_elf(Form { is_64, big_endian, machine: 62 });
            let (text, data) = (elf.offset(".text") as u64, elf.offset(".data") as u64 + DATA_SHIFT);
            let Ok(headers) = Headers::read(&elf.bytes, Scope::Whole) else { panic!("{is_64} {big_endian}: refused") };
            assert_eq!((headers.machine, headers.entry, headers.segments.len()), (62, text, 2));
            assert_eq!(headers.segments[1].svma, Svma(data));
            assert_eq!(headers.section(".text").map(|section| section.size), Some(48));
            assert_eq!(notes::build_id(&elf.bytes, &headers), Some(&BUILD_ID[..]));

            let Ok(tables) = Tables::locate(&elf.bytes, &headers) else { panic!("{is_64} {big_endian}: no tables") };
            let table = tables.symbols.as_ref().expect("a symbol table");
            let symbols = symbols::read(&elf.bytes, &headers, table, Strings::Symtab);
            let names: Vec<_> =
                symbols.iter().map(|s| (s.svma.0, symbols::name(&elf.bytes, table, s.name_in().1))).collect();
            assert_eq!(names, [(text + 16, "helper"), (text, "exported")]);

            let relocs = relocs::read(&elf.bytes, &headers, &tables);
            let word = elf.word_size() as u64;
            let places: Vec<_> = relocs.iter().map(|reloc| (reloc.place.0 - data) / word).collect();
            assert_eq!(places, [0, 1, 2, 3, 4, 5, 7]);
            assert_eq!(relocs[5].kind, relocs::RelocKind::Relative(Svma(text + 16)));

            let frames = Frames::read(&elf.bytes, &headers);
            let starts: Vec<_> = frames.fdes.iter().map(|fde| (fde.start.0, fde.len)).collect();
            assert_eq!(starts, [(text, 16), (text + 16, 16)], "{:?}", frames.problem);
        }
    }
}
