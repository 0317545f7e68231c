//! The simulator: a program in a machine, run to its end.
//!
//! Blocks of decoded instructions run on the fast path. What that cannot do, it leaves undone, and [`Simulator::step`]
//! does that one instruction with all checks, followed by everything that may happen between two instructions: single-step
//! exceptions, the core timer, interrupts, changes of code.

use crate::code::{Block, CodeCache, Ending, Source};
use crate::core::{Core, Fast, Full, Path, TimedFast, TimedFull};
use crate::cost;
use crate::elf;
use crate::error::{SimError, Stopped, Trouble};
use crate::events::{self, Taken};
use crate::exception::{Cause, Fault};
use crate::exec::Exit;
use crate::host::Host;
use crate::lower::{Lowered, lower};
use crate::memory::Memory;
use crate::state::State;
use crate::stats::Stats;
use crate::system::{Halt, Next};
use crate::timing::TimingConfig;
use crate::timing::cache::LINE;
use crate::timing::clock::OperatingPoint;
use crate::trace::{Step, Tracer};
use crate::uop::Uop;
use lancet_isa::blackfin::{BfInsn, Disassembler, Op};

/// Who serves exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Environment {
    /// The host: `EXCPT 0` is a system call of libgloss, everything else ends the program.
    #[default]
    Virtual,
    /// The program, through the event controller, as on hardware.
    Operating,
}

#[derive(Clone, Debug)]
pub struct Config {
    pub environment: Environment,
    /// Caches, memory latency and performance counters. Without, the simulator is fastest, and an instruction takes the
    /// cycles it takes in L1 memory.
    pub timing: Option<TimingConfig>,
    /// Bytes of SDRAM; the stack starts at its end.
    pub sdram: u32,
    /// The arguments of the program, its name first.
    pub args: Vec<Vec<u8>>,
    /// Stop after so many instructions.
    pub limit: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config { environment: Environment::Virtual, timing: None, sdram: 128 << 20, args: Vec::new(), limit: u64::MAX }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exited(i32),
    /// The configured number of instructions was reached.
    Limit,
}

pub struct Simulator {
    core: Core,
    code: CodeCache,
    args: Vec<Vec<u8>>,
    limit: u64,
    /// LB0 and LB1 as the code cache knows them.
    known_bottoms: [u32; 2],
}

/// The most SDRAM a BF548 can address in its first two banks.
const MAX_SDRAM: u32 = 512 << 20;

impl Simulator {
    /// A machine with nothing in its memory.
    pub fn bare(config: Config) -> Result<Simulator, SimError> {
        Simulator::with(config, Memory::new, CodeCache::new())
    }

    /// The machine with nothing in its memory again, and another configuration: sooner done than a new one.
    pub fn reset(self, config: Config) -> Result<Simulator, SimError> {
        let Simulator { core: Core { mut mem, .. }, mut code, .. } = self;
        code.reset(&mut mem);
        Simulator::with(config, |sdram| mem.reset(sdram), code)
    }

    fn with(config: Config, mem: impl FnOnce(u32) -> Memory, mut code: CodeCache) -> Result<Simulator, SimError> {
        if config.sdram == 0 || config.sdram > MAX_SDRAM || config.sdram & 0xFFF != 0 {
            return Err(SimError::SdramSize(config.sdram));
        }
        let operating = config.environment == Environment::Operating;
        code.straight = config.timing.is_some();
        Ok(Simulator {
            core: Core::new(mem(config.sdram), config.sdram, operating, config.timing),
            code,
            args: config.args,
            limit: config.limit,
            known_bottoms: [1; 2],
        })
    }

    /// A machine with the executable `file` loaded.
    pub fn load(file: &[u8], config: Config) -> Result<Simulator, SimError> {
        let mut simulator = Simulator::bare(config)?;
        simulator.core.state.pc = elf::load(file, &mut simulator.core.mem)?;
        Ok(simulator)
    }

