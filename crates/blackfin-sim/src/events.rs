//! The core event controller: who interrupts whom, and how one gets back.
//!
//! An event has a level (IVG), 0 the highest. `ilat` latches requests, `imask` lets levels 5 to 15 through, `ipend` says
//! which are being served; bit 4 of it holds all interrupts back, from the entry of a handler until RETI is pushed.
//! Level 16 stands for user mode.
//!
//! Exceptions are taken while an instruction runs, interrupts between two instructions. In user mode SP is USP, and
//! entering a handler sets bit 0 of LB0 and LB1, so that the user's hardware loops sleep in the handler.

use crate::core::Core;
use crate::exception::{Cause, HardwareError};
use lancet_isa::blackfin::{Preg, ReturnFrom};

pub const EMULATION: u8 = 0;
pub const RESET: u8 = 1;
pub const NMI: u8 = 2;
pub const EXCEPTION: u8 = 3;
/// Not an event: bit 4 of IPEND.
pub const GLOBAL_DISABLE: u8 = 4;
pub const HARDWARE_ERROR: u8 = 5;
pub const CORE_TIMER: u8 = 6;
const USER: u8 = 16;

/// IMASK bits that are always set.
const UNMASKABLE: u32 = 0x1F;

/// Where a processor starts after reset: the boot ROM. Also where overridden vectors lead.
const BOOT_ROM: u32 = 0xEF00_0000;

const SELF_NESTING: u32 = 1 << 2;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Nothing happened, or the PC is at the handler now.
    Handled,
    /// Somebody asked for a reset: the program is over.
    Reset,
    /// An emulator would take over here.
    Emulator,
    /// An exception in an exception handler or above.
    DoubleFault,
}

pub struct Events {
    pub vectors: [u32; 16],
    pub vector_override: u32,
    pub imask: u32,
    pub ipend: u32,
    pub ilat: u32,
    pub iprio: u32,
}

impl Events {
    pub fn new() -> Events {
        Events {
            vectors: [0; 16],
            vector_override: 0,
            imask: UNMASKABLE,
            // A processor comes up in the reset handler.
            ipend: 1 << RESET | 1 << GLOBAL_DISABLE,
            ilat: 0,
            iprio: 0,
        }
    }

    pub fn write_imask(&mut self, value: u32) {
        self.imask = value & 0xFFE0 | UNMASKABLE;
    }

    /// The level being served; 16 in user mode.
    pub fn level(&self) -> u8 {
        lowest(self.ipend & !(1 << EMULATION)).unwrap_or(USER)
    }

    /// The latched and enabled request that would be taken now.
    fn next(&self, self_nesting: bool) -> Option<u8> {
        if self.ipend & 1 << GLOBAL_DISABLE != 0 {
            return None;
        }
        let ivg = lowest(self.ilat & self.imask)?;
        let level = self.level();
        (ivg < level || self_nesting && ivg == level).then_some(ivg)
    }
}

fn lowest(bits: u32) -> Option<u8> {
    let bits = bits & 0xFFFF & !(1 << GLOBAL_DISABLE);
    (bits != 0).then(|| bits.trailing_zeros() as u8)
}

impl Core {
    pub fn is_supervisor(&self) -> bool {
        !self.operating || self.events.level() != USER
    }

    /// May single steps and trace-buffer exceptions be taken at this level?
    pub fn below_exceptions(&self) -> bool {
        self.events.level() > EXCEPTION
    }

    pub fn latch(&mut self, ivg: u8) {
        self.events.ilat |= 1 << ivg;
    }

    pub fn hardware_error(&mut self, error: HardwareError) {
        self.state.seqstat = self.state.seqstat & !(0x1F << 14) | (error as u32) << 14;
        self.latch(HARDWARE_ERROR);
    }

    /// Takes an exception. `next` is where the program would have gone on; exceptions that cancel the instruction return
    /// to it instead.
    pub fn exception(&mut self, cause: u8, next: u32) -> Taken {
        self.state.seqstat = self.state.seqstat & !0x3F | u32::from(cause);
        if self.events.level() <= EXCEPTION {
            self.state.seqstat = self.state.seqstat & !0x3F | Cause::DoubleFault as u32;
            return Taken::DoubleFault;
        }
        self.state.retx = if cause < 0x20 { next } else { self.state.pc };
        self.enter(EXCEPTION);
        Taken::Handled
    }

