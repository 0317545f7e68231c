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
//! | `frames.rs`, `lsda.rs`, `pointer.rs` | functions' extents, frames and landing pads from the unwind tables |
//! | `go.rs` | code that Go's run-time system knows by address |
//! | `debug_file.rs`, `dwarf.rs`, `lines.rs`, `names.rs` | what is there for people: source lines, readable names |
//! | `process.rs` | the images of a running process |
//!
//! Invariants: an [`Image`] never changes, every address it takes or gives is an [`Svma`], and no byte of the file is
//! trusted: lengths and addresses are checked against the file before they are used.

mod classify;
mod data;
mod debug_file;
mod debug_info;
mod dwarf;
mod error;
mod frames;
mod go;
mod headers;
mod lines;
mod lsda;
mod names;
mod notes;
mod pointer;
mod process;
mod relocs;
mod symbols;
mod tables;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use lancet_isa::{Isa, Svma};
use object::elf;

pub use classify::{CodeRange, Kind};
pub use dwarf::ImageDwarf;
pub use error::ImageError;
pub use frames::{Cfa, Cie, Fde, Reference};
pub use go::GoCode;
pub use headers::{Section, Segment};
pub use lines::SourceLine;
pub use lsda::LandingPad;
pub use names::{demangle, demangle_short};
pub use process::{MappedObject, Process, Skipped, file_at};
pub(crate) use process::{maps, start_time, why_not_attached};
pub use relocs::{Reloc, RelocKind};
pub use symbols::{Binding, DynamicSymbol, Symbol, SymbolKind};

use classify::{code_ranges, isa_of, kind_of};
use data::Data;
use debug_info::DebugInfo;
use frames::Frames;
pub(crate) use frames::{LONGEST_CIE, RawFrames};
use headers::{Headers, NoHeaders, Scope};
pub(crate) use lsda::{CallSite, Lsda};
pub(crate) use pointer::read_encoded;
use symbols::Strings;
pub(crate) use tables::RelocFormat;
use tables::{SymbolTable, Tables};

/// A linked ELF file seen by address: code, symbols, relocations, unwind tables, source lines.
///
/// It never changes. What is large is read when it is first asked for.
pub struct Image {
    name: String,
    path: Option<PathBuf>,
    data: Data,
    isa: &'static dyn Isa,
    kind: Kind,
    headers: Headers,
    tables: Tables,
    code_ranges: Vec<CodeRange>,
    symbols: OnceLock<Vec<Symbol>>,
    relocations: OnceLock<Vec<Reloc>>,
    frames: OnceLock<Frames>,
    debug: DebugInfo,
}

impl Image {
    pub fn open(path: &Path) -> Result<Image, ImageError> {
        Image::from_data(path.display().to_string(), Some(path.to_owned()), Data::open(path)?)
    }

