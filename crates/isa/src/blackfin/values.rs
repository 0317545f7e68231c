//! What the common integer instructions compute, for slicing.
//!
//! Registers are 32 bits wide; [`Expr`] counts in 64. Sums are left as they are, so that addresses stay sums, and are
//! cut to 32 bits where the difference shows: in comparisons and before a shift.
//!
//! CC has one normal form: it is set exactly when `COMPARED` is below `COMPARED_TO`, unsigned. Every comparison can be
//! brought into it (`a <= b` is `a < b + 1`, `a == b` is `a - b < 1`, signed ones move by 2^31), so a branch needs not
//! know which comparison it follows.

use super::facts::{CC, FLAGS, FP, RETS, SP, number};
use super::insn::{BfInsn, Op};
use super::operands::*;
use super::regs::{AllReg, DPreg, Preg};
use super::{Blackfin, decode, effects};
use crate::regs::Reg;
use crate::value::{Expr, Guard, Place, Relation, Set, Values};
use crate::{Mentions, Semantic, Svma};

/// How far apart the two halves of a constant may be loaded.
const HALVES_APART: usize = 8;

impl Semantic for Blackfin {
    fn values(&self, code: &[u8], at: Svma) -> Values {
        let mut values = Values::default();
        if let Ok(insn) = decode(code, at.0 as u32) {
            for op in insn.ops() {
                lift(op, &mut values);
            }
            follow_cc(&insn, &mut values);
        }
        values
    }

    fn jump_target(&self, code: &[u8], at: Svma) -> Option<Expr> {
        match decode(code, at.0 as u32).ok()?.op {
            Op::JumpReg(reg) | Op::CallReg(reg) => Some(read(reg)),
            Op::JumpPcReg(reg) | Op::CallPcReg(reg) => Some(read(reg).plus(Expr::Const(at.0))),
            _ => None,
        }
    }

    fn guard(&self, code: &[u8], at: Svma) -> Option<Guard> {
        let Op::Branch { cc, .. } = decode(code, at.0 as u32).ok()?.op else { return None };
        let relation = if cc { Relation::Below } else { Relation::AboveOrEqual };
        Some(Guard { relation, left: Expr::Reg(Reg::COMPARED), right: Expr::Reg(Reg::COMPARED_TO) })
    }

    fn may_call_system(&self, _: &[u8]) -> bool {
        true
    }

    /// Addresses are loaded in halves, which bytes alone do not tell from numbers.
    fn likely_addresses(&self, _: &[u8], _: Svma, _: &mut dyn FnMut(Svma)) {}

    fn is_padding(&self, code: &[u8], at: Svma) -> bool {
        self.padding(code, at) > 0
    }

    fn padding(&self, code: &[u8], at: Svma) -> usize {
        let mut len = 0;
        while let Some(code) = code.get(len..)
            && let Ok(insn) = decode(code, (at.0 as u32).wrapping_add(len as u32))
            && insn.ops().all(|op| matches!(op, Op::Nop | Op::Mnop))
        {
            len += usize::from(insn.len);
        }
        len
    }
}

/// The address that `insn`, the first instruction of `code`, loads. One in halves is shown at the first if `code` goes on
/// to the second.
pub(super) fn mentions(insn: &BfInsn, code: &[u8]) -> Mentions {
    let Op::LoadImm { dst, part, value } = insn.op else { return Mentions::default() };
    let whole = match part {
        ImmPart::SignExtended | ImmPart::ZeroExtended => Some(value),
        ImmPart::Hi => other_half(insn, code, dst, part).map(|low| value << 16 | low),
        ImmPart::Lo => other_half(insn, code, dst, part).map(|high| high << 16 | value),
    };
    Mentions::new(Svma(0), Svma(whole.unwrap_or(0).into()))
}

/// The half that a load soon behind `insn` adds to the one that `insn` loads.
fn other_half(insn: &BfInsn, code: &[u8], reg: AllReg, part: ImmPart) -> Option<u32> {
    let wanted = if part == ImmPart::Lo { ImmPart::Hi } else { ImmPart::Lo };
    let (mut offset, mut at) = (usize::from(insn.len), insn.end());
    for _ in 0..HALVES_APART {
        let next = decode(code.get(offset..)?, at).ok()?;
        match next.op {
            Op::LoadImm { dst, part, value } if dst == reg => return (part == wanted).then_some(value),
            _ => {}
        }
        offset += usize::from(next.len);
        at = next.end();
    }
    None
}

