//! What threads have: areas, which all objects of a process share, and in them shards of each object.
//!
//! The heads of areas and of the window, in bytes:
//!
//! ```text
//! both      0  thread id     64  for each object, which thread has a shard of it
//!        4096  the area made before   +8  bytes that can be used   +16  its own address   +24  bytes that are reserved
//! window   +64  MAGIC   +72  the last area that was made   +80  lock   +88  how many objects there may be
//!         +128  objects, 64 bytes each: name, start and end of the code, table of cuts, code to take a shard, header,
//!               bytes in front of the shard, bytes of the shard
//! ```
//!
//! A process that was forked has zeros in the first page of all areas, so gates notice it as they do a new thread. An area
//! is taken by exchanging its thread id, and added in front of the others. Only an object that is loaded needs the lock, to
//! find its place ([`super::known`]).

use iced_x86::code_asm::{
    AsmRegister64, CodeLabel, dword_ptr, eax, ecx, edi, edx, esi, ptr, qword_ptr, r8, r9, r9d, r10, r10d, r11, r12,
    r13, r14, r14d, r15, rax, rbp, rbx, rcx, rdi, rdx, rsi, rsp,
};

use super::{
    AREA_AT, CELL_AT, Done, ESRCH, FOREIGN, MAP_ANONYMOUS, MAP_FIXED, MAP_NORESERVE, MAP_PRIVATE, NO_THREAD,
    READ_WRITE, RECORD, SHARD_AT, SPACE_AT, STARTED, WINDOW_AT, Writer, call,
};
use crate::runtime::{CELLS, MOST_OBJECTS, NAME_AT, Shard, WINDOW_HEAD, WINDOW_LEN};

const ARCH_SET_GS: u32 = 0x1001;
const ARCH_SET_FS: u32 = 0x1002;
const ARCH_GET_FS: u32 = 0x1003;
const EFAULT: i32 = -14;
const NOTHING: u32 = 0;
const MADV_WIPEONFORK: u32 = 18;
const PAGE: u32 = 4096;
/// In a shard, behind the owner's thread id and namespace.
const SHARD_PROCESS: i32 = 16;
/// In an area, and at the window.
pub(super) const AREA_ID: i32 = 0;
const KEPT: i32 = PAGE as i32;
pub(super) const AREA_BEFORE: i32 = KEPT;
pub(super) const AREA_LEN: i32 = KEPT + 8;
pub(super) const AREA_SELF: i32 = KEPT + 16;
const AREA_ROOM: i32 = KEPT + 24;
/// At the window.
pub(super) const MAGIC_AT: i32 = KEPT + 64;
pub(super) const LAST_AREA: i32 = KEPT + 72;
pub(super) const LOCK: i32 = KEPT + 80;
pub(super) const OBJECTS: i32 = KEPT + 88;
pub(super) const FIRST_OBJECT: i32 = KEPT + 128;
pub(super) const OBJECT_LEN: i32 = 64;
const _: () = assert!(FIRST_OBJECT as u32 + OBJECT_LEN as u32 * MOST_OBJECTS <= WINDOW_HEAD);
/// In an object's record.
pub(super) const NAME: i32 = 0;
pub(super) const START: i32 = 8;
pub(super) const END: i32 = 16;
pub(super) const TABLE: i32 = 24;
pub(super) const TAKE: i32 = 32;
pub(super) const HEADER: i32 = 40;
pub(super) const AT: i32 = 48;
pub(super) const LEN: i32 = 52;

const ALL: [iced_x86::code_asm::AsmRegister64; 11] = [rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11, rbx, rbp];

impl Writer {
    pub(super) fn push_all(&mut self) -> Done {
        ALL.into_iter().try_for_each(|reg| self.asm.push(reg))
    }

    pub(super) fn pop_all(&mut self) -> Done {
        ALL.into_iter().rev().try_for_each(|reg| self.asm.pop(reg))
    }

