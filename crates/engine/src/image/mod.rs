//! An image: a linked ELF file, or what a process has mapped of one, seen by address.
//!
//! [`Image::open`] checks the headers and where the tables are, and refuses a file in which they are wrong. What is
//! large (symbols, relocations, unwind tables) is read when it is first asked for, and then kept. An entry of such a
//! table that makes no sense is left out.
//!
//! | file | what |
//! | --- | --- |
//! | `headers.rs` | ELF headers of both classes and byte orders as plain values |
//! | `tables.rs` | where symbols, strings, relocations and dynamic entries are |
//! | `symbols.rs`, `relocs.rs` | their contents |
//! | `frames.rs`, `lsda.rs` | functions' extents, frames and landing pads from the unwind tables |
//!
//! Invariants: an [`Image`] never changes, every address it takes or gives is an [`Svma`], and no byte of the file is
//! trusted: lengths and addresses are checked against the file before they are used.

mod data;
mod error;
mod frames;
mod headers;
mod lsda;
mod notes;
mod relocs;
mod symbols;
mod tables;

use std::path::Path;
use std::sync::OnceLock;

use lancet_isa::{Endian, Isa, Svma};
use object::{Endianness, elf};

pub use error::ImageError;
pub use frames::{Cfa, Cie, Fde, Reference};
pub use headers::{Section, Segment};
pub use lsda::LandingPad;
pub use relocs::{Reloc, RelocKind};
pub use symbols::{Binding, DynamicSymbol, Symbol, SymbolKind};

use data::Data;
use frames::Frames;
use headers::{Headers, NoHeaders, Scope};
use symbols::Strings;
use tables::Tables;

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

pub struct Image {
    name: String,
    data: Data,
    isa: &'static dyn Isa,
    kind: Kind,
    headers: Headers,
    tables: Tables,
    code_ranges: Vec<CodeRange>,
    symbols: OnceLock<Vec<Symbol>>,
    relocations: OnceLock<Vec<Reloc>>,
    frames: OnceLock<Frames>,
}

impl Image {
    pub fn open(path: &Path) -> Result<Image, ImageError> {
        Image::from_data(path.display().to_string(), Data::open(path)?)
    }

