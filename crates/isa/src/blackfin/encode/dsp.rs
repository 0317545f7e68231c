//! The 32-bit words of arithmetic.

use super::super::fields::{Field, alu, mac, shift};
use super::super::insn::Op;
use super::super::operands::*;
use super::super::regs::{Acc, Dhalf, Dreg, Half};
use super::Word;

pub(super) fn word(op: &Op) -> Option<Word> {
    Some(Word::Wide(bits(op)?))
}

fn bits(op: &Op) -> Option<u32> {
    match *op {
        // Unit 1 and unit 0 keep their accumulators and write nothing.
        Op::Mnop => Some(0xC003_1800),
        Op::Mac { mode, mixed, regs, mac1, mac0 } => Some(
            0xC000_0000
                | multiplier(mode, mixed, regs)
                | mac::WRITE1.put(mac1.write)
                | mac::OP1.put(mac1.op)
                | mac::HALF01.put(mac1.half0)
                | mac::HALF11.put(mac1.half1)
                | mac::WRITE0.put(mac0.write)
                | mac::OP0.put(mac0.op)
                | mac::HALF00.put(mac0.half0)
                | mac::HALF10.put(mac0.half1),
        ),
        Op::Mult { mode, mixed, regs, mult1, mult0 } => Some(
            0xC200_0000
                | multiplier(mode, mixed, regs)
                | mac::WRITE1.put(mult1.write)
                | mac::HALF01.put(mult1.half0)
                | mac::HALF11.put(mult1.half1)
                | mac::WRITE0.put(mult0.write)
                | mac::HALF00.put(mult0.half0)
                | mac::HALF10.put(mult0.half1),
        ),
        _ => arithmetic(op).or_else(|| by_register(op)).or_else(|| by_constant(op)),
    }
}

fn multiplier(mode: MacMode, mixed: bool, regs: MacRegs) -> u32 {
    mac::MODE.put(mode)
        | mac::MIXED.put(mixed)
        | mac::PAIR.put(regs.pair)
        | mac::DST.put(regs.dst)
        | mac::SRC0.put(regs.src0)
        | mac::SRC1.put(regs.src1)
}

