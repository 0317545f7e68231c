//! An object becomes known at the window, before anything of it is counted: it finds the place that threads have its shards
//! at, and a record.
//!
//! | register | meanwhile |
//! | --- | --- |
//! | rbx | the start of this code |
//! | rbp | the object's name |
//! | r12 | the window |
//! | r13 | bytes in front of the object's shards; before, this thread's id |
//! | r14 | its record |
//!
//! Where the place is another than the code was written for, all fields of the code are changed that say so, before any
//! of it runs: gates send every thread here until the object is known, and here is a lock. The code stays executable, so a
//! system that forbids code which can be written to refuses before anything has changed.

use iced_x86::code_asm::{
    AsmRegister64, byte_ptr, dl, dword_ptr, eax, ecx, edi, edx, ptr, qword_ptr, r8, r8d, r9, r10d, r12, r12d, r13,
    r13d, r14, r14d, r15, r15d, rax, rbp, rbx, rcx, rdi, rdx, rsi, rsp,
};

use super::threads::{
    AREA_BEFORE, AREA_ID, AT, END, FIRST_OBJECT, HEADER, LAST_AREA, LEN, LOCK, MAGIC_AT, NAME, OBJECT_LEN, OBJECTS,
    START, TABLE, TAKE,
};
use super::{CELL_AT, Done, ESRCH, FOREIGN, KNOWN, MAP_FIXED_NOREPLACE, RECORD, SHARD_AT, WINDOW_AT, Writer, call};
use crate::edit::OWN_PREFIX;
use crate::runtime::{MOST_OBJECTS, NAME_AT, Shard, ThreadPlace, WINDOW, WINDOW_HEAD, WINDOW_LEN};

const ARCH_GET_GS: u32 = 0x1004;
/// Other layouts of the window have other numbers.
const MAGIC: i32 = 0x326c_6e63;
/// Where else the window may be: so far below, again and again.
const NEXT_WINDOW: i32 = 0x1000_0000;
/// How often another thread may go on that is about to make the window.
const PATIENCE: u32 = 100;
const READ_EXECUTE: u32 = 5;
const ALL_ACCESS: u32 = 7;
/// As the first of the places to change: nobody knows them any more.
const UNKNOWN_PLACES: i32 = crate::runtime::UNKNOWN_PLACES as i32;
/// A prefix for the segment that begins at zero.
const DS: i32 = 0x3e;
/// On the stack: all signals, those that were blocked, the end of the new code.
const OLD_MASK: i32 = 8;
const TEXT_END: i32 = 16;
const FRAME: i32 = 32;

const NO_WINDOW: &[u8] = b"lancet: no addresses below 2 GiB are left for counters\n";
const CANNOT_MOVE: &[u8] = b"lancet: counters of another object are in the way, and this code cannot be changed\n";
const GS_IN_USE: &[u8] = b"lancet: counts are not kept: the program uses the gs register itself\n";

impl Writer {
    /// Called with rbx set; changes registers that callers of functions do not rely on, and rbp.
    pub(super) fn become_known(&mut self) -> Done {
        let Shard::PerThread(place) = self.places.shard else { return Ok(()) };
        self.asm.set_label(&mut self.be_known)?;
        let (mut done, mut there, _, _, _) = self.labels5();
        let known = self.state(KNOWN);
        self.asm.cmp(known, 0)?;
        self.asm.jne(done)?;
        for reg in [r12, r13, r14, r15] {
            self.asm.push(reg)?;
        }
        self.asm.sub(rsp, FRAME)?;
        // No handler of a signal may wait for the thread that it interrupts.
        self.asm.mov(qword_ptr(rsp), -1)?;
        self.asm.mov(rsi, rsp)?;
        self.asm.lea(rdx, ptr(rsp + OLD_MASK))?;
        self.set_mask()?;
        self.find_window(place)?;
        self.lock_window()?;
        self.asm.cmp(known, 0)?;
        self.asm.jne(there)?;
        self.look_at_base()?;
        self.find_place(place)?;
        self.change_places(place)?;
        self.write_record()?;
        self.asm.mov(known, 1)?;
        self.asm.set_label(&mut there)?;
        self.asm.mov(qword_ptr(r12 + LOCK), 0)?;
        self.asm.lea(rsi, ptr(rsp + OLD_MASK))?;
        self.asm.xor(edx, edx)?;
        self.set_mask()?;
        self.asm.add(rsp, FRAME)?;
        for reg in [r15, r14, r13, r12] {
            self.asm.pop(reg)?;
        }
        self.asm.set_label(&mut done)?;
        self.asm.ret()
    }

