//! Shifts and bit operations, by a register and by a constant.

use super::super::fields::shift;
use super::super::insn::Op;
use super::super::operands::*;
use super::super::regs::{Acc, Dreg, Half};

pub(super) fn by_register(word: u32, _: u32) -> Option<Op> {
    let op = shift::OP.code(word);
    let reg = |field: super::Field| Dreg::from_bits(field.code(word));
    let (dst, src0, src1) = (reg(shift::DST), reg(shift::SRC0), reg(shift::SRC1));
    let dst_half = Half::from_bits(shift::DST_HALF.code(word));
    let src_half = Half::from_bits(shift::SRC_HALF.code(word));
    let odd = op & 1 != 0;
    // Which way round differs from operation to operation.
    let right_if_odd = if odd { ShiftDir::Right } else { ShiftDir::Left };
    let left_if_odd = if odd { ShiftDir::Left } else { ShiftDir::Right };

    Some(match (shift::CODE.get(word), op) {
        (0, 0..=2) => {
            Op::ShiftHalf { op: Shift::from_code(op)?, dst: dst.half(dst_half), src: src1.half(src_half), by: src0 }
        }
        (1, 0..=2) => Op::ShiftVec { op: Shift::from_code(op)?, dst, src: src1, by: src0 },
        (2, 0..=2) => Op::Shift { op: Shift::from_code(op)?, dst, src: src1, by: src0 },
        (2 | 3, 3) => Op::Rotate { dst, src: src1, by: src0 },
        (3, 0..=2) => Op::ShiftAcc { op: AccShift::from_code(op)?, acc: Acc::from_bits(src_half.code()), by: src0 },
        (4, _) => Op::Pack { dst, high: src1.half(Half::from_bits(op >> 1)), low: src0.half(Half::from_bits(op)) },
        (5, 0) => Op::Signbits { dst, src: src1 },
        (5, 1) => Op::SignbitsHalf { dst, src: src1.half(Half::Lo) },
        (5, 2) => Op::SignbitsHalf { dst, src: src1.half(Half::Hi) },
        (6, 0 | 1) => Op::SignbitsAcc { dst, src: Acc::from_bits(op) },
        (6, 3) => Op::Ones { dst, src: src1 },
        (7, 0 | 1) => Op::Expadj { vector: odd, dst, src: src1, limit: src0 },
        (7, _) => Op::ExpadjHalf { dst, src: src1.half(Half::from_bits(op)), limit: src0 },
        (8, 0 | 1) => Op::Bitmux { src0, src1, dir: left_if_odd },
        (9, 0 | 1) => Op::VitMax { dst, src: src1, dir: right_if_odd },
        (9, _) => Op::VitMax2 { dst, src1, src0, dir: right_if_odd },
        (10, 0 | 1) => Op::Extract { dst, scene: src1, pattern: src0, sign_extend: odd },
        (10, _) => Op::Deposit { dst, background: src1, foreground: src0, sign_extend: odd },
        (11, 0) => Op::BxorShift { dst, src: src0 },
        (11, 1) => Op::Bxor { dst, src: src0 },
        (12, 0) => Op::BxorShiftAcc,
        (12, 1) => Op::BxorAcc { dst },
        (13, 0..=2) => Op::Align { bytes: op as u8 + 1, dst, src1, src0 },
        _ => return None,
    })
}

pub(super) fn by_constant(word: u32, _: u32) -> Option<Op> {
    let op = shift::OP.code(word);
    let dst = Dreg::from_bits(shift::DST.code(word));
    let src = Dreg::from_bits(shift::SRC1.code(word));
    let by = shift::COUNT.signed(word) as i8;

    Some(match (shift::CODE.get(word), op) {
        (0, 0..=2) => Op::ShiftHalfImm {
            op: Shift::from_code(op)?,
            dst: dst.half(Half::from_bits(shift::DST_HALF.code(word))),
            src: src.half(Half::from_bits(shift::SRC_HALF.code(word))),
            by,
        },
        (1, 0..=2) => Op::ShiftVecImm { op: Shift::from_code(op)?, dst, src, by },
        (2, 0..=2) => Op::ShiftImm { op: Shift::from_code(op)?, dst, src, by },
        (2, 3) => Op::RotateImm { dst, src, by },
        (3, 0..=2) => {
            Op::ShiftAccImm { op: AccShift::from_code(op)?, acc: Acc::from_code(shift::HALVES.code(word))?, by }
        }
        _ => return None,
    })
}
