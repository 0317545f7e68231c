//! The run-time code of [`crate::runtime`] for x86-64 Linux.
//!
//! Everything is addressed relative to the code, which therefore has the same length wherever it stands.
//!
//! | register | while a shard is taken |
//! | --- | --- |
//! | rbx | the start of this code |
//! | rbp | the frame: the path, and a buffer |
//! | r12 | offset of a shard in the file |
//! | r13 | the process id |
//! | r14 | the file |
//! | r15 | the size of the file |
//!
//! In a program with threads the main thread takes its shard at start-up, the others at a gate.

use iced_x86::code_asm::{
    CodeAssembler, CodeLabel, al, byte_ptr, eax, ecx, edi, edx, esi, ptr, qword_ptr, r8, r9, r9d, r10, r10d, r11, r12,
    r12d, r13, r14, r14d, r15, rax, rbp, rbx, rcx, rdi, rdx, rsi, rsp,
};
use iced_x86::{BlockEncoderOptions, IcedError};

use crate::addr::Svma;
use crate::edit::{Field, FieldKind};
use crate::runtime::{
    HEADER_LEN, PATH_LEN, RunTime, RunTimePlaces, SHARD_THREAD, Shard, SignalCode, StartUp, VARIABLE, WINDOW,
};

mod file;
mod signal;

mod call {
    //! Numbers of system calls.
    pub const WRITE: u32 = 1;
    pub const OPEN: u32 = 2;
    pub const CLOSE: u32 = 3;
    pub const STAT: u32 = 4;
    pub const FSTAT: u32 = 5;
    pub const MMAP: u32 = 9;
    pub const MUNMAP: u32 = 11;
    pub const SIGPROCMASK: u32 = 14;
    pub const PREAD64: u32 = 17;
    pub const PWRITE64: u32 = 18;
    pub const GETPID: u32 = 39;
    pub const KILL: u32 = 62;
    pub const FLOCK: u32 = 73;
    pub const FTRUNCATE: u32 = 77;
    pub const ARCH_PRCTL: u32 = 158;
    pub const GETTID: u32 = 186;
    pub const EXIT_GROUP: u32 = 231;
    pub const FALLOCATE: u32 = 285;
}

const READ_WRITE: u32 = 3;
const MAP_SHARED: u32 = 1;
const MAP_PRIVATE: u32 = 2;
const MAP_FIXED: u32 = 0x10;
const MAP_ANONYMOUS: u32 = 0x20;
const MAP_NORESERVE: u32 = 0x4000;
const MAP_FIXED_NOREPLACE: u32 = 0x10_0000;
const LOCK_UN: u32 = 8;
const SIG_SETMASK: u32 = 2;
const ARCH_SET_GS: u32 = 0x1001;
const ARCH_SET_FS: u32 = 0x1002;
const ARCH_GET_FS: u32 = 0x1003;
/// In the state: memory is at the window; start-up has run; the last shard that a thread of this process took; whose
/// process that is; counts are not kept; what stands for a thread's own memory while there is none.
const WINDOW_MAPPED: i32 = 0;
const STARTED: i32 = 8;
const LAST_SHARD: i32 = 16;
const PROCESS: i32 = 24;
const FAILED: i32 = 32;
const NO_THREAD: i32 = 40;
/// In a shard: the one that was taken before.
const BEFORE: i32 = 16;
const ESRCH: i32 = -3;
/// `st_ino` in `struct stat`, and its size.
const ST_INO: i32 = 8;
const STAT_LEN: i32 = 144;
/// The buffer below the frame pointer: the path, then a `struct stat` or what is read, then the pid namespace.
const PATH_AT: i32 = -(PATH_LEN as i32) - 64;
const STAT_AT: i32 = PATH_AT - STAT_LEN;
const SPACE_AT: i32 = STAT_AT - 16;
const MASK_AT: i32 = SPACE_AT - 16;
const FRAME: i32 = -MASK_AT + 64;

const NAMESPACE: &[u8] = b"/proc/self/ns/pid\0";
const LOST: &[u8] = b"lancet: counts are not kept: ";
const NO_SPACE: &[u8] = b": no space, or cannot be mapped\n";
const NO_WINDOW: &[u8] = b"lancet: something else is mapped at 0x70000000, where counters must be\n";
const TOO_LONG: &[u8] = b"the path of the counts file is too long\n";

