//! Jump tables that go on, now that parts of a function have been joined.
//!
//! A table ends at an entry that leads out of the function, unless all entries that a check allows make sense. Once the part
//! that the entry leads to has joined it, the table may be longer. Most of what it leads to then was read as part of the part,
//! so there is no need to read all of the function again.

use std::ops::ControlFlow;

use lancet_isa::Svma;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::additions::Additions;
use super::blocks::{End, RegionBlock, RegionCfg};
use super::discover::{Discovery, Region};
use super::func::{Part, Problem};
use super::table::{Bound, JumpTable, first_behind, is_nowhere};
use crate::image::Image;

/// What came of it.
pub(super) enum Growth {
    None,
    /// Tables are longer. Some of the new entries lead to code that was not read.
    To(Vec<Svma>),
    /// That needs a look at the whole region.
    Unclear,
}

/// An index may be a byte, and a longer table not what it seems to be: that is known only where the jump is followed.
const MOST_ENTRIES: usize = 256;

/// Lets the open tables of a region go on to the first of `stops`, which are sorted, or to an entry that makes no sense.
pub(super) fn grow_tables(image: &Image, stops: &[Svma], parts: &[Part], cfg: &mut RegionCfg) -> Growth {
    let is_target = |at: Svma| is_in(parts, at) || is_nowhere(image, parts, at);
    let mut unread = Vec::new();
    let mut has_grown = false;
    let mut new = Additions::default();
    let mut tables = std::mem::take(&mut cfg.tables);
    for table in tables.iter_mut().filter(|table| table.may_go_on()) {
        if next_target(image, table, table.end(), &is_target).is_none() {
            continue;
        }
        let stop = match table.bound {
            Bound::Cut { allowed } => Some(table.at + u64::from(allowed) * u64::from(table.stride)),
            _ => {
                // What the region's own code mentions ends a table, too.
                let mentioned = cfg.mentions.iter().map(|(_, to)| *to).filter(|to| !is_in(parts, *to));
                let mentioned = mentioned.filter(|to| *to > table.at).min();
                [first_behind(stops, table.at), mentioned].into_iter().flatten().min()
            }
        };
        let mut targets = table.targets.to_vec();
        let mut end = table.end();
        while stop.is_none_or(|stop| end < stop)
            && let Some(to) = next_target(image, table, end, &is_target)
        {
            let before = new.block_before(cfg, to);
            let is_block = before.is_some_and(|block| block.start == to);
            let is_in_block = before.is_some_and(|block| block.end_address() > to);
            if is_in_block && !is_block && (cfg.overlaps || !new.split(cfg, image, to)) {
                break;
            }
            let is_code = !is_nowhere(image, parts, to);
            if cfg.followed.binary_search(&to).is_ok() || targets.len() == MOST_ENTRIES {
                cfg.tables = tables;
                return Growth::Unclear;
            }
            unread.extend(Some(to).filter(|_| is_code && !is_in_block));
            targets.push(to);
            end = end + u64::from(table.stride);
        }
        has_grown |= targets.len() > table.targets.len();
        table.targets = targets.into();
        if matches!(table.bound, Bound::Cut { allowed } if table.targets.len() == allowed as usize) {
            table.bound = Bound::Checked;
        }
    }
    cfg.tables = tables;
    new.join(cfg);
    if !has_grown {
        return Growth::None;
    }
    if has_loose_ends(parts, cfg) {
        return Growth::Unclear;
    }
    unread.sort_unstable();
    unread.dedup();
    Growth::To(unread)
}

/// Does a block lead to code of the region that was not read? Nothing led to that block before the parts were joined, so it
/// was not followed. (Behind a call that does not come back there may be none.)
fn has_loose_ends(parts: &[Part], cfg: &RegionCfg) -> bool {
    let is_unread = |at: Svma| is_in(parts, at) && cfg.block_at(at).is_none();
    (0..cfg.blocks.len()).filter(|i| !matches!(cfg.blocks[*i].end, End::Call(_) | End::Tables)).any(|i| {
        let mut is_loose = false;
        cfg.ways_out(i, &mut |to| is_loose |= is_unread(to));
        is_loose
    })
}

fn is_in(parts: &[Part], at: Svma) -> bool {
    parts.iter().any(|part| part.contains(at))
}

/// Where the entry at an address leads, if it may be one of the table.
fn next_target(image: &Image, table: &JumpTable, at: Svma, is_target: &dyn Fn(Svma) -> bool) -> Option<Svma> {
    table.entry(image, at).filter(|to| is_target(*to))
}

/// The tables that may be longer than they were read, by the number of their region.
///
/// Such a table was read up to an entry that leads out of the function. If no check allows the entry, mostly something else
/// stands there. But the entry may also lead to a part of the function that nobody knows to be one.
pub(super) fn tables_that_may_go_on(found: &Discovery<'_>) -> FxHashMap<usize, Vec<Problem>> {
    let problems = found.regions.par_iter().enumerate().filter_map(|(number, region)| {
        let tables = region.cfg.tables.iter().filter(|table| table.may_go_on());
        let problem =
            |table: &JumpTable| Some(Problem::OpenTable { table: table.at, to: goes_on_to(found, region, table)? });
        let problems: Vec<Problem> = tables.filter_map(problem).collect();
        (!problems.is_empty()).then_some((number, problems))
    });
    problems.collect()
}

/// Where a table would lead behind its last entry, if nothing shows that it ends there.
fn goes_on_to(found: &Discovery<'_>, region: &Region, table: &JumpTable) -> Option<Svma> {
    let end = table.end();
    let to = table.entry(found.image, end).filter(|to| found.image.is_code(*to) && !region.contains(*to))?;
    // That the index can mean this entry was checked.
    if matches!(table.bound, Bound::Cut { .. }) {
        return Some(to);
    }
    let ends_before = |stop: Svma| stop > table.at && stop <= end;
    let mut mentioned = region.cfg.mentions.iter().map(|(_, to)| *to);
    if first_behind(&found.stops, table.at).is_some_and(ends_before) || mentioned.any(ends_before) {
        return None;
    }
    let Some(into) = found.containing(to) else { return Some(to) };
    let into = &found.regions[into];
    // A switch jumps to no other function, and to the middle of no instruction.
    let is_function = into.start() == to && !into.part;
    let blocks = &into.cfg.blocks;
    let block = blocks.partition_point(|block| block.start <= to).checked_sub(1).map(|i| &blocks[i]);
    let is_cut = block.is_some_and(|block| to < block.end_address() && !is_boundary(found.image, block, to));
    (!is_function && !is_cut).then_some(to)
}

/// Does an instruction of the block start there?
fn is_boundary(image: &Image, block: &RegionBlock, at: Svma) -> bool {
    let mut starts = false;
    let code = image.bytes(block.start, u64::from(block.len)).unwrap_or_default();
    // The block decoded before.
    let _ = image.isa().decode(code, block.start, &mut |insn| {
        starts = insn.at == at;
        if insn.at < at { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    starts
}