/// CC holds what the last comparison said until something else writes it; the other flags do not matter.
fn follow_cc(insn: &BfInsn, values: &mut Values) {
    let writes = effects::of(insn).writes;
    let compares = values.sets.iter().any(|set| set.dst == Place::Reg(Reg::COMPARED));
    if compares || !writes.intersects(FLAGS) {
        return;
    }
    for side in [Reg::COMPARED, Reg::COMPARED_TO] {
        let value = if writes.intersects(CC) { Expr::Opaque } else { Expr::Reg(side) };
        values.sets.push(Set { dst: Place::Reg(side), value });
    }
}

fn read(reg: impl Into<AllReg>) -> Expr {
    number(reg.into()).map_or(Expr::Opaque, Expr::Reg)
}

/// The 32 bits of a register.
fn word(reg: impl Into<AllReg>) -> Expr {
    read(reg).zero_extend(32)
}

fn times(value: Expr, factor: u64) -> Expr {
    Expr::Mul(Box::new(value), factor)
}

fn minus(left: Expr, right: Expr) -> Expr {
    Expr::Sub(Box::new(left), Box::new(right))
}

fn constant(value: i64) -> Expr {
    Expr::Const(value as u64)
}

/// What instructions do to places.
trait Assign {
    fn set(&mut self, reg: impl Into<AllReg>, value: Expr);

    /// CC, as `left < right`.
    fn set_cc(&mut self, left: Expr, right: Expr);

    fn store(&mut self, addr: Expr, bits: u8, value: Expr);
}

impl Assign for Values {
    fn set(&mut self, reg: impl Into<AllReg>, value: Expr) {
        if let Some(reg) = number(reg.into()) {
            self.sets.push(Set { dst: Place::Reg(reg), value });
        }
    }

    fn set_cc(&mut self, left: Expr, right: Expr) {
        self.sets.push(Set { dst: Place::Reg(Reg::COMPARED), value: left });
        self.sets.push(Set { dst: Place::Reg(Reg::COMPARED_TO), value: right });
    }

    fn store(&mut self, addr: Expr, bits: u8, value: Expr) {
        self.sets.push(Set { dst: Place::Memory { addr, bits }, value });
    }
}