/// The code, at its place.
pub(super) fn assemble(places: &RunTimePlaces) -> Result<RunTime, IcedError> {
    let mut writer = Writer::new(*places)?;
    writer.write()?;
    let Writer { mut asm, start_up, forked, new_thread, signals, .. } = writer;
    let result = asm.assemble_options(places.at.0, BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS)?;
    let at = |label: &CodeLabel| result.label_ip(label).map(Svma);
    let (start_up, forked, new_thread) = (at(&start_up)?, at(&forked)?, at(&new_thread)?);
    let signals = places.cuts.map(|_| signals.placed(places.at, at)).transpose()?;
    Ok(RunTime { start_up, forked, new_thread, signals, bytes: result.inner.code_buffer })
}

/// Places in the code for handlers.
struct SignalLabels {
    entry: CodeLabel,
    end: CodeLabel,
    frame_start: CodeLabel,
    frame_end: CodeLabel,
}

impl SignalLabels {
    fn placed(&self, start: Svma, at: impl Fn(&CodeLabel) -> Result<Svma, IcedError>) -> Result<SignalCode, IcedError> {
        let end = (at(&self.end)? - start) as u32;
        let field = Field { offset: end + signal::END_FIELD, origin: end + signal::END_LEN, kind: FieldKind::Far };
        Ok(SignalCode {
            entry: at(&self.entry)?,
            text_end: field,
            frame: (at(&self.frame_start)?, at(&self.frame_end)?),
            frame_len: signal::FRAME_LEN,
        })
    }
}

struct Writer {
    asm: CodeAssembler,
    places: RunTimePlaces,
    start_up: CodeLabel,
    forked: CodeLabel,
    new_thread: CodeLabel,
    signals: SignalLabels,
    start: CodeLabel,
    take: CodeLabel,
    texts: Vec<(CodeLabel, Vec<u8>)>,
}

type Done = Result<(), IcedError>;

impl Writer {
    fn new(places: RunTimePlaces) -> Result<Writer, IcedError> {
        let mut asm = CodeAssembler::new(64)?;
        let mut label = || asm.create_label();
        let (start_up, forked, new_thread, start, take) = (label(), label(), label(), label(), label());
        let signals = SignalLabels { entry: label(), end: label(), frame_start: label(), frame_end: label() };
        Ok(Writer { asm, places, start_up, forked, new_thread, signals, start, take, texts: Vec::new() })
    }

    /// The distance from the code's start, where the start-up code is, for addressing through rbx.
    fn distance_to(&self, at: Svma) -> i32 {
        at.0.wrapping_sub(self.places.at.0) as i32
    }

    fn system(&mut self, number: u32) -> Done {
        self.asm.mov(eax, number)?;
        self.asm.syscall()
    }

    /// A constant text behind the code.
    fn text(&mut self, bytes: &[u8]) -> CodeLabel {
        let label = self.asm.create_label();
        self.texts.push((label, bytes.to_vec()));
        label
    }

    fn write(&mut self) -> Done {
        self.entry()?;
        self.after_fork()?;
        self.in_new_thread()?;
        self.at_signal()?;
        self.first()?;
        self.take_shard()?;
        for (mut label, bytes) in std::mem::take(&mut self.texts) {
            self.asm.set_label(&mut label)?;
            self.asm.db(&bytes)?;
        }
        Ok(())
    }

    fn entry(&mut self) -> Done {
        let mut start_up = self.start_up;
        self.asm.set_label(&mut start_up)?;
        self.start_up = start_up;
        match self.places.start_up {
            StartUp::Program { old } => {
                // rdx is for the program; the kernel and the loader promise nothing of other registers.
                self.asm.push(rdx)?;
                self.asm.mov(rdi, qword_ptr(rsp + 8))?;
                self.asm.lea(rdx, ptr(rsp + rdi * 8 + 24))?;
                self.asm.call(self.start)?;
                self.asm.pop(rdx)?;
                self.asm.jmp(old.0)
            }
            StartUp::Library { old } => {
                for reg in [rdi, rsi, rdx] {
                    self.asm.push(reg)?;
                }
                self.asm.call(self.start)?;
                for reg in [rdx, rsi, rdi] {
                    self.asm.pop(reg)?;
                }
                match old {
                    Some(old) => self.asm.jmp(old.0),
                    None => self.asm.ret(),
                }
            }
        }
    }

