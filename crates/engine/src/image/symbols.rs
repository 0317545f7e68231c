//! Symbols: the names that linkers left for addresses.
//!
//! Names stay in the mapped file. A [`Symbol`] keeps where its name starts, in 24 bytes all told, because a large
//! library has hundreds of thousands of them.

use lancet_isa::Svma;
use object::Endianness;
use object::elf;
use object::read::elf::{FileHeader, Sym};
use rayon::prelude::*;

use super::headers::{Class, Headers, array, utf8_prefix};
use super::tables::SymbolTable;

/// Thousands of symbols may share one name, of any length in a hostile file. Names of templates reach some kilobytes.
const LONGEST_NAME: usize = 64 * 1024;
const COMPARED_NAME: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SymbolKind {
    Function,
    /// A function that picks the function: its result is what callers reach.
    IFunc,
    Object,
    NoType,
    Section,
    /// The address is an offset into the thread-local block.
    Tls,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    Global,
    Weak,
    Local,
}

/// Which string table names a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strings {
    Symtab,
    Dynsym,
    DebugSymtab,
}

/// A defined symbol. Its name is with the image: [`Image::symbol_name`](super::Image::symbol_name).
#[derive(Clone, Copy, Debug)]
pub struct Symbol {
    pub svma: Svma,
    pub size: u64,
    name: u32,
    strings: Strings,
    pub kind: SymbolKind,
    pub binding: Binding,
}

impl Symbol {
    pub(super) fn name_in(&self) -> (Strings, u32) {
        (self.strings, self.name)
    }
}

/// An entry of the dynamic symbol table, as relocations refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DynamicSymbol<'a> {
    pub name: &'a str,
    /// `None` if another object defines it.
    pub svma: Option<Svma>,
    pub kind: Option<SymbolKind>,
}

/// The defined symbols of one table, in its order.
pub(super) fn read(data: &[u8], headers: &Headers, table: &SymbolTable, strings: Strings) -> Vec<Symbol> {
    match headers.class {
        Class::Elf32 => read_as::<elf::FileHeader32<Endianness>>(data, headers.endian, table, strings),
        Class::Elf64 => read_as::<elf::FileHeader64<Endianness>>(data, headers.endian, table, strings),
    }
}

fn read_as<Elf: FileHeader<Endian = Endianness>>(
    data: &[u8],
    endian: Endianness,
    table: &SymbolTable,
    strings: Strings,
) -> Vec<Symbol> {
    let defined = array::<Elf::Sym>(data, &table.entries).iter().filter(|entry| is_defined(*entry, endian));
    let symbols = defined.filter_map(|entry| {
        Some(Symbol {
            svma: Svma(entry.st_value(endian).into()),
            size: entry.st_size(endian).into(),
            name: entry.st_name(endian),
            strings,
            kind: kind(entry.st_type())?,
            binding: match entry.st_bind() {
                elf::STB_LOCAL => Binding::Local,
                elf::STB_WEAK => Binding::Weak,
                _ => Binding::Global,
            },
        })
    });
    symbols.collect()
}

/// Has an address in this file. (An absolute symbol is a number, not an address.)
fn is_defined<S: Sym<Endian = Endianness>>(entry: &S, endian: Endianness) -> bool {
    !matches!(entry.st_shndx(endian), elf::SHN_UNDEF | elf::SHN_ABS | elf::SHN_COMMON)
}

fn kind(raw: elf::SymbolType) -> Option<SymbolKind> {
    Some(match raw {
        elf::STT_FUNC => SymbolKind::Function,
        elf::STT_GNU_IFUNC => SymbolKind::IFunc,
        elf::STT_OBJECT | elf::STT_COMMON => SymbolKind::Object,
        elf::STT_TLS => SymbolKind::Tls,
        elf::STT_NOTYPE => SymbolKind::NoType,
        elf::STT_SECTION => SymbolKind::Section,
        _ => return None,
    })
}

/// Number of entries, the null one included.
pub(super) fn count(headers: &Headers, table: &SymbolTable) -> u32 {
    let entry = match headers.class {
        Class::Elf32 => size_of::<elf::Sym32<Endianness>>(),
        Class::Elf64 => size_of::<elf::Sym64<Endianness>>(),
    };
    u32::try_from(table.entries.len() / entry).unwrap_or(u32::MAX)
}

pub(super) fn entry<'a>(
    data: &'a [u8],
    headers: &Headers,
    table: &SymbolTable,
    index: u32,
) -> Option<DynamicSymbol<'a>> {
    match headers.class {
        Class::Elf32 => entry_as::<elf::FileHeader32<Endianness>>(data, headers.endian, table, index),
        Class::Elf64 => entry_as::<elf::FileHeader64<Endianness>>(data, headers.endian, table, index),
    }
}

fn entry_as<'a, Elf: FileHeader<Endian = Endianness>>(
    data: &'a [u8],
    endian: Endianness,
    table: &SymbolTable,
    index: u32,
) -> Option<DynamicSymbol<'a>> {
    let entry = array::<Elf::Sym>(data, &table.entries).get(index as usize)?;
    Some(DynamicSymbol {
        name: name(data, table, entry.st_name(endian)),
        svma: is_defined(entry, endian).then(|| Svma(entry.st_value(endian).into())),
        kind: kind(entry.st_type()),
    })
}

/// The name at `offset` of a table's strings, without a version (`memcpy@@GLIBC_2.14`).
pub(super) fn name<'a>(data: &'a [u8], table: &SymbolTable, offset: u32) -> &'a str {
    let name = string(data, table, offset);
    memchr::memchr(b'@', name.as_bytes()).map_or(name, |version| &name[..version])
}

/// The text at `offset` of a table's strings.
pub(super) fn string<'a>(data: &'a [u8], table: &SymbolTable, offset: u32) -> &'a str {
    let bytes = data[table.strings.clone()].get(offset as usize..).unwrap_or_default();
    let bytes = &bytes[..bytes.len().min(LONGEST_NAME)];
    utf8_prefix(&bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())])
}

/// As much of a name as tells it from others at the same address.
fn comparable(name: &str) -> (&[u8], usize) {
    (&name.as_bytes()[..name.len().min(COMPARED_NAME)], name.len())
}

/// Sorts by address, the most telling symbol of each address first, and drops what one table repeats of another.
pub(super) fn sort<'a>(symbols: &mut Vec<Symbol>, name_of: impl Fn(&Symbol) -> &'a str) {
    symbols.par_sort_by_key(|symbol| symbol.svma);
    for group in symbols.chunk_by_mut(|a, b| a.svma == b.svma) {
        if group.len() > 1 {
            group.sort_by_cached_key(|symbol| (symbol.kind, symbol.binding, comparable(name_of(symbol))));
        }
    }
    symbols.dedup_by(|b, a| a.svma == b.svma && a.kind == b.kind && comparable(name_of(a)) == comparable(name_of(b)));
}
