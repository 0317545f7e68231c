//! The entries of one piece of moved code.
//!
//! Each old FDE in the piece gets a new one, with the rules of the old one at other distances. Code aside follows in
//! the last of them. There, a change of state is written as the difference to the state before, which is mostly one
//! offset, and needs no remembered states. Only if the rules of an aside are based on another CIE than the last FDE's
//! does it get an FDE of its own.

use gimli::constants;
use lancet_isa::Svma;
use lancet_isa::runtime::SignalCode;

use super::draft::{Draft, Target};
use super::entry::{Cie, Entry, Table};
use super::lsda::Pads;
use super::rules::{Machine, State};
use super::{Obstacle, UnwindError};
use crate::image::{CallSite, Fde, Image};
use crate::layout::MovedPiece;
use crate::program::{FuncId, Part};

/// What new entries are made from.
pub(super) struct Source<'a> {
    image: &'a Image,
    table: Table<'a>,
    /// Sorted by function and old start.
    pieces: Vec<&'a MovedPiece>,
}

/// Code aside and the state there.
struct Aside {
    at: Svma,
    /// The offset of its CIE and an index into the states; `None` if nothing is known of the old code.
    rules: Option<(usize, usize)>,
}

struct Asides<'a> {
    list: Vec<Aside>,
    states: Vec<State<'a>>,
}

