//! The counts file: its path, its header, its shards.
//!
//! Registers are those of the table in [`super`]. What goes wrong leads to a label, with the text in rsi and its length in
//! edx.

use iced_x86::code_asm::{
    CodeLabel, al, byte_ptr, cl, dword_ptr, eax, ecx, edi, edx, esi, ptr, qword_ptr, r8, r9, r9d, r10, r10d, r12, r12d,
    r13, r14, r15, rax, rbp, rbx, rcx, rdi, rdx, rsi, rsp,
};

use super::{Done, SHARD_AT, WINDOW_AT, Writer, call};
use super::{LOST, MAP_FIXED, MAP_SHARED, NO_SPACE, PATH_AT, READ_WRITE, STAT_AT, TOO_LONG};
use crate::runtime::{HEADER_LEN, IDENTITY_LEN, NAME_AT, PATH_LEN, SHARD_HEADER_LEN, Shard};

/// O_RDWR, O_CREAT, O_NONBLOCK (a pipe must not hang the program), O_NOFOLLOW, O_CLOEXEC.
const OPEN_FLAGS: u32 = 0o2 | 0o100 | 0o4000 | 0o400_000 | 0o2_000_000;
const OWNER_ONLY: u32 = 0o600;
const LOCK_EX: u32 = 2;
const EOPNOTSUPP: i32 = -95;
const FORMAT_MASK: i32 = 0o170_000;
const REGULAR_FILE: i32 = 0o100_000;
const ST_MODE: i32 = 24;
const ST_SIZE: i32 = 48;
const CANNOT_OPEN: &[u8] = b": cannot be opened for writing\n";
const NOT_A_FILE: &[u8] = b": not a regular file\n";
const OTHERS: &[u8] = b": holds the counts of another program or rewrite; remove it or set LANCET_COUNTS\n";

impl Writer {
    /// Puts the working directory in front of a path that is relative: threads and processes open it later, when the program
    /// may have gone elsewhere. The path stays as it is if the two are too long together, or if the directory's name could
    /// be taken for `%p`.
    pub(super) fn keep_directory(&mut self) -> Done {
        let (mut relative, mut measure, mut look, mut keep, mut done) = self.labels5();
        self.asm.lea(r8, ptr(rbx + self.distance_to(self.places.path)))?;
        self.asm.cmp(byte_ptr(r8), i32::from(b'/'))?;
        self.asm.jne(relative)?;
        self.asm.jmp(done)?;
        self.asm.set_label(&mut relative)?;
        self.asm.sub(rsp, PATH_LEN as i32)?;
        self.asm.mov(rdi, rsp)?;
        self.asm.mov(esi, PATH_LEN as u32)?;
        self.system(call::GETCWD)?;
        // Its length with its end, or an error. One that cannot be reached does not start at the root.
        self.asm.test(rax, rax)?;
        self.asm.js(keep)?;
        self.asm.cmp(byte_ptr(rsp), i32::from(b'/'))?;
        self.asm.jne(keep)?;
        self.asm.xor(edx, edx)?;
        self.asm.set_label(&mut look)?;
        self.asm.cmp(byte_ptr(rsp + rdx), i32::from(b'%'))?;
        self.asm.je(keep)?;
        self.asm.inc(rdx)?;
        self.asm.cmp(rdx, rax)?;
        self.asm.jb(look)?;
        self.asm.xor(ecx, ecx)?;
        self.asm.set_label(&mut measure)?;
        self.asm.inc(rcx)?;
        self.asm.cmp(byte_ptr(r8 + rcx - 1), 0)?;
        self.asm.jne(measure)?;
        self.asm.lea(rdx, ptr(rax + rcx))?;
        self.asm.cmp(rdx, PATH_LEN as i32)?;
        self.asm.ja(keep)?;
        self.asm.mov(byte_ptr(rsp + rax - 1), i32::from(b'/'))?;
        // The path makes room, last byte first.
        self.asm.lea(rsi, ptr(r8 + rcx - 1))?;
        self.asm.lea(rdi, ptr(rsi + rax))?;
        self.asm.std()?;
        self.asm.rep().movsb()?;
        self.asm.cld()?;
        self.asm.mov(rdi, r8)?;
        self.asm.mov(rsi, rsp)?;
        self.asm.mov(rcx, rax)?;
        self.asm.rep().movsb()?;
        self.asm.set_label(&mut keep)?;
        self.asm.add(rsp, PATH_LEN as i32)?;
        self.asm.set_label(&mut done)?;
        self.asm.nop()
    }