    /// Edited code cannot run.
    fn refuse(&mut self, why: &[u8]) -> Done {
        let text = self.text(why);
        self.print(text, why.len())?;
        self.asm.mov(edi, 127u32)?;
        self.system(call::EXIT_GROUP)
    }

    /// The window of this process in r12. All objects look in the same order.
    fn find_window(&mut self, place: ThreadPlace) -> Done {
        let (mut again, mut look, mut absent, mut make, mut found) = self.labels5();
        let (mut made, mut taken, mut shorter, _, _) = self.labels5();
        self.asm.mov(r14d, PATIENCE)?;
        self.asm.set_label(&mut again)?;
        self.asm.mov(r12d, WINDOW)?;
        self.asm.set_label(&mut look)?;
        self.asm.lea(rdi, ptr(r12 + MAGIC_AT))?;
        self.unless_readable(absent)?;
        self.asm.cmp(dword_ptr(r12 + MAGIC_AT), MAGIC)?;
        self.asm.je(found)?;
        self.asm.set_label(&mut absent)?;
        self.asm.sub(r12d, NEXT_WINDOW)?;
        self.asm.jnz(look)?;
        self.asm.mov(r15d, WINDOW_LEN)?;
        self.asm.set_label(&mut shorter)?;
        self.asm.mov(r12d, WINDOW)?;
        self.asm.set_label(&mut make)?;
        self.asm.mov(rdi, r12)?;
        self.asm.mov(rsi, r15)?;
        self.reserve(MAP_FIXED_NOREPLACE)?;
        self.asm.cmp(rax, r12)?;
        self.asm.je(made)?;
        // Something else is there, or another thread is making the window at this moment.
        self.asm.dec(r14d)?;
        self.asm.js(taken)?;
        self.system(call::SCHED_YIELD)?;
        self.asm.jmp(again)?;
        self.asm.set_label(&mut taken)?;
        self.asm.sub(r12d, NEXT_WINDOW)?;
        self.asm.jnz(make)?;
        // A process that must not have many addresses: then no more than this object needs.
        let least = WINDOW_HEAD + place.at + self.places.shard_len as u32;
        self.asm.cmp(r15, least as i32)?;
        self.asm.mov(r15d, least)?;
        self.asm.jne(shorter)?;
        self.refuse(NO_WINDOW)?;
        self.asm.set_label(&mut made)?;
        self.begin_area(taken)?;
        // No thread has it, and it is not that of a forked process.
        self.asm.mov(qword_ptr(r12 + AREA_ID), -1)?;
        self.asm.mov(dword_ptr(r12 + MAGIC_AT), MAGIC)?;
        self.asm.set_label(&mut found)?;
        self.asm.nop()
    }

    /// The lock has the id of its thread. In a process that was forked meanwhile there is no such thread.
    fn lock_window(&mut self) -> Done {
        let (mut again, mut wait, mut locked, _, _) = self.labels5();
        self.system(call::GETTID)?;
        self.asm.mov(r13, rax)?;
        self.asm.set_label(&mut again)?;
        self.asm.xor(eax, eax)?;
        self.asm.lock().cmpxchg(qword_ptr(r12 + LOCK), r13)?;
        self.asm.je(locked)?;
        self.asm.mov(r14, rax)?;
        self.system(call::GETPID)?;
        self.asm.mov(rdi, rax)?;
        self.asm.mov(rsi, r14)?;
        self.asm.xor(edx, edx)?;
        self.system(call::TGKILL)?;
        self.asm.cmp(rax, ESRCH)?;
        self.asm.jne(wait)?;
        self.asm.mov(rax, r14)?;
        self.asm.lock().cmpxchg(qword_ptr(r12 + LOCK), r13)?;
        self.asm.je(locked)?;
        self.asm.set_label(&mut wait)?;
        self.system(call::SCHED_YIELD)?;
        self.asm.jmp(again)?;
        self.asm.set_label(&mut locked)?;
        self.asm.nop()
    }

