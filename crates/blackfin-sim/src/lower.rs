//! From decoded instructions to [`Uop`]s.

use crate::uop::{Bundle, Mem, R, Slot, Uop};
use crate::video::skips_alignment;
use lancet_isa::blackfin::{
    Address, AllReg, Alu2, Alu3, BfInsn, BitImm, Compare, DPreg, ImmPart, Load, Op, Preg, ReturnFrom, Store,
};

/// How an instruction is kept.
pub enum Lowered {
    Uop(Uop),
    Bundle(Bundle),
}

/// `at_loop_bottom`: a hardware loop may end with this instruction, so what follows it is not fixed.
pub fn lower(insn: &BfInsn, at_loop_bottom: bool) -> Lowered {
    match insn.slots {
        None => Lowered::Uop(single(insn, at_loop_bottom)),
        Some(slots) => match (Slot::from_op(slots[0]), Slot::from_op(slots[1])) {
            (Some(Slot::Nop), Some(Slot::Nop)) => Lowered::Uop(single(insn, at_loop_bottom)),
            (Some(first), Some(second)) => Lowered::Bundle(Bundle {
                op: insn.op,
                slots: [first, second],
                skip_alignment: skips_alignment(&insn.op),
            }),
            _ => Lowered::Uop(Uop::Slow),
        },
    }
}

fn single(insn: &BfInsn, at_loop_bottom: bool) -> Uop {
    let back = insn.end();
    match insn.op {
        Op::Call { .. } | Op::CallReg(_) | Op::CallPcReg(_) if at_loop_bottom => Uop::Slow,
        // The synchronizing ones only cost time.
        Op::Nop | Op::Mnop | Op::Csync | Op::Ssync | Op::Emuexcpt => Uop::Nop,
        Op::Return(ReturnFrom::Subroutine) => Uop::ReturnSubroutine,
        Op::JumpReg(to) => Uop::JumpReg(to),
        Op::CallReg(to) => Uop::CallReg { to, back },
        Op::CallPcReg(by) => Uop::CallOffset { by, pc: insn.at },
        Op::JumpPcReg(by) => Uop::JumpOffset { by, pc: insn.at },
        Op::Branch { cc, target, .. } => Uop::Branch { cc, target },
        Op::JumpShort { target } | Op::JumpLong { target } => Uop::Jump { target },
        Op::Call { target } => Uop::Call { target, back },
        Op::LoopSetup { which, first, last, count } => Uop::LoopSetup { which, count, top: first, bottom: last },
        Op::Link { frame } => Uop::Link { frame },
        Op::Unlink => Uop::Unlink,
        Op::Push(AllReg::Rets) => Uop::PushRets,
        Op::Pop(AllReg::Rets) => Uop::PopRets,
        Op::Push(reg) if is_plain(reg) => Uop::PushReg(reg),
        Op::Pop(reg) if is_plain(reg) => Uop::PopReg(reg),
        Op::Push(reg) => array_reg(reg).map_or(Uop::Slow, Uop::Push),
        Op::PushMultiple(range) => Uop::PushMultiple { first_d: first(range.dregs), first_p: first(range.pregs) },
        Op::PopMultiple(range) => Uop::PopMultiple { first_d: first(range.dregs), first_p: first(range.pregs) },
        Op::Move { dst, src } => register_move(dst, src),
        Op::MoveIf { cc, dst, src } => Uop::MoveIf { cc, dst, src },
        Op::MoveImm { dst, imm } => Uop::Const { dst: R(dst as u8), value: imm as u32 },
        Op::AddImm { dst, imm } => match (dst.as_dreg(), dst.as_preg()) {
            (Some(dst), _) => Uop::AddImm { dst, imm },
            (_, Some(dst)) => Uop::AddImmP { dst, imm },
            _ => Uop::Slow,
        },
        Op::LoadImm { dst, part, value } => match (array_reg(dst), part) {
            (Some(dst), ImmPart::Lo) => Uop::SetLow { dst, value: value as u16 },
            (Some(dst), ImmPart::Hi) => Uop::SetHigh { dst, value: value as u16 },
            (Some(dst), ImmPart::SignExtended | ImmPart::ZeroExtended) => Uop::Const { dst, value },
            (None, _) => Uop::Slow,
        },
        Op::Compare { relation, left, right } => compare(relation, left, right),
        Op::CompareImm { relation, left, right } => compare_imm(relation, left, right),
        Op::MoveFromCc(reg) => Uop::MoveFromCc(reg),
        Op::MoveToCc(reg) => Uop::MoveToCc(reg),
        Op::NegateCc => Uop::NegateCc,
        Op::CcBit { op, bit, to_cc } => Uop::CcBit { op, bit, to_cc },
        Op::Alu2 { op, dst, src } => match op {
            Alu2::Multiply => Uop::Multiply { dst, src },
            Alu2::SignExtendHalf => Uop::SignExtendHalf { dst, src },
            Alu2::ZeroExtendHalf => Uop::ZeroExtendHalf { dst, src },
            Alu2::ZeroExtendByte => Uop::ZeroExtendByte { dst, src },
            _ => Uop::Alu2 { op, dst, src },
        },
        Op::Ptr2 { op, dst, src } => Uop::Ptr2 { op, dst, src },
        Op::BitImm { op, dst, bit } => match op {
            BitImm::TestClear => Uop::BitTest { set: false, reg: dst, bit },
            BitImm::TestSet => Uop::BitTest { set: true, reg: dst, bit },
            BitImm::ShiftArithmetic => Uop::ShiftRightArithmeticImm { dst, by: bit },
            BitImm::ShiftRight => Uop::ShiftRightImm { dst, by: bit },
            BitImm::ShiftLeft => Uop::ShiftLeftImm { dst, by: bit },
            _ => Uop::BitImm { op, dst, bit },
        },
        Op::Alu3 { op, dst, src0: a, src1: b } => match op {
            Alu3::Add => Uop::Add { dst, a, b },
            Alu3::Sub => Uop::Sub { dst, a, b },
            Alu3::And => Uop::And { dst, a, b },
            Alu3::Or => Uop::Or { dst, a, b },
            Alu3::Xor => Uop::Xor { dst, a, b },
        },
        // The opcodes are 5, 6 and 7: shifts by 0, 1 and 2.
        Op::Ptr3 { op, dst, src0: a, src1: b } => Uop::AddP { dst, a, b, shift: (op.code() - 5) as u8 },
        Op::DagAdd { dst, by, bit_reversed: true } => Uop::DagAddBitReversed { dst, by },
        Op::DagAdd { dst, by, bit_reversed: false } => Uop::DagAdd { dst, by },
        Op::DagSub { dst, by } => Uop::DagSub { dst, by },
        Op::DagAddImm { dst, by } if by < 0 => Uop::DagSubImm { dst, by: by.unsigned_abs() },
        Op::DagAddImm { dst, by } => Uop::DagAddImm { dst, by: by.unsigned_abs() },
        Op::Load { what, reg, addr } => load(what, reg, addr),
        Op::Store { what, reg, addr } => store(what, reg, addr),
        Op::Return(_)
        | Op::Idle
        | Op::Cli(_)
        | Op::Sti(_)
        | Op::Raise(_)
        | Op::Excpt(_)
        | Op::Testset(_)
        | Op::Cache { .. }
        | Op::Pop(_)
        | Op::Abort
        | Op::Hlt
        | Op::DbgHalt
        | Op::Dbg
        | Op::DbgAcc(_)
        | Op::DbgReg(_)
        | Op::DbgCmplx(_)
        | Op::Prnt(_)
        | Op::OutcReg(_)
        | Op::OutcImm(_)
        | Op::Assert { .. } => Uop::Slow,
        op => Uop::Dsp(op),
    }
}

