//! The memory-mapped registers.
//!
//! Those of the core (from 0xFFE0_0000) are modelled one by one; they want accesses of 32 bits. Of the system's (from
//! 0xFFC0_0000) only those of clock and voltage do something here. The others of the devices that a BF548 has keep
//! what is written, so that start-up code which sets up pins or a serial port works. Addresses of no register raise an
//! exception.

use crate::core::Core;
use crate::mmu::{CORE_REGISTERS, REGISTERS, Table};
use crate::timing::clock;
use std::collections::BTreeMap;

/// Where the devices of a BF548 have registers: first address, bytes. (ADSP-BF54x Hardware Reference, "System MMR
/// Assignments".)
const DEVICES: &[(u32, u32)] = &[
    (0xFFC0_0100, 0x70),  // system reset and interrupt controller
    (0xFFC0_0200, 0xC),   // watchdog
    (0xFFC0_0300, 0x18),  // real-time clock
    (0xFFC0_0400, 0x30),  // UART 0
    (0xFFC0_0500, 0x1C),  // SPI 0
    (0xFFC0_0600, 0x4C),  // timers 8 to 10
    (0xFFC0_0700, 0x90),  // TWI 0
    (0xFFC0_0800, 0x60),  // SPORT 0
    (0xFFC0_0900, 0x60),  // SPORT 1
    (0xFFC0_0A00, 0x1C),  // asynchronous memory
    (0xFFC0_0A20, 0x60),  // DDR memory
    (0xFFC0_0B00, 0x100), // DMA 0
    (0xFFC0_0C00, 0x400), // DMA 0 channels
    (0xFFC0_1000, 0x40),  // EPPI 0
    (0xFFC0_1300, 0x40),  // EPPI 1
    (0xFFC0_1400, 0xC0),  // pin interrupts
    (0xFFC0_14C0, 0x140), // ports A to J
    (0xFFC0_1600, 0x8C),  // timers 0 to 7
    (0xFFC0_1B00, 0x100), // DMA 1
    (0xFFC0_1C00, 0x400), // DMA 1 channels
    (0xFFC0_2000, 0x30),  // UART 1
    (0xFFC0_2100, 0x30),  // UART 2
    (0xFFC0_2200, 0x90),  // TWI 1
    (0xFFC0_2300, 0x1C),  // SPI 1
    (0xFFC0_2400, 0x1C),  // SPI 2
    (0xFFC0_2500, 0x60),  // SPORT 2
    (0xFFC0_2600, 0x60),  // SPORT 3
    (0xFFC0_2900, 0x40),  // EPPI 2
    (0xFFC0_3100, 0x30),  // UART 3
    (0xFFC0_3800, 0x70),  // ATAPI
    (0xFFC0_3900, 0x100), // SD host
    (0xFFC0_3B00, 0x50),  // NAND flash
    (0xFFC0_3C00, 0x500), // USB
    (0xFFC0_4300, 0x20),  // OTP
];

/// What the system's registers hold.
pub struct SystemRegisters {
    values: BTreeMap<u32, u32>,
}

impl SystemRegisters {
    pub fn new() -> SystemRegisters {
        SystemRegisters { values: BTreeMap::new() }
    }

    fn exists(addr: u32, width: u32) -> bool {
        (width == 2 || width == 4)
            && addr & (width - 1) == 0
            && DEVICES.iter().any(|&(base, len)| addr.wrapping_sub(base) < len)
    }

    fn read(&self, addr: u32, width: u32) -> Option<u32> {
        let value = self.values.get(&addr).copied().unwrap_or(0);
        Self::exists(addr, width).then_some(if width == 2 { value & 0xFFFF } else { value })
    }

    fn write(&mut self, addr: u32, width: u32, value: u32) -> Option<()> {
        Self::exists(addr, width).then(|| {
            self.values.insert(addr, value);
        })
    }
}

/// The registers of the core.
enum Register {
    SramBase,
    Control(Which),
    FaultStatus(Which),
    FaultAddr(Which),
    CplbAddr(Which, usize),
    CplbData(Which, usize),
    DtestCommand,
    DtestData(usize),
    ItestCommand,
    ItestData(usize),
    Vector(usize),
    VectorOverride,
    Imask,
    Ipend,
    Ilat,
    Iprio,
    Timer(u32),
    DspId,
    DebugStatus,
    BranchLogControl,
    BranchLogLength,
    BranchLog,
    CounterControl,
    Counter(usize),
    /// Kept, with no effect: watchpoints.
    Inert,
    WatchpointStatus,
}

