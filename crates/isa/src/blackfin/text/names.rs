//! Names of registers, and numbers the way objdump writes them.

use std::fmt;

use super::super::operands::{MacMode, Overflow, SearchMode, Shift, ShiftDir};
use super::super::regs::{Acc, AllReg, DPreg, Dhalf, Dreg, Half, Ireg, Loop, Mreg, Preg};

const ALL: [&str; 64] = [
    "R0", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "P0", "P1", "P2", "P3", "P4", "P5", "SP", "FP", "I0", "I1", "I2",
    "I3", "M0", "M1", "M2", "M3", "B0", "B1", "B2", "B3", "L0", "L1", "L2", "L3", "A0.X", "A0.W", "A1.X", "A1.W",
    ILLEGAL, ILLEGAL, "ASTAT", "RETS", ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, "LC0",
    "LT0", "LB0", "LC1", "LT1", "LB1", "CYCLES", "CYCLES2", "USP", "SEQSTAT", "SYSCFG", "RETI", "RETX", "RETN", "RETE",
    "EMUDAT",
];
const ILLEGAL: &str = "...... Illegal register .......";

/// Writes each register type by the name of the same register in [`ALL`].
macro_rules! named {
    ($($type:ident from $base:literal;)*) => {
        $(impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(ALL[$base + usize::from(self.code())])
            }
        })*
    };
}
named! {
    AllReg from 0;
    DPreg from 0;
    Dreg from 0;
    Preg from 8;
    Ireg from 16;
    Mreg from 20;
}

impl fmt::Display for Acc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "A{}", self.code())
    }
}

impl fmt::Display for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LC{}", self.code())
    }
}

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Half::Lo => "L",
            Half::Hi => "H",
        })
    }
}

impl fmt::Display for Dhalf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.reg, self.half)
    }
}

/// `R1:0`
pub(super) struct Pair(pub(super) Dreg);

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0.next(), self.0.code())
    }
}

/// `0x1f`, `-0x4`
pub(super) struct Hex(pub(super) i64);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{:#x}", self.0.unsigned_abs())
    }
}

/// The bits of ASTAT.
pub(super) fn status_bit(bit: u8) -> String {
    let name = match bit {
        0 => "AZ",
        1 => "AN",
        2 => "AC0_COPY",
        3 => "V_COPY",
        6 => "AQ",
        8 => "RND_MOD",
        12 => "AC0",
        13 => "AC1",
        16 => "AV0",
        17 => "AV0S",
        18 => "AV1",
        19 => "AV1S",
        24 => "V",
        25 => "VS",
        _ => return format!("ASTAT[{bit} /* unused bit */]"),
    };
    name.to_owned()
}

/// ` (S, ASR)`; nothing for no options.
pub(super) fn options(list: &[&str]) -> String {
    let given: Vec<&str> = list.iter().copied().filter(|option| !option.is_empty()).collect();
    if given.is_empty() { String::new() } else { format!(" ({})", given.join(", ")) }
}

/// `option` if `given`, else none.
pub(super) fn when(given: bool, option: &'static str) -> &'static str {
    if given { option } else { "" }
}

pub(super) fn overflow(overflow: Overflow) -> &'static str {
    match overflow {
        Overflow::Wrap => "NS",
        Overflow::Saturate => "S",
        Overflow::WrapUnmarked | Overflow::SaturateUnmarked => "",
    }
}

pub(super) fn saturate_cross(saturate: bool, cross: bool) -> &'static str {
    match (saturate, cross) {
        (false, false) => "",
        (true, false) => "S",
        (false, true) => "CO",
        (true, true) => "SCO",
    }
}

pub(super) fn mac_mode(mode: MacMode) -> &'static str {
    match mode {
        MacMode::Default => "",
        MacMode::S2rnd => "S2RND",
        MacMode::T => "T",
        MacMode::W32 => "W32",
        MacMode::Fu => "FU",
        MacMode::Tfu => "TFU",
        MacMode::Is => "IS",
        MacMode::Iss2 => "ISS2",
        MacMode::Ih => "IH",
        MacMode::Iu => "IU",
    }
}

pub(super) fn search(mode: SearchMode) -> &'static str {
    match mode {
        SearchMode::Greater => "GT",
        SearchMode::GreaterOrEqual => "GE",
        SearchMode::Less => "LT",
        SearchMode::LessOrEqual => "LE",
    }
}

pub(super) fn direction(dir: ShiftDir) -> &'static str {
    match dir {
        ShiftDir::Left => "ASL",
        ShiftDir::Right => "ASR",
    }
}

/// The keyword of a shift by a register, and its option.
pub(super) fn shift(op: Shift) -> (&'static str, &'static str) {
    match op {
        Shift::Arithmetic => ("ASHIFT", ""),
        Shift::Saturating => ("ASHIFT", "S"),
        Shift::Logical => ("LSHIFT", ""),
    }
}
