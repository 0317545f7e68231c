//! Protection: the cacheability protection lookaside buffers (CPLBs) and the rules that hold without them.
//!
//! There are 16 entries for data and 16 for instructions, each a page of 1 KB to 4 MB. They count only while enabled in
//! DMEM_CONTROL or IMEM_CONTROL. The memories on the chip need no entry; the memory-mapped registers are for supervisor
//! mode and the first address generator only. Of several violations the most important one is reported: more than one
//! entry, then misalignment, then protection, then no entry.

use crate::exception::Cause;

const ENABLE_CPLBS: u32 = 1 << 1;

const VALID: u32 = 1 << 0;
const USER_READ: u32 = 1 << 2;
const USER_WRITE: u32 = 1 << 3;
const SUPERVISOR_WRITE: u32 = 1 << 4;
const DIRTY: u32 = 1 << 7;
const CACHEABLE: u32 = 1 << 12;
const WRITE_THROUGH: u32 = 1 << 14;

const PAGE_BYTES: [u32; 4] = [0x400, 0x1000, 0x10_0000, 0x40_0000];

/// The memory-mapped registers start here.
pub const REGISTERS: u32 = 0xFFC0_0000;
pub const CORE_REGISTERS: u32 = 0xFFE0_0000;

/// One of the two tables.
pub struct Table {
    pub control: u32,
    pub fault_status: u32,
    pub fault_addr: u32,
    pub addr: [u32; 16],
    pub data: [u32; 16],
}

impl Table {
    fn new() -> Table {
        Table { control: 1, fault_status: 0, fault_addr: 0, addr: [0; 16], data: [0; 16] }
    }

    pub fn enabled(&self) -> bool {
        self.control & ENABLE_CPLBS != 0
    }
}

pub struct Mmu {
    pub data: Table,
    pub code: Table,
    pub dtest_command: u32,
    pub dtest_data: [u32; 2],
    pub itest_command: u32,
    pub itest_data: [u32; 2],
}

/// Who wants what.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub addr: u32,
    /// The address must be a multiple of this.
    pub align: u32,
    pub kind: Kind,
    pub supervisor: bool,
    /// By the second address generator: the second slot of a bundle.
    pub second: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Fetch,
    Read,
    Write,
}

/// What to do with an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Fine,
    /// The bus will report a hardware error; the access itself goes on.
    BusError,
    Refused(Cause),
}

/// What holds without tables.
enum Implicit {
    Allowed,
    /// Up to the tables.
    Unknown,
    Misaligned,
    Protected,
    Miss,
    BusError,
}

impl Mmu {
    pub fn new() -> Mmu {
        Mmu {
            data: Table::new(),
            code: Table::new(),
            dtest_command: 0,
            dtest_data: [0; 2],
            itest_command: 0,
            itest_data: [0; 2],
        }
    }

    /// Judges an access without the tables.
    pub fn judge_without_tables(access: Access) -> Verdict {
        match implicit(access) {
            Implicit::Allowed | Implicit::Unknown => Verdict::Fine,
            Implicit::Misaligned => Verdict::Refused(misaligned(access.kind)),
            _ if access.addr >= REGISTERS => Verdict::Refused(Cause::SupervisorOnly),
            _ => Verdict::Refused(miss(access.kind)),
        }
    }

    /// May instructions be fetched from there, as far as no table says otherwise?
    pub fn allows_fetch(addr: u32) -> bool {
        let access = Access { addr, align: 2, kind: Kind::Fetch, supervisor: true, second: false };
        matches!(Mmu::judge_without_tables(access), Verdict::Fine)
    }

