//! The new file, put together step by step.

use std::ops::Range;

use object::elf;

use super::edits::{Edits, Hook};
use super::headers::Headers;
use super::raw::{Dynamic, FileHeader, Section, Segment};
use super::room::{self, Block, Room, Tactic, next_congruent};
use super::sections::{self, Placed, Sections};
use super::{SinkError, size_in_memory};
use crate::image::{Image, Kind};
use crate::layout::{Chunk, ChunkKind, Patch};
use crate::program::Part;

const READ_EXECUTE: u64 = (elf::PF_R.0 | elf::PF_X.0) as u64;
const READ_WRITE: u64 = (elf::PF_R.0 | elf::PF_W.0) as u64;
const READ: u64 = elf::PF_R.0 as u64;

/// A new table may stand this far behind the rest of the file. The gap takes no room on the disk, but in memory.
const WIDEST_GAP: u64 = 1 << 30;

/// A block that moved: its new address and file offset, and how much larger it is.
struct Moved {
    block: Block,
    at: u64,
    offset: u64,
    grown: u64,
}

impl Moved {
    fn holds(&self, at: u64) -> bool {
        at >= self.block.at && at - self.block.at < self.block.size()
    }
}

/// The file while it is being made.
pub(super) struct Output<'a> {
    image: &'a Image,
    headers: &'a Headers,
    room: Room,
    /// A `DT_INIT` that the dynamic section has no entry for yet.
    new_init: Option<u64>,
    page: u64,
    bytes: Vec<u8>,
    /// What stood where there is room now.
    cleared: Vec<u8>,
    /// What stood behind everything that the headers know of, and is not ELF at all.
    payload: &'a [u8],
    /// How much everything moved back in the file.
    shift: u64,
    file: FileHeader,
    segments: Vec<Segment>,
    chunks: Vec<Placed>,
    moved: Vec<Moved>,
}

