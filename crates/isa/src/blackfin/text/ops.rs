//! The text of each operation.

use super::super::insn::Op;
use super::super::operands::*;
use super::super::regs::{Acc, AllReg, DPreg, Half};
use super::names::{
    Hex, Pair, direction, mac_mode, options, overflow, saturate_cross, search, shift, status_bit, when,
};
use super::{Constants, Names};
use crate::Svma;

/// The operation without its comment and semicolon.
pub(super) fn body(op: &Op, at: u32, name: Names<'_>) -> String {
    let place = |target: u32| address(target, name);
    match *op {
        Op::Nop => "NOP".into(),
        Op::Mnop => "MNOP".into(),
        Op::Return(ReturnFrom::Subroutine) => "RTS".into(),
        Op::Return(ReturnFrom::Interrupt) => "RTI".into(),
        Op::Return(ReturnFrom::Exception) => "RTX".into(),
        Op::Return(ReturnFrom::Nmi) => "RTN".into(),
        Op::Return(ReturnFrom::Emulation) => "RTE".into(),
        Op::Idle => "IDLE".into(),
        Op::Csync => "CSYNC".into(),
        Op::Ssync => "SSYNC".into(),
        Op::Emuexcpt => "EMUEXCPT".into(),
        Op::Cli(reg) => format!("CLI {reg}"),
        Op::Sti(reg) => format!("STI {reg}"),
        Op::JumpReg(reg) => format!("JUMP ({reg})"),
        Op::CallReg(reg) => format!("CALL ({reg})"),
        Op::CallPcReg(reg) => format!("CALL (PC + {reg})"),
        Op::JumpPcReg(reg) => format!("JUMP (PC + {reg})"),
        Op::Raise(number) => format!("RAISE {number:#x}"),
        Op::Excpt(number) => format!("EXCPT {number:#x}"),
        Op::Testset(reg) => format!("TESTSET ({reg})"),
        Op::Cache { op, ptr, post_increment } => {
            let op = match op {
                CacheOp::Prefetch => "PREFETCH",
                CacheOp::FlushInv => "FLUSHINV",
                CacheOp::Flush => "FLUSH",
                CacheOp::Iflush => "IFLUSH",
            };
            format!("{op}[{ptr}{}]", when(post_increment, "++"))
        }
        Op::Branch { cc, predicted, target } => {
            format!("IF {}CC JUMP {}{}", when(!cc, "!"), place(target), when(predicted, " (BP)"))
        }
        Op::JumpShort { target } => format!("JUMP.S {}", place(target)),
        Op::JumpLong { target } => format!("JUMP.L {}", place(target)),
        Op::Call { target } => format!("CALL {}", place(target)),
        Op::LoopSetup { which, first, last, count } => {
            // objdump takes the offsets for signed, which they are not.
            let first = place(at.wrapping_add(sign_extend(first.wrapping_sub(at), 5) as u32));
            let last = place(at.wrapping_add(sign_extend(last.wrapping_sub(at), 11) as u32));
            let count = match count {
                LoopCount::Keep => String::new(),
                LoopCount::Reg(reg) => format!(" = {reg}"),
                LoopCount::HalfReg(reg) => format!(" = {reg} >> 0x1"),
            };
            format!("LSETUP({first}, {last}) {which}{count}")
        }
        Op::Link { frame } => format!("LINK {frame:#x}"),
        Op::Unlink => "UNLINK".into(),

        Op::Push(reg) => format!("[--SP] = {reg}"),
        Op::Pop(reg) => format!("{reg} = [SP++]"),
        Op::PushMultiple(range) => format!("[--SP] = {}", register_range(range)),
        Op::PopMultiple(range) => format!("{} = [SP++]", register_range(range)),

        Op::Move { dst, src } => format!("{dst} = {src}"),
        Op::MoveIf { cc, dst, src } => format!("IF {}CC {dst} = {src}", when(!cc, "!")),
        Op::MoveImm { dst, imm } => format!("{dst} = {} (X)", Hex(imm.into())),
        Op::AddImm { dst, imm } => format!("{dst} += {}", Hex(imm.into())),
        Op::LoadImm { dst, part: ImmPart::Lo, value } => format!("{dst}.L = {value:#x}"),
        Op::LoadImm { dst, part: ImmPart::Hi, value } => format!("{dst}.H = {value:#x}"),
        Op::LoadImm { dst, part: ImmPart::ZeroExtended, value } => format!("{dst} = {value:#x} (Z)"),
        Op::LoadImm { dst, part: ImmPart::SignExtended, value } => {
            format!("{dst} = {} (X)", Hex((value as i32).into()))
        }
        Op::Compare { relation, left, right } => comparison(relation, left, &right.to_string()),
        Op::CompareImm { relation, left, right } => comparison(relation, left, &Hex(right.into()).to_string()),
        Op::CompareAcc(CompareAcc::Equal) => "CC = A0 == A1".into(),
        Op::CompareAcc(CompareAcc::Less) => "CC = A0 < A1".into(),
        Op::CompareAcc(CompareAcc::LessOrEqual) => "CC = A0 <= A1".into(),
        Op::MoveFromCc(reg) => format!("{reg} = CC"),
        Op::MoveToCc(reg) => format!("CC = {reg}"),
        Op::NegateCc => "CC = !CC".into(),
        Op::CcBit { op, bit, to_cc } => {
            let op = match op {
                CcBitOp::Assign => "",
                CcBitOp::Or => "|",
                CcBitOp::And => "&",
                CcBitOp::Xor => "^",
            };
            let bit = status_bit(bit);
            if to_cc { format!("CC {op}= {bit}") } else { format!("{bit} {op}= CC") }
        }

        Op::Alu2 { op, dst, src } => match op {
            Alu2::ShiftArithmetic => format!("{dst} >>>= {src}"),
            Alu2::ShiftRight => format!("{dst} >>= {src}"),
            Alu2::ShiftLeft => format!("{dst} <<= {src}"),
            Alu2::Multiply => format!("{dst} *= {src}"),
            Alu2::AddDouble => format!("{dst} = ({dst} + {src}) << 0x1"),
            Alu2::AddQuadruple => format!("{dst} = ({dst} + {src}) << 0x2"),
            Alu2::Divq => format!("DIVQ ({dst}, {src})"),
            Alu2::Divs => format!("DIVS ({dst}, {src})"),
            Alu2::SignExtendHalf => format!("{dst} = {src}.L (X)"),
            Alu2::ZeroExtendHalf => format!("{dst} = {src}.L (Z)"),
            Alu2::SignExtendByte => format!("{dst} = {src}.B (X)"),
            Alu2::ZeroExtendByte => format!("{dst} = {src}.B (Z)"),
            Alu2::Negate => format!("{dst} = -{src}"),
            Alu2::Not => format!("{dst} =~ {src}"),
        },
        Op::Ptr2 { op, dst, src } => match op {
            Ptr2::Sub => format!("{dst} -= {src}"),
            Ptr2::ShiftLeft2 => format!("{dst} = {src} << 0x2"),
            Ptr2::ShiftRight2 => format!("{dst} = {src} >> 0x2"),
            Ptr2::ShiftRight1 => format!("{dst} = {src} >> 0x1"),
            Ptr2::AddBitReversed => format!("{dst} += {src} (BREV)"),
            Ptr2::AddDouble => format!("{dst} = ({dst} + {src}) << 0x1"),
            Ptr2::AddQuadruple => format!("{dst} = ({dst} + {src}) << 0x2"),
        },
        Op::BitImm { op, dst, bit } => match op {
            BitImm::TestClear => format!("CC = !BITTST ({dst}, {bit:#x})"),
            BitImm::TestSet => format!("CC = BITTST ({dst}, {bit:#x})"),
            BitImm::Set => format!("BITSET ({dst}, {bit:#x})"),
            BitImm::Toggle => format!("BITTGL ({dst}, {bit:#x})"),
            BitImm::Clear => format!("BITCLR ({dst}, {bit:#x})"),
            BitImm::ShiftArithmetic => format!("{dst} >>>= {bit:#x}"),
            BitImm::ShiftRight => format!("{dst} >>= {bit:#x}"),
            BitImm::ShiftLeft => format!("{dst} <<= {bit:#x}"),
        },
        Op::Alu3 { op, dst, src0, src1 } => {
            let op = match op {
                Alu3::Add => "+",
                Alu3::Sub => "-",
                Alu3::And => "&",
                Alu3::Or => "|",
                Alu3::Xor => "^",
            };
            format!("{dst} = {src0} {op} {src1}")
        }
        Op::Ptr3 { op, dst, src0, src1 } => match op {
            Ptr3::Add if src0 == src1 => format!("{dst} = {src0} << 0x1"),
            Ptr3::Add => format!("{dst} = {src0} + {src1}"),
            Ptr3::AddDouble => format!("{dst} = {src0} + ({src1} << 0x1)"),
            Ptr3::AddQuadruple => format!("{dst} = {src0} + ({src1} << 0x2)"),
        },
        Op::DagAdd { dst, by, bit_reversed } => format!("{dst} += {by}{}", when(bit_reversed, " (BREV)")),
        Op::DagSub { dst, by } => format!("{dst} -= {by}"),
        Op::DagAddImm { dst, by } => {
            format!("{dst} {}= {:#x}", if by < 0 { '-' } else { '+' }, by.unsigned_abs())
        }

        Op::Load { what, reg, addr } => load(what, reg, addr),
        Op::Store { what, reg, addr } => store(what, reg, addr),

        Op::Mac { mode, mixed, regs, mac1, mac0 } => multiply_accumulate(mode, mixed, regs, mac1, mac0),
        Op::Mult { mode, mixed, regs, mult1, mult0 } => multiply(mode, mixed, regs, mult1, mult0),

        Op::VecAdd { op, dst, src0, src1, saturate, cross } => {
            let op = match op {
                VecOp::AddAdd => "+|+",
                VecOp::AddSub => "+|-",
                VecOp::SubAdd => "-|+",
                VecOp::SubSub => "-|-",
            };
            format!("{dst} = {src0} {op} {src1}{}", options(&[saturate_cross(saturate, cross)]))
        }
        Op::VecAddSub { crossed_signs, sum, difference, src0, src1, saturate, cross, scale } => {
            let (plus, minus) = if crossed_signs { ("+|-", "-|+") } else { ("+|+", "-|-") };
            let saturation = saturate_cross(saturate, cross);
            let options = match scale {
                VecScale::None => options(&[saturation]),
                VecScale::Reserved => String::new(),
                VecScale::Halve => options(&[saturation, "ASR"]),
                VecScale::Double => options(&[saturation, "ASL"]),
            };
            format!("{sum} = {src0} {plus} {src1}, {difference} = {src0} {minus} {src1}{options}")
        }
        Op::AddHalf { sub, dst, src0, src1, overflow: o } => {
            format!("{dst} = {src0} {} {src1}{}", sign(sub), options(&[overflow(o)]))
        }
        Op::Add { sub, dst, src0, src1, overflow: o } => {
            format!("{dst} = {src0} {} {src1}{}", sign(sub), options(&[overflow(o)]))
        }
        Op::AddSub { sum, difference, src0, src1, overflow: o } => {
            format!("{sum} = {src0} + {src1}, {difference} = {src0} - {src1}{}", options(&[overflow(o)]))
        }
        Op::AccAddSub { sum, difference, minuend, overflow: o } => {
            let other = if minuend == Acc::A0 { Acc::A1 } else { Acc::A0 };
            format!("{sum} = {minuend} + {other}, {difference} = {minuend} - {other}{}", options(&[overflow(o)]))
        }
        Op::AddRound { sub, dst, src0, src1, round } => {
            let round = match round {
                RoundAt::Rnd12 => "RND12",
                RoundAt::Rnd20 => "RND20",
            };
            format!("{dst} = {src0} {} {src1} ({round})", sign(sub))
        }
        Op::Round { dst, src } => format!("{dst} = {src} (RND)"),
        Op::Max { vector, dst, src0, src1 } => format!("{dst} = MAX ({src0}, {src1}){}", when(vector, " (V)")),
        Op::Min { vector, dst, src0, src1 } => format!("{dst} = MIN ({src0}, {src1}){}", when(vector, " (V)")),
        Op::Abs { vector, dst, src } => format!("{dst} = ABS {src}{}", when(vector, " (V)")),
        Op::Neg { dst, src, saturate } => format!("{dst} = -{src} ({})", if saturate { "S" } else { "NS" }),
        Op::VecNeg { dst, src } => format!("{dst} = -{src} (V)"),
        Op::AccClear(Accs::A0) => "A0 = 0".into(),
        Op::AccClear(Accs::A1) => "A1 = 0".into(),
        Op::AccClear(Accs::Both) => "A1 = A0 = 0".into(),
        Op::AccSaturate(Accs::A0) => "A0 = A0 (S)".into(),
        Op::AccSaturate(Accs::A1) => "A1 = A1 (S)".into(),
        Op::AccSaturate(Accs::Both) => "A1 = A1 (S), A0 = A0 (S)".into(),
        Op::AccCopy { dst: Acc::A0 } => "A0 = A1".into(),
        Op::AccCopy { dst: Acc::A1 } => "A1 = A0".into(),
        Op::AccNeg { dst, src } => format!("{dst} = -{src}"),
        Op::AccNegBoth => "A1 = -A1, A0 = -A0".into(),
        Op::AccAbs { dst, src } => format!("{dst} = ABS {src}"),
        Op::AccAbsBoth => "A1 = ABS A1, A0 = ABS A0".into(),
        Op::AccSetHalf { dst, src } => format!("{dst}.{} = {src}", src.half),
        Op::AccSet { dst, src } => format!("{dst} = {src}"),
        Op::AccSetExt { dst, src } => format!("{dst}.X = {src}.L"),
        Op::AccGetExt { dst, src } => format!("{dst}.L = {src}.X"),
        Op::AccAccumulate { sub, w32 } => format!("A0 {}= A1{}", sign(sub), when(w32, " (W32)")),
        Op::AccAccumulateTo { dst } => format!("{dst} = (A0 += A1)"),
        Op::AccAccumulateToHalf { dst } => format!("{dst} = (A0 += A1)"),
        Op::SignMultiply { dst, src0, src1 } => {
            format!("{dst}.H = {dst}.L = SIGN ({src0}.H) * {src1}.H + SIGN ({src0}.L) * {src1}.L")
        }
        Op::AccAddHalves { from_a1, from_a0 } => format!("{from_a1} = A1.L + A1.H, {from_a0} = A0.L + A0.H"),
        Op::Search { dst1, dst0, src, mode } => format!("({dst1}, {dst0}) = SEARCH {src} ({})", search(mode)),
        Op::Saa { src0, src1, reversed } => {
            format!("SAA ({}, {}){}", Pair(src0), Pair(src1), options(&[when(reversed, "R")]))
        }
        Op::Disalgnexcpt => "DISALGNEXCPT".into(),
        Op::ByteAverage { dst, src0, src1, truncate, reversed } => {
            let options = options(&[when(truncate, "T"), when(reversed, "R")]);
            format!("{dst} = BYTEOP1P ({}, {}){options}", Pair(src0), Pair(src1))
        }
        Op::ByteAverage4 { dst, src0, src1, truncate, half, reversed } => {
            let round = match (truncate, half) {
                (false, Half::Lo) => "RNDL",
                (false, Half::Hi) => "RNDH",
                (true, Half::Lo) => "TL",
                (true, Half::Hi) => "TH",
            };
            let options = options(&[round, when(reversed, "R")]);
            format!("{dst} = BYTEOP2P ({}, {}){options}", Pair(src0), Pair(src1))
        }
        Op::ByteAddClip { dst, src0, src1, half, reversed } => {
            let options = options(&[if half == Half::Hi { "HI" } else { "LO" }, when(reversed, "R")]);
            format!("{dst} = BYTEOP3P ({}, {}){options}", Pair(src0), Pair(src1))
        }
        Op::ByteAdd { sub, dst1, dst0, src0, src1, reversed } => {
            let (kind, options) = (if sub { 'M' } else { 'P' }, options(&[when(reversed, "R")]));
            format!("({dst1}, {dst0}) = BYTEOP16{kind} ({}, {}){options}", Pair(src0), Pair(src1))
        }
        Op::BytePack { dst, src0, src1 } => format!("{dst} = BYTEPACK ({src0}, {src1})"),
        Op::ByteUnpack { dst1, dst0, src, reversed } => {
            format!("({dst1}, {dst0}) = BYTEUNPACK {}{}", Pair(src), options(&[when(reversed, "R")]))
        }

        Op::ShiftHalf { op, dst, src, by } => {
            let (keyword, option) = shift(op);
            format!("{dst} = {keyword} {src} BY {by}.L{}", options(&[option]))
        }
        Op::ShiftVec { op, dst, src, by } => {
            let (keyword, option) = shift(op);
            format!("{dst} = {keyword} {src} BY {by}.L{}", options(&["V", option]))
        }
        Op::Shift { op, dst, src, by } => {
            let (keyword, option) = shift(op);
            format!("{dst} = {keyword} {src} BY {by}.L{}", options(&[option]))
        }
        Op::Rotate { dst, src, by } => format!("{dst} = ROT {src} BY {by}.L"),
        Op::ShiftAcc { op, acc, by } => {
            let keyword = match op {
                AccShift::Arithmetic => "ASHIFT",
                AccShift::Logical => "LSHIFT",
                AccShift::Rotate => "ROT",
            };
            format!("{acc} = {keyword} {acc} BY {by}.L")
        }
        Op::Pack { dst, high, low } => format!("{dst} = PACK ({high}, {low})"),
        Op::Signbits { dst, src } => format!("{dst}.L = SIGNBITS {src}"),
        Op::SignbitsHalf { dst, src } => format!("{dst}.L = SIGNBITS {src}"),
        Op::SignbitsAcc { dst, src } => format!("{dst}.L = SIGNBITS {src}"),
        Op::Ones { dst, src } => format!("{dst}.L = ONES {src}"),
        Op::Expadj { vector, dst, src, limit } => {
            format!("{dst}.L = EXPADJ ({src}, {limit}.L){}", when(vector, " (V)"))
        }
        Op::ExpadjHalf { dst, src, limit } => format!("{dst}.L = EXPADJ ({src}, {limit}.L)"),
        Op::Bitmux { src0, src1, dir } => format!("BITMUX ({src0}, {src1}, A0) ({})", direction(dir)),
        Op::VitMax { dst, src, dir } => format!("{dst}.L = VIT_MAX ({src}) ({})", direction(dir)),
        Op::VitMax2 { dst, src1, src0, dir } => format!("{dst} = VIT_MAX ({src1}, {src0}) ({})", direction(dir)),
        Op::Extract { dst, scene, pattern, sign_extend } => {
            format!("{dst} = EXTRACT ({scene}, {pattern}.L) ({})", if sign_extend { 'X' } else { 'Z' })
        }
        Op::Deposit { dst, background, foreground, sign_extend } => {
            format!("{dst} = DEPOSIT ({background}, {foreground}){}", when(sign_extend, " (X)"))
        }
        Op::BxorShift { dst, src } => format!("{dst}.L = CC = BXORSHIFT (A0, {src})"),
        Op::Bxor { dst, src } => format!("{dst}.L = CC = BXOR (A0, {src})"),
        Op::BxorShiftAcc => "A0 = BXORSHIFT (A0, A1, CC)".into(),
        Op::BxorAcc { dst } => format!("{dst}.L = CC = BXOR (A0, A1, CC)"),
        Op::Align { bytes, dst, src1, src0 } => format!("{dst} = ALIGN{} ({src1}, {src0})", u32::from(bytes) * 8),

        Op::ShiftHalfImm { op, dst, src, by } => {
            let option = when(op == Shift::Saturating, "S");
            format!("{dst} = {src} {}{}", half_shift(op, by), options(&[option]))
        }
        Op::ShiftVecImm { op, dst, src, by } => {
            let option = when(op == Shift::Saturating, "S");
            format!("{dst} = {src} {}{}", vector_shift(op, by), options(&["V", option]))
        }
        Op::ShiftImm { op, dst, src, by } => {
            // The saturating form shifts to the left whatever the count.
            let (arrow, option) = match op {
                Shift::Saturating => (left(by), "S"),
                Shift::Arithmetic | Shift::Logical => (half_shift(op, by), ""),
            };
            format!("{dst} = {src} {arrow}{}", options(&[option]))
        }
        Op::RotateImm { dst, src, by } => format!("{dst} = ROT {src} BY {}", Hex(by.into())),
        Op::ShiftAccImm { op, acc, by } => match op {
            AccShift::Arithmetic if by >= 0 => format!("{acc} = {acc} {}", left(by)),
            AccShift::Arithmetic => format!("{acc} = {acc} {}", right(">>>", by)),
            AccShift::Logical => format!("{acc} = {acc} {}", right(">>", by)),
            AccShift::Rotate => format!("{acc} = ROT {acc} BY {}", Hex(by.into())),
        },

        Op::Abort => "ABORT".into(),
        Op::Hlt => "HLT".into(),
        Op::DbgHalt => "DBGHALT".into(),
        Op::Dbg => "DBG".into(),
        Op::DbgAcc(acc) => format!("DBG {acc}"),
        Op::DbgReg(reg) => format!("DBG {reg}"),
        Op::DbgCmplx(reg) => format!("DBGCMPLX ({reg})"),
        Op::Prnt(reg) => format!("PRNT {reg}"),
        Op::OutcReg(reg) => format!("OUTC {reg}"),
        Op::OutcImm(char) => format!("OUTC {char:#x}"),
        Op::Assert { part, reg, expected } => match part {
            // Only 32 registers have halves by name; objdump takes the others for the first ones.
            AssertPart::Lo => format!("DBGA ({}.L, {expected:#x})", AllReg::from_bits(reg.code() & 31)),
            AssertPart::Hi => format!("DBGA ({}.H, {expected:#x})", AllReg::from_bits(reg.code() & 31)),
            AssertPart::AllLo => format!("DBGAL ({reg}, {expected:#x})"),
            AssertPart::AllHi => format!("DBGAH ({reg}, {expected:#x})"),
        },
    }
}