#[derive(Clone, Copy)]
enum Which {
    Data,
    Code,
}

/// The offset of a register of clock and voltage.
fn clock_register(addr: u32, width: u32) -> Option<u32> {
    let offset = addr.wrapping_sub(REGISTERS);
    (offset <= clock::PLL_LOCKCNT && offset & 3 == 0 && (width == 2 || width == 4)).then_some(offset)
}

fn core_register(addr: u32) -> Option<Register> {
    use Register::*;
    let entry = (addr >> 2 & 15) as usize;
    Some(match addr & 0x1F_FFFF {
        0x0000 => SramBase,
        0x0004 => Control(Which::Data),
        0x0008 => FaultStatus(Which::Data),
        0x000C => FaultAddr(Which::Data),
        0x0100..=0x013C => CplbAddr(Which::Data, entry),
        0x0200..=0x023C => CplbData(Which::Data, entry),
        0x0300 => DtestCommand,
        0x0400 | 0x0404 => DtestData(entry & 1),
        0x1000 => Inert,
        0x1004 => Control(Which::Code),
        0x1008 => FaultStatus(Which::Code),
        0x100C => FaultAddr(Which::Code),
        0x1100..=0x113C => CplbAddr(Which::Code, entry),
        0x1200..=0x123C => CplbData(Which::Code, entry),
        0x1300 => ItestCommand,
        0x1400 | 0x1404 => ItestData(entry & 1),
        0x2000..=0x203C => Vector(entry),
        0x2100 => VectorOverride,
        0x2104 => Imask,
        0x2108 => Ipend,
        0x210C => Ilat,
        0x2110 => Iprio,
        0x3000..=0x300C => Timer(addr >> 2 & 3),
        0x5000 => DspId,
        0x5004 => Inert,
        0x5008 => DebugStatus,
        0x6000 => BranchLogControl,
        0x6004 => BranchLogLength,
        0x6100 => BranchLog,
        0x7000 | 0x7040..=0x7054 | 0x7080..=0x7094 => Inert,
        0x7100 | 0x7140 | 0x7144 | 0x7180 | 0x7184 => Inert,
        0x7200 => WatchpointStatus,
        0x8000 => CounterControl,
        0x8100 | 0x8104 => Counter(entry & 1),
        _ => return None,
    })
}

/// DSPID of an ADSP-BF548 core.
const DSP_ID: u32 = 0xE501_00FF;

impl Core {
    fn table(&mut self, which: Which) -> &mut Table {
        match which {
            Which::Data => &mut self.mmu.data,
            Which::Code => &mut self.mmu.code,
        }
    }

    /// Reads a register; `None` if there is none, or not of this width.
    pub fn read_register(&mut self, addr: u32, width: u32) -> Option<u32> {
        if let Some(register) = clock_register(addr, width) {
            return self.timing.clock.read(register);
        }
        if addr < CORE_REGISTERS {
            return self.system.read(addr, width);
        }
        if width != 4 {
            return None;
        }
        Some(match core_register(addr)? {
            Register::SramBase => 0xFF80_0000,
            Register::Control(which) => self.table(which).control,
            Register::FaultStatus(which) => self.table(which).fault_status,
            Register::FaultAddr(which) => self.table(which).fault_addr,
            Register::CplbAddr(which, entry) => self.table(which).addr[entry],
            Register::CplbData(which, entry) => self.table(which).data[entry],
            Register::DtestCommand => self.mmu.dtest_command,
            Register::DtestData(i) => self.mmu.dtest_data[i],
            Register::ItestCommand => self.mmu.itest_command,
            Register::ItestData(i) => self.mmu.itest_data[i],
            Register::Vector(ivg) => self.events.vectors[ivg],
            Register::VectorOverride => self.events.vector_override,
            Register::Imask => self.events.imask,
            Register::Ipend => self.events.ipend,
            Register::Ilat => self.events.ilat,
            Register::Iprio => self.events.iprio,
            Register::Timer(register) => self.timer.read(register, self.cycles),
            Register::DspId => DSP_ID,
            Register::DebugStatus => 0,
            Register::BranchLogControl => self.branch_log.control,
            Register::BranchLogLength => self.branch_log.len(),
            Register::BranchLog => self.branch_log.read(),
            Register::CounterControl => self.timing.pmu.control(),
            Register::Counter(which) => {
                self.count_events();
                let supervisor = self.is_supervisor();
                self.timing.pmu.counter(which, &self.timing.events, supervisor)
            }
            Register::Inert | Register::WatchpointStatus => self.system.values.get(&addr).copied().unwrap_or(0),
        })
    }

