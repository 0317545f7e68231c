//! The tactic of traps: RAISE in place of an instruction, and a handler that finds out of which.
//!
//! ```text
//!  point: RAISE 14 ─> handler: SP to our stack, registers saved,  ─> of the point:   what is added
//!         NOP ...              the table searched for RETI,                          the instruction, re-expressed
//!                              registers restored                                    RTI
//! ```
//!
//! RETI is the address behind the RAISE. At the bottom of a hardware loop it is the loop's top while the loop goes on, so
//! such a point has more than one key; two points that share a key cannot both be traps. The table is sorted by key and
//! searched in steps that halve. A key that is not found means that the trap came late: the program has skipped an
//! instruction, and is stopped.

use std::collections::BTreeMap;

use lancet_isa::Svma;
use lancet_isa::blackfin::{
    AllReg, Assembler, BfInsn, Compare, DPreg, Dreg, EncodeError, Op, Preg, Ptr3, RegRange, ReturnFrom, encode,
};

use super::actions::{Runtime, load};
use super::jump::{Rest, fits};
use super::reexpress::{self, Leave};
use super::{Deed, InPlaceError, Place, Placed, Refusal, Tactic, Work};

/// Bytes of a table entry: key, and where the point's code is.
const ENTRY: u32 = 8;
const RAISE_BYTES: u32 = 2;

/// Serves what jumps could not. The start-up code must be hooked in already.
pub fn serve(work: &mut Work<'_>, rest: Rest) -> Result<(), InPlaceError> {
    let mut keys: BTreeMap<u32, u32> = BTreeMap::new();
    for (at, list, why) in rest {
        let refusal = match check(work, at, &list, &mut keys) {
            Ok((insn, event)) => {
                place(work, &insn, event, &list, &mut keys)?;
                continue;
            }
            // What the jump said is the better answer where there are no traps.
            Err(Refusal::NoTraps) => why,
            Err(refusal) => refusal,
        };
        work.edited.refused.extend(list.into_iter().map(|(place, _)| (place, refusal)));
    }
    if keys.is_empty() { Ok(()) } else { handler(work, &keys) }
}

/// Can there be a trap?
fn check(
    work: &Work<'_>,
    at: u32,
    list: &[(Place, Deed)],
    keys: &mut BTreeMap<u32, u32>,
) -> Result<(BfInsn, u8), Refusal> {
    let event = work.levels.trap(at)?;
    let block = work.code.block_with(at).ok_or(Refusal::NoInstruction)?;
    let insn = block.insns.iter().find(|insn| insn.at == at).ok_or(Refusal::NoInstruction)?;
    work.levels.check(block, at)?;
    if work.code.overlapping.contains(&block.start()) {
        return Err(Refusal::UnknownEntries);
    }
    let tops = work.code.bottoms.get(&at);
    reexpress::check(insn, Leave::Interrupt, tops.is_some())?;
    if list.iter().any(|(place, _)| !fits(work.code, *place, insn)) {
        return Err(Refusal::NoSuchExit);
    }
    let overlaps = |over: &super::Overwrite| {
        over.at.0 < u64::from(insn.end()) && over.at.0 + over.new.len() as u64 > u64::from(at)
    };
    if work.edited.patch.overwrites.iter().any(overlaps) {
        return Err(Refusal::InStartUp);
    }
    let wanted: Vec<u32> = std::iter::once(at + RAISE_BYTES).chain(tops.into_iter().flatten().copied()).collect();
    if wanted.iter().any(|key| keys.contains_key(key)) {
        return Err(Refusal::KeyCollision);
    }
    keys.extend(wanted.into_iter().map(|key| (key, 0)));
    Ok((*insn, event))
}

