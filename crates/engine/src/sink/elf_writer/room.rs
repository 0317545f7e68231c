//! Room for more program headers.
//!
//! The table of program headers stands right behind the file header, and something stands right behind the table.
//! Loaders find the table in memory by three ways that must agree: older kernels tell a program that it is at
//! `load address + e_phoff`, newer ones (Linux 5.18) look up the segment that has it, and `PT_PHDR` states it. GNU
//! `strip` and `objcopy` write the table anew, behind the file header or the last section before it.
//!
//! [`Tactic::InPlace`] satisfies all. The table grows where it is, and what stands behind it makes room:
//!
//! ```text
//!   before: | header | table | .interp .note.* | .gnu.hash | .dynsym | .dynstr ...
//!   after:  | header | table, grown     | .interp .note.* | (free)   | .dynstr ...   + | .gnu.hash | .dynsym |
//! ```
//!
//! Only what the program headers or the dynamic section lead to can move, since no code knows where it is. The
//! interpreter's name and the notes stay in the first page if that is possible: a core file has the first page of each
//! object, and the build ID is looked for there.
//!
//! [`Tactic::Prepended`]: a program at a fixed address grows downwards by a page, with the headers in it.
//!
//! [`Tactic::NewTable`]: the table goes to a segment of its own behind everything, at a file offset as far from its
//! address as the first segment's is, which older kernels rely on. No kernel has to find a library's table, so there
//! that distance does not matter.

use std::ops::Range;

use object::elf::{self, DynamicTag, ProgramType, SectionType};

use super::headers::Headers;
use super::raw::{Section, Segment};

/// How a file got room for more program headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tactic {
    /// What stood behind the table made room.
    InPlace,
    /// The program begins a page earlier.
    Prepended,
    /// The table is in a new segment.
    NewTable,
}

/// Bytes that move together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// In the file, as it is now.
    pub span: Range<u64>,
    pub at: u64,
    pub align: u64,
    /// Stays in the first page if it can.
    near: bool,
}

impl Block {
    pub fn of(segment: &Segment, near: bool) -> Block {
        Block { span: segment.span(), at: segment.at, align: segment.align, near }
    }

    pub fn size(&self) -> u64 {
        self.span.end - self.span.start
    }
}

pub(super) struct Room {
    pub tactic: Tactic,
    /// What becomes free behind the old table, for the new one and for `slid`.
    pub cleared: Range<u64>,
    /// Blocks that stay in their segment, with their new file offsets.
    pub slid: Vec<(Block, u64)>,
    /// Blocks that need a new segment.
    pub evicted: Vec<Block>,
}

const NEAR: [ProgramType; 3] = [elf::PT_INTERP, elf::PT_NOTE, elf::PT_GNU_PROPERTY];

/// A table that the dynamic section leads to, and nothing else.
pub(super) struct Table {
    /// The entry with its address.
    pub tag: DynamicTag,
    /// The entry with its size, if there is one.
    size: Option<DynamicTag>,
    kinds: &'static [SectionType],
}

impl Table {
    const fn new(tag: DynamicTag, size: Option<DynamicTag>, kinds: &'static [SectionType]) -> Table {
        Table { tag, size, kinds }
    }

    /// Whether this table is exactly a section. If the loader's table is larger, it spans several sections, and they
    /// would have to move together.
    fn is_section(&self, headers: &Headers, section: &Section) -> bool {
        let size = self.size.and_then(|tag| headers.dynamic(tag)).map_or(0, |(_, size)| size);
        headers.dynamic(self.tag).is_some_and(|(_, at)| at == section.at)
            && size <= section.size
            && self.kinds.iter().any(|&kind| section.is(kind))
    }
}

