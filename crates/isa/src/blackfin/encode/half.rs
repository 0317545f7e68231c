//! The 16-bit words.

use super::super::fields::*;
use super::super::insn::Op;
use super::super::operands::*;
use super::super::regs::{Acc, DPreg, Preg};
use super::{Word, distance};

pub(super) fn word(op: &Op, at: u32) -> Option<Word> {
    Some(Word::Half(bits(op, at)? as u16))
}

fn bits(op: &Op, at: u32) -> Option<u32> {
    let control = |func: u32, arg: u32| prog_ctrl::FUNC.put(func) | prog_ctrl::ARG.put(arg);
    let pointer_bit = |reg: DPreg| u32::from(reg.code()) >> 3;
    Some(match *op {
        Op::Nop => 0,
        Op::Return(from) => control(1, from.into()),
        Op::Idle => control(2, 0),
        Op::Csync => control(2, 3),
        Op::Ssync => control(2, 4),
        Op::Emuexcpt => control(2, 5),
        Op::Cli(reg) => control(3, reg.into()),
        Op::Sti(reg) => control(4, reg.into()),
        Op::JumpReg(reg) => control(5, reg.into()),
        Op::CallReg(reg) => control(6, reg.into()),
        Op::CallPcReg(reg) => control(7, reg.into()),
        Op::JumpPcReg(reg) => control(8, reg.into()),
        Op::Raise(number) => control(9, number.into()),
        Op::Excpt(number) => control(10, number.into()),
        Op::Testset(reg) => control(11, reg.into()),
        Op::Cache { op, ptr, post_increment } => {
            0x0240 | cache_ctrl::POST.put(post_increment) | cache_ctrl::OP.put(op) | cache_ctrl::PTR.put(ptr)
        }
        Op::Push(reg) => 0x0100 | push_pop::WRITE.put(true) | push_pop::REG.put(reg),
        Op::Pop(reg) => 0x0100 | push_pop::REG.put(reg),
        Op::PushMultiple(range) => multiple(range) | push_pop_multiple::WRITE.put(true),
        Op::PopMultiple(range) => multiple(range),
        Op::MoveIf { cc, dst, src } => {
            0x0600
                | cc_move::CC.put(cc)
                | cc_move::DST_P.put(pointer_bit(dst))
                | cc_move::SRC_P.put(pointer_bit(src))
                | cc_move::DST.put(dst)
                | cc_move::SRC.put(src)
        }
        Op::Compare { relation, left, right } => {
            0x0800
                | cc_flag::OP.put(relation)
                | cc_flag::PTR.put(pointer_bit(left))
                | cc_flag::Y.put(right)
                | cc_flag::X.put(left)
        }
        Op::CompareImm { relation, left, right } => {
            0x0800
                | cc_flag::IMM.put(true)
                | cc_flag::OP.put(relation)
                | cc_flag::PTR.put(pointer_bit(left))
                | cc_flag::Y.put(right as u32)
                | cc_flag::X.put(left)
        }
        Op::CompareAcc(relation) => 0x0800 | cc_flag::OP.put(relation),
        Op::MoveFromCc(reg) => 0x0200 | cc_dreg::OP.put(0u32) | cc_dreg::REG.put(reg),
        Op::MoveToCc(reg) => 0x0200 | cc_dreg::OP.put(1u32) | cc_dreg::REG.put(reg),
        Op::NegateCc => 0x0200 | cc_dreg::OP.put(3u32),
        Op::CcBit { op, bit, to_cc } => {
            0x0300 | cc_stat::TO_BIT.put(!to_cc) | cc_stat::OP.put(op) | cc_stat::BIT.put(bit)
        }
        Op::Branch { cc, predicted, target } => {
            0x1000 | branch::CC.put(cc) | branch::PREDICTED.put(predicted) | branch::OFFSET.put(distance(target, at))
        }
        Op::JumpShort { target } => 0x2000 | jump::OFFSET.put(distance(target, at)),
        Op::Move { dst, src } => {
            0x3000
                | reg_move::DST_GROUP.put(dst.group())
                | reg_move::SRC_GROUP.put(src.group())
                | reg_move::DST.put(dst.number())
                | reg_move::SRC.put(src.number())
        }
        Op::Alu2 { op, dst, src } => 0x4000 | alu2::OP.put(op) | alu2::SRC.put(src) | alu2::DST.put(dst),
        Op::Ptr2 { op, dst, src } => 0x4400 | ptr2::OP.put(op) | ptr2::SRC.put(src) | ptr2::DST.put(dst),
        Op::BitImm { op, dst, bit } => 0x4800 | bit_imm::OP.put(op) | bit_imm::BIT.put(bit) | bit_imm::DST.put(dst),
        Op::Alu3 { op, dst, src0, src1 } => {
            0x5000 | comp3::OP.put(op) | comp3::DST.put(dst) | comp3::SRC1.put(src1) | comp3::SRC0.put(src0)
        }
        Op::Ptr3 { op, dst, src0, src1 } => {
            0x5000 | comp3::OP.put(op) | comp3::DST.put(dst) | comp3::SRC1.put(src1) | comp3::SRC0.put(src0)
        }
        Op::MoveImm { dst, imm } => {
            0x6000 | comp_imm::PTR.put(pointer_bit(dst)) | comp_imm::IMM.put(imm as u32) | comp_imm::DST.put(dst)
        }
        Op::AddImm { dst, imm } => {
            0x6000
                | comp_imm::PTR.put(pointer_bit(dst))
                | comp_imm::ADD.put(true)
                | comp_imm::IMM.put(imm as u32)
                | comp_imm::DST.put(dst)
        }
        Op::DagAdd { dst, by, bit_reversed } => {
            0x9E60 | dag_mod::BREV.put(bit_reversed) | dag_mod::M.put(by) | dag_mod::I.put(dst)
        }
        Op::DagSub { dst, by } => 0x9E60 | dag_mod::SUB.put(true) | dag_mod::M.put(by) | dag_mod::I.put(dst),
        Op::DagAddImm { dst, by } => {
            let op = [2, -2, 4, -4].iter().position(|step| *step == by)?;
            0x9F60 | dag_mod_imm::OP.put(op as u32) | dag_mod_imm::I.put(dst)
        }
        Op::Load { what, reg, addr } => access(Access::Load(what), reg, addr)?,
        Op::Store { what, reg, addr } => access(Access::Store(what), reg, addr)?,
        Op::Abort => debug(3, 0, 3),
        Op::Hlt => debug(3, 0, 4),
        Op::DbgHalt => debug(3, 0, 5),
        Op::Dbg => debug(3, 0, 7),
        Op::DbgAcc(Acc::A0) => debug(3, 0, 0),
        Op::DbgAcc(Acc::A1) => debug(3, 0, 1),
        Op::DbgCmplx(reg) => debug(3, reg.into(), 6),
        Op::DbgReg(reg) => debug(0, reg.group().into(), reg.number().into()),
        Op::Prnt(reg) => debug(1, reg.group().into(), reg.number().into()),
        Op::OutcReg(reg) => debug(2, 0, reg.into()),
        Op::OutcImm(char) => 0xF900 | debug_char::CHAR.put(char),
        _ => return None,
    })
}

