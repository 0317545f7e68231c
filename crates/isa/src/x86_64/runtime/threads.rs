//! What threads have: areas, which all objects of a process share, and in them shards of each object.
//!
//! The heads of areas and of the window, in bytes:
//!
//! ```text
//! area      0  thread id   8  thread   16  the area made before   24  bytes
//! window   64  MAGIC      72  the last area that was made   80  bytes   88  how many objects there may be
//!         128  objects, 64 bytes each: name, start and end of the code, table of cuts, code to take a shard, header
//! ```
//!
//! Nothing here needs a lock: an area is taken by exchanging its thread id, and added in front of the others.

use iced_x86::code_asm::{
    CodeLabel, dword_ptr, eax, ecx, edi, edx, esi, ptr, qword_ptr, r8, r9, r9d, r10, r10d, r11, r12, r13, r14, rax,
    rbp, rbx, rcx, rdi, rdx, rsi, rsp,
};

use super::{
    AREA_AT, Done, ESRCH, MAP_ANONYMOUS, MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_NORESERVE, MAP_PRIVATE, READ_WRITE,
    SPACE_AT, STARTED, Writer, call,
};
use crate::runtime::{NAME_AT, SHARD_THREAD, Shard, ThreadPlace, WINDOW};

const ARCH_SET_GS: u32 = 0x1001;
const ARCH_SET_FS: u32 = 0x1002;
const ARCH_GET_FS: u32 = 0x1003;
const EEXIST: i32 = -17;
const EFAULT: i32 = -14;
/// In the state: this object is known at the window; what stands for a thread's own memory while there is none.
const KNOWN: i32 = 0;
const NO_THREAD: i32 = 24;
/// In an area.
const AREA_ID: i32 = 0;
const AREA_THREAD: i32 = 8;
const AREA_BEFORE: i32 = 16;
const AREA_LEN: i32 = 24;
/// At the window.
const MAGIC_AT: u32 = WINDOW + 64;
const MAGIC: i32 = 0x616c_6e63;
const LAST_AREA: u32 = WINDOW + 72;
const MAPPED_LEN: u32 = WINDOW + 80;
const OBJECTS: u32 = WINDOW + 88;
const FIRST_OBJECT: u32 = WINDOW + 128;
const OBJECT_LEN: u32 = 64;
/// In an object's record.
const NAME: u32 = 0;
pub(super) const START: u32 = 8;
pub(super) const END: u32 = 16;
pub(super) const TABLE: u32 = 24;
const TAKE: u32 = 32;
const HEADER: u32 = 40;

