//! Which events a program uses itself, and which of the others traps may have.
//!
//! Stores to the vectors and masks of the event controller go through pointers that start-up code loads in two halves;
//! where such a pointer is known in its block, so is the vector. A loop that fills all vectors with one address gives
//! none of them a meaning, and its pointer is not known.

use std::collections::BTreeSet;

use lancet_isa::blackfin::{BfInsn, Dreg, Op};

use super::code::{Code, CodeBlock};
use super::constants::Known;

/// Memory-mapped registers of the event controller.
pub const EVT0: u32 = 0xFFE0_2000;
pub const IMASK: u32 = 0xFFE0_2104;

/// The events that traps may raise, the best one first: the least urgent one above IVG15, at which programs run.
const CHOICE: [u8; 8] = [14, 13, 12, 11, 10, 9, 8, 7];

/// An event that the program neither raises nor gives a handler.
pub fn free(code: &Code) -> Option<u8> {
    let mut used = BTreeSet::new();
    for block in code.blocks.values() {
        let mut known = Known::default();
        for insn in &block.insns {
            used.extend(insn.ops().filter_map(|op| match op {
                Op::Raise(event) => Some(*event),
                Op::Store { addr, .. } => known.address(*addr).and_then(event_of_vector),
                _ => None,
            }));
            known.step(insn);
        }
    }
    CHOICE.into_iter().find(|event| !used.contains(event))
}

fn event_of_vector(at: u32) -> Option<u8> {
    at.checked_sub(EVT0).filter(|offset| *offset < 64).map(|offset| (offset / 4) as u8)
}

/// Do the blocks of a function set the interrupt mask to something that may not let the event through? To what CLI gave does.
pub fn masks(blocks: &[&CodeBlock], event: u8) -> bool {
    let gives = |insn: &BfInsn, to: Dreg| matches!(insn.op, Op::Cli(reg) if reg == to);
    let saved = |reg: Dreg| blocks.iter().flat_map(|block| &block.insns).any(|insn| gives(insn, reg));
    blocks.iter().any(|block| {
        let mut known = Known::default();
        block.insns.iter().any(|insn| {
            let masks = insn.ops().any(|op| match op {
                Op::Sti(reg) if !saved(*reg) => known.get((*reg).into()).is_none_or(|mask| mask >> event & 1 == 0),
                Op::Store { addr, .. } => known.address(*addr) == Some(IMASK),
                _ => false,
            });
            known.step(insn);
            masks
        })
    })
}
