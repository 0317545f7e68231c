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
//! Where threads have shards of their own, the main thread takes its shard at start-up, the others at a gate.

use iced_x86::code_asm::{
    AsmMemoryOperand, CodeAssembler, CodeLabel, al, byte_ptr, eax, ecx, edi, edx, esi, ptr, qword_ptr, r10, r10d, r12,
    r12d, r13, r14, r14d, r15, rax, rbp, rbx, rcx, rdi, rdx, rsi, rsp,
};
use iced_x86::{BlockEncoderOptions, IcedError};

use crate::addr::Svma;
use crate::edit::{Field, FieldKind};
use crate::runtime::{HEADER_LEN, PATH_LEN, RunTime, RunTimePlaces, Shard, SignalCode, StartUp, VARIABLE};

mod file;
mod known;
mod signal;
mod threads;

mod call {
    //! Numbers of system calls.
    pub const WRITE: u32 = 1;
    pub const OPEN: u32 = 2;
    pub const CLOSE: u32 = 3;
    pub const STAT: u32 = 4;
    pub const FSTAT: u32 = 5;
    pub const MMAP: u32 = 9;
    pub const MPROTECT: u32 = 10;
    pub const MUNMAP: u32 = 11;
    pub const SIGPROCMASK: u32 = 14;
    pub const PREAD64: u32 = 17;
    pub const PWRITE64: u32 = 18;
    pub const ACCESS: u32 = 21;
    pub const SCHED_YIELD: u32 = 24;
    pub const MADVISE: u32 = 28;
    pub const GETPID: u32 = 39;
    pub const KILL: u32 = 62;
    pub const FLOCK: u32 = 73;
    pub const FTRUNCATE: u32 = 77;
    pub const GETCWD: u32 = 79;
    pub const ARCH_PRCTL: u32 = 158;
    pub const GETTID: u32 = 186;
    pub const EXIT_GROUP: u32 = 231;
    pub const TGKILL: u32 = 234;
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
/// In the state: the object is known at the window, start-up has run, counts are not kept; what stands for a thread's own
/// memory while there is none.
const KNOWN: i32 = 0;
const STARTED: i32 = 8;
const FAILED: i32 = 16;
const NO_THREAD: i32 = 24;
/// If threads have shards: where the window is, where in an area the shard and the cell are, the object's record; somebody
/// else uses the thread's base register.
const WINDOW_AT: i32 = 128;
const SHARD_AT: i32 = 136;
const CELL_AT: i32 = 144;
const RECORD: i32 = 152;
const FOREIGN: i32 = 160;
const ESRCH: i32 = -3;
/// `st_ino` in `struct stat`, and its size.
const ST_INO: i32 = 8;
const STAT_LEN: i32 = 144;
/// The buffer below the frame pointer: the path, then a `struct stat` or what is read, then the pid namespace, the mask of
/// signals, and the thread's area.
const PATH_AT: i32 = -(PATH_LEN as i32) - 64;
const STAT_AT: i32 = PATH_AT - STAT_LEN;
const SPACE_AT: i32 = STAT_AT - 16;
const MASK_AT: i32 = SPACE_AT - 16;
const AREA_AT: i32 = MASK_AT - 16;
const FRAME: i32 = -AREA_AT + 64;

const NAMESPACE: &[u8] = b"/proc/self/ns/pid\0";
const LOST: &[u8] = b"lancet: counts are not kept: ";
const NO_SPACE: &[u8] = b": no space, or cannot be mapped\n";
const NO_AREA: &[u8] = b"lancet: counts are not kept: no memory for a thread's counters\n";
const TOO_LONG: &[u8] = b"the path of the counts file is too long\n";

/// The code, at its place.
pub(super) fn assemble(places: &RunTimePlaces) -> Result<RunTime, IcedError> {
    let mut writer = Writer::new(*places)?;
    writer.write()?;
    let Writer { mut asm, start_up, forked, new_thread, own_places, signals, .. } = writer;
    let result = asm.assemble_options(places.at.0, BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS)?;
    let at = |label: &CodeLabel| result.label_ip(label).map(Svma);
    let (start_up, forked, new_thread) = (at(&start_up)?, at(&forked)?, at(&new_thread)?);
    let signals = places.cuts.map(|_| signals.placed(places.at, at)).transpose()?;
    let own_places = match places.shard {
        Shard::At(_) => None,
        Shard::PerThread(_) => Some(distance_field((at(&own_places)? - places.at) as u32)),
    };
    Ok(RunTime { start_up, forked, new_thread, own_places, signals, bytes: result.inner.code_buffer })
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
        Ok(SignalCode {
            entry: at(&self.entry)?,
            text_end: distance_field((at(&self.end)? - start) as u32),
            frame: (at(&self.frame_start)?, at(&self.frame_end)?),
            frame_len: signal::FRAME_LEN,
        })
    }
}

/// The distance in `lea reg, [rip + ...]`.
fn distance_field(insn: u32) -> Field {
    Field { offset: insn + 3, origin: insn + 7, kind: FieldKind::Far }
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
    be_known: CodeLabel,
    take_all: CodeLabel,
    own_places: CodeLabel,
    texts: Vec<(CodeLabel, Vec<u8>)>,
}

type Done = Result<(), IcedError>;

impl Writer {
    fn new(places: RunTimePlaces) -> Result<Writer, IcedError> {
        let mut asm = CodeAssembler::new(64)?;
        let mut label = || asm.create_label();
        let (start_up, forked, new_thread) = (label(), label(), label());
        let (start, take, be_known, take_all, own_places) = (label(), label(), label(), label(), label());
        let signals = SignalLabels { entry: label(), end: label(), frame_start: label(), frame_end: label() };
        Ok(Writer {
            asm,
            places,
            start_up,
            forked,
            new_thread,
            signals,
            start,
            take,
            be_known,
            take_all,
            own_places,
            texts: Vec::new(),
        })
    }