    /// Is the thread's base register free, or does it lead to an area?
    fn look_at_base(&mut self) -> Done {
        let (mut next, mut ours, mut foreign, _, _) = self.labels5();
        self.asm.mov(rsi, rsp)?;
        self.asm.mov(edi, ARCH_GET_GS)?;
        self.system(call::ARCH_PRCTL)?;
        self.asm.mov(rax, qword_ptr(rsp))?;
        self.asm.test(rax, rax)?;
        self.asm.jz(ours)?;
        self.asm.add(rax, r12)?;
        self.asm.mov(rcx, qword_ptr(r12 + LAST_AREA))?;
        self.asm.set_label(&mut next)?;
        self.asm.test(rcx, rcx)?;
        self.asm.jz(foreign)?;
        self.asm.cmp(rcx, rax)?;
        self.asm.je(ours)?;
        self.asm.mov(rcx, qword_ptr(rcx + AREA_BEFORE))?;
        self.asm.jmp(next)?;
        self.asm.set_label(&mut foreign)?;
        let text = self.text(GS_IN_USE);
        self.print(text, GS_IN_USE.len())?;
        let is_foreign = self.state(FOREIGN);
        self.asm.mov(is_foreign, 1)?;
        self.asm.set_label(&mut ours)?;
        self.asm.nop()
    }

    /// The place in r13, and a record in r14. The same file may have been loaded before, or twice: then it has the same
    /// place, since it has the same counters.
    fn find_place(&mut self, place: ThreadPlace) -> Done {
        let (mut next, mut again, mut placed, mut have_record, mut not_here) = self.labels5();
        let (mut all_seen, mut others_name) = (self.asm.create_label(), self.asm.create_label());
        if self.places.cuts.is_some() {
            self.load_text_end()?;
            self.asm.mov(qword_ptr(rsp + TEXT_END), rcx)?;
        }
        self.asm.mov(rbp, qword_ptr(rbx + self.distance_to(self.places.header + NAME_AT)))?;
        self.asm.xor(r14d, r14d)?;
        self.asm.mov(r13, -1i64)?;
        self.asm.lea(r15, ptr(r12 + FIRST_OBJECT))?;
        self.asm.set_label(&mut again)?;
        self.end_of_records(rax)?;
        self.asm.cmp(r15, rax)?;
        self.asm.jae(all_seen)?;
        if self.places.cuts.is_some() {
            // What had its code where this object is has gone.
            self.asm.cmp(qword_ptr(r15 + END), rbx)?;
            self.asm.jbe(not_here)?;
            self.asm.mov(rcx, qword_ptr(rsp + TEXT_END))?;
            self.asm.cmp(qword_ptr(r15 + START), rcx)?;
            self.asm.jae(not_here)?;
            self.asm.mov(qword_ptr(r15 + END), 0)?;
        }
        self.asm.set_label(&mut not_here)?;
        self.asm.cmp(qword_ptr(r15 + NAME), rbp)?;
        self.asm.jne(others_name)?;
        self.asm.mov(r13d, dword_ptr(r15 + AT))?;
        let mut gone = self.asm.create_label();
        self.unless_loaded(r15, gone)?;
        self.asm.lea(rcx, ptr(rbx + self.distance_to(self.places.header)))?;
        self.asm.cmp(qword_ptr(r15 + HEADER), rcx)?;
        self.asm.jne(others_name)?;
        self.asm.set_label(&mut gone)?;
        self.asm.mov(r14, r15)?;
        self.asm.set_label(&mut others_name)?;
        self.asm.add(r15, OBJECT_LEN)?;
        self.asm.jmp(again)?;

        self.asm.set_label(&mut all_seen)?;
        self.asm.test(r13, r13)?;
        self.asm.jns(placed)?;
        self.find_room(place)?;
        self.asm.set_label(&mut placed)?;
        self.asm.test(r14, r14)?;
        self.asm.jnz(have_record)?;
        self.asm.lea(r14, ptr(r12 + (FIRST_OBJECT + OBJECT_LEN * place.index as i32)))?;
        self.asm.cmp(qword_ptr(r14 + NAME), 0)?;
        self.asm.je(have_record)?;
        self.asm.lea(r14, ptr(r12 + FIRST_OBJECT))?;
        self.asm.mov(ecx, MOST_OBJECTS)?;
        self.asm.set_label(&mut next)?;
        self.asm.cmp(qword_ptr(r14 + NAME), 0)?;
        self.asm.je(have_record)?;
        self.asm.add(r14, OBJECT_LEN)?;
        self.asm.dec(ecx)?;
        self.asm.jnz(next)?;
        self.refuse(NO_WINDOW)?;
        self.asm.set_label(&mut have_record)?;
        let (mut no_memory, mut enough) = (self.asm.create_label(), self.asm.create_label());
        self.asm.lea(rsi, ptr(r13 + (WINDOW_HEAD + self.places.shard_len as u32) as i32))?;
        self.use_first(r12, no_memory)?;
        self.asm.jmp(enough)?;
        self.asm.set_label(&mut no_memory)?;
        self.refuse(NO_WINDOW)?;
        self.asm.set_label(&mut enough)?;
        self.asm.nop()
    }

