//! Which words the processor executes.
//!
//! The decoder reads what the GNU disassembler prints. The processor is stricter: fields that an operation does not use
//! must be zero, pairs of registers start at R0 or R2, two results need two registers, and a bundle holds only loads,
//! stores and moves of index registers. What it refuses raises one of two exceptions.
//!
//! A few words that the disassembler does not print are executed all the same; [`read`] knows them.

use crate::exception::Cause;
use lancet_isa::DecodeError;
use lancet_isa::blackfin::{self, BfInsn, DPreg, Op};

/// Decodes what the processor would execute at `at`, or says which exception it would raise. `None` if the bytes end
/// inside the instruction.
pub fn read(code: &[u8], at: u32) -> Option<Result<BfInsn, Cause>> {
    let head = half(code, 0)?;
    if head & 0xC000 != 0xC000 || head & 0xFE00 == 0xF800 {
        return Some(read_short(code, at, head));
    }
    let word = u32::from(head) << 16 | u32::from(half(code, 2)?);
    if !starts_bundle(head) {
        return Some(read_long(code, at, word));
    }
    let slots = [half(code, 4)?, half(code, 6)?];
    Some(read_bundle(at, word, slots))
}

fn half(code: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*code.get(offset..)?.first_chunk()?))
}

fn starts_bundle(head: u16) -> bool {
    head & 0x0800 != 0 && head & 0xE800 != 0xE800
}

fn read_short(code: &[u8], at: u32, word: u16) -> Result<BfInsn, Cause> {
    match blackfin::decode(code, at) {
        Ok(insn) => Ok(insn),
        // A pointer cannot be loaded and moved on at once.
        Err(_) if loads_own_pointer(word) => Err(Cause::IllegalCombination),
        // Not printed, but executed: a push of SP.
        Err(_) if word == 0x014E => Ok(BfInsn { at, len: 2, op: Op::Push(DPreg::Sp.into()), slots: None }),
        Err(_) => Err(Cause::Undefined),
    }
}

fn loads_own_pointer(word: u16) -> bool {
    // LDST, 32 bits into a pointer register, with a post-modification, of the same register.
    word & 0xFE40 == 0x9040 && word & 0x0180 < 0x0100 && word >> 3 & 7 == word & 7
}

fn read_long(code: &[u8], at: u32, word: u32) -> Result<BfInsn, Cause> {
    if let Some(op) = unprinted(word) {
        return Ok(BfInsn { at, len: 4, op, slots: None });
    }
    let insn = match printed(word) {
        same if same == word => blackfin::decode(code, at).map_err(|_| Cause::Undefined)?,
        other => BfInsn { at, len: 4, op: alone_op(other, at)?, slots: None },
    };
    check(word, &insn.op)?;
    Ok(insn)
}

/// The operation of a 32-bit word.
fn alone_op(word: u32, at: u32) -> Result<Op, Cause> {
    let word = printed(word).to_be_bytes();
    let bytes = [word[1], word[0], word[3], word[2]];
    blackfin::decode(&bytes, at).map(|insn| insn.op).map_err(|_| Cause::Undefined)
}

fn read_bundle(at: u32, word: u32, slots: [u16; 2]) -> Result<BfInsn, Cause> {
    let first = match unprinted(word) {
        Some(op) => op,
        None => {
            // The 32-bit part alone: without the bit that announces two more, where it still says the same.
            let alone = word & !0x0800_0000;
            let op = alone_op(alone, at)?;
            check(alone, &op)?;
            op
        }
    };
    let first_slot = slot(slots[0], at.wrapping_add(4), false)?;
    let second_slot = slot(slots[1], at.wrapping_add(6), true)?;
    // Beside a search, something must be loaded.
    if matches!(first, Op::Search { .. }) && !matches!(first_slot, Op::Load { .. }) {
        return Err(Cause::IllegalCombination);
    }
    Ok(BfInsn { at, len: 8, op: first, slots: Some([first_slot, second_slot]) })
}

/// A 16-bit part of a bundle. The second may only go through an index register.
fn slot(word: u16, at: u32, second: bool) -> Result<Op, Cause> {
    use blackfin::Address;
    let insn = match blackfin::decode(&word.to_le_bytes(), at) {
        Ok(insn) => insn,
        Err(DecodeError::Invalid { .. } | DecodeError::Truncated { .. }) => return Err(Cause::IllegalCombination),
    };
    let through_index = |addr: &Address| {
        matches!(
            addr,
            Address::DagAt(_)
                | Address::DagPostIncrement(_)
                | Address::DagPostDecrement(_)
                | Address::DagPostAdd { .. }
        )
    };
    let allowed = match insn.op {
        Op::Nop => true,
        Op::Load { addr, .. } | Op::Store { addr, .. } => !second || through_index(&addr),
        Op::DagAdd { .. } | Op::DagSub { .. } | Op::DagAddImm { .. } => !second,
        _ => false,
    };
    if allowed { Ok(insn.op) } else { Err(Cause::IllegalCombination) }
}