    /// Takes the most important interrupt that is let through, if any. The PC is that of the next instruction.
    pub fn take_interrupt(&mut self) -> Taken {
        let Some(ivg) = self.events.next(self.state.syscfg & SELF_NESTING != 0) else {
            return Taken::Handled;
        };
        let pc = self.state.pc;
        match ivg {
            EMULATION => {
                self.state.rete = pc;
                return Taken::Emulator;
            }
            RESET => return Taken::Reset,
            NMI => self.state.retn = pc,
            EXCEPTION => self.state.retx = pc,
            _ => self.state.reti = pc | u32::from(ivg == self.events.level()),
        }
        self.enter(ivg);
        Taken::Handled
    }

    fn enter(&mut self, ivg: u8) {
        self.count_events();
        match ivg {
            EXCEPTION => self.timing.events.exceptions += 1,
            _ => self.timing.events.interrupts += 1,
        }
        let from_user = self.events.level() == USER;
        let from = self.state.pc;
        self.events.ipend |= 1 << ivg;
        self.events.ilat &= !(1 << ivg);
        let overridden = self.events.vector_override & 0xFF80 & 1 << ivg != 0;
        let to = if overridden { BOOT_ROM } else { self.events.vectors[usize::from(ivg)] };
        self.state.pc = to;
        self.record_branch(from, to);
        if ivg >= HARDWARE_ERROR {
            self.events.ipend |= 1 << GLOBAL_DISABLE;
        }
        if from_user {
            for lb in &mut self.state.lb {
                *lb |= 1;
            }
            self.state.usp = self.state.p(Preg::Sp);
            self.state.set_p(Preg::Sp, self.state.ksp);
        }
    }

    /// `RTI`, `RTX`, `RTN`, `RTE`. An error is the exception to raise.
    pub fn return_from(&mut self, from: ReturnFrom) -> Result<(), Cause> {
        let target = match from {
            ReturnFrom::Subroutine => self.state.rets,
            ReturnFrom::Interrupt => self.state.reti,
            ReturnFrom::Exception => self.state.retx,
            ReturnFrom::Nmi => self.state.retn,
            ReturnFrom::Emulation => self.state.rete,
        };
        if !self.operating {
            self.state.pc = target;
            return Ok(());
        }
        self.events.ipend &= !(1 << EMULATION);
        let level = self.events.level();
        let allowed = match from {
            ReturnFrom::Interrupt => level == RESET || (HARDWARE_ERROR..USER).contains(&level),
            ReturnFrom::Exception => level == EXCEPTION,
            ReturnFrom::Nmi => level == NMI,
            // Only an emulator gets there.
            ReturnFrom::Emulation => false,
            ReturnFrom::Subroutine => true,
        };
        if !allowed {
            return Err(Cause::SupervisorOnly);
        }
        self.count_events();
        let pc = self.state.pc;
        self.state.pc = target & !1;
        self.record_branch(pc, target & !1);
        // Bit 0 marks a handler that had interrupted itself.
        if target & 1 == 0 {
            self.events.ipend &= !(1 << level);
        }
        if level >= HARDWARE_ERROR || level == RESET {
            self.events.ipend &= !(1 << GLOBAL_DISABLE);
        }
        if self.events.level() == USER {
            for lb in &mut self.state.lb {
                *lb &= !1;
            }
            self.state.ksp = self.state.p(Preg::Sp);
            self.state.set_p(Preg::Sp, self.state.usp);
        }
        Ok(())
    }

    /// `[--SP] = RETI` lets interrupts through again; `RETI = [SP++]` holds them back.
    pub fn allow_interrupts(&mut self, allow: bool) {
        if allow {
            self.events.ipend &= !(1 << GLOBAL_DISABLE);
        } else {
            self.events.ipend |= 1 << GLOBAL_DISABLE;
        }
    }
}
