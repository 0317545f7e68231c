//! Multiplications, vector and accumulator arithmetic.

use super::super::fields::{alu, mac};
use super::super::insn::Op;
use super::super::operands::*;
use super::super::regs::{Acc, Dreg, Half};

/// Modes, as bits by their code.
const MAC_MODES: u16 = 0x1B5F;
const MAC_PAIR_MODES: u16 = 0x131B;
const MULT_MODES: u16 = 0x1B57;
const MULT_PAIR_MODES: u16 = 0x0313;

fn mode(word: u32, allowed: u16) -> Option<MacMode> {
    MacMode::from_code(mac::MODE.code(word)).filter(|mode| allowed >> mode.code() & 1 != 0)
}

fn mac_regs(word: u32) -> MacRegs {
    MacRegs {
        pair: mac::PAIR.flag(word),
        dst: Dreg::from_bits(mac::DST.code(word)),
        src0: Dreg::from_bits(mac::SRC0.code(word)),
        src1: Dreg::from_bits(mac::SRC1.code(word)),
    }
}

/// The halves that unit 1 and unit 0 multiply.
fn mac_halves(word: u32) -> [(Half, Half); 2] {
    let half = |field: super::Field| Half::from_bits(field.code(word));
    [(half(mac::HALF01), half(mac::HALF11)), (half(mac::HALF00), half(mac::HALF10))]
}

pub(super) fn multiply_accumulate(word: u32, _: u32) -> Option<Op> {
    let regs = mac_regs(word);
    let mode = mode(word, if regs.pair { MAC_PAIR_MODES } else { MAC_MODES })?;
    let mixed = mac::MIXED.flag(word);
    let [halves1, halves0] = mac_halves(word);
    let unit = |op: super::Field, write: super::Field, (half0, half1)| -> Option<MacUnit> {
        Some(MacUnit { op: MacOp::from_code(op.code(word))?, write: write.flag(word), half0, half1 })
    };
    let mac1 = unit(mac::OP1, mac::WRITE1, halves1)?;
    let mac0 = unit(mac::OP0, mac::WRITE0, halves0)?;
    let idle = |unit: MacUnit| unit.op == MacOp::Keep && !unit.write;
    let writes = mac1.write || mac0.write;
    let legal = !(idle(mac1) && idle(mac0) || mac1.op == MacOp::Keep && mixed || writes && mode == MacMode::W32);
    legal.then_some(Op::Mac { mode, mixed, regs, mac1, mac0 })
}

pub(super) fn multiply(word: u32, _: u32) -> Option<Op> {
    let regs = mac_regs(word);
    let mode = mode(word, if regs.pair { MULT_PAIR_MODES } else { MULT_MODES })?;
    let [halves1, halves0] = mac_halves(word);
    let unit = |write: super::Field, (half0, half1)| MultUnit { write: write.flag(word), half0, half1 };
    let mult1 = unit(mac::WRITE1, halves1);
    let mult0 = unit(mac::WRITE0, halves0);
    (mult1.write || mult0.write).then_some(Op::Mult { mode, mixed: mac::MIXED.flag(word), regs, mult1, mult0 })
}