/// 32-bit words that are executed although the disassembler does not print them: no operation of either multiplier.
fn unprinted(word: u32) -> Option<Op> {
    (word & 0xF61F_FE00 == 0xC003_1800 && KEPT_MODES >> (word >> 21 & 15) & 1 != 0).then_some(Op::Mnop)
}

/// The word that the disassembler prints, for some that say the same and are executed, too.
fn printed(word: u32) -> u32 {
    // Mixed mode, where unit 1 only reads its accumulator into a register.
    if word & 0xF617_0000 == 0xC017_0000 {
        return word & !0x0010_0000;
    }
    // A whole product of unsigned integers is one of unsigned fractions.
    if word & 0xF7E8_0000 == 0xC388_0000 {
        return word & !0x0100_0000;
    }
    word
}

/// What the encoding of a dsp32alu operation must obey.
struct AluRule {
    code: u8,
    /// Which values of the 2-bit opcode, as bits.
    ops: u8,
    /// Bits among [`HL`], [`X`] and [`S`] that must be 0.
    zero: u8,
    operands: Operands,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    Any,
    /// Both sources are R1:0 or R3:2.
    Pairs,
    /// The two results go to two registers.
    Distinct,
    PairsAndDistinct,
}

const HL: u8 = 1;
const X: u8 = 2;
const S: u8 = 4;

#[rustfmt::skip]
const ALU_RULES: &[AluRule] = {
    use Operands::*;
    const fn rule(code: u8, ops: u8, zero: u8, operands: Operands) -> AluRule {
        AluRule { code, ops, zero, operands }
    }
    &[
        rule(0, 0b1111, HL, Any),
        rule(1, 0b1101, 0, Distinct),
        rule(2, 0b1111, X, Any),
        rule(3, 0b1111, X, Any),
        rule(4, 0b0011, X | HL, Any),
        rule(4, 0b0100, X | HL, Distinct),
        rule(5, 0b1111, S, Any),
        rule(6, 0b0111, X | S | HL, Any),
        rule(7, 0b0111, X | S | HL, Any),
        rule(7, 0b1000, X | HL, Any),
        rule(8, 0b1111, X | HL, Any),
        rule(9, 0b0101, X, Any),
        rule(9, 0b1010, X | S | HL, Any),
        rule(10, 0b0011, X | S | HL, Any),
        rule(11, 0b0011, X | S, Any),
        rule(11, 0b1100, X | HL, Any),
        rule(12, 0b0001, X | S | HL, Any),
        rule(12, 0b0010, X | S | HL, Distinct),
        rule(12, 0b1000, X | S, Any),
        rule(13, 0b1111, X | S | HL, Distinct),
        rule(14, 0b0011, X | S, Any),
        rule(14, 0b1000, X | S | HL, Any),
        rule(15, 0b1000, X | S | HL, Any),
        rule(16, 0b0011, X | S, Any),
        rule(16, 0b1000, X | S | HL, Any),
        rule(17, 0b0011, X | HL, Distinct),
        rule(18, 0b0001, X | HL, Pairs),
        rule(18, 0b1000, X | S | HL, Any),
        rule(20, 0b0011, X | HL, Pairs),
        rule(21, 0b0011, X | HL, PairsAndDistinct),
        rule(22, 0b0011, X, Pairs),
        rule(23, 0b0001, X, Pairs),
        rule(24, 0b0001, X | S | HL, Any),
        rule(24, 0b0010, X | HL, PairsAndDistinct),
    ]
};

/// Refuses what the decoder read but the processor does not execute.
fn check(word: u32, op: &Op) -> Result<(), Cause> {
    let field = |shift: u32, bits: u32| word >> shift & ((1 << bits) - 1);
    match word & 0xF600_0000 {
        0xC000_0000 => check_multiply(word, [field(16, 2) != NO_PRODUCT, field(11, 2) != NO_PRODUCT]),
        0xC200_0000 => {
            let accumulates = field(16, 2) != 0 || field(11, 2) != 0;
            let writes = [18, 13].map(|bit| field(bit, 1) != 0);
            // Unit 1 is the one with a mixed mode.
            let idle_mixed_mode = field(20, 1) != 0 && !writes[0];
            if accumulates || idle_mixed_mode { Err(Cause::Undefined) } else { check_multiply(word, writes) }
        }
        0xC400_0000 => check_alu(word),
        0xC600_0000 => check_shift(word, op),
        _ => Ok(()),
    }
}

/// The operation of a multiplier that only reads its accumulator.
const NO_PRODUCT: u32 = 3;
/// Modes that products may have, as bits: kept in an accumulator, in half a register, in a register.
const KEPT_MODES: u32 = 1 << 0 | 1 << 3 | 1 << 4 | 1 << 8;
const HALF_MODES: u32 = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 4 | 1 << 6 | 1 << 8 | 1 << 9 | 1 << 11 | 1 << 12;
const WHOLE_MODES: u32 = 1 << 0 | 1 << 1 | 1 << 4 | 1 << 8 | 1 << 9 | 1 << 12;