impl<'a> Output<'a> {
    /// Starts with the input's bytes, edited in place.
    pub fn edited(image: &'a Image, headers: &'a Headers, patch: &Patch) -> Result<Output<'a>, SinkError> {
        let mut file = headers.file.clone();
        let mut bytes = image.data().to_vec();
        let mut edits = Edits { image, headers, bytes: &mut bytes };
        patch.overwrites.iter().try_for_each(|overwrite| edits.overwrite(overwrite))?;
        edits.repoint(&patch.repoints)?;
        let mut new_init = None;
        if let Some(to) = patch.start_up {
            match Hook::of(image, headers)? {
                Hook::Entry { .. } => file.entry = to.0,
                Hook::Init { .. } => new_init = (!edits.hook_init(to)).then_some(to.0),
            }
        }
        let has_frames = headers.segments.iter().any(|segment| segment.is(elf::PT_GNU_EH_FRAME));
        let new_frames = usize::from(patch.eh_frame_hdr.is_some() && !has_frames);
        let added = patch.chunks.len() + new_frames + usize::from(new_init.is_some());
        let room = Room::find(headers, &bytes, added);
        let (kept, payload) = extent(headers, image.data());
        bytes.truncate(kept.max(room.cleared.end as usize));
        Ok(Output {
            image,
            headers,
            page: headers.page(),
            room,
            new_init,
            bytes,
            cleared: Vec::new(),
            payload,
            shift: 0,
            file,
            segments: headers.segments.clone(),
            chunks: Vec::new(),
            moved: Vec::new(),
        })
    }

    /// Vacates the place of the new table, or shifts everything.
    pub fn make_room(&mut self) {
        match self.room.tactic {
            Tactic::InPlace => self.slide(),
            Tactic::Prepended => self.prepend(),
            Tactic::NewTable => {}
        }
    }

    fn slide(&mut self) {
        let cleared = self.room.cleared.start as usize..self.room.cleared.end as usize;
        self.cleared = self.bytes[cleared.clone()].to_vec();
        self.bytes[cleared].fill(0);
        let (table, end) = (self.headers.segment_table(), self.room.cleared.end);
        let around = |load: &&mut Segment| load.is(elf::PT_LOAD) && load.span().contains(&table.start);
        if let Some(load) = self.segments.iter_mut().find(around).filter(|load| load.span().end < end) {
            let size = end - load.offset;
            (load.file_size, load.mem_size) = (size, size);
        }
        for (block, offset) in std::mem::take(&mut self.room.slid) {
            let contents = self.contents(&block).to_vec();
            self.bytes[offset as usize..offset as usize + contents.len()].copy_from_slice(&contents);
            let at = block.at.wrapping_sub(block.span.start).wrapping_add(offset);
            self.moved.push(Moved { block, at, offset, grown: 0 });
        }
    }

    /// The bytes of a block, from before its place was cleared.
    fn contents(&self, block: &Block) -> &[u8] {
        let start = self.room.cleared.start;
        &self.cleared[(block.span.start - start) as usize..(block.span.end - start) as usize]
    }

    /// Lets the file, and with it the first segment, begin a page earlier. The old headers stay as a copy where they
    /// were: code may look at them (`__ehdr_start`).
    fn prepend(&mut self) {
        self.shift = self.page;
        let identification = self.bytes[..Headers::START].to_vec();
        self.bytes.splice(..0, std::iter::repeat_n(0, self.page as usize));
        self.bytes[..Headers::START].copy_from_slice(&identification);
        self.file.segments_at = self.headers.header_end();
        let first = self.headers.first_load().map_or(0, |load| load.at);
        for segment in &mut self.segments {
            if segment.is(elf::PT_LOAD) {
                segment.align = segment.align.min(self.page);
            }
            if segment.is(elf::PT_LOAD) && segment.at == first && segment.mem_size != 0 {
                segment.at -= self.page;
                segment.physical = segment.physical.wrapping_sub(self.page);
                segment.file_size += self.page;
                segment.mem_size += self.page;
            } else if segment.is(elf::PT_PHDR) {
                segment.offset = self.file.segments_at;
                segment.at = first - self.page + self.file.segments_at;
                segment.physical = segment.at;
            } else if segment.file_size != 0 || segment.offset != 0 {
                segment.offset = segment.offset.saturating_add(self.page);
            }
        }
    }

    /// Appends bytes for an address, at an offset that suits it.
    fn append(&mut self, at: u64, contents: &[u8]) -> u64 {
        let offset = next_congruent(self.bytes.len() as u64, at, self.page);
        if !contents.is_empty() {
            self.bytes.resize(offset as usize, 0);
            self.bytes.extend_from_slice(contents);
        }
        offset
    }

    pub fn add_chunks(&mut self, chunks: &[&Chunk]) {
        for chunk in chunks {
            let offset = self.append(chunk.at.0, &chunk.bytes);
            let (file_size, mem_size) = (chunk.bytes.len() as u64, size_in_memory(chunk));
            let flags = if chunk.kind == ChunkKind::Code { READ_EXECUTE } else { READ_WRITE };
            self.add_load(flags, chunk.at.0, offset, file_size, mem_size);
            self.chunks.push(Placed { at: chunk.at.0, offset, file_size, mem_size, flags });
        }
    }

    /// Adds a segment behind the last loaded one below it: loaders want them to rise.
    fn add_load(&mut self, flags: u64, at: u64, offset: u64, file_size: u64, mem_size: u64) {
        let kind = elf::PT_LOAD.0.into();
        let segment = Segment { kind, flags, offset, at, physical: at, file_size, mem_size, align: self.page };
        let is_load = |segment: &Segment| segment.is(elf::PT_LOAD);
        let below = self.segments.iter().rposition(|segment| is_load(segment) && segment.at < at);
        let place = below.map(|below| below + 1).or_else(|| self.segments.iter().position(is_load));
        self.segments.insert(place.unwrap_or(0), segment);
    }

    /// The first page behind all segments of the output.
    fn next_address(&self) -> u64 {
        let loads = self.segments.iter().filter(|segment| segment.is(elf::PT_LOAD));
        loads.map(Segment::mem_end).max().unwrap_or(0).next_multiple_of(self.page)
    }

    /// Gives the tables that had to go a segment of their own, and tells those who lead to them.
    pub fn place_evicted(&mut self) {
        let start = self.next_address();
        let mut contents = Vec::new();
        let mut places = Vec::new();
        for block in std::mem::take(&mut self.room.evicted) {
            let at = next_congruent(start + contents.len() as u64, block.at, block.align.min(self.page));
            contents.resize((at - start) as usize, 0);
            contents.extend_from_slice(self.contents(&block));
            places.push((block, at));
        }
        if !contents.is_empty() {
            let offset = self.append(start, &contents);
            self.add_load(READ, start, offset, contents.len() as u64, contents.len() as u64);
            let moved =
                places.into_iter().map(|(block, at)| Moved { block, at, offset: offset + (at - start), grown: 0 });
            self.moved.extend(moved);
        }
        self.update_references();
    }

    fn update_references(&mut self) {
        for segment in self.segments.iter_mut().filter(|segment| !segment.is(elf::PT_LOAD) && segment.file_size != 0) {
            if let Some(moved) = self.moved.iter().find(|moved| moved.holds(segment.at)) {
                let inside = segment.at - moved.block.at;
                (segment.at, segment.physical) = (moved.at + inside, moved.at + inside);
                segment.offset = moved.offset + inside;
            }
        }
        let codec = self.headers.codec;
        for table in room::TABLES {
            let Some((entry, value)) = self.headers.dynamic(table.tag) else { continue };
            if let Some(to) = self.new_address(value) {
                // In bounds: the entry was read from there, and all that is loaded is kept.
                let _ = codec.put_word(&mut self.bytes, entry + codec.word_bytes(), to);
            }
        }
    }

    /// Moves the dynamic section to a writable segment of its own if it has to have one entry more. The loader finds it
    /// by its program header; what it leaves behind is a copy that nobody reads.
    pub fn grow_dynamic(&mut self) {
        let codec = self.headers.codec;
        let Some(init) = self.new_init else { return };
        let Some(index) = self.segments.iter().position(|segment| segment.is(elf::PT_DYNAMIC)) else { return };
        let mut entries = vec![Dynamic::init(init)];
        // Read once more: some of them were updated.
        entries.extend(self.headers.dynamic.iter().filter_map(|&(at, _)| codec.read::<Dynamic>(&self.bytes, at)));
        let contents = codec.encode(&entries);
        let (at, size) = (self.next_address(), contents.len() as u64);
        let offset = self.append(at, &contents);
        let segment = &mut self.segments[index];
        let block = Block::of(segment, false);
        (segment.at, segment.physical, segment.offset) = (at, at, offset);
        (segment.file_size, segment.mem_size) = (size, size);
        self.moved.push(Moved { block, at, offset, grown: codec.size_of::<Dynamic>() as u64 });
        self.add_load(READ_WRITE, at, offset, size, size);
    }

    fn new_address(&self, at: u64) -> Option<u64> {
        let moved = self.moved.iter().find(|moved| moved.holds(at))?;
        Some(moved.at + (at - moved.block.at))
    }

    /// Repoints the segment of unwind information, or adds one.
    pub fn point_to_frames(&mut self, frames: Part) -> Result<(), SinkError> {
        let (at, size) = (frames.start.0, frames.size());
        let holder = self.segments.iter().find(|load| {
            let inside = at.wrapping_sub(load.at);
            load.is(elf::PT_LOAD) && inside < load.file_size && size <= load.file_size - inside
        });
        let Some(holder) = holder else {
            let what = "unwind information outside of all bytes".to_owned();
            return Err(SinkError::BadPatch { name: self.image.name().to_owned(), at: frames.start, what });
        };
        let segment = Segment {
            kind: elf::PT_GNU_EH_FRAME.0.into(),
            flags: READ,
            offset: holder.offset + (at - holder.at),
            at,
            physical: at,
            file_size: size,
            mem_size: size,
            align: 4,
        };
        match self.segments.iter_mut().find(|segment| segment.is(elf::PT_GNU_EH_FRAME)) {
            Some(old) => *old = segment,
            None => self.segments.push(segment),
        }
        Ok(())
    }

    /// Adds a segment for the table if it needs one, and lets `PT_PHDR` say where it is.
    ///
    /// GNU `strip` writes such a table right behind the last section before it, aligned or not. So that section is one
    /// that ends at a page.
    pub fn place_table(&mut self) -> Result<(), SinkError> {
        let entry = self.headers.codec.size_of::<Segment>();
        let mut moved_to = None;
        if self.room.tactic == Tactic::NewTable {
            let (before, offset) = self.place_for_table()?;
            let page = self.page;
            self.bytes.resize((offset + page) as usize, 0);
            self.add_load(READ, before, offset, page, page);
            self.chunks.push(Placed { at: before, offset, file_size: page, mem_size: page, flags: READ });
            let (at, offset) = (before + page, offset + page);
            let size = (self.segments.len() + 1) * entry;
            self.bytes.resize(offset as usize + size, 0);
            self.add_load(READ, at, offset, size as u64, size as u64);
            self.file.segments_at = offset;
            moved_to = Some((at, offset));
        }
        let size = (self.segments.len() * entry) as u64;
        for segment in self.segments.iter_mut().filter(|segment| segment.is(elf::PT_PHDR)) {
            (segment.file_size, segment.mem_size) = (size, size);
            if let Some((at, offset)) = moved_to {
                (segment.at, segment.physical, segment.offset) = (at, at, offset);
            }
        }
        Ok(())
    }

    /// The address and the file offset of the page before a new table: as far from each other as the first segment's if the kernel may
    /// start this file.
    fn place_for_table(&self) -> Result<(u64, u64), SinkError> {
        let free = self.bytes.len().next_multiple_of(self.page as usize) as u64;
        if self.image.kind() == Kind::SharedLibrary && !self.segments.iter().any(|it| it.is(elf::PT_INTERP)) {
            return Ok((self.next_address(), free));
        }
        let first = self.headers.first_load();
        let distance = first.map_or(0, |first| first.at.wrapping_sub(first.offset));
        let offset = self.next_address().wrapping_sub(distance).max(free);
        if offset - free > WIDEST_GAP || !distance.is_multiple_of(self.page) {
            let what = "there is no room for more program headers".to_owned();
            return Err(SinkError::CannotEdit { name: self.image.name().to_owned(), what });
        }
        Ok((offset.wrapping_add(distance), offset))
    }

    /// A file without section headers stays without.
    pub fn add_sections(&mut self, patch: &Patch) -> Result<(), SinkError> {
        if self.headers.sections.is_empty() {
            (self.file.sections_at, self.file.sections, self.file.names) = (0, 0, 0);
            return Ok(());
        }
        let place = |section: &mut Section| match self
            .moved
            .iter()
            .find(|moved| section.is_loaded() && moved.holds(section.at))
        {
            Some(moved) => {
                let inside = section.at - moved.block.at;
                (section.at, section.offset) = (moved.at + inside, moved.offset + inside);
                section.size += moved.grown;
            }
            None => section.offset = section.offset.saturating_add(self.shift),
        };
        let mut sections = Sections::new(self.image, self.headers, place);
        if let Some(dynamic) = self.moved.iter().find(|moved| moved.grown != 0) {
            sections.add_copy(&dynamic.block);
        }
        sections.add_chunks(patch, &self.chunks, &self.bytes)?;
        sections.add_symbols(&patch.symbols, |at| self.new_address(at))?;
        (self.file.sections_at, self.file.sections, self.file.names) = sections.finish(&mut self.bytes)?;
        Ok(())
    }

    pub fn finish(mut self) -> (Vec<u8>, Tactic) {
        self.file.segments = self.segments.len() as u64;
        let table = self.headers.codec.encode(&self.segments);
        let header = self.headers.codec.encode(&[self.file.clone()]);
        let records = [(Headers::START, header), (self.file.segments_at as usize, table)];
        for (at, record) in records {
            self.bytes[at..at + record.len()].copy_from_slice(&record);
        }
        self.bytes.extend_from_slice(self.payload);
        (self.bytes, self.room.tactic)
    }
}

/// How much of the input stays where it is, and what is behind all that its headers know of.
///
/// Symbols, strings and section headers are written anew, so they are cut off if they are the last. A program may have
/// a payload behind its end (an archive, a file system) which it finds from its beginning or from its end. So such a
/// file is not cut, and has its payload at its end once more.
fn extent<'a>(headers: &Headers, data: &'a [u8]) -> (usize, &'a [u8]) {
    let rewritten = sections::rewritten(headers);
    let end = |spans: &mut dyn Iterator<Item = Range<u64>>| {
        spans.filter(|span| !span.is_empty()).map(|span| span.end).max().unwrap_or(0).min(data.len() as u64) as usize
    };
    let segments = headers.segments.iter().map(Segment::span);
    let table = headers.segment_table();
    let others = headers.sections.iter().enumerate().filter(|(index, _)| !rewritten.contains(index));
    let kept = end(&mut segments.chain([table]).chain(others.map(|(_, section)| section.span())));
    let known = end(&mut headers.sections.iter().map(Section::span).chain([headers.section_table()])).max(kept);
    let payload = &data[known..];
    match payload.iter().any(|&byte| byte != 0) {
        true => (data.len(), payload),
        false => (kept, &[]),
    }
}