/// Vector and accumulator arithmetic: a code, an opcode within it, and options.
fn arithmetic(op: &Op) -> Option<u32> {
    let form = |code: u32, op: u32| 0xC400_0000 | alu::CODE.put(code) | alu::OP.put(op);
    let dst = |reg: Dreg| alu::DST0.put(reg);
    let dsts = |dst1: Dreg, dst0: Dreg| alu::DST1.put(dst1) | alu::DST0.put(dst0);
    let dst_half = |dst: Dhalf| alu::DST0.put(dst.reg) | alu::HIGH.put(dst.half);
    let src = |reg: Dreg| alu::SRC0.put(reg);
    let srcs = |src0: Dreg, src1: Dreg| alu::SRC0.put(src0) | alu::SRC1.put(src1);
    let s = |flag: bool| alu::S.put(flag);
    let high = |half: Half| alu::HIGH.put(half);
    // What the GNU assembler writes where there are no data registers to read.
    let no_src = alu::SRC0.put(7u32) | alu::SRC1.put(7u32);
    Some(match *op {
        Op::VecAdd { op, dst: to, src0, src1, saturate, cross } => {
            form(0, op.into()) | dst(to) | srcs(src0, src1) | s(saturate) | alu::X.put(cross)
        }
        Op::VecAddSub { crossed_signs, sum, difference, src0, src1, saturate, cross, scale } => {
            let signs = alu::HIGH.put(crossed_signs);
            form(1, scale.into()) | signs | dsts(sum, difference) | srcs(src0, src1) | s(saturate) | alu::X.put(cross)
        }
        Op::AddHalf { sub, dst, src0, src1, overflow } => {
            let halves = u32::from(src0.half) << 1 | u32::from(src1.half);
            form(if sub { 3 } else { 2 }, halves)
                | dst_half(dst)
                | srcs(src0.reg, src1.reg)
                | alu::OVERFLOW.put(overflow)
        }
        Op::Add { sub, dst: to, src0, src1, overflow } => {
            form(4, sub.into()) | dst(to) | srcs(src0, src1) | alu::OVERFLOW.put(overflow)
        }
        Op::AddSub { sum, difference, src0, src1, overflow } => {
            form(4, 2) | dsts(sum, difference) | srcs(src0, src1) | alu::OVERFLOW.put(overflow)
        }
        Op::AddRound { sub, dst, src0, src1, round } => {
            let rnd20 = round == RoundAt::Rnd20;
            form(5, u32::from(rnd20) << 1 | u32::from(sub)) | dst_half(dst) | srcs(src0, src1) | alu::X.put(rnd20)
        }
        Op::Max { vector, dst: to, src0, src1 } => form(if vector { 6 } else { 7 }, 0) | dst(to) | srcs(src0, src1),
        Op::Min { vector, dst: to, src0, src1 } => form(if vector { 6 } else { 7 }, 1) | dst(to) | srcs(src0, src1),
        Op::Abs { vector, dst: to, src: from } => form(if vector { 6 } else { 7 }, 2) | dst(to) | src(from),
        Op::Neg { dst: to, src: from, saturate } => form(7, 3) | dst(to) | src(from) | s(saturate),
        Op::AccClear(Accs::Both) => form(8, 2) | no_src,
        Op::AccClear(which) => form(8, which.into()),
        Op::AccSaturate(which) => form(8, which.into()) | s(true) | no_src,
        Op::AccCopy { dst } => form(8, 3) | s(dst == Acc::A1) | no_src,
        Op::AccSetHalf { dst, src: from } => form(9, u32::from(dst) << 1) | high(from.half) | src(from.reg),
        Op::AccSet { dst, src: from } => form(9, u32::from(dst) << 1) | s(true) | src(from),
        Op::AccSetExt { dst, src: from } => form(9, u32::from(dst) << 1 | 1) | src(from),
        Op::AccGetExt { dst: to, src } => form(10, src.into()) | dst(to) | no_src,
        Op::AccAccumulateTo { dst: to } => form(11, 0) | dst(to) | no_src,
        Op::AccAccumulateToHalf { dst } => form(11, 1) | dst_half(dst) | no_src,
        Op::AccAccumulate { sub, w32 } => form(11, 2 | u32::from(sub)) | s(w32) | no_src,
        Op::SignMultiply { dst: to, src0, src1 } => form(12, 0) | dst(to) | srcs(src0, src1),
        Op::AccAddHalves { from_a1, from_a0 } => form(12, 1) | dsts(from_a1, from_a0) | no_src,
        Op::Round { dst, src: from } => form(12, 3) | dst_half(dst) | src(from),
        Op::Search { dst1, dst0, src: from, mode } => form(13, mode.into()) | dsts(dst1, dst0) | src(from),
        Op::AccNeg { dst, src } => form(14, src.into()) | alu::HIGH.put(dst) | no_src,
        Op::AccNegBoth => form(14, 3) | no_src,
        Op::VecNeg { dst: to, src: from } => form(15, 3) | dst(to) | src(from),
        Op::AccAbs { dst, src } => form(16, src.into()) | alu::HIGH.put(dst) | no_src,
        Op::AccAbsBoth => form(16, 3) | no_src,
        Op::AccAddSub { sum, difference, minuend, overflow } => {
            form(17, 1 - u32::from(minuend)) | dsts(sum, difference) | alu::OVERFLOW.put(overflow) | no_src
        }
        Op::Saa { src0, src1, reversed } => form(18, 0) | srcs(src0, src1) | s(reversed),
        Op::Disalgnexcpt => form(18, 3),
        Op::ByteAverage { dst: to, src0, src1, truncate, reversed } => {
            form(20, truncate.into()) | dst(to) | srcs(src0, src1) | s(reversed)
        }
        Op::ByteAdd { sub, dst1, dst0, src0, src1, reversed } => {
            form(21, sub.into()) | dsts(dst1, dst0) | srcs(src0, src1) | s(reversed)
        }
        Op::ByteAverage4 { dst: to, src0, src1, truncate, half, reversed } => {
            form(22, truncate.into()) | dst(to) | srcs(src0, src1) | high(half) | s(reversed)
        }
        Op::ByteAddClip { dst: to, src0, src1, half, reversed } => {
            form(23, 0) | dst(to) | srcs(src0, src1) | high(half) | s(reversed)
        }
        Op::BytePack { dst: to, src0, src1 } => form(24, 0) | dst(to) | srcs(src0, src1),
        Op::ByteUnpack { dst1, dst0, src: from, reversed } => form(24, 1) | dsts(dst1, dst0) | src(from) | s(reversed),
        _ => return None,
    })
}

