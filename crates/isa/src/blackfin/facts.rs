//! Numbering of registers, and the calling convention of `bfin-elf-gcc`.
//!
//! | number | what |
//! | --- | --- |
//! | 0-15 | R0-R7 P0-P5 SP FP |
//! | 16-31 | I0-I3 M0-M3 B0-B3 L0-L3 |
//! | 32, 33 | A0 A1 (all 40 bits) |
//! | 34 | CC |
//! | 35-46 | the other flags of ASTAT: AZ AN AQ RND_MOD AC0 AC1 AV0 AV0S AV1 AV1S V VS |
//! | 47 | RETS |
//! | 48-53 | LC0 LT0 LB0 LC1 LT1 LB1 |
//! | 54-63 | CYCLES CYCLES2 USP SEQSTAT SYSCFG RETI RETX RETN RETE EMUDAT |
//!
//! From 48 on, and up to 31, the number is the one in the instruction word. AC0 and V stand for their copies as well,
//! RND_MOD for the bits of ASTAT that have no name.
//!
//! The hardware reads and writes LC at the bottom of a loop, and reads LT and LB after every instruction: no
//! instruction shows that, so these registers are never free.

use super::regs::{Acc, AllReg, DPreg, Dhalf, Dreg, Ireg, Loop, Mreg, Preg};
use crate::facts::{Abi, Endian, Facts};
use crate::regs::{Reg, RegSet};

const P0: u8 = 8;
const P2: u8 = 10;
const P3: u8 = 11;
pub(super) const SP: u8 = 14;
pub(super) const FP: u8 = 15;
const I0: u8 = 16;
const M0: u8 = 20;
const B0: u8 = 24;
const L0: u8 = 28;
const A0: u8 = 32;
pub(super) const RETS: u8 = 47;

pub(super) const CC: RegSet = one(34);
pub(super) const AZ: RegSet = one(35);
pub(super) const AN: RegSet = one(36);
pub(super) const AQ: RegSet = one(37);
pub(super) const RND_MOD: RegSet = one(38);
pub(super) const AC0: RegSet = one(39);
pub(super) const AC1: RegSet = one(40);
pub(super) const AV0: RegSet = one(41);
pub(super) const AV0S: RegSet = one(42);
pub(super) const AV1: RegSet = one(43);
pub(super) const AV1S: RegSet = one(44);
pub(super) const V: RegSet = one(45);
pub(super) const VS: RegSet = one(46);
/// ASTAT.
pub(super) const FLAGS: RegSet = range(34, 13);
/// R0 to R7, P0 to P5, SP, FP.
pub(super) const GENERAL: RegSet = range(0, 16);

const fn one(number: u8) -> RegSet {
    RegSet(1 << number)
}

const fn range(from: u8, count: u8) -> RegSet {
    RegSet(((1u64 << count) - 1) << from)
}

/// A register as the set of itself.
pub(super) trait Numbered: Copy {
    fn set(self) -> RegSet;
}

/// Register types whose numbers follow each other from a base.
macro_rules! numbered {
    ($($type:ident from $base:expr;)*) => {
        $(impl Numbered for $type {
            fn set(self) -> RegSet {
                one($base + self.code() as u8)
            }
        })*
    };
}
numbered! {
    Dreg from 0;
    DPreg from 0;
    Preg from P0;
    Ireg from I0;
    Mreg from M0;
    Acc from A0;
}

impl Numbered for Dhalf {
    fn set(self) -> RegSet {
        self.reg.set()
    }
}

impl Numbered for AllReg {
    fn set(self) -> RegSet {
        match self {
            AllReg::A0X | AllReg::A0W => Acc::A0.set(),
            AllReg::A1X | AllReg::A1W => Acc::A1.set(),
            AllReg::Astat => FLAGS,
            reg => number(reg).map_or(RegSet::EMPTY, RegSet::of),
        }
    }
}

/// The number of a register that is more than a part and less than a set.
pub(super) fn number(reg: AllReg) -> Option<Reg> {
    match reg {
        AllReg::Rets => Some(Reg(RETS)),
        _ if matches!(reg.code(), 0..=31 | 48..=63) => Some(Reg(reg.code() as u8)),
        _ => None,
    }
}

/// The base and length registers that make the buffer of an index register circular.
pub(super) fn buffer(index: Ireg) -> RegSet {
    one(B0 + index.code() as u8).union(one(L0 + index.code() as u8))
}

pub(super) fn loop_counter(which: Loop) -> RegSet {
    one(48 + 3 * which.code() as u8)
}

/// LT and LB.
pub(super) fn loop_bounds(which: Loop) -> RegSet {
    range(49 + 3 * which.code() as u8, 2)
}

/// The flag at a bit of ASTAT.
pub(super) fn status_bit(bit: u8) -> RegSet {
    match bit {
        0 => AZ,
        1 => AN,
        2 | 12 => AC0,
        3 | 24 => V,
        5 => CC,
        6 => AQ,
        13 => AC1,
        16 => AV0,
        17 => AV0S,
        18 => AV1,
        19 => AV1S,
        25 => VS,
        _ => RND_MOD,
    }
}

pub(super) static FACTS: Facts = Facts {
    name: "blackfin",
    endian: Endian::Little,
    pointer_bytes: 4,
    insn_align: 2,
    longest_insn: 8,
    delay_slots: false,
    hardware_loops: true,
    harvard: true,
    edited_in_place: true,
    stack_pointer: Reg(SP),
    reg_names: &[
        "R0", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "P0", "P1", "P2", "P3", "P4", "P5", "SP", "FP", "I0", "I1",
        "I2", "I3", "M0", "M1", "M2", "M3", "B0", "B1", "B2", "B3", "L0", "L1", "L2", "L3", "A0", "A1", "CC", "AZ",
        "AN", "AQ", "RND_MOD", "AC0", "AC1", "AV0", "AV0S", "AV1", "AV1S", "V", "VS", "RETS", "LC0", "LT0", "LB0",
        "LC1", "LT1", "LB1", "CYCLES", "CYCLES2", "USP", "SEQSTAT", "SYSCFG", "RETI", "RETX", "RETN", "RETE", "EMUDAT",
    ],
    general: GENERAL,
    flags: FLAGS,
    abi: Abi {
        // P0 points to the place of a structure result, P2 is the static chain, P3 the table of a shared object. The
        // length registers are 0 between functions, and everybody relies on it.
        arguments: range(0, 3)
            .union(one(P0))
            .union(one(P2))
            .union(one(P3))
            .union(range(SP, 2))
            .union(range(L0, 4))
            .union(RND_MOD)
            .union(one(RETS)),
        first_argument: Some(Reg(0)),
        results: range(0, 2).union(one(P0)).union(one(SP)).union(range(L0, 4)).union(RND_MOD),
        preserved: range(4, 4).union(range(P3, 3)).union(range(SP, 2)).union(range(L0, 4)).union(RND_MOD),
    },
};
