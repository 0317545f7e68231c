//! The 16-bit families.

use super::super::fields::*;
use super::super::insn::Op;
use super::super::operands::*;
use super::super::regs::{AllReg, DPreg, Dreg, Ireg, Mreg, Preg};
use super::{Family, relative};

pub(super) static FAMILIES: &[Family] = &[
    Family::new(0xFF00, 0x0000, program_control),
    Family::new(0xFFC0, 0x0240, cache_control),
    Family::new(0xFF80, 0x0100, push_or_pop),
    Family::new(0xFE00, 0x0400, push_or_pop_multiple),
    Family::new(0xFE00, 0x0600, move_if),
    Family::new(0xF800, 0x0800, compare),
    Family::new(0xFFE0, 0x0200, move_cc),
    Family::new(0xFF00, 0x0300, cc_bit),
    Family::new(0xF000, 0x1000, branch_on_cc),
    Family::new(0xF000, 0x2000, jump_short),
    Family::new(0xF000, 0x3000, register_move),
    Family::new(0xFC00, 0x4000, alu_two),
    Family::new(0xFE00, 0x4400, pointer_two),
    Family::new(0xF800, 0x4800, bit_immediate),
    Family::new(0xF000, 0x5000, three_operands),
    Family::new(0xF000, 0x6000, immediate),
    Family::new(0xF000, 0x8000, post_modify),
    Family::new(0xFF60, 0x9E60, dag_modify),
    Family::new(0xFFF0, 0x9F60, dag_modify_immediate),
    Family::new(0xFC00, 0x9C00, dag_load_store),
    Family::new(0xF000, 0x9000, load_store),
    Family::new(0xFC00, 0xB800, load_store_frame),
    Family::new(0xE000, 0xA000, load_store_offset),
    Family::new(0xFF00, 0xF800, debug_function),
    Family::new(0xFF00, 0xF900, debug_output),
];

fn program_control(word: u32, _: u32) -> Option<Op> {
    use prog_ctrl::{ARG, FUNC};
    let arg = ARG.code(word);
    let (dreg, preg) = (Dreg::from_code(arg), Preg::from_code(arg));
    Some(match (FUNC.get(word), arg) {
        (0, 0) => Op::Nop,
        (1, _) => Op::Return(ReturnFrom::from_code(arg)?),
        (2, 0) => Op::Idle,
        (2, 3) => Op::Csync,
        (2, 4) => Op::Ssync,
        (2, 5) => Op::Emuexcpt,
        (3, _) => Op::Cli(dreg?),
        (4, _) => Op::Sti(dreg?),
        (5, _) => Op::JumpReg(preg?),
        (6, _) => Op::CallReg(preg?),
        (7, _) => Op::CallPcReg(preg?),
        (8, _) => Op::JumpPcReg(preg?),
        (9, _) => Op::Raise(arg as u8),
        (10, _) => Op::Excpt(arg as u8),
        (11, 0..=5) => Op::Testset(preg?),
        _ => return None,
    })
}

fn cache_control(word: u32, _: u32) -> Option<Op> {
    use cache_ctrl::{OP, POST, PTR};
    let ptr = Preg::from_bits(PTR.code(word));
    Some(Op::Cache { op: CacheOp::from_code(OP.code(word))?, ptr, post_increment: POST.flag(word) })
}

fn push_or_pop(word: u32, _: u32) -> Option<Op> {
    use push_pop::{REG, WRITE};
    let reg = AllReg::from_bits(REG.code(word));
    if reg.is_reserved() {
        return None;
    }
    if WRITE.flag(word) {
        (reg != AllReg::Sp).then_some(Op::Push(reg))
    } else {
        // Data and pointer registers are popped by a plain load.
        (!reg.is_dreg() && !reg.is_preg()).then_some(Op::Pop(reg))
    }
}

fn push_or_pop_multiple(word: u32, _: u32) -> Option<Op> {
    use push_pop_multiple::{D, DREG, P, PREG, WRITE};
    let (d, p) = (D.flag(word), P.flag(word));
    let (dreg, preg) = (DREG.code(word), PREG.code(word));
    if preg > 5 || (!d && !p) || (!d && dreg != 0) || (!p && preg != 0) {
        return None;
    }
    let range = RegRange { dregs: d.then(|| Dreg::from_bits(dreg)), pregs: p.then(|| Preg::from_bits(preg)) };
    Some(if WRITE.flag(word) { Op::PushMultiple(range) } else { Op::PopMultiple(range) })
}