    /// A static program sets up its threads' own memory by itself, some time after its start. Until then gates find the
    /// address of that memory in a place of ours.
    pub(super) fn stand_in_for_thread(&mut self) -> Done {
        let mut there = self.asm.create_label();
        let place = self.distance_to(self.places.state) + NO_THREAD;
        self.asm.lea(rsi, ptr(rbx + place))?;
        self.asm.mov(edi, ARCH_GET_FS)?;
        self.system(call::ARCH_PRCTL)?;
        self.asm.cmp(qword_ptr(rbx + place), 0)?;
        self.asm.jne(there)?;
        self.asm.lea(rsi, ptr(rbx + place))?;
        self.asm.mov(qword_ptr(rsi), rsi)?;
        self.asm.mov(edi, ARCH_SET_FS)?;
        self.system(call::ARCH_PRCTL)?;
        self.asm.set_label(&mut there)?;
        self.asm.nop()
    }

    /// From now on the object can take shards.
    pub(super) fn be_started(&mut self) -> Done {
        self.asm.lea(rcx, ptr(self.take))?;
        let record = self.state(RECORD);
        self.asm.mov(rax, record)?;
        self.asm.mov(qword_ptr(rax + TAKE), rcx)?;
        let started = self.state(STARTED);
        self.asm.mov(started, 1)
    }

    /// Addresses that nothing else shall have, of an area or of the window: rsi bytes, from rdi on if the flags say so.
    pub(super) fn reserve(&mut self, flags: u32) -> Done {
        self.map_as(NOTHING, flags)
    }

    /// The first rsi bytes of an area can be used.
    pub(super) fn use_first(&mut self, area: AsmRegister64, failed: CodeLabel) -> Done {
        let mut enough = self.asm.create_label();
        self.asm.mov(r8, rsi)?;
        self.asm.mov(rdi, qword_ptr(area + AREA_LEN))?;
        self.asm.sub(rsi, rdi)?;
        self.asm.jbe(enough)?;
        self.asm.cmp(r8, qword_ptr(area + AREA_ROOM))?;
        self.asm.ja(failed)?;
        self.asm.add(rdi, area)?;
        self.asm.mov(edx, READ_WRITE)?;
        self.system(call::MPROTECT)?;
        self.asm.test(rax, rax)?;
        self.asm.js(failed)?;
        self.asm.mov(qword_ptr(area + AREA_LEN), r8)?;
        self.asm.set_label(&mut enough)?;
        self.asm.nop()
    }

    /// The head of an area in r12 of which rsi bytes were reserved.
    pub(super) fn begin_area(&mut self, failed: CodeLabel) -> Done {
        self.asm.mov(r8, rsi)?;
        self.asm.mov(rdi, r12)?;
        self.asm.mov(esi, WINDOW_HEAD)?;
        self.asm.mov(edx, READ_WRITE)?;
        self.system(call::MPROTECT)?;
        self.asm.test(rax, rax)?;
        self.asm.js(failed)?;
        self.asm.mov(qword_ptr(r12 + AREA_LEN), rsi)?;
        self.asm.mov(qword_ptr(r12 + AREA_ROOM), r8)?;
        self.asm.mov(qword_ptr(r12 + AREA_SELF), r12)
    }

    /// Memory of no file, rsi bytes; at rdi, if the flags say so.
    pub(super) fn map_memory(&mut self, flags: u32) -> Done {
        self.map_as(READ_WRITE, flags)
    }

    fn map_as(&mut self, access: u32, flags: u32) -> Done {
        self.asm.mov(r10d, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags)?;
        self.asm.mov(edx, access)?;
        self.asm.mov(r8, -1i64)?;
        self.asm.xor(r9d, r9d)?;
        self.system(call::MMAP)
    }

    /// The thread's base register from rsi.
    pub(super) fn set_base(&mut self) -> Done {
        self.asm.mov(edi, ARCH_SET_GS)?;
        self.system(call::ARCH_PRCTL)
    }