    /// In r13, room that no other object has: where the code was written for, or the first that is behind it.
    fn find_room(&mut self, place: ThreadPlace) -> Done {
        let (mut try_here, mut again, mut next, mut too_far, mut found) = self.labels5();
        let len = self.places.shard_len as i32;
        self.asm.mov(r13d, place.at)?;
        // One more time from the start.
        self.asm.mov(r8d, 1u32)?;
        self.asm.set_label(&mut try_here)?;
        self.asm.cmp(r13, (WINDOW_LEN - WINDOW_HEAD) as i32 - len)?;
        self.asm.jg(too_far)?;
        self.asm.lea(r15, ptr(r12 + FIRST_OBJECT))?;
        self.asm.set_label(&mut again)?;
        self.end_of_records(rax)?;
        self.asm.cmp(r15, rax)?;
        self.asm.jae(found)?;
        self.asm.cmp(qword_ptr(r15 + NAME), 0)?;
        self.asm.je(next)?;
        self.asm.mov(eax, dword_ptr(r15 + AT))?;
        self.asm.mov(ecx, dword_ptr(r15 + LEN))?;
        self.asm.add(rcx, rax)?;
        self.asm.cmp(r13, rcx)?;
        self.asm.jae(next)?;
        self.asm.lea(rdx, ptr(r13 + len))?;
        self.asm.cmp(rdx, rax)?;
        self.asm.jbe(next)?;
        self.asm.mov(r13, rcx)?;
        self.asm.jmp(try_here)?;
        self.asm.set_label(&mut next)?;
        self.asm.add(r15, OBJECT_LEN)?;
        self.asm.jmp(again)?;
        self.asm.set_label(&mut too_far)?;
        self.asm.xor(r13d, r13d)?;
        self.asm.dec(r8d)?;
        self.asm.jns(try_here)?;
        self.refuse(NO_WINDOW)?;
        self.asm.set_label(&mut found)?;
        self.asm.nop()
    }

    fn end_of_records(&mut self, to: AsmRegister64) -> Done {
        self.asm.mov(eax, dword_ptr(r12 + OBJECTS))?;
        self.asm.shl(eax, OBJECT_LEN.ilog2() as i32)?;
        self.asm.lea(to, ptr(r12 + rax + FIRST_OBJECT))
    }