fn place(
    work: &mut Work<'_>,
    insn: &BfInsn,
    event: u8,
    list: &[(Place, Deed)],
    keys: &mut BTreeMap<u32, u32>,
) -> Result<(), InPlaceError> {
    let at = insn.at;
    let (runtime, image) = (work.runtime, work.program.image());
    let deeds = |out: &mut Assembler, place: Place| -> Result<(), EncodeError> {
        list.iter().filter(|(here, _)| *here == place).try_for_each(|(_, deed)| runtime.deed(out, *deed, at))
    };
    // At the bottom of loops the key says where control goes.
    let tops = work.code.bottoms.get(&at).into_iter().flatten();
    let ways = std::iter::once((at + RAISE_BYTES, Place::Done(at)));
    let ways = ways.chain(tops.map(|&top| (top, Place::Again { bottom: at, top })));
    let mut shared = None;
    for (key, way) in ways {
        let alike = !list.iter().any(|(place, _)| matches!(place, Place::Again { .. } | Place::Done(_)));
        if let Some(code) = shared.filter(|_| alike) {
            keys.insert(key, code);
            continue;
        }
        let code = work.room.code(|here| {
            let mut out = Assembler::new(here);
            Runtime::switch_back(&mut out)?;
            deeds(&mut out, Place::Before(at))?;
            let bytes = image.bytes(Svma(at.into()), insn.len.into()).unwrap_or_default();
            reexpress::write(&mut out, insn, bytes, Leave::Interrupt, &mut |out| deeds(out, Place::Taken(at)))?;
            deeds(&mut out, Place::After(at))?;
            deeds(&mut out, way)?;
            out.op(Op::Return(ReturnFrom::Interrupt))?;
            Ok(out.finish())
        })?;
        keys.insert(key, code);
        shared = Some(code);
    }
    let mut new = encode(&Op::Raise(event), at)?.to_vec();
    while new.len() < usize::from(insn.len) {
        new.extend_from_slice(&encode(&Op::Nop, at)?);
    }
    work.overwrite(at, new);
    work.edited.placed.extend(list.iter().map(|(place, _)| Placed { place: *place, tactic: Tactic::Trap }));
    Ok(())
}

/// The table, and the handler that searches it.
fn handler(work: &mut Work<'_>, keys: &BTreeMap<u32, u32>) -> Result<(), InPlaceError> {
    // Entry 0 is below every key; behind the last there are entries above every key.
    let entries = (keys.len() as u32 + 1).next_power_of_two();
    let mut table = vec![0u8; ENTRY as usize];
    for (key, code) in keys {
        table.extend(key.to_le_bytes());
        table.extend(code.to_le_bytes());
    }
    table.resize((entries * ENTRY) as usize, 0xFF);
    let at = work.room.data(table.len() as u32)?;
    work.room.fill(at, &table);
    let runtime = work.runtime;
    let handler = work.room.code(|here| search(runtime, here, at, entries))?;
    work.room.fill(runtime.vector_word, &handler.to_le_bytes());
    Ok(())
}

const ALL: RegRange = RegRange { dregs: Some(Dreg::R0), pregs: Some(Preg::P0) };

fn search(runtime: &Runtime, at: u32, table: u32, entries: u32) -> Result<Vec<u8>, EncodeError> {
    let mut out = Assembler::new(at);
    runtime.switch_stack(&mut out)?;
    out.op(Op::PushMultiple(ALL))?.push(AllReg::Astat)?;
    out.mov(AllReg::R0, AllReg::Reti)?.load_address(AllReg::P0, table)?;
    let mut step = entries / 2;
    while step > 0 {
        // P1 = P0 + step; if [P1] <= R0, P0 = P1
        out.load(AllReg::P1, step * ENTRY)?;
        out.op(Op::Ptr3 { op: Ptr3::Add, dst: Preg::P1, src0: Preg::P0, src1: Preg::P1 })?;
        load(&mut out, DPreg::R1, Preg::P1, 0)?;
        out.op(Op::Compare { relation: Compare::LessOrEqualUnsigned, left: DPreg::R1, right: DPreg::R0 })?;
        out.op(Op::MoveIf { cc: true, dst: DPreg::P0, src: DPreg::P1 })?;
        step /= 2;
    }
    load(&mut out, DPreg::R1, Preg::P0, 0)?;
    out.op(Op::Compare { relation: Compare::Equal, left: DPreg::R1, right: DPreg::R0 })?;
    let late = Op::Branch { cc: true, predicted: true, target: out.here() + 6 };
    // Nothing is right any more: a simulator stops at ABORT, a processor in the loop behind it.
    out.op(late)?.op(Op::Abort)?;
    let stop = out.here();
    out.op(Op::JumpShort { target: stop })?;
    load(&mut out, DPreg::P1, Preg::P0, 4)?;
    out.mov(AllReg::Rets, AllReg::P1)?;
    out.pop(AllReg::Astat)?.op(Op::PopMultiple(ALL))?.op(Op::Return(ReturnFrom::Subroutine))?;
    Ok(out.finish())
}
