//! The core with everything it reaches: registers, memory, events, protection and the memory-mapped registers.
//!
//! Instructions run on one of several [`Path`]s. The fast one reaches plain memory and answers [`Fault::Slow`] to
//! everything else, without effect, so that the instruction can be run again. The full one knows protection, bus errors
//! and memory-mapped registers, and raises exceptions.

use crate::branch_log::BranchLog;
use crate::events::Events;
use crate::exception::{Cause, Fault, HardwareError};
use crate::memory::Memory;
use crate::mmr::SystemRegisters;
use crate::mmu::{Access, Kind, Mmu, REGISTERS, Verdict};
use crate::state::State;
use crate::timer::CoreTimer;
use crate::timing::{Timing, TimingConfig};
use lancet_isa::blackfin::AllReg;

/// What an instruction runs with.
pub trait Path {
    /// All checks.
    const FULL: bool;
    /// Caches and memory latency.
    const TIMED: bool;
}

pub struct Fast;
pub struct TimedFast;
pub struct Full;
pub struct TimedFull;

impl Path for Fast {
    const FULL: bool = false;
    const TIMED: bool = false;
}

impl Path for TimedFast {
    const FULL: bool = false;
    const TIMED: bool = true;
}

impl Path for Full {
    const FULL: bool = true;
    const TIMED: bool = false;
}

impl Path for TimedFull {
    const FULL: bool = true;
    const TIMED: bool = true;
}

pub struct Core {
    pub state: State,
    pub mem: Memory,
    pub events: Events,
    pub mmu: Mmu,
    pub timer: CoreTimer,
    pub branch_log: BranchLog,
    pub system: SystemRegisters,
    pub timing: Timing,
    /// The real event controller, not the host, takes exceptions.
    pub operating: bool,
    pub instructions: u64,
    pub cycles: u64,
    pub cycle_register: CycleRegister,
    /// The access is by the second address generator.
    pub second_access: bool,
    /// Where the access that was refused wanted to go.
    pub faulty_address: Option<u32>,
    /// A store changed decoded code.
    pub code_changed: bool,
    /// The trace buffer was full and wants an exception.
    pub branch_log_full: bool,
}

/// CYCLES and CYCLES2: a 64-bit count that runs while SYSCFG says so.
#[derive(Default)]
pub struct CycleRegister {
    value: u64,
    /// The cycle at which `value` was right.
    since: u64,
    /// CYCLES2 as a read of CYCLES left it.
    latched: u32,
}

const SINGLE_STEP: u32 = 1 << 0;
const COUNT_CYCLES: u32 = 1 << 1;

impl Core {
    pub fn new(mem: Memory, stack: u32, operating: bool, timing: Option<TimingConfig>) -> Core {
        Core {
            state: State::new(stack),
            mem,
            events: Events::new(),
            mmu: Mmu::new(),
            timer: CoreTimer::new(timing.is_some()),
            branch_log: BranchLog::new(),
            system: SystemRegisters::new(),
            timing: Timing::new(timing),
            operating,
            instructions: 0,
            cycles: 0,
            cycle_register: CycleRegister::default(),
            second_access: false,
            faulty_address: None,
            code_changed: false,
            branch_log_full: false,
        }
    }

    /// Does every instruction exception-step or log branches, so that blocks cannot be run whole?
    pub fn wants_single_instructions(&self) -> bool {
        self.operating && (self.single_steps() || self.branch_log.is_on() || self.mmu.code.enabled())
    }

    pub fn single_steps(&self) -> bool {
        self.operating && self.state.syscfg & SINGLE_STEP != 0
    }

    pub fn record_branch(&mut self, from: u32, to: u32) {
        // In the reset handler nothing is logged.
        if self.operating && self.branch_log.is_on() && self.events.level() != crate::events::RESET {
            let in_exception = !self.below_exceptions();
            self.branch_log_full |= !self.branch_log.record(from, to, in_exception);
        }
    }

    #[inline(always)]
    pub fn load<const N: usize, P: Path>(&mut self, addr: u32) -> Result<u32, Fault> {
        match self.mem.load::<N>(addr) {
            Some(bytes) => {
                if P::TIMED {
                    self.cycles += self.timing.read(addr, self.cycles);
                }
                Ok(widen(&bytes))
            }
            None => self.load_beyond::<P>(addr, N),
        }
    }

    #[inline(always)]
    pub fn store<const N: usize, P: Path>(&mut self, addr: u32, value: u32) -> Result<(), Fault> {
        let bytes = value.to_le_bytes();
        match bytes.first_chunk::<N>().and_then(|bytes| self.mem.store(addr, *bytes)) {
            Some(()) => {
                if P::TIMED {
                    self.cycles += self.timing.write(addr, self.cycles);
                }
                Ok(())
            }
            None => self.store_beyond::<P>(addr, bytes.get(..N).unwrap_or(&bytes)),
        }
    }