pub(super) fn arithmetic(word: u32, _: u32) -> Option<Op> {
    let op = alu::OP.code(word);
    let (s, x) = (alu::S.flag(word), alu::X.flag(word));
    let half = Half::from_bits(alu::HIGH.code(word));
    let high = half == Half::Hi;
    let reg = |field: super::Field| Dreg::from_bits(field.code(word));
    let (dst0, dst1, src0, src1) = (reg(alu::DST0), reg(alu::DST1), reg(alu::SRC0), reg(alu::SRC1));
    // Two accumulators are told apart by one bit, `op` or the half bit.
    let acc = |bit: u16| Acc::from_bits(bit);
    let overflow = Overflow::from_code(alu::OVERFLOW.code(word))?;
    // Odd opcodes subtract; the higher bit chooses between operand halves or kinds of rounding.
    let sub = op & 1 != 0;
    let code = alu::CODE.get(word);

    Some(match (code, op) {
        (0, _) => Op::VecAdd { op: VecOp::from_code(op)?, dst: dst0, src0, src1, saturate: s, cross: x },
        (1, _) => Op::VecAddSub {
            crossed_signs: high,
            sum: dst1,
            difference: dst0,
            src0,
            src1,
            saturate: s,
            cross: x,
            scale: VecScale::from_code(op)?,
        },
        (2 | 3, _) => Op::AddHalf {
            sub: code == 3,
            dst: dst0.half(half),
            src0: src0.half(Half::from_bits(op >> 1)),
            src1: src1.half(Half::from_bits(op)),
            overflow,
        },
        (4, 0 | 1) => Op::Add { sub, dst: dst0, src0, src1, overflow },
        (4, 2) => Op::AddSub { sum: dst1, difference: dst0, src0, src1, overflow },
        (5, 0 | 1) if !x => Op::AddRound { sub, dst: dst0.half(half), src0, src1, round: RoundAt::Rnd12 },
        (5, 2 | 3) if x => Op::AddRound { sub, dst: dst0.half(half), src0, src1, round: RoundAt::Rnd20 },
        (6 | 7, 0) => Op::Max { vector: code == 6, dst: dst0, src0, src1 },
        (6 | 7, 1) => Op::Min { vector: code == 6, dst: dst0, src0, src1 },
        (6 | 7, 2) => Op::Abs { vector: code == 6, dst: dst0, src: src0 },
        (7, 3) if !high => Op::Neg { dst: dst0, src: src0, saturate: s },
        (8, 3) => Op::AccCopy { dst: acc(u16::from(s)) },
        (8, _) if s => Op::AccSaturate(Accs::from_code(op)?),
        (8, _) => Op::AccClear(Accs::from_code(op)?),
        (9, 0 | 2) if s => Op::AccSet { dst: acc(op >> 1), src: src0 },
        (9, 0 | 2) => Op::AccSetHalf { dst: acc(op >> 1), src: src0.half(half) },
        (9, 1 | 3) if !s => Op::AccSetExt { dst: acc(op >> 1), src: src0 },
        (10, 0 | 1) => Op::AccGetExt { dst: dst0, src: acc(op) },
        (11, 0) => Op::AccAccumulateTo { dst: dst0 },
        (11, 1) => Op::AccAccumulateToHalf { dst: dst0.half(half) },
        (11, _) => Op::AccAccumulate { sub, w32: s },
        (12, 0) => Op::SignMultiply { dst: dst0, src0, src1 },
        (12, 1) => Op::AccAddHalves { from_a1: dst1, from_a0: dst0 },
        (12, 3) => Op::Round { dst: dst0.half(half), src: src0 },
        (13, _) => Op::Search { dst1, dst0, src: src0, mode: SearchMode::from_code(op)? },
        (14, 0 | 1) => Op::AccNeg { dst: acc(half.code()), src: acc(op) },
        (14, 3) if !high => Op::AccNegBoth,
        (15, 3) if !high => Op::VecNeg { dst: dst0, src: src0 },
        (16, 0 | 1) => Op::AccAbs { dst: acc(half.code()), src: acc(op) },
        (16, 3) if !high => Op::AccAbsBoth,
        (17, 0 | 1) => Op::AccAddSub { sum: dst1, difference: dst0, minuend: acc(1 - op), overflow },
        (18, 0) => Op::Saa { src0, src1, reversed: s },
        (18, 3) => Op::Disalgnexcpt,
        (20, 0 | 1) => Op::ByteAverage { dst: dst0, src0, src1, truncate: op == 1, reversed: s },
        (21, 0 | 1) => Op::ByteAdd { sub, dst1, dst0, src0, src1, reversed: s },
        (22, 0 | 1) => Op::ByteAverage4 { dst: dst0, src0, src1, truncate: op == 1, half, reversed: s },
        (23, 0) => Op::ByteAddClip { dst: dst0, src0, src1, half, reversed: s },
        (24, 0) => Op::BytePack { dst: dst0, src0, src1 },
        (24, 1) => Op::ByteUnpack { dst1, dst0, src: src0, reversed: s },
        _ => return None,
    })
}