    /// An image of bytes that are laid out as in a file.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Result<Image, ImageError> {
        Image::from_data(name.into(), Data::Owned(bytes))
    }

    fn from_data(name: String, data: Data) -> Result<Image, ImageError> {
        let headers = match Headers::read(&data, Scope::Whole) {
            Ok(headers) => headers,
            Err(NoHeaders::NotElf(what)) => return Err(ImageError::NotElf { name, what }),
            Err(NoHeaders::Fault(fault)) => return Err(fault.in_file(&name)),
        };
        let isa = isa_of(&headers, &name)?;
        let tables = Tables::locate(&data, &headers).map_err(|fault| fault.in_file(&name))?;
        let kind = kind_of(&headers, &tables, &name)?;
        let code_ranges = code_ranges(&headers);
        Ok(Image {
            name,
            data,
            isa,
            kind,
            headers,
            tables,
            code_ranges,
            symbols: OnceLock::new(),
            relocations: OnceLock::new(),
            frames: OnceLock::new(),
        })
    }

    /// The file's path, or what the bytes were called.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn isa(&self) -> &'static dyn Isa {
        self.isa
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The whole file.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Where the program starts. A shared library mostly has no such place.
    pub fn entry(&self) -> Option<Svma> {
        Some(Svma(self.headers.entry)).filter(|&at| self.is_code(at))
    }

    /// What is loaded, sorted by address.
    pub fn segments(&self) -> &[Segment] {
        &self.headers.segments
    }

    /// All sections, in the file's order. Empty if the section headers were stripped too.
    pub fn sections(&self) -> &[Section] {
        &self.headers.sections
    }

    pub fn section(&self, name: &str) -> Option<&Section> {
        self.headers.section(name)
    }

    /// Where code can be: executable sections, or executable segments if there are no sections. Sorted, disjoint.
    pub fn code_ranges(&self) -> &[CodeRange] {
        &self.code_ranges
    }

    pub fn code_range_at(&self, at: Svma) -> Option<&CodeRange> {
        let after = self.code_ranges.partition_point(|range| range.start <= at);
        self.code_ranges[..after].last().filter(|range| range.contains(at))
    }

    pub fn is_code(&self, at: Svma) -> bool {
        self.code_range_at(at).is_some()
    }

    /// `len` bytes at `at`, if all of them are in the file.
    pub fn bytes(&self, at: Svma, len: u64) -> Option<&[u8]> {
        self.headers.file_range(at, len).map(|range| &self.data[range])
    }

    /// The bytes from `at` to the end of its segment, or of what the file has of it.
    pub fn bytes_from(&self, at: Svma) -> Option<&[u8]> {
        self.headers.file_range_from(at).map(|range| &self.data[range])
    }

    /// Defined symbols, sorted by address; of several at one address, the most telling first.
    pub fn symbols(&self) -> &[Symbol] {
        self.symbols.get_or_init(|| {
            let sources = [(&self.tables.symbols, Strings::Symtab), (&self.tables.dynamic_symbols, Strings::Dynsym)];
            let mut symbols = Vec::new();
            for (table, strings) in sources {
                if let Some(table) = table {
                    symbols.append(&mut symbols::read(&self.data, &self.headers, table, strings));
                }
            }
            symbols::sort(&mut symbols, |symbol| self.symbol_name(symbol));
            symbols
        })
    }

    /// The name of one of this image's symbols, as the linker has it (mangled), without its version.
    pub fn symbol_name(&self, symbol: &Symbol) -> &str {
        let (strings, name) = symbol.name_in();
        let table = match strings {
            Strings::Symtab => &self.tables.symbols,
            Strings::Dynsym => &self.tables.dynamic_symbols,
            Strings::DebugSymtab => &None,
        };
        table.as_ref().map_or("", |table| symbols::name(&self.data, table, name))
    }

    /// The symbols at exactly this address.
    pub fn symbols_at(&self, at: Svma) -> &[Symbol] {
        let symbols = self.symbols();
        let first = symbols.partition_point(|symbol| symbol.svma < at);
        let count = symbols[first..].partition_point(|symbol| symbol.svma == at);
        &symbols[first..first + count]
    }

    /// The names of symbols that other objects must define.
    pub fn imports(&self) -> impl Iterator<Item = &str> {
        let count = self.tables.dynamic_symbols.as_ref().map_or(0, |table| symbols::count(&self.headers, table));
        let undefined = (1..count).filter_map(|index| self.dynamic_symbol(index)).filter(|entry| entry.svma.is_none());
        undefined.map(|entry| entry.name).filter(|name| !name.is_empty())
    }

    /// The symbol that a relocation refers to.
    pub fn dynamic_symbol(&self, index: u32) -> Option<DynamicSymbol<'_>> {
        symbols::entry(&self.data, &self.headers, self.tables.dynamic_symbols.as_ref()?, index)
    }

    /// What the loader will write, sorted by place.
    pub fn relocations(&self) -> &[Reloc] {
        self.relocations.get_or_init(|| relocs::read(&self.data, &self.headers, &self.tables))
    }

    pub fn relocation_at(&self, place: Svma) -> Option<&Reloc> {
        let relocations = self.relocations();
        relocations.binary_search_by_key(&place, |reloc| reloc.place).ok().map(|index| &relocations[index])
    }

    /// The address in this image that a pointer at `at` holds once the image is loaded. `None` if it leads elsewhere,
    /// or if no relocation makes a pointer of what a position-independent image has there.
    pub fn pointer_at(&self, at: Svma) -> Option<Svma> {
        match self.relocation_at(at).map(|reloc| reloc.kind) {
            Some(RelocKind::Relative(to)) => Some(to),
            Some(RelocKind::Symbol { index, addend }) => {
                self.dynamic_symbol(index)?.svma.map(|svma| svma + addend as u64)
            }
            Some(_) => None,
            None if self.kind.is_position_independent() => None,
            None => relocs::read_pointer(&self.data, &self.headers, at).map(Svma),
        }
    }

    /// The name of the symbol that the loader binds the slot at `at` to.
    pub fn slot_name(&self, at: Svma) -> Option<&str> {
        match self.relocation_at(at)?.kind {
            RelocKind::Symbol { index, .. } => {
                self.dynamic_symbol(index).map(|symbol| symbol.name).filter(|name| !name.is_empty())
            }
            _ => None,
        }
    }

    /// What runs before and after `main`: DT_INIT, DT_FINI, and the arrays of constructors and destructors.
    pub fn init_functions(&self) -> Vec<Svma> {
        let dynamic = &self.tables.dynamic;
        let mut found: Vec<Svma> =
            [elf::DT_INIT, elf::DT_FINI].iter().filter_map(|&tag| dynamic.get(tag)).map(Svma).collect();
        let mut arrays: Vec<(Svma, u64)> = INIT_ARRAYS
            .iter()
            .filter_map(|&(at, size, _)| Some((Svma(dynamic.get(at)?), dynamic.get(size)?)))
            .collect();
        if dynamic.is_empty() {
            let of_kind = |section: &&Section| INIT_ARRAYS.iter().any(|array| array.2.0 == section.kind);
            arrays.extend(self.headers.sections.iter().filter(of_kind).map(|section| (section.svma, section.size)));
            let named = [".init", ".fini"].iter().filter_map(|name| self.section(name));
            found.extend(named.map(|section| section.svma));
        }
        let pointer = u64::from(self.headers.class.pointer_bytes());
        for (start, size) in arrays {
            // Pointers that the file has not are zero, so the file bounds the loop.
            let stated = self.bytes_from(start).map_or(0, |bytes| bytes.len() as u64).min(size) / pointer;
            found.extend((0..stated).filter_map(|index| self.pointer_at(start + index * pointer)));
        }
        found.retain(|&at| self.is_code(at));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// What the unwind tables say about functions, sorted by start.
    pub fn fdes(&self) -> &[Fde] {
        &self.frames().fdes
    }

    pub fn fde_at(&self, at: Svma) -> Option<&Fde> {
        self.frames().fde_at(at)
    }

    /// What an FDE of this image shares with others.
    pub fn cie(&self, fde: &Fde) -> Option<&Cie> {
        self.frames().cies.get(fde.cie as usize)
    }

    /// Where the frame is, just before the instruction at `at` runs.
    pub fn cfa_at(&self, at: Svma) -> Option<Cfa> {
        let mut found = None;
        self.frames().rows(&self.data, self.fde_at(at)?, |from, cfa| {
            if from <= at {
                found = Some(cfa);
            }
            from <= at
        });
        found
    }

    /// All of a function's frame rules: from which address on the frame is where.
    pub fn cfa_rows(&self, fde: &Fde) -> Vec<(Svma, Cfa)> {
        let mut rows = Vec::new();
        self.frames().rows(&self.data, fde, |from, cfa| {
            rows.push((from, cfa));
            true
        });
        rows
    }

    /// Where exceptions re-enter the function of `fde`.
    pub fn landing_pads(&self, fde: &Fde) -> Vec<LandingPad> {
        let Some((at, bytes)) = fde.lsda.and_then(|at| Some((at, self.bytes_from(at)?))) else { return Vec::new() };
        let endian = match self.headers.endian {
            Endianness::Little => gimli::RunTimeEndian::Little,
            Endianness::Big => gimli::RunTimeEndian::Big,
        };
        lsda::landing_pads(bytes, at, endian, self.headers.class.pointer_bytes(), fde)
    }

    fn frames(&self) -> &Frames {
        self.frames.get_or_init(|| Frames::read(&self.data, &self.headers))
    }

    /// The linker's fingerprint of the file.
    pub fn build_id(&self) -> Option<&[u8]> {
        notes::build_id(&self.data, &self.headers)
    }

    /// The shared libraries that it asks for.
    pub fn needed(&self) -> impl Iterator<Item = &str> {
        self.tables.dynamic.all(elf::DT_NEEDED).filter_map(|offset| self.dynamic_string(offset))
    }

    /// The name that other files know this library by.
    pub fn soname(&self) -> Option<&str> {
        self.tables.dynamic.get(elf::DT_SONAME).and_then(|offset| self.dynamic_string(offset))
    }

    /// The program that loads it.
    pub fn interpreter(&self) -> Option<&str> {
        let range = self.headers.extra(elf::PT_INTERP)?.range.clone();
        let text = headers::utf8_prefix(&self.data[range]);
        Some(text.split('\0').next().unwrap_or(text))
    }

    fn dynamic_string(&self, offset: u64) -> Option<&str> {
        let strings = &self.data[self.tables.dynamic_symbols.as_ref()?.strings.clone()];
        let bytes = strings.get(usize::try_from(offset).ok()?..)?;
        Some(headers::utf8_prefix(&bytes[..memchr::memchr(0, bytes)?]))
    }

    /// What was left out because it made no sense, one line each. Reads everything.
    pub fn problems(&self) -> Vec<String> {
        self.frames().problem.iter().map(|problem| format!("{}: {problem}", self.name)).collect()
    }
}

const INIT_ARRAYS: [(elf::DynamicTag, elf::DynamicTag, elf::SectionType); 3] = [
    (elf::DT_PREINIT_ARRAY, elf::DT_PREINIT_ARRAYSZ, elf::SHT_PREINIT_ARRAY),
    (elf::DT_INIT_ARRAY, elf::DT_INIT_ARRAYSZ, elf::SHT_INIT_ARRAY),
    (elf::DT_FINI_ARRAY, elf::DT_FINI_ARRAYSZ, elf::SHT_FINI_ARRAY),
];

fn isa_of(headers: &Headers, name: &str) -> Result<&'static dyn Isa, ImageError> {
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

fn kind_of(headers: &Headers, tables: &Tables, name: &str) -> Result<Kind, ImageError> {
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

fn code_ranges(headers: &Headers) -> Vec<CodeRange> {
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