    /// An image of bytes that are laid out as in a file.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Result<Image, ImageError> {
        Image::from_data(name.into(), None, Data::Owned(bytes))
    }

    fn from_data(name: String, path: Option<PathBuf>, data: Data) -> Result<Image, ImageError> {
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
            path,
            data,
            isa,
            kind,
            headers,
            tables,
            code_ranges,
            symbols: OnceLock::new(),
            relocations: OnceLock::new(),
            frames: OnceLock::new(),
            debug: DebugInfo::default(),
        })
    }

    /// The same image under another name: a file may be opened by a path that only Lancet knows.
    pub(crate) fn renamed(mut self, name: String) -> Image {
        self.path = Some(PathBuf::from(&name));
        self.name = name;
        self
    }

    /// The file's path, or what the bytes were called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the file is, if the image was opened from one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
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
            let mut symbols = Vec::new();
            for strings in [Strings::Symtab, Strings::DebugSymtab, Strings::Dynsym] {
                if let Some((data, headers, table)) = self.symbol_table(strings) {
                    symbols.append(&mut symbols::read(data, headers, table, strings));
                }
            }
            symbols::sort(&mut symbols, |symbol| self.symbol_name(symbol));
            symbols
        })
    }

    /// The name of one of this image's symbols, as the linker has it (mangled), without its version.
    pub fn symbol_name(&self, symbol: &Symbol) -> &str {
        let (strings, name) = symbol.name_in();
        self.symbol_table(strings).map_or("", |(data, _, table)| symbols::name(data, table, name))
    }

    fn symbol_table(&self, strings: Strings) -> Option<(&[u8], &Headers, &SymbolTable)> {
        let own = |table| Some((&*self.data, &self.headers, table));
        match strings {
            Strings::Symtab => own(self.tables.symbols.as_ref()?),
            Strings::Dynsym => own(self.tables.dynamic_symbols.as_ref()?),
            // A file that was not stripped has them all itself.
            Strings::DebugSymtab if self.tables.symbols.is_some() => None,
            Strings::DebugSymtab => {
                self.debug_file().and_then(|file| Some((&*file.data, &file.headers, file.symbols.as_ref()?)))
            }
        }
    }

    /// The symbols at exactly this address.
    pub fn symbols_at(&self, at: Svma) -> &[Symbol] {
        let symbols = self.symbols();
        let first = symbols.partition_point(|symbol| symbol.svma < at);
        let count = symbols[first..].partition_point(|symbol| symbol.svma == at);
        &symbols[first..first + count]
    }

    /// The best name for exactly this address. Of aliases, the plainest: `malloc` rather than `__libc_malloc`.
    pub fn name_at(&self, at: Svma) -> Option<&str> {
        let named = self.symbols_at(at).iter().map(|symbol| (symbol, self.symbol_name(symbol)));
        let named = named.filter(|(_, name)| !name.is_empty());
        let underscores = |name: &str| name.bytes().take_while(|&byte| byte == b'_').count();
        // A function and the one that picks it (`memset`, `memset_ifunc`) are alike in kind.
        let kind = |symbol: &Symbol| match symbol.kind {
            SymbolKind::IFunc => SymbolKind::Function,
            kind => kind,
        };
        let best = named.min_by_key(|(symbol, name)| (kind(symbol), symbol.binding, underscores(name), name.len()))?;
        Some(best.1)
    }

    /// The names of symbols that other objects must define.
    pub fn imports(&self) -> impl Iterator<Item = &str> {
        let count = self.tables.dynamic_symbols.as_ref().map_or(0, |table| symbols::count(&self.headers, table));
        let undefined = (1..count).filter_map(|index| self.dynamic_symbol(index)).filter(|entry| entry.svma.is_none());
        undefined.map(|entry| entry.name).filter(|name| !name.is_empty())
    }

    /// What other objects may find by name.
    pub fn exports(&self) -> impl Iterator<Item = Svma> {
        let count = self.tables.dynamic_symbols.as_ref().map_or(0, |table| symbols::count(&self.headers, table));
        (1..count).filter_map(|index| self.dynamic_symbol(index)?.svma)
    }

    /// The symbol that a relocation refers to.
    pub fn dynamic_symbol(&self, index: u32) -> Option<DynamicSymbol<'_>> {
        symbols::entry(&self.data, &self.headers, self.tables.dynamic_symbols.as_ref()?, index)
    }

    /// What the loader will write, sorted by place.
    pub fn relocations(&self) -> &[Reloc] {
        self.relocations.get_or_init(|| relocs::read(&self.data, &self.headers, &self.tables))
    }

    /// Where the file has its tables of relocations, in the order in which they are read.
    pub(crate) fn relocation_tables(&self) -> &[(RelocFormat, Range<usize>)] {
        &self.tables.relocations
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

    /// The code of Go, if there is any.
    pub fn go_code(&self) -> Option<GoCode> {
        GoCode::of(self)
    }

    /// The name of the symbol that the loader binds the slot at `at` to. An indirect function is named after the
    /// function that picks it.
    pub fn slot_name(&self, at: Svma) -> Option<&str> {
        match self.relocation_at(at)?.kind {
            RelocKind::Irelative(resolver) => self.name_at(resolver),
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
        let lsda = fde.lsda.and_then(|at| self.lsda(at)?.ok());
        lsda.map_or_else(Vec::new, |lsda| lsda::landing_pads(&lsda, fde))
    }

    /// The language-specific data area at `at`, if the file has such a place.
    pub(crate) fn lsda(&self, at: Svma) -> Option<gimli::Result<Lsda<'_>>> {
        let bytes = self.bytes_from(at)?;
        Some(Lsda::read(bytes, at, self.headers.gimli_endian(), self.headers.class.pointer_bytes()))
    }

    /// The unwind table as it stands in the file.
    pub(crate) fn raw_frames(&self) -> Option<RawFrames<'_>> {
        self.frames().raw(&self.data)
    }

    /// Where the unwind table begins, and its bytes in the file.
    pub fn unwind_table(&self) -> Option<(Svma, Range<usize>)> {
        frames::table(&self.data, &self.headers)
    }

    /// The index into it (`.eh_frame_hdr`).
    pub fn unwind_index(&self) -> Option<(Svma, Range<usize>)> {
        self.headers.extra(elf::PT_GNU_EH_FRAME).map(|index| (index.svma, index.range.clone()))
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
        let table = self.tables.dynamic_symbols.as_ref()?;
        u32::try_from(offset).ok().map(|offset| symbols::string(&self.data, table, offset))
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
