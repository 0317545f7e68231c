//! Section headers and symbols: for people, debuggers and `strip`; no loader looks at them.
//!
//! Sections keep their indices, so that everything that refers to them stays right: new ones follow the old ones. The
//! symbol table, the string tables and the section headers themselves are written anew at the end of the file.
//!
//! Every byte of a chunk is in some section, named by the patch or not: `strip` copies sections, and what is in none
//! would be lost. An old section whose name a new one takes (`.eh_frame`) gets the suffix `.orig`: debuggers look
//! sections up by name, and shall find the new one.

use std::collections::BTreeMap;
use std::ops::Range;

use object::elf::{self, SectionType};

use super::SinkError;
use super::headers::{Headers, MOST_SECTIONS};
use super::raw::{Section, Symbol};
use super::room::Block;
use crate::image::Image;
use crate::layout::{NewSection, NewSymbol, Patch};

/// Names for what the patch has no name for.
const CODE: &str = ".lancet.text";
const DATA: &str = ".lancet.data";
const PADDING: &str = ".lancet.padding";
const COPY: &str = ".dynamic.orig";
const ZERO: &str = ".bss";
const RENAMED: &str = ".orig";

/// Sections in executable chunks that hold no instructions.
const TABLES: [&str; 4] = [".eh_frame", ".eh_frame_hdr", ".gcc_except_table", ".rodata"];

/// New sections are aligned to at most this, if their place allows it.
const ALIGN: u64 = 16;

/// A chunk and where it is in the output.
pub(super) struct Placed {
    pub at: u64,
    pub offset: u64,
    pub file_size: u64,
    pub mem_size: u64,
    /// `PF_*`.
    pub flags: u64,
}

impl Placed {
    fn is(&self, flag: elf::ProgramFlags) -> bool {
        self.flags & u64::from(flag.0) != 0
    }

    fn file_end(&self) -> u64 {
        self.at + self.file_size
    }

    fn end(&self) -> u64 {
        self.at + self.mem_size
    }
}

/// The sections whose contents are written anew: symbols, their names, and the sections' names.
pub(super) fn rewritten(headers: &Headers) -> Vec<usize> {
    let symbols = symbol_section(headers);
    let strings = symbols.map(|index| headers.sections[index].link as usize);
    let plain = |&index: &usize| headers.sections.get(index).is_some_and(|section| !section.is_loaded());
    [symbols, strings, Some(headers.file.names as usize)].into_iter().flatten().filter(plain).collect()
}

fn symbol_section(headers: &Headers) -> Option<usize> {
    headers.sections.iter().position(|section| section.is(elf::SHT_SYMTAB))
}

/// The output's section headers, and the contents that go to the end of the file.
pub(super) struct Sections<'a> {
    image: &'a Image,
    headers: &'a Headers,
    list: Vec<Section>,
    /// By section index.
    contents: BTreeMap<usize, Vec<u8>>,
    /// The section that holds the names of sections.
    names: usize,
    /// New sections by address.
    new: Vec<(Range<u64>, usize)>,
}

