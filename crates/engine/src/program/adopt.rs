//! Parts of functions that stand elsewhere.
//!
//! GCC moves the unlikely blocks of a function away, with an FDE of their own. Most of these say so by starting with a
//! frame. One that starts without is told from a function by how it is reached: never called, pointed to or named,
//! jumped to from one function only, and either it jumps back into the middle of that function, or it is reached by a
//! conditional jump and is not aligned as functions are (or follows another part without a gap). Nor is one a function
//! that is not aligned as functions are and that only another one enters, in the middle.

use std::sync::atomic::{AtomicBool, Ordering};

use lancet_isa::Svma;
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::FoundBy;
use super::active::Active;
use super::blocks::{End, NO_BLOCK, RegionBlock};
use super::discover::{Blocks, Discovery, Outflow, OutflowKind, Region};

/// How a region is reached from others, calls aside.
#[derive(Clone, Default)]
struct Reached {
    /// The first region that jumps to it.
    from: Option<u32>,
    /// ... and others do.
    from_several: bool,
    by_jump: bool,
    by_branch: bool,
    /// The first region that jumps into the middle of it, where it does not say that it is a part.
    inside_from: Option<u32>,
    /// ... and others do.
    inside_from_several: bool,
    /// The regions into whose middle it jumps.
    jumps_into: Vec<u32>,
}

impl Reached {
    /// The region that alone reaches it, and in its middle.
    fn only_from_inside(&self) -> Option<u32> {
        let is_alone = |from: &u32| !self.from_several && self.from.is_none_or(|other| other == *from);
        self.inside_from.filter(|_| !self.inside_from_several).filter(is_alone)
    }
}

impl Discovery<'_> {
    /// Finds the regions that are parts of others, and joins them.
    pub(super) fn adopt_parts(&mut self) {
        let called: Vec<AtomicBool> = self.regions.iter().map(|_| AtomicBool::new(false)).collect();
        // Most calls only tell that something is called.
        let is_more = |flow: &Outflow| match flow.into {
            Some(into) if flow.kind == OutflowKind::Call && self.regions[into as usize].start() == flow.to => {
                called[into as usize].store(true, Ordering::Relaxed);
                false
            }
            _ => true,
        };
        let flows = self.outflows(&Active::All, Blocks::All, is_more);
        let owners = self.owners(&flows, &called);
        if owners.iter().enumerate().all(|(i, owner)| *owner as usize == i) {
            return;
        }
        let mut functions: Vec<Box<Region>> = Vec::with_capacity(owners.len());
        let mut parts: Vec<(u32, Box<Region>)> = Vec::new();
        let mut place = vec![0; owners.len()];
        for (i, region) in std::mem::take(&mut self.regions).into_iter().enumerate() {
            if owners[i] as usize == i {
                place[i] = functions.len() as u32;
                functions.push(region);
            } else {
                parts.push((owners[i], region));
            }
        }
        let mut parts_of: Vec<Vec<Box<Region>>> = functions.iter().map(|_| Vec::new()).collect();
        for (owner, part) in parts {
            parts_of[place[owner as usize] as usize].push(part);
        }
        let is_part: Vec<bool> = (0..).zip(&owners).map(|(i, owner)| *owner != i).collect();
        let image = self.image;
        functions.par_iter_mut().zip(parts_of).for_each(|(region, parts)| {
            region.unlinked = region.links.lead_to(&is_part);
            region.links.renumber(|number| place[owners[number as usize] as usize]);
            // A jump that one of them could not resolve may be clear from both; so may the size of a table be, but all
            // those are looked at again later.
            let is_open = |region: &Region| region.has_open_jump(image);
            region.dirty |= !parts.is_empty() && (is_open(region) || parts.iter().any(|part| is_open(part)));
            parts.into_iter().for_each(|part| join(region, *part));
            // Jumps between a function and its parts are not entries any more.
            if !std::mem::take(&mut region.entries).is_empty() {
                region.fresh = true;
            }
        });
        self.regions = functions;
        let of_function = |flow: &Outflow| {
            let from = place[owners[flow.from as usize] as usize];
            let into = flow.into.map(|into| place[owners[into as usize] as usize]).filter(|to| *to != from)?;
            (self.regions[into as usize].start() != flow.to).then_some((into, flow.to))
        };
        let mut entries: Vec<(u32, Svma)> = flows.par_iter().filter_map(of_function).collect();
        entries.par_sort_unstable();
        entries.dedup();
        for (region, at) in entries {
            self.regions[region as usize].entries.push(at);
        }
        self.reindex();
    }

    /// For each region: the function it is a part of, or itself.
    fn owners(&self, flows: &[Outflow], called: &[AtomicBool]) -> Vec<u32> {
        let reached = self.how_reached(flows);
        let count = self.regions.len() as u32;
        let joined_before = self.regions.iter().flat_map(|region| &region.parts[1..]);
        let mut ends_of_parts: FxHashSet<Svma> = joined_before.map(|part| part.end).collect();
        let mut direct: Vec<u32> = Vec::with_capacity(count as usize);
        for i in 0..count {
            let region = &self.regions[i as usize];
            let behind_part = ends_of_parts.contains(&region.start());
            let owner = match called[i as usize].load(Ordering::Relaxed) {
                true => i,
                false => owner(region, i, &reached[i as usize], behind_part),
            };
            if owner != i {
                ends_of_parts.insert(region.parts[0].end);
            }
            direct.push(owner);
        }
        for i in 0..count {
            let region = &self.regions[i as usize];
            let is_own = direct[i as usize] == i && !called[i as usize].load(Ordering::Relaxed);
            let may_be_part =
                is_own && region.may_be_part() && !is_aligned(region, ends_of_parts.contains(&region.start()));
            let inside = reached[i as usize].only_from_inside().filter(|_| may_be_part);
            // What jumps into it may be a part of it.
            if let Some(from) = inside.filter(|from| direct[*from as usize] != i) {
                direct[i as usize] = from;
            }
        }
        // A part of a part belongs to the function; a ring of parts is no function's.
        let settle = |i: u32| {
            let last = (0..16).fold(i, |at, _| direct[at as usize]);
            if direct[last as usize] == last { last } else { i }
        };
        (0..count).map(settle).collect()
    }

    fn how_reached(&self, flows: &[Outflow]) -> Vec<Reached> {
        let mut reached = vec![Reached::default(); self.regions.len()];
        for flow in flows {
            let Some(to) = flow.into.map(|into| into as usize) else { continue };
            let at_start = self.regions[to].start() == flow.to;
            if flow.kind == OutflowKind::Call || flow.from as usize == to {
                continue;
            }
            if !at_start {
                reached[flow.from as usize].jumps_into.push(to as u32);
                if !self.regions[to].part {
                    let into = &mut reached[to];
                    into.inside_from_several |= into.inside_from.is_some_and(|from| from != flow.from);
                    into.inside_from.get_or_insert(flow.from);
                    continue;
                }
            }
            let into = &mut reached[to];
            into.from_several |= into.from.is_some_and(|from| from != flow.from);
            // What a jump table seems to say counts only if nothing else does.
            let surer = flow.kind != OutflowKind::Other && !into.by_jump;
            into.from = if surer { Some(flow.from) } else { into.from.or(Some(flow.from)) };
            into.by_jump |= flow.kind != OutflowKind::Other;
            into.by_branch |= flow.kind == OutflowKind::Branch;
        }
        reached
    }
}

