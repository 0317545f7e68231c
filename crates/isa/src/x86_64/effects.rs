//! Which registers and flags an instruction reads and writes.

use iced_x86::{
    Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess, OpKind, Register, RflagsBits,
};

use super::facts::{AF, CF, DF, FACTS, K0, OF, PF, SF, X87, ZF, ZMM0};
use crate::regs::{Effects, Reg, RegSet};

/// Computes effects; keeps iced's factory, which is worth reusing.
pub(super) struct EffectsOf {
    factory: InstructionInfoFactory,
}

impl EffectsOf {
    pub(super) fn new() -> EffectsOf {
        EffectsOf { factory: InstructionInfoFactory::new() }
    }

    /// The effects on registers, and whether memory may be written.
    pub(super) fn of(&mut self, insn: &Instruction) -> (Effects, bool) {
        let mut e = Effects::default();
        let info = self.factory.info_options(insn, InstructionInfoOptions::NO_MEMORY_USAGE);
        let reads_only = |access| matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess);
        let stores = insn.is_stack_instruction()
            || insn.is_string_instruction()
            || insn.op0_kind() == OpKind::Memory && !reads_only(info.op0_access());
        for used in info.used_registers() {
            let (set, whole) = number(used.register());
            match used.access() {
                OpAccess::Read | OpAccess::CondRead => e.reads |= set,
                OpAccess::Write => {
                    e.writes |= set;
                    if whole {
                        e.kills |= set;
                    }
                }
                OpAccess::CondWrite => e.writes |= set,
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
                    e.reads |= set;
                    e.writes |= set;
                }
                OpAccess::None | OpAccess::NoMemAccess => {}
            }
        }
        let changed = flags(insn.rflags_modified());
        e.reads |= flags(insn.rflags_read());
        e.writes |= changed;
        if !flags_may_stay(insn) {
            e.kills |= changed;
        }
        if insn.is_save_restore_instruction() {
            e.reads = RegSet::ALL;
        }
        match insn.mnemonic() {
            // The kernel reads what it likes of these.
            Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int | Mnemonic::Int3 | Mnemonic::Int1 => {
                e.reads |= FACTS.general;
            }
            _ => {}
        }
        (e, stores)
    }
}

/// A count of zero leaves the flags as they were.
fn flags_may_stay(insn: &Instruction) -> bool {
    match insn.mnemonic() {
        Mnemonic::Shl
        | Mnemonic::Shr
        | Mnemonic::Sar
        | Mnemonic::Sal
        | Mnemonic::Rol
        | Mnemonic::Ror
        | Mnemonic::Rcl
        | Mnemonic::Rcr
        | Mnemonic::Shld
        | Mnemonic::Shrd => match insn.op_kind(insn.op_count() - 1) {
            OpKind::Immediate8 => {
                let mask = if insn.op0_kind() == OpKind::Register && insn.op0_register().size() == 8
                    || insn.op0_kind() == OpKind::Memory && insn.memory_size().size() == 8
                {
                    63
                } else {
                    31
                };
                insn.immediate8() & mask == 0
            }
            _ => true,
        },
        _ => insn.has_rep_prefix() || insn.has_repne_prefix(),
    }
}

fn flags(bits: u32) -> RegSet {
    const MAP: [(u32, u8); 7] = [
        (RflagsBits::CF, CF),
        (RflagsBits::PF, PF),
        (RflagsBits::AF, AF),
        (RflagsBits::ZF, ZF),
        (RflagsBits::SF, SF),
        (RflagsBits::OF, OF),
        (RflagsBits::DF, DF),
    ];
    let mut set = RegSet::EMPTY;
    for (bit, number) in MAP {
        if bits & bit != 0 {
            set |= RegSet::of(Reg(number));
        }
    }
    set
}

/// The register's number as a set, and whether writing it overwrites all of the numbered register.
fn number(register: Register) -> (RegSet, bool) {
    if register.is_gpr() {
        let whole = register.is_gpr64() || register.is_gpr32();
        return (RegSet::of(Reg(register.full_register().number() as u8)), whole);
    }
    if register.is_vector_register() {
        // Legacy SSE leaves the upper part; VEX clears it. Only a write that iced names as the widest kills.
        return (RegSet::of(Reg(ZMM0 + register.number() as u8)), register.is_zmm());
    }
    if register.is_k() {
        return (RegSet::of(Reg(K0 + register.number() as u8)), true);
    }
    if register.is_st() || register.is_mm() {
        return (RegSet::of(Reg(X87)), false);
    }
    (RegSet::EMPTY, false)
}
