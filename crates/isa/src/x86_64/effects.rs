//! Which registers and flags an instruction reads and writes.

use iced_x86::{
    Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess, OpKind, Register, RflagsBits,
};

use super::common::{Common, Form};
use super::facts::{AF, CF, DF, FACTS, K0, OF, PF, SF, X87, ZF, ZMM0};
use crate::regs::{Effects, Reg, RegSet};

/// Computes effects; keeps iced's factory, which is worth reusing.
pub(super) struct EffectsOf {
    pub(super) common: Common,
    factory: Option<InstructionInfoFactory>,
}

impl Default for EffectsOf {
    fn default() -> EffectsOf {
        EffectsOf { common: Common::get(), factory: None }
    }
}

impl EffectsOf {
    /// The effects on registers, and whether memory may be written.
    pub(super) fn of(&mut self, insn: &Instruction) -> (Effects, bool) {
        let form = self.common.form(insn);
        self.of_form(insn, form)
    }

    /// The same, if the form is known.
    #[inline]
    pub(super) fn of_form(&mut self, insn: &Instruction, form: Form) -> (Effects, bool) {
        let (mut e, stores) = match self.common.on_registers(insn, form) {
            Some(known) => known,
            None => self.on_registers(insn),
        };
        let (read, changed) = form.flags.unwrap_or_else(|| flags_of(insn));
        e.reads |= read;
        e.writes |= changed;
        if !changed.is_empty() && !flags_may_stay(insn) {
            e.kills |= changed;
        }
        (e, stores)
    }

    /// What iced knows, the flags aside.
    fn on_registers(&mut self, insn: &Instruction) -> (Effects, bool) {
        let mut e = Effects::default();
        let factory = self.factory.get_or_insert_with(InstructionInfoFactory::new);
        let info = factory.info_options(insn, InstructionInfoOptions::NO_MEMORY_USAGE);
        let writes = |access| {
            use OpAccess::*;
            matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
        };
        let stores = insn.is_stack_instruction()
            || insn.is_string_instruction()
            || insn.op0_kind() == OpKind::Memory && writes(info.op0_access());
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

/// The flags that it reads, and those that it may change.
pub(super) fn flags_of(insn: &Instruction) -> (RegSet, RegSet) {
    (flags(insn.rflags_read()), flags(insn.rflags_modified()))
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
    const KNOWN: usize = 1 << 7;
    static SETS: [RegSet; KNOWN] = {
        let mut sets = [RegSet::EMPTY; KNOWN];
        let mut bits = 0;
        while bits < KNOWN {
            sets[bits] = numbered(bits as u32);
            bits += 1;
        }
        sets
    };
    SETS[bits as usize % KNOWN]
}

const fn numbered(bits: u32) -> RegSet {
    const MAP: [(u32, u8); 7] = [
        (RflagsBits::OF, OF),
        (RflagsBits::SF, SF),
        (RflagsBits::ZF, ZF),
        (RflagsBits::AF, AF),
        (RflagsBits::CF, CF),
        (RflagsBits::PF, PF),
        (RflagsBits::DF, DF),
    ];
    let mut set = RegSet::EMPTY;
    let mut i = 0;
    while i < MAP.len() {
        // The table of sets has a place for each combination of these, and for no others.
        assert!(MAP[i].0 == 1 << i);
        if bits & MAP[i].0 != 0 {
            set = set.union(RegSet::of(Reg(MAP[i].1)));
        }
        i += 1;
    }
    set
}

/// The register's number as a set, and whether writing it overwrites all of the numbered register.
pub(super) fn number(register: Register) -> (RegSet, bool) {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    /// Compares the shortcut with iced's factory on this test's own code and on as many instructions of random bytes,
    /// whose operands are of every kind.
    #[test]
    fn the_shortcut_agrees_with_iced() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        let noise = std::iter::repeat_with(|| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random.to_le_bytes()
        });
        let noise: Vec<u8> = noise.take(1 << 18).flatten().collect();
        let shortcut = Common::get();
        let mut slow = EffectsOf::default();
        let mut common: BTreeMap<Mnemonic, u32> = BTreeMap::new();
        for code in [&program[..program.len().min(1 << 22)], &noise] {
            for insn in &mut Decoder::new(64, code, DecoderOptions::NONE) {
                let form = shortcut.form(&insn);
                assert_eq!(form.flow, insn.flow_control(), "{insn}");
                if let Some(flags) = form.flags {
                    assert_eq!(flags, flags_of(&insn), "{insn}");
                }
                if let Some(found) = shortcut.on_registers(&insn, form).filter(|_| !insn.is_invalid()) {
                    assert_eq!(found, slow.on_registers(&insn), "{insn}");
                    *common.entry(insn.mnemonic()).or_default() += 1;
                }
            }
        }
        for mnemonic in [Mnemonic::Mov, Mnemonic::Lea, Mnemonic::Push, Mnemonic::Xor, Mnemonic::Movups] {
            assert!(
                common.get(&mnemonic).is_some_and(|count| *count > 100),
                "{mnemonic:?} was hardly tried: {common:?}"
            );
        }
    }
}
