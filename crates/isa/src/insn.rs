//! One decoded instruction, as every instruction set presents it.
//!
//! Only what control flow and liveness need is here; the operands stay inside the instruction set and come out
//! as [values](crate::value) or as text. The quirks of the machines are part of the interface: delay slots with
//! annulment ([`Delay`]: MIPS, SPARC) and loops that the hardware closes without a branch
//! ([`Flow::LoopSetup`]: Blackfin). A bundle of parallel operations is one instruction.

use crate::addr::Svma;
use crate::regs::Effects;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insn {
    pub at: Svma,
    pub len: u8,
    pub flow: Flow,
    pub delay: Delay,
    /// May write memory (the pushes of calls included).
    pub stores: bool,
    pub effects: Effects,
    pub mentions: Mentions,
}

/// The constants of an instruction that may be addresses: a memory operand at a fixed place, immediates. (The target of
/// a branch is not one: it is in [`Flow`].) An address that is loaded in halves is mentioned by the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mentions([Svma; 2]);

impl Mentions {
    /// 0 stands for none: nothing is there that a program could mean.
    pub(crate) fn new(memory: Svma, immediate: Svma) -> Mentions {
        Mentions([memory, immediate])
    }

    pub fn iter(self) -> impl Iterator<Item = Svma> {
        self.0.into_iter().filter(|at| *at != Svma(0))
    }

    pub fn is_empty(self) -> bool {
        self.0 == [Svma(0); 2]
    }

    /// Those that may be addresses in code that runs wherever it is loaded: not the immediates.
    pub fn movable(self) -> Mentions {
        Mentions([self.0[0], Svma(0)])
    }
}

impl Insn {
    /// The address just behind the instruction.
    pub fn end(&self) -> Svma {
        self.at + u64::from(self.len)
    }
}

/// Where control goes after an instruction (and its delay slot, if it has one).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// To `Target`, always.
    Jump(Target),
    /// To the address or to the next instruction.
    Branch(Svma),
    /// To `Target`, which is expected to return to the next instruction.
    Call(Target),
    /// To the caller.
    Return,
    /// Nowhere: traps that compilers place behind code that never continues (`ud2`, `hlt`).
    Stop,
    /// To the next instruction, after the kernel has seen and changed registers.
    System,
    /// To the next instruction; from now on the instruction at `last` is followed by the one at `first`
    /// until a hardware counter runs out.
    LoopSetup { first: Svma, last: Svma },
}

impl Flow {
    /// Does straight-line decoding stop here?
    pub fn ends_block(self) -> bool {
        !matches!(self, Flow::Next | Flow::System)
    }

    /// May the next instruction run after this one? A call counts: whether it returns is for the caller to know.
    pub fn falls_through(self) -> bool {
        !matches!(self, Flow::Jump(_) | Flow::Return | Flow::Stop)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Stated in the instruction.
    Direct(Svma),
    /// Read from a pointer at a stated address (`jmp [rip+x]`: a PLT stub, a GOT entry).
    Slot(Svma),
    /// Known only to the run.
    Computed,
}

/// What happens to the instruction behind a transfer of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// The transfer is immediate.
    None,
    /// The next instruction runs first.
    Always,
    /// The next instruction runs first if the branch is taken (SPARC `,a`, MIPS likely branches).
    AnnulIfNotTaken,
    /// The next instruction never runs (SPARC `ba,a`).
    AnnulAlways,
}