fn owner(region: &Region, itself: u32, reached: &Reached, behind_part: bool) -> u32 {
    let Some(from) = reached.from.filter(|_| !region.referenced) else { return itself };
    let looks_like_one = region.found_by == FoundBy::Fde
        && !reached.from_several
        && (reached.jumps_into.contains(&from) || reached.by_branch && !is_aligned(region, behind_part));
    if region.part || looks_like_one { from } else { itself }
}

/// Does it start where compilers let functions start? Parts stand one behind the other without a gap.
fn is_aligned(region: &Region, behind_part: bool) -> bool {
    region.start().0.is_multiple_of(16) && !behind_part
}

fn join(function: &mut Region, mut part: Region) {
    function.fresh = true;
    function.exact |= part.exact;
    function.parts.append(&mut part.parts);
    function.parts[1..].sort_unstable_by_key(|part| part.start);
    function.pads.append(&mut part.pads);
    // What runs of all of it is found anew.
    function.reached.clear();
    function.returning.clear();
    let first = function.cfg.blocks.len() as u32;
    let jumps = |block: &&mut RegionBlock| matches!(block.end, End::Jump(_) | End::Branch(_)) && block.to != NO_BLOCK;
    part.cfg.blocks.iter_mut().filter(jumps).for_each(|block| block.to += first);
    function.cfg.add_blocks(&part.cfg.blocks);
    function.cfg.tables.append(&mut part.cfg.tables);
    function.cfg.labels.append(&mut part.cfg.labels);
    function.cfg.overlaps |= part.cfg.overlaps;
    function.cfg.repeats.append(&mut part.cfg.repeats);
    function.cfg.followed.append(&mut part.cfg.followed);
    function.cfg.followed.sort_unstable();
    function.cfg.mentions.append(&mut part.cfg.mentions);
    function.cfg.mentions.sort_unstable();
}