fn lift(op: &Op, values: &mut Values) {
    match *op {
        Op::Move { dst, src } => values.set(dst, read(src)),
        Op::MoveIf { dst, .. } => values.set(dst, Expr::Opaque),
        Op::MoveImm { dst, imm } => values.set(dst, Expr::Const((i32::from(imm) as u32).into())),
        Op::AddImm { dst, imm } => values.set(dst, read(dst).plus(constant(imm.into()))),
        Op::LoadImm { dst, part, value } => {
            let value = u64::from(value);
            let loaded = match part {
                ImmPart::Lo => Expr::And(Box::new(read(dst)), 0xFFFF_0000).plus(Expr::Const(value)),
                ImmPart::Hi => Expr::And(Box::new(read(dst)), 0xFFFF).plus(Expr::Const(value << 16)),
                ImmPart::SignExtended | ImmPart::ZeroExtended => Expr::Const(value),
            };
            values.set(dst, loaded);
        }
        Op::Compare { relation, left, right } => compare(relation, left, word(right), values),
        Op::CompareImm { relation, left, right } => {
            compare(relation, left, Expr::Const((i32::from(right) as u32).into()), values);
        }
        Op::MoveToCc(reg) => values.set_cc(Expr::Const(0), word(reg)),
        Op::NegateCc => values.set_cc(Expr::Reg(Reg::COMPARED_TO), Expr::Reg(Reg::COMPARED).plus(Expr::Const(1))),
        Op::MoveFromCc(reg) => values.set(reg, Expr::Opaque),

        Op::Alu2 { op, dst, src } => {
            let value = match op {
                Alu2::SignExtendHalf => read(src).sign_extend(16),
                Alu2::ZeroExtendHalf => read(src).zero_extend(16),
                Alu2::SignExtendByte => read(src).sign_extend(8),
                Alu2::ZeroExtendByte => read(src).zero_extend(8),
                Alu2::AddDouble => times(read(dst).plus(read(src)), 2),
                Alu2::AddQuadruple => times(read(dst).plus(read(src)), 4),
                Alu2::Negate => minus(Expr::Const(0), read(src)),
                _ => Expr::Opaque,
            };
            values.set(dst, value);
        }
        Op::Ptr2 { op, dst, src } => {
            let value = match op {
                Ptr2::Sub => minus(read(dst), read(src)),
                Ptr2::ShiftLeft2 => times(word(src), 4),
                Ptr2::ShiftRight2 => Expr::Shr(Box::new(word(src)), 2),
                Ptr2::ShiftRight1 => Expr::Shr(Box::new(word(src)), 1),
                Ptr2::AddDouble => times(read(dst).plus(read(src)), 2),
                Ptr2::AddQuadruple => times(read(dst).plus(read(src)), 4),
                Ptr2::AddBitReversed => Expr::Opaque,
            };
            values.set(dst, value);
        }
        Op::BitImm { op, dst, bit } => {
            let tested = || Expr::And(Box::new(Expr::Shr(Box::new(word(dst)), bit)), 1);
            match op {
                BitImm::TestSet => values.set_cc(Expr::Const(0), tested()),
                BitImm::TestClear => values.set_cc(tested(), Expr::Const(1)),
                BitImm::ShiftLeft => values.set(dst, times(word(dst), 1 << bit)),
                BitImm::ShiftRight => values.set(dst, Expr::Shr(Box::new(word(dst)), bit)),
                BitImm::Clear => values.set(dst, Expr::And(Box::new(word(dst)), !(1 << bit) & 0xFFFF_FFFF)),
                BitImm::Set | BitImm::Toggle | BitImm::ShiftArithmetic => values.set(dst, Expr::Opaque),
            }
        }
        Op::Alu3 { op, dst, src0, src1 } => {
            let value = match op {
                Alu3::Add => read(src0).plus(read(src1)),
                Alu3::Sub => minus(read(src0), read(src1)),
                Alu3::And | Alu3::Or if src0 == src1 => read(src0),
                Alu3::Xor if src0 == src1 => Expr::Const(0),
                Alu3::And | Alu3::Or | Alu3::Xor => Expr::Opaque,
            };
            values.set(dst, value);
        }
        Op::Ptr3 { op, dst, src0, src1 } => {
            let value = match op {
                Ptr3::Add if src0 == src1 => times(word(src0), 2),
                Ptr3::Add => read(src0).plus(read(src1)),
                Ptr3::AddDouble => read(src0).plus(times(word(src1), 2)),
                Ptr3::AddQuadruple => read(src0).plus(times(word(src1), 4)),
            };
            values.set(dst, value);
        }
        Op::Add { sub, dst, src0, src1, overflow: Overflow::Wrap } => {
            let value = if sub { minus(read(src0), read(src1)) } else { read(src0).plus(read(src1)) };
            values.set(dst, value);
        }
        Op::ShiftImm { op: Shift::Logical, dst, src, by } => {
            let value = match by {
                0..=31 => times(word(src), 1 << by),
                _ => Expr::Shr(Box::new(word(src)), by.unsigned_abs()),
            };
            values.set(dst, value);
        }
        Op::ShiftImm { dst, .. } | Op::Shift { dst, .. } | Op::Extract { dst, .. } | Op::Deposit { dst, .. } => {
            values.set(dst, Expr::Opaque);
        }
        Op::Max { dst, .. } | Op::Min { dst, .. } | Op::Abs { dst, .. } => values.set(dst, Expr::Opaque),

        Op::Load { what, reg, addr } => load(what, reg, addr, values),
        Op::Store { what, reg, addr } => store(what, reg, addr, values),
        Op::Push(reg) => {
            let top = read(Preg::Sp).plus(constant(-4));
            values.store(top.clone(), 32, read(reg));
            values.set(Preg::Sp, top);
        }
        Op::Pop(reg) => {
            values.set(reg, read(Preg::Sp).load(32));
            values.set(Preg::Sp, read(Preg::Sp).plus(constant(4)));
        }
        Op::PushMultiple(range) => {
            values.other_stores = true;
            values.set(Preg::Sp, read(Preg::Sp).plus(constant(-4 * count(range))));
        }
        Op::PopMultiple(range) => values.set(Preg::Sp, read(Preg::Sp).plus(constant(4 * count(range)))),
        Op::Link { frame } => {
            let sp = |offset: i64| Expr::Reg(Reg(SP)).plus(constant(offset));
            values.store(sp(-4), 32, Expr::Reg(Reg(RETS)));
            values.store(sp(-8), 32, Expr::Reg(Reg(FP)));
            values.set(Preg::Fp, sp(-8));
            values.set(Preg::Sp, sp(-8 - i64::from(frame)));
        }
        Op::Unlink => {
            let fp = |offset: i64| Expr::Reg(Reg(FP)).plus(constant(offset));
            values.set(Preg::Sp, fp(8));
            values.set(Preg::Fp, fp(0).load(32));
            values.set(AllReg::Rets, fp(4).load(32));
        }
        _ => {}
    }
}

