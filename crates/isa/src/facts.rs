//! What is constant about an instruction set and its calling convention.

use crate::regs::{Reg, RegSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endian {
    Little,
    Big,
}

#[derive(Debug)]
pub struct Facts {
    pub name: &'static str,
    pub endian: Endian,
    pub pointer_bytes: u8,
    /// Instructions start at multiples of this.
    pub insn_align: u8,
    pub longest_insn: u8,
    /// Branches may have delay slots: see [`Delay`](crate::Delay).
    pub delay_slots: bool,
    /// Loops may close without a branch: see [`Flow::LoopSetup`](crate::Flow::LoopSetup).
    pub hardware_loops: bool,
    /// Code may stand in memory that loads do not reach.
    pub harvard: bool,
    /// Programs are edited in place, with all addresses kept, and not by moving functions.
    pub edited_in_place: bool,
    pub stack_pointer: Reg,
    /// Names by register number, for people.
    pub reg_names: &'static [&'static str],
    /// General registers: those that can hold an address or a counter.
    pub general: RegSet,
    /// The condition flags.
    pub flags: RegSet,
    pub abi: Abi,
}

/// The usual calling convention. Code may break it between functions that only call each other, so these sets are
/// used where a caller or a callee outside the analysed text relies on them.
#[derive(Debug)]
pub struct Abi {
    /// May carry arguments into a function (with everything else a callee may look at on entry).
    pub arguments: RegSet,
    /// Carries the first argument that is a number, if one register does.
    pub first_argument: Option<Reg>,
    /// May carry results out of a function.
    pub results: RegSet,
    /// A function gives these back as they were.
    pub preserved: RegSet,
}

impl Facts {
    pub fn reg_name(&self, reg: Reg) -> &'static str {
        self.reg_names.get(usize::from(reg.0)).copied().unwrap_or("?")
    }
}