    /// Gates lead here, with the way on on the stack.
    pub(super) fn in_new_thread(&mut self) -> Done {
        self.asm.set_label(&mut self.new_thread)?;
        let Shard::PerThread(_) = self.places.shard else { return self.asm.ret() };
        let (mut no_area, mut have_area, mut same_process, mut out, _) = self.labels5();
        self.push_all()?;
        self.asm.lea(rbx, ptr(self.start_up))?;
        self.asm.call(self.be_known)?;
        let (foreign, started, window) = (self.state(FOREIGN), self.state(STARTED), self.state(WINDOW_AT));
        self.asm.cmp(foreign, 0)?;
        self.asm.jne(out)?;
        // The object may have its place behind all that were known when the thread got its area.
        self.asm.mov(rcx, window)?;
        self.asm.mov(rbp, qword_ptr(rcx + AREA_SELF).gs())?;
        self.asm.mov(rsi, qword_ptr(rcx + AREA_LEN))?;
        self.use_first(rbp, no_area)?;
        self.asm.jmp(have_area)?;
        self.asm.set_label(&mut no_area)?;
        self.asm.xor(esi, esi)?;
        self.set_base()?;
        self.asm.set_label(&mut have_area)?;
        // Others have fetched control from a process that was forked, and nobody has noticed yet.
        self.asm.mov(rcx, window)?;
        self.asm.cmp(qword_ptr(rcx + AREA_ID).gs(), 0)?;
        self.asm.jne(same_process)?;
        self.asm.call(self.take_all)?;
        self.asm.jmp(out)?;
        self.asm.set_label(&mut same_process)?;
        // Before start-up, what is counted is counted in memory that is not the file's, and taken over then.
        self.asm.cmp(started, 0)?;
        self.asm.je(out)?;
        self.asm.xor(edi, edi)?;
        self.asm.call(self.take)?;
        self.asm.set_label(&mut out)?;
        self.pop_all()?;
        // No `ret`, which a shadow stack would take for an attack. No signal's handler writes to the red zone.
        self.asm.lea(rsp, ptr(rsp + 8))?;
        self.asm.jmp(qword_ptr(rsp - 8))
    }

    /// Called in a new thread or process, with rbx set: shards of all objects, since control may return to any. What was
    /// unloaded is left out.
    pub(super) fn take_all(&mut self) -> Done {
        let Shard::PerThread(_) = self.places.shard else { return Ok(()) };
        self.asm.set_label(&mut self.take_all)?;
        let (mut next, mut skip, mut known, _, _) = self.labels5();
        for reg in [r12, r13, r14] {
            self.asm.push(reg)?;
        }
        let (foreign, window) = (self.state(FOREIGN), self.state(WINDOW_AT));
        self.asm.cmp(foreign, 0)?;
        self.asm.jne(known)?;
        self.asm.mov(r12, window)?;
        self.asm.test(r12, r12)?;
        self.asm.jz(known)?;
        self.system(call::GETTID)?;
        self.asm.cmp(rax, qword_ptr(r12 + AREA_ID).gs())?;
        self.asm.je(known)?;
        // Away from the other's shard, whatever happens then.
        self.asm.xor(esi, esi)?;
        self.set_base()?;
        self.asm.xor(r14d, r14d)?;
        self.asm.lea(r13, ptr(r12 + FIRST_OBJECT))?;
        self.asm.set_label(&mut next)?;
        self.asm.cmp(r14d, dword_ptr(r12 + OBJECTS))?;
        self.asm.jae(known)?;
        self.asm.cmp(qword_ptr(r13 + TAKE), 0)?;
        self.asm.je(skip)?;
        self.unless_loaded(r13, skip)?;
        self.asm.mov(rbx, qword_ptr(r13 + START))?;
        self.asm.xor(edi, edi)?;
        self.asm.call(qword_ptr(r13 + TAKE))?;
        self.asm.set_label(&mut skip)?;
        self.asm.add(r13, OBJECT_LEN)?;
        self.asm.inc(r14d)?;
        self.asm.jmp(next)?;
        self.asm.set_label(&mut known)?;
        for reg in [r14, r13, r12] {
            self.asm.pop(reg)?;
        }
        self.asm.ret()
    }

    /// Is the object of a record still there?
    pub(super) fn unless_loaded(&mut self, record: AsmRegister64, gone: CodeLabel) -> Done {
        self.asm.mov(rdi, qword_ptr(record + HEADER))?;
        self.unless_readable(gone)?;
        self.asm.mov(rax, qword_ptr(record + NAME))?;
        self.asm.cmp(qword_ptr(rdi + NAME_AT as i32), rax)?;
        self.asm.jne(gone)
    }

