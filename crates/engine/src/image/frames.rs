//! Unwind tables: the extents of functions, as `.eh_frame` tells them, and where each frame is.
//!
//! The table is a chain of entries that can only be walked from the front, so one thread hops over the lengths and
//! sorts out CIEs (shared rules) from FDEs (one for each function); the FDEs are then parsed in parallel. A section
//! header tells where the chain is; without one, `PT_GNU_EH_FRAME` does, and its search table if there is one.
//!
//! Invariants: FDEs are sorted, not empty, lie in executable memory, and do not overlap: one that runs into the next
//! is cut there, which is how an unwinder sees it (the last start at or below an address wins). Entries that break
//! these rules are left out; [`Frames::problem`] keeps the first.

use std::ops::Range;

use gimli::{
    BaseAddresses, CallFrameInstruction, CfaRule, CommonInformationEntry, EhFrame, EhFrameHdr, EhFrameOffset,
    EndianSlice, FrameDescriptionEntry, Pointer, Reader, RunTimeEndian, UnwindContext, UnwindOffset, UnwindSection,
    UnwindTable,
};
use lancet_isa::Svma;
use object::elf;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::headers::Headers;

/// What one FDE says about a function, or about a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fde {
    pub start: Svma,
    pub len: u64,
    /// The table of its landing pads.
    pub lsda: Option<Svma>,
    /// Index of its [`Cie`].
    pub cie: u32,
    /// Place of the entry in its table.
    pub(crate) offset: u32,
    /// At `start` the frame is as a call leaves it: the rules are the CIE's own. A function's part that is only
    /// jumped to (`.cold`) mostly starts with a frame already made.
    pub entry_state: bool,
    /// The frame of a signal handler's trampoline.
    pub signal_frame: bool,
}

impl Fde {
    pub fn end(&self) -> Svma {
        self.start + self.len
    }

    pub fn contains(&self, at: Svma) -> bool {
        at >= self.start && at - self.start < self.len
    }
}

/// What many FDEs share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cie {
    /// The language's handler of exceptions.
    pub personality: Option<Reference>,
    pub signal_frame: bool,
    /// Where the frame is when a function is entered.
    pub entry: Option<Cfa>,
}

/// An address, or the place of a pointer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    Direct(Svma),
    Slot(Svma),
}

/// How to compute the canonical frame address: on x86-64, the stack pointer as it was before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cfa {
    /// A register, by DWARF's number, plus an offset.
    Register { dwarf: u16, offset: i64 },
    /// A program over registers and memory.
    Expression,
}

/// Real ones have some twenty bytes.
pub(crate) const LONGEST_CIE: usize = 4096;

type Bytes<'a> = EndianSlice<'a, RunTimeEndian>;
type ParsedCie<'a> = CommonInformationEntry<Bytes<'a>>;

/// Where the table begins, and its bytes.
pub(super) fn table(data: &[u8], headers: &Headers) -> Option<(Svma, Range<usize>)> {
    Place::find(data, headers).map(|(place, _)| (place.start, place.range))
}

#[derive(Debug, Default)]
pub(super) struct Frames {
    pub fdes: Vec<Fde>,
    pub cies: Vec<Cie>,
    /// The first entry that was left out, and why.
    pub problem: Option<String>,
    place: Option<Place>,
    /// Where in the table the FDEs are, also those that were left out. Sorted.
    offsets: Vec<u32>,
}

/// The table as it stands in the file, for those who write a new one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawFrames<'a> {
    pub start: Svma,
    pub bytes: Bytes<'a>,
    pub address_size: u8,
    /// Where in `bytes` all FDEs are. Sorted.
    pub fde_offsets: &'a [u32],
}

/// Where the chain of entries is.
#[derive(Clone, Debug)]
struct Place {
    range: Range<usize>,
    bases: BaseAddresses,
    endian: RunTimeEndian,
    address_size: u8,
    start: Svma,
}

