//! Instructions as text, as GNU objdump prints them.
//!
//! objdump ends each instruction with `;` and puts what it thinks helps into a comment behind it. For the loads of
//! 16-bit constants that is the whole register, so a [`Disassembler`] remembers the constants it has seen, in the
//! order of the listing, as objdump does. A fresh one starts from zeros.
//!
//! Words that are no instruction have a text too: `ILLEGAL`, alone or as a slot of a bundle.

mod names;
mod ops;

use super::decode::{is_wide, slot_op, starts_bundle, wide_op};
use super::insn::{BfInsn, Op};
use super::operands::ImmPart;
use super::regs::AllReg;
use crate::{DecodeError, Svma};

/// Gives symbolic names to addresses.
pub type Names<'a> = &'a dyn Fn(Svma) -> Option<String>;

/// Prints instruction after instruction.
#[derive(Clone, Debug, Default)]
pub struct Disassembler {
    constants: Constants,
}

/// One line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    /// Bytes to the next line; 2 after an illegal word.
    pub len: u8,
}

impl Disassembler {
    pub fn new() -> Disassembler {
        Disassembler::default()
    }

    /// States what a register holds, as if its constant had been loaded before. Registers that cannot be loaded with
    /// a constant are ignored.
    pub fn assume(&mut self, reg: AllReg, value: u32) {
        if let Some(known) = self.constants.0.get_mut(usize::from(reg.code())) {
            *known = value;
        }
    }

    /// The text of whatever is at the start of `code`, whose first byte is at `at`.
    pub fn line(&mut self, code: &[u8], at: u32, name: Names<'_>) -> Result<Line, DecodeError> {
        if at & 1 != 0 {
            return Ok(Line { text: "ILLEGAL (UNALIGNED);".to_owned(), len: 1 });
        }
        match super::decode(code, at) {
            Ok(insn) => Ok(Line { text: self.instruction(&insn, name), len: insn.len }),
            Err(DecodeError::Invalid { .. }) => Ok(Line { text: illegal(code, at, name), len: 2 }),
            Err(truncated) => Err(truncated),
        }
    }

    /// The text of a decoded instruction.
    pub fn instruction(&mut self, insn: &BfInsn, name: Names<'_>) -> String {
        self.constants.update(&insn.op);
        let mut text = ops::body(&insn.op, insn.at, name);
        match insn.slots {
            Some(slots) => {
                for (slot, offset) in slots.iter().zip([4, 6]) {
                    text.push_str(" || ");
                    text.push_str(&ops::body(slot, insn.at.wrapping_add(offset), name));
                }
                text.push(';');
            }
            None => {
                text.push(';');
                if let Some(comment) = ops::comment(&insn.op, &self.constants, name) {
                    text.push_str("\t\t/*");
                    text.push_str(&comment);
                    text.push_str(" */");
                }
            }
        }
        text
    }
}

/// What is known of the registers that constants can be loaded into.
#[derive(Clone, Debug, Default)]
struct Constants([u32; 32]);

impl Constants {
    fn get(&self, reg: AllReg) -> u32 {
        self.0.get(usize::from(reg.code())).copied().unwrap_or(0)
    }

    fn update(&mut self, op: &Op) {
        let (reg, keep, value) = match *op {
            Op::MoveImm { dst, imm } => (AllReg::from(dst), 0, i32::from(imm) as u32),
            Op::LoadImm { dst, part: ImmPart::Lo, value } => (dst, 0xFFFF_0000, value),
            Op::LoadImm { dst, part: ImmPart::Hi, value } => (dst, 0x0000_FFFF, value << 16),
            Op::LoadImm { dst, part: ImmPart::SignExtended | ImmPart::ZeroExtended, value } => (dst, 0, value),
            _ => return,
        };
        if let Some(known) = self.0.get_mut(usize::from(reg.code())) {
            *known = *known & keep | value;
        }
    }
}

/// A bundle that is cut off is no bundle.
const BUNDLE_BYTES: usize = 8;

/// The text of an illegal word, or of a bundle with an illegal slot. Nothing in `code` past the bundle is needed:
/// where a slot holds the first half of a 32-bit instruction, its missing half reads as 0.
fn illegal(code: &[u8], at: u32, name: Names<'_>) -> String {
    let half = |offset: usize| -> u16 {
        code.get(offset..offset + 2).map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
    };
    let wide = |offset: usize| u32::from(half(offset)) << 16 | u32::from(half(offset + 2));
    let is_bundle = starts_bundle(half(0)) && code.len() >= BUNDLE_BYTES;
    let first = if is_bundle { wide_op(wide(0), at) } else { None };
    let Some(first) = first else {
        return "ILLEGAL;".to_owned();
    };
    let slot = |offset: usize| -> String {
        let at = at.wrapping_add(offset as u32);
        let op = if is_wide(half(offset)) {
            wide_op(wide(offset), at).filter(shown_in_slot)
        } else {
            slot_op(half(offset), at)
        };
        op.map_or_else(|| "ILLEGAL".to_owned(), |op| ops::body(&op, at, name))
    };
    let first = ops::body(&first, at, name);
    format!("{first} || {} || {};\t\t/* ILLEGAL PARALLEL INSTRUCTION */", slot(4), slot(6))
}

/// objdump spells out some 32-bit operations in a 16-bit slot, though none may be there.
fn shown_in_slot(op: &Op) -> bool {
    !matches!(
        op,
        Op::Mnop
            | Op::LoopSetup { .. }
            | Op::LoadImm { .. }
            | Op::JumpLong { .. }
            | Op::Call { .. }
            | Op::Link { .. }
            | Op::Unlink
            | Op::Assert { .. }
    )
}