    /// The distance from the code's start, where the start-up code is, for addressing through rbx.
    fn distance_to(&self, at: Svma) -> i32 {
        at.0.wrapping_sub(self.places.at.0) as i32
    }

    /// Something in the state, through rbx.
    fn state(&self, field: i32) -> AsmMemoryOperand {
        qword_ptr(rbx + (self.distance_to(self.places.state) + field))
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
        self.become_known()?;
        self.take_all()?;
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
        self.asm.set_label(&mut self.start_up)?;
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
        self.asm.set_label(&mut self.forked)?;
        let mut parent = self.asm.create_label();
        self.asm.test(rax, rax)?;
        self.asm.jnz(parent)?;
        // The red zone of the function that is being instrumented is not in use: it has just made a call.
        self.push_all()?;
        self.asm.lea(rbx, ptr(self.start_up))?;
        match self.places.shard {
            Shard::At(shard) => {
                // Away from the parent's shard, whatever happens then.
                self.map_private(shard)?;
                self.asm.xor(edi, edi)?;
                self.asm.call(self.take)?;
            }
            Shard::PerThread(_) => self.asm.call(self.take_all)?,
        }
        self.pop_all()?;
        self.asm.set_label(&mut parent)?;
        self.asm.ret()
    }

    fn map_private(&mut self, shard: Svma) -> Done {
        self.asm.lea(rdi, ptr(rbx + self.distance_to(shard)))?;
        self.asm.mov(rsi, self.places.shard_len)?;
        self.map_memory(MAP_FIXED)
    }

    /// Called with the environment in rdx: reads the variable, takes a shard.
    fn first(&mut self) -> Done {
        let (mut next, mut compare, mut copy, mut done, _) = self.labels5();
        self.asm.set_label(&mut self.start)?;
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
        let failed = self.state(FAILED);
        self.asm.mov(failed, 1)?;
        self.asm.set_label(&mut done)?;
        self.keep_directory()?;
        if let Shard::PerThread(_) = self.places.shard {
            self.stand_in_for_thread()?;
            self.asm.call(self.be_known)?;
            self.be_started()?;
        }
        self.asm.mov(edi, 1u32)?;
        self.asm.call(self.take)?;
        self.asm.pop(rbp)?;
        self.asm.pop(rbx)?;
        self.asm.ret()
    }

    /// Called with rbx set, and in edi: add what was counted so far (in memory that is not the file's).
    fn take_shard(&mut self) -> Done {
        self.asm.set_label(&mut self.take)?;
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
        let (mut own, mut uncounted, mut no_area) =
            (self.asm.create_label(), self.asm.create_label(), self.asm.create_label());
        self.asm.mov(qword_ptr(rbp + SPACE_AT), 0)?;
        if let Shard::PerThread(_) = self.places.shard {
            let foreign = self.state(FOREIGN);
            self.asm.cmp(foreign, 0)?;
            self.asm.jne(out)?;
            self.system(call::GETTID)?;
            self.asm.mov(r13, rax)?;
            self.have_area(no_area)?;
        }
        let has_failed = self.state(FAILED);
        self.asm.cmp(has_failed, 0)?;
        self.asm.jne(uncounted)?;
        self.system(call::GETPID)?;
        self.asm.mov(r13, rax)?;
        self.expand_path(failed)?;
        self.open(failed)?;
        self.check_header(failed)?;

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
        if let Shard::PerThread(_) = self.places.shard {
            self.system(call::GETTID)?;
            self.asm.mov(r13, rax)?;
            self.take_over(own)?;
        }

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
        self.map(true)?;
        self.asm.test(rax, rax)?;
        self.asm.js(no_space)?;
        self.asm.set_label(&mut own)?;
        self.asm.mov(qword_ptr(rax), r13)?;
        self.asm.mov(rcx, qword_ptr(rbp + SPACE_AT))?;
        self.asm.mov(qword_ptr(rax + 8), rcx)?;
        if let Shard::PerThread(_) = self.places.shard {
            self.note_process()?;
            self.have_shard()?;
        }
        self.asm.jmp(out)?;

        self.asm.set_label(&mut no_space)?;
        let text = self.text(NO_SPACE);
        self.asm.lea(rsi, ptr(text))?;
        self.asm.mov(edx, NO_SPACE.len() as u32)?;
        self.asm.set_label(&mut failed)?;
        self.complain()?;
        self.asm.mov(has_failed, 1)?;
        self.asm.set_label(&mut uncounted)?;
        match self.places.shard {
            Shard::At(_) => self.asm.nop()?,
            Shard::PerThread(_) => {
                self.count_for_nobody()?;
                self.asm.jmp(out)?;
                // Not where the thread comes from that started this one.
                self.asm.set_label(&mut no_area)?;
                self.asm.xor(esi, esi)?;
                self.set_base()?;
                self.asm.cmp(has_failed, 0)?;
                self.asm.jne(out)?;
                self.asm.mov(has_failed, 1)?;
                let text = self.text(NO_AREA);
                self.print(text, NO_AREA.len())?;
            }
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

    fn labels5(&mut self) -> (CodeLabel, CodeLabel, CodeLabel, CodeLabel, CodeLabel) {
        let mut label = || self.asm.create_label();
        (label(), label(), label(), label(), label())
    }
}
