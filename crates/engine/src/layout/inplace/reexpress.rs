//! One instruction elsewhere, with the effect that it has at its own address.
//!
//! Most instructions are what they are. Those that use their own address (jumps, calls, LSETUP) become sequences that
//! load the addresses they meant; a pointer register is borrowed for that and kept in RETE meanwhile. None of these
//! sequences touches ASTAT, the stack or memory.

use lancet_isa::blackfin::{
    AllReg, Assembler, BfInsn, EncodeError, Loop, LoopCount, Op, Preg, Ptr2, Ptr3, ReturnFrom, encode,
};

use super::Refusal;
use super::code::{uses_event_registers, uses_loop_registers};

/// How control leaves the new place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// By jumps to the old text.
    Jump,
    /// By RTI, to RETI.
    Interrupt,
}

/// What is added where a branch is taken.
pub type OnTaken<'a> = &'a mut dyn FnMut(&mut Assembler) -> Result<(), EncodeError>;

/// Can the instruction be moved at all?
pub fn check(insn: &BfInsn, leave: Leave, at_bottom: bool) -> Result<(), Refusal> {
    for op in insn.ops() {
        if uses_event_registers(op) {
            return Err(Refusal::UsesEventRegisters);
        }
        if at_bottom && uses_loop_registers(op) {
            return Err(Refusal::LoopRegisters);
        }
        match op {
            Op::Return(ReturnFrom::Subroutine) => {}
            // The handler of a waiting event sees the address behind STI.
            Op::Return(_) | Op::Raise(_) | Op::Sti(_) | Op::Idle | Op::Emuexcpt => {
                return Err(Refusal::ChangesEventState);
            }
            Op::JumpPcReg(_) | Op::CallPcReg(_) if leave == Leave::Jump => return Err(Refusal::PcRelativeTarget),
            _ => {}
        }
        if at_bottom && leaves(op) {
            return Err(Refusal::LoopBottom);
        }
    }
    Ok(())
}

/// Does it transfer control?
pub fn leaves(op: &Op) -> bool {
    matches!(
        op,
        Op::JumpShort { .. }
            | Op::JumpLong { .. }
            | Op::Branch { .. }
            | Op::Call { .. }
            | Op::JumpReg(_)
            | Op::CallReg(_)
            | Op::JumpPcReg(_)
            | Op::CallPcReg(_)
            | Op::Return(_)
    )
}

/// Does control go on behind it without being called back?
pub fn goes_on(op: &Op) -> bool {
    !leaves(op) || matches!(op, Op::Branch { .. })
}

/// Can something be added where it is taken?
pub fn has_target(op: &Op) -> bool {
    matches!(op, Op::JumpShort { .. } | Op::JumpLong { .. } | Op::Branch { .. })
}

