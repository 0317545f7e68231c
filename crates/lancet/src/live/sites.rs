//! Calls that lead elsewhere: the distance in each direct call and tail call, and the loader's slots.

use lancet_engine::image::RelocKind;
use lancet_engine::program::{BlockId, ExitKind};
use lancet_isa::{Avma, Svma, Target};

use super::{Found, Live, Overwrite};
use crate::Error;

const CALL: u8 = 0xe8;
const JUMP: u8 = 0xe9;
const LENGTH: u64 = 5;
const MOST_SHORTCUTS: usize = 32;
/// Where functions begin other changes put their jumps.
const ENTRY: u64 = 16;

/// What to write so that all of them lead to `to`.
pub(super) fn overwrites(live: &Live, found: Found, to: Avma) -> Result<Vec<Overwrite>, Error> {
    let entry = live.entry(found);
    let mut writes = Vec::new();
    for site in direct(live, found) {
        writes.extend(led(live, found, &site, to)?);
    }
    for at in slots(live) {
        let old = live.target.memory().read(at, 8)?;
        if old == entry.0.to_le_bytes() {
            writes.push(Overwrite { at, old, new: to.0.to_le_bytes().to_vec(), shut_from: None, leads_on: None });
        }
    }
    match writes.is_empty() {
        true => Err(Error::NoJump {
            pid: live.pid(),
            function: live.name(found),
            why: "nothing calls it directly; --how entry needs no calls".into(),
        }),
        false => Ok(writes),
    }
}

/// What to write so that calls go straight to `to` that a jump at the entry would lead there, too: the jump takes a cycle
/// of each call. Each such place makes the stop longer, so there are not many: those in the innermost loops.
pub(super) fn shortcuts(live: &Live, found: Found, to: Avma) -> Result<Vec<Overwrite>, Error> {
    let is_changed = |at: Avma| {
        let meets = |start: u64, len: usize| start < at.0 + LENGTH && at.0 < start + len as u64;
        live.target.patches().iter().flat_map(|patch| &patch.writes).any(|write| meets(write.at, write.new.len()))
    };
    let mut sites = direct(live, found);
    sites.retain(|site| site.at - site.entry >= ENTRY || site.at < site.entry);
    sites.sort_by_key(|site| std::cmp::Reverse(site.depth));
    let mut writes = Vec::new();
    for site in sites.iter().take(MOST_SHORTCUTS) {
        writes.extend(led(live, found, site, to)?.filter(|write| !is_changed(write.at)));
    }
    Ok(writes)
}

/// The site leading to `to`, if it can.
fn led(live: &Live, found: Found, site: &Site, to: Avma) -> Result<Option<Overwrite>, Error> {
    let at = Avma(site.at.0.wrapping_add(live.object(found).bias));
    let old = live.target.memory().read(at, LENGTH)?;
    let distance = i32::try_from(to.0.wrapping_sub(at.0 + LENGTH).cast_signed());
    Ok(match (old[0], distance) {
        (CALL | JUMP, Ok(distance)) => {
            let mut new = vec![old[0]];
            new.extend(distance.to_le_bytes());
            Some(Overwrite { at, old, new, shut_from: None, leads_on: None })
        }
        _ => None,
    })
}

/// A call, or a jump in place of one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Site {
    /// Its instruction.
    at: Svma,
    /// How many loops it is in.
    depth: u32,
    /// Where the function begins that it is in.
    entry: Svma,
}

/// Calls and jumps to the function in its own object.
fn direct(live: &Live, found: Found) -> Vec<Site> {
    let entry = live.func(found).entry;
    let mut sites = Vec::new();
    for func in live.object(found).program.funcs() {
        let site = |block: BlockId| Site {
            at: Svma(func.block(block).end().0.wrapping_sub(LENGTH)),
            depth: func.loops.depth(block.0),
            entry: func.entry,
        };
        sites.extend(func.calls.iter().filter(|call| call.to == Target::Direct(entry)).map(|call| site(call.block)));
        let tails = func.exits.iter().filter(|exit| exit.kind == ExitKind::TailCall(Target::Direct(entry)));
        sites.extend(tails.map(|exit| site(exit.from)));
    }
    sites.sort_unstable();
    sites.dedup();
    sites
}

/// Slots that the loader binds to symbols, in all objects.
fn slots(live: &Live) -> Vec<Avma> {
    let of_object = |mapped: &super::Mapped| {
        let bound =
            mapped.image.relocations().iter().filter(|reloc| matches!(reloc.kind, RelocKind::Symbol { addend: 0, .. }));
        bound.map(|reloc| Avma(reloc.place.0.wrapping_add(mapped.bias))).collect::<Vec<_>>()
    };
    live.mapped.iter().flat_map(of_object).collect()
}