impl Place {
    fn section<'a>(&self, data: &'a [u8]) -> EhFrame<Bytes<'a>> {
        let mut section = EhFrame::new(&data[self.range.clone()], self.endian);
        section.set_address_size(self.address_size);
        section
    }

    /// Where the chain is; with the sorted offsets of its FDEs, if `.eh_frame_hdr` lists them but nothing tells where
    /// the chain ends.
    fn find(data: &[u8], headers: &Headers) -> Option<(Place, Option<Vec<u32>>)> {
        let endian = headers.gimli_endian();
        let address_size = headers.class.pointer_bytes();
        let mut bases = BaseAddresses::default();
        for (name, set) in BASES {
            if let Some(section) = headers.section(name) {
                bases = set(bases, section.svma.0);
            }
        }
        let place = |range, start: Svma, bases: BaseAddresses| Place {
            range,
            bases: bases.set_eh_frame(start.0),
            endian,
            address_size,
            start,
        };
        if let Some(section) = headers.section(".eh_frame").filter(|section| section.size != 0) {
            return Some((place(section.file_range()?, section.svma, bases), None));
        }
        let header = headers.extra(elf::PT_GNU_EH_FRAME)?;
        let bases = bases.set_eh_frame_hdr(header.svma.0);
        let parsed = EhFrameHdr::new(&data[header.range.clone()], endian).parse(&bases, address_size).ok()?;
        let start = Svma(parsed.eh_frame_ptr().direct().ok()?);
        let range = headers.file_range_from(start)?;
        let listed = parsed.table().map(|table| {
            let mut entries = table.iter(&bases);
            let pointers = std::iter::from_fn(|| entries.next().ok().flatten());
            let offsets = pointers.filter_map(|(_, fde)| u32::try_from(fde.pointer().checked_sub(start.0)?).ok());
            let mut offsets: Vec<u32> = offsets.collect();
            offsets.sort_unstable();
            offsets
        });
        Some((place(range, start, bases), listed.filter(|offsets| !offsets.is_empty())))
    }
}

type SetBase = fn(BaseAddresses, u64) -> BaseAddresses;
const BASES: [(&str, SetBase); 3] = [
    (".text", BaseAddresses::set_text),
    (".got", BaseAddresses::set_got),
    (".eh_frame_hdr", BaseAddresses::set_eh_frame_hdr),
];

impl Frames {
    pub fn read(data: &[u8], headers: &Headers) -> Frames {
        let Some((place, listed)) = Place::find(data, headers) else { return Frames::default() };
        let section = place.section(data);
        let chain = EndianSlice::new(&data[place.range.clone()], place.endian);
        let (fde_offsets, mut problem) = match &listed {
            Some(offsets) => (apart(chain, offsets), None),
            None => walk(chain),
        };
        let shared = SharedRules::read(&section, &place, &fde_offsets);
        let parser = Parser { section, place: &place, headers, shared: &shared };
        let parsed: Vec<Result<Fde, Skipped>> =
            fde_offsets.par_iter().with_min_len(1024).map(|&offset| parser.fde(offset)).collect();
        let mut fdes = Vec::with_capacity(parsed.len());
        for result in parsed {
            match result {
                Ok(fde) => fdes.push(fde),
                Err(Skipped { offset, why }) => {
                    problem.get_or_insert_with(|| {
                        format!(".eh_frame entry at {:#x}: {why}", place.start.0 + u64::from(offset))
                    });
                }
            }
        }
        if !fdes.is_sorted_by_key(|fde| fde.start) {
            fdes.par_sort_by_key(|fde| fde.start);
        }
        fdes.dedup_by_key(|fde| fde.start);
        for index in 1..fdes.len() {
            let room = fdes[index].start - fdes[index - 1].start;
            fdes[index - 1].len = fdes[index - 1].len.min(room);
        }
        let cies = shared.cies;
        Frames { fdes, cies, problem, place: Some(place), offsets: fde_offsets }
    }

    pub fn fde_at(&self, at: Svma) -> Option<&Fde> {
        let after = self.fdes.partition_point(|fde| fde.start <= at);
        self.fdes[..after].last().filter(|fde| fde.contains(at))
    }

    pub fn raw<'a>(&'a self, data: &'a [u8]) -> Option<RawFrames<'a>> {
        let place = self.place.as_ref()?;
        Some(RawFrames {
            start: place.start,
            bytes: EndianSlice::new(&data[place.range.clone()], place.endian),
            address_size: place.address_size,
            fde_offsets: &self.offsets,
        })
    }

