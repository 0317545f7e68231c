//! Blackfin (ADSP-BF5xx).
//!
//! Unlike the other instruction sets, this one also offers its decoded form, [`BfInsn`], because a simulator executes
//! it and the editor re-expresses instructions in it.

mod assemble;
mod decode;
mod effects;
mod encode;
mod facts;
mod fields;
mod insn;
mod operands;
mod regs;
mod text;
mod values;

use crate::{Facts, Isa};

pub use assemble::Assembler;
pub use decode::decode;
pub use encode::{EncodeError, Encoded, encode, encode_insn};
pub use insn::{BfInsn, Op};
pub use operands::*;
pub use regs::{Acc, AllReg, DPreg, Dhalf, Dreg, Half, Ireg, Loop, Mreg, Preg};
pub use text::{Disassembler, Line, Names};

#[derive(Debug)]
pub(crate) struct Blackfin;

impl Isa for Blackfin {
    fn facts(&self) -> &'static Facts {
        &facts::FACTS
    }
}
