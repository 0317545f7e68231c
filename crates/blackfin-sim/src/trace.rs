//! Watching a program run, instruction by instruction.

use crate::state::State;
use lancet_isa::blackfin::BfInsn;

/// One completed instruction.
pub struct Step<'a> {
    pub insn: &'a BfInsn,
    /// The registers before and after it; `after.pc` is where the program goes on, events included.
    pub before: &'a State,
    pub after: &'a State,
}

impl Step<'_> {
    /// The data, pointer and address-generator registers that changed: number and new value.
    pub fn written(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        let pairs = self.before.r.iter().zip(&self.after.r).enumerate();
        pairs.filter(|(_, (before, after))| before != after).map(|(index, (_, after))| (index, *after))
    }
}

pub trait Tracer {
    fn step(&mut self, step: &Step<'_>);
}

impl<F: FnMut(&Step<'_>)> Tracer for F {
    fn step(&mut self, step: &Step<'_>) {
        self(step);
    }
}