    fn after_fork(&mut self) -> Done {
        let mut forked = self.forked;
        self.asm.set_label(&mut forked)?;
        self.forked = forked;
        let (mut parent, mut known, mut same) =
            (self.asm.create_label(), self.asm.create_label(), self.asm.create_label());
        self.asm.test(rax, rax)?;
        self.asm.jnz(parent)?;
        // The red zone of the function that is being instrumented is not in use: it has just made a call.
        for reg in [rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11, rbx, rbp] {
            self.asm.push(reg)?;
        }
        self.asm.lea(rbx, ptr(self.start_up))?;
        // Away from the parent's shard, whatever happens then.
        match self.places.shard {
            Shard::At(shard) => self.map_private(shard)?,
            Shard::PerThread => {
                let state = self.distance_to(self.places.state);
                self.system(call::GETTID)?;
                self.asm.cmp(rax, qword_ptr(WINDOW).gs())?;
                self.asm.je(known)?;
                self.asm.xor(esi, esi)?;
                self.set_base()?;
                // A new process has a copy of the list of shards, not the shards.
                self.system(call::GETPID)?;
                self.asm.cmp(rax, qword_ptr(rbx + state + PROCESS))?;
                self.asm.je(same)?;
                self.asm.mov(qword_ptr(rbx + state + PROCESS), rax)?;
                self.asm.mov(qword_ptr(rbx + state + LAST_SHARD), 0)?;
                self.asm.set_label(&mut same)?;
                self.asm.nop()?;
            }
        }
        self.asm.xor(edi, edi)?;
        self.asm.call(self.take)?;
        self.asm.set_label(&mut known)?;
        for reg in [rbp, rbx, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax] {
            self.asm.pop(reg)?;
        }
        self.asm.set_label(&mut parent)?;
        self.asm.ret()
    }