    /// The path into the buffer, with the process id for each `%p` and the program's own digits for each `%n`.
    pub(super) fn expand_path(&mut self, failed: CodeLabel) -> Done {
        let (mut next, mut plain, mut digits, mut put, mut fits) = self.labels5();
        self.asm.lea(rsi, ptr(rbx + self.distance_to(self.places.path)))?;
        self.asm.lea(rdi, ptr(rbp + PATH_AT))?;
        self.asm.lea(r8, ptr(rbp + (PATH_AT + PATH_LEN as i32 - 24)))?;
        self.asm.set_label(&mut next)?;
        self.asm.cmp(rdi, r8)?;
        self.asm.jb(fits)?;
        let text = self.text(TOO_LONG);
        self.asm.mov(byte_ptr(rbp + PATH_AT), 0)?;
        self.asm.lea(rsi, ptr(text))?;
        self.asm.mov(edx, TOO_LONG.len() as u32)?;
        self.asm.jmp(failed)?;
        self.asm.set_label(&mut fits)?;
        self.asm.lodsb()?;
        self.asm.cmp(al, i32::from(b'%'))?;
        self.asm.jne(plain)?;
        let (mut no_pid, mut hex, mut decimal) =
            (self.asm.create_label(), self.asm.create_label(), self.asm.create_label());
        self.asm.cmp(byte_ptr(rsi), i32::from(b'p'))?;
        self.asm.jne(no_pid)?;
        self.asm.inc(rsi)?;
        // Digits, last one first, on the stack.
        self.asm.mov(rax, r13)?;
        self.asm.mov(r9d, 10u32)?;
        self.asm.xor(ecx, ecx)?;
        self.asm.set_label(&mut digits)?;
        self.asm.xor(edx, edx)?;
        self.asm.div(r9)?;
        self.asm.add(edx, u32::from(b'0') as i32)?;
        self.asm.push(rdx)?;
        self.asm.inc(ecx)?;
        self.asm.test(rax, rax)?;
        self.asm.jnz(digits)?;
        self.asm.set_label(&mut put)?;
        self.asm.pop(rax)?;
        self.asm.stosb()?;
        self.asm.dec(ecx)?;
        self.asm.jnz(put)?;
        self.asm.jmp(next)?;
        self.asm.set_label(&mut no_pid)?;
        self.asm.cmp(byte_ptr(rsi), i32::from(b'n'))?;
        self.asm.jne(plain)?;
        self.asm.inc(rsi)?;
        self.asm.mov(rdx, qword_ptr(rbx + self.distance_to(self.places.header + NAME_AT)))?;
        self.asm.mov(ecx, 16u32)?;
        self.asm.set_label(&mut hex)?;
        self.asm.rol(rdx, 4)?;
        self.asm.mov(eax, edx)?;
        self.asm.and(eax, 15)?;
        self.asm.cmp(al, 10)?;
        self.asm.jb(decimal)?;
        self.asm.add(al, i32::from(b'a' - b'0' - 10))?;
        self.asm.set_label(&mut decimal)?;
        self.asm.add(al, i32::from(b'0'))?;
        self.asm.stosb()?;
        self.asm.dec(ecx)?;
        self.asm.jnz(hex)?;
        self.asm.jmp(next)?;
        self.asm.set_label(&mut plain)?;
        self.asm.stosb()?;
        self.asm.test(al, al)?;
        self.asm.jnz(next)
    }

    /// The file in r14, locked; its size in r15.
    pub(super) fn open(&mut self, failed: CodeLabel) -> Done {
        let (mut opened, mut regular) = (self.asm.create_label(), self.asm.create_label());
        self.asm.lea(rdi, ptr(rbp + PATH_AT))?;
        self.asm.mov(esi, OPEN_FLAGS)?;
        self.asm.mov(edx, OWNER_ONLY)?;
        self.system(call::OPEN)?;
        self.asm.mov(r14, rax)?;
        self.asm.test(rax, rax)?;
        self.asm.jns(opened)?;
        let text = self.text(CANNOT_OPEN);
        self.asm.lea(rsi, ptr(text))?;
        self.asm.mov(edx, CANNOT_OPEN.len() as u32)?;
        self.asm.jmp(failed)?;
        self.asm.set_label(&mut opened)?;
        self.asm.mov(rdi, r14)?;
        self.asm.mov(esi, LOCK_EX)?;
        self.system(call::FLOCK)?;
        self.asm.mov(rdi, r14)?;
        self.asm.lea(rsi, ptr(rbp + STAT_AT))?;
        self.system(call::FSTAT)?;
        self.asm.mov(r15, qword_ptr(rbp + STAT_AT + ST_SIZE))?;
        self.asm.mov(eax, dword_ptr(rbp + STAT_AT + ST_MODE))?;
        self.asm.and(eax, FORMAT_MASK)?;
        self.asm.cmp(eax, REGULAR_FILE)?;
        self.asm.je(regular)?;
        let text = self.text(NOT_A_FILE);
        self.asm.lea(rsi, ptr(text))?;
        self.asm.mov(edx, NOT_A_FILE.len() as u32)?;
        self.asm.jmp(failed)?;
        self.asm.set_label(&mut regular)?;
        self.asm.nop()
    }

