//! Which registers and flags an instruction reads and writes.
//!
//! Where the manual leaves room, the sets err to the safe side: a flag that may change is written but not killed.

use super::facts::*;
use super::insn::{BfInsn, Op};
use super::operands::*;
use super::regs::{Acc, Dreg, Ireg};
use crate::regs::{Effects, Reg, RegSet};

/// Both result flags.
const NZ: RegSet = AZ.union(AN);
/// What logical operations set, two of them to 0.
const LOGIC: RegSet = NZ.union(AC0).union(V);
const ALL_ACC_FLAGS: RegSet = AV0.union(AV0S).union(AV1).union(AV1S);

/// All operations of a bundle see the old registers, so nothing is read that an earlier slot wrote.
pub(super) fn of(insn: &BfInsn) -> Effects {
    let mut sum = Sum(Effects::default());
    for op in insn.ops() {
        add(op, &mut sum);
    }
    sum.0
}

impl BfInsn {
    /// May it change the register, or a part of it?
    pub fn writes(&self, reg: super::AllReg) -> bool {
        of(self).writes.intersects(reg.set())
    }
}

struct Sum(Effects);

impl Sum {
    fn read(&mut self, set: RegSet) -> &mut Sum {
        self.0.reads |= set;
        self
    }

    /// Overwrites all of it, whatever happens.
    fn write(&mut self, set: RegSet) -> &mut Sum {
        self.0.writes |= set;
        self.0.kills |= set;
        self
    }

    /// Overwrites a part of it, or only sometimes.
    fn touch(&mut self, set: RegSet) -> &mut Sum {
        self.0.writes |= set;
        self
    }

    /// Changes it: the new value depends on the old one.
    fn update(&mut self, set: RegSet) -> &mut Sum {
        self.read(set).write(set)
    }

    /// A register move's end; accumulators are moved in parts.
    fn move_to(&mut self, reg: super::AllReg) -> &mut Sum {
        if reg.is_accumulator() { self.touch(reg.set()) } else { self.write(reg.set()) }
    }
}

fn pair(low: Dreg) -> RegSet {
    low.set() | low.next().set()
}

/// The registers of `(R7:d, P5:p)`.
fn listed(range: RegRange) -> RegSet {
    let dregs = range.dregs.map_or(RegSet::EMPTY, |from| RegSet(0xFF & (!0 << from.code())));
    let pregs = range.pregs.map_or(RegSet::EMPTY, |from| RegSet((0x3F & (!0 << from.code())) << 8));
    dregs | pregs
}

fn other(acc: Acc) -> Acc {
    match acc {
        Acc::A0 => Acc::A1,
        Acc::A1 => Acc::A0,
    }
}

fn accumulators(which: Accs) -> RegSet {
    match which {
        Accs::A0 => Acc::A0.set(),
        Accs::A1 => Acc::A1.set(),
        Accs::Both => both(),
    }
}

fn both() -> RegSet {
    Acc::A0.set() | Acc::A1.set()
}

fn address(addr: Address, e: &mut Sum) {
    match addr {
        Address::At(base) | Address::Offset { base, .. } => e.read(base.set()),
        Address::PostIncrement(base) | Address::PostDecrement(base) => e.update(base.set()),
        Address::PostAdd { base, index } if base == index => e.read(base.set()),
        Address::PostAdd { base, index } => e.read(index.set()).update(base.set()),
        Address::DagAt(base) => e.read(base.set()),
        Address::DagPostIncrement(base) | Address::DagPostDecrement(base) => dag_update(base, e),
        Address::DagPostAdd { base, by } => dag_update(base, e).read(by.set()),
    };
}

fn dag_update(index: Ireg, e: &mut Sum) -> &mut Sum {
    e.read(buffer(index)).update(index.set())
}

/// What one multiplier writes to the data registers: all of a register, or a half.
fn products(regs: MacRegs, unit1: bool, unit0: bool, e: &mut Sum) {
    match (regs.pair, unit1, unit0) {
        (true, unit1, unit0) => {
            if unit1 {
                e.write(regs.dst.next().set());
            }
            if unit0 {
                e.write(regs.dst.set());
            }
        }
        (false, true, true) => {
            e.write(regs.dst.set());
        }
        (false, false, false) => {}
        (false, _, _) => {
            e.touch(regs.dst.set());
        }
    }
}

