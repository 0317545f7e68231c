//! What can go wrong.

use crate::exception::{self, Cause};
use crate::state::State;
use std::fmt;

#[derive(Debug, thiserror::Error)]
pub enum SimError {
    #[error("the file cannot be read as ELF: {0}")]
    NotElf(#[from] object::read::Error),
    #[error("the file is for another machine ({}), not for Blackfin", machine_name(*.machine))]
    OtherMachine { machine: u16 },
    #[error("the file is no executable program (e_type {kind})")]
    NotExecutable { kind: u16 },
    #[error("the segment of {bytes} bytes at {at:#010x} is outside memory")]
    SegmentOutsideMemory { at: u32, bytes: u64 },
    #[error("the file ends before its segment of {bytes} bytes at {at:#010x} does")]
    Truncated { at: u32, bytes: u64 },
    #[error("{0} bytes of SDRAM cannot be simulated (at most 512 MB, a multiple of 4 KB)")]
    SdramSize(u32),
    #[error("{0}")]
    Stopped(Box<Stopped>),
}

fn machine_name(machine: u16) -> String {
    lancet_isa::elf_machine_name(machine).map_or_else(|| format!("e_machine {machine}"), str::to_owned)
}

/// A program that could not go on.
#[derive(Debug)]
pub struct Stopped {
    pub why: Trouble,
    /// The address of the instruction.
    pub at: u32,
    /// Its text.
    pub instruction: String,
    pub registers: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// An exception, with the address of the data access if it was one.
    #[error("{}{}", .cause.text(), Address(*.address))]
    Exception { cause: Cause, address: Option<u32> },
    #[error("EXCPT {0:#x}, which no one handles")]
    UnhandledException(u8),
    #[error("unknown system call {number}")]
    UnknownSystemCall { number: u32 },
    #[error("an exception where none can be taken: {} (EXCAUSE {cause:#x})", exception::text_of(*.cause))]
    DoubleFault { cause: u8 },
    #[error("the emulator was called, and there is none")]
    Emulator,
    #[error("IDLE with nothing that could wake the processor")]
    IdleForever,
    #[error("a pseudo instruction that the simulator does not have")]
    PseudoInstruction,
}

struct Address(Option<u32>);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => write!(f, " (address {address:#010x})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#010x}: {}\n{}", self.why, self.at, self.instruction, self.registers)
    }
}

impl fmt::Display for State {
    /// All registers, four in a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = (0..8).map(|i| format!("R{i}"));
        let pointers = ["P0", "P1", "P2", "P3", "P4", "P5", "SP", "FP"].map(String::from);
        let address = ["I", "M", "B", "L"].into_iter().flat_map(|kind| (0..4).map(move |i| format!("{kind}{i}")));
        for (i, (name, value)) in data.chain(pointers).chain(address).zip(self.r).enumerate() {
            let end = if i % 4 == 3 { '\n' } else { ' ' };
            write!(f, "  {name:<7} {value:08x}{end}")?;
        }
        for (i, acc) in self.acc.iter().enumerate() {
            write!(f, "  A{i:<6} {:010x}", *acc as u64 & crate::state::ACC_MASK)?;
        }
        writeln!(f, "  ASTAT   {:08x}   RETS    {:08x}", self.astat(), self.rets)?;
        for i in 0..2 {
            writeln!(
                f,
                "  LC{i}     {:08x}   LT{i}     {:08x}   LB{i}     {:08x}",
                self.lc[i], self.lt[i], self.lb[i]
            )?;
        }
        write!(
            f,
            "  RETI    {:08x}   RETX    {:08x}   SEQSTAT {:08x}   SYSCFG  {:08x}",
            self.reti, self.retx, self.seqstat, self.syscfg
        )
    }
}