impl<'a> Source<'a> {
    pub fn new(image: &'a Image, table: Table<'a>, pieces: &'a [MovedPiece]) -> Source<'a> {
        let mut pieces: Vec<&MovedPiece> = pieces.iter().collect();
        pieces.sort_by_key(|piece| (piece.func, piece.old_start));
        Source { image, table, pieces }
    }

    pub fn draft(&self, pieces: &'a [MovedPiece]) -> Result<Draft, UnwindError> {
        let mut draft = Draft::new(self.table.endian(), self.table.raw.address_size);
        for piece in pieces {
            self.piece(piece, &mut draft)?;
        }
        Ok(draft)
    }

    /// The frame of the run-time code that calls handlers, based on a CIE of moved code: those say where a frame is at a
    /// function's start. None if no such CIE can be read.
    pub fn calling_frame(&self, signals: &SignalCode) -> Result<Option<Draft>, UnwindError> {
        let fde_of = |piece: &&MovedPiece| {
            let fdes = self.image.fdes();
            fdes.get(fdes.partition_point(|fde| fde.end() <= piece.old_start))
        };
        let cies = self.pieces.iter().filter_map(fde_of).filter_map(|fde| Some(sound_entry(&self.table, fde).ok()?.0));
        // One without a personality, if there is one.
        let Some(cie) = cies.clone().find(|cie| cie.personality.is_none()).or_else(|| cies.clone().next()) else {
            return Ok(None);
        };
        let mut draft = Draft::new(self.table.endian(), self.table.raw.address_size);
        let (start, end) = signals.frame;
        let fde = draft.open(&cie, Part { start, end }, None)?;
        draft.frames.extend_from_slice(&[constants::DW_CFA_def_cfa_offset.0, signals.frame_len]);
        draft.close(fde);
        Ok(Some(draft))
    }

    fn piece(&self, piece: &MovedPiece, draft: &mut Draft) -> Result<(), UnwindError> {
        let asides = self.asides(piece)?;
        let mut left = &asides.list[..];
        let fdes = self.image.fdes();
        let first = fdes.partition_point(|fde| fde.end() <= piece.old_start);
        for fde in fdes[first..].iter().take_while(|fde| fde.start < piece.old_end) {
            let pads = Pads::read(self.image, &self.table, fde)
                .map_err(|obstacle| UnwindError::Obstacle { at: fde.start, obstacle })?;
            for old in self.parts(piece, fde, pads.as_ref()) {
                left = self.moved(piece, fde, (old, pads.as_ref()), left, &asides.states, draft)?;
            }
        }
        while let Some(first) = left.first() {
            let (own, rest) = left.split_at(alike(left));
            left = rest;
            let Some((cie, _)) = first.rules else { continue };
            let at = piece.asides.first().map_or(piece.old_start, |aside| aside.like);
            let bad = |error| UnwindError::Obstacle { at, obstacle: Obstacle::Entry(error) };
            let cie = self.table.cie(cie).map_err(bad)?;
            let machine = Machine::new(self.table, &cie).map_err(bad)?;
            let end = left.first().map_or(piece.new_end, |next| next.at);
            let code = Part { start: first.at, end };
            let mut fde = draft.open(&cie, code, None)?;
            write_asides(draft, &mut fde, cie.data_align, machine.initial(), own, &asides.states)?;
            draft.close(fde);
        }
        Ok(())
    }

    /// The old code of an FDE in a piece, in as many parts as need entries of their own.
    fn parts(&self, piece: &MovedPiece, fde: &Fde, pads: Option<&Pads<'a>>) -> Vec<Part> {
        let mut part = Part { start: fde.start.max(piece.old_start), end: fde.end().min(piece.old_end) };
        let mut parts = Vec::new();
        let new_start = |part: Part| match part.start == piece.old_start {
            true => Some(piece.new_start),
            false => piece.to_new(part.start),
        };
        for site in pads.map_or(&[][..], |pads| &pads.sites) {
            let fits = |part: Part, end: Svma| {
                let new = self.new_site(piece, site, Part { start: part.start, end });
                new.zip(new_start(part)).is_none_or(|(new, start)| Pads::fits(start, &new))
            };
            let end = (site.start + site.len).min(part.end);
            if fits(part, end) {
                continue;
            }
            // Perhaps in several parts. Between blocks, all that was added belongs to the one behind.
            let inside = |at: &Svma| *at > site.start && *at < end;
            let mut starts = vec![site.start];
            starts.extend(piece.spans.iter().map(|span| span.old).filter(inside));
            let ends: Vec<Svma> = starts.iter().skip(1).copied().chain([end]).collect();
            for (at, end) in starts.into_iter().zip(ends) {
                let next = Part { start: at, end: part.end };
                if at > part.start && !fits(part, end) && fits(next, end) {
                    parts.push(Part { start: part.start, end: at });
                    part = next;
                }
            }
        }
        parts.push(part);
        parts
    }

    /// Writes what an FDE says about a part of the piece, and as many asides as fit; gives those that are left.
    fn moved<'s>(
        &self,
        piece: &MovedPiece,
        fde: &Fde,
        (old, pads): (Part, Option<&Pads<'a>>),
        asides: &'s [Aside],
        states: &[State<'a>],
        draft: &mut Draft,
    ) -> Result<&'s [Aside], UnwindError> {
        let obstacle = |obstacle| UnwindError::Obstacle { at: fde.start, obstacle };
        let rules_obstacle = |error| UnwindError::Obstacle { at: fde.start, obstacle: Obstacle::Rules(error) };
        let (cie, entry) = sound_entry(&self.table, fde).map_err(obstacle)?;
        let to_new = |at: Svma| piece.to_new(at).unwrap_or(piece.new_start);
        let start = if old.start == piece.old_start { piece.new_start } else { to_new(old.start) };
        let (own, left) = match old.end == piece.old_end && asides.first().is_some_and(|aside| aside.of(cie.offset)) {
            true => asides.split_at(alike(asides)),
            false => (&asides[..0], asides),
        };
        let end = match (old.end == piece.old_end, left.first()) {
            (false, _) => to_new(old.end),
            (true, Some(next)) => next.at,
            (true, None) => piece.new_end,
        };
        if start >= end {
            return Ok(left);
        }
        let lsda = pads.map(|pads| self.pads(piece, pads, old, start, draft));

        let mut new = draft.open(&cie, Part { start, end }, lsda)?;
        let mut machine = Machine::new(self.table, &cie).map_err(rules_obstacle)?;
        let mut rules = self.table.rules(&cie, &entry, fde.start);
        let mut next = rules.next_rule().map_err(rules_obstacle)?;
        if old.start != fde.start {
            while let Some((_, rule)) = next.filter(|&(at, _)| at <= old.start) {
                machine.run(&rule).map_err(rules_obstacle)?;
                next = rules.next_rule().map_err(rules_obstacle)?;
            }
            let mut before = machine.initial();
            for state in &machine.remembered {
                state.changes(before, cie.data_align, &mut draft.frames);
                draft.frames.push(constants::DW_CFA_remember_state.0);
                before = state;
            }
            machine.state.changes(before, cie.data_align, &mut draft.frames);
        }
        while let Some((at, rule)) = next.filter(|&(at, _)| at < old.end) {
            if at > old.start {
                draft.advance(&mut new, to_new(at))?;
            }
            draft.frames.extend_from_slice(rule.raw);
            machine.run(&rule).map_err(rules_obstacle)?;
            next = rules.next_rule().map_err(rules_obstacle)?;
        }
        write_asides(draft, &mut new, cie.data_align, &machine.state, own, states)?;
        draft.close(new);
        Ok(left)
    }

    /// Writes the landing pads of a part of a piece. Call sites that are not in it, or empty, are there for their number.
    fn pads(&self, piece: &MovedPiece, pads: &Pads<'a>, old: Part, start: Svma, draft: &mut Draft) -> Target {
        let mut sites = Vec::with_capacity(pads.sites.len());
        let (mut end, mut used) = (start, 0);
        for site in &pads.sites {
            match self.new_site(piece, site, old) {
                Some(new) => {
                    end = new.start + new.len;
                    sites.push(new);
                    used = sites.len();
                }
                None => sites.push(CallSite { start: end, len: 0, pad: None, action: 0, coded: site.coded }),
            }
        }
        pads.write(draft, start, &sites[..used])
    }

    /// Where the part of a call site went that is in `old`.
    fn new_site(&self, piece: &MovedPiece, site: &CallSite, old: Part) -> Option<CallSite> {
        let (first, end) = (site.start.max(old.start), (site.start + site.len).min(old.end));
        let (new, new_end) = (piece.to_new(first)?, piece.to_new(end)?);
        let pad = site.pad.map(|pad| self.new_place(piece.func, pad));
        (first < end && new < new_end).then(|| CallSite { start: new, len: new_end - new, pad, ..*site })
    }

    /// Where code of a function went; code that was not moved is still where it was.
    fn new_place(&self, func: FuncId, old: Svma) -> Svma {
        let after = self.pieces.partition_point(|piece| (piece.func, piece.old_start) <= (func, old));
        let piece = self.pieces[..after].last().filter(|piece| piece.func == func && old < piece.old_end);
        piece.and_then(|piece| piece.to_new(old)).unwrap_or(old)
    }

    /// What holds in a piece's code aside.
    fn asides(&self, piece: &MovedPiece) -> Result<Asides<'a>, UnwindError> {
        let mut list: Vec<Aside> = piece.asides.iter().map(|aside| Aside { at: aside.at, rules: None }).collect();
        let mut states = Vec::new();
        let mut order: Vec<usize> = (0..list.len()).collect();
        order.sort_by_key(|&index| piece.asides[index].like);
        let mut order = order.into_iter().peekable();
        while let Some(index) = order.next() {
            let Some(fde) = self.image.fde_at(piece.asides[index].like) else { continue };
            let bad = |error| UnwindError::Obstacle { at: fde.start, obstacle: Obstacle::Rules(error) };
            let (cie, entry) =
                sound_entry(&self.table, fde).map_err(|obstacle| UnwindError::Obstacle { at: fde.start, obstacle })?;
            let mut machine = Machine::new(self.table, &cie).map_err(bad)?;
            let mut rules = self.table.rules(&cie, &entry, fde.start);
            let mut next = rules.next_rule().map_err(bad)?;
            let mut changed = true;
            let mut index = Some(index);
            while let Some(aside) = index {
                while let Some((_, rule)) = next.filter(|&(at, _)| at <= piece.asides[aside].like) {
                    machine.run(&rule).map_err(bad)?;
                    next = rules.next_rule().map_err(bad)?;
                    changed = true;
                }
                if std::mem::take(&mut changed) {
                    states.push(machine.state.clone());
                }
                list[aside].rules = Some((cie.offset, states.len() - 1));
                index = order.next_if(|&index| fde.contains(piece.asides[index].like));
            }
        }
        Ok(Asides { list, states })
    }
}

