//! Watching a program run, instruction by instruction.

use crate::state::{ACC_MASK, State};
use lancet_isa::blackfin::BfInsn;

/// One completed instruction.
pub struct Step<'a> {
    pub insn: &'a BfInsn,
    /// The registers before and after it; `after.pc` is where the program goes on, events included.
    pub before: &'a State,
    pub after: &'a State,
}

/// The names of the registers in [`State::r`].
const NAMES: [&str; 32] = [
    "R0", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "P0", "P1", "P2", "P3", "P4", "P5", "SP", "FP", "I0", "I1", "I2",
    "I3", "M0", "M1", "M2", "M3", "B0", "B1", "B2", "B3", "L0", "L1", "L2", "L3",
];

impl Step<'_> {
    /// All registers that changed, but the PC: name and new value.
    pub fn changes(&self) -> Vec<(&'static str, u64)> {
        let (before, after) = (self.before, self.after);
        let mut changes: Vec<_> =
            self.written().map(|(index, value)| (NAMES.get(index).copied().unwrap_or("?"), u64::from(value))).collect();
        for (name, old, new) in [("A0", before.acc[0], after.acc[0]), ("A1", before.acc[1], after.acc[1])] {
            if old != new {
                changes.push((name, new as u64 & ACC_MASK));
            }
        }
        let words = [
            ("ASTAT", before.astat(), after.astat()),
            ("LC0", before.lc[0], after.lc[0]),
            ("LT0", before.lt[0], after.lt[0]),
            ("LB0", before.lb[0], after.lb[0]),
            ("LC1", before.lc[1], after.lc[1]),
            ("LT1", before.lt[1], after.lt[1]),
            ("LB1", before.lb[1], after.lb[1]),
            ("RETS", before.rets, after.rets),
            ("RETI", before.reti, after.reti),
            ("RETX", before.retx, after.retx),
            ("RETN", before.retn, after.retn),
            ("SYSCFG", before.syscfg, after.syscfg),
        ];
        let changed = words.into_iter().filter(|(_, old, new)| old != new);
        changes.extend(changed.map(|(name, _, new)| (name, u64::from(new))));
        changes
    }

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
