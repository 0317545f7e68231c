//! Threads that wait in injected code until Lancet has looked at them.
//!
//! ```text
//! thread: takes the slot ─> leaves its registers ─> waits ──────────> takes them back, changed perhaps ─> gives the slot up
//! Lancet:                                  sees it ─> closure ─> answers
//! ```
//!
//! There is one slot, which one thread has at a time. Nobody waits for ever: if there is no answer for about a second,
//! Lancet is gone; the thread closes the slot and goes on, and from then on nobody stops. A signal's handler that comes
//! to the same place in a thread that has the slot goes past.

use std::sync::Arc;

use lancet_engine::load::Module;
use lancet_engine::sink::live::{LiveError, Memory};
use lancet_isa::Avma;
use lancet_sys::ptrace::Registers;

/// Naps of 20 µs and more, one second of them at least.
const MOST_NAPS: u32 = 20_000;

/// The routine, called as an insertion of a plan calls them: rdi is the slot, rsi the place, rbp the frame with the
/// registers that the call has saved.
const ROUTINE: [u8; 0xca] = [
    0x83, 0x7f, 0x08, 0x00, 0x74, 0x33, // cmp dword [rdi + OPEN], 0; je out
    0x49, 0x89, 0xf8, 0x49, 0x89, 0xf1, // mov r8, rdi; mov r9, rsi
    0xb8, 0xba, 0x00, 0x00, 0x00, 0x0f, 0x05, // mov eax, gettid; syscall
    0x41, 0x89, 0xc2, // mov r10d, eax
    0xba, 0x00, 0x00, 0x00, 0x00, // mov edx, MOST_NAPS
    0x31, 0xc0, // acquire: xor eax, eax
    0xf0, 0x45, 0x0f, 0xb1, 0x10, 0x74, 0x1f, // lock cmpxchg [r8], r10d; je got
    0x44, 0x39, 0xd0, 0x74, 0x10, // cmp eax, r10d; je out
    0xe8, 0x84, 0x00, 0x00, 0x00, // call nap
    0xff, 0xca, 0x74, 0x08, // dec edx; jz gone
    0x41, 0x83, 0x78, 0x08, 0x00, 0x75, 0xe2, // cmp dword [r8 + OPEN], 0; jne acquire
    0xc3, // out: ret
    0x41, 0xc7, 0x40, 0x08, 0x00, 0x00, 0x00, 0x00, 0xc3, // gone: mov dword [r8 + OPEN], 0; ret
    0x4d, 0x89, 0x48, 0x18, 0x4d, 0x89, 0x50, 0x20, // got: mov [r8 + PLACE], r9; mov [r8 + THREAD], r10
    0x49, 0x89, 0x68, 0x28, 0x49, 0x89, 0x58, 0x30, // mov [r8 + FRAME], rbp; mov [r8 + KEPT], rbx
    0x4d, 0x89, 0x60, 0x38, 0x4d, 0x89, 0x68, 0x40, // and r12, r13,
    0x4d, 0x89, 0x70, 0x48, 0x4d, 0x89, 0x78, 0x50, // r14, r15
    0x41, 0xc7, 0x40, 0x10, 0x01, 0x00, 0x00, 0x00, // mov dword [r8 + STATE], WAITS
    0xb9, 0xf4, 0x01, 0x00, 0x00, // wait: mov ecx, 500
    0x41, 0x83, 0x78, 0x10, 0x02, 0x74, 0x17, // spin: cmp dword [r8 + STATE], ANSWERED; je done
    0xf3, 0x90, 0xff, 0xc9, 0x75, 0xf3, // pause; dec ecx; jnz spin
    0xe8, 0x30, 0x00, 0x00, 0x00, 0xff, 0xca, 0x75, 0xe5, // call nap; dec edx; jnz wait
    0x41, 0xc7, 0x40, 0x08, 0x00, 0x00, 0x00, 0x00, // mov dword [r8 + OPEN], 0
    0x49, 0x8b, 0x58, 0x30, 0x4d, 0x8b, 0x60, 0x38, // done: mov rbx, [r8 + KEPT]; and r12,
    0x4d, 0x8b, 0x68, 0x40, 0x4d, 0x8b, 0x70, 0x48, 0x4d, 0x8b, 0x78, 0x50, // r13, r14, r15
    0x41, 0xc7, 0x40, 0x10, 0x00, 0x00, 0x00, 0x00, // mov dword [r8 + STATE], 0
    0x41, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc3, // mov dword [r8], 0; ret
    0x68, 0x20, 0x4e, 0x00, 0x00, 0x6a, 0x00, // nap: push 20000; push 0
    0x48, 0x89, 0xe7, 0x31, 0xf6, // mov rdi, rsp; xor esi, esi
    0xb8, 0x23, 0x00, 0x00, 0x00, 0x0f, 0x05, // mov eax, nanosleep; syscall
    0x48, 0x83, 0xc4, 0x10, 0xc3, // add rsp, 16; ret
];
const NAPS_AT: usize = 0x17;

