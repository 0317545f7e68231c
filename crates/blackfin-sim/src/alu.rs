//! Integer arithmetic with its flags, as pure functions and on [`State`].

use crate::astat::{AC0, AN, AQ, AZ, NZ, V, nz, overflow, when};
use crate::state::State;
use lancet_isa::blackfin::{Alu2, BitImm, Compare, DPreg, Dreg, Ireg, Ptr2};

/// The flags that a 32-bit addition writes; VS is sticky.
const SUM: u32 = NZ | AC0 | V;

impl State {
    #[inline(always)]
    pub fn add(&mut self, a: u32, b: u32) -> u32 {
        let (sum, carry) = a.overflowing_add(b);
        let overflowed = ((a ^ sum) & (b ^ sum)) >> 31 != 0;
        self.set_flags(SUM, nz(sum) | when(carry, AC0) | overflow(overflowed));
        sum
    }

    #[inline(always)]
    pub fn sub(&mut self, a: u32, b: u32) -> u32 {
        let (difference, borrow) = a.overflowing_sub(b);
        let overflowed = ((a ^ b) & (a ^ difference)) >> 31 != 0;
        self.set_flags(SUM, nz(difference) | when(!borrow, AC0) | overflow(overflowed));
        difference
    }

    /// AZ and AN of the value; AC0 and V become 0.
    #[inline(always)]
    pub fn logical(&mut self, value: u32) -> u32 {
        self.set_flags(SUM, nz(value));
        value
    }

    /// AZ and AN of the value; V becomes 0, AC0 stays.
    #[inline(always)]
    pub fn shifted(&mut self, value: u32) -> u32 {
        self.set_flags(NZ | V, nz(value));
        value
    }

    #[inline(always)]
    pub fn compare(&mut self, relation: Compare, a: u32, b: u32) {
        let less = if relation.is_unsigned() { a < b } else { (a as i32) < b as i32 };
        self.set_flags(NZ | AC0, when(a == b, AZ) | when(less, AN) | when(b <= a, AC0));
        self.cc = holds(relation, a, b);
    }

    /// `R0 = (R0 + R1) << shift`
    fn add_shifted(&mut self, a: u32, b: u32, shift: u32) -> u32 {
        let (sum, add_overflow) = (a as i32).overflowing_add(b as i32);
        let result = sum << shift;
        let overflowed = add_overflow || result >> shift != sum;
        self.set_flags(NZ | V, nz(result as u32) | overflow(overflowed));
        result as u32
    }

    #[inline]
    pub fn alu2(&mut self, op: Alu2, dst: Dreg, src: Dreg) {
        let (old, value) = (self.d(dst), self.d(src));
        let result = match op {
            Alu2::ShiftArithmetic => self.shifted(shift_right_arithmetic(old, value)),
            Alu2::ShiftRight => self.shifted(old.checked_shr(value).unwrap_or(0)),
            Alu2::ShiftLeft => self.shifted(old.checked_shl(value).unwrap_or(0)),
            Alu2::Multiply => old.wrapping_mul(value),
            Alu2::AddDouble => self.add_shifted(old, value, 1),
            Alu2::AddQuadruple => self.add_shifted(old, value, 2),
            Alu2::Divq => self.divq(old, value as u16),
            Alu2::Divs => self.divs(old, value as u16),
            Alu2::SignExtendHalf => self.logical(value as i16 as u32),
            Alu2::ZeroExtendHalf => self.logical(value & 0xFFFF),
            Alu2::SignExtendByte => self.logical(value as i8 as u32),
            Alu2::ZeroExtendByte => self.logical(value & 0xFF),
            Alu2::Negate => {
                let result = value.wrapping_neg();
                self.set_flags(SUM, nz(result) | overflow(value == 0x8000_0000) | when(value == 0, AC0));
                result
            }
            Alu2::Not => self.logical(!value),
        };
        self.set_d(dst, result);
    }

    #[inline]
    pub fn bit_imm(&mut self, op: BitImm, dst: Dreg, bit: u8) {
        let (old, mask) = (self.d(dst), 1u32 << (bit & 31));
        let result = match op {
            BitImm::TestClear => return self.cc = old & mask == 0,
            BitImm::TestSet => return self.cc = old & mask != 0,
            BitImm::Set => self.logical(old | mask),
            BitImm::Toggle => self.logical(old ^ mask),
            BitImm::Clear => self.logical(old & !mask),
            BitImm::ShiftArithmetic => self.shifted((old as i32 >> (bit & 31)) as u32),
            BitImm::ShiftRight => self.shifted(old >> (bit & 31)),
            BitImm::ShiftLeft => self.shifted(old << (bit & 31)),
        };
        self.set_d(dst, result);
    }

    /// The first step of a division: AQ is the sign of the quotient.
    fn divs(&mut self, dividend: u32, divisor: u16) -> u32 {
        let high = (dividend >> 16) as u16;
        let aq = (high ^ divisor) >> 15 != 0;
        self.set_flags(AQ, when(aq, AQ));
        dividend << 1 | u32::from(aq)
    }