    /// All fields of the code that are for threads' areas, if the place is not the one that the code was written for.
    fn change_places(&mut self, place: ThreadPlace) -> Done {
        let (mut next, mut more, mut no_prefix, mut end, mut as_written) = self.labels5();
        let (mut refuse, mut may_write) = (self.asm.create_label(), self.asm.create_label());
        let (shard_at, cell_at) = (self.state(SHARD_AT), self.state(CELL_AT));
        let (is_foreign, window_at) = (self.state(FOREIGN), self.state(WINDOW_AT));
        self.asm.mov(window_at, r12)?;
        self.asm.lea(rax, ptr(r13 + WINDOW_HEAD as i32))?;
        self.asm.mov(shard_at, rax)?;
        // What is to be added to each of the two kinds.
        self.asm.lea(r8, ptr(r12 + r13 - (WINDOW + place.at) as i32))?;
        self.asm.mov(r9, r14)?;
        self.asm.sub(r9, r12)?;
        self.asm.sub(r9, FIRST_OBJECT + OBJECT_LEN * place.index as i32)?;
        self.asm.sar(r9, (OBJECT_LEN / 8).ilog2() as i32)?;
        self.asm.lea(rax, ptr(r9 + (place.cell() - WINDOW) as i32))?;
        self.asm.mov(cell_at, rax)?;
        self.asm.lea(r9, ptr(r9 + r12 - WINDOW as i32))?;
        self.asm.mov(rax, r8)?;
        self.asm.or(rax, r9)?;
        self.asm.or(rax, is_foreign)?;
        self.asm.jz(as_written)?;
        self.load_own_places()?;
        self.asm.cmp(byte_ptr(r15), UNKNOWN_PLACES)?;
        self.asm.je(refuse)?;
        self.allow(ALL_ACCESS)?;
        self.asm.test(rax, rax)?;
        self.asm.jns(may_write)?;
        self.asm.set_label(&mut refuse)?;
        self.refuse(CANNOT_MOVE)?;
        self.asm.set_label(&mut may_write)?;
        self.asm.mov(rsi, r15)?;
        self.asm.mov(rdi, rbx)?;
        self.asm.set_label(&mut next)?;
        self.asm.xor(eax, eax)?;
        self.asm.xor(ecx, ecx)?;
        self.asm.set_label(&mut more)?;
        self.asm.movzx(edx, byte_ptr(rsi))?;
        self.asm.inc(rsi)?;
        self.asm.mov(r10d, edx)?;
        self.asm.and(r10d, 0x7f)?;
        self.asm.shl(r10d, iced_x86::code_asm::cl)?;
        self.asm.or(eax, r10d)?;
        self.asm.add(ecx, 7)?;
        self.asm.test(dl, dl)?;
        self.asm.js(more)?;
        self.asm.test(eax, eax)?;
        self.asm.jz(end)?;
        // The lowest bit tells the kind.
        self.asm.shr(eax, 1)?;
        self.asm.mov(r10d, r8d)?;
        self.asm.cmovc(r10d, iced_x86::code_asm::r9d)?;
        self.asm.add(rdi, rax)?;
        self.asm.add(dword_ptr(rdi), r10d)?;
        // Without a base register of its own, the thread counts in memory that nobody reads.
        self.asm.cmp(is_foreign, 0)?;
        self.asm.je(no_prefix)?;
        self.asm.mov(byte_ptr(rdi - OWN_PREFIX as i32), DS)?;
        self.asm.set_label(&mut no_prefix)?;
        self.asm.jmp(next)?;
        self.asm.set_label(&mut end)?;
        self.allow(READ_EXECUTE)?;
        self.asm.set_label(&mut as_written)?;
        self.asm.nop()
    }

    /// This access to all new code, whose end is in r15.
    fn allow(&mut self, access: u32) -> Done {
        self.asm.mov(rdi, rbx)?;
        self.asm.mov(rsi, r15)?;
        self.asm.sub(rsi, rbx)?;
        self.asm.mov(edx, access)?;
        self.system(call::MPROTECT)
    }

    /// Others read records without the lock.
    fn write_record(&mut self) -> Done {
        let (record_at, shard_at) = (self.state(RECORD), self.state(SHARD_AT));
        let mut enough = self.asm.create_label();
        self.asm.mov(record_at, r14)?;
        self.asm.mov(qword_ptr(r14 + TAKE), 0)?;
        self.asm.mov(dword_ptr(r14 + AT), r13d)?;
        self.asm.mov(dword_ptr(r14 + LEN), self.places.shard_len as u32)?;
        self.asm.mov(qword_ptr(r14 + START), rbx)?;
        if let Some(table) = self.places.cuts {
            self.asm.mov(rax, shard_at)?;
            self.asm.lea(rax, ptr(r12 + rax + table as i32))?;
            self.asm.mov(qword_ptr(r14 + TABLE), rax)?;
            self.asm.mov(rcx, qword_ptr(rsp + TEXT_END))?;
            self.asm.mov(qword_ptr(r14 + END), rcx)?;
        }
        self.asm.lea(rcx, ptr(rbx + self.distance_to(self.places.header)))?;
        self.asm.mov(qword_ptr(r14 + HEADER), rcx)?;
        self.asm.mov(qword_ptr(r14 + NAME), rbp)?;
        self.asm.sub(r14, r12)?;
        self.asm.sub(r14, FIRST_OBJECT - OBJECT_LEN)?;
        self.asm.shr(r14, OBJECT_LEN.ilog2() as i32)?;
        self.asm.cmp(dword_ptr(r12 + OBJECTS), r14d)?;
        self.asm.jae(enough)?;
        self.asm.mov(dword_ptr(r12 + OBJECTS), r14d)?;
        self.asm.set_label(&mut enough)?;
        self.asm.nop()
    }

    /// Where the places are listed, in r15: behind all new code.
    fn load_own_places(&mut self) -> Done {
        self.asm.set_label(&mut self.own_places)?;
        // lea r15, [rip + ...], filled in once that is known.
        self.asm.db(&[0x4c, 0x8d, 0x3d, 0, 0, 0, 0])
    }
}