fn move_if(word: u32, _: u32) -> Option<Op> {
    use cc_move::{CC, DST, DST_P, SRC, SRC_P};
    Some(Op::MoveIf {
        cc: CC.flag(word),
        dst: DPreg::from_bits(DST_P.code(word) << 3 | DST.code(word)),
        src: DPreg::from_bits(SRC_P.code(word) << 3 | SRC.code(word)),
    })
}

fn compare(word: u32, _: u32) -> Option<Op> {
    use cc_flag::{IMM, OP, PTR, X, Y};
    let op = OP.code(word);
    if let Some(accumulators) = CompareAcc::from_code(op) {
        let plain = !IMM.flag(word) && !PTR.flag(word) && X.get(word) == 0 && Y.get(word) == 0;
        return plain.then_some(Op::CompareAcc(accumulators));
    }
    let relation = Compare::from_code(op)?;
    let reg = |number: u16| DPreg::from_bits(PTR.code(word) << 3 | number);
    let left = reg(X.code(word));
    Some(if !IMM.flag(word) {
        Op::Compare { relation, left, right: reg(Y.code(word)) }
    } else if relation.is_unsigned() {
        Op::CompareImm { relation, left, right: Y.get(word) as i8 }
    } else {
        Op::CompareImm { relation, left, right: Y.signed(word) as i8 }
    })
}

fn move_cc(word: u32, _: u32) -> Option<Op> {
    use cc_dreg::{OP, REG};
    let reg = Dreg::from_bits(REG.code(word));
    match OP.get(word) {
        0 => Some(Op::MoveFromCc(reg)),
        1 => Some(Op::MoveToCc(reg)),
        3 if reg == Dreg::R0 => Some(Op::NegateCc),
        _ => None,
    }
}

fn cc_bit(word: u32, _: u32) -> Option<Op> {
    use cc_stat::{BIT, OP, TO_BIT};
    /// CC itself.
    const CC: u8 = 5;
    let bit = BIT.get(word) as u8;
    (bit != CC).then_some(Op::CcBit { op: CcBitOp::from_code(OP.code(word))?, bit, to_cc: !TO_BIT.flag(word) })
}

fn branch_on_cc(word: u32, at: u32) -> Option<Op> {
    use branch::{CC, OFFSET, PREDICTED};
    Some(Op::Branch { cc: CC.flag(word), predicted: PREDICTED.flag(word), target: relative(OFFSET, word, at) })
}

fn jump_short(word: u32, at: u32) -> Option<Op> {
    Some(Op::JumpShort { target: relative(jump::OFFSET, word, at) })
}

fn register_move(word: u32, _: u32) -> Option<Op> {
    use reg_move::{DST, DST_GROUP, SRC, SRC_GROUP};
    let dst = AllReg::from_bits(DST_GROUP.code(word) << 3 | DST.code(word));
    let src = AllReg::from_bits(SRC_GROUP.code(word) << 3 | SRC.code(word));
    can_move(dst, src).then_some(Op::Move { dst, src })
}

/// Which pairs have a path: everything to and from data and pointer registers, the address generators among
/// themselves, and a few to and from accumulators, USP and EMUDAT.
fn can_move(dst: AllReg, src: AllReg) -> bool {
    let general = |reg: AllReg| reg.group() < 2;
    let general_or_dag = |reg: AllReg| reg.group() < 4;
    if dst.is_reserved() || src.is_reserved() {
        return false;
    }
    general(src)
        || general(dst)
        || src.is_accumulator()
        || dst.is_accumulator() && general_or_dag(src)
        || src == AllReg::Emudat && !dst.is_accumulator()
        || dst == AllReg::Emudat
        || general_or_dag(src) && general_or_dag(dst)
        || src == AllReg::Usp && !general_or_dag(dst)
}

fn alu_two(word: u32, _: u32) -> Option<Op> {
    use alu2::{DST, OP, SRC};
    let (dst, src) = (Dreg::from_bits(DST.code(word)), Dreg::from_bits(SRC.code(word)));
    Some(Op::Alu2 { op: Alu2::from_code(OP.code(word))?, dst, src })
}

fn pointer_two(word: u32, _: u32) -> Option<Op> {
    use ptr2::{DST, OP, SRC};
    let (dst, src) = (Preg::from_bits(DST.code(word)), Preg::from_bits(SRC.code(word)));
    Some(Op::Ptr2 { op: Ptr2::from_code(OP.code(word))?, dst, src })
}

