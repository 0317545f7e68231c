//! More code of regions that were analysed before.
//!
//! Other regions jump into the middle of a region, to code that nothing inside it leads to: where an optimizer has split
//! functions into hot and cold pieces, these find each other step by step. Reading all of a region again at every step
//! would be dear, so only what is new is decoded, and joined to the blocks that are known. Regions that found each other
//! are a group, and what is new in one leads on to the others until nothing is. What cannot be done that way
//! (an indirect jump, another way into blocks through which one was followed) makes a region *stale*: it is read
//! again once nothing else is new.

use std::ops::ControlFlow;

use lancet_isa::{Effects, Flow, Insn, Reader, Svma, Target};

use super::additions::Additions;
use super::blocks::{End, NO_BLOCK, NOT_FOLLOWED, RegionBlock, RegionCfg, note_mentions};
use super::discover::Region;
use super::func::Part;
use super::index::Index;
use super::region::Surroundings;
use crate::image::Image;

/// Reads what is pending in the regions of a group, given with their numbers and sorted by them.
pub(super) fn extend_group(group: &mut [(u32, &mut Region)], around: &Surroundings<'_>, index: &Index) {
    let mut work: Vec<usize> = (0..group.len()).filter(|i| !group[*i].1.pending.is_empty()).collect();
    let mut outside = Vec::new();
    let mut additions: Vec<Option<Additions>> = group.iter().map(|_| None).collect();
    while let Some(i) = work.pop() {
        let region = &mut *group[i].1;
        let pending = std::mem::take(&mut region.pending);
        let new = additions[i].get_or_insert_default();
        region.stale |= extend(&mut region.cfg, new, around, &region.parts, &pending, &mut outside) == Extended::Stale;
        for to in outside.drain(..) {
            let Some((number, false)) = index.place_of(to) else { continue };
            let Ok(into) = group.binary_search_by_key(&number, |(number, _)| *number) else { continue };
            if group[into].1.exact && group[into].1.enter(to) {
                work.push(into);
            }
        }
    }
    for ((_, region), new) in group.iter_mut().zip(additions) {
        let Some(new) = new else { continue };
        region.cfg.mentions.sort_unstable();
        new.join(&mut region.cfg);
        region.read();
    }
}

/// Is the region known as if it had been read with all its entries?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extended {
    Fully,
    Stale,
}

/// Finds the `new` blocks that control reaches from `entries`, and tells where it goes `outside`.
fn extend(
    cfg: &mut RegionCfg,
    new: &mut Additions,
    around: &Surroundings<'_>,
    parts: &[Part],
    entries: &[Svma],
    outside: &mut Vec<Svma>,
) -> Extended {
    // Where blocks overlap, the one before an address need not be the one that it lies in.
    if !cfg.repeats.is_empty() || cfg.overlaps {
        return Extended::Stale;
    }
    let mut extended = Extended::Fully;
    let mut readers: Vec<Option<Box<dyn Reader>>> = parts.iter().map(|_| None).collect();
    let mut work: Vec<(Svma, From)> = entries.iter().map(|at| (*at, From::Elsewhere)).collect();
    while let Some((at, from)) = work.pop() {
        let before = new.block_before(cfg, at);
        let is_inside_another = before.is_some_and(|block| block.end_address() > at);
        let known =
            before.is_some_and(|block| block.start == at) || is_inside_another && new.split(cfg, around.image, at);
        if known {
            if from == From::Inside && cfg.followed.binary_search(&at).is_ok() {
                extended = Extended::Stale;
            }
            continue;
        }
        let Some(number) = parts.iter().position(|part| part.contains(at)) else {
            outside.push(at);
            continue;
        };
        let part = &parts[number];
        let limit = new.first_behind(cfg, at).map_or(part.end, |next| next.min(part.end));
        let code = around.image.bytes_from(part.start).unwrap_or_default();
        let code = &code[..code.len().min(usize::try_from(part.size()).unwrap_or(usize::MAX))];
        let reader = readers[number].get_or_insert_with(|| around.image.isa().reader(code, part.start));
        let offset = (at - part.start) as usize;
        match decode(around.image, reader.as_mut(), offset, at, limit, &mut cfg.mentions) {
            Some(mut block) if !is_inside_another => {
                if matches!(block.end, End::Call(to) if !(around.returns)(to)) {
                    block.to = NOT_FOLLOWED;
                }
                see_successors(&block, &mut |to| work.push((to, From::Inside)));
                new.add(block);
            }
            _ => return Extended::Stale,
        }
    }
    extended
}

/// Where control comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Elsewhere,
    Inside,
}

/// The block at an address, which the reader has at an offset, and which ends at `limit` at the latest. `None`: that needs a
/// look at the whole region.
fn decode(
    image: &Image,
    reader: &mut dyn Reader,
    offset: usize,
    at: Svma,
    limit: Svma,
    mentions: &mut Vec<(Svma, Svma)>,
) -> Option<RegionBlock> {
    let mut block =
        RegionBlock { start: at, len: 0, insns: 0, effects: Effects::default(), end: End::Fall, to: NO_BLOCK };
    let mut is_cut = false;
    let decoded = reader.decode_from(offset, &mut |insn| {
        if insn.end() > limit {
            is_cut = insn.at < limit;
            return ControlFlow::Break(());
        }
        block.len += u32::from(insn.len);
        block.insns += 1;
        block.effects = block.effects.then(insn.effects);
        note_mentions(image, insn, mentions);
        if !insn.flow.ends_block() {
            return ControlFlow::Continue(());
        }
        block.end = end_of(insn);
        ControlFlow::Break(())
    });
    // Something that does not decode, or that is cut off by the limit, is not followed here.
    let is_whole = decoded.is_ok() && !is_cut && block.insns > 0 && block.end != End::Unresolved;
    is_whole.then_some(block)
}

fn end_of(insn: &Insn) -> End {
    match insn.flow {
        Flow::Next | Flow::System => End::Fall,
        Flow::Jump(Target::Direct(to)) => End::Jump(to),
        Flow::Jump(Target::Slot(at)) => End::Slot(at),
        Flow::Jump(Target::Computed) | Flow::LoopSetup { .. } => End::Unresolved,
        Flow::Branch(taken) => End::Branch(taken),
        Flow::Call(to) => End::Call(to),
        Flow::Return => End::Return,
        Flow::Stop => End::Stop,
    }
}

fn see_successors(block: &RegionBlock, see: &mut dyn FnMut(Svma)) {
    match block.end {
        End::Fall => see(block.end_address()),
        End::Jump(to) => see(to),
        End::Branch(taken) => {
            see(taken);
            see(block.end_address());
        }
        End::Call(_) if block.to != NOT_FOLLOWED => see(block.end_address()),
        _ => {}
    }
}
