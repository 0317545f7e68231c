//! The 32-bit families that are no arithmetic.

use super::super::fields::*;
use super::super::insn::Op;
use super::super::operands::*;
use super::super::regs::{AllReg, Loop, Preg};
use super::{Family, dsp, half, relative, shifts};

pub(super) static FAMILIES: &[Family] = &[
    // A multiplication with nothing to do, and with this one encoding.
    Family::new(0xF7FF_FFFF, 0xC003_1800, |_, _| Some(Op::Mnop)),
    Family::new(0xFF80_0C00, 0xE080_0000, hardware_loop),
    Family::new(0xFF00_0000, 0xE100_0000, load_immediate),
    Family::new(0xFE00_0000, 0xE200_0000, jump_or_call),
    Family::new(0xFC00_0000, 0xE400_0000, load_store_long),
    Family::new(0xFFFE_0000, 0xE800_0000, link_or_unlink),
    Family::new(0xF600_0000, 0xC000_0000, dsp::multiply_accumulate),
    Family::new(0xF600_0000, 0xC200_0000, dsp::multiply),
    Family::new(0xF7C0_0000, 0xC400_0000, dsp::arithmetic),
    Family::new(0xF780_01C0, 0xC600_0000, shifts::by_register),
    Family::new(0xF780_0000, 0xC680_0000, shifts::by_constant),
    Family::new(0xFF00_0000, 0xF000_0000, assertion),
];

fn hardware_loop(word: u32, at: u32) -> Option<Op> {
    use loop_setup::{COUNT, FIRST, LAST, REG, WHICH};
    let reg = Preg::from_code(REG.code(word))?;
    let count = match COUNT.get(word) {
        0 => LoopCount::Keep,
        1 => LoopCount::Reg(reg),
        3 => LoopCount::HalfReg(reg),
        _ => return None,
    };
    Some(Op::LoopSetup {
        which: Loop::from_bits(WHICH.code(word)),
        first: at.wrapping_add(FIRST.get(word) * 2),
        last: at.wrapping_add(LAST.get(word) * 2),
        count,
    })
}

fn load_immediate(word: u32, _: u32) -> Option<Op> {
    use load_imm::{HIGH, REG, SIGN, VALUE, ZERO};
    let dst = AllReg::from_bits(REG.code(word));
    let (part, value) = match (HIGH.flag(word), SIGN.flag(word), ZERO.flag(word)) {
        (false, false, false) => (ImmPart::Lo, VALUE.get(word)),
        (true, false, false) => (ImmPart::Hi, VALUE.get(word)),
        (false, true, false) => (ImmPart::SignExtended, VALUE.signed(word) as u32),
        (false, false, true) => (ImmPart::ZeroExtended, VALUE.get(word)),
        _ => return None,
    };
    Some(Op::LoadImm { dst, part, value })
}

fn jump_or_call(word: u32, at: u32) -> Option<Op> {
    let target = relative(call::OFFSET, word, at);
    Some(if call::CALL.flag(word) { Op::Call { target } } else { Op::JumpLong { target } })
}

fn load_store_long(word: u32, _: u32) -> Option<Op> {
    use ldst_long::{OFFSET, PTR, REG, SIZE, WRITE, Z};
    let size = SIZE.get(word);
    let offset = OFFSET.signed(word) << 2u32.saturating_sub(size);
    let addr = Address::Offset { base: Preg::from_bits(PTR.code(word)), offset, form: OffsetForm::Long };
    half::sized(WRITE.flag(word), size, Z.flag(word), REG.code(word), addr)
}

fn link_or_unlink(word: u32, _: u32) -> Option<Op> {
    use link::{FRAME, UNLINK};
    Some(if UNLINK.flag(word) { Op::Unlink } else { Op::Link { frame: FRAME.get(word) * 4 } })
}

fn assertion(word: u32, _: u32) -> Option<Op> {
    use debug_assert::{EXPECTED, PART, REG};
    Some(Op::Assert {
        part: AssertPart::from_code(PART.code(word))?,
        reg: AllReg::from_bits(REG.code(word)),
        expected: EXPECTED.code(word),
    })
}