const NO_WINDOW: &[u8] = b"lancet: something else is mapped at 0x70000000, where counters must be\n";

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

    /// Called with rbx set: memory at the window, and the object's record there, if this has not been done yet.
    pub(super) fn become_known(&mut self) -> Done {
        let Shard::PerThread(place) = self.places.shard else { return Ok(()) };
        let mut be_known = self.be_known;
        self.asm.set_label(&mut be_known)?;
        self.be_known = be_known;
        let (mut done, mut there, mut fits, mut refuse, mut ours) = self.labels5();
        let known = self.distance_to(self.places.state) + KNOWN;
        self.asm.cmp(qword_ptr(rbx + known), 0)?;
        self.asm.jne(done)?;
        self.asm.mov(edi, WINDOW)?;
        self.asm.mov(esi, place.area_len)?;
        self.map_memory(MAP_FIXED_NOREPLACE)?;
        self.asm.cmp(rax, WINDOW as i32)?;
        self.asm.jne(there)?;
        self.asm.mov(dword_ptr(MAGIC_AT), MAGIC)?;
        self.asm.mov(dword_ptr(MAPPED_LEN), place.area_len)?;
        self.asm.jmp(fits)?;
        self.asm.set_label(&mut there)?;
        self.asm.cmp(rax, EEXIST)?;
        self.asm.jne(refuse)?;
        self.asm.cmp(dword_ptr(MAGIC_AT), MAGIC)?;
        self.asm.jne(refuse)?;
        // Another object has made it; is it large enough?
        self.asm.mov(eax, dword_ptr(MAPPED_LEN))?;
        self.asm.mov(esi, place.area_len)?;
        self.asm.sub(rsi, rax)?;
        self.asm.jbe(fits)?;
        self.asm.lea(rdi, ptr(rax + WINDOW as i32))?;
        self.map_memory(MAP_FIXED_NOREPLACE)?;
        self.asm.cmp(rax, rdi)?;
        self.asm.jne(refuse)?;
        self.asm.mov(dword_ptr(MAPPED_LEN), place.area_len)?;
        self.asm.set_label(&mut fits)?;
        self.asm.mov(rcx, qword_ptr(rbx + self.distance_to(self.places.header + NAME_AT)))?;
        self.asm.xor(eax, eax)?;
        let record = FIRST_OBJECT + OBJECT_LEN * place.index;
        self.asm.lock().cmpxchg(qword_ptr(record + NAME), rcx)?;
        self.asm.je(ours)?;
        // The same object may be there twice, and shares its counters.
        self.asm.cmp(rax, rcx)?;
        self.asm.je(ours)?;
        // Edited code cannot run without.
        self.asm.set_label(&mut refuse)?;
        let text = self.text(NO_WINDOW);
        self.print(text, NO_WINDOW.len())?;
        self.asm.mov(edi, 127u32)?;
        self.system(call::EXIT_GROUP)?;
        self.asm.set_label(&mut ours)?;
        self.asm.mov(qword_ptr(record + START), rbx)?;
        if let Some(table) = self.places.cuts {
            self.load_text_end()?;
            self.asm.mov(qword_ptr(record + END), rcx)?;
            self.asm.mov(dword_ptr(record + TABLE), place.at + table)?;
        }
        self.asm.lea(rcx, ptr(rbx + self.distance_to(self.places.header)))?;
        self.asm.mov(qword_ptr(record + HEADER), rcx)?;
        let mut enough = self.asm.create_label();
        self.asm.cmp(dword_ptr(OBJECTS), place.index as i32)?;
        self.asm.ja(enough)?;
        self.asm.mov(dword_ptr(OBJECTS), place.index + 1)?;
        self.asm.set_label(&mut enough)?;
        self.asm.mov(qword_ptr(rbx + known), 1)?;
        self.asm.set_label(&mut done)?;
        self.asm.ret()
    }

    /// From now on the object can take shards.
    pub(super) fn be_started(&mut self, place: ThreadPlace) -> Done {
        self.asm.lea(rcx, ptr(self.take))?;
        self.asm.mov(qword_ptr(FIRST_OBJECT + OBJECT_LEN * place.index + TAKE), rcx)?;
        self.asm.mov(qword_ptr(rbx + self.distance_to(self.places.state) + STARTED), 1)
    }

    /// Memory of no file, rsi bytes; at rdi, if the flags say so.
    pub(super) fn map_memory(&mut self, flags: u32) -> Done {
        self.asm.mov(r10d, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags)?;
        self.asm.mov(edx, READ_WRITE)?;
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
        let mut new_thread = self.new_thread;
        self.asm.set_label(&mut new_thread)?;
        self.new_thread = new_thread;
        let Shard::PerThread(_) = self.places.shard else { return self.asm.ret() };
        self.push_all()?;
        self.asm.lea(rbx, ptr(self.start_up))?;
        self.asm.call(self.be_known)?;
        // Before start-up, what is counted is counted in memory that is not the file's, and taken over then.
        let mut early = self.asm.create_label();
        self.asm.cmp(qword_ptr(rbx + self.distance_to(self.places.state) + STARTED), 0)?;
        self.asm.je(early)?;
        self.asm.xor(edi, edi)?;
        self.asm.call(self.take)?;
        self.asm.set_label(&mut early)?;
        self.pop_all()?;
        // No `ret`, which a shadow stack would take for an attack. No signal's handler writes to the red zone.
        self.asm.lea(rsp, ptr(rsp + 8))?;
        self.asm.jmp(qword_ptr(rsp - 8))
    }

    /// In a new thread or process: shards of all objects, since control may return to any. What was unloaded is left out.
    pub(super) fn take_all(&mut self) -> Done {
        let (mut next, mut skip, mut done, mut known, _) = self.labels5();
        self.system(call::GETTID)?;
        self.asm.cmp(rax, qword_ptr(WINDOW + AREA_ID as u32).gs())?;
        self.asm.je(known)?;
        // Away from the other's shard, whatever happens then.
        self.asm.xor(esi, esi)?;
        self.set_base()?;
        self.asm.push(r12)?;
        self.asm.push(r13)?;
        self.asm.xor(ecx, ecx)?;
        self.asm.mov(r12, rcx)?;
        self.asm.set_label(&mut next)?;
        self.asm.mov(eax, dword_ptr(OBJECTS))?;
        self.asm.cmp(r12, rax)?;
        self.asm.jae(done)?;
        self.asm.mov(r13, r12)?;
        self.asm.shl(r13, OBJECT_LEN.ilog2() as i32)?;
        let record = |field: u32| qword_ptr(r13 + (FIRST_OBJECT + field) as i32);
        self.asm.cmp(record(TAKE), 0)?;
        self.asm.je(skip)?;
        // A system call fails where reading would end the process.
        self.asm.mov(rdi, record(HEADER))?;
        self.asm.xor(esi, esi)?;
        self.system(call::ACCESS)?;
        self.asm.cmp(rax, EFAULT)?;
        self.asm.je(skip)?;
        self.asm.mov(rdi, record(HEADER))?;
        self.asm.mov(rax, record(NAME))?;
        self.asm.cmp(qword_ptr(rdi + NAME_AT as i32), rax)?;
        self.asm.jne(skip)?;
        self.asm.mov(rbx, record(START))?;
        self.asm.xor(edi, edi)?;
        self.asm.call(record(TAKE))?;
        self.asm.set_label(&mut skip)?;
        self.asm.inc(r12)?;
        self.asm.jmp(next)?;
        self.asm.set_label(&mut done)?;
        self.asm.pop(r13)?;
        self.asm.pop(r12)?;
        self.asm.set_label(&mut known)?;
        self.asm.nop()
    }

    /// Finds or makes the area of the thread whose id is in r13.
    pub(super) fn have_area(&mut self, place: ThreadPlace, failed: CodeLabel) -> Done {
        let (mut search, mut next, mut free, mut make, mut found) = self.labels5();
        let mut add = self.asm.create_label();
        self.asm.mov(r12, qword_ptr(LAST_AREA))?;
        self.asm.set_label(&mut search)?;
        self.asm.test(r12, r12)?;
        self.asm.jz(make)?;
        self.asm.cmp(qword_ptr(r12 + AREA_LEN), place.area_len as i32)?;
        self.asm.jb(next)?;
        self.asm.mov(rdi, qword_ptr(r12 + AREA_ID))?;
        // Its own, perhaps with another thread pointer: a static program sets that up.
        self.asm.cmp(rdi, r13)?;
        self.asm.je(found)?;
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
        self.asm.je(found)?;
        self.asm.jmp(next)?;

        self.asm.set_label(&mut make)?;
        self.asm.xor(edi, edi)?;
        self.asm.mov(esi, dword_ptr(MAPPED_LEN))?;
        self.map_memory(0)?;
        self.asm.test(rax, rax)?;
        self.asm.js(failed)?;
        self.asm.mov(r12, rax)?;
        self.asm.mov(qword_ptr(r12 + AREA_LEN), rsi)?;
        self.asm.mov(qword_ptr(r12 + AREA_ID), r13)?;
        self.asm.mov(rax, qword_ptr(LAST_AREA))?;
        self.asm.set_label(&mut add)?;
        self.asm.mov(qword_ptr(r12 + AREA_BEFORE), rax)?;
        self.asm.lock().cmpxchg(qword_ptr(LAST_AREA), r12)?;
        self.asm.jne(add)?;
        self.asm.set_label(&mut found)?;
        self.asm.mov(qword_ptr(rbp + AREA_AT), r12)
    }

    /// Where in the thread's area the object's shard is, in rax.
    pub(super) fn load_shard_place(&mut self, place: ThreadPlace) -> Done {
        self.asm.mov(rax, qword_ptr(rbp + AREA_AT))?;
        self.asm.lea(rax, ptr(rax + (place.at - WINDOW) as i32))
    }

    /// If a shard of the file is mapped there whose thread is gone, that is taken; its address is in rax. After `fork`
    /// another process may have it mapped, too.
    pub(super) fn take_over(&mut self, place: ThreadPlace, own: CodeLabel) -> Done {
        let (mut none, mut gone) = (self.asm.create_label(), self.asm.create_label());
        self.load_shard_place(place)?;
        self.asm.mov(rdi, qword_ptr(rax))?;
        self.asm.test(rdi, rdi)?;
        self.asm.jz(none)?;
        self.asm.mov(rcx, qword_ptr(rax + 8))?;
        self.asm.cmp(rcx, qword_ptr(rbp + SPACE_AT))?;
        self.asm.jne(none)?;
        self.asm.cmp(rdi, r13)?;
        self.asm.je(own)?;
        self.asm.xor(esi, esi)?;
        self.system(call::KILL)?;
        self.asm.cmp(rax, ESRCH)?;
        self.asm.je(gone)?;
        self.asm.jmp(none)?;
        self.asm.set_label(&mut gone)?;
        self.load_shard_place(place)?;
        self.asm.jmp(own)?;
        self.asm.set_label(&mut none)?;
        self.asm.nop()
    }

    /// The shard at rax is this thread's from now on.
    pub(super) fn have_shard(&mut self) -> Done {
        self.asm.mov(rcx, qword_ptr(0).fs())?;
        self.asm.mov(qword_ptr(rax + SHARD_THREAD as i32), rcx)?;
        self.asm.mov(rsi, qword_ptr(rbp + AREA_AT))?;
        self.asm.mov(qword_ptr(rsi + AREA_THREAD), rcx)?;
        self.asm.mov(ecx, WINDOW)?;
        self.asm.sub(rsi, rcx)?;
        self.set_base()
    }

    /// Without a file, a thread counts in memory that nobody reads, so that gates let it through.
    pub(super) fn count_for_nobody(&mut self, place: ThreadPlace) -> Done {
        self.load_shard_place(place)?;
        self.asm.mov(rdi, rax)?;
        self.asm.mov(rsi, self.places.shard_len)?;
        self.map_memory(MAP_FIXED)?;
        self.load_shard_place(place)?;
        self.have_shard()
    }

    /// Finds the object whose code the address in rbx is in: then rbx is the distance from its start, and its table is in r14.
    pub(super) fn find_object(&mut self, none: CodeLabel) -> Done {
        let (mut next, mut again, mut found, _, _) = self.labels5();
        self.asm.xor(ecx, ecx)?;
        self.asm.set_label(&mut again)?;
        self.asm.cmp(ecx, dword_ptr(OBJECTS))?;
        self.asm.jae(none)?;
        self.asm.mov(eax, ecx)?;
        self.asm.shl(eax, OBJECT_LEN.ilog2() as i32)?;
        let record = |field: u32| qword_ptr(rax + (FIRST_OBJECT + field) as i32);
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
