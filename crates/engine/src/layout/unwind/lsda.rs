//! Landing pads of moved code: a language-specific data area for each new FDE that needs one.
//!
//! Call sites are written anew, as `uleb128`. A personality routine may be part of the program, and counted: so that it
//! does the same as before, there are as many call sites in front of each as there were, empty ones if need be, and numbers
//! are as long as they were; where they would have to be longer, an entry of its own can make them smaller.
//!
//! Actions are relative to each other and are copied; so are types, whose pointers are fixed when the place of the table
//! is known. Landing pads are relative to the start of the code if they all are behind it, which is what every
//! personality routine understands. If some are in front (a cold part may stand anywhere), an explicit `LPStart` just
//! before the first of them is the base; it is not the pad itself, because
//! an offset of 0 means that there is none.

use std::ops::Range;

use gimli::{Reader, constants};
use lancet_isa::Svma;
use rustc_hash::FxHashSet;

use super::draft::{Area, Draft, Target};
use super::entry::Table;
use super::pointer::{self, push_uleb};
use super::{Obstacle, RELATIVE};
use crate::image::{CallSite, Fde, Image, Lsda, read_encoded};

/// What the old area of an FDE says.
pub(super) struct Pads<'a> {
    lsda: Lsda<'a>,
    /// All, the empty ones included.
    pub sites: Vec<CallSite>,
    /// The actions that call sites lead to are in so many bytes.
    actions: usize,
    types: Types,
}

/// The types that actions lead to, and the lists of types behind them.
#[derive(Default)]
struct Types {
    range: Range<usize>,
    /// Where in the area a type is a relative pointer, and to what.
    pointers: Vec<(usize, Svma)>,
}

impl<'a> Pads<'a> {
    pub fn read(image: &'a Image, table: &Table<'a>, fde: &Fde) -> Result<Option<Pads<'a>>, Obstacle> {
        let Some(at) = fde.lsda else { return Ok(None) };
        let lsda = image.lsda(at).ok_or(Obstacle::NoPads { at })?.map_err(Obstacle::Pads)?;
        let mut sites = Vec::new();
        let mut rest = lsda.call_sites(fde);
        while let Some(site) = rest.next_site().map_err(Obstacle::Pads)? {
            sites.push(site);
        }
        let reach = Reach::of(&lsda, &sites).map_err(Obstacle::Pads)?;
        let types = Types::read(table, &lsda, &reach)?;
        Ok(Some(Pads { lsda, sites, actions: reach.actions, types }))
    }

    /// Can a call site that went there be written with numbers as long as they were, in an area for code at `start`?
    pub fn fits(start: Svma, site: &CallSite) -> bool {
        let fits = |value: u64, len: u8| len >= MOST_CODED || value >> (7 * len) == 0;
        let pad_fits = |pad: Svma| pad > start && fits(pad - start, site.coded[2]);
        fits(site.start - start, site.coded[0]) && fits(site.len, site.coded[1]) && site.pad.is_none_or(pad_fits)
    }

    /// Writes the area for new code at `start`. `sites` say where call sites went, and their pads; those in front of the
    /// first one are empty.
    pub fn write(&self, draft: &mut Draft, start: Svma, sites: &[CallSite]) -> Target {
        let area = Target::Lsda(draft.lsdas.len() as u32);
        let first = sites.iter().filter_map(|site| site.pad).min();
        let base = match first.filter(|&pad| pad <= start) {
            Some(pad) => {
                let base = Svma(pad.0.wrapping_sub(1));
                draft.lsdas.push(RELATIVE.0);
                draft.leave_blank(Area::Lsdas, RELATIVE, 4, Target::At(base));
                base
            }
            None => {
                draft.lsdas.push(constants::DW_EH_PE_omit.0);
                start
            }
        };
        let mut coded = Vec::with_capacity(8 * sites.len());
        for site in sites {
            let pad = site.pad.map_or(0, |pad| pad - base);
            for (value, len) in [site.start - start, site.len, pad, site.action].into_iter().zip(site.coded) {
                push_long_uleb(&mut coded, value, len.into());
            }
        }
        let mut size = Vec::new();
        push_long_uleb(&mut size, coded.len() as u64, self.lsda.sites_size_len);
        draft.lsdas.push(self.lsda.type_encoding.0);
        if self.lsda.types_end.is_some() {
            let types = if self.types.range.is_empty() { 0 } else { self.types_end() - self.types.range.start };
            let distance = 1 + size.len() + coded.len() + self.actions + types;
            push_long_uleb(&mut draft.lsdas, distance as u64, self.lsda.types_end_len);
        }
        draft.lsdas.push(constants::DW_EH_PE_uleb128.0);
        draft.lsdas.extend_from_slice(&size);
        draft.lsdas.extend_from_slice(&coded);
        // What is copied was inside the area when it was read.
        let old = self.lsda.whole.slice();
        draft.lsdas.extend_from_slice(&old[self.lsda.actions..][..self.actions]);
        let types = draft.lsdas.len();
        draft.lsdas.extend_from_slice(&old[self.types.range.clone()]);
        for &(at, to) in &self.types.pointers {
            draft.blank(Area::Lsdas, types + (at - self.types.range.start), self.lsda.type_encoding, Target::At(to));
        }
        area
    }

    fn types_end(&self) -> usize {
        self.lsda.types_end.unwrap_or(self.types.range.start)
    }
}