/// What objdump adds behind an instruction that stands alone, between `/*` and ` */`.
pub(super) fn comment(op: &Op, constants: &Constants, name: Names<'_>) -> Option<String> {
    Some(match *op {
        Op::BitImm { op, bit, .. } if op.code() < BitImm::ShiftArithmetic.code() => format!(" bit{bit:3}"),
        Op::MoveImm { dst, imm } => format!("\t\t{dst}={:#x}({imm:3})", i32::from(imm)),
        Op::AddImm { imm, .. } => format!(" ({imm:3})"),
        Op::DagAddImm { by, .. } => format!(" (  {})", by.unsigned_abs()),
        Op::Link { frame } => format!(" ({frame})"),
        Op::LoadImm { dst, part, value } => {
            /// Here the memory-mapped registers start.
            const MMR: u32 = 0xFFC0_0000;
            let all = constants.get(dst);
            let (lead, pointer) = match part {
                ImmPart::Lo | ImmPart::Hi => (format!(" ({:3})\t", value as u16 as i16), dst.is_preg() && all < MMR),
                ImmPart::SignExtended | ImmPart::ZeroExtended => ("\t\t".to_owned(), false),
            };
            let decimal = if pointer { String::new() } else { format!("({:3})", all as i32) };
            format!("{lead}{dst}={}{decimal}", address(all, name))
        }
        _ => return None,
    })
}

