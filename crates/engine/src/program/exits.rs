//! Calls that end the process because of what they are given.
//!
//! `error` and `error_at_line` of the C library print a message and then call `exit` with their first argument, unless that
//! is zero. Compilers know that, so behind such a call stands other code. Whether a call is of that kind is told by the
//! block that makes it: the argument is a constant there, because registers of arguments do not survive other calls.

use lancet_isa::value::{Expr, Place};
use lancet_isa::{Flow, Insn, Svma, Target, decode_one};

use super::blocks::{End, RegionBlock};
use super::expr::simplify;
use super::seeds;
use crate::image::Image;

/// Documented to end the process if their first argument is not zero.
const NAMES: [&str; 2] = ["error", "error_at_line"];

/// How a program reaches these functions.
#[derive(Debug, Default)]
pub(super) struct Exits {
    /// Slots that hold their addresses.
    slots: Vec<Svma>,
    /// Stubs that lead to them.
    stubs: Vec<Svma>,
}

impl Exits {
    pub(super) fn find(image: &Image) -> Exits {
        let is_one = |slot: &Svma| image.slot_name(*slot).is_some_and(|name| NAMES.contains(&name));
        let slots: Vec<Svma> = image.relocations().iter().map(|reloc| reloc.place).filter(is_one).collect();
        if slots.is_empty() {
            return Exits::default();
        }
        let leads_to_one = |start: Svma, end: Svma| {
            let mut at = start;
            while let Some(insn) = image.bytes(at, end - at).and_then(|code| decode_one(image.isa(), code, at).ok()) {
                match insn.flow {
                    Flow::Next => at = insn.end(),
                    flow => return matches!(flow, Flow::Jump(Target::Slot(slot)) if slots.contains(&slot)),
                }
            }
            false
        };
        let stubs = seeds::plt_stubs(image).into_iter();
        let stubs = stubs.filter(|stub| stub.end.is_some_and(|end| leads_to_one(stub.start, end)));
        Exits { stubs: stubs.map(|stub| stub.start).collect(), slots }
    }

    fn may_end(&self, to: Target) -> bool {
        match to {
            Target::Direct(to) => self.stubs.contains(&to),
            Target::Slot(slot) => self.slots.contains(&slot),
            Target::Computed => false,
        }
    }

    /// Is this a call that may end the process?
    pub(super) fn may_be(&self, insn: &Insn) -> bool {
        matches!(insn.flow, Flow::Call(to) if self.may_end(to))
    }

    /// Does the last of these instructions, which are a block, call for the end?
    pub(super) fn ends(&self, image: &Image, block: &[Insn]) -> bool {
        let Some((Insn { flow: Flow::Call(to), .. }, before)) = block.split_last() else { return false };
        self.may_end(*to) && is_not_zero(image, before)
    }

    /// The same of a finished block.
    pub(super) fn ends_at(&self, image: &Image, block: &RegionBlock) -> bool {
        let End::Call(to) = block.end else { return false };
        if !self.may_end(to) {
            return false;
        }
        let mut insns = Vec::with_capacity(block.insns as usize);
        let code = image.bytes(block.start, u64::from(block.len)).unwrap_or_default();
        // They were decoded before.
        let _ = image.isa().decode(code, block.start, &mut |insn| {
            insns.push(*insn);
            std::ops::ControlFlow::Continue(())
        });
        self.ends(image, &insns)
    }
}

/// Do these instructions leave a constant that is not zero, as an `int`, as the first argument?
fn is_not_zero(image: &Image, insns: &[Insn]) -> bool {
    let Some(first) = image.isa().facts().abi.first_argument else { return false };
    let Some(last) = insns.iter().rfind(|insn| insn.effects.writes.contains(first)) else { return false };
    let code = image.bytes(last.at, u64::from(last.len)).unwrap_or_default();
    let sets = image.isa().values(code, last.at).sets;
    let mut set = sets.into_iter().filter(|set| set.dst == Place::Reg(first)).map(|set| simplify(set.value));
    set.any(|value| matches!(value, Expr::Const(value) if value as u32 != 0))
}