/// What both kinds of multiplications must obey. `multiplies` tells which of units 1 and 0 need operands; the others name
/// none.
fn check_multiply(word: u32, multiplies: [bool; 2]) -> Result<(), Cause> {
    let field = |shift: u32, bits: u32| word >> shift & ((1 << bits) - 1);
    let names_operands = [14, 9].map(|bit| field(bit, 2) != 0);
    let idle = multiplies.iter().zip(names_operands).any(|(multiplies, names)| names && !multiplies);
    let (writes, pair) = (field(18, 1) != 0 || field(13, 1) != 0, field(19, 1) != 0);
    let modes = match (writes, pair) {
        (false, false) => KEPT_MODES,
        // A pair of nothing.
        (false, true) => 0,
        (true, false) => HALF_MODES,
        (true, true) => WHOLE_MODES,
    };
    // A pair starts with an even register.
    let odd = pair && field(6, 1) != 0;
    if idle || odd || modes >> field(21, 4) & 1 == 0 { Err(Cause::Undefined) } else { Ok(()) }
}

fn check_alu(word: u32) -> Result<(), Cause> {
    let field = |shift: u32, bits: u32| word >> shift & ((1 << bits) - 1);
    let (code, op) = (field(16, 5) as u8, field(14, 2));
    let bits = (field(21, 1) as u8 * HL) | (field(12, 1) as u8 * X) | (field(13, 1) as u8 * S);
    let rule = ALU_RULES.iter().find(|rule| rule.code == code && rule.ops >> op & 1 != 0).ok_or(Cause::Undefined)?;
    // Whole registers into accumulators leave no choice of half.
    let set_whole = code == 9 && bits & (S | HL) == S | HL;
    // Rounding at bit 12 and at bit 20 differ in X.
    let wrong_rounding = code == 5 && (op >> 1 != 0) != (bits & X != 0);
    if bits & rule.zero != 0 || set_whole || wrong_rounding {
        return Err(Cause::Undefined);
    }
    let is_pair = |reg: u32| reg == 0 || reg == 2;
    let (pairs, distinct) = match rule.operands {
        Operands::Any => (false, false),
        Operands::Pairs => (true, false),
        Operands::Distinct => (false, true),
        Operands::PairsAndDistinct => (true, true),
    };
    if pairs && !(is_pair(field(3, 3)) && is_pair(field(0, 3))) {
        return Err(Cause::Undefined);
    }
    if distinct && field(9, 3) == field(6, 3) {
        return Err(Cause::IllegalCombination);
    }
    Ok(())
}

fn check_shift(word: u32, op: &Op) -> Result<(), Cause> {
    let field = |shift: u32, bits: u32| word >> shift & ((1 << bits) - 1);
    let (code, sub, halves) = (field(16, 5), field(14, 2), field(12, 2));
    let halves_allowed = match code {
        0 => 3,
        3 => 1,
        _ => 0,
    };
    if field(21, 2) != 0 || halves > halves_allowed || code == 3 && sub == 3 {
        return Err(Cause::Undefined);
    }
    match op {
        Op::Bitmux { src0, src1, .. } if src0 == src1 => Err(Cause::IllegalCombination),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of a 32-bit word with NOPs behind it: none, or the exception's number.
    fn cause(word: u32) -> u8 {
        let [high, low] = [(word >> 16) as u16, word as u16].map(u16::to_le_bytes);
        let code = [high, low, [0; 2], [0; 2]].concat();
        read(&code, 0x1000).unwrap().map_or_else(|cause| cause as u8, |_| 0)
    }

    #[test]
    fn multiplications_are_as_strict_as_hardware() {
        let undefined = Cause::Undefined as u8;
        // Words, and what a BF5xx does with them.
        let cases = [
            (0xC000_1800, 0),
            // Operands of a multiplier that does not multiply.
            (0xC000_1A00, undefined),
            (0xC003_4000, undefined),
            (0xC200_6000, undefined),
            // Modes: (W32) is for accumulators, (T) for halves; a pair starts with an even register.
            (0xC060_0000, 0),
            (0xC060_2000, undefined),
            (0xC040_0000, undefined),
            (0xC040_2000, 0),
            (0xC048_2000, undefined),
            (0xC008_2000, 0),
            (0xC008_2040, undefined),
            (0xC008_0000, undefined),
            // Said in a way that no disassembler prints.
            (0xC017_0000, 0),
            (0xC013_0000, undefined),
            (0xC063_1800, 0),
            (0xC388_2000, 0),
            (0xC210_2000, undefined),
            // The same in bundles; a search wants a load beside it.
            (0xC800_1A00, undefined),
            (0xC817_0000, 0),
            (0xC40D_0210, 0),
            (0xCC0D_0210, Cause::IllegalCombination as u8),
        ];
        for (word, wanted) in cases {
            assert_eq!(cause(word), wanted, "{word:#010x}");
        }
    }
}
