//! Instructions of the slow path: modes, events, caches, system registers, and the simulator's pseudo instructions.

use crate::core::{Core, Full};
use crate::error::Trouble;
use crate::events;
use crate::exception::{Cause, Fault, HardwareError};
use crate::host::Host;
use crate::mmu::Kind;
use crate::syscall::{self, Called};
use lancet_isa::blackfin::{AllReg, AssertPart, BfInsn, CacheOp, Op, Preg, ReturnFrom};

/// Where the program goes on.
pub enum Next {
    Following,
    At(u32),
    /// The instruction has set the PC itself.
    Set,
    Exited(i32),
}

/// Why it does not.
pub enum Halt {
    Fault(Fault),
    Trouble(Trouble),
}

impl From<Fault> for Halt {
    fn from(fault: Fault) -> Halt {
        Halt::Fault(fault)
    }
}

impl From<Cause> for Halt {
    fn from(cause: Cause) -> Halt {
        Halt::Fault(Fault::Exception(cause))
    }
}

impl From<Trouble> for Halt {
    fn from(trouble: Trouble) -> Halt {
        Halt::Trouble(trouble)
    }
}

/// The bytes of a cache line.
const LINE: u32 = 32;

/// The exit status of a failed assertion, as with the GNU simulator.
const ASSERTION_FAILED: i32 = 2;

impl Core {
    fn require_supervisor(&self) -> Result<(), Halt> {
        if self.is_supervisor() { Ok(()) } else { Err(Cause::SupervisorOnly.into()) }
    }

    /// Runs one instruction of the slow path.
    pub fn system(&mut self, insn: &BfInsn, host: &mut dyn Host, args: &[Vec<u8>]) -> Result<Next, Halt> {
        match insn.op {
            Op::Return(ReturnFrom::Subroutine) => {
                let target = self.state.rets;
                self.check_fetch(target)?;
                return Ok(Next::At(target));
            }
            Op::Return(from) => {
                // Bit 0 of RETI has a meaning of its own.
                match from {
                    ReturnFrom::Exception => self.check_fetch(self.state.retx)?,
                    ReturnFrom::Nmi => self.check_fetch(self.state.retn)?,
                    _ => {}
                }
                self.return_from(from)?;
                return Ok(Next::Set);
            }
            Op::Call { target } => {
                self.state.rets = self.state.next_pc(insn.at, insn.len.into());
                return Ok(Next::At(target));
            }
            Op::CallReg(reg) => return self.call(insn, self.state.p(reg)),
            Op::CallPcReg(reg) => return self.call(insn, self.state.p(reg).wrapping_add(insn.at)),
            Op::Idle => self.idle()?,
            Op::Cli(reg) => {
                if self.operating {
                    self.require_supervisor()?;
                    self.state.set_d(reg, self.events.imask);
                    self.events.write_imask(0);
                } else {
                    self.state.set_d(reg, 0);
                }
            }
            Op::Sti(reg) => {
                if self.operating {
                    self.require_supervisor()?;
                    self.events.write_imask(self.state.d(reg));
                }
            }
            Op::Raise(ivg) => {
                self.require_supervisor()?;
                match ivg {
                    _ if !self.operating => {}
                    events::HARDWARE_ERROR => self.hardware_error(HardwareError::Raised),
                    _ => self.latch(ivg),
                }
            }
            Op::Excpt(number) => return self.software_exception(insn, number, host, args),
            Op::Testset(reg) => {
                let addr = self.state.p(reg);
                let byte = self.load::<1, Full>(addr)?;
                self.store::<1, Full>(addr, byte | 0x80)?;
                self.state.cc = byte == 0;
            }
            Op::Cache { op, ptr, post_increment } => {
                let addr = self.state.p(ptr);
                let kind = match op {
                    CacheOp::Prefetch => Kind::Read,
                    CacheOp::Flush | CacheOp::FlushInv => Kind::Write,
                    CacheOp::Iflush => Kind::Fetch,
                };
                self.check_cache(addr, kind)?;
                if self.timing.on {
                    self.work_on_caches(op, addr);
                }
                if post_increment {
                    self.state.set_p(ptr, addr.wrapping_add(LINE));
                }
            }
            Op::Move { dst, src } => {
                let value = self.read_reg(src)?;
                self.write_reg(dst, value)?;
            }
            Op::Push(reg) => self.push_system(reg)?,
            Op::Pop(reg) => self.pop_system(reg)?,
            Op::Abort => return Ok(Next::Exited(1)),
            Op::Hlt => return Ok(Next::Exited(0)),
            Op::DbgAcc(acc) => {
                let value = match self.state.a_unsigned(acc) {
                    0 => "0".to_owned(),
                    value => format!("{value:#x}"),
                };
                say(host, &format!("DBG : A{} = {value}\n", acc as u8));
            }
            Op::DbgReg(reg) => {
                let value = self.read_reg(reg)?;
                say(host, &format!("DBG : {} = {value:#010x}\n", name(reg)));
            }
            Op::OutcReg(reg) => {
                let _ = host.write(1, &[self.state.d(reg) as u8]);
            }
            Op::OutcImm(byte) => {
                let _ = host.write(1, &[byte]);
            }
            Op::Assert { part, reg, expected } => {
                if let Some(failure) = self.assertion(insn.at, part, reg, expected)? {
                    say(host, &failure);
                    return Ok(Next::Exited(ASSERTION_FAILED));
                }
            }
            Op::DbgHalt | Op::DbgCmplx(_) | Op::Dbg | Op::Prnt(_) => return Err(Trouble::PseudoInstruction.into()),
            _ => return Err(Cause::Undefined.into()),
        }
        Ok(Next::Following)
    }