    pub fn registers(&self) -> &State {
        &self.core.state
    }

    pub fn registers_mut(&mut self) -> &mut State {
        &mut self.core.state
    }

    /// Puts bytes into memory; `None` if there is no memory.
    pub fn write_memory(&mut self, addr: u32, bytes: &[u8]) -> Option<()> {
        let code_changed = self.core.mem.write(addr, bytes)?;
        self.core.code_changed |= code_changed;
        Some(())
    }

    /// Bytes of memory, if there is memory.
    pub fn memory(&self, addr: u32, len: usize) -> Option<&[u8]> {
        self.core.mem.bytes(addr, len)
    }

    pub fn operating_point(&self) -> OperatingPoint {
        self.core.timing.clock.point()
    }

    pub fn stats(&mut self) -> Stats {
        self.core.count_events();
        self.core.timing.clock.settle_accounts(self.core.cycles);
        Stats::new(&self.core)
    }

    /// Runs to the end of the program.
    pub fn run(&mut self, host: &mut dyn Host) -> Result<End, SimError> {
        self.follow_changes();
        loop {
            if !self.core.wants_single_instructions() {
                if self.core.timing.on {
                    self.run_blocks::<TimedFast>();
                } else {
                    self.run_blocks::<Fast>();
                }
            }
            if self.core.instructions >= self.limit {
                return Ok(End::Limit);
            }
            if let Some(end) = self.step(host, None)? {
                return Ok(end);
            }
        }
    }

    /// Runs to the end of the program and shows every completed instruction to `tracer`.
    pub fn run_traced(&mut self, host: &mut dyn Host, tracer: &mut dyn Tracer) -> Result<End, SimError> {
        self.follow_changes();
        loop {
            if self.core.instructions >= self.limit {
                return Ok(End::Limit);
            }
            if let Some(end) = self.step(host, Some(tracer))? {
                return Ok(end);
            }
        }
    }

    /// Runs blocks until an instruction needs the slow path.
    fn run_blocks<P: Path>(&mut self) {
        let Simulator { core, code, limit, .. } = self;
        let deadline = core.timer.deadline().unwrap_or(u64::MAX);
        let mut pc = core.state.pc;
        loop {
            let Some(block) = code.find(pc) else {
                code.build(pc, &mut core.mem);
                continue;
            };
            let near_end = core.instructions + u64::from(block.len) > *limit;
            if near_end || core.cycles + u64::from(block.max_cycles) >= deadline {
                break;
            }
            if P::TIMED {
                core.cycles += core.timing.fetch(block.first_line, block.last_line, core.cycles);
            }
            let all = block.first as usize..(block.first + block.len) as usize;
            let (Some(ops), Some(places)) = (code.ops.get(all.clone()), code.places.get(all)) else { break };
            match core.run::<P>(ops, &code.bundles) {
                Exit::Fall => {
                    core.instructions += u64::from(block.len);
                    core.cycles += u64::from(block.cycles);
                    pc = block.end_pc;
                    if block.loop_bottom {
                        pc = core.state.next_pc(block.last_pc, block.end_pc.wrapping_sub(block.last_pc));
                        core.state.count_loops(block.last_pc);
                    }
                    if P::TIMED {
                        count_block(core, block, false);
                    }
                }
                Exit::Jump(index, target) => {
                    core.instructions += index as u64 + 1;
                    core.cycles += places.get(index).map_or(0, |place| u64::from(place.taken));
                    pc = target;
                    // Only the last instruction can be a loop's bottom.
                    if block.loop_bottom && index + 1 == ops.len() {
                        core.state.count_loops(block.last_pc);
                    }
                    if P::TIMED {
                        count_block(core, block, true);
                    }
                }
                Exit::Stop(index, _) => {
                    core.instructions += index as u64;
                    let done = index.checked_sub(1).and_then(|last| places.get(last));
                    core.cycles += done.map_or(0, |place| u64::from(place.falls));
                    pc = places.get(index).map_or(pc, |place| place.pc);
                    break;
                }
            }
        }
        core.state.pc = pc;
    }