    /// One bit of a division: adds or subtracts the divisor as AQ says, then shifts the inverse of the new AQ in.
    fn divq(&mut self, dividend: u32, divisor: u16) -> u32 {
        let high = (dividend >> 16) as u16;
        let rest = if self.flags & AQ != 0 { high.wrapping_add(divisor) } else { high.wrapping_sub(divisor) };
        let aq = (rest ^ divisor) >> 15 != 0;
        self.set_flags(AQ, when(aq, AQ));
        (u32::from(rest) << 16 | dividend & 0xFFFF) << 1 | u32::from(!aq)
    }

    #[inline]
    pub fn ptr2(&self, op: Ptr2, old: u32, value: u32) -> u32 {
        match op {
            Ptr2::Sub => old.wrapping_sub(value),
            Ptr2::ShiftLeft2 => value << 2,
            Ptr2::ShiftRight2 => value >> 2,
            Ptr2::ShiftRight1 => value >> 1,
            Ptr2::AddBitReversed => add_bit_reversed(old, value),
            Ptr2::AddDouble => old.wrapping_add(value) << 1,
            Ptr2::AddQuadruple => old.wrapping_add(value) << 2,
        }
    }

    /// An index register moved by `by`, within its circular buffer.
    #[inline(always)]
    pub fn dag_add(&self, reg: Ireg, by: u32) -> u32 {
        let (index, length) = (self.i(reg), self.length(reg));
        if length == 0 { index.wrapping_add(by) } else { circular_add(index, self.base(reg), length, by) }
    }

    /// An index register moved back by `by`, within its circular buffer.
    #[inline(always)]
    pub fn dag_sub(&self, reg: Ireg, by: u32) -> u32 {
        let (index, length) = (self.i(reg), self.length(reg));
        if length == 0 { index.wrapping_sub(by) } else { circular_sub(index, self.base(reg), length, by) }
    }

    /// Compares that write only CC.
    #[inline(always)]
    pub fn compare_pointers(&mut self, relation: Compare, a: u32, b: u32) {
        self.cc = holds(relation, a, b);
    }

    /// Data registers write flags, pointers only CC.
    pub fn compare_reg(&mut self, relation: Compare, left: DPreg, right: u32) {
        let value = self.dp(left);
        match left.as_dreg() {
            Some(_) => self.compare(relation, value, right),
            None => self.compare_pointers(relation, value, right),
        }
    }
}

#[inline(always)]
pub fn holds(relation: Compare, a: u32, b: u32) -> bool {
    match relation {
        Compare::Equal => a == b,
        Compare::Less => (a as i32) < b as i32,
        Compare::LessOrEqual => a as i32 <= b as i32,
        Compare::LessUnsigned => a < b,
        Compare::LessOrEqualUnsigned => a <= b,
    }
}

#[inline(always)]
fn shift_right_arithmetic(value: u32, by: u32) -> u32 {
    (value as i32 >> by.min(31)) as u32
}

/// Addition whose carries go from high to low, for the addresses of an FFT.
pub fn add_bit_reversed(a: u32, b: u32) -> u32 {
    a.reverse_bits().wrapping_add(b.reverse_bits()).reverse_bits()
}

/// The address generator adds, and adds or takes away the length as well; which sum it keeps depends on comparisons of
/// 32 bits and on the carries of the additions. For a buffer that does not wrap around the address space this is
/// "stay in `base..base + length`"; for others it is what the hardware does.
fn circular_add(index: u32, base: u32, length: u32, by: u32) -> u32 {
    let (moved, moved_carry) = index.overflowing_add(by);
    if (by as i32) < 0 {
        let inside = index >> 31 != 0 || moved_carry;
        if inside == (moved < base) { moved.wrapping_add(length) } else { moved }
    } else {
        let (end, end_carry) = length.overflowing_add(base);
        if (moved_carry == end_carry) == (moved < end) { moved } else { moved.wrapping_sub(length) }
    }
}

fn circular_sub(index: u32, base: u32, length: u32, by: u32) -> u32 {
    let (moved, moved_carry) = index.overflowing_add(by.wrapping_neg());
    if (by as i32) < 0 {
        let (end, end_carry) = length.overflowing_add(base);
        let carry = index >> 31 != 0 && moved_carry;
        if (carry == end_carry) == (moved < end) { moved } else { moved.wrapping_sub(length) }
    } else {
        let inside = by == 0 || moved_carry;
        if inside == (moved < base) { moved.wrapping_add(length) } else { moved }
    }
}

/// AZ if either half is 0, AN if either is negative.
#[inline(always)]
pub fn nz_halves(value: u32) -> u32 {
    let (high, low) = ((value >> 16) as i16, value as i16);
    when(high == 0 || low == 0, AZ) | when(high < 0 || low < 0, AN)
}