fn count(range: RegRange) -> i64 {
    let dregs = range.dregs.map_or(0, |from| 8 - i64::from(from.code()));
    let pregs = range.pregs.map_or(0, |from| 6 - i64::from(from.code()));
    dregs + pregs
}

fn compare(relation: Compare, left: DPreg, right: Expr, values: &mut Values) {
    let left = word(left);
    // Moves the signed numbers in order onto the unsigned ones.
    let biased = |value: Expr| value.plus(Expr::Const(1 << 31)).zero_extend(32);
    let one_more = |value: Expr| value.plus(Expr::Const(1));
    match relation {
        Compare::Equal => values.set_cc(minus(left, right).zero_extend(32), Expr::Const(1)),
        Compare::Less => values.set_cc(biased(left), biased(right)),
        Compare::LessOrEqual => values.set_cc(biased(left), one_more(biased(right))),
        Compare::LessUnsigned => values.set_cc(left, right),
        Compare::LessOrEqualUnsigned => values.set_cc(left, one_more(right)),
    }
}

/// The address of an access of `bytes` bytes, and what becomes of the pointer. `None` for the address generators: their
/// buffers wrap.
fn address(addr: Address, bytes: i64, values: &mut Values) -> Option<Expr> {
    Some(match addr {
        Address::At(base) => read(base),
        Address::Offset { base, offset, .. } => read(base).plus(constant(offset.into())),
        Address::PostIncrement(base) => {
            values.set(base, read(base).plus(constant(bytes)));
            read(base)
        }
        Address::PostDecrement(base) => {
            values.set(base, read(base).plus(constant(-bytes)));
            read(base)
        }
        Address::PostAdd { base, index } => {
            if base != index {
                values.set(base, read(base).plus(read(index)));
            }
            read(base)
        }
        Address::DagAt(_)
        | Address::DagPostIncrement(_)
        | Address::DagPostDecrement(_)
        | Address::DagPostAdd { .. } => return None,
    })
}

fn load(what: Load, reg: DPreg, addr: Address, values: &mut Values) {
    let bits: u8 = match what {
        Load::Word => 32,
        Load::HalfZero | Load::HalfSign | Load::Lo | Load::Hi => 16,
        Load::ByteZero | Load::ByteSign => 8,
    };
    let loaded = match (what, address(addr, i64::from(bits / 8), values)) {
        (Load::Lo | Load::Hi, _) | (_, None) => Expr::Opaque,
        (Load::HalfSign | Load::ByteSign, Some(addr)) => addr.load(bits).sign_extend(bits),
        (_, Some(addr)) => addr.load(bits),
    };
    values.set(reg, loaded);
}

fn store(what: Store, reg: DPreg, addr: Address, values: &mut Values) {
    let bits: u8 = match what {
        Store::Word => 32,
        Store::Half | Store::Lo | Store::Hi => 16,
        Store::Byte => 8,
    };
    let value = if what == Store::Hi { Expr::Shr(Box::new(word(reg)), 16) } else { read(reg) };
    match address(addr, i64::from(bits / 8), values) {
        Some(addr) => values.store(addr, bits, value),
        None => values.other_stores = true,
    }
}