/// What the slot holds, after the thread that has it.
const OPEN: u64 = 8;
const STATE: u64 = 16;
const PLACE: usize = 24;
const THREAD: usize = 32;
const FRAME: usize = 40;
const KEPT: usize = 48;
const WAITS: u64 = 1;
const ANSWERED: u32 = 2;

/// What the call has saved, from the frame upwards: rbp, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax, flags.
const SAVED: u64 = 11;
const RED_ZONE: u64 = 128;

/// Memory through which one thread at a time talks to Lancet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub at: Avma,
}

/// A thread that waits.
pub(super) struct Parked {
    pub place: usize,
    pub thread: u32,
    pub registers: Registers,
    frame: Avma,
}

impl Slot {
    pub const SIZE: u64 = 88;

    pub fn new(at: Avma) -> Slot {
        Slot { at }
    }

    /// The routine, for a plan.
    pub fn payload() -> Arc<Module> {
        let mut code = ROUTINE.to_vec();
        code[NAPS_AT..NAPS_AT + 4].copy_from_slice(&MOST_NAPS.to_le_bytes());
        Arc::new(Module::raw("breakpoints".into(), code))
    }

    /// From now on threads stop.
    pub fn open(self, memory: &Memory) -> Result<(), LiveError> {
        memory.write(self.at, &[0; Slot::SIZE as usize])?;
        memory.write(self.at + OPEN, &1_u32.to_le_bytes())
    }

    /// From now on none does. One that waits finds no answer needed.
    pub fn close(self, memory: &Memory) -> Result<(), LiveError> {
        memory.write(self.at + OPEN, &0_u32.to_le_bytes())?;
        match self.look(memory)? {
            Some(parked) => self.answer(memory, &parked, &parked.registers),
            None => Ok(()),
        }
    }

    /// The thread that waits, if there is one.
    pub fn look(self, memory: &Memory) -> Result<Option<Parked>, LiveError> {
        let bytes = memory.read(self.at, Slot::SIZE)?;
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        if word(STATE as usize) != WAITS {
            return Ok(None);
        }
        let frame = Avma(word(FRAME));
        let saved = memory.read(frame, SAVED * 8)?;
        let saved = |i: usize| u64::from_le_bytes(saved[i * 8..i * 8 + 8].try_into().unwrap_or_default());
        let [rbp, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax, eflags] = std::array::from_fn(saved);
        let [rbx, r12, r13, r14, r15] = std::array::from_fn(|i| word(KEPT + 8 * i));
        let rsp = frame.0 + SAVED * 8 + RED_ZONE;
        let registers = Registers {
            r15,
            r14,
            r13,
            r12,
            rbp,
            rbx,
            r11,
            r10,
            r9,
            r8,
            rax,
            rcx,
            rdx,
            rsi,
            rdi,
            orig_rax: u64::MAX,
            rip: 0,
            cs: 0,
            eflags,
            rsp,
            ss: 0,
            fs_base: 0,
            gs_base: 0,
            ds: 0,
            es: 0,
            fs: 0,
            gs: 0,
        };
        Ok(Some(Parked { place: word(PLACE) as usize, thread: word(THREAD) as u32, registers, frame }))
    }

    /// Gives the thread its registers, and lets it go on.
    pub fn answer(self, memory: &Memory, parked: &Parked, new: &Registers) -> Result<(), LiveError> {
        let bytes = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        if *new != parked.registers {
            let saved =
                [new.rbp, new.r11, new.r10, new.r9, new.r8, new.rdi, new.rsi, new.rdx, new.rcx, new.rax, new.eflags];
            memory.write(parked.frame, &bytes(&saved))?;
            memory.write(self.at + KEPT as u64, &bytes(&[new.rbx, new.r12, new.r13, new.r14, new.r15]))?;
        }
        memory.write(self.at + STATE, &ANSWERED.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::listing;

    #[test]
    fn the_routine_decodes_and_jumps_to_instructions() {
        let lines = listing::of_routine(&ROUTINE);
        assert_eq!(lines.iter().filter(|(_, text)| text.starts_with("ret")).count(), 4);
        assert_eq!(ROUTINE[NAPS_AT - 1], 0xba, "mov edx");
        assert_eq!(ROUTINE.last(), Some(&0xc3));
    }
}
