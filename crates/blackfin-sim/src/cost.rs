//! What instructions cost when nothing stalls.

use lancet_isa::blackfin::{BfInsn, Op, RegRange};

/// Cycles of an instruction.
pub struct Cost {
    /// When the next instruction follows.
    pub falls: u32,
    /// When it changes the flow.
    pub taken: u32,
}

/// Refilling the pipeline behind a change of flow that the decoder sees.
const JUMP: u32 = 5;
/// The same when a prediction was wrong.
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
        Op::Csync | Op::Ssync => plain(10),
        Op::Raise(_) | Op::Excpt(_) | Op::Sti(_) => plain(3),
        Op::Link { .. } => plain(4),
        Op::Unlink => plain(3),
        Op::PushMultiple(range) | Op::PopMultiple(range) => plain(registers(range)),
        Op::Testset(_) => plain(2),
        _ => plain(1),
    }
}

fn registers(range: RegRange) -> u32 {
    let data = range.dregs.map_or(0, |reg| 8 - u32::from(reg.code()));
    let pointers = range.pregs.map_or(0, |reg| 6 - u32::from(reg.code()).min(6));
    data + pointers
}