    /// Shows `visit` where the frame is from each address on, in order, until it returns false.
    pub fn rows(&self, data: &[u8], fde: &Fde, mut visit: impl FnMut(Svma, Cfa) -> bool) {
        let Some(place) = &self.place else { return };
        let section = place.section(data);
        let entry = section.fde_from_offset(&place.bases, EhFrameOffset(fde.offset as usize), EhFrame::cie_from_offset);
        let Ok(entry) = entry else { return };
        let mut context = UnwindContext::new();
        let Ok(mut table) = UnwindTable::new(&section, &place.bases, &mut context, &entry) else { return };
        while let Ok(Some(row)) = table.next_row() {
            if row.start_address() < row.end_address() && !visit(Svma(row.start_address()), cfa(row.cfa())) {
                return;
            }
        }
    }
}

fn cfa(rule: &CfaRule<usize>) -> Cfa {
    match rule {
        CfaRule::RegisterAndOffset { register, offset } => Cfa::Register { dwarf: register.0, offset: *offset },
        CfaRule::Expression(_) => Cfa::Expression,
    }
}

/// The offsets of all FDEs of a chain, and what stopped the walk if not its end.
fn walk(chain: Bytes<'_>) -> (Vec<u32>, Option<String>) {
    let mut rest = chain;
    let mut fdes = Vec::new();
    while !rest.is_empty() {
        let at = rest.offset_from(chain);
        let (mut entry, format) = match next_entry(&mut rest) {
            Ok(entry) => entry,
            Err(error) => return (fdes, Some(format!(".eh_frame + {at:#x}: {error}"))),
        };
        if entry.is_empty() {
            // The terminator. Linkers leave one inside the chain when an input file brought its own.
            continue;
        }
        match (entry.read_offset(format), u32::try_from(at)) {
            (Ok(0), _) => {}
            (Ok(_), Ok(at)) => fdes.push(at),
            _ => return (fdes, Some(format!(".eh_frame + {at:#x}: no entry"))),
        }
    }
    (fdes, None)
}

/// Of listed entries, in order, those that do not start inside another: so their total size is bounded.
fn apart(chain: Bytes<'_>, offsets: &[u32]) -> Vec<u32> {
    let mut end = 0;
    let is_apart = |offset: &&u32| {
        let mut rest = chain;
        let start = **offset as usize;
        let sound = start >= end && rest.skip(start).and_then(|()| next_entry(&mut rest)).is_ok();
        if sound {
            end = rest.offset_from(chain);
        }
        sound
    };
    offsets.iter().filter(is_apart).copied().collect()
}

fn next_entry<'a>(rest: &mut Bytes<'a>) -> gimli::Result<(Bytes<'a>, gimli::Format)> {
    let (length, format) = rest.read_initial_length()?;
    Ok((rest.split(length)?, format))
}

/// The CIEs that FDEs refer to, by their offset.
struct SharedRules<'a> {
    by_offset: FxHashMap<usize, (u32, ParsedCie<'a>)>,
    cies: Vec<Cie>,
}

impl<'a> SharedRules<'a> {
    fn read(section: &EhFrame<Bytes<'a>>, place: &Place, fde_offsets: &[u32]) -> SharedRules<'a> {
        let mut shared = SharedRules { by_offset: FxHashMap::default(), cies: Vec::new() };
        let mut last = None;
        for &offset in fde_offsets {
            let Ok(partial) = section.partial_fde_from_offset(&place.bases, EhFrameOffset(offset as usize)) else {
                continue;
            };
            let cie_offset = partial.cie_offset();
            if last == Some(cie_offset) || shared.by_offset.contains_key(&UnwindOffset::into(cie_offset)) {
                continue;
            }
            last = Some(cie_offset);
            // The rules of a CIE are run for each of its FDEs, so a huge one would make reading them all take for ever.
            let parsed = section.cie_from_offset(&place.bases, cie_offset).ok();
            if let Some(parsed) = parsed.filter(|cie| cie.entry_len() <= LONGEST_CIE) {
                let index = shared.cies.len() as u32;
                shared.cies.push(summary(section, place, &parsed));
                shared.by_offset.insert(UnwindOffset::into(cie_offset), (index, parsed));
            }
        }
        shared
    }
}

fn summary<'a>(section: &EhFrame<Bytes<'a>>, place: &Place, parsed: &ParsedCie<'a>) -> Cie {
    let mut entry = None;
    let mut instructions = parsed.instructions(section, &place.bases);
    while let Ok(Some(instruction)) = instructions.next() {
        apply(&instruction, &mut entry);
    }
    Cie {
        personality: parsed.personality().map(|pointer| match pointer {
            Pointer::Direct(at) => Reference::Direct(Svma(at)),
            Pointer::Indirect(at) => Reference::Slot(Svma(at)),
        }),
        signal_frame: parsed.is_signal_trampoline(),
        entry,
    }
}

