//! Handlers of signals: where they interrupt, as long as they have not returned there.
//!
//! The kernel calls a handler with a frame that no other call has: the return address leads to code that asks the kernel
//! to go back, the context stands right behind it, and what is known of the signal behind that; registers point to both.
//! Then the handler is called from here, so that its return can be seen. The kernel gives the interrupted code all its
//! registers back from the context, so this code may use those that a handler must leave as they are.
//!
//! | register | while the handler runs |
//! | --- | --- |
//! | r15 | the context |
//!
//! A handler that changes the address in the context goes on elsewhere: then control does not come back, either. Where two
//! signals come at the same moment, the first handler is interrupted by the second before its first instruction, and what
//! it interrupted itself is noted with the second.

use iced_x86::code_asm::{
    AsmMemoryOperand, CodeLabel, dword_ptr, eax, ecx, ptr, qword_ptr, r9d, r11, r12, r13, r14, r15, rax, rbx, rcx, rdx,
    rsi, rsp,
};

use super::{Done, Writer};
use crate::runtime::{CUT_CELLS, CUT_NUMBERS, Shard};

/// In the kernel's frame: behind the return address `struct ucontext` with the registers, then `siginfo_t`.
const CONTEXT_LEN: i32 = 304;
const CONTEXT_RSI: i32 = 112;
const CONTEXT_RDX: i32 = 136;
const CONTEXT_RSP: i32 = 160;
const CONTEXT_RIP: i32 = 168;
/// The start of `mov rax, 15; syscall`, which is what every C library returns to; debuggers know it by that, too.
const RESTORER: i32 = 0x0fc0_c748;
const CELL_LEN: i32 = 8 * CUT_NUMBERS as i32;
/// With the return address, what the frame has that calls the handler. So the stack is aligned as the kernel had it.
pub(super) const FRAME_LEN: u8 = 16;

impl Writer {
    /// Gates lead here, with the way on on the stack, if rdx points right behind the return address.
    pub(super) fn at_signal(&mut self) -> Done {
        let mut entry = self.signals.entry;
        self.asm.set_label(&mut entry)?;
        self.signals.entry = entry;
        let Some(table) = self.places.cuts else { return self.asm.ret() };
        let (mut other, mut elsewhere, mut unnoted, mut note, mut cell) = self.labels5();
        self.asm.push(rax)?;
        self.asm.lea(rax, ptr(rsp + (16 + 8 + CONTEXT_LEN)))?;
        self.asm.cmp(rax, rsi)?;
        self.asm.jne(other)?;
        self.asm.mov(rax, qword_ptr(rsp + 16))?;
        self.asm.cmp(dword_ptr(rax), RESTORER)?;
        self.asm.jne(other)?;
        self.asm.pop(rax)?;
        self.asm.pop(r11)?;
        self.asm.mov(r15, rdx)?;
        self.asm.mov(r13, 1i64)?;
        self.asm.call(note)?;
        self.asm.test(r9d, r9d)?;
        self.asm.jz(unnoted)?;
        self.asm.push(qword_ptr(r15 + CONTEXT_RIP))?;
        let mut frame_start = self.signals.frame_start;
        self.asm.set_label(&mut frame_start)?;
        self.signals.frame_start = frame_start;
        self.asm.call(r11)?;
        self.asm.mov(rax, qword_ptr(rsp))?;
        self.asm.cmp(qword_ptr(r15 + CONTEXT_RIP), rax)?;
        self.asm.jne(elsewhere)?;
        self.asm.mov(r13, -1i64)?;
        self.asm.call(note)?;
        self.asm.set_label(&mut elsewhere)?;
        self.asm.pop(rax)?;
        let mut frame_end = self.signals.frame_end;
        self.asm.set_label(&mut frame_end)?;
        self.signals.frame_end = frame_end;
        self.asm.ret()?;

        self.asm.set_label(&mut unnoted)?;
        self.asm.jmp(r11)?;
        self.asm.set_label(&mut other)?;
        self.asm.pop(rax)?;
        self.asm.lea(rsp, ptr(rsp + 8))?;
        self.asm.jmp(qword_ptr(rsp - 8))?;

        self.asm.set_label(&mut note)?;
        self.note(table, cell)?;
        self.asm.set_label(&mut cell)?;
        self.find_cell()
    }