pub(super) const TABLES: [Table; 11] = [
    Table::new(elf::DT_HASH, None, &[elf::SHT_HASH]),
    Table::new(elf::DT_GNU_HASH, None, &[elf::SHT_GNU_HASH]),
    Table::new(elf::DT_SYMTAB, None, &[elf::SHT_DYNSYM]),
    Table::new(elf::DT_STRTAB, Some(elf::DT_STRSZ), &[elf::SHT_STRTAB]),
    Table::new(elf::DT_RELA, Some(elf::DT_RELASZ), &[elf::SHT_RELA]),
    Table::new(elf::DT_REL, Some(elf::DT_RELSZ), &[elf::SHT_REL]),
    Table::new(elf::DT_RELR, Some(elf::DT_RELRSZ), &[elf::SHT_RELR]),
    Table::new(elf::DT_JMPREL, Some(elf::DT_PLTRELSZ), &[elf::SHT_RELA, elf::SHT_REL]),
    Table::new(elf::DT_VERSYM, None, &[elf::SHT_GNU_VERSYM]),
    Table::new(elf::DT_VERDEF, None, &[elf::SHT_GNU_VERDEF]),
    Table::new(elf::DT_VERNEED, None, &[elf::SHT_GNU_VERNEED]),
];

/// Without section headers nobody says what loaded zeros are for, but so few between two blocks are padding.
const PADDING: u64 = 16;

/// Programs do not begin below this: Linux forbids mapping there by default.
const LOWEST_ADDRESS: u64 = 0x1_0000;

impl Room {
    /// Finds room for `added` headers, and for those that finding it takes.
    pub fn find(headers: &Headers, data: &[u8], added: usize) -> Room {
        let table = headers.segment_table();
        let size =
            |extra: usize| ((headers.segments.len() + added + extra) * headers.codec.size_of::<Segment>()) as u64;
        if let Some(room) = in_place(headers, data, |extra| table.start + size(extra)) {
            return room;
        }
        let room = |tactic| Room { tactic, cleared: table.end..table.end, slid: Vec::new(), evicted: Vec::new() };
        let first = headers.first_load();
        let page = headers.page();
        let can_prepend = headers.file.kind == u64::from(elf::ET_EXEC.0)
            && first.is_some_and(|load| load.offset == 0 && load.at >= LOWEST_ADDRESS + page)
            && headers.header_end() + size(0) <= page;
        if can_prepend { room(Tactic::Prepended) } else { room(Tactic::NewTable) }
    }
}

/// Makes room behind the table. `table_end` tells where a table with so many extra headers ends.
fn in_place(headers: &Headers, data: &[u8], table_end: impl Fn(usize) -> u64) -> Option<Room> {
    let run = Run::behind_table(headers, data);
    let start = headers.segment_table().end;
    let room = |used: u64, count: usize, slid, evicted| {
        let vacated = run.blocks[..count].last().map_or(start, |block| block.span.end);
        Room { tactic: Tactic::InPlace, cleared: start..used.max(vacated), slid, evicted }
    };
    // First choice: the blocks that should stay near slide along, only the others go.
    for (count, &end) in run.ends.iter().enumerate() {
        let (near, evicted): (Vec<&Block>, Vec<&Block>) = run.blocks[..count].iter().partition(|block| block.near);
        let mut cursor = table_end(usize::from(!evicted.is_empty()));
        let slid: Vec<(Block, u64)> = near
            .into_iter()
            .map(|block| {
                let to = next_congruent(cursor, block.span.start, block.align);
                cursor = to.saturating_add(block.size());
                (block.clone(), to)
            })
            .collect();
        if cursor <= end {
            return Some(room(cursor, count, slid, evicted.into_iter().cloned().collect()));
        }
    }
    let count = run.ends.iter().position(|&end| table_end(1) <= end)?;
    Some(room(table_end(1), count, Vec::new(), run.blocks[..count].to_vec()))
}

/// The first value from `from` on that is like `model` modulo `align`.
pub(super) fn next_congruent(from: u64, model: u64, align: u64) -> u64 {
    let align = if align.is_power_of_two() { align } else { 1 };
    from.saturating_add(model.wrapping_sub(from) & (align - 1))
}

/// The movable blocks that follow the table one after the other.
struct Run {
    blocks: Vec<Block>,
    /// How far there is room if none, one, two, ... of the blocks go.
    ends: Vec<u64>,
}