    /// Is there memory at rdi? A system call fails where reading would end the process.
    pub(super) fn unless_readable(&mut self, none: CodeLabel) -> Done {
        self.asm.xor(esi, esi)?;
        self.system(call::ACCESS)?;
        self.asm.cmp(rax, EFAULT)?;
        self.asm.je(none)
    }

    /// Finds or makes the area of the thread whose id is in r13.
    pub(super) fn have_area(&mut self, failed: CodeLabel) -> Done {
        let (mut search, mut next, mut free, mut make, mut found) = self.labels5();
        let (mut add, mut reserved) = (self.asm.create_label(), self.asm.create_label());
        let window = self.state(WINDOW_AT);
        self.asm.mov(r15, window)?;
        self.asm.mov(r12, qword_ptr(r15 + LAST_AREA))?;
        self.asm.set_label(&mut search)?;
        self.asm.test(r12, r12)?;
        self.asm.jz(make)?;
        self.asm.mov(rdi, qword_ptr(r12 + AREA_ID))?;
        // Its own, perhaps with another thread pointer: a static program sets that up.
        self.asm.cmp(rdi, r13)?;
        self.asm.je(found)?;
        // That of a thread which this process has not got, since it was forked.
        self.asm.test(rdi, rdi)?;
        self.asm.jz(free)?;
        self.asm.xor(esi, esi)?;
        self.system(call::KILL)?;
        self.asm.cmp(rax, ESRCH)?;
        self.asm.je(free)?;
        self.asm.set_label(&mut next)?;
        self.asm.mov(r12, qword_ptr(r12 + AREA_BEFORE))?;
        self.asm.jmp(search)?;
        self.asm.set_label(&mut free)?;
        self.asm.mov(rax, rdi)?;
        self.asm.lock().cmpxchg(qword_ptr(r12 + AREA_ID), r13)?;
        self.asm.jne(next)?;
        // The new thread may have the same pointer as the one before.
        self.asm.lea(rdi, ptr(r12 + CELLS as i32))?;
        self.asm.mov(ecx, MOST_OBJECTS)?;
        self.asm.xor(eax, eax)?;
        self.asm.rep().stosq()?;
        self.asm.jmp(found)?;

        self.asm.set_label(&mut make)?;
        self.asm.xor(edi, edi)?;
        self.asm.mov(esi, WINDOW_LEN)?;
        self.reserve(0)?;
        self.asm.test(rax, rax)?;
        self.asm.jns(reserved)?;
        // A process that must not have many addresses: then no more than for what is loaded now.
        self.asm.mov(rsi, qword_ptr(r15 + AREA_LEN))?;
        self.reserve(0)?;
        self.asm.test(rax, rax)?;
        self.asm.js(failed)?;
        self.asm.set_label(&mut reserved)?;
        self.asm.mov(r12, rax)?;
        self.begin_area(failed)?;
        self.asm.mov(rdi, r12)?;
        self.asm.mov(esi, PAGE)?;
        self.asm.mov(edx, MADV_WIPEONFORK)?;
        self.system(call::MADVISE)?;
        self.asm.mov(qword_ptr(r12 + AREA_ID), r13)?;
        self.asm.mov(rax, qword_ptr(r15 + LAST_AREA))?;
        self.asm.set_label(&mut add)?;
        self.asm.mov(qword_ptr(r12 + AREA_BEFORE), rax)?;
        self.asm.lock().cmpxchg(qword_ptr(r15 + LAST_AREA), r12)?;
        self.asm.jne(add)?;
        self.asm.set_label(&mut found)?;
        self.asm.mov(rsi, qword_ptr(r15 + AREA_LEN))?;
        self.use_first(r12, failed)?;
        self.asm.mov(qword_ptr(rbp + AREA_AT), r12)
    }

    /// Where in the thread's area the object's shard is, in rax.
    pub(super) fn load_shard_place(&mut self) -> Done {
        let place = self.state(SHARD_AT);
        self.asm.mov(rax, qword_ptr(rbp + AREA_AT))?;
        self.asm.add(rax, place)
    }