    /// Judges an access and logs a violation as the fault registers show it. `pc` is that of the instruction.
    pub fn judge(&mut self, access: Access, pc: u32) -> Verdict {
        let table = if access.kind == Kind::Fetch { &self.code } else { &self.data };
        let (mut hits, mut faults, mut forbidden) = (0u32, 0u32, false);
        if table.enabled() {
            for (entry, (&base, &data)) in table.addr.iter().zip(&table.data).enumerate() {
                let bytes = PAGE_BYTES[(data >> 16 & 3) as usize];
                if data & VALID == 0 || access.addr < base || access.addr - base >= bytes {
                    continue;
                }
                hits += 1;
                faults |= 1 << entry;
                forbidden |= forbids(data, access);
            }
        } else {
            hits = 1;
        }
        let cause = if forbidden {
            if hits > 1 { multiple(access.kind) } else { protection(access.kind) }
        } else if hits > 1 {
            multiple(access.kind)
        } else {
            match implicit(access) {
                Implicit::Allowed => return Verdict::Fine,
                Implicit::Unknown if hits == 1 => return Verdict::Fine,
                Implicit::BusError => return Verdict::BusError,
                Implicit::Unknown | Implicit::Miss => miss(access.kind),
                Implicit::Misaligned => misaligned(access.kind),
                Implicit::Protected => protection(access.kind),
            }
        };
        let missed = matches!(cause, Cause::DataMiss | Cause::FetchMiss);
        self.log(access, pc, missed, faults);
        Verdict::Refused(cause)
    }

    pub fn log(&mut self, access: Access, pc: u32, missed: bool, faults: u32) {
        let status = u32::from(missed) << 19
            | u32::from(access.second) << 18
            | u32::from(access.supervisor) << 17
            | u32::from(access.kind == Kind::Write) << 16
            | faults;
        if access.kind == Kind::Fetch {
            self.code.fault_addr = access.addr;
            self.code.fault_status = status;
        } else {
            self.log_instruction(pc, access.supervisor);
            self.data.fault_addr = access.addr;
            self.data.fault_status = status;
        }
    }

    /// Every exception leaves the address of its instruction here.
    pub fn log_instruction(&mut self, pc: u32, supervisor: bool) {
        self.code.fault_addr = pc;
        self.code.fault_status = u32::from(supervisor) << 17;
    }
}

fn forbids(data: u32, access: Access) -> bool {
    if access.kind == Kind::Write {
        let needed = if access.supervisor { SUPERVISOR_WRITE } else { USER_WRITE };
        // A write-back page that was never written: the program is told, to mark it dirty.
        let clean = data & (WRITE_THROUGH | CACHEABLE | DIRTY) == CACHEABLE;
        data & needed == 0 || clean
    } else {
        !access.supervisor && data & USER_READ == 0
    }
}

fn implicit(access: Access) -> Implicit {
    let addr = access.addr;
    if addr & (access.align - 1) != 0 {
        return Implicit::Misaligned;
    }
    let on_chip = addr >= 0xFF00_0000;
    let instruction_memory = addr & 0xFFF0_0000 == 0xFFA0_0000;
    match access.kind {
        Kind::Fetch if addr >= REGISTERS => Implicit::Miss,
        Kind::Fetch if on_chip && instruction_memory => Implicit::Allowed,
        Kind::Fetch if on_chip => Implicit::Protected,
        Kind::Fetch => Implicit::Unknown,
        _ if addr >= REGISTERS && (!access.supervisor || access.second) => Implicit::Protected,
        _ if addr >= REGISTERS => Implicit::Allowed,
        // Instruction memory is not on the data bus.
        _ if on_chip && instruction_memory => Implicit::BusError,
        _ if on_chip => Implicit::Allowed,
        _ => Implicit::Unknown,
    }
}

fn misaligned(kind: Kind) -> Cause {
    if kind == Kind::Fetch { Cause::FetchMisaligned } else { Cause::DataMisaligned }
}

fn protection(kind: Kind) -> Cause {
    if kind == Kind::Fetch { Cause::FetchProtection } else { Cause::DataProtection }
}

fn miss(kind: Kind) -> Cause {
    if kind == Kind::Fetch { Cause::FetchMiss } else { Cause::DataMiss }
}

fn multiple(kind: Kind) -> Cause {
    if kind == Kind::Fetch { Cause::FetchMultipleHits } else { Cause::DataMultipleHits }
}
