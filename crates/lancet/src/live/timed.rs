//! Timing calls through a clone, where exceptions may pass.
//!
//! The code of [`stub`] puts a return address of its own on the stack, and whoever unwinds the stack would not know it.
//! So functions through which exceptions may pass are cloned, with a call of this routine where they begin and where they
//! end. The same memory says what is timed; the timed call is known by where its return address is. A call that an
//! exception ends never comes to its end: the next one from the same place takes over.

use std::sync::Arc;

use lancet_engine::load::Module;
use lancet_engine::plan::{Argument, Plan, Point};
use lancet_engine::program::ExitKind;
use lancet_isa::Avma;

use super::{Found, Live, Receipt};
use crate::Error;

/// Called as an insertion of a plan calls routines: rdi is the memory, rsi is 0 where the function begins and 1 where it
/// ends, rbp the frame below the function's.
const ROUTINE: [u8; 0x69] = [
    0x48, 0x8d, 0x85, 0xd8, 0, 0, 0, // lea rax, [rbp + 216]: where the return address is
    0x85, 0xf6, 0x75, 0x28, // test esi, esi; jnz end
    0x48, 0x3b, 0x47, 0x28, 0x74, 0x10, // cmp rax, [rdi + OWNER]; je take
    0x83, 0x3f, 0x00, 0x75, 0x1c, // cmp dword [rdi + BUSY], 0; jne out
    0xb9, 1, 0, 0, 0, 0x87, 0x0f, // mov ecx, 1; xchg [rdi + BUSY], ecx
    0x85, 0xc9, 0x75, 0x11, // test ecx, ecx; jnz out
    0x48, 0x89, 0x47, 0x28, // take: mov [rdi + OWNER], rax
    0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0, // rdtsc; shl rdx, 32; or rax, rdx
    0x48, 0x89, 0x47, 0x18, // mov [rdi + BEGIN], rax
    0xc3, // out: ret
    0x48, 0x3b, 0x47, 0x28, 0x75, 0xf9, // end: cmp rax, [rdi + OWNER]; jne out
    0x0f, 0xae, 0xe8, // lfence
    0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0, // rdtsc; shl rdx, 32; or rax, rdx
    0x48, 0x2b, 0x47, 0x18, // sub rax, [rdi + BEGIN]
    0x48, 0x8b, 0x4f, 0x08, // mov rcx, [rdi + INDEX]
    0x48, 0x89, 0x44, 0xcf, 0x40, // mov [rdi + rcx * 8 + TIMES], rax
    0x48, 0xff, 0xc1, 0x48, 0x89, 0x4f, 0x08, // inc rcx; mov [rdi + INDEX], rcx
    0x31, 0xc0, 0x48, 0x89, 0x47, 0x28, // xor eax, eax; mov [rdi + OWNER], rax
    0x48, 0x3b, 0x4f, 0x20, // cmp rcx, [rdi + CAPACITY]
    0x0f, 0x93, 0xc0, 0x89, 0x07, 0xc3, // setae al; mov [rdi + BUSY], eax; ret
];

impl Live {
    /// Leads calls of a function to a clone that times them in the memory at `data`.
    pub(super) fn time_in_clone(&mut self, found: Found, data: Avma) -> Result<Receipt, Error> {
        let mut plan = Plan::new();
        plan.set_payload(Arc::new(Module::raw("timing".into(), ROUTINE.to_vec())));
        let [begin, end] = [0, 1].map(|which| plan.call("", &[Argument::Number(data.0), Argument::Number(which)]));
        let (begin, end) = (begin?, end?);
        let leaves = |kind: &ExitKind| matches!(kind, ExitKind::Return | ExitKind::TailCall(_));
        let exits = self.func(found).exits.iter().enumerate().filter(|(_, exit)| leaves(&exit.kind));
        let exits: Vec<u32> = exits.map(|(index, _)| index as u32).collect();
        plan.edit(found.id).call(Point::Entry(0), begin);
        exits.into_iter().for_each(|exit| plan.edit(found.id).call(Point::Exit(exit), end));
        let room = self.clones_room(&[found], &plan, &format!("timing {data}"), 0)?;
        self.lead_to_clones(&[found], 1, &plan, room, "timing")
    }
}

#[cfg(test)]
mod tests {
    use super::ROUTINE;
    use crate::live::listing;

    #[test]
    fn the_routine_decodes_and_jumps_to_instructions() {
        let lines = listing::of_routine(&ROUTINE);
        assert_eq!(lines.iter().filter(|(_, text)| text.starts_with("ret")).count(), 2);
    }
}