    /// Adds r13 for where the context in r15 was interrupted; how often that was in new code is in r9. The cell is found
    /// each time: this may be another process when the handler returns, with counters of its own.
    fn note(&mut self, table: u32, cell: CodeLabel) -> Done {
        let (mut next, mut not_ours, mut done) =
            (self.asm.create_label(), self.asm.create_label(), self.asm.create_label());
        self.asm.xor(r9d, r9d)?;
        self.asm.mov(r12, r15)?;
        self.asm.set_label(&mut next)?;
        self.asm.mov(rbx, qword_ptr(r12 + CONTEXT_RIP))?;
        match self.places.shard {
            Shard::PerThread(_) => self.find_object(not_ours)?,
            Shard::At(shard) => {
                self.load_text_end()?;
                self.asm.cmp(rbx, rcx)?;
                self.asm.jae(not_ours)?;
                self.asm.lea(rcx, ptr(self.start_up))?;
                self.asm.sub(rbx, rcx)?;
                self.asm.jb(not_ours)?;
                self.asm.lea(r14, ptr(rcx + (self.distance_to(shard) + table as i32)))?;
            }
        }
        self.asm.call(cell)?;
        let count = self.in_table(8);
        self.asm.lock().add(count, r13)?;
        self.asm.inc(r9d)?;
        self.asm.set_label(&mut not_ours)?;
        // Is it a handler that has not begun?
        self.asm.mov(rax, qword_ptr(r12 + CONTEXT_RSP))?;
        self.asm.lea(rcx, ptr(rax + 8))?;
        self.asm.cmp(rcx, qword_ptr(r12 + CONTEXT_RDX))?;
        self.asm.jne(done)?;
        self.asm.lea(rcx, ptr(rax + (8 + CONTEXT_LEN)))?;
        self.asm.cmp(rcx, qword_ptr(r12 + CONTEXT_RSI))?;
        self.asm.jne(done)?;
        self.asm.mov(rax, qword_ptr(rax))?;
        self.asm.cmp(rax, qword_ptr(r15 - 8))?;
        self.asm.jne(done)?;
        self.asm.mov(r12, qword_ptr(r12 + CONTEXT_RDX))?;
        self.asm.jmp(next)?;
        self.asm.set_label(&mut done)?;
        self.asm.ret()
    }

    /// The end of the new code, which is filled in once it is known, in rcx.
    pub(super) fn load_text_end(&mut self) -> Done {
        let mut end = self.signals.end;
        self.asm.set_label(&mut end)?;
        self.signals.end = end;
        self.asm.db(&[0x48, 0x8d, 0x0d, 0, 0, 0, 0])
    }

    /// The cell of rbx in the table at r14, as its distance in rcx from the table's start.
    fn find_cell(&mut self) -> Done {
        let (mut again, mut next, mut done) =
            (self.asm.create_label(), self.asm.create_label(), self.asm.create_label());
        let distance = self.in_table(0);
        self.asm.xor(ecx, ecx)?;
        self.asm.set_label(&mut again)?;
        self.asm.mov(rax, distance)?;
        self.asm.cmp(rax, rbx)?;
        self.asm.je(done)?;
        self.asm.test(rax, rax)?;
        self.asm.jnz(next)?;
        // Another handler may want it at this moment: rax is what is there if it was not zero.
        self.asm.xor(eax, eax)?;
        self.asm.lock().cmpxchg(distance, rbx)?;
        self.asm.je(done)?;
        self.asm.cmp(rax, rbx)?;
        self.asm.je(done)?;
        self.asm.set_label(&mut next)?;
        self.asm.add(ecx, CELL_LEN)?;
        self.asm.cmp(ecx, CELL_LEN * (CUT_CELLS as i32 - 1))?;
        self.asm.jb(again)?;
        self.asm.set_label(&mut done)?;
        self.asm.ret()
    }

    /// A number of the cell that is rcx bytes behind the table's start.
    fn in_table(&self, number: i32) -> AsmMemoryOperand {
        let place = qword_ptr(r14 + rcx + number);
        match self.places.shard {
            Shard::At(_) => place,
            Shard::PerThread(_) => place.gs(),
        }
    }
}