fn bit_immediate(word: u32, _: u32) -> Option<Op> {
    use bit_imm::{BIT, DST, OP};
    let dst = Dreg::from_bits(DST.code(word));
    Some(Op::BitImm { op: BitImm::from_code(OP.code(word))?, dst, bit: BIT.get(word) as u8 })
}

fn three_operands(word: u32, _: u32) -> Option<Op> {
    use comp3::{DST, OP, SRC0, SRC1};
    let (dst, src0, src1) = (DST.code(word), SRC0.code(word), SRC1.code(word));
    Some(match Alu3::from_code(OP.code(word)) {
        Some(op) => {
            Op::Alu3 { op, dst: Dreg::from_bits(dst), src0: Dreg::from_bits(src0), src1: Dreg::from_bits(src1) }
        }
        None => Op::Ptr3 {
            op: Ptr3::from_code(OP.code(word))?,
            dst: Preg::from_bits(dst),
            src0: Preg::from_bits(src0),
            src1: Preg::from_bits(src1),
        },
    })
}

fn immediate(word: u32, _: u32) -> Option<Op> {
    use comp_imm::{ADD, DST, IMM, PTR};
    let dst = DPreg::from_bits(PTR.code(word) << 3 | DST.code(word));
    let imm = IMM.signed(word) as i8;
    Some(if ADD.flag(word) { Op::AddImm { dst, imm } } else { Op::MoveImm { dst, imm } })
}

fn dag_modify(word: u32, _: u32) -> Option<Op> {
    use dag_mod::{BREV, I, M, SUB};
    let (dst, by) = (Ireg::from_bits(I.code(word)), Mreg::from_bits(M.code(word)));
    match (SUB.flag(word), BREV.flag(word)) {
        (false, bit_reversed) => Some(Op::DagAdd { dst, by, bit_reversed }),
        (true, false) => Some(Op::DagSub { dst, by }),
        (true, true) => None,
    }
}

fn dag_modify_immediate(word: u32, _: u32) -> Option<Op> {
    use dag_mod_imm::{I, OP};
    let by = [2, -2, 4, -4][OP.get(word) as usize];
    Some(Op::DagAddImm { dst: Ireg::from_bits(I.code(word)), by })
}

fn post_modify(word: u32, _: u32) -> Option<Op> {
    use ldst_post_mod::{INDEX, OP, PTR, REG, WRITE};
    let reg = DPreg::from(Dreg::from_bits(REG.code(word)));
    let addr = Address::PostAdd { base: Preg::from_bits(PTR.code(word)), index: Preg::from_bits(INDEX.code(word)) };
    Some(match (OP.get(word), WRITE.flag(word)) {
        (0, false) => Op::Load { what: Load::Word, reg, addr },
        (1, false) => Op::Load { what: Load::Lo, reg, addr },
        (2, false) => Op::Load { what: Load::Hi, reg, addr },
        (3, false) => Op::Load { what: Load::HalfZero, reg, addr },
        (0, true) => Op::Store { what: Store::Word, reg, addr },
        (1, true) => Op::Store { what: Store::Lo, reg, addr },
        (2, true) => Op::Store { what: Store::Hi, reg, addr },
        // There is only one way to store a half, so this is one more load.
        (3, true) => Op::Load { what: Load::HalfSign, reg, addr },
        _ => return None,
    })
}

fn dag_load_store(word: u32, _: u32) -> Option<Op> {
    use ldst_dag::{I, M, OP, REG, WRITE};
    let reg = DPreg::from(Dreg::from_bits(REG.code(word)));
    let base = Ireg::from_bits(I.code(word));
    let addr = match OP.get(word) {
        0 => Address::DagPostIncrement(base),
        1 => Address::DagPostDecrement(base),
        2 => Address::DagAt(base),
        _ => Address::DagPostAdd { base, by: Mreg::from_bits(M.code(word)) },
    };
    let part = if matches!(addr, Address::DagPostAdd { .. }) { 0 } else { M.get(word) };
    Some(match (part, WRITE.flag(word)) {
        (0, false) => Op::Load { what: Load::Word, reg, addr },
        (1, false) => Op::Load { what: Load::Lo, reg, addr },
        (2, false) => Op::Load { what: Load::Hi, reg, addr },
        (0, true) => Op::Store { what: Store::Word, reg, addr },
        (1, true) => Op::Store { what: Store::Lo, reg, addr },
        (2, true) => Op::Store { what: Store::Hi, reg, addr },
        _ => return None,
    })
}

