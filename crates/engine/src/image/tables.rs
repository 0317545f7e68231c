//! Where the tables are: symbols, strings, dynamic entries and relocations.
//!
//! The loader finds them through `PT_DYNAMIC`; a linker or a debugger through section headers. A stripped file may
//! lack the second, a static one the first. All ranges found here are inside the file and every string table ends
//! with a zero byte, or opening the image fails; their contents are read later, and only if somebody asks.

use std::ops::Range;

use lancet_isa::Svma;
use object::elf::{self, DynamicTag};
use object::read::elf::{Dyn, FileHeader};
use object::{Endian, Endianness, elf::FileHeader32, elf::FileHeader64};

use super::error::Fault;
use super::headers::{Class, Headers, Section, array};

/// A symbol table and the strings that name its entries, as ranges of the file.
#[derive(Clone, Debug)]
pub(super) struct SymbolTable {
    pub entries: Range<usize>,
    pub strings: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelocFormat {
    Rel,
    Rela,
    Relr,
}

#[derive(Debug, Default)]
pub(super) struct Tables {
    /// `.symtab`
    pub symbols: Option<SymbolTable>,
    /// `.dynsym`
    pub dynamic_symbols: Option<SymbolTable>,
    pub dynamic: Dynamic,
    pub relocations: Vec<(RelocFormat, Range<usize>)>,
}

/// The entries of `PT_DYNAMIC` up to `DT_NULL`.
#[derive(Debug, Default)]
pub(super) struct Dynamic {
    entries: Vec<(DynamicTag, u64)>,
}

impl Dynamic {
    pub fn get(&self, tag: DynamicTag) -> Option<u64> {
        self.all(tag).next()
    }