    /// A static program sets up its threads' own memory by itself, some time after its start. Until then gates find the
    /// address of that memory in a place of ours.
    fn stand_in_for_thread(&mut self) -> Done {
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

    /// Memory at the window, if there is none yet.
    fn map_window(&mut self) -> Done {
        let mut done = self.asm.create_label();
        let mapped = self.distance_to(self.places.state) + WINDOW_MAPPED;
        self.asm.cmp(qword_ptr(rbx + mapped), 0)?;
        self.asm.jne(done)?;
        self.asm.mov(edi, WINDOW)?;
        self.asm.mov(rsi, self.places.shard_len)?;
        self.asm.mov(edx, READ_WRITE)?;
        self.asm.mov(r10d, MAP_PRIVATE | MAP_FIXED_NOREPLACE | MAP_ANONYMOUS | MAP_NORESERVE)?;
        self.asm.mov(r8, -1i64)?;
        self.asm.xor(r9d, r9d)?;
        self.system(call::MMAP)?;
        let mut fits = self.asm.create_label();
        self.asm.cmp(rax, WINDOW as i32)?;
        self.asm.je(fits)?;
        // Edited code cannot run without.
        let text = self.text(NO_WINDOW);
        self.print(text, NO_WINDOW.len())?;
        self.asm.mov(edi, 127u32)?;
        self.system(call::EXIT_GROUP)?;
        self.asm.set_label(&mut fits)?;
        self.asm.mov(qword_ptr(rbx + mapped), 1)?;
        self.asm.set_label(&mut done)?;
        self.asm.nop()
    }

    /// The thread's base register from rsi.
    fn set_base(&mut self) -> Done {
        self.asm.mov(edi, ARCH_SET_GS)?;
        self.system(call::ARCH_PRCTL)
    }

    /// Gates lead here, with the way on on the stack.
    fn in_new_thread(&mut self) -> Done {
        let mut new_thread = self.new_thread;
        self.asm.set_label(&mut new_thread)?;
        self.new_thread = new_thread;
        if self.places.shard != Shard::PerThread {
            return self.asm.ret();
        }
        for reg in [rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11, rbx, rbp] {
            self.asm.push(reg)?;
        }
        self.asm.lea(rbx, ptr(self.start_up))?;
        self.map_window()?;
        // Before start-up, what is counted is counted at the window, and taken over then.
        let mut early = self.asm.create_label();
        self.asm.cmp(qword_ptr(rbx + self.distance_to(self.places.state) + STARTED), 0)?;
        self.asm.je(early)?;
        self.asm.xor(edi, edi)?;
        self.asm.call(self.take)?;
        self.asm.set_label(&mut early)?;
        for reg in [rbp, rbx, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax] {
            self.asm.pop(reg)?;
        }
        // No `ret`, which a shadow stack would take for an attack. No signal's handler writes to the red zone.
        self.asm.lea(rsp, ptr(rsp + 8))?;
        self.asm.jmp(qword_ptr(rsp - 8))
    }

    fn map_private(&mut self, shard: Svma) -> Done {
        self.asm.lea(rdi, ptr(rbx + self.distance_to(shard)))?;
        self.asm.mov(rsi, self.places.shard_len)?;
        self.asm.mov(edx, READ_WRITE)?;
        self.asm.mov(r10d, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS)?;
        self.asm.mov(r8, -1i64)?;
        self.asm.xor(r9d, r9d)?;
        self.system(call::MMAP)
    }

    /// Called with the environment in rdx: reads the variable, takes a shard.
    fn first(&mut self) -> Done {
        let (mut next, mut compare, mut copy, mut done, _) = self.labels5();
        let mut start = self.start;
        self.asm.set_label(&mut start)?;
        self.start = start;
        self.asm.push(rbx)?;
        self.asm.push(rbp)?;
        self.asm.lea(rbx, ptr(self.start_up))?;
        let variable = self.text(format!("{VARIABLE}=").as_bytes());
        self.asm.set_label(&mut next)?;
        self.asm.mov(rsi, qword_ptr(rdx))?;
        self.asm.add(rdx, 8)?;
        self.asm.test(rsi, rsi)?;
        self.asm.jz(done)?;
        self.asm.lea(rdi, ptr(variable))?;
        self.asm.mov(ecx, VARIABLE.len() as u32 + 1)?;
        self.asm.set_label(&mut compare)?;
        self.asm.lodsb()?;
        self.asm.cmp(al, byte_ptr(rdi))?;
        self.asm.jne(next)?;
        self.asm.inc(rdi)?;
        self.asm.dec(ecx)?;
        self.asm.jnz(compare)?;
        // An empty value is none.
        self.asm.cmp(byte_ptr(rsi), 0)?;
        self.asm.je(done)?;
        self.asm.lea(rdi, ptr(rbx + self.distance_to(self.places.path)))?;
        self.asm.mov(ecx, PATH_LEN as u32)?;
        self.asm.set_label(&mut copy)?;
        self.asm.lodsb()?;
        self.asm.stosb()?;
        self.asm.test(al, al)?;
        self.asm.jz(done)?;
        self.asm.dec(ecx)?;
        self.asm.jnz(copy)?;
        let (lost, too_long) = (self.text(LOST), self.text(TOO_LONG));
        self.print(lost, LOST.len())?;
        self.print(too_long, TOO_LONG.len())?;
        self.asm.mov(qword_ptr(rbx + self.distance_to(self.places.state) + FAILED), 1)?;
        self.asm.set_label(&mut done)?;
        if self.places.shard == Shard::PerThread {
            let state = self.distance_to(self.places.state);
            self.stand_in_for_thread()?;
            self.map_window()?;
            self.system(call::GETPID)?;
            self.asm.mov(qword_ptr(rbx + state + PROCESS), rax)?;
            self.asm.mov(qword_ptr(rbx + state + STARTED), 1)?;
        }
        self.asm.mov(edi, 1u32)?;
        self.asm.call(self.take)?;
        self.asm.pop(rbp)?;
        self.asm.pop(rbx)?;
        self.asm.ret()
    }

    /// Called with rbx set, and in edi: add what was counted so far (in memory that is not the file's).
    fn take_shard(&mut self) -> Done {
        let mut take = self.take;
        self.asm.set_label(&mut take)?;
        self.take = take;
        for reg in [r12, r13, r14, r15, rdi] {
            self.asm.push(reg)?;
        }
        self.asm.mov(rbp, rsp)?;
        self.asm.sub(rsp, FRAME)?;
        self.asm.xor(r14d, r14d)?;
        self.asm.dec(r14)?;
        // A signal's handler must not want a shard, too, while the file is locked.
        self.asm.mov(qword_ptr(rbp + MASK_AT), -1)?;
        self.asm.lea(rsi, ptr(rbp + MASK_AT))?;
        self.asm.lea(rdx, ptr(rbp + (MASK_AT - 8)))?;
        self.set_mask()?;
        let (mut failed, mut out, mut search, mut append, mut taken) = self.labels5();
        let (mut own, mut uncounted) = (self.asm.create_label(), self.asm.create_label());
        self.asm.mov(qword_ptr(rbp + SPACE_AT), 0)?;
        let has_failed = self.distance_to(self.places.state) + FAILED;
        self.asm.cmp(qword_ptr(rbx + has_failed), 0)?;
        self.asm.jne(uncounted)?;
        self.system(call::GETPID)?;
        self.asm.mov(r13, rax)?;
        self.expand_path(failed)?;
        self.open(failed)?;
        self.check_header(failed)?;
        if self.places.shard == Shard::PerThread {
            self.system(call::GETTID)?;
            self.asm.mov(r13, rax)?;
            self.take_over(out)?;
        }

        // rsp is below the buffer; the namespace that process ids are of:
        let namespace = self.text(NAMESPACE);
        self.asm.lea(rdi, ptr(namespace))?;
        self.asm.lea(rsi, ptr(rbp + STAT_AT))?;
        self.system(call::STAT)?;
        let mut no_namespace = self.asm.create_label();
        self.asm.test(rax, rax)?;
        self.asm.js(no_namespace)?;
        self.asm.mov(rax, qword_ptr(rbp + STAT_AT + ST_INO))?;
        self.asm.mov(qword_ptr(rbp + SPACE_AT), rax)?;
        self.asm.set_label(&mut no_namespace)?;

        let mut next = self.asm.create_label();
        self.asm.mov(r12d, HEADER_LEN as u32)?;
        self.asm.set_label(&mut search)?;
        self.asm.mov(rax, self.places.shard_len)?;
        self.asm.add(rax, r12)?;
        self.asm.cmp(rax, r15)?;
        self.asm.ja(append)?;
        self.pread(STAT_AT, 16)?;
        self.asm.mov(rdi, qword_ptr(rbp + STAT_AT))?;
        self.asm.test(rdi, rdi)?;
        self.asm.jz(taken)?;
        self.asm.mov(rax, qword_ptr(rbp + STAT_AT + 8))?;
        self.asm.cmp(rax, qword_ptr(rbp + SPACE_AT))?;
        self.asm.jne(next)?;
        self.asm.xor(esi, esi)?;
        self.system(call::KILL)?;
        self.asm.cmp(rax, ESRCH)?;
        self.asm.je(taken)?;
        self.asm.set_label(&mut next)?;
        self.asm.mov(rax, self.places.shard_len)?;
        self.asm.add(r12, rax)?;
        self.asm.jmp(search)?;

        self.asm.set_label(&mut append)?;
        self.asm.mov(r10, self.places.shard_len)?;
        self.grow()?;
        self.asm.test(rax, rax)?;
        let mut no_space = self.asm.create_label();
        self.asm.js(no_space)?;
        self.asm.set_label(&mut taken)?;
        self.add_early_counts(no_space)?;
        self.map(match self.places.shard {
            Shard::At(at) => Some(at),
            Shard::PerThread => None,
        })?;
        self.asm.test(rax, rax)?;
        self.asm.js(no_space)?;
        self.asm.set_label(&mut own)?;
        self.asm.mov(qword_ptr(rax), r13)?;
        self.asm.mov(rcx, qword_ptr(rbp + SPACE_AT))?;
        self.asm.mov(qword_ptr(rax + 8), rcx)?;
        if self.places.shard == Shard::PerThread {
            let last = self.distance_to(self.places.state) + LAST_SHARD;
            self.asm.mov(rcx, qword_ptr(rbx + last))?;
            self.asm.mov(qword_ptr(rax + BEFORE), rcx)?;
            self.asm.mov(qword_ptr(rbx + last), rax)?;
            self.have_shard()?;
        }
        self.asm.jmp(out)?;

        self.asm.set_label(&mut no_space)?;
        let text = self.text(NO_SPACE);
        self.asm.lea(rsi, ptr(text))?;
        self.asm.mov(edx, NO_SPACE.len() as u32)?;
        self.asm.set_label(&mut failed)?;
        self.complain()?;
        self.asm.mov(qword_ptr(rbx + has_failed), 1)?;
        self.asm.set_label(&mut uncounted)?;
        match self.places.shard {
            Shard::PerThread => self.count_for_nobody(own, out)?,
            Shard::At(_) => self.asm.nop()?,
        }
        self.asm.set_label(&mut out)?;
        let mut no_file = self.asm.create_label();
        self.asm.test(r14, r14)?;
        self.asm.js(no_file)?;
        // The mapping keeps the open file, and with it the lock.
        self.asm.mov(rdi, r14)?;
        self.asm.mov(esi, LOCK_UN)?;
        self.system(call::FLOCK)?;
        self.asm.mov(rdi, r14)?;
        self.system(call::CLOSE)?;
        self.asm.set_label(&mut no_file)?;
        self.asm.lea(rsi, ptr(rbp + (MASK_AT - 8)))?;
        self.asm.xor(edx, edx)?;
        self.set_mask()?;
        self.asm.mov(rsp, rbp)?;
        for reg in [rdi, r15, r14, r13, r12] {
            self.asm.pop(reg)?;
        }
        self.asm.ret()
    }

    /// The signal mask from rsi, and the old one to rdx.
    fn set_mask(&mut self) -> Done {
        self.asm.mov(edi, SIG_SETMASK)?;
        self.asm.mov(r10d, 8u32)?;
        self.system(call::SIGPROCMASK)
    }

    /// The shard at rax is this thread's from now on.
    fn have_shard(&mut self) -> Done {
        self.asm.mov(rcx, qword_ptr(0).fs())?;
        self.asm.mov(qword_ptr(rax + SHARD_THREAD as i32), rcx)?;
        self.asm.mov(ecx, WINDOW)?;
        self.asm.mov(rsi, rax)?;
        self.asm.sub(rsi, rcx)?;
        self.set_base()
    }

    /// Takes the shard of a thread of this process that is gone, if there is one: mappings are limited.
    fn take_over(&mut self, out: CodeLabel) -> Done {
        let (mut next, mut gone, mut none) =
            (self.asm.create_label(), self.asm.create_label(), self.asm.create_label());
        self.asm.mov(r12, qword_ptr(rbx + self.distance_to(self.places.state) + LAST_SHARD))?;
        self.asm.set_label(&mut next)?;
        self.asm.test(r12, r12)?;
        self.asm.jz(none)?;
        self.asm.mov(rdi, qword_ptr(r12))?;
        // Its own: the thread's memory has moved, as it does when a static program sets it up.
        self.asm.cmp(rdi, r13)?;
        self.asm.je(gone)?;
        self.asm.xor(esi, esi)?;
        self.system(call::KILL)?;
        self.asm.cmp(rax, ESRCH)?;
        self.asm.je(gone)?;
        self.asm.mov(r12, qword_ptr(r12 + BEFORE))?;
        self.asm.jmp(next)?;
        self.asm.set_label(&mut gone)?;
        self.asm.mov(qword_ptr(r12), r13)?;
        self.asm.mov(rax, r12)?;
        self.have_shard()?;
        self.asm.jmp(out)?;
        self.asm.set_label(&mut none)?;
        self.asm.nop()
    }

    /// Without a file, a thread counts in memory that nobody reads, so that gates let it through.
    fn count_for_nobody(&mut self, own: CodeLabel, out: CodeLabel) -> Done {
        self.system(call::GETTID)?;
        self.asm.mov(r13, rax)?;
        self.take_over(out)?;
        self.asm.xor(edi, edi)?;
        self.asm.mov(rsi, self.places.shard_len)?;
        self.asm.mov(edx, READ_WRITE)?;
        self.asm.mov(r10d, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)?;
        self.asm.mov(r8, -1i64)?;
        self.asm.xor(r9d, r9d)?;
        self.system(call::MMAP)?;
        self.asm.test(rax, rax)?;
        self.asm.jns(own)
    }

    fn labels5(&mut self) -> (CodeLabel, CodeLabel, CodeLabel, CodeLabel, CodeLabel) {
        let mut label = || self.asm.create_label();
        (label(), label(), label(), label(), label())
    }
}