fn debug(op: u32, group: u32, number: u32) -> u32 {
    use debug::{GROUP, NUMBER, OP};
    0xF800 | OP.put(op) | GROUP.put(group) | NUMBER.put(number)
}

fn multiple(range: RegRange) -> u32 {
    use push_pop_multiple::{D, DREG, P, PREG};
    let dreg = range.dregs.map_or(0, u32::from);
    let preg = range.pregs.map_or(0, u32::from);
    0x0400 | D.put(range.dregs.is_some()) | P.put(range.pregs.is_some()) | DREG.put(dreg) | PREG.put(preg)
}

/// A load or a store.
#[derive(Clone, Copy)]
pub(super) enum Access {
    Load(Load),
    Store(Store),
}

impl Access {
    pub(super) fn is_store(self) -> bool {
        matches!(self, Access::Store(_))
    }

    /// Size and `Z` bit, in the families that have them; a pointer register needs the bit.
    pub(super) fn size(self, reg: DPreg) -> Option<(u32, bool)> {
        Some(match self {
            Access::Load(Load::Word) | Access::Store(Store::Word) => (0, reg.as_preg().is_some()),
            Access::Load(Load::HalfZero) | Access::Store(Store::Half) => (1, false),
            Access::Load(Load::HalfSign) => (1, true),
            Access::Load(Load::ByteZero) | Access::Store(Store::Byte) => (2, false),
            Access::Load(Load::ByteSign) => (2, true),
            Access::Load(Load::Lo | Load::Hi) | Access::Store(Store::Lo | Store::Hi) => return None,
        })
    }