/// Numbers of so many bytes hold every value.
const MOST_CODED: u8 = 9;

/// Writes a number in no fewer bytes than these.
fn push_long_uleb(out: &mut Vec<u8>, value: u64, len: usize) {
    let start = out.len();
    push_uleb(out, value);
    while out.len() - start < len {
        // The last byte says that more follow; zeros change nothing.
        if let Some(last) = out.last_mut() {
            *last |= 0x80;
        }
        out.push(0);
    }
}

/// How far the tables go that call sites lead into: nothing states their sizes.
struct Reach {
    actions: usize,
    types: usize,
    specifications: usize,
}

impl Reach {
    fn of(lsda: &Lsda<'_>, sites: &[CallSite]) -> gimli::Result<Reach> {
        let mut reach = Reach { actions: 0, types: 0, specifications: 0 };
        let mut seen = FxHashSet::default();
        for site in sites.iter().filter(|site| site.action != 0 && site.len > 0) {
            let mut next = usize::try_from(site.action - 1).ok();
            while let Some(offset) = next.filter(|&offset| seen.insert(offset)) {
                next = reach.action(lsda, offset)?;
            }
        }
        Ok(reach)
    }

    /// Takes in an action and gives the next one.
    fn action(&mut self, lsda: &Lsda<'_>, offset: usize) -> gimli::Result<Option<usize>> {
        let mut rest = lsda.whole;
        rest.skip(lsda.actions)?;
        let table = rest;
        rest.skip(offset)?;
        let filter = rest.read_sleb128()?;
        let place = rest.offset_from(table);
        let distance = rest.read_sleb128()?;
        self.actions = self.actions.max(rest.offset_from(table));
        if filter > 0 {
            self.types = self.types.max(usize::try_from(filter).unwrap_or(usize::MAX));
        } else if filter < 0 {
            self.specification(lsda, filter.unsigned_abs() - 1)?;
        }
        if distance == 0 {
            return Ok(None);
        }
        let next = usize::try_from(place as i64 + distance);
        next.map(Some).map_err(|_| gimli::Error::OffsetOutOfBounds(distance as u64))
    }

    fn specification(&mut self, lsda: &Lsda<'_>, offset: u64) -> gimli::Result<()> {
        let mut rest = lsda.whole;
        rest.skip(lsda.types_end.ok_or(gimli::Error::OffsetOutOfBounds(offset))?)?;
        let lists = rest;
        rest.skip(usize::try_from(offset).unwrap_or(usize::MAX))?;
        loop {
            match rest.read_uleb128()? {
                0 => break,
                index => self.types = self.types.max(usize::try_from(index).unwrap_or(usize::MAX)),
            }
        }
        self.specifications = self.specifications.max(rest.offset_from(lists));
        Ok(())
    }
}

impl Types {
    fn read(table: &Table<'_>, lsda: &Lsda<'_>, reach: &Reach) -> Result<Types, Obstacle> {
        if reach.types == 0 && reach.specifications == 0 {
            return Ok(Types::default());
        }
        let encoding = lsda.type_encoding;
        let unmovable = Obstacle::Encoding { what: "table of exception types", encoding: encoding.0 };
        let out_of_bounds = Obstacle::Pads(gimli::Error::OffsetOutOfBounds(reach.types as u64));
        let size = pointer::size(encoding, lsda.address_size).ok_or(unmovable)?;
        let end = lsda.types_end.filter(|&end| end <= lsda.whole.len()).ok_or(out_of_bounds)?;
        let start = reach.types.checked_mul(size).and_then(|bytes| end.checked_sub(bytes)).ok_or(out_of_bounds)?;
        let mut rest = lsda.whole.range(start..end);
        let mut pointers = Vec::new();
        while !rest.is_empty() {
            let at = rest.offset_from(lsda.whole);
            let value = read_encoded(&mut rest, encoding, lsda.address_size).map_err(Obstacle::Pads)?;
            match encoding.application() {
                // It catches everything.
                _ if value == 0 => {}
                constants::DW_EH_PE_pcrel => pointers.push((at, lsda.at + at as u64 + value)),
                constants::DW_EH_PE_absptr if !table.position_independent => {}
                _ => return Err(unmovable),
            }
        }
        Ok(Types { range: start..end + reach.specifications, pointers })
    }
}
