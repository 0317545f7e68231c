//! Blackfin (ADSP-BF5xx).
//!
//! Unlike the other instruction sets, this one also offers its decoded form, [`BfInsn`], because a simulator executes
//! it and the editor re-expresses instructions in it.

mod decode;
mod fields;
mod insn;
mod operands;
mod regs;
mod text;

pub use decode::decode;
pub use insn::{BfInsn, Op};
pub use operands::*;
pub use regs::{Acc, AllReg, DPreg, Dhalf, Dreg, Half, Ireg, Loop, Mreg, Preg};
pub use text::{Disassembler, Line, Names};