/// Data and pointer registers and those of the address generators.
fn array_reg(reg: AllReg) -> Option<R> {
    (reg.code() < 32).then(|| R(reg.code() as u8))
}

/// Registers outside the array that need no checks: not the supervisor's, not the cycle counter, and not LB, of which the
/// code cache must know.
fn is_plain(reg: AllReg) -> bool {
    reg.is_accumulator() || matches!(reg, AllReg::Astat | AllReg::Lc0 | AllReg::Lc1 | AllReg::Lt0 | AllReg::Lt1)
}

fn register_move(dst: AllReg, src: AllReg) -> Uop {
    match (array_reg(dst), array_reg(src)) {
        (Some(dst), Some(src)) => Uop::Move { dst, src },
        (Some(dst), None) => match src {
            AllReg::Astat => match DPreg::from_code(u16::from(dst.0)).and_then(DPreg::as_dreg) {
                Some(dst) => Uop::FromAstat(dst),
                None => Uop::Slow,
            },
            AllReg::Rets => Uop::FromRets(dst),
            AllReg::A0X => Uop::FromAccExt { dst, acc: 0 },
            AllReg::A1X => Uop::FromAccExt { dst, acc: 1 },
            AllReg::A0W => Uop::FromAccWord { dst, acc: 0 },
            AllReg::A1W => Uop::FromAccWord { dst, acc: 1 },
            AllReg::Lc0 => Uop::FromLoopCount { dst, which: 0 },
            AllReg::Lc1 => Uop::FromLoopCount { dst, which: 1 },
            _ => Uop::Slow,
        },
        (None, Some(src)) => match dst {
            AllReg::Astat => Uop::ToAstat(src),
            AllReg::Rets => Uop::ToRets(src),
            AllReg::A0X => Uop::ToAccExt { acc: 0, src },
            AllReg::A1X => Uop::ToAccExt { acc: 1, src },
            AllReg::A0W => Uop::ToAccWord { acc: 0, src },
            AllReg::A1W => Uop::ToAccWord { acc: 1, src },
            AllReg::Lc0 => Uop::ToLoopCount { which: 0, src },
            AllReg::Lc1 => Uop::ToLoopCount { which: 1, src },
            _ => Uop::Slow,
        },
        (None, None) => Uop::Slow,
    }
}

/// The first register of a range that is pushed, or one behind the last if there is none.
fn first<T: Copy + Into<DPreg>>(reg: Option<T>) -> u8 {
    reg.map_or(8, |reg| (reg.into() as DPreg).code() as u8 & 7)
}