impl Run {
    fn behind_table(headers: &Headers, data: &[u8]) -> Run {
        let table = headers.segment_table();
        let around = headers.loads().find(|load| load.span().start <= table.start && table.end <= load.span().end);
        let movable = around.map_or(Vec::new(), |load| blocks(headers, load));
        let claims = claims(headers, around);
        // The table must be loaded, so its segment grows with it if it has to.
        let limit = around.map_or(data.len() as u64, |load| growth(headers, load)).min(data.len() as u64);
        let mut run = Run { blocks: Vec::new(), ends: Vec::new() };
        let mut cursor = table.end;
        loop {
            let known = around.map_or(0, |load| load.span().end);
            let free = free_until(headers, data, &claims, cursor..limit, known);
            run.ends.push(free);
            let Some(next) = movable.iter().find(|block| block.span.start == free) else { return run };
            cursor = next.span.end;
            run.blocks.push(next.clone());
        }
    }
}

/// Up to where in the file a segment can grow: in memory it may reach the next one's first page, if no zeroed memory
/// stands behind it.
fn growth(headers: &Headers, load: &Segment) -> u64 {
    if load.mem_size != load.file_size {
        return load.span().end;
    }
    let page = headers.page();
    let next = headers.loads().map(|other| other.at / page * page).filter(|&at| at >= load.mem_end()).min();
    let room = next.map_or(0, |next| next - load.mem_end());
    load.span().end.saturating_add(room)
}

/// How far the bytes of `range` are zero and nobody's. Up to `known` they are loaded.
fn free_until(headers: &Headers, data: &[u8], claims: &[Range<u64>], range: Range<u64>, known: u64) -> u64 {
    let (from, limit) = (range.start, range.end);
    let claimed = claims.iter().filter(|claim| claim.end > from).map(|claim| claim.start.max(from)).min();
    let mut end = claimed.unwrap_or(limit).min(limit).max(from);
    if headers.sections.is_empty() && from < known && (claimed.is_none() || end - from > PADDING) {
        end = from;
    }
    let bytes = data.get(from as usize..end as usize).unwrap_or_default();
    from + bytes.iter().take_while(|&&byte| byte == 0).count() as u64
}

/// What parts of the file belong to somebody.
fn claims(headers: &Headers, around: Option<&Segment>) -> Vec<Range<u64>> {
    // The rest of this segment is described by sections and by the other program headers.
    let is_around = |segment: &Segment| around.is_some_and(|load| std::ptr::eq(load, segment));
    let segments = headers.segments.iter().filter(|segment| !is_around(segment) && !segment.is(elf::PT_PHDR));
    let mut claims: Vec<Range<u64>> = segments.map(Segment::span).collect();
    claims.extend(headers.sections.iter().map(|section| section.span()));
    claims.push(headers.section_table());
    claims.retain(|claim| !claim.is_empty());
    claims
}

/// What can move out of a segment.
fn blocks(headers: &Headers, load: &Segment) -> Vec<Block> {
    let inside = |span: &Range<u64>, at: u64| {
        !span.is_empty()
            && span.start >= load.offset
            && span.end <= load.span().end
            && at.wrapping_sub(load.at) == span.start - load.offset
    };
    let near = headers.segments.iter().filter(|segment| NEAR.iter().any(|&kind| segment.is(kind)));
    let near = near.map(|segment| Block::of(segment, true));
    let tables = headers
        .sections
        .iter()
        .filter(|section| section.is_loaded() && TABLES.iter().any(|table| table.is_section(headers, section)));
    let tables = tables.map(|it| Block { span: it.span(), at: it.at, align: it.align, near: false });
    let mut found: Vec<Block> = near.chain(tables).filter(|block| inside(&block.span, block.at)).collect();
    found.sort_by_key(|block| (block.span.start, block.span.end));
    let mut merged: Vec<Block> = Vec::new();
    for block in found {
        match merged.last_mut().filter(|last| block.span.start < last.span.end) {
            Some(last) => {
                last.span.end = last.span.end.max(block.span.end);
                last.align = last.align.max(block.align);
                last.near &= block.near;
            }
            None => merged.push(block),
        }
    }
    merged
}