/// `0x1234`, and the name if there is one.
fn address(target: u32, name: Names<'_>) -> String {
    match name(Svma(u64::from(target))) {
        Some(name) => format!("{target:#x} <{name}>"),
        None => format!("{target:#x}"),
    }
}

fn sign(sub: bool) -> char {
    if sub { '-' } else { '+' }
}

/// The low `bits` of `value`.
fn sign_extend(value: u32, bits: u32) -> i32 {
    let up = 32 - bits;
    (value << up) as i32 >> up
}

/// The 6-bit field of a shift count, as it stands there.
fn left(by: i8) -> String {
    format!("<< {:#x}", by & 63)
}

/// The 6-bit field of a shift count, negated.
fn right(arrow: &str, by: i8) -> String {
    format!("{arrow} {:#x}", -by & 63)
}

fn half_shift(op: Shift, by: i8) -> String {
    match op {
        Shift::Arithmetic => right(">>>", by),
        Shift::Saturating | Shift::Logical if by >= 0 => left(by),
        Shift::Saturating => right(">>>", by),
        Shift::Logical => right(">>", by),
    }
}

/// As [`half_shift`], but objdump reads two of the counts as signed numbers of 5 bits.
fn vector_shift(op: Shift, by: i8) -> String {
    let signed = |count: i8| Hex(sign_extend(count as u32, 5).into());
    match op {
        Shift::Saturating if by < 0 => format!(">>> {}", signed(-by)),
        Shift::Logical if by >= 0 => format!("<< {}", signed(by)),
        _ => half_shift(op, by),
    }
}