    pub fn all(&self, tag: DynamicTag) -> impl Iterator<Item = u64> {
        self.entries.iter().filter(move |entry| entry.0 == tag).map(|entry| entry.1)
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Tables {
    pub fn locate(data: &[u8], headers: &Headers) -> Result<Tables, Fault> {
        let dynamic = match (headers.extra(elf::PT_DYNAMIC), headers.class) {
            (None, _) => Dynamic::default(),
            (Some(found), Class::Elf32) => read_dynamic::<FileHeader32<Endianness>>(data, &found.range, headers.endian),
            (Some(found), Class::Elf64) => read_dynamic::<FileHeader64<Endianness>>(data, &found.range, headers.endian),
        };
        let mut tables = Tables::from_sections(data, headers)?;
        if tables.dynamic_symbols.is_none() {
            tables.dynamic_symbols = dynamic_symbols(data, headers, &dynamic)?;
        }
        tables.relocations = match dynamic.is_empty() {
            false => dynamic_relocations(headers, &dynamic)?,
            true => loaded_relocation_sections(headers),
        };
        tables.dynamic = dynamic;
        Ok(tables)
    }

    /// What section headers tell: all there is for a separate debug file.
    pub fn from_sections(data: &[u8], headers: &Headers) -> Result<Tables, Fault> {
        let find = |kind: elf::SectionType| {
            let section = headers.sections.iter().find(|section| section.kind == kind.0);
            section.map(|section| symbol_section(data, headers, section)).transpose()
        };
        Ok(Tables { symbols: find(elf::SHT_SYMTAB)?, dynamic_symbols: find(elf::SHT_DYNSYM)?, ..Tables::default() })
    }
}

fn symbol_section(data: &[u8], headers: &Headers, section: &Section) -> Result<SymbolTable, Fault> {
    let place = || format!("section {}", section.name);
    let strings = headers
        .sections
        .get(section.link as usize)
        .filter(|strings| strings.kind == elf::SHT_STRTAB.0)
        .and_then(Section::file_range)
        .ok_or_else(|| Fault::new(place(), format!("its string table {} is none", section.link)))?;
    check_strings(data, &strings, &place())?;
    let entries = section.file_range().ok_or_else(|| Fault::new(place(), "it has no bytes in the file"))?;
    Ok(SymbolTable { entries, strings })
}

fn check_strings(data: &[u8], strings: &Range<usize>, place: &str) -> Result<(), Fault> {
    if data[strings.clone()].last().is_some_and(|&last| last != 0) {
        let what = format!("its string table at offset {:#x} is not terminated", strings.start);
        return Err(Fault::new(place, what));
    }
    Ok(())
}

fn read_dynamic<Elf: FileHeader<Endian = Endianness>>(
    data: &[u8],
    range: &Range<usize>,
    endian: Endianness,
) -> Dynamic {
    let entries = array::<Elf::Dyn>(data, range).iter().map(|entry| (entry.tag(endian), entry.val(endian)));
    Dynamic { entries: entries.take_while(|entry| entry.0 != elf::DT_NULL).collect() }
}

/// Finds a dynamic table's bytes: tag of its address, its size.
fn loaded(headers: &Headers, tag: &str, at: u64, size: u64) -> Result<Range<usize>, Fault> {
    headers.file_range(Svma(at), size).ok_or_else(|| {
        Fault::new(format!("dynamic entry {tag}"), format!("{size:#x} bytes at {at:#x} are not in a loaded segment"))
    })
}

fn dynamic_symbols(data: &[u8], headers: &Headers, dynamic: &Dynamic) -> Result<Option<SymbolTable>, Fault> {
    let (Some(at), Some(strings)) = (dynamic.get(elf::DT_SYMTAB), dynamic.get(elf::DT_STRTAB)) else {
        return Ok(None);
    };
    let strings = loaded(headers, "DT_STRTAB", strings, dynamic.get(elf::DT_STRSZ).unwrap_or(0))?;
    check_strings(data, &strings, "dynamic entry DT_STRTAB")?;
    let room = loaded(headers, "DT_SYMTAB", at, 0).and_then(|_| {
        headers.file_range_from(Svma(at)).ok_or_else(|| Fault::new("dynamic entry DT_SYMTAB", "not in the file"))
    })?;
    let entry = match headers.class {
        Class::Elf32 => size_of::<elf::Sym32<Endianness>>(),
        Class::Elf64 => size_of::<elf::Sym64<Endianness>>(),
    };
    let count = count_dynamic_symbols(data, headers, dynamic).unwrap_or(0).min(room.len() / entry);
    Ok(Some(SymbolTable { entries: room.start..room.start + count * entry, strings }))
}

/// The loader never needs the number of dynamic symbols, so it is stated nowhere: the hash tables give it away.
fn count_dynamic_symbols(data: &[u8], headers: &Headers, dynamic: &Dynamic) -> Option<usize> {
    let word = |at: u64| {
        let bytes = data.get(headers.file_range(Svma(at), 4)?)?.try_into().ok()?;
        Some(headers.endian.read_u32(bytes))
    };
    if let Some(hash) = dynamic.get(elf::DT_HASH) {
        // nbucket, nchain; there is one chain entry for each symbol.
        return word(hash.checked_add(4)?).map(|count| count as usize);
    }
    let hash = dynamic.get(elf::DT_GNU_HASH)?;
    let (buckets, first, bloom) = (word(hash)?, word(hash.checked_add(4)?)?, word(hash.checked_add(8)?)?);
    let buckets_at = hash.checked_add(16)?.checked_add(u64::from(bloom) * u64::from(headers.class.pointer_bytes()))?;
    let chains_at = buckets_at.checked_add(u64::from(buckets) * 4)?;
    // Both tables must be in the file, which bounds the two loops.
    headers.file_range(Svma(buckets_at), u64::from(buckets) * 4)?;
    let mut last = (0..u64::from(buckets)).filter_map(|index| word(buckets_at + index * 4)).max()?;
    if last < first {
        // Nothing is exported; imports come before `first`.
        return Some(first as usize);
    }
    // The last chain ends at the entry whose lowest bit is set.
    while word(chains_at.checked_add(u64::from(last - first) * 4)?)? & 1 == 0 {
        last = last.checked_add(1)?;
    }
    Some(last as usize + 1)
}

fn dynamic_relocations(headers: &Headers, dynamic: &Dynamic) -> Result<Vec<(RelocFormat, Range<usize>)>, Fault> {
    let plt_format = match dynamic.get(elf::DT_PLTREL) {
        Some(format) if format == elf::DT_REL.0 as u64 => RelocFormat::Rel,
        _ => RelocFormat::Rela,
    };
    let candidates = [
        (RelocFormat::Rela, "DT_RELA", elf::DT_RELA, elf::DT_RELASZ),
        (RelocFormat::Rel, "DT_REL", elf::DT_REL, elf::DT_RELSZ),
        (RelocFormat::Relr, "DT_RELR", elf::DT_RELR, elf::DT_RELRSZ),
        (plt_format, "DT_JMPREL", elf::DT_JMPREL, elf::DT_PLTRELSZ),
    ];
    let mut tables = Vec::new();
    for (format, name, at, size) in candidates {
        if let (Some(at), Some(size)) = (dynamic.get(at), dynamic.get(size).filter(|&size| size != 0)) {
            tables.push((format, loaded(headers, name, at, size)?));
        }
    }
    Ok(tables)
}

/// A static program relocates itself (IFUNCs) by sections whose bounds the linker gave it as symbols.
fn loaded_relocation_sections(headers: &Headers) -> Vec<(RelocFormat, Range<usize>)> {
    let format = |section: &Section| match elf::SectionType(section.kind) {
        elf::SHT_RELA => Some(RelocFormat::Rela),
        elf::SHT_REL => Some(RelocFormat::Rel),
        elf::SHT_RELR => Some(RelocFormat::Relr),
        _ => None,
    };
    let loaded = headers.sections.iter().filter(|section| section.is_loaded());
    loaded.filter_map(|section| Some((format(section)?, section.file_range()?))).collect()
}