fn accumulate(unit: MacUnit, acc: Acc, regs: MacRegs, e: &mut Sum) {
    let flags = match acc {
        Acc::A0 => AV0 | AV0S,
        Acc::A1 => AV1 | AV1S,
    };
    if unit.op != MacOp::Keep {
        e.read(regs.src0.set() | regs.src1.set()).touch(flags);
    }
    match unit.op {
        MacOp::Assign => e.write(acc.set()),
        MacOp::Add | MacOp::Sub => e.update(acc.set()),
        MacOp::Keep if unit.write => e.read(acc.set()).touch(flags),
        MacOp::Keep => e,
    };
}

fn add(op: &Op, e: &mut Sum) {
    let sp = RegSet::of(Reg(SP));
    let fp = RegSet::of(Reg(FP));
    let rets = RegSet::of(Reg(RETS));
    match *op {
        Op::Nop | Op::Mnop | Op::Idle | Op::Csync | Op::Ssync | Op::Disalgnexcpt => e,
        Op::JumpShort { .. } | Op::JumpLong { .. } => e,
        Op::Abort | Op::Hlt | Op::DbgHalt | Op::Dbg | Op::OutcImm(_) => e,
        Op::Return(from) => e.read(match from {
            ReturnFrom::Subroutine => rets,
            ReturnFrom::Interrupt => super::AllReg::Reti.set(),
            ReturnFrom::Exception => super::AllReg::Retx.set(),
            ReturnFrom::Nmi => super::AllReg::Retn.set(),
            ReturnFrom::Emulation => super::AllReg::Rete.set(),
        }),
        // A handler sees what it likes, and a system call has a result and an error number.
        Op::Raise(_) | Op::Emuexcpt => e.read(GENERAL),
        Op::Excpt(_) => e.read(GENERAL).touch(Dreg::R0.set() | Dreg::R1.set() | Dreg::R2.set()),
        Op::Cli(reg) => e.write(reg.set()),
        Op::Sti(reg) => e.read(reg.set()),
        Op::JumpReg(reg) | Op::JumpPcReg(reg) => e.read(reg.set()),
        Op::CallReg(reg) | Op::CallPcReg(reg) => e.read(reg.set()).write(rets),
        Op::Call { .. } => e.write(rets),
        Op::Testset(reg) => e.read(reg.set()).write(CC),
        Op::Cache { ptr, post_increment: false, .. } => e.read(ptr.set()),
        Op::Cache { ptr, post_increment: true, .. } => e.update(ptr.set()),
        Op::Branch { .. } => e.read(CC),
        Op::LoopSetup { which, count, .. } => {
            e.write(loop_bounds(which));
            match count {
                LoopCount::Keep => e.read(loop_counter(which)),
                LoopCount::Reg(reg) | LoopCount::HalfReg(reg) => e.read(reg.set()).write(loop_counter(which)),
            }
        }
        Op::Link { .. } => e.read(rets).update(sp | fp),
        Op::Unlink => e.read(fp).write(sp | fp | rets),

        Op::Push(reg) => e.read(reg.set()).update(sp),
        Op::Pop(reg) => e.move_to(reg).update(sp),
        Op::PushMultiple(range) => e.read(listed(range)).update(sp),
        Op::PopMultiple(range) => e.write(listed(range)).update(sp),

        Op::Move { dst, src } => e.read(src.set()).move_to(dst),
        Op::MoveIf { dst, src, .. } => e.read(CC | src.set()).touch(dst.set()),
        Op::MoveImm { dst, .. } => e.write(dst.set()),
        Op::AddImm { dst, .. } if dst.as_preg().is_some() => e.update(dst.set()),
        Op::AddImm { dst, .. } => e.update(dst.set()).write(LOGIC).touch(VS),
        Op::LoadImm { dst, part: ImmPart::Lo | ImmPart::Hi, .. } => e.touch(dst.set()),
        Op::LoadImm { dst, part: ImmPart::SignExtended | ImmPart::ZeroExtended, .. } => e.write(dst.set()),
        Op::Compare { left, right, .. } => {
            let flags = if left.as_dreg().is_some() { NZ | AC0 } else { RegSet::EMPTY };
            e.read(left.set() | right.set()).write(CC | flags)
        }
        Op::CompareImm { left, .. } => {
            let flags = if left.as_dreg().is_some() { NZ | AC0 } else { RegSet::EMPTY };
            e.read(left.set()).write(CC | flags)
        }
        Op::CompareAcc(_) => e.read(both()).write(CC | NZ | AC0),
        Op::MoveFromCc(reg) => e.read(CC).write(reg.set()),
        Op::MoveToCc(reg) => e.read(reg.set()).write(CC),
        Op::NegateCc => e.update(CC),
        Op::CcBit { op, bit, to_cc } => {
            let bit = status_bit(bit);
            let (from, to) = if to_cc { (bit, CC) } else { (CC, bit) };
            if op != CcBitOp::Assign {
                e.read(to);
            }
            // Only a copy, or one of the bits without a name, may be meant.
            let whole = to.without(AC0 | V | RND_MOD);
            e.read(from).touch(to).write(whole)
        }

        Op::Alu2 { op, dst, src } => {
            e.read(src.set());
            match op {
                Alu2::ShiftArithmetic | Alu2::ShiftRight | Alu2::ShiftLeft => {
                    e.update(dst.set()).write(NZ).touch(V | VS)
                }
                Alu2::Multiply => e.update(dst.set()),
                Alu2::AddDouble | Alu2::AddQuadruple => e.update(dst.set()).write(NZ | V).touch(VS),
                Alu2::Divq => e.update(dst.set() | AQ),
                Alu2::Divs => e.update(dst.set()).write(AQ),
                Alu2::SignExtendHalf | Alu2::ZeroExtendHalf | Alu2::SignExtendByte | Alu2::ZeroExtendByte => {
                    e.write(dst.set() | LOGIC)
                }
                Alu2::Negate => e.write(dst.set() | LOGIC).touch(VS),
                Alu2::Not => e.write(dst.set() | LOGIC),
            }
        }
        Op::Ptr2 { op, dst, src } => match op {
            Ptr2::ShiftLeft2 | Ptr2::ShiftRight2 | Ptr2::ShiftRight1 => e.read(src.set()).write(dst.set()),
            Ptr2::Sub | Ptr2::AddBitReversed | Ptr2::AddDouble | Ptr2::AddQuadruple => {
                e.read(src.set()).update(dst.set())
            }
        },
        Op::BitImm { op, dst, .. } => match op {
            BitImm::TestClear | BitImm::TestSet => e.read(dst.set()).write(CC),
            BitImm::Set | BitImm::Toggle | BitImm::Clear => e.update(dst.set()).write(LOGIC),
            BitImm::ShiftArithmetic | BitImm::ShiftRight | BitImm::ShiftLeft => {
                e.update(dst.set()).write(NZ).touch(V | VS)
            }
        },
        Op::Alu3 { op, dst, src0, src1 } => {
            if matches!(op, Alu3::Add | Alu3::Sub) {
                e.touch(VS);
            }
            e.read(src0.set() | src1.set()).write(dst.set() | LOGIC)
        }
        Op::Ptr3 { dst, src0, src1, .. } => e.read(src0.set() | src1.set()).write(dst.set()),
        Op::DagAdd { dst, by, .. } | Op::DagSub { dst, by } => dag_update(dst, e).read(by.set()),
        Op::DagAddImm { dst, .. } => dag_update(dst, e),

        Op::Load { what, reg, addr } => {
            address(addr, e);
            if matches!(what, Load::Lo | Load::Hi) { e.touch(reg.set()) } else { e.write(reg.set()) }
        }
        Op::Store { reg, addr, .. } => {
            address(addr, e);
            e.read(reg.set())
        }

        Op::Mac { regs, mac1, mac0, .. } => {
            accumulate(mac1, Acc::A1, regs, e);
            accumulate(mac0, Acc::A0, regs, e);
            products(regs, mac1.write, mac0.write, e);
            if mac1.write || mac0.write {
                e.read(RND_MOD).touch(NZ | V | VS);
            }
            e
        }
        Op::Mult { regs, mult1, mult0, .. } => {
            products(regs, mult1.write, mult0.write, e);
            e.read(regs.src0.set() | regs.src1.set() | RND_MOD).touch(V | VS)
        }

        Op::VecAdd { dst, src0, src1, .. } => e.read(src0.set() | src1.set()).write(dst.set() | LOGIC | AC1).touch(VS),
        Op::VecAddSub { sum, difference, src0, src1, .. } => {
            e.read(src0.set() | src1.set()).write(sum.set() | difference.set() | NZ | V).touch(AC0 | AC1 | VS)
        }
        Op::AddHalf { dst, src0, src1, .. } => e.read(src0.set() | src1.set()).touch(dst.set() | VS).write(LOGIC),
        Op::Add { dst, src0, src1, .. } => e.read(src0.set() | src1.set()).write(dst.set() | NZ | V).touch(AC0 | VS),
        Op::AddSub { sum, difference, src0, src1, .. } => {
            e.read(src0.set() | src1.set()).write(sum.set() | difference.set() | NZ | V).touch(AC0 | AC1 | VS)
        }
        Op::AccAddSub { sum, difference, .. } => {
            e.read(both()).write(sum.set() | difference.set() | NZ | V).touch(AC0 | AC1 | VS)
        }
        Op::AddRound { dst, src0, src1, .. } => {
            e.read(src0.set() | src1.set() | RND_MOD).touch(dst.set() | VS).write(NZ | V)
        }
        Op::Round { dst, src } => e.read(src.set() | RND_MOD).touch(dst.set() | VS).write(NZ | V),
        Op::Max { dst, src0, src1, .. } | Op::Min { dst, src0, src1, .. } => {
            e.read(src0.set() | src1.set()).write(dst.set() | NZ | V)
        }
        Op::Abs { dst, src, .. } => e.read(src.set()).write(dst.set() | NZ | V).touch(VS),
        Op::Neg { dst, src, .. } => e.read(src.set()).write(dst.set() | NZ).touch(AC0 | V | VS),
        Op::VecNeg { dst, src } => e.read(src.set()).write(dst.set() | NZ | V).touch(AC0 | AC1 | VS),
        Op::AccClear(which) => e.write(accumulators(which)),
        Op::AccSaturate(which) => e.update(accumulators(which)).touch(NZ | ALL_ACC_FLAGS),
        Op::AccCopy { dst } => e.read(other(dst).set()).write(dst.set()),
        Op::AccNeg { dst, src } | Op::AccAbs { dst, src } => {
            e.read(src.set()).write(dst.set() | NZ).touch(AC0 | AC1 | ALL_ACC_FLAGS)
        }
        Op::AccNegBoth | Op::AccAbsBoth => e.update(both()).touch(NZ | AC0 | AC1 | ALL_ACC_FLAGS),
        Op::AccSetHalf { dst, src } => e.read(src.set()).touch(dst.set()),
        Op::AccSet { dst, src } => e.read(src.set()).write(dst.set()),
        Op::AccSetExt { dst, src } => e.read(src.set()).touch(dst.set()),
        Op::AccGetExt { dst, src } => e.read(src.set()).touch(dst.set()),
        Op::AccAccumulate { .. } => e.read(both()).write(Acc::A0.set()).touch(NZ | AC0 | AV0 | AV0S),
        Op::AccAccumulateTo { dst } => {
            e.read(both()).write(Acc::A0.set() | dst.set()).touch(NZ | AC0 | AV0 | AV0S | V | VS)
        }
        Op::AccAccumulateToHalf { dst } => {
            e.read(both() | RND_MOD).write(Acc::A0.set()).touch(dst.set() | NZ | AC0 | AV0 | AV0S | V | VS)
        }
        Op::SignMultiply { dst, src0, src1 } => e.read(src0.set() | src1.set()).write(dst.set()),
        Op::AccAddHalves { from_a1, from_a0 } => e.read(both()).write(from_a1.set() | from_a0.set()),
        // P0 counts; what is found replaces accumulators and results only where it is better.
        Op::Search { dst1, dst0, src, .. } => {
            e.read(src.set() | both() | super::Preg::P0.set()).touch(dst1.set() | dst0.set() | both())
        }
        // The byte operations take their alignment from I0 and I1.
        Op::Saa { src0, src1, .. } => e.read(pair(src0) | pair(src1) | alignment()).update(both()),
        Op::ByteAverage { dst, src0, src1, .. }
        | Op::ByteAverage4 { dst, src0, src1, .. }
        | Op::ByteAddClip { dst, src0, src1, .. } => e.read(pair(src0) | pair(src1) | alignment()).write(dst.set()),
        Op::ByteAdd { dst1, dst0, src0, src1, .. } => {
            e.read(pair(src0) | pair(src1) | alignment()).write(dst1.set() | dst0.set())
        }
        Op::BytePack { dst, src0, src1 } => e.read(src0.set() | src1.set()).write(dst.set()),
        Op::ByteUnpack { dst1, dst0, src, .. } => e.read(pair(src) | alignment()).write(dst1.set() | dst0.set()),

        Op::ShiftHalf { dst, src, by, .. } => e.read(src.set() | by.set()).touch(dst.set() | NZ | V | VS),
        Op::ShiftVec { dst, src, by, .. } | Op::Shift { dst, src, by, .. } => {
            e.read(src.set() | by.set()).write(dst.set()).touch(NZ | V | VS)
        }
        Op::Rotate { dst, src, by } => e.read(CC | src.set() | by.set()).write(dst.set()).touch(CC),
        Op::ShiftAcc { op, acc, by } => rotate_or_shift(op, acc, e).read(by.set()),
        Op::Pack { dst, high, low } => e.read(high.set() | low.set()).write(dst.set()),
        Op::Signbits { dst, src } | Op::Ones { dst, src } => e.read(src.set()).touch(dst.set()),
        Op::SignbitsHalf { dst, src } => e.read(src.set()).touch(dst.set()),
        Op::SignbitsAcc { dst, src } => e.read(src.set()).touch(dst.set()),
        Op::Expadj { dst, src, limit, .. } => e.read(src.set() | limit.set()).touch(dst.set()),
        Op::ExpadjHalf { dst, src, limit } => e.read(src.set() | limit.set()).touch(dst.set()),
        Op::Bitmux { src0, src1, .. } => e.update(src0.set() | src1.set() | Acc::A0.set()),
        Op::VitMax { dst, src, .. } => e.read(src.set()).touch(dst.set()).update(Acc::A0.set()),
        Op::VitMax2 { dst, src1, src0, .. } => e.read(src0.set() | src1.set()).write(dst.set()).update(Acc::A0.set()),
        Op::Extract { dst, scene, pattern, .. } => e.read(scene.set() | pattern.set()).write(dst.set() | LOGIC),
        Op::Deposit { dst, background, foreground, .. } => {
            e.read(background.set() | foreground.set()).write(dst.set() | LOGIC)
        }
        Op::BxorShift { dst, src } => e.read(src.set()).touch(dst.set()).write(CC).update(Acc::A0.set()),
        Op::Bxor { dst, src } => e.read(src.set() | Acc::A0.set()).touch(dst.set()).write(CC),
        Op::BxorShiftAcc => e.read(CC | Acc::A1.set()).update(Acc::A0.set()),
        Op::BxorAcc { dst } => e.read(both()).touch(dst.set()).update(CC),
        Op::Align { dst, src1, src0, .. } => e.read(src0.set() | src1.set()).write(dst.set()),

        Op::ShiftHalfImm { dst, src, .. } => e.read(src.set()).touch(dst.set() | NZ | V | VS),
        Op::ShiftVecImm { dst, src, .. } | Op::ShiftImm { dst, src, .. } => {
            e.read(src.set()).write(dst.set()).touch(NZ | V | VS)
        }
        Op::RotateImm { dst, src, .. } => e.read(CC | src.set()).write(dst.set()).touch(CC),
        Op::ShiftAccImm { op, acc, .. } => rotate_or_shift(op, acc, e),

        Op::DbgAcc(acc) => e.read(acc.set()),
        Op::DbgReg(reg) | Op::Prnt(reg) | Op::Assert { reg, .. } => e.read(reg.set()),
        Op::DbgCmplx(reg) | Op::OutcReg(reg) => e.read(reg.set()),
    };
}

fn alignment() -> RegSet {
    Ireg::I0.set() | Ireg::I1.set()
}

fn rotate_or_shift(op: AccShift, acc: Acc, e: &mut Sum) -> &mut Sum {
    e.update(acc.set());
    match op {
        AccShift::Rotate => e.read(CC).touch(CC),
        AccShift::Arithmetic | AccShift::Logical => e.touch(NZ | ALL_ACC_FLAGS),
    }
}
