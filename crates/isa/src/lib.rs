//! What an instruction is.
//!
//! One interface for every instruction set, object-safe and picked from the file's `e_machine` at run time, never
//! by the machine Lancet itself was built for. This crate does no I/O and knows nothing of files or processes.
//!
//! - [`Decode`]: bytes to [`Insn`], and to text.
//! - [`Semantic`]: what instructions compute, for slicing.
//! - [`edit::Edit`]: moving instructions and making new ones.
//!
//! Each instruction set is a folder with the same file names: `decode.rs`, `effects.rs`, `values.rs`, `text.rs`,
//! `facts.rs`, `edit.rs`.
#![forbid(unsafe_code)]

mod addr;
pub mod blackfin;
pub mod edit;
mod elf;
mod facts;
mod insn;
mod regs;
pub mod runtime;
pub mod value;
mod x86_64;

use std::ops::ControlFlow;

pub use addr::{Avma, FileOff, Svma};
pub use elf::{DynamicReloc, elf_dynamic_relocs, elf_machine_name};
pub use facts::{Abi, Endian, Facts};
pub use insn::{Delay, Flow, Insn, Mentions, Target};
pub use regs::{Effects, Reg, RegSet};

/// Bytes that are no instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("no valid instruction at {at}")]
    Invalid { at: Svma },
    #[error("the bytes end inside the instruction at {at}")]
    Truncated { at: Svma },
}

impl DecodeError {
    pub fn at(self) -> Svma {
        match self {
            DecodeError::Invalid { at } | DecodeError::Truncated { at } => at,
        }
    }
}

/// How to write instructions down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Syntax {
    /// As the GNU tools do by default (on x86-64: AT&T).
    #[default]
    Gnu,
    /// As the vendor's manuals do (on x86-64: Intel).
    Vendor,
}

pub trait Decode: Send + Sync {
    /// Decodes from `code`, whose first byte is at `at`, and shows each instruction to `visit` until it breaks or
    /// the bytes end exactly behind an instruction. It does not stop at branches: `visit` sees the flow.
    fn decode(&self, code: &[u8], at: Svma, visit: &mut dyn FnMut(&Insn) -> ControlFlow<()>)
    -> Result<(), DecodeError>;

    /// Decodes pieces of `code`, whose first byte is at `at`: for many of them that is cheaper than [`decode`](Self::decode).
    fn reader<'c>(&self, code: &'c [u8], at: Svma) -> Box<dyn Reader + 'c>;

    /// The text of the instruction at the start of `code`. `name` may give a symbolic name to an address.
    fn text(
        &self,
        code: &[u8],
        at: Svma,
        syntax: Syntax,
        name: &dyn Fn(Svma) -> Option<String>,
    ) -> Result<String, DecodeError>;
}

/// See [`Decode::reader`].
pub trait Reader {
    /// As [`Decode::decode`] does from this offset.
    fn decode_from(
        &mut self,
        offset: usize,
        visit: &mut dyn FnMut(&Insn) -> ControlFlow<()>,
    ) -> Result<(), DecodeError>;
}

pub trait Semantic: Send + Sync {
    /// What the instruction at the start of `code` computes. Empty where nothing is modelled.
    fn values(&self, code: &[u8], at: Svma) -> value::Values;

    /// Where the indirect jump or call at the start of `code` goes, over the values just before it.
    fn jump_target(&self, code: &[u8], at: Svma) -> Option<value::Expr>;

    /// The condition of the branch at the start of `code`, over the values just before it.
    fn guard(&self, code: &[u8], at: Svma) -> Option<value::Guard>;

    /// May an instruction in `code` call the system? A quick look at the bytes: it may say yes too often.
    fn may_call_system(&self, code: &[u8]) -> bool;

    /// Shows addresses that instructions in `code`, whose first byte is at `at`, may take. A quick look at the bytes: it may
    /// miss some, and show what is none.
    fn likely_addresses(&self, code: &[u8], at: Svma, visit: &mut dyn FnMut(Svma));

    /// Does nothing, and compilers pad with it (`nop` in all its forms, `int3` between functions).
    fn is_padding(&self, code: &[u8], at: Svma) -> bool;

    /// How many bytes at the start of `code` are [such](Self::is_padding) instructions.
    fn padding(&self, code: &[u8], at: Svma) -> usize;
}

pub trait Isa: Decode + Semantic {
    fn facts(&self) -> &'static Facts;

    /// How to change code of this instruction set; `None` where Lancet only reads it.
    fn editor(&self) -> Option<&'static dyn edit::Edit>;

    /// Shows `visit` the text of all of `code`, line by line, with a line for bytes that are no instruction.
    /// It may say more than [`Decode::text`] says of the instructions one by one, because it has seen those before.
    fn listing(
        &self,
        code: &[u8],
        at: Svma,
        syntax: Syntax,
        name: &dyn Fn(Svma) -> Option<String>,
        visit: &mut dyn FnMut(TextLine<'_>),
    ) {
        let mut offset = 0;
        while let Some(rest) = code.get(offset..).filter(|rest| !rest.is_empty()) {
            let at = at + offset as u64;
            let mut len = usize::from(self.facts().insn_align).min(rest.len());
            let mut text = "(bad)".to_owned();
            let decoded = self.decode(rest, at, &mut |insn| {
                len = usize::from(insn.len).min(rest.len());
                ControlFlow::Break(())
            });
            if let Ok(known) = decoded.and_then(|()| self.text(rest, at, syntax, name)) {
                text = known;
            }
            visit(TextLine { at, code: &rest[..len], text: &text });
            offset += len;
        }
    }
}

/// A line of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLine<'a> {
    pub at: Svma,
    pub code: &'a [u8],
    pub text: &'a str,
}

/// Decodes one instruction at the start of `code`.
pub fn decode_one(isa: &dyn Isa, code: &[u8], at: Svma) -> Result<Insn, DecodeError> {
    let mut found = None;
    isa.decode(code, at, &mut |insn| {
        found = Some(*insn);
        ControlFlow::Break(())
    })?;
    found.ok_or(DecodeError::Truncated { at })
}

/// Every instruction set that Lancet knows, with its ELF machine number (`EM_*`).
const KNOWN: &[(u16, &'static dyn Isa)] = &[(62, &x86_64::X86_64), (106, &blackfin::Blackfin)];

/// The instruction set of an ELF machine number, if Lancet knows it.
pub fn for_elf_machine(machine: u16) -> Option<&'static dyn Isa> {
    KNOWN.iter().find(|(number, _)| *number == machine).map(|(_, isa)| *isa)
}

/// All instruction sets that Lancet knows.
pub fn all() -> impl Iterator<Item = &'static dyn Isa> {
    KNOWN.iter().map(|(_, isa)| *isa)
}