impl Aside {
    fn of(&self, cie: usize) -> bool {
        self.rules.is_some_and(|rules| rules.0 == cie)
    }
}

/// How many asides, from the first on, have rules with the same base.
fn alike(asides: &[Aside]) -> usize {
    let base = |aside: &Aside| aside.rules.map(|rules| rules.0);
    let first = asides.first().and_then(base);
    asides.iter().take_while(|&aside| base(aside) == first).count()
}

/// Writes the rules of code aside, which comes behind code in the state `before`.
fn write_asides<'a>(
    draft: &mut Draft,
    fde: &mut super::draft::Open<'_, 'a>,
    data_align: i64,
    before: &State<'a>,
    asides: &[Aside],
    states: &[State<'a>],
) -> Result<(), UnwindError> {
    let (mut state, mut last) = (before, None);
    let mut changes = Vec::new();
    for aside in asides {
        let Some((_, index)) = aside.rules.filter(|rules| last != Some(rules.1)) else { continue };
        changes.clear();
        states[index].changes(state, data_align, &mut changes);
        if !changes.is_empty() {
            draft.advance(fde, aside.at)?;
            draft.frames.extend_from_slice(&changes);
        }
        (state, last) = (&states[index], Some(index));
    }
    Ok(())
}

/// The entry of an FDE, if all that is in it can be written anew elsewhere.
pub(super) fn sound_entry<'a>(table: &Table<'a>, fde: &Fde) -> Result<(Cie<'a>, Entry<'a>), Obstacle> {
    let (cie, entry) = table.entry_of(fde).map_err(Obstacle::Entry)?;
    let encodings = [
        ("start", Some(cie.pc_encoding)),
        ("pointer to landing pads", entry.lsda.map(|field| field.encoding)),
        ("pointer to the personality routine", cie.personality.map(|field| field.encoding)),
    ];
    for (what, encoding) in encodings {
        if let Some(encoding) = encoding.filter(|&encoding| !table.is_movable(encoding)) {
            return Err(Obstacle::Encoding { what, encoding: encoding.0 });
        }
    }
    if let Some(field) = entry.lsda.filter(|field| field.encoding.is_indirect()) {
        return Err(Obstacle::Encoding { what: "pointer to landing pads", encoding: field.encoding.0 });
    }
    Ok((cie, entry))
}
