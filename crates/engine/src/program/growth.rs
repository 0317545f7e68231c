//! Jump tables that go on, now that parts of a function have been joined.
//!
//! A table whose size is known by its content only ends at an entry that leads out of the function. Once the part that the
//! entry leads to has joined it, the table may be longer. Most of what it leads to then was read as part of the part, so
//! there is no need to read all of the function again.

use lancet_isa::Svma;

use super::blocks::{End, RegionCfg};
use super::func::Part;
use super::jump_tables::{Bound, JumpTable, first_behind};
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
    let is_inside = |at: Svma| parts.iter().any(|part| part.contains(at));
    let mut unread = Vec::new();
    let mut has_grown = false;
    let mut tables = std::mem::take(&mut cfg.tables);
    for table in tables.iter_mut().filter(|table| table.bound == Bound::Content) {
        let goes_on =
            |at: Svma| stops.binary_search(&at).is_err() && next_target(image, table, at, &is_inside).is_some();
        if !goes_on(table.end()) {
            continue;
        }
        // What the region's own code mentions ends a table, too.
        let mentioned = cfg.mentions.iter().map(|(_, to)| *to).filter(|to| *to > table.at && !is_inside(*to)).min();
        let stop = [first_behind(stops, table.at), mentioned].into_iter().flatten().min();
        let mut targets = table.targets.to_vec();
        let mut end = table.end();
        while stop.is_none_or(|stop| end < stop)
            && let Some(to) = next_target(image, table, end, &is_inside)
        {
            let is_block = cfg.block_at(to).is_some();
            let next = cfg.blocks.partition_point(|block| block.start <= to);
            let is_in_block = next > 0 && cfg.blocks[next - 1].end_address() > to;
            if is_in_block && !is_block && (cfg.overlaps || !cfg.split(image, to)) {
                break;
            }
            if cfg.followed.binary_search(&to).is_ok() || targets.len() == MOST_ENTRIES {
                cfg.tables = tables;
                return Growth::Unclear;
            }
            unread.extend(Some(to).filter(|_| !is_in_block));
            targets.push(to);
            end = end + u64::from(table.stride);
        }
        has_grown |= targets.len() > table.targets.len();
        table.targets = targets.into();
    }
    cfg.tables = tables;
    if !has_grown {
        return Growth::None;
    }
    cfg.link();
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
    let is_unread = |at: Svma| parts.iter().any(|part| part.contains(at)) && cfg.block_at(at).is_none();
    (0..cfg.blocks.len()).filter(|i| !matches!(cfg.blocks[*i].end, End::Call(_) | End::Tables)).any(|i| {
        let mut is_loose = false;
        cfg.ways_out(i, &mut |to| is_loose |= is_unread(to));
        is_loose
    })
}

/// Where the entry at an address leads, if that is in the function.
fn next_target(image: &Image, table: &JumpTable, at: Svma, is_inside: &dyn Fn(Svma) -> bool) -> Option<Svma> {
    table.entry(image, at).filter(|to| is_inside(*to))
}
