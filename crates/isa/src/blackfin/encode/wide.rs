//! The 32-bit words that are no arithmetic.

use super::super::fields::*;
use super::super::insn::Op;
use super::super::operands::*;
use super::super::regs::DPreg;
use super::half::Access;
use super::{Word, distance};

pub(super) fn word(op: &Op, at: u32) -> Option<Word> {
    Some(Word::Wide(bits(op, at)?))
}

fn bits(op: &Op, at: u32) -> Option<u32> {
    Some(match *op {
        Op::LoopSetup { which, first, last, count } => {
            use loop_setup::{COUNT, FIRST, LAST, REG, WHICH};
            let (count, reg) = match count {
                LoopCount::Keep => (0u32, 0),
                LoopCount::Reg(reg) => (1, reg.code()),
                LoopCount::HalfReg(reg) => (3, reg.code()),
            };
            let offsets = FIRST.put(distance(first, at)) | LAST.put(distance(last, at));
            0xE080_0000 | COUNT.put(count) | WHICH.put(which) | REG.put(reg) | offsets
        }
        Op::LoadImm { dst, part, value } => {
            use load_imm::{HIGH, REG, SIGN, VALUE, ZERO};
            let form = match part {
                ImmPart::Lo => 0,
                ImmPart::Hi => HIGH.put(true),
                ImmPart::SignExtended => SIGN.put(true),
                ImmPart::ZeroExtended => ZERO.put(true),
            };
            0xE100_0000 | form | REG.put(dst) | VALUE.put(value)
        }
        Op::JumpLong { target } => 0xE200_0000 | call::OFFSET.put(distance(target, at)),
        Op::Call { target } => 0xE200_0000 | call::CALL.put(true) | call::OFFSET.put(distance(target, at)),
        Op::Load { what, reg, addr } => access(Access::Load(what), reg, addr)?,
        Op::Store { what, reg, addr } => access(Access::Store(what), reg, addr)?,
        Op::Link { frame } => 0xE800_0000 | link::FRAME.put(frame / 4),
        Op::Unlink => 0xE800_0000 | link::UNLINK.put(true),
        Op::Assert { part, reg, expected } => {
            use debug_assert::{EXPECTED, PART, REG};
            0xF000_0000 | PART.put(part) | REG.put(reg) | EXPECTED.put(expected)
        }
        _ => return None,
    })
}

fn access(access: Access, reg: DPreg, addr: Address) -> Option<u32> {
    use ldst_long::{OFFSET, PTR, REG, SIZE, WRITE, Z};
    let Address::Offset { base, offset, form: OffsetForm::Long } = addr else { return None };
    let (size, z) = access.size(reg)?;
    let what = WRITE.put(access.is_store()) | Z.put(z) | SIZE.put(size);
    Some(0xE400_0000 | what | PTR.put(base) | REG.put(reg) | OFFSET.put((offset >> (2 - size)) as u32))
}
