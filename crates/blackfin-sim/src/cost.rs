//! What instructions cost when all memory is L1.
//!
//! Instructions of several cycles: Analog Devices' Engineer-to-Engineer Note EE-197 (multi-cycle instructions and
//! latencies of the ADSP-BF531/532/533, which have the same core). Everything it does not name takes one cycle.
//!
//! Stalls: an address generator needs its registers early in the pipeline. A pointer that was loaded from memory can be used
//! three cycles later than one that was computed there, and one that was moved from a data register four cycles later
//! (the numbers by which GCC schedules: `bfin_adjust_cost` in gcc/config/bfin/bfin.c). Stalls are found within a
//! block; the registers of a block's first instructions count as ready.

use lancet_isa::blackfin::{Address, BfInsn, DPreg, Loop, LoopCount, Op, Preg, RegRange};

/// Cycles of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// When the next instruction follows.
    pub falls: u32,
    /// When it changes the flow.
    pub taken: u32,
}

/// Refilling the pipeline behind a change of flow that was foreseen.
const JUMP: u32 = 5;
/// The same when it was not.
const MISPREDICTED: u32 = 9;

pub fn of(insn: &BfInsn) -> Cost {
    let plain = |cycles| Cost { falls: cycles, taken: cycles };
    match insn.op {
        Op::Branch { predicted: true, .. } => Cost { falls: MISPREDICTED, taken: JUMP },
        Op::Branch { predicted: false, .. } => Cost { falls: 1, taken: MISPREDICTED },
        Op::JumpShort { .. }
        | Op::JumpLong { .. }
        | Op::Call { .. }
        | Op::JumpReg(_)
        | Op::CallReg(_)
        | Op::JumpPcReg(_)
        | Op::CallPcReg(_)
        | Op::Return(_) => plain(JUMP),
        Op::Csync | Op::Ssync => plain(SYNC),
        Op::Raise(_) | Op::Excpt(_) | Op::Sti(_) => plain(3),
        Op::Alu2 { op: lancet_isa::blackfin::Alu2::Multiply, .. } => plain(3),
        Op::Link { .. } => plain(3),
        Op::Unlink => plain(2),
        Op::PushMultiple(range) | Op::PopMultiple(range) => plain(registers(range)),
        Op::Testset(_) => plain(2),
        _ => plain(1),
    }
}

/// `CSYNC` and `SSYNC` with nothing to wait for.
pub const SYNC: u32 = 10;

fn registers(range: RegRange) -> u32 {
    let data = range.dregs.map_or(0, |reg| 8 - u32::from(reg.code()));
    let pointers = range.pregs.map_or(0, |reg| 6 - u32::from(reg.code()).min(6));
    data + pointers
}

/// How much later a loaded or a moved register is there for the address generators.
const AFTER_LOAD: u32 = 3;
const AFTER_MOVE: u32 = 4;

/// When the registers of the address generators can be used, in cycles since the start of the block.
#[derive(Default)]
pub struct Hazards {
    /// P0 to FP, then I, M, B and L.
    ready: [u32; 24],
}

impl Hazards {
    /// The cycles that the instruction, which would issue in cycle `now`, has to wait.
    pub fn stall(&mut self, insn: &BfInsn, now: u32) -> u32 {
        let mut stall = 0;
        for op in insn.ops() {
            each_address_reg(op, |reg| stall = stall.max(self.ready[reg].saturating_sub(now)));
        }
        let issued = now + stall + 1;
        for op in insn.ops() {
            match *op {
                Op::Load { reg, .. } => self.delay(reg.code(), issued + AFTER_LOAD),
                Op::PopMultiple(RegRange { pregs: Some(first), .. }) => {
                    (first.code()..6).for_each(|reg| self.delay(8 + reg, issued + AFTER_LOAD));
                }
                // From another register of the address generators there is a short way.
                Op::Move { dst, src } if !(8..32).contains(&src.code()) => self.delay(dst.code(), issued + AFTER_MOVE),
                _ => {}
            }
        }
        stall
    }

    fn delay(&mut self, code: u16, until: u32) {
        if let Some(ready) = usize::from(code).checked_sub(8).and_then(|index| self.ready.get_mut(index)) {
            *ready = until;
        }
    }
}

/// Shows `visit` the registers of the address generators that an operation reads, as indices into [`Hazards::ready`].
fn each_address_reg(op: &Op, mut visit: impl FnMut(usize)) {
    let mut pointer = |reg: Preg| visit(reg as usize);
    match *op {
        Op::JumpReg(reg) | Op::CallReg(reg) | Op::JumpPcReg(reg) | Op::CallPcReg(reg) => pointer(reg),
        Op::LoopSetup { which: Loop::Loop0 | Loop::Loop1, count, .. } => match count {
            LoopCount::Reg(reg) | LoopCount::HalfReg(reg) => pointer(reg),
            LoopCount::Keep => {}
        },
        Op::Ptr2 { dst, src, .. } => {
            pointer(dst);
            pointer(src);
        }
        Op::Ptr3 { src0, src1, .. } => {
            pointer(src0);
            pointer(src1);
        }
        Op::AddImm { dst, .. } => {
            if let Some(reg) = dst.as_preg() {
                pointer(reg);
            }
        }
        Op::Compare { left, right, .. } => [left, right].into_iter().filter_map(DPreg::as_preg).for_each(pointer),
        Op::Push(_) | Op::Pop(_) | Op::PushMultiple(_) | Op::PopMultiple(_) | Op::Link { .. } => pointer(Preg::Sp),
        Op::Unlink => pointer(Preg::Fp),
        Op::DagAdd { dst, by, .. } | Op::DagSub { dst, by } => {
            index_register(dst as usize, &mut visit);
            visit(12 + by as usize);
        }
        Op::DagAddImm { dst, .. } => index_register(dst as usize, &mut visit),
        Op::Load { addr, .. } | Op::Store { addr, .. } => match addr {
            Address::At(base)
            | Address::PostIncrement(base)
            | Address::PostDecrement(base)
            | Address::Offset { base, .. } => pointer(base),
            Address::PostAdd { base, index } => {
                pointer(base);
                pointer(index);
            }
            Address::DagAt(base) => visit(8 + base as usize),
            Address::DagPostIncrement(base) | Address::DagPostDecrement(base) => {
                index_register(base as usize, &mut visit);
            }
            Address::DagPostAdd { base, by } => {
                index_register(base as usize, &mut visit);
                visit(12 + by as usize);
            }
        },
        _ => {}
    }
}

/// An index register that moves needs its base and length as well.
fn index_register(number: usize, visit: &mut impl FnMut(usize)) {
    visit(8 + number);
    visit(16 + number);
    visit(20 + number);
}
