//! Calls that lead elsewhere: the distance in each direct call and tail call, and the loader's slots.

use lancet_engine::image::RelocKind;
use lancet_engine::program::{BlockId, ExitKind};
use lancet_isa::{Avma, Svma, Target};

use super::{Found, Live, Overwrite};
use crate::Error;

const CALL: u8 = 0xe8;
const JUMP: u8 = 0xe9;
const LENGTH: u64 = 5;

/// What to write so that all of them lead to `to`.
pub(super) fn overwrites(live: &Live, found: Found, to: Avma) -> Result<Vec<Overwrite>, Error> {
    let entry = live.entry(found);
    let mut writes = Vec::new();
    for site in direct(live, found) {
        let at = Avma(site.0.wrapping_add(live.object(found).bias));
        let old = live.target.memory().read(at, LENGTH)?;
        let distance = i32::try_from(to.0.wrapping_sub(at.0 + LENGTH).cast_signed());
        if let (CALL | JUMP, Ok(distance)) = (old[0], distance) {
            let mut new = vec![old[0]];
            new.extend(distance.to_le_bytes());
            writes.push(Overwrite { at, old, new });
        }
    }
    for at in slots(live) {
        let old = live.target.memory().read(at, 8)?;
        if old == entry.0.to_le_bytes() {
            writes.push(Overwrite { at, old, new: to.0.to_le_bytes().to_vec() });
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

/// Calls and jumps to the function in its own object, by the address of their instruction.
fn direct(live: &Live, found: Found) -> Vec<Svma> {
    let entry = live.func(found).entry;
    let mut sites = Vec::new();
    for func in live.object(found).program.funcs() {
        let site = |block: BlockId| Svma(func.block(block).end().0.wrapping_sub(LENGTH));
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