fn register_range(range: RegRange) -> String {
    match (range.dregs, range.pregs) {
        (Some(d), Some(p)) => format!("(R7:{}, P5:{})", d.code(), p.code()),
        (Some(d), None) => format!("(R7:{})", d.code()),
        (None, Some(p)) => format!("(P5:{})", p.code()),
        (None, None) => "()".into(),
    }
}

fn comparison(relation: Compare, left: DPreg, right: &str) -> String {
    let (sign, option) = match relation {
        Compare::Equal => ("==", ""),
        Compare::Less => ("<", ""),
        Compare::LessOrEqual => ("<=", ""),
        Compare::LessUnsigned => ("<", " (IU)"),
        Compare::LessOrEqualUnsigned => ("<=", " (IU)"),
    };
    format!("CC = {left} {sign} {right}{option}")
}

fn load(what: Load, reg: DPreg, addr: Address) -> String {
    let halves = matches!(what, Load::Lo | Load::Hi);
    let place = place(addr, halves);
    match what {
        Load::Word => format!("{reg} = {place}"),
        Load::HalfZero => format!("{reg} = W{place} (Z)"),
        Load::HalfSign => format!("{reg} = W{place} (X)"),
        Load::ByteZero => format!("{reg} = B{place} (Z)"),
        Load::ByteSign => format!("{reg} = B{place} (X)"),
        Load::Lo => format!("{reg}.L = W{place}"),
        Load::Hi => format!("{reg}.H = W{place}"),
    }
}

