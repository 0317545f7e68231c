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

use crate::{Facts, Isa, Svma, Syntax, TextLine};

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

    fn editor(&self) -> Option<&'static dyn crate::edit::Edit> {
        None
    }

    /// Remembers the constants that halves of registers were loaded with, as objdump does.
    fn listing(
        &self,
        code: &[u8],
        at: Svma,
        _: Syntax,
        name: &dyn Fn(Svma) -> Option<String>,
        visit: &mut dyn FnMut(TextLine<'_>),
    ) {
        let mut disassembler = Disassembler::new();
        let mut offset = 0;
        while let Some(rest) = code.get(offset..).filter(|rest| !rest.is_empty()) {
            let at = at + offset as u64;
            let line = disassembler.line(rest, at.0 as u32, name);
            let line = line.unwrap_or_else(|_| Line { text: "ILLEGAL;".to_owned(), len: 2 });
            let len = usize::from(line.len).min(rest.len());
            visit(TextLine { at, code: &rest[..len], text: &line.text });
            offset += len;
        }
    }
}