fn by_register(op: &Op) -> Option<u32> {
    let form = |code: u32, op: u32| 0xC600_0000 | shift::CODE.put(code) | shift::OP.put(op);
    let dst = |reg: Dreg| shift::DST.put(reg);
    let operands =
        |dst: Dreg, src1: Dreg, src0: Dreg| put3((shift::DST, dst), (shift::SRC1, src1), (shift::SRC0, src0));
    let to = |dst: Dreg, src1: Dreg| shift::DST.put(dst) | shift::SRC1.put(src1);
    let right = |dir: ShiftDir| u32::from(dir == ShiftDir::Right);
    Some(match *op {
        Op::ShiftHalf { op, dst, src, by } => {
            form(0, op.into())
                | operands(dst.reg, src.reg, by)
                | shift::DST_HALF.put(dst.half)
                | shift::SRC_HALF.put(src.half)
        }
        Op::ShiftVec { op, dst, src, by } => form(1, op.into()) | operands(dst, src, by),
        Op::Shift { op, dst, src, by } => form(2, op.into()) | operands(dst, src, by),
        Op::Rotate { dst, src, by } => form(2, 3) | operands(dst, src, by),
        Op::ShiftAcc { op, acc, by } => form(3, op.into()) | shift::SRC_HALF.put(acc) | shift::SRC0.put(by),
        Op::Pack { dst, high, low } => {
            form(4, u32::from(high.half) << 1 | u32::from(low.half)) | operands(dst, high.reg, low.reg)
        }
        Op::Signbits { dst, src } => form(5, 0) | to(dst, src),
        Op::SignbitsHalf { dst, src } => form(5, 1 + u32::from(src.half)) | to(dst, src.reg),
        Op::SignbitsAcc { dst: reg, src } => form(6, src.into()) | dst(reg),
        Op::Ones { dst, src } => form(6, 3) | to(dst, src),
        Op::Expadj { vector, dst, src, limit } => form(7, vector.into()) | operands(dst, src, limit),
        Op::ExpadjHalf { dst, src, limit } => form(7, 2 | u32::from(src.half)) | operands(dst, src.reg, limit),
        Op::Bitmux { src0, src1, dir } => form(8, 1 - right(dir)) | shift::SRC0.put(src0) | shift::SRC1.put(src1),
        Op::VitMax { dst, src, dir } => form(9, right(dir)) | to(dst, src),
        Op::VitMax2 { dst, src1, src0, dir } => form(9, 2 | right(dir)) | operands(dst, src1, src0),
        Op::Extract { dst, scene, pattern, sign_extend } => {
            form(10, sign_extend.into()) | operands(dst, scene, pattern)
        }
        Op::Deposit { dst, background, foreground, sign_extend } => {
            form(10, 2 | u32::from(sign_extend)) | operands(dst, background, foreground)
        }
        Op::BxorShift { dst: reg, src } => form(11, 0) | dst(reg) | shift::SRC0.put(src),
        Op::Bxor { dst: reg, src } => form(11, 1) | dst(reg) | shift::SRC0.put(src),
        Op::BxorShiftAcc => form(12, 0),
        Op::BxorAcc { dst: reg } => form(12, 1) | dst(reg),
        Op::Align { bytes, dst, src1, src0 } => form(13, u32::from(bytes).checked_sub(1)?) | operands(dst, src1, src0),
        _ => return None,
    })
}

fn put3(a: (Field, Dreg), b: (Field, Dreg), c: (Field, Dreg)) -> u32 {
    a.0.put(a.1) | b.0.put(b.1) | c.0.put(c.1)
}

fn by_constant(op: &Op) -> Option<u32> {
    let form = |code: u32, op: u32, by: i8| {
        0xC680_0000 | shift::CODE.put(code) | shift::OP.put(op) | shift::COUNT.put(by as u32)
    };
    let to = |dst: Dreg, src: Dreg| shift::DST.put(dst) | shift::SRC1.put(src);
    Some(match *op {
        Op::ShiftHalfImm { op, dst, src, by } => {
            form(0, op.into(), by)
                | to(dst.reg, src.reg)
                | shift::DST_HALF.put(dst.half)
                | shift::SRC_HALF.put(src.half)
        }
        Op::ShiftVecImm { op, dst, src, by } => form(1, op.into(), by) | to(dst, src),
        Op::ShiftImm { op, dst, src, by } => form(2, op.into(), by) | to(dst, src),
        Op::RotateImm { dst, src, by } => form(2, 3, by) | to(dst, src),
        Op::ShiftAccImm { op, acc, by } => form(3, op.into(), by) | shift::SRC_HALF.put(acc),
        _ => return None,
    })
}