    fn call(&mut self, insn: &BfInsn, target: u32) -> Result<Next, Halt> {
        self.check_fetch(target)?;
        self.state.rets = self.state.next_pc(insn.at, insn.len.into());
        Ok(Next::At(target))
    }

    fn work_on_caches(&mut self, op: CacheOp, addr: u32) {
        match op {
            CacheOp::Prefetch => self.timing.prefetch(addr, self.cycles),
            CacheOp::Flush => self.timing.flush_data(addr, false),
            CacheOp::FlushInv => self.timing.flush_data(addr, true),
            CacheOp::Iflush => self.timing.flush_instructions(addr),
        }
    }

    /// Sleeps until a new clock or voltage has settled, or until the core timer expires: nothing else can wake the
    /// processor.
    fn idle(&mut self) -> Result<(), Halt> {
        // Users cannot put the processor to sleep.
        if !self.is_supervisor() {
            return Ok(());
        }
        if let Some(cycles) = self.timing.clock.change(self.cycles) {
            self.cycles += u64::from(cycles);
            self.timing.clock_changed();
            return Ok(());
        }
        match self.timer.deadline() {
            _ if !self.operating => Ok(()),
            Some(deadline) => {
                self.cycles = self.cycles.max(deadline);
                Ok(())
            }
            None => Err(Trouble::IdleForever.into()),
        }
    }

    fn software_exception(
        &mut self,
        insn: &BfInsn,
        number: u8,
        host: &mut dyn Host,
        args: &[Vec<u8>],
    ) -> Result<Next, Halt> {
        if self.operating {
            self.mmu.log_instruction(insn.at, self.is_supervisor());
            let next = self.state.next_pc(insn.at, insn.len.into());
            return match self.exception(number, next) {
                events::Taken::DoubleFault => Err(Trouble::DoubleFault { cause: number }.into()),
                _ => Ok(Next::Set),
            };
        }
        if number != 0 {
            return Err(Trouble::UnhandledException(number).into());
        }
        Ok(match syscall::call(self, host, args)? {
            Called::Returned => Next::Following,
            Called::Exited(status) => Next::Exited(status),
        })
    }

    fn push_system(&mut self, reg: AllReg) -> Result<(), Halt> {
        let sp = self.state.p(Preg::Sp).wrapping_sub(4);
        let value = self.read_reg(reg)?;
        self.store::<4, Full>(sp, value)?;
        self.state.set_p(Preg::Sp, sp);
        if reg == AllReg::Reti && self.operating {
            self.allow_interrupts(true);
        }
        Ok(())
    }

    fn pop_system(&mut self, reg: AllReg) -> Result<(), Halt> {
        if reg == AllReg::Usp && !self.is_supervisor() {
            return Err(Cause::IllegalCombination.into());
        }
        let sp = self.state.p(Preg::Sp);
        let value = self.load::<4, Full>(sp)?;
        self.write_reg(reg, value)?;
        self.state.set_p(Preg::Sp, sp.wrapping_add(4));
        if reg == AllReg::Reti && self.operating {
            self.allow_interrupts(false);
        }
        Ok(())
    }

    /// What to say if the register does not hold what the program expects.
    fn assertion(&mut self, at: u32, part: AssertPart, reg: AllReg, expected: u16) -> Result<Option<String>, Halt> {
        let value = self.read_reg(reg)?;
        let (high, text, suffix) = match part {
            AssertPart::Lo => (false, "DBGA", ".L"),
            AssertPart::Hi => (true, "DBGA", ".H"),
            AssertPart::AllLo => (false, "DBGAL", ""),
            AssertPart::AllHi => (true, "DBGAH", ""),
        };
        let actual = if high { (value >> 16) as u16 } else { value as u16 };
        let reg = name(reg);
        let failure =
            || format!("FAIL at {at:#x}: {text} ({reg}{suffix}, {expected:#06x}); actual value {actual:#x}\n");
        Ok((actual != expected).then(failure))
    }
}

fn say(host: &mut dyn Host, text: &str) {
    // A console that takes no more is no reason to stop the program.
    let _ = host.write(1, text.as_bytes());
}

/// The name of a register, as the assembler writes it.
fn name(reg: AllReg) -> String {
    match reg {
        AllReg::A0X => "A0.X".to_owned(),
        AllReg::A0W => "A0.W".to_owned(),
        AllReg::A1X => "A1.X".to_owned(),
        AllReg::A1W => "A1.W".to_owned(),
        reg => format!("{reg:?}").to_uppercase(),
    }
}