    /// Writes the header of an empty file; otherwise it must be ours.
    pub(super) fn check_header(&mut self, failed: CodeLabel) -> Done {
        let (mut compare, mut others, mut no_space, mut done, mut again) = self.labels5();
        self.asm.test(r15, r15)?;
        self.asm.jnz(compare)?;
        self.asm.xor(r12d, r12d)?;
        self.asm.mov(r10d, HEADER_LEN as u32)?;
        self.grow()?;
        self.asm.test(rax, rax)?;
        self.asm.js(no_space)?;
        self.asm.mov(rdi, r14)?;
        self.asm.lea(rsi, ptr(rbx + self.distance_to(self.places.header)))?;
        self.asm.mov(edx, HEADER_LEN as u32)?;
        self.asm.xor(r10d, r10d)?;
        self.system(call::PWRITE64)?;
        self.asm.mov(r15, HEADER_LEN)?;
        self.asm.cmp(rax, r15)?;
        self.asm.je(done)?;
        self.asm.set_label(&mut no_space)?;
        let text = self.text(NO_SPACE);
        self.asm.lea(rsi, ptr(text))?;
        self.asm.mov(edx, NO_SPACE.len() as u32)?;
        self.asm.jmp(failed)?;
        self.asm.set_label(&mut others)?;
        let text = self.text(OTHERS);
        self.asm.lea(rsi, ptr(text))?;
        self.asm.mov(edx, OTHERS.len() as u32)?;
        self.asm.jmp(failed)?;
        self.asm.set_label(&mut compare)?;
        self.asm.xor(r12d, r12d)?;
        self.pread(STAT_AT, IDENTITY_LEN as u32)?;
        self.asm.cmp(rax, IDENTITY_LEN as i32)?;
        self.asm.jne(others)?;
        self.asm.lea(rsi, ptr(rbp + STAT_AT))?;
        self.asm.lea(rdi, ptr(rbx + self.distance_to(self.places.header)))?;
        self.asm.mov(ecx, IDENTITY_LEN as u32)?;
        self.asm.set_label(&mut again)?;
        self.asm.lodsb()?;
        self.asm.cmp(al, byte_ptr(rdi))?;
        self.asm.jne(others)?;
        self.asm.inc(rdi)?;
        self.asm.dec(ecx)?;
        self.asm.jnz(again)?;
        self.asm.set_label(&mut done)?;
        self.asm.nop()
    }

    /// Makes room for r10 bytes at r12: really, so that a full disk shows now and not as a fault later.
    pub(super) fn grow(&mut self) -> Done {
        let mut done = self.asm.create_label();
        self.asm.mov(rdi, r14)?;
        self.asm.xor(esi, esi)?;
        self.asm.mov(rdx, r12)?;
        self.system(call::FALLOCATE)?;
        self.asm.cmp(rax, EOPNOTSUPP)?;
        self.asm.jne(done)?;
        self.asm.mov(rdi, r14)?;
        self.asm.lea(rsi, ptr(r12 + r10))?;
        self.system(call::FTRUNCATE)?;
        self.asm.set_label(&mut done)?;
        self.asm.nop()
    }

    /// Maps the shard at r12 in the file where counters are, or anywhere; the address is in rax.
    pub(super) fn map(&mut self, in_place: bool) -> Done {
        match self.places.shard {
            _ if !in_place => self.asm.xor(edi, edi)?,
            Shard::At(at) => self.asm.lea(rdi, ptr(rbx + self.distance_to(at)))?,
            Shard::PerThread(_) => {
                self.load_shard_place()?;
                self.asm.mov(rdi, rax)?;
            }
        }
        let flags = if in_place { MAP_FIXED } else { 0 };
        self.asm.mov(rsi, self.places.shard_len)?;
        self.asm.mov(edx, READ_WRITE)?;
        self.asm.mov(r10d, MAP_SHARED | flags)?;
        self.asm.mov(r8, r14)?;
        self.asm.mov(r9, r12)?;
        self.system(call::MMAP)
    }