/// What an instruction does to the frame's rule.
fn apply(instruction: &CallFrameInstruction<usize>, rule: &mut Option<Cfa>) {
    let (register, offset) = match *rule {
        Some(Cfa::Register { dwarf, offset }) => (dwarf, offset),
        _ => (0, 0),
    };
    *rule = Some(match *instruction {
        CallFrameInstruction::DefCfa { register, offset } => Cfa::Register { dwarf: register.0, offset: offset as i64 },
        CallFrameInstruction::DefCfaRegister { register } => Cfa::Register { dwarf: register.0, offset },
        CallFrameInstruction::DefCfaOffset { offset } => Cfa::Register { dwarf: register, offset: offset as i64 },
        CallFrameInstruction::DefCfaExpression { .. } => Cfa::Expression,
        _ => return,
    });
}

struct Skipped {
    offset: u32,
    why: String,
}

struct Parser<'a, 'd> {
    section: EhFrame<Bytes<'d>>,
    place: &'a Place,
    headers: &'a Headers,
    shared: &'a SharedRules<'d>,
}

impl Parser<'_, '_> {
    fn fde(&self, offset: u32) -> Result<Fde, Skipped> {
        let skipped = |why: String| Skipped { offset, why };
        let bases = &self.place.bases;
        let partial = self
            .section
            .partial_fde_from_offset(bases, EhFrameOffset(offset as usize))
            .map_err(|error| skipped(error.to_string()))?;
        let (cie, parsed_cie) = self
            .shared
            .by_offset
            .get(&UnwindOffset::into(partial.cie_offset()))
            .ok_or_else(|| skipped("its CIE cannot be read".into()))?;
        let fde = partial.parse(|_, _, _| Ok(parsed_cie.clone())).map_err(|error| skipped(error.to_string()))?;
        let (start, len) = (Svma(fde.initial_address()), fde.len());
        if len == 0 {
            return Err(skipped("it covers nothing".into()));
        }
        let segment = self.headers.segment_at(start).filter(|segment| segment.executable);
        if segment.is_none_or(|segment| len > segment.mem_size - (start - segment.svma)) {
            return Err(skipped(format!("its {len:#x} bytes at {start} are not in executable memory")));
        }
        let shared = &self.shared.cies[*cie as usize];
        Ok(Fde {
            start,
            len,
            lsda: self.lsda(&fde),
            cie: *cie,
            offset,
            entry_state: !shared.signal_frame && self.starts_as_called(&fde, shared),
            signal_frame: shared.signal_frame,
        })
    }

    fn lsda(&self, fde: &FrameDescriptionEntry<Bytes<'_>>) -> Option<Svma> {
        let at = fde.lsda()?.direct().ok().filter(|&at| at != 0)?;
        // A relative pointer of 0 means none; it comes out as the address of the pointer itself.
        let entry = self.place.start.0.wrapping_add(fde.offset() as u64);
        (at.wrapping_sub(entry) > fde.entry_len() as u64 + 12).then_some(Svma(at))
    }

    /// Nothing was pushed or saved yet at the first address.
    fn starts_as_called(&self, fde: &FrameDescriptionEntry<Bytes<'_>>, shared: &Cie) -> bool {
        let return_address = fde.cie().return_address_register();
        let mut rule = shared.entry;
        let mut instructions = fde.instructions(&self.section, &self.place.bases);
        while let Ok(Some(instruction)) = instructions.next() {
            match instruction {
                CallFrameInstruction::SetLoc { .. } | CallFrameInstruction::AdvanceLoc { .. } => break,
                CallFrameInstruction::Offset { register, .. } if register != return_address => return false,
                other => apply(&other, &mut rule),
            }
        }
        rule == shared.entry
    }
}
