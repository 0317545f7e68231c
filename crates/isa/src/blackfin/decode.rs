//! Bytes to instructions.
//!
//! A word belongs to one of 37 families, told apart by a mask; [`half`], [`wide`], [`dsp`] and [`shifts`] take the
//! families apart. They answer `None` for words that the GNU disassembler calls illegal.

mod dsp;
mod half;
mod shifts;
mod wide;

use std::ops::ControlFlow;

use super::fields::Field;
use super::insn::{BfInsn, Op};
use super::{Blackfin, Disassembler, effects, values};
use crate::{Decode, DecodeError, Delay, Flow, Insn, Reader, Svma, Syntax, Target};

struct CodeReader<'c> {
    code: &'c [u8],
    at: Svma,
}

impl Reader for CodeReader<'_> {
    fn decode_from(
        &mut self,
        offset: usize,
        visit: &mut dyn FnMut(&Insn) -> ControlFlow<()>,
    ) -> Result<(), DecodeError> {
        Blackfin.decode(self.code.get(offset..).unwrap_or_default(), self.at + offset as u64, visit)
    }
}

impl Decode for Blackfin {
    fn decode(
        &self,
        code: &[u8],
        at: Svma,
        visit: &mut dyn FnMut(&Insn) -> ControlFlow<()>,
    ) -> Result<(), DecodeError> {
        let mut offset = 0;
        while let Some(rest) = code.get(offset..).filter(|rest| !rest.is_empty()) {
            let insn = decode(rest, (at.0 as u32).wrapping_add(offset as u32))?;
            let shown = Insn {
                at: at + offset as u64,
                len: insn.len,
                flow: flow(&insn.op),
                delay: Delay::None,
                stores: insn.ops().any(Op::stores),
                effects: effects::of(&insn),
                mentions: values::mentions(&insn, rest),
            };
            if visit(&shown).is_break() {
                break;
            }
            offset += usize::from(insn.len);
        }
        Ok(())
    }

    fn reader<'c>(&self, code: &'c [u8], at: Svma) -> Box<dyn Reader + 'c> {
        Box::new(CodeReader { code, at })
    }

    /// Illegal words have a text, too.
    fn text(
        &self,
        code: &[u8],
        at: Svma,
        _: Syntax,
        name: &dyn Fn(Svma) -> Option<String>,
    ) -> Result<String, DecodeError> {
        Ok(Disassembler::new().line(code, at.0 as u32, name)?.text)
    }
}

/// Slots of a bundle do not change the flow.
fn flow(op: &Op) -> Flow {
    let direct = |target: u32| Target::Direct(Svma(target.into()));
    match *op {
        Op::Branch { target, .. } => Flow::Branch(Svma(target.into())),
        Op::JumpShort { target } | Op::JumpLong { target } => Flow::Jump(direct(target)),
        Op::JumpReg(_) | Op::JumpPcReg(_) => Flow::Jump(Target::Computed),
        Op::Call { target } => Flow::Call(direct(target)),
        Op::CallReg(_) | Op::CallPcReg(_) => Flow::Call(Target::Computed),
        Op::Return(_) => Flow::Return,
        Op::LoopSetup { first, last, .. } => Flow::LoopSetup { first: Svma(first.into()), last: Svma(last.into()) },
        // A handler runs, and comes back behind the instruction.
        Op::Raise(_) | Op::Excpt(_) | Op::Emuexcpt => Flow::System,
        // The simulator ends.
        Op::Hlt | Op::Abort => Flow::Stop,
        _ => Flow::Next,
    }
}

/// A family of words: those with `word & mask == value`.
struct Family {
    mask: u32,
    value: u32,
    decode: fn(word: u32, at: u32) -> Option<Op>,
}

impl Family {
    const fn new(mask: u32, value: u32, decode: fn(u32, u32) -> Option<Op>) -> Family {
        Family { mask, value, decode }
    }
}

fn find(families: &[Family], word: u32, at: u32) -> Option<Op> {
    let family = families.iter().find(|family| word & family.mask == family.value)?;
    (family.decode)(word, at)
}

/// Decodes the instruction or the bundle at the start of `code`, whose first byte is at `at`.
pub fn decode(code: &[u8], at: u32) -> Result<BfInsn, DecodeError> {
    let invalid = DecodeError::Invalid { at: Svma(u64::from(at)) };
    if at & 1 != 0 {
        return Err(invalid);
    }
    let head = fetch(code, 0, at)?;
    if !is_wide(head) {
        let op = half_op(head, at).ok_or(invalid)?;
        return Ok(BfInsn { at, len: 2, op, slots: None });
    }
    let word = u32::from(head) << 16 | u32::from(fetch(code, 2, at)?);
    let op = wide_op(word, at).ok_or(invalid)?;
    if !starts_bundle(head) {
        return Ok(BfInsn { at, len: 4, op, slots: None });
    }
    let slot = |offset| -> Result<Op, DecodeError> {
        let word = fetch(code, offset, at)?;
        slot_op(word, at.wrapping_add(offset as u32)).ok_or(invalid)
    };
    Ok(BfInsn { at, len: 8, op, slots: Some([slot(4)?, slot(6)?]) })
}

/// What a 16-bit word does.
pub(super) fn half_op(word: u16, at: u32) -> Option<Op> {
    find(half::FAMILIES, u32::from(word), at)
}

/// What a 16-bit word does in a bundle; `None` if it may not be there.
pub(super) fn slot_op(word: u16, at: u32) -> Option<Op> {
    if is_wide(word) {
        return None;
    }
    half_op(word, at).filter(Op::in_parallel)
}

/// What a 32-bit word does, bundle or not.
pub(super) fn wide_op(word: u32, at: u32) -> Option<Op> {
    find(wide::FAMILIES, word, at)
}

/// Does an instruction that starts with this word have a second one? 0xF8 and 0xF9 start pseudo instructions.
pub(super) fn is_wide(head: u16) -> bool {
    head & 0xC000 == 0xC000 && head & 0xFE00 != 0xF800
}

/// Bit 11 of a 32-bit word says that two 16-bit slots follow, except in `LINK`'s part of the map.
pub(super) fn starts_bundle(head: u16) -> bool {
    head & 0xC800 == 0xC800 && head & 0xE800 != 0xE800
}

fn fetch(code: &[u8], offset: usize, at: u32) -> Result<u16, DecodeError> {
    match code.get(offset..offset + 2) {
        Some(bytes) => Ok(u16::from_le_bytes([bytes[0], bytes[1]])),
        None => Err(DecodeError::Truncated { at: Svma(u64::from(at)) }),
    }
}

/// `at` and a signed field of 16-bit units.
fn relative(field: Field, word: u32, at: u32) -> u32 {
    at.wrapping_add_signed(field.signed(word) * 2)
}