/// Writes the instruction, whose bytes are `code`. What does not leave goes on behind what was written.
pub fn write(
    out: &mut Assembler,
    insn: &BfInsn,
    code: &[u8],
    leave: Leave,
    on_taken: OnTaken<'_>,
) -> Result<(), EncodeError> {
    match insn.op {
        Op::JumpShort { target } | Op::JumpLong { target } => {
            on_taken(out)?;
            go(out, target, leave)
        }
        Op::Branch { cc, predicted, target } => {
            // The condition is turned round, over a part whose length is found by writing it.
            let at = out.here();
            let mut part = Assembler::new(at + 2);
            on_taken(&mut part)?;
            go(&mut part, target, leave)?;
            let behind = part.here();
            let around = Op::Branch { cc: !cc, predicted: !predicted, target: behind };
            if encode(&around, at).is_ok() {
                out.op(around)?.raw(&part.finish());
                return Ok(());
            }
            // Too long to jump over: the part stands behind a jump instead.
            let mut part = Assembler::new(at + 6);
            on_taken(&mut part)?;
            go(&mut part, target, leave)?;
            let behind = part.here();
            out.op(Op::Branch { cc, predicted, target: at + 6 })?;
            out.op(Op::JumpLong { target: behind })?.raw(&part.finish());
            Ok(())
        }
        Op::Call { target } => {
            borrow(out, Preg::P0, |out, reg| {
                out.load_address(reg, insn.end())?.mov(AllReg::Rets, reg)?;
                if leave == Leave::Interrupt {
                    out.load_address(reg, target)?.mov(AllReg::Reti, reg)?;
                }
                Ok(())
            })?;
            match leave {
                Leave::Jump => out.op(Op::JumpLong { target })?,
                Leave::Interrupt => out.op(Op::Return(ReturnFrom::Interrupt))?,
            };
            Ok(())
        }
        Op::CallReg(to) => {
            borrow(out, other(to), |out, reg| {
                out.load_address(reg, insn.end())?.mov(AllReg::Rets, reg)?;
                Ok(())
            })?;
            go_to_register(out, to, leave)
        }
        Op::JumpReg(to) => go_to_register(out, to, leave),
        // Only for `Leave::Interrupt`: a jump has no register left to hold the sum.
        Op::CallPcReg(offset) | Op::JumpPcReg(offset) => {
            borrow(out, other(offset), |out, reg| {
                if matches!(insn.op, Op::CallPcReg(_)) {
                    out.load_address(reg, insn.end())?.mov(AllReg::Rets, reg)?;
                }
                let sum = other(offset);
                out.load_address(reg, insn.at)?;
                out.op(Op::Ptr3 { op: Ptr3::Add, dst: sum, src0: sum, src1: offset })?.mov(AllReg::Reti, reg)?;
                Ok(())
            })?;
            out.op(Op::Return(ReturnFrom::Interrupt)).map(|_| ())
        }
        Op::Return(ReturnFrom::Subroutine) if leave == Leave::Interrupt => {
            borrow(out, Preg::P0, |out, reg| out.mov(reg, AllReg::Rets)?.mov(AllReg::Reti, reg).map(|_| ()))?;
            out.op(Op::Return(ReturnFrom::Interrupt)).map(|_| ())
        }
        Op::LoopSetup { which, first, last, count } => loop_setup(out, which, first, last, count),
        _ => {
            out.raw(code);
            Ok(())
        }
    }
}

/// To a fixed address of the old text.
fn go(out: &mut Assembler, target: u32, leave: Leave) -> Result<(), EncodeError> {
    match leave {
        Leave::Jump => out.op(Op::JumpLong { target }).map(|_| ()),
        Leave::Interrupt => {
            borrow(out, Preg::P0, |out, reg| out.load_address(reg, target)?.mov(AllReg::Reti, reg).map(|_| ()))?;
            out.op(Op::Return(ReturnFrom::Interrupt)).map(|_| ())
        }
    }
}

fn go_to_register(out: &mut Assembler, to: Preg, leave: Leave) -> Result<(), EncodeError> {
    match leave {
        Leave::Jump => out.op(Op::JumpReg(to)),
        Leave::Interrupt => out.mov(AllReg::Reti, to.into())?.op(Op::Return(ReturnFrom::Interrupt)),
    }
    .map(|_| ())
}

/// Sets the three registers of a hardware loop.
fn loop_setup(out: &mut Assembler, which: Loop, first: u32, last: u32, count: LoopCount) -> Result<(), EncodeError> {
    let (lc, lt, lb) = match which {
        Loop::Loop0 => (AllReg::Lc0, AllReg::Lt0, AllReg::Lb0),
        Loop::Loop1 => (AllReg::Lc1, AllReg::Lt1, AllReg::Lb1),
    };
    let scratch = match count {
        LoopCount::Keep => Preg::P0,
        LoopCount::Reg(reg) | LoopCount::HalfReg(reg) => other(reg),
    };
    borrow(out, scratch, |out, reg| {
        out.load_address(reg, first)?.mov(lt, reg)?;
        out.load_address(reg, last)?.mov(lb, reg)?;
        match count {
            LoopCount::Keep => {}
            LoopCount::Reg(from) => {
                out.mov(lc, from.into())?;
            }
            LoopCount::HalfReg(from) => {
                out.op(Op::Ptr2 { op: Ptr2::ShiftRight1, dst: scratch, src: from })?.mov(lc, reg)?;
            }
        }
        Ok(())
    })
}

/// Lets `with` use a pointer register, and puts back what was in it.
fn borrow(
    out: &mut Assembler,
    reg: Preg,
    with: impl FnOnce(&mut Assembler, AllReg) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    out.mov(AllReg::Rete, reg.into())?;
    with(out, reg.into())?;
    out.mov(reg.into(), AllReg::Rete).map(|_| ())
}

/// A pointer register that is not this one.
fn other(reg: Preg) -> Preg {
    if reg == Preg::P0 { Preg::P1 } else { Preg::P0 }
}