    /// One instruction with all checks, and what follows it.
    fn step(&mut self, host: &mut dyn Host, tracer: Option<&mut dyn Tracer>) -> Result<Option<End>, SimError> {
        let pc = self.core.state.pc;
        let source = self.code.source(pc, &mut self.core.mem);
        if let Err(fault) = self.check_fetch(pc, source) {
            return self.fault(pc, fault).map(|()| None);
        }
        let insn = match source {
            Source::Insn(insn) => insn,
            Source::Illegal(cause) => return self.fault(pc, Fault::Exception(cause)).map(|()| None),
            Source::NoMemory => {
                let trouble = Trouble::Exception { cause: Cause::FetchMiss, address: Some(pc) };
                return Err(self.stopped(pc, trouble));
            }
        };
        let before = tracer.is_some().then(|| self.core.state.clone());
        let single_step = self.core.single_steps() && self.core.below_exceptions();
        if self.core.timing.on {
            self.core.cycles += self.core.timing.fetch(pc / LINE, pc / LINE, self.core.cycles);
        }

        let cost = cost::of(&insn);
        match self.execute(&insn, host) {
            Ok(Next::Exited(status)) => {
                self.core.instructions += 1;
                self.core.cycles += u64::from(cost.falls);
                return Ok(Some(End::Exited(status)));
            }
            Ok(Next::Following) => {
                self.core.state.pc = self.core.state.next_pc(pc, insn.len.into());
                self.core.cycles += u64::from(cost.falls);
            }
            Ok(Next::At(target)) => {
                self.core.record_branch(pc, target);
                self.core.state.pc = target;
                self.core.cycles += u64::from(cost.taken);
            }
            Ok(Next::Set) => self.core.cycles += u64::from(cost.taken),
            Err(Halt::Fault(fault)) => return self.fault(pc, fault).map(|()| None),
            Err(Halt::Trouble(trouble)) => return Err(self.stopped(pc, trouble)),
        }
        self.core.state.count_loops(pc);
        self.core.instructions += 1;
        if matches!(insn.op, Op::Csync | Op::Ssync) {
            self.core.timing.events.syncs += 1;
            self.core.timing.events.sync_stalls += u64::from(cost::SYNC);
        }
        let end = self.between_instructions(pc, single_step)?;
        if let (Some(tracer), Some(before)) = (tracer, before) {
            tracer.step(&Step { insn: &insn, before: &before, after: &self.core.state });
        }
        Ok(end)
    }

    fn execute(&mut self, insn: &BfInsn, host: &mut dyn Host) -> Result<Next, Halt> {
        let bundle;
        let (uop, bundles) = match lower(insn, self.code.is_loop_bottom(insn.at)) {
            Lowered::Uop(Uop::Slow) => return self.core.system(insn, host, &self.args),
            Lowered::Uop(uop) => (uop, &[][..]),
            Lowered::Bundle(lowered) => {
                bundle = [lowered];
                (Uop::Bundle(0), &bundle[..])
            }
        };
        let exit = if self.core.timing.on {
            self.core.run::<TimedFull>(&[uop], bundles)
        } else {
            self.core.run::<Full>(&[uop], bundles)
        };
        match exit {
            Exit::Fall => Ok(Next::Following),
            Exit::Jump(_, target) => Ok(Next::At(target)),
            Exit::Stop(_, fault) => Err(Halt::Fault(fault)),
        }
    }

    /// The protection of an instruction's own bytes.
    fn check_fetch(&mut self, pc: u32, source: Source) -> Result<(), Fault> {
        if pc & 1 == 0 && !self.core.mmu.code.enabled() && self.core.mem.is_plain_code(pc) {
            return Ok(());
        }
        self.core.check_fetch(pc)?;
        if let Source::Insn(BfInsn { len: len @ (4 | 8), .. }) = source {
            self.core.check_fetch(pc.wrapping_add(u32::from(len) - 2))?;
        }
        Ok(())
    }

