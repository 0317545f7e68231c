//! What callers know of a function beyond the calling convention.
//!
//! A compiler that sees a function and its callers keeps values across the call in registers that the convention lets
//! the function change, because it sees that it does not (gcc's -fipa-ra). A replacement that was compiled elsewhere
//! changes them, and the program computes nonsense. So what callers read behind calls is compared with what the new
//! code changes; registers that it saves and restores count as left alone.

use std::ops::ControlFlow;

use lancet_engine::load::{Export, Module};
use lancet_engine::program::relied_on;
use lancet_isa::{Flow, Isa, RegSet, Svma};

use super::{Found, Live};
use crate::Error;

impl Live {
    pub(super) fn refuse_if_relied(&self, found: Found, module: &Module, export: &Export) -> Result<(), Error> {
        let program = &self.object(found).program;
        let isa = program.image().isa();
        let relied = relied_on(program, found.id);
        let lost = relied & changes(isa, module.code_of(export));
        if lost.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = lost.iter().map(|reg| isa.facts().reg_name(reg)).collect();
        // All that they rely on: other code would change others.
        let general = (relied & isa.facts().general).iter();
        let options: Vec<String> = general.map(|reg| format!("-fcall-saved-{}", isa.facts().reg_name(reg))).collect();
        let why = format!(
            "its callers know that it leaves {} alone, and the new code does not; compile that with {}",
            names.join(", "),
            options.join(" ")
        );
        Err(Error::NoJump { pid: self.pid(), function: self.name(found), why })
    }
}

/// What code may leave changed.
fn changes(isa: &dyn Isa, code: &[u8]) -> RegSet {
    let facts = isa.facts();
    let stack = RegSet::of(facts.stack_pointer);
    let (mut changed, mut saved, mut restored) = (RegSet::EMPTY, RegSet::EMPTY, RegSet::EMPTY);
    let decoded = isa.decode(code, Svma(0), &mut |insn| {
        let effects = insn.effects;
        if matches!(insn.flow, Flow::Call(_)) {
            changed |= RegSet::ALL.without(facts.abi.preserved);
        } else if insn.stores && effects.writes.without(stack).is_empty() && effects.writes.intersects(stack) {
            // Saved on the stack before anything changes it.
            saved |= effects.reads.without(stack).without(changed);
        } else if effects.reads == stack && effects.writes.intersects(stack) {
            restored |= effects.writes.without(stack);
        }
        changed |= effects.writes;
        ControlFlow::Continue(())
    });
    match decoded {
        Ok(()) => changed.without(saved & restored).without(stack),
        // Whatever it is.
        Err(_) => changed | facts.general | facts.flags,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_and_restored_is_left_alone() {
        let isa = lancet_isa::for_elf_machine(62).expect("x86-64");
        let named = |code: &[u8]| {
            let names = changes(isa, code).iter().map(|reg| isa.facts().reg_name(reg)).collect::<Vec<_>>();
            ["rax", "rcx", "rdi"].map(|name| names.contains(&name))
        };
        // mov rax, rdi; xor ecx, ecx; ret
        assert_eq!(named(&[0x48, 0x89, 0xf8, 0x31, 0xc9, 0xc3]), [true, true, false]);
        // push rcx; xor ecx, ecx; mov eax, ecx; pop rcx; ret
        assert_eq!(named(&[0x51, 0x31, 0xc9, 0x89, 0xc8, 0x59, 0xc3]), [true, false, false]);
        // call 0; ret
        assert_eq!(named(&[0xe8, 0, 0, 0, 0, 0xc3]), [true, true, true]);
    }
}