    /// Code may have run before this did: what it counted is added to the shard in the file. Threads have an area as soon
    /// as another object took a shard, and count at the window before.
    pub(super) fn add_early_counts(&mut self, failed: CodeLabel) -> Done {
        let (mut done, mut moved) = (self.asm.create_label(), self.asm.create_label());
        self.asm.cmp(qword_ptr(rbp), 0)?;
        self.asm.je(done)?;
        self.map(false)?;
        self.asm.test(rax, rax)?;
        self.asm.js(failed)?;
        self.asm.mov(rdi, rax)?;
        match self.places.shard {
            Shard::At(shard) => self.asm.lea(rsi, ptr(rbx + self.distance_to(shard)))?,
            Shard::PerThread(_) => {
                let (window, place) = (self.state(WINDOW_AT), self.state(SHARD_AT));
                self.asm.mov(rsi, window)?;
                self.asm.add(rsi, place)?;
                self.move_counts()?;
                self.load_shard_place()?;
                self.asm.mov(rsi, rax)?;
                // Not if it is a shard of a file, of the process that this one was forked from.
                self.asm.cmp(qword_ptr(rsi), 0)?;
                self.asm.jne(moved)?;
            }
        }
        self.move_counts()?;
        self.asm.set_label(&mut moved)?;
        self.asm.mov(rsi, self.places.shard_len)?;
        self.system(call::MUNMAP)?;
        self.asm.set_label(&mut done)?;
        self.asm.nop()
    }

    /// From the shard at rsi to the one at rdi.
    fn move_counts(&mut self) -> Done {
        let (mut again, mut zero) = (self.asm.create_label(), self.asm.create_label());
        self.asm.mov(rcx, SHARD_HEADER_LEN)?;
        self.asm.mov(rdx, self.places.shard_len)?;
        self.asm.set_label(&mut again)?;
        self.asm.mov(rax, qword_ptr(rsi + rcx))?;
        // Most are zero, and a page that is not written to costs nothing.
        self.asm.test(rax, rax)?;
        self.asm.jz(zero)?;
        self.asm.add(qword_ptr(rdi + rcx), rax)?;
        self.asm.mov(qword_ptr(rsi + rcx), 0)?;
        self.asm.set_label(&mut zero)?;
        self.asm.add(rcx, 8)?;
        self.asm.cmp(rcx, rdx)?;
        self.asm.jb(again)
    }

    pub(super) fn pread(&mut self, at: i32, len: u32) -> Done {
        self.asm.mov(rdi, r14)?;
        self.asm.lea(rsi, ptr(rbp + at))?;
        self.asm.mov(edx, len)?;
        self.asm.mov(r10, r12)?;
        self.system(call::PREAD64)
    }

    pub(super) fn print(&mut self, text: CodeLabel, len: usize) -> Done {
        self.asm.mov(edi, 2u32)?;
        self.asm.lea(rsi, ptr(text))?;
        self.asm.mov(edx, len as u32)?;
        self.system(call::WRITE)
    }

    /// Says that counts are lost, which file it is about, and the text in rsi of the length in edx.
    pub(super) fn complain(&mut self) -> Done {
        let (mut again, mut end) = (self.asm.create_label(), self.asm.create_label());
        self.asm.mov(r12, rsi)?;
        self.asm.mov(r13, rdx)?;
        let lost = self.text(LOST);
        self.print(lost, LOST.len())?;
        self.asm.lea(rsi, ptr(rbp + PATH_AT))?;
        self.asm.xor(edx, edx)?;
        self.asm.set_label(&mut again)?;
        self.asm.mov(cl, byte_ptr(rsi + rdx))?;
        self.asm.test(cl, cl)?;
        self.asm.jz(end)?;
        self.asm.inc(rdx)?;
        self.asm.jmp(again)?;
        self.asm.set_label(&mut end)?;
        self.asm.mov(edi, 2u32)?;
        self.system(call::WRITE)?;
        self.asm.mov(edi, 2u32)?;
        self.asm.mov(rsi, r12)?;
        self.asm.mov(rdx, r13)?;
        self.system(call::WRITE)
    }
}