    /// Tells the code cache what happened to memory and to the loop registers.
    fn follow_changes(&mut self) {
        let core = &mut self.core;
        if core.code_changed {
            core.code_changed = false;
            self.code.flush(&mut core.mem);
        }
        for (known, now) in self.known_bottoms.iter_mut().zip(core.state.lb) {
            if *known != now {
                *known = now;
                self.code.note_loop_bottom(now, &mut core.mem);
            }
        }
    }

    fn between_instructions(&mut self, pc: u32, single_step: bool) -> Result<Option<End>, SimError> {
        self.follow_changes();
        let core = &mut self.core;
        if !core.operating {
            return Ok(None);
        }
        let next = core.state.pc;
        if single_step && core.below_exceptions() {
            core.exception(Cause::SingleStep as u8, next);
        }
        if core.branch_log_full {
            core.branch_log_full = false;
            if core.below_exceptions() {
                core.exception(Cause::TraceBufferFull as u8, next);
            }
        }
        if core.timer.expire(core.cycles) {
            core.latch(events::CORE_TIMER);
        }
        match core.take_interrupt() {
            Taken::Handled => Ok(None),
            Taken::Reset => Ok(Some(End::Exited(0))),
            Taken::Emulator => Err(self.stopped(pc, Trouble::Emulator)),
            Taken::DoubleFault => Err(self.stopped(pc, Trouble::DoubleFault { cause: 0 })),
        }
    }

    /// An instruction was cancelled.
    fn fault(&mut self, pc: u32, fault: Fault) -> Result<(), SimError> {
        let cause = match fault {
            Fault::Exception(cause) => cause,
            // Only the fast path gives up that way.
            Fault::Slow => Cause::Undefined,
        };
        let address = self.core.faulty_address.take();
        if !self.core.operating {
            return Err(self.stopped(pc, Trouble::Exception { cause, address }));
        }
        if address.is_none() {
            self.core.mmu.log_instruction(pc, self.core.is_supervisor());
        }
        if cause == Cause::DataMisaligned || cause == Cause::FetchMisaligned {
            self.core.timing.events.misaligned += 1;
        }
        match self.core.exception(cause as u8, pc) {
            Taken::DoubleFault => Err(self.stopped(pc, Trouble::DoubleFault { cause: cause as u8 })),
            _ => self.between_instructions(pc, false).map(|_| ()),
        }
    }

    fn stopped(&self, pc: u32, why: Trouble) -> SimError {
        let code = [8, 4, 2].into_iter().find_map(|len| self.core.mem.bytes(pc, len)).unwrap_or(&[]);
        let instruction = match Disassembler::new().line(code, pc, &|_| None) {
            Ok(line) => line.text,
            Err(_) => "no memory".to_owned(),
        };
        let mut registers = self.core.state.clone();
        registers.pc = pc;
        SimError::Stopped(Box::new(Stopped { why, at: pc, instruction, registers }))
    }
}

/// What the performance monitor sees of a block.
fn count_block(core: &mut Core, block: &Block, taken: bool) {
    let events = &mut core.timing.events;
    events.hazards += u64::from(block.hazards);
    match (block.ending, taken) {
        (Ending::DirectJump, _) => events.direct_jumps += 1,
        (Ending::LikelyBranch, true) => events.predicted_taken += 1,
        (Ending::LikelyBranch, false) | (Ending::UnlikelyBranch, true) => events.mispredicted += 1,
        (Ending::UnlikelyBranch, false) | (Ending::Other, _) => {}
    }
    if block.loop_bottom {
        for (which, lb) in core.state.lb.iter().enumerate() {
            events.loop_iterations[which] += u64::from(*lb == block.last_pc);
        }
    }
}