    /// Writes a register; `None` if there is none, or not of this width.
    pub fn write_register(&mut self, addr: u32, width: u32, value: u32) -> Option<()> {
        if let Some(register) = clock_register(addr, width) {
            self.timing.clock.write(register, value, self.cycles)?;
            self.timing.clock_changed();
            return Some(());
        }
        if addr < CORE_REGISTERS {
            return self.system.write(addr, width, value);
        }
        if width != 4 {
            return None;
        }
        match core_register(addr)? {
            Register::Control(which) => {
                self.table(which).control = value;
                self.mem.guard(self.mmu.data.enabled());
                match which {
                    Which::Data => self.timing.data_control(value),
                    Which::Code => self.timing.instruction_control(value),
                }
            }
            Register::CplbAddr(which, entry) => self.table(which).addr[entry] = value,
            Register::CplbData(which, entry) => self.table(which).data[entry] = value,
            Register::DtestCommand => self.test_data(value),
            Register::DtestData(i) => self.mmu.dtest_data[i] = value,
            Register::ItestCommand => self.mmu.itest_command = value,
            Register::ItestData(i) => self.mmu.itest_data[i] = value,
            Register::Vector(ivg) => self.events.vectors[ivg] = value,
            Register::VectorOverride => self.events.vector_override = value,
            Register::Imask => self.events.write_imask(value),
            // Writing ones clears.
            Register::Ilat => self.events.ilat &= !(value & 0xFFEE),
            Register::Iprio => self.events.iprio = value & 0x1F,
            Register::Timer(register) => self.timer.write(register, value, self.cycles),
            Register::BranchLogControl => self.branch_log.control = value,
            Register::CounterControl => {
                self.count_events();
                let supervisor = self.is_supervisor();
                self.timing.pmu.set_control(value, &self.timing.events, supervisor);
            }
            Register::Counter(which) => {
                self.count_events();
                let supervisor = self.is_supervisor();
                self.timing.pmu.set_counter(which, value, &self.timing.events, supervisor);
            }
            Register::Inert => {
                self.system.values.insert(addr, value);
            }
            // Any write clears all of it.
            Register::WatchpointStatus => {
                self.system.values.insert(addr, 0);
            }
            // Read-only ones.
            Register::SramBase
            | Register::FaultStatus(_)
            | Register::FaultAddr(_)
            | Register::Ipend
            | Register::DspId
            | Register::DebugStatus
            | Register::BranchLogLength
            | Register::BranchLog => {}
        }
        Some(())
    }

    /// DTEST_COMMAND: reads or writes 8 bytes of L1 by their place in the array.
    fn test_data(&mut self, command: u32) {
        const WRITE: u32 = 1 << 1;
        const DATA_ARRAY: u32 = 1 << 2;
        self.mmu.dtest_command = command;
        if command & DATA_ARRAY == 0 {
            return;
        }
        let addr = 0xFF80_0000
            | command >> 15 & 1 << 11 // way
            | command >> 3 & 1 << 21 // data or instructions
            | command >> 8 & 1 << 15 // bank
            | command >> 4 & 3 << 12 // sub-bank
            | command & 0x47F8;
        if command & WRITE != 0 {
            let bytes = self.mmu.dtest_data.map(u32::to_le_bytes).concat();
            self.code_changed |= self.mem.write(addr, &bytes) == Some(true);
        } else if let Some(bytes) = self.mem.bytes(addr, 8) {
            let word =
                |at: usize| bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b));
            self.mmu.dtest_data = [word(0), word(4)];
        }
    }
}