fn store(what: Store, reg: DPreg, addr: Address) -> String {
    let halves = matches!(what, Store::Lo | Store::Hi);
    let place = place(addr, halves);
    match what {
        Store::Word => format!("{place} = {reg}"),
        Store::Half => format!("W{place} = {reg}"),
        Store::Byte => format!("B{place} = {reg}"),
        Store::Lo => format!("W{place} = {reg}.L"),
        Store::Hi => format!("W{place} = {reg}.H"),
    }
}

/// The address in brackets. `halves`: of a register half, where a pointer that is its own index stands alone.
fn place(addr: Address, halves: bool) -> String {
    match addr {
        Address::At(base) => format!("[{base}]"),
        Address::PostIncrement(base) => format!("[{base}++]"),
        Address::PostDecrement(base) => format!("[{base}--]"),
        Address::Offset { base, offset, form: OffsetForm::Frame } => format!("[{base} {}]", Hex(offset.into())),
        Address::Offset { base, offset, .. } => format!("[{base} + {}]", Hex(offset.into())),
        Address::PostAdd { base, index } if halves && base == index => format!("[{base}]"),
        Address::PostAdd { base, index } => format!("[{base} ++ {index}]"),
        Address::DagAt(base) => format!("[{base}]"),
        Address::DagPostIncrement(base) => format!("[{base}++]"),
        Address::DagPostDecrement(base) => format!("[{base}--]"),
        Address::DagPostAdd { base, by } => format!("[{base} ++ {by}]"),
    }
}