fn compare(relation: Compare, left: DPreg, right: DPreg) -> Uop {
    if let (Some(left), Some(right)) = (left.as_dreg(), right.as_dreg()) {
        return match relation {
            Compare::Equal => Uop::Equal { left, right },
            Compare::Less => Uop::Less { left, right },
            Compare::LessOrEqual => Uop::LessOrEqual { left, right },
            Compare::LessUnsigned => Uop::LessUnsigned { left, right },
            Compare::LessOrEqualUnsigned => Uop::LessOrEqualUnsigned { left, right },
        };
    }
    match (left.as_preg(), right.as_preg()) {
        (Some(left), Some(right)) => Uop::ComparePointers { relation, left, right },
        _ => Uop::Slow,
    }
}

fn compare_imm(relation: Compare, left: DPreg, right: i8) -> Uop {
    if let Some(left) = left.as_dreg() {
        return match relation {
            Compare::Equal => Uop::EqualImm { left, right },
            Compare::Less => Uop::LessImm { left, right },
            Compare::LessOrEqual => Uop::LessOrEqualImm { left, right },
            Compare::LessUnsigned => Uop::LessUnsignedImm { left, right },
            Compare::LessOrEqualUnsigned => Uop::LessOrEqualUnsignedImm { left, right },
        };
    }
    match left.as_preg() {
        Some(left) => Uop::ComparePointerImm { relation, left, right },
        None => Uop::Slow,
    }
}

/// Where an access goes, if that is a pointer with an offset, before or after.
enum Simple {
    Offset(Preg, i32),
    Post(Preg, i32),
}

fn simple(addr: Address, width: i32) -> Option<Simple> {
    match addr {
        Address::At(base) => Some(Simple::Offset(base, 0)),
        Address::Offset { base, offset, .. } => Some(Simple::Offset(base, offset)),
        Address::PostIncrement(base) => Some(Simple::Post(base, width)),
        Address::PostDecrement(base) => Some(Simple::Post(base, -width)),
        _ => None,
    }
}

/// How many bytes a load reads.
pub fn load_width(what: Load) -> u32 {
    match what {
        Load::Word => 4,
        Load::HalfZero | Load::HalfSign | Load::Lo | Load::Hi => 2,
        Load::ByteZero | Load::ByteSign => 1,
    }
}

/// How many bytes a store writes.
pub fn store_width(what: Store) -> u32 {
    match what {
        Store::Word => 4,
        Store::Half | Store::Lo | Store::Hi => 2,
        Store::Byte => 1,
    }
}

fn load(what: Load, reg: DPreg, addr: Address) -> Uop {
    match (what, simple(addr, load_width(what) as i32)) {
        (Load::Word, Some(Simple::Offset(base, offset))) => Uop::LoadWord(Mem { reg, base, offset }),
        (Load::HalfZero, Some(Simple::Offset(base, offset))) => Uop::LoadHalfZero(Mem { reg, base, offset }),
        (Load::HalfSign, Some(Simple::Offset(base, offset))) => Uop::LoadHalfSign(Mem { reg, base, offset }),
        (Load::ByteZero, Some(Simple::Offset(base, offset))) => Uop::LoadByteZero(Mem { reg, base, offset }),
        (Load::ByteSign, Some(Simple::Offset(base, offset))) => Uop::LoadByteSign(Mem { reg, base, offset }),
        (Load::Word, Some(Simple::Post(base, offset))) => Uop::LoadWordPost(Mem { reg, base, offset }),
        (Load::HalfZero, Some(Simple::Post(base, offset))) => Uop::LoadHalfZeroPost(Mem { reg, base, offset }),
        (Load::HalfSign, Some(Simple::Post(base, offset))) => Uop::LoadHalfSignPost(Mem { reg, base, offset }),
        (Load::ByteZero, Some(Simple::Post(base, offset))) => Uop::LoadByteZeroPost(Mem { reg, base, offset }),
        (Load::ByteSign, Some(Simple::Post(base, offset))) => Uop::LoadByteSignPost(Mem { reg, base, offset }),
        _ => Uop::Load { what, reg, addr },
    }
}

fn store(what: Store, reg: DPreg, addr: Address) -> Uop {
    match (what, simple(addr, store_width(what) as i32)) {
        (Store::Word, Some(Simple::Offset(base, offset))) => Uop::StoreWord(Mem { reg, base, offset }),
        (Store::Half, Some(Simple::Offset(base, offset))) => Uop::StoreHalf(Mem { reg, base, offset }),
        (Store::Byte, Some(Simple::Offset(base, offset))) => Uop::StoreByte(Mem { reg, base, offset }),
        (Store::Word, Some(Simple::Post(base, offset))) => Uop::StoreWordPost(Mem { reg, base, offset }),
        (Store::Half, Some(Simple::Post(base, offset))) => Uop::StoreHalfPost(Mem { reg, base, offset }),
        (Store::Byte, Some(Simple::Post(base, offset))) => Uop::StoreBytePost(Mem { reg, base, offset }),
        _ => Uop::Store { what, reg, addr },
    }
}