    /// All of the register, its low half, its high half: 0, 1, 2.
    fn part(self) -> Option<u32> {
        Some(match self {
            Access::Load(Load::Word) | Access::Store(Store::Word) => 0,
            Access::Load(Load::Lo) | Access::Store(Store::Lo) => 1,
            Access::Load(Load::Hi) | Access::Store(Store::Hi) => 2,
            _ => return None,
        })
    }
}

fn access(access: Access, reg: DPreg, addr: Address) -> Option<u32> {
    let plain = |mode: u32, ptr: Preg| -> Option<u32> {
        use ldst::{OP, PTR, REG, SIZE, WRITE, Z};
        let (size, z) = access.size(reg)?;
        let what = SIZE.put(size) | WRITE.put(access.is_store()) | Z.put(z);
        Some(0x9000 | what | OP.put(mode) | PTR.put(ptr) | REG.put(reg))
    };
    let dag = |mode: u32, index: u32, part: u32| {
        use ldst_dag::{I, M, OP, REG, WRITE};
        0x9C00 | WRITE.put(access.is_store()) | OP.put(mode) | M.put(part) | I.put(index) | REG.put(reg)
    };
    Some(match addr {
        Address::PostIncrement(ptr) => plain(0, ptr)?,
        Address::PostDecrement(ptr) => plain(1, ptr)?,
        Address::At(ptr) => plain(2, ptr)?,
        Address::Offset { base, offset, form: OffsetForm::Short } => {
            use ldst_offset::{OFFSET, OP, PTR, REG, WRITE};
            let (op, scale) = match access.size(reg)? {
                (0, false) => (0u32, 4),
                (1, false) => (1, 2),
                (1, true) => (2, 2),
                (0, true) => (3, 4),
                _ => return None,
            };
            let what = WRITE.put(access.is_store()) | OP.put(op);
            0xA000 | what | OFFSET.put((offset / scale) as u32) | PTR.put(base) | REG.put(reg)
        }
        Address::Offset { offset, form: OffsetForm::Frame, .. } => {
            use ldst_frame::{OFFSET, REG, WRITE};
            0xB800 | WRITE.put(access.is_store()) | OFFSET.put((offset / 4 + 32) as u32) | REG.put(reg)
        }
        Address::Offset { form: OffsetForm::Long, .. } => return None,
        Address::PostAdd { base, index } => {
            use ldst_post_mod::{INDEX, OP, PTR, REG, WRITE};
            let (op, write) = match access {
                Access::Load(Load::HalfZero) => (3, false),
                Access::Load(Load::HalfSign) => (3, true),
                _ => (access.part()?, access.is_store()),
            };
            0x8000 | WRITE.put(write) | OP.put(op) | REG.put(reg) | INDEX.put(index) | PTR.put(base)
        }
        Address::DagPostIncrement(index) => dag(0, index.into(), access.part()?),
        Address::DagPostDecrement(index) => dag(1, index.into(), access.part()?),
        Address::DagAt(index) => dag(2, index.into(), access.part()?),
        Address::DagPostAdd { base, by } => match access.part()? {
            0 => dag(3, base.into(), by.into()),
            _ => return None,
        },
    })
}