impl<'a> Sections<'a> {
    /// Starts with the old sections, each at the place that `place` says.
    pub fn new(image: &'a Image, headers: &'a Headers, place: impl Fn(&mut Section)) -> Sections<'a> {
        let mut list = headers.sections.clone();
        list.iter_mut().skip(1).for_each(place);
        let mut sections = Sections { image, headers, list, contents: BTreeMap::new(), names: 0, new: Vec::new() };
        let index = headers.file.names as usize;
        let is_usable = |names: &Section| names.is(elf::SHT_STRTAB) && !names.is_loaded();
        if headers.sections.get(index).is_some_and(is_usable) {
            sections.names = index;
        } else {
            sections.list.iter_mut().for_each(|section| section.name = 0);
            sections.names = sections.add(Section { kind: elf::SHT_STRTAB.0.into(), align: 1, ..Section::default() });
            sections.list[sections.names].name = sections.string(sections.names, b".shstrtab");
        }
        sections.strings(sections.names);
        sections
    }

    fn add(&mut self, section: Section) -> usize {
        self.list.push(section);
        self.list.len() - 1
    }

    /// The string table in a section, with room for more.
    fn strings(&mut self, index: usize) -> &mut Vec<u8> {
        let old = self.headers.sections.get(index).map_or(&[][..], |section| bytes_of(self.image, section));
        self.contents.entry(index).or_insert_with(|| {
            let mut strings = old.to_vec();
            // Both are so in every sound string table.
            if strings.is_empty() || strings.last() != Some(&0) {
                strings.push(0);
            }
            strings
        })
    }

    fn string(&mut self, table: usize, text: &[u8]) -> u64 {
        let strings = self.strings(table);
        let at = strings.len() as u64;
        strings.extend_from_slice(text);
        strings.push(0);
        at
    }

    fn name(&self, section: &Section) -> &[u8] {
        let names = self.contents.get(&self.names).map_or(&[][..], Vec::as_slice);
        let name = names.get(section.name as usize..).unwrap_or_default();
        name.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    /// Adds a section for what a dynamic section left behind: GNU `strip` misplaces a segment without sections.
    pub fn add_copy(&mut self, dynamic: &Block) {
        let name = self.string(self.names, COPY.as_bytes());
        self.add(Section {
            name,
            kind: elf::SHT_PROGBITS.0.into(),
            flags: elf::SHF_ALLOC.0 | elf::SHF_WRITE.0,
            at: dynamic.at,
            offset: dynamic.span.start,
            size: dynamic.size(),
            align: dynamic.align,
            ..Section::default()
        });
    }

    /// Adds the sections of all chunks.
    pub fn add_chunks(&mut self, patch: &Patch, chunks: &[Placed], bytes: &[u8]) -> Result<(), SinkError> {
        let bad = |section: &NewSection, what: &str| SinkError::BadPatch {
            name: self.image.name().to_owned(),
            at: section.range.start,
            what: format!("section {} {what}", section.name),
        };
        let mut named: Vec<&NewSection> = patch.sections.iter().filter(|it| it.range.start != it.range.end).collect();
        named.sort_by_key(|section| section.range.start);
        if let Some(pair) = named.windows(2).find(|pair| pair[1].range.start < pair[0].range.end) {
            return Err(bad(pair[1], "overlaps another"));
        }
        let holds = |chunk: &Placed, it: &NewSection| it.range.start.0 >= chunk.at && it.range.end.0 <= chunk.end();
        let lost = |it: &&&NewSection| it.range.end < it.range.start || !chunks.iter().any(|chunk| holds(chunk, it));
        if let Some(lost) = named.iter().find(lost) {
            return Err(bad(lost, "is in no chunk"));
        }
        for chunk in chunks {
            let inside: Vec<&NewSection> = named.iter().copied().filter(|section| holds(chunk, section)).collect();
            for piece in pieces(chunk, &inside, bytes) {
                self.add_piece(chunk, piece);
            }
        }
        Ok(())
    }

    fn add_piece(&mut self, chunk: &Placed, piece: Piece) {
        self.give_up_name(piece.name.as_bytes());
        let name = self.string(self.names, piece.name.as_bytes());
        let in_file = piece.range.start < chunk.file_end();
        let kind = if in_file { elf::SHT_PROGBITS } else { elf::SHT_NOBITS };
        let is_code = chunk.is(elf::PF_X) && !TABLES.contains(&piece.name.as_str());
        let mut access = 0;
        if chunk.is(elf::PF_W) {
            access |= elf::SHF_WRITE.0;
        }
        if is_code {
            access |= elf::SHF_EXECINSTR.0;
        }
        let index = self.add(Section {
            name,
            kind: kind.0.into(),
            flags: (elf::SHF_ALLOC.0 | access),
            at: piece.range.start,
            // A section without bytes stands where they would begin.
            offset: chunk.offset + (piece.range.start - chunk.at).min(chunk.file_size),
            size: piece.range.end - piece.range.start,
            align: 1 << piece.range.start.trailing_zeros().min(ALIGN.trailing_zeros()),
            ..Section::default()
        });
        self.new.push((piece.range, index));
    }

    /// Renames an old section that has this name.
    fn give_up_name(&mut self, name: &[u8]) {
        let old = |section: &Section| self.name(section) == name;
        let Some(index) = self.list[..self.headers.sections.len()].iter().position(old) else { return };
        let mut other = name.to_vec();
        while self.list.iter().any(|section| self.name(section) == other) {
            other.extend_from_slice(RENAMED.as_bytes());
        }
        self.list[index].name = self.string(self.names, &other);
    }

    /// Extends the symbol table, or makes one. `moved` tells the new address of what moved.
    pub fn add_symbols(&mut self, symbols: &[NewSymbol], moved: impl Fn(u64) -> Option<u64>) -> Result<(), SinkError> {
        let codec = self.headers.codec;
        let size = codec.size_of::<Symbol>();
        let (table, strings) = match symbol_section(self.headers) {
            Some(table) => (table, self.symbol_strings(table)?),
            None if symbols.is_empty() => return Ok(()),
            None => self.add_symbol_table(),
        };
        // Written anew even if no name is added: its old place is cut off with the rest.
        self.strings(strings);
        let mut entries = match self.headers.sections.get(table) {
            Some(section) => bytes_of(self.image, section).to_vec(),
            None => codec.encode(&[Symbol::default()]),
        };
        if entries.len() % size != 0 {
            let what = format!("its symbol table has {} bytes, no multiple of {size}", entries.len());
            return Err(SinkError::CannotEdit { name: self.image.name().to_owned(), what });
        }
        for entry in entries.chunks_exact_mut(size) {
            let Some(mut symbol) = codec.read::<Symbol>(entry, 0) else { continue };
            // By its section: the value of a thread-local symbol looks like an address, but is none.
            let section = self.headers.sections.get(symbol.section as usize).filter(|section| section.is_loaded());
            if let Some((old, new)) = section.and_then(|section| Some((section.at, moved(section.at)?))) {
                symbol.at = symbol.at.wrapping_sub(old).wrapping_add(new);
                entry.copy_from_slice(&codec.encode(&[symbol]));
            }
        }
        let mut added = Vec::with_capacity(symbols.len());
        for symbol in symbols {
            added.push(self.new_symbol(symbol, strings)?);
        }
        entries.extend(codec.encode(&added));
        self.contents.insert(table, entries);
        Ok(())
    }

    /// The string table of the symbol table: its own, since it grows.
    fn symbol_strings(&mut self, table: usize) -> Result<usize, SinkError> {
        let index = self.list[table].link as usize;
        match self.list.get(index) {
            Some(section) if !section.is_loaded() && section.is(elf::SHT_STRTAB) => Ok(index),
            _ => {
                let what = "the names of its symbols are in no string table, or in one that is loaded".to_owned();
                Err(SinkError::CannotEdit { name: self.image.name().to_owned(), what })
            }
        }
    }

    fn add_symbol_table(&mut self) -> (usize, usize) {
        let named = |sections: &mut Self, name: &str, kind: SectionType, align: usize| {
            let name = sections.string(sections.names, name.as_bytes());
            sections.add(Section { name, kind: kind.0.into(), align: align as u64, ..Section::default() })
        };
        let strings = named(self, ".strtab", elf::SHT_STRTAB, 1);
        let table = named(self, ".symtab", elf::SHT_SYMTAB, self.headers.codec.word_bytes());
        let section = &mut self.list[table];
        section.link = strings as u64;
        section.entry_size = self.headers.codec.size_of::<Symbol>() as u64;
        // The first symbol that is not local; only the empty one is.
        section.info = 1;
        (table, strings)
    }

    /// Global, because the table has its local symbols first and others refer to its entries by index.
    fn new_symbol(&mut self, symbol: &NewSymbol, strings: usize) -> Result<Symbol, SinkError> {
        let at = symbol.at.0;
        // A symbol may also mark the end of a section.
        let home = |range: &Range<u64>| range.contains(&at) || range.end == at;
        let Some(&(_, section)) = self.new.iter().find(|new| home(&new.0)) else {
            let what = format!("symbol {} is in no chunk", symbol.name);
            return Err(SinkError::BadPatch { name: self.image.name().to_owned(), at: symbol.at, what });
        };
        let is_code = self.list[section].flags & elf::SHF_EXECINSTR.0 != 0;
        let kind = if is_code { elf::STT_FUNC } else { elf::STT_OBJECT };
        let name = self.string(strings, symbol.name.as_bytes());
        let info = u64::from(elf::STB_GLOBAL.0) << 4 | u64::from(kind.0);
        Ok(Symbol { name, info, section: section as u64, at, size: symbol.size, other: 0 })
    }

    /// Appends everything to the file and tells where the headers are, how many, and which one has the names.
    pub fn finish(mut self, bytes: &mut Vec<u8>) -> Result<(u64, u64, u64), SinkError> {
        if self.list.len() >= MOST_SECTIONS {
            let what = format!("it would have {} sections", self.list.len());
            return Err(SinkError::CannotEdit { name: self.image.name().to_owned(), what });
        }
        for (&index, contents) in &self.contents {
            pad(bytes, self.list[index].align);
            self.list[index].offset = bytes.len() as u64;
            self.list[index].size = contents.len() as u64;
            bytes.extend_from_slice(contents);
        }
        pad(bytes, self.headers.codec.word_bytes() as u64);
        let at = bytes.len() as u64;
        bytes.extend(self.headers.codec.encode(&self.list));
        Ok((at, self.list.len() as u64, self.names as u64))
    }
}