/// The access that `size` and the `Z` bit stand for, in the 16-bit and in the 32-bit form.
pub(super) fn sized(write: bool, size: u32, z: bool, number: u16, addr: Address) -> Option<Op> {
    let reg = DPreg::from_bits(if size == 0 && z { 8 | number } else { number });
    Some(match (write, size, z) {
        (false, 0, _) => Op::Load { what: Load::Word, reg, addr },
        (false, 1, false) => Op::Load { what: Load::HalfZero, reg, addr },
        (false, 1, true) => Op::Load { what: Load::HalfSign, reg, addr },
        (false, 2, false) => Op::Load { what: Load::ByteZero, reg, addr },
        (false, 2, true) => Op::Load { what: Load::ByteSign, reg, addr },
        (true, 0, _) => Op::Store { what: Store::Word, reg, addr },
        (true, 1, false) => Op::Store { what: Store::Half, reg, addr },
        (true, 2, false) => Op::Store { what: Store::Byte, reg, addr },
        _ => return None,
    })
}

fn load_store(word: u32, _: u32) -> Option<Op> {
    use ldst::{OP, PTR, REG, SIZE, WRITE, Z};
    let ptr = Preg::from_bits(PTR.code(word));
    let addr = match OP.get(word) {
        0 => Address::PostIncrement(ptr),
        1 => Address::PostDecrement(ptr),
        2 => Address::At(ptr),
        _ => return None,
    };
    let op = sized(WRITE.flag(word), SIZE.get(word), Z.flag(word), REG.code(word), addr)?;
    // A pointer cannot be loaded and moved on at once.
    let clash = matches!(op, Op::Load { reg, .. } if reg == DPreg::from(ptr)) && !matches!(addr, Address::At(_));
    (!clash).then_some(op)
}

fn load_store_frame(word: u32, _: u32) -> Option<Op> {
    use ldst_frame::{OFFSET, REG, WRITE};
    let reg = DPreg::from_bits(REG.code(word));
    let offset = (OFFSET.get(word) as i32 - 32) * 4;
    let addr = Address::Offset { base: Preg::Fp, offset, form: OffsetForm::Frame };
    Some(if WRITE.flag(word) {
        Op::Store { what: Store::Word, reg, addr }
    } else {
        Op::Load { what: Load::Word, reg, addr }
    })
}

fn load_store_offset(word: u32, _: u32) -> Option<Op> {
    use ldst_offset::{OFFSET, OP, PTR, REG, WRITE};
    let (op, number) = (OP.get(word), REG.code(word));
    let scale = if matches!(op, 1 | 2) { 2 } else { 4 };
    let offset = OFFSET.get(word) as i32 * scale;
    let addr = Address::Offset { base: Preg::from_bits(PTR.code(word)), offset, form: OffsetForm::Short };
    // The opcodes 0 to 3: a word, an unsigned half, a signed half, a word of a pointer register.
    let (size, z) = [(0, false), (1, false), (1, true), (0, true)][op as usize];
    sized(WRITE.flag(word), size, z, number, addr)
}

fn debug_function(word: u32, _: u32) -> Option<Op> {
    use debug::{GROUP, NUMBER, OP, REG};
    let reg = AllReg::from_bits(REG.code(word));
    let (group, number) = (GROUP.code(word), NUMBER.code(word));
    Some(match (OP.get(word), number) {
        (0, _) => Op::DbgReg(reg),
        (1, _) => Op::Prnt(reg),
        (2, _) if group == 0 => Op::OutcReg(Dreg::from_bits(number)),
        (3, 0) => Op::DbgAcc(super::super::regs::Acc::A0),
        (3, 1) => Op::DbgAcc(super::super::regs::Acc::A1),
        (3, 3) => Op::Abort,
        (3, 4) => Op::Hlt,
        (3, 5) => Op::DbgHalt,
        (3, 6) => Op::DbgCmplx(Dreg::from_bits(group)),
        (3, 7) => Op::Dbg,
        _ => return None,
    })
}

fn debug_output(word: u32, _: u32) -> Option<Op> {
    Some(Op::OutcImm(debug_char::CHAR.get(word) as u8))
}
