//! Constants that registers hold inside a block. Addresses are loaded in two halves; nothing is known across blocks.

use std::collections::HashMap;

use lancet_isa::blackfin::{Address, AllReg, BfInsn, ImmPart, Op, Preg};

/// The constants that a block loads in two halves: addresses, most of them.
pub fn loaded(insns: &[BfInsn]) -> Vec<u32> {
    let mut known = Known::default();
    let mut found = Vec::new();
    for insn in insns {
        known.step(insn);
        if let Op::LoadImm { dst, part: ImmPart::Lo | ImmPart::Hi, .. } = insn.op {
            found.extend(known.get(dst));
        }
    }
    found
}

/// Registers whose constants are known, by halves.
#[derive(Default)]
pub struct Known(HashMap<AllReg, [Option<u32>; 2]>);

impl Known {
    pub fn get(&self, reg: AllReg) -> Option<u32> {
        match self.0.get(&reg) {
            Some([Some(low), Some(high)]) => Some(high | low),
            _ => None,
        }
    }

    pub fn address(&self, address: Address) -> Option<u32> {
        let value = |base: Preg| self.get(base.into());
        match address {
            Address::At(base) | Address::PostIncrement(base) | Address::PostDecrement(base) => value(base),
            Address::Offset { base, offset, .. } => value(base).map(|base| base.wrapping_add_signed(offset)),
            _ => None,
        }
    }

    pub fn step(&mut self, insn: &BfInsn) {
        let Op::LoadImm { dst, part, value } = insn.op else {
            self.0.retain(|reg, _| !insn.writes(*reg));
            return;
        };
        let halves = self.0.entry(dst).or_default();
        match part {
            ImmPart::Lo => halves[0] = Some(value & 0xFFFF),
            ImmPart::Hi => halves[1] = Some(value << 16),
            ImmPart::SignExtended | ImmPart::ZeroExtended => {
                *halves = [Some(value & 0xFFFF), Some(value & 0xFFFF_0000)]
            }
        }
    }
}