    #[cold]
    #[inline(never)]
    fn load_beyond<P: Path>(&mut self, addr: u32, width: usize) -> Result<u32, Fault> {
        if self.is_plain_memory(addr)
            && addr as usize & (width - 1) == 0
            && let Some(bytes) = self.mem.bytes(addr, width)
        {
            let value = widen(bytes);
            if P::TIMED {
                self.cycles += self.timing.read(addr, self.cycles);
            }
            return Ok(value);
        }
        if P::FULL { self.full_load(addr, width) } else { Err(Fault::Slow) }
    }

    #[cold]
    #[inline(never)]
    fn store_beyond<P: Path>(&mut self, addr: u32, bytes: &[u8]) -> Result<(), Fault> {
        // What was decoded is overwritten here as well, but the full path does it again and tells.
        if self.is_plain_memory(addr)
            && addr as usize & (bytes.len() - 1) == 0
            && self.mem.write(addr, bytes) == Some(false)
        {
            if P::TIMED {
                self.cycles += self.timing.write(addr, self.cycles);
            }
            return Ok(());
        }
        if P::FULL { self.full_store(addr, bytes) } else { Err(Fault::Slow) }
    }

    /// Memory on the chip that data accesses reach with no more checks than the alignment.
    fn is_plain_memory(&self, addr: u32) -> bool {
        matches!(addr >> 20, 0xFEB | 0xFF8 | 0xFF9 | 0xFFB) && !self.mmu.data.enabled()
    }

    fn access(&self, addr: u32, align: u32, kind: Kind) -> Access {
        Access { addr, align, kind, supervisor: self.is_supervisor(), second: self.second_access }
    }

    /// Checks the protection of an access.
    fn check(&mut self, access: Access) -> Result<(), Fault> {
        let verdict =
            if self.operating { self.mmu.judge(access, self.state.pc) } else { Mmu::judge_without_tables(access) };
        match verdict {
            Verdict::Fine => Ok(()),
            Verdict::BusError => {
                self.hardware_error(HardwareError::ExternalAddress);
                Ok(())
            }
            Verdict::Refused(cause) => {
                self.faulty_address = Some(access.addr);
                Err(Fault::Exception(cause))
            }
        }
    }

    /// Checks where a jump goes, before it does.
    pub fn check_fetch(&mut self, addr: u32) -> Result<(), Fault> {
        self.check(self.access(addr, 2, Kind::Fetch))
    }

    /// Checks the address of an instruction that works on the caches. Protection is no matter for them.
    pub fn check_cache(&mut self, addr: u32, kind: Kind) -> Result<(), Fault> {
        match self.check(self.access(addr & !31, 32, kind)) {
            Err(Fault::Exception(Cause::DataProtection | Cause::FetchProtection)) => Ok(()),
            checked => checked,
        }
    }

    fn full_load(&mut self, addr: u32, width: usize) -> Result<u32, Fault> {
        let access = self.access(addr, width as u32, Kind::Read);
        self.check(access)?;
        if addr >= REGISTERS {
            return self.read_register(addr, width as u32).ok_or_else(|| self.no_register(access));
        }
        match self.mem.bytes(addr, width).map(widen) {
            Some(value) => {
                if self.timing.on {
                    self.cycles += self.timing.read(addr, self.cycles);
                }
                Ok(value)
            }
            None => self.no_memory(access).map(|()| 0),
        }
    }

    fn full_store(&mut self, addr: u32, bytes: &[u8]) -> Result<(), Fault> {
        let access = self.access(addr, bytes.len() as u32, Kind::Write);
        self.check(access)?;
        if addr >= REGISTERS {
            return self.write_register(addr, bytes.len() as u32, widen(bytes)).ok_or_else(|| self.no_register(access));
        }
        match self.mem.write(addr, bytes) {
            Some(code_changed) => {
                self.code_changed |= code_changed;
                if self.timing.on {
                    self.cycles += self.timing.write(addr, self.cycles);
                }
                Ok(())
            }
            None => self.no_memory(access),
        }
    }

    fn no_register(&mut self, access: Access) -> Fault {
        self.faulty_address = Some(access.addr);
        self.mmu.log(access, self.state.pc, true, 0);
        Fault::Exception(Cause::SupervisorOnly)
    }

    /// The bus finds nothing there: a hardware error, or without an event controller the end.
    fn no_memory(&mut self, access: Access) -> Result<(), Fault> {
        if !self.operating {
            self.faulty_address = Some(access.addr);
            return Err(Fault::Exception(Cause::DataMiss));
        }
        self.hardware_error(HardwareError::ExternalAddress);
        Ok(())
    }