/// Joins what the two units do. `(M)` belongs to unit 1 and stands behind it, or among the options if it is alone.
fn units(mode: MacMode, mixed: bool, unit1: Option<String>, unit0: Option<String>) -> String {
    let mode = mac_mode(mode);
    match (unit1, unit0) {
        (Some(unit1), Some(unit0)) => format!("{unit1}{}, {unit0}{}", when(mixed, " (M)"), options(&[mode])),
        (unit1, unit0) => {
            let unit = unit1.or(unit0).unwrap_or_default();
            format!("{unit}{}", options(&[when(mixed, "M"), mode]))
        }
    }
}

/// The data register or half that a unit writes.
fn result(regs: MacRegs, acc: Acc) -> String {
    match (regs.pair, acc) {
        (true, Acc::A1) => regs.dst.next().to_string(),
        (true, Acc::A0) => regs.dst.to_string(),
        (false, Acc::A1) => format!("{}.H", regs.dst),
        (false, Acc::A0) => format!("{}.L", regs.dst),
    }
}

fn product(regs: MacRegs, half0: Half, half1: Half) -> String {
    format!("{} * {}", regs.src0.half(half0), regs.src1.half(half1))
}

fn multiply_accumulate(mode: MacMode, mixed: bool, regs: MacRegs, mac1: MacUnit, mac0: MacUnit) -> String {
    let unit = |unit: MacUnit, acc: Acc| -> Option<String> {
        let product = product(regs, unit.half0, unit.half1);
        let work = match unit.op {
            MacOp::Assign => Some(format!("{acc} = {product}")),
            MacOp::Add => Some(format!("{acc} += {product}")),
            MacOp::Sub => Some(format!("{acc} -= {product}")),
            MacOp::Keep => None,
        };
        match (unit.write, work) {
            (false, work) => work,
            (true, None) => Some(format!("{} = {acc}", result(regs, acc))),
            (true, Some(work)) => Some(format!("{} = ({work})", result(regs, acc))),
        }
    };
    units(mode, mixed, unit(mac1, Acc::A1), unit(mac0, Acc::A0))
}

fn multiply(mode: MacMode, mixed: bool, regs: MacRegs, mult1: MultUnit, mult0: MultUnit) -> String {
    let unit = |unit: MultUnit, acc: Acc| {
        unit.write.then(|| format!("{} = {}", result(regs, acc), product(regs, unit.half0, unit.half1)))
    };
    units(mode, mixed, unit(mult1, Acc::A1), unit(mult0, Acc::A0))
}
