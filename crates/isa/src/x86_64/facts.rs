//! Numbering of registers, and the System V calling convention.
//!
//! | number | what |
//! | --- | --- |
//! | 0-15 | rax rcx rdx rbx rsp rbp rsi rdi r8-r15 (the encoding's order) |
//! | 16-22 | CF PF AF ZF SF OF DF |
//! | 23-54 | zmm0-zmm31 (and the xmm, ymm inside them) |
//! | 55-62 | k0-k7 |
//! | 63 | x87 and MMX state, as one |

use crate::facts::{Abi, Endian, Facts};
use crate::regs::{Reg, RegSet};

pub(super) const CF: u8 = 16;
pub(super) const PF: u8 = 17;
pub(super) const AF: u8 = 18;
pub(super) const ZF: u8 = 19;
pub(super) const SF: u8 = 20;
pub(super) const OF: u8 = 21;
pub(super) const DF: u8 = 22;
pub(super) const ZMM0: u8 = 23;
pub(super) const K0: u8 = 55;
pub(super) const X87: u8 = 63;

const RAX: u8 = 0;
const RCX: u8 = 1;
const RDX: u8 = 2;
const RBX: u8 = 3;
const RSP: u8 = 4;
const RBP: u8 = 5;
const RSI: u8 = 6;
const RDI: u8 = 7;
const R8: u8 = 8;
const R9: u8 = 9;
const R10: u8 = 10;

const fn set(numbers: &[u8]) -> RegSet {
    let mut bits = 0;
    let mut i = 0;
    while i < numbers.len() {
        bits |= 1 << numbers[i];
        i += 1;
    }
    RegSet(bits)
}

const fn range(from: u8, count: u8) -> RegSet {
    RegSet(((1u64 << count) - 1) << from)
}

pub(super) static FACTS: Facts = Facts {
    name: "x86-64",
    endian: Endian::Little,
    pointer_bytes: 8,
    insn_align: 1,
    longest_insn: 15,
    delay_slots: false,
    hardware_loops: false,
    harvard: false,
    edited_in_place: false,
    stack_pointer: Reg(RSP),
    reg_names: &[
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
        "cf", "pf", "af", "zf", "sf", "of", "df", "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7",
        "zmm8", "zmm9", "zmm10", "zmm11", "zmm12", "zmm13", "zmm14", "zmm15", "zmm16", "zmm17", "zmm18", "zmm19",
        "zmm20", "zmm21", "zmm22", "zmm23", "zmm24", "zmm25", "zmm26", "zmm27", "zmm28", "zmm29", "zmm30", "zmm31",
        "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "x87",
    ],
    general: range(0, 16),
    flags: range(CF, 7),
    abi: Abi {
        // r10 carries the static chain, rax the number of vector arguments of a variadic call.
        arguments: set(&[RDI, RSI, RDX, RCX, R8, R9, RAX, R10, RSP, DF]).union(range(ZMM0, 8)),
        first_argument: Some(Reg(RDI)),
        // rbx, rbp, r12-r15 hold the caller's values; x87 st(0), st(1) and complex results in xmm1 count too.
        results: set(&[RAX, RDX, RSP, X87, DF]).union(range(ZMM0, 2)),
        preserved: set(&[RBX, RSP, RBP, DF]).union(range(12, 4)),
    },
};