    /// Registers of group 7 are the supervisor's.
    fn check_register(&self, reg: AllReg) -> Result<(), Fault> {
        if reg.group() == 7 && !self.is_supervisor() { Err(Fault::Exception(Cause::SupervisorOnly)) } else { Ok(()) }
    }

    pub fn read_reg(&mut self, reg: AllReg) -> Result<u32, Fault> {
        self.check_register(reg)?;
        let state = &self.state;
        Ok(match reg {
            AllReg::A0X => (state.acc[0] >> 32) as u32,
            AllReg::A0W => state.acc[0] as u32,
            AllReg::A1X => (state.acc[1] >> 32) as u32,
            AllReg::A1W => state.acc[1] as u32,
            AllReg::Astat => state.astat(),
            AllReg::Rets => state.rets,
            AllReg::Lc0 => state.lc[0],
            AllReg::Lt0 => state.lt[0],
            AllReg::Lb0 => state.lb[0],
            AllReg::Lc1 => state.lc[1],
            AllReg::Lt1 => state.lt[1],
            AllReg::Lb1 => state.lb[1],
            AllReg::Cycles => {
                let count = self.cycle_count();
                self.cycle_register.latched = (count >> 32) as u32;
                count as u32
            }
            AllReg::Cycles2 => self.cycle_register.latched,
            AllReg::Usp => state.usp,
            AllReg::Seqstat => state.seqstat,
            AllReg::Syscfg => state.syscfg,
            AllReg::Reti => state.reti,
            AllReg::Retx => state.retx,
            AllReg::Retn => state.retn,
            AllReg::Rete => state.rete,
            AllReg::Emudat => state.emudat_in,
            _ => *state.r.get(usize::from(reg.code())).ok_or(Fault::Exception(Cause::Undefined))?,
        })
    }

    pub fn write_reg(&mut self, reg: AllReg, value: u32) -> Result<(), Fault> {
        self.check_register(reg)?;
        let set_ext = |acc: i64| i64::from(value as i8) << 32 | acc & 0xFFFF_FFFF;
        let set_word = |acc: i64| acc & !0xFFFF_FFFF | i64::from(value);
        let state = &mut self.state;
        match reg {
            AllReg::A0X => state.acc[0] = set_ext(state.acc[0]),
            AllReg::A0W => state.acc[0] = set_word(state.acc[0]),
            AllReg::A1X => state.acc[1] = set_ext(state.acc[1]),
            AllReg::A1W => state.acc[1] = set_word(state.acc[1]),
            AllReg::Astat => state.set_astat(value),
            AllReg::Rets => state.rets = value,
            AllReg::Lc0 => state.lc[0] = value,
            AllReg::Lt0 => state.lt[0] = value & !1,
            AllReg::Lb0 => state.lb[0] = value,
            AllReg::Lc1 => state.lc[1] = value,
            AllReg::Lt1 => state.lt[1] = value & !1,
            AllReg::Lb1 => state.lb[1] = value,
            AllReg::Cycles => {
                let count = self.cycle_count();
                self.set_cycle_count(count & !0xFFFF_FFFF | u64::from(value));
            }
            AllReg::Cycles2 => {
                let count = self.cycle_count();
                self.set_cycle_count(count & 0xFFFF_FFFF | u64::from(value) << 32);
            }
            AllReg::Usp => state.usp = value,
            // Read-only.
            AllReg::Seqstat => {}
            AllReg::Syscfg => {
                let count = self.cycle_count();
                self.state.syscfg = value;
                self.set_cycle_count(count);
            }
            AllReg::Reti => state.reti = value,
            AllReg::Retx => state.retx = value,
            AllReg::Retn => state.retn = value,
            AllReg::Rete => state.rete = value,
            AllReg::Emudat => state.emudat_out = value,
            _ => *state.r.get_mut(usize::from(reg.code())).ok_or(Fault::Exception(Cause::Undefined))? = value,
        }
        Ok(())
    }

    /// The totals of all events, up to date.
    pub fn count_events(&mut self) {
        self.timing.events.instructions = self.instructions;
        let supervisor = self.is_supervisor();
        self.timing.pmu.update(&self.timing.events, supervisor);
    }

    fn cycle_count(&self) -> u64 {
        let register = &self.cycle_register;
        let running = self.state.syscfg & COUNT_CYCLES != 0;
        register.value.wrapping_add(if running { self.cycles - register.since } else { 0 })
    }

    fn set_cycle_count(&mut self, value: u64) {
        self.cycle_register.value = value;
        self.cycle_register.since = self.cycles;
    }
}

#[inline(always)]
fn widen(bytes: &[u8]) -> u32 {
    let mut word = [0; 4];
    word[..bytes.len()].copy_from_slice(bytes);
    u32::from_le_bytes(word)
}