fn pad(bytes: &mut Vec<u8>, align: u64) {
    let align = if align.is_power_of_two() { align.min(ALIGN) } else { 1 } as usize;
    bytes.resize(bytes.len().next_multiple_of(align), 0);
}

fn bytes_of<'a>(image: &'a Image, section: &Section) -> &'a [u8] {
    let span = section.span();
    image.data().get(span.start as usize..span.end as usize).unwrap_or_default()
}

/// A part of a chunk that becomes a section.
struct Piece {
    name: String,
    range: Range<u64>,
}

/// Cuts a chunk into sections: those that are named, and what is between them unless it is padding.
fn pieces(chunk: &Placed, named: &[&NewSection], bytes: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut cursor = chunk.at;
    let rest = match (chunk.is(elf::PF_X), chunk.is(elf::PF_W)) {
        (true, _) => CODE,
        (false, true) => DATA,
        (false, false) => PADDING,
    };
    let is_padding = |range: &Range<u64>| {
        let offset = |at: u64| (chunk.offset + (at - chunk.at).min(chunk.file_size)) as usize;
        let inside = bytes.get(offset(range.start)..offset(range.end)).unwrap_or_default();
        range.start != chunk.at && inside.iter().all(|&byte| byte == 0)
    };
    for section in named {
        let (start, end) = (section.range.start.0, section.range.end.0);
        if cursor < start && !is_padding(&(cursor..start)) {
            cut(chunk, rest, cursor..start, &mut pieces);
        }
        cut(chunk, section.name, start..end, &mut pieces);
        cursor = end;
    }
    cut(chunk, rest, cursor..chunk.end(), &mut pieces);
    pieces
}

/// A section has all its bytes in the file or none, so one that only begins there becomes two.
fn cut(chunk: &Placed, name: &str, range: Range<u64>, pieces: &mut Vec<Piece>) {
    let middle = chunk.file_end().clamp(range.start, range.end);
    let (first, second) = (range.start..middle, middle..range.end);
    if !first.is_empty() {
        pieces.push(Piece { name: name.to_owned(), range: first.clone() });
    }
    if !second.is_empty() {
        let suffix = if first.is_empty() && name != DATA { "" } else { ZERO };
        pieces.push(Piece { name: format!("{name}{suffix}"), range: second });
    }
}
