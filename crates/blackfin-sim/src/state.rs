//! The registers of the core.
//!
//! Data, pointer and address-generator registers stand in one array in the order of their encoding, so a move among
//! them is one load and one store. The accumulators hold 40 bits, sign-extended to 64. SP is the pointer of the
//! current mode; the other mode's is in `usp` or `ksp`, and the event controller swaps them.

use crate::astat::{self, when};
use lancet_isa::blackfin::{Acc, DPreg, Dhalf, Dreg, Half, Ireg, Mreg, Preg};

/// The 40 bits of an accumulator.
pub const ACC_MASK: u64 = 0xFF_FFFF_FFFF;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// R0-R7, P0-P5, SP, FP, I0-I3, M0-M3, B0-B3, L0-L3.
    pub r: [u32; 32],
    pub acc: [i64; 2],
    /// Everything of ASTAT but CC.
    pub flags: u32,
    pub cc: bool,
    pub lc: [u32; 2],
    pub lt: [u32; 2],
    pub lb: [u32; 2],
    pub rets: u32,
    pub reti: u32,
    pub retx: u32,
    pub retn: u32,
    pub rete: u32,
    pub usp: u32,
    pub ksp: u32,
    pub seqstat: u32,
    pub syscfg: u32,
    pub emudat_in: u32,
    pub emudat_out: u32,
    pub pc: u32,
}

impl State {
    /// After reset, with the stack at `stack`.
    pub fn new(stack: u32) -> State {
        let mut r = [0; 32];
        r[8 + Preg::Sp as usize] = stack;
        State {
            r,
            acc: [0; 2],
            flags: 0,
            cc: false,
            lc: [0; 2],
            lt: [0; 2],
            lb: [0; 2],
            rets: 0,
            reti: 0,
            retx: 0,
            retn: 0,
            rete: 0,
            usp: stack,
            ksp: stack,
            seqstat: 0,
            // What the hardware resets it to (bits 4 and 5 are reserved and read as 1).
            syscfg: 0x30,
            emudat_in: 0,
            emudat_out: 0,
            pc: 0,
        }
    }

    #[inline(always)]
    pub fn d(&self, reg: Dreg) -> u32 {
        self.r[reg as usize]
    }

    #[inline(always)]
    pub fn set_d(&mut self, reg: Dreg, value: u32) {
        self.r[reg as usize] = value;
    }

    #[inline(always)]
    pub fn p(&self, reg: Preg) -> u32 {
        self.r[8 + reg as usize]
    }

    #[inline(always)]
    pub fn set_p(&mut self, reg: Preg, value: u32) {
        self.r[8 + reg as usize] = value;
    }

    #[inline(always)]
    pub fn dp(&self, reg: DPreg) -> u32 {
        self.r[reg as usize]
    }

    #[inline(always)]
    pub fn set_dp(&mut self, reg: DPreg, value: u32) {
        self.r[reg as usize] = value;
    }

    #[inline(always)]
    pub fn i(&self, reg: Ireg) -> u32 {
        self.r[16 + reg as usize]
    }

    #[inline(always)]
    pub fn set_i(&mut self, reg: Ireg, value: u32) {
        self.r[16 + reg as usize] = value;
    }

    #[inline(always)]
    pub fn m(&self, reg: Mreg) -> u32 {
        self.r[20 + reg as usize]
    }

    /// The base of the circular buffer that goes with an index register.
    #[inline(always)]
    pub fn base(&self, reg: Ireg) -> u32 {
        self.r[24 + reg as usize]
    }

    /// The length of the circular buffer that goes with an index register.
    #[inline(always)]
    pub fn length(&self, reg: Ireg) -> u32 {
        self.r[28 + reg as usize]
    }

    #[inline(always)]
    pub fn half(&self, half: Dhalf) -> u16 {
        half_of(self.d(half.reg), half.half)
    }

    #[inline(always)]
    pub fn set_half(&mut self, half: Dhalf, value: u16) {
        self.set_d(half.reg, with_half(self.d(half.reg), half.half, value));
    }

    /// An accumulator, sign-extended.
    #[inline(always)]
    pub fn a(&self, acc: Acc) -> i64 {
        self.acc[acc as usize]
    }

    /// The 40 bits of an accumulator, zero-extended.
    #[inline(always)]
    pub fn a_unsigned(&self, acc: Acc) -> u64 {
        self.acc[acc as usize] as u64 & ACC_MASK
    }

    /// Keeps the low 40 bits.
    #[inline(always)]
    pub fn set_a(&mut self, acc: Acc, value: i64) {
        self.acc[acc as usize] = extend40(value);
    }

    /// Replaces the flags of `mask` by `bits`, which may hold sticky flags outside of the mask: they are added.
    #[inline(always)]
    pub fn set_flags(&mut self, mask: u32, bits: u32) {
        self.flags = self.flags & !mask | bits;
    }

    #[inline(always)]
    pub fn astat(&self) -> u32 {
        self.flags | when(self.cc, astat::CC)
    }

    pub fn set_astat(&mut self, value: u32) {
        self.flags = value & !astat::CC;
        self.cc = value & astat::CC != 0;
    }

    /// Where the instruction behind the one at `pc` is: the top of a hardware loop if `pc` is its bottom.
    #[inline]
    pub fn next_pc(&self, pc: u32, len: u32) -> u32 {
        // The inner loop is loop 1 by convention, and the hardware looks at it first.
        for which in [1, 0] {
            if self.lc[which] > 1 && self.lb[which] == pc {
                return self.lt[which];
            }
        }
        pc.wrapping_add(len)
    }

    /// Counts a finished instruction at the bottom of a hardware loop.
    #[inline]
    pub fn count_loops(&mut self, pc: u32) {
        for which in [1, 0] {
            if self.lc[which] != 0 && self.lb[which] == pc {
                self.lc[which] -= 1;
                if self.lc[which] != 0 {
                    break;
                }
            }
        }
    }
}

#[inline(always)]
pub fn half_of(value: u32, half: Half) -> u16 {
    match half {
        Half::Lo => value as u16,
        Half::Hi => (value >> 16) as u16,
    }
}

#[inline(always)]
pub fn with_half(value: u32, half: Half, new: u16) -> u32 {
    match half {
        Half::Lo => value & 0xFFFF_0000 | u32::from(new),
        Half::Hi => value & 0xFFFF | u32::from(new) << 16,
    }
}

#[inline(always)]
pub fn pack(high: u16, low: u16) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}

#[inline(always)]
pub fn extend40(value: i64) -> i64 {
    value << 24 >> 24
}