    /// If a shard of the file is mapped there whose thread is gone, that is taken; its address is in rax. What was mapped before
    /// a `fork` may be of another file, if the process id is in its name.
    pub(super) fn take_over(&mut self, own: CodeLabel) -> Done {
        let (mut none, mut gone) = (self.asm.create_label(), self.asm.create_label());
        self.load_shard_place()?;
        self.asm.mov(rdi, qword_ptr(rax))?;
        self.asm.test(rdi, rdi)?;
        self.asm.jz(none)?;
        self.asm.mov(rcx, qword_ptr(rax + 8))?;
        self.asm.cmp(rcx, qword_ptr(rbp + SPACE_AT))?;
        self.asm.jne(none)?;
        self.asm.mov(r12, rax)?;
        self.system(call::GETPID)?;
        self.asm.cmp(rax, qword_ptr(r12 + SHARD_PROCESS))?;
        self.asm.jne(none)?;
        self.asm.mov(rax, r12)?;
        self.asm.cmp(rdi, r13)?;
        self.asm.je(own)?;
        self.asm.xor(esi, esi)?;
        self.system(call::KILL)?;
        self.asm.cmp(rax, ESRCH)?;
        self.asm.je(gone)?;
        self.asm.jmp(none)?;
        self.asm.set_label(&mut gone)?;
        self.load_shard_place()?;
        self.asm.jmp(own)?;
        self.asm.set_label(&mut none)?;
        self.asm.nop()
    }

    /// Notes which process has mapped the shard at rax.
    pub(super) fn note_process(&mut self) -> Done {
        self.asm.mov(r12, rax)?;
        self.system(call::GETPID)?;
        self.asm.mov(qword_ptr(r12 + SHARD_PROCESS), rax)
    }

    /// The shard in the area is this thread's from now on.
    pub(super) fn have_shard(&mut self) -> Done {
        let (cell, window) = (self.state(CELL_AT), self.state(WINDOW_AT));
        self.asm.mov(rcx, qword_ptr(0).fs())?;
        self.asm.mov(rsi, qword_ptr(rbp + AREA_AT))?;
        self.asm.mov(rax, cell)?;
        self.asm.mov(qword_ptr(rsi + rax), rcx)?;
        self.asm.sub(rsi, window)?;
        self.set_base()
    }

    /// Without a file, a thread counts in memory that nobody reads, so that gates let it through.
    pub(super) fn count_for_nobody(&mut self) -> Done {
        self.load_shard_place()?;
        self.asm.mov(rdi, rax)?;
        self.asm.mov(rsi, self.places.shard_len)?;
        self.map_memory(MAP_FIXED)?;
        self.have_shard()
    }

    /// Finds the object whose code the address in rbx is in: then rbx is the distance from its start, and its table is in r14.
    pub(super) fn find_object(&mut self, none: CodeLabel) -> Done {
        let (mut next, mut again, mut found, _, _) = self.labels5();
        self.asm.lea(rax, ptr(self.start_up))?;
        self.asm.mov(r14, qword_ptr(rax + (self.distance_to(self.places.state) + WINDOW_AT)))?;
        self.asm.test(r14, r14)?;
        self.asm.jz(none)?;
        self.asm.xor(ecx, ecx)?;
        self.asm.set_label(&mut again)?;
        self.asm.cmp(ecx, dword_ptr(r14 + OBJECTS))?;
        self.asm.jae(none)?;
        self.asm.mov(eax, ecx)?;
        self.asm.shl(eax, OBJECT_LEN.ilog2() as i32)?;
        let record = |field: i32| qword_ptr(r14 + rax + (FIRST_OBJECT + field));
        self.asm.cmp(rbx, record(END))?;
        self.asm.jae(next)?;
        self.asm.cmp(rbx, record(START))?;
        self.asm.jae(found)?;
        self.asm.set_label(&mut next)?;
        self.asm.inc(ecx)?;
        self.asm.jmp(again)?;
        self.asm.set_label(&mut found)?;
        self.asm.sub(rbx, record(START))?;
        self.asm.mov(r14, record(TABLE))
    }
}
