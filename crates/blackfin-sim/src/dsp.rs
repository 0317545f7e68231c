//! Vector and accumulator arithmetic (dsp32alu).

use crate::alu::nz_halves;
use crate::astat::{AC0, AC1, AN, AV, AVS, AZ, NZ, V, nz, overflow, when};
use crate::state::{ACC_MASK, State, pack};
use crate::video;
use lancet_isa::blackfin::{Acc, Accs, CompareAcc, Dhalf, Dreg, Half, Op, RoundAt, SearchMode, VecOp, VecScale};

const ACC_MAX: i64 = (1 << 39) - 1;
const ACC_MIN: i64 = -(1 << 39);

/// The result of 16-bit arithmetic with the flags it wants to raise.
#[derive(Clone, Copy)]
struct Half16 {
    value: u16,
    carry: bool,
    overflow: bool,
}

/// 16-bit addition or subtraction, halved or doubled, then saturated.
///
/// The hardware finds the overflow of a doubled sum from the signs of the operands and of the 16-bit result, and of a
/// doubled difference from the number itself.
fn arithmetic16(sub: bool, a: u16, b: u16, saturate: bool, scale: VecScale) -> Half16 {
    let (x, y) = (i32::from(a as i16), i32::from(b as i16));
    let exact = if sub { x - y } else { x + y };
    let fits = |value: i32| value == i32::from(value as i16);
    let (value, overflow) = match (scale, sub) {
        (VecScale::None | VecScale::Reserved, _) => (exact, !fits(exact)),
        (VecScale::Halve, _) => (exact >> 1, false),
        (VecScale::Double, false) => {
            let doubled = exact << 1;
            let sign = doubled as i16 as i32;
            (doubled, (x ^ sign) & (y ^ sign) < 0 || doubled > 0xFFFF)
        }
        (VecScale::Double, true) => {
            let doubled = exact << 1;
            (doubled, !fits(exact) || !(-0xFFFF..=0x7FFF).contains(&doubled))
        }
    };
    let value = if saturate { value.clamp(i16::MIN.into(), i16::MAX.into()) } else { value };
    let carry = if sub { b <= a } else { a.checked_add(b).is_none() };
    Half16 { value: value as u16, carry, overflow }
}

/// AZ, AN and V of several halves: each is raised by any of them.
fn flags_of(halves: &[Half16]) -> u32 {
    halves.iter().fold(0, |flags, half| {
        flags | when(half.value == 0, AZ) | when(half.value >> 15 != 0, AN) | overflow(half.overflow)
    })
}

fn clamp32(value: i64) -> (i64, bool) {
    let clamped = value.clamp(i32::MIN.into(), i32::MAX.into());
    (clamped, clamped != value)
}

fn clamp40(value: i64) -> (i64, bool) {
    let clamped = value.clamp(ACC_MIN, ACC_MAX);
    (clamped, clamped != value)
}

/// Divides by 2^16, rounding to the nearest even number.
fn round16(value: i64) -> i64 {
    value.wrapping_add(if value & 0x1_0000 != 0 { 0x8000 } else { 0x7FFF }) >> 16
}

impl State {
    fn vec_add(&mut self, op: VecOp, dst: Dreg, src0: Dreg, src1: Dreg, saturate: bool, cross: bool) {
        let (a, b) = (self.d(src0), self.d(src1));
        let (sub_high, sub_low) = (op.code() & 2 != 0, op.code() & 1 != 0);
        let high = arithmetic16(sub_high, (a >> 16) as u16, (b >> 16) as u16, saturate, VecScale::None);
        let low = arithmetic16(sub_low, a as u16, b as u16, saturate, VecScale::None);
        let carries = when(high.carry, AC1) | when(low.carry, AC0);
        self.set_flags(NZ | V | AC0 | AC1, flags_of(&[high, low]) | carries);
        let (high, low) = if cross { (low, high) } else { (high, low) };
        self.set_d(dst, pack(high.value, low.value));
    }

    #[expect(clippy::too_many_arguments, reason = "they are the fields of the instruction")]
    fn vec_add_sub(
        &mut self,
        crossed_signs: bool,
        sum: Dreg,
        difference: Dreg,
        src0: Dreg,
        src1: Dreg,
        saturate: bool,
        cross: bool,
        scale: VecScale,
    ) {
        let (a, b) = (self.d(src0), self.d(src1));
        let high = |sub| arithmetic16(sub, (a >> 16) as u16, (b >> 16) as u16, saturate, scale);
        let low = |sub| arithmetic16(sub, a as u16, b as u16, saturate, scale);
        let (plus_high, plus_low) = (high(false), low(crossed_signs));
        let (minus_high, minus_low) = (high(true), low(!crossed_signs));
        self.set_flags(NZ | V, flags_of(&[plus_high, plus_low, minus_high, minus_low]));
        let (first, second) = if cross { (minus_low, minus_high) } else { (minus_high, minus_low) };
        self.set_d(difference, pack(first.value, second.value));
        self.set_d(sum, pack(plus_high.value, plus_low.value));
    }

    fn add_half(&mut self, sub: bool, dst: Dhalf, a: u16, b: u16, saturate: bool) {
        let result = arithmetic16(sub, a, b, saturate, VecScale::None);
        self.set_flags(NZ | V | AC0, flags_of(&[result]) | when(result.carry, AC0));
        self.set_half(dst, result.value);
    }

    #[inline]
    fn add_or_sub(sub: bool, a: u32, b: u32, saturate: bool) -> (u32, u32) {
        let (x, y) = (a as i32, b as i32);
        let (wrapped, overflowed) = if sub { x.overflowing_sub(y) } else { x.overflowing_add(y) };
        let carry = if sub { b <= a } else { a.checked_add(b).is_none() };
        let result = match (overflowed && saturate, wrapped < 0) {
            (false, _) => wrapped,
            (true, true) => i32::MAX,
            (true, false) => i32::MIN,
        } as u32;
        (result, nz(result) | when(carry, AC0) | overflow(overflowed))
    }

    fn add_round(&mut self, sub: bool, dst: Dhalf, a: u32, b: u32, at: RoundAt) {
        let (a, b) = (i64::from(a as i32), b as i32);
        let (value, overflowed) = match at {
            RoundAt::Rnd12 => {
                let b = if sub { b.saturating_neg() } else { b };
                let sum = a + i64::from(b);
                let rounded = sum + 0x800;
                match ((-(1 << 27)..1 << 27).contains(&rounded), sum < 0) {
                    (true, _) => ((rounded >> 12) as u16, false),
                    (false, true) => (0x8000, true),
                    (false, false) => (0x7FFF, true),
                }
            }
            RoundAt::Rnd20 => {
                let b = if sub { b.wrapping_neg() } else { b };
                let sum = (a + i64::from(b)) >> 4;
                (((sum + 0x8000) >> 16) as u16, false)
            }
        };
        self.set_flags(NZ | V, when(value == 0, AZ) | when(value >> 15 != 0, AN) | overflow(overflowed));
        self.set_half(dst, value);
    }

    fn round(&mut self, dst: Dhalf, src: Dreg) {
        let (rounded, overflowed) = (self.d(src) as i32).overflowing_add(0x8000);
        let value = if overflowed { 0x7FFF } else { (rounded >> 16) as u16 };
        self.set_flags(NZ | V, when(value == 0, AZ) | when(value >> 15 != 0, AN) | overflow(overflowed));
        self.set_half(dst, value);
    }

    /// `MAX` and `MIN`: `wins` says whether the first operand is taken.
    fn select(&mut self, vector: bool, dst: Dreg, a: u32, b: u32, wins: impl Fn(i32, i32) -> bool) {
        let (value, flags) = if vector {
            let half = |shift: u32| {
                let (x, y) = ((a >> shift) as i16, (b >> shift) as i16);
                if wins(x.into(), y.into()) { x as u16 } else { y as u16 }
            };
            let value = pack(half(16), half(0));
            (value, nz_halves(value))
        } else {
            let value = if wins(a as i32, b as i32) { a } else { b };
            (value, nz(value))
        };
        self.set_flags(NZ | V, flags);
        self.set_d(dst, value);
    }

    fn abs(&mut self, vector: bool, dst: Dreg, src: Dreg) {
        let value = self.d(src);
        let (result, overflowed, flags) = if vector {
            let (high, low) = ((value >> 16) as i16, value as i16);
            let result = pack(high.saturating_abs() as u16, low.saturating_abs() as u16);
            (result, high == i16::MIN || low == i16::MIN, nz_halves(result))
        } else {
            let result = (value as i32).saturating_abs() as u32;
            (result, value as i32 == i32::MIN, nz(result))
        };
        self.set_flags(NZ | V, flags | overflow(overflowed));
        self.set_d(dst, result);
    }

    /// `R0 = -R1 (S)`. V is raised by saturation and otherwise left alone.
    fn neg(&mut self, dst: Dreg, src: Dreg, saturate: bool) {
        let value = self.d(src) as i32;
        let saturated = saturate && value == i32::MIN;
        let result = if saturate { value.saturating_neg() } else { value.wrapping_neg() } as u32;
        self.set_flags(NZ, nz(result) | overflow(saturated));
        self.set_d(dst, result);
    }

    fn vec_neg(&mut self, dst: Dreg, src: Dreg) {
        let value = self.d(src);
        let (high, low) = ((value >> 16) as i16, value as i16);
        let result = pack(high.saturating_neg() as u16, low.saturating_neg() as u16);
        let flags = nz_halves(result)
            | overflow(high == i16::MIN || low == i16::MIN)
            | when(low == 0, AC0)
            | when(high == 0, AC1);
        self.set_flags(NZ | V | AC0 | AC1, flags);
        self.set_d(dst, result);
    }

    fn acc_saturate(&mut self, accs: Accs) {
        let mut flags = 0;
        for acc in each(accs) {
            let (value, saturated) = clamp32(self.a(acc));
            self.set_a(acc, value);
            self.set_flags(AV[acc as usize], when(saturated, AV[acc as usize] | AVS[acc as usize]));
            flags |= when(value == 0, AZ) | when(value < 0, AN);
        }
        self.set_flags(NZ, flags);
    }

    /// `A0 = -A1`; returns AZ and AN.
    fn acc_neg(&mut self, dst: Acc, src: Acc) -> u32 {
        let value = self.a(src);
        let (result, saturated) = clamp40(-value);
        self.set_a(dst, result);
        let (carry, av, sticky) = ([AC0, AC1][dst as usize], AV[dst as usize], AVS[dst as usize]);
        self.set_flags(carry | av, when(value == 0, carry) | when(saturated, av | sticky));
        when(result == 0, AZ) | when(result < 0, AN)
    }

    /// `A0 = ABS A1`; returns AZ.
    fn acc_abs(&mut self, dst: Acc, src: Acc) -> u32 {
        let (result, saturated) = clamp40(self.a(src).abs());
        self.set_a(dst, result);
        let (av, sticky) = (AV[dst as usize], AVS[dst as usize]);
        self.set_flags(av, when(saturated, av | sticky));
        when(result == 0, AZ)
    }

    /// `A0 += A1`: the sum, whether it saturated, and the flags of the addition itself.
    fn acc_sum(&mut self) -> i64 {
        let (a0, a1) = (self.a(Acc::A0), self.a(Acc::A1));
        let (sum, saturated) = clamp40(a0 + a1);
        let carry = (a0 as u64 & ACC_MASK) + (a1 as u64 & ACC_MASK) > ACC_MASK;
        self.set_flags(AC0 | AV[0], when(carry, AC0) | when(saturated, AV[0] | AVS[0]));
        sum
    }

    fn acc_accumulate(&mut self, sub: bool, w32: bool) {
        let result = if sub {
            let (a0, a1) = (self.a(Acc::A0), self.a(Acc::A1));
            let (difference, saturated) = clamp40(a0 - a1);
            let carry = (a1 as u64 & ACC_MASK) < (a0 as u64 & ACC_MASK);
            self.set_flags(AC0 | AV[0], when(carry, AC0) | when(saturated, AV[0] | AVS[0]));
            difference
        } else {
            self.acc_sum()
        };
        let result = if w32 {
            let (clamped, saturated) = clamp32(result);
            self.set_flags(0, when(saturated, AV[0] | AVS[0]));
            clamped
        } else {
            result
        };
        self.set_a(Acc::A0, result);
        self.set_flags(NZ, when(result == 0, AZ) | when(result < 0, AN));
    }

    fn acc_accumulate_to(&mut self, half: Option<Dhalf>, dst: Dreg) {
        let sum = self.acc_sum();
        self.set_a(Acc::A0, sum);
        let (value, saturated) = clamp32(if half.is_some() { round16(sum) << 16 } else { sum });
        match half {
            Some(half) => self.set_half(half, (value >> 16) as u16),
            None => self.set_d(dst, value as u32),
        }
        self.set_flags(NZ | V, nz(value as u32) | overflow(saturated));
    }

    fn acc_add_sub(&mut self, sum_to: Dreg, difference_to: Dreg, minuend: Acc, saturate: bool) {
        let (a0, a1) = (self.a(Acc::A0), self.a(Acc::A1));
        let (left, right) = if minuend == Acc::A0 { (a0, a1) } else { (a1, a0) };
        let (sum, difference) = (a0 + a1, left - right);
        let ((sum32, sum_over), (difference32, difference_over)) = (clamp32(sum), clamp32(difference));
        let (sum, difference) = if saturate { (sum32, difference32) } else { (sum, difference) };
        let unsigned = |value: i64| value as u64 & ACC_MASK;
        let flags = when(sum == 0 || difference == 0, AZ)
            | when((sum as i32) < 0 || (difference as i32) < 0, AN)
            | overflow(sum_over || difference_over)
            | when(unsigned(a0) + unsigned(a1) > ACC_MASK, AC1)
            | when(unsigned(right) <= unsigned(left), AC0);
        self.set_flags(NZ | V | AC0 | AC1, flags);
        self.set_d(difference_to, difference as u32);
        self.set_d(sum_to, sum as u32);
    }

    fn search(&mut self, dst1: Dreg, dst0: Dreg, src: Dreg, mode: SearchMode) {
        let value = self.d(src);
        let pointer = self.r[8];
        for (acc, dst, candidate) in [(Acc::A1, dst1, (value >> 16) as i16), (Acc::A0, dst0, value as i16)] {
            let best = self.a(acc) as i16;
            let better = match mode {
                SearchMode::Greater => candidate > best,
                SearchMode::GreaterOrEqual => candidate >= best,
                SearchMode::Less => candidate < best,
                SearchMode::LessOrEqual => candidate <= best,
            };
            if better {
                self.set_d(dst, pointer);
            }
            self.set_a(acc, i64::from(if better { candidate } else { best }));
        }
    }

    fn sign_multiply(&mut self, dst: Dreg, src0: Dreg, src1: Dreg) {
        let (signs, values) = (self.d(src0), self.d(src1));
        let signed = |shift: u32| {
            let value = (values >> shift) as u16;
            if signs >> shift & 0x8000 != 0 { value.wrapping_neg() } else { value }
        };
        let sum = signed(16).wrapping_add(signed(0));
        self.set_d(dst, pack(sum, sum));
    }

    fn compare_acc(&mut self, relation: CompareAcc) {
        let (a0, a1) = (self.a(Acc::A0), self.a(Acc::A1));
        self.cc = match relation {
            CompareAcc::Equal => a0 == a1,
            CompareAcc::Less => a0 < a1,
            CompareAcc::LessOrEqual => a0 <= a1,
        };
        let carry = a1 as u64 & ACC_MASK <= a0 as u64 & ACC_MASK;
        self.set_flags(NZ | AC0, when(a0 == a1, AZ) | when(a0 < a1, AN) | when(carry, AC0));
    }

    /// Runs an operation of the dsp32 families or a comparison of accumulators; does nothing for others.
    pub fn dsp_op(&mut self, op: &Op) {
        match *op {
            Op::Mac { mode, mixed, regs, mac1, mac0 } => self.mac(mode, mixed, regs, mac1, mac0),
            Op::Mult { mode, mixed, regs, mult1, mult0 } => self.mult(mode, mixed, regs, mult1, mult0),
            Op::VecAdd { op, dst, src0, src1, saturate, cross } => self.vec_add(op, dst, src0, src1, saturate, cross),
            Op::VecAddSub { crossed_signs, sum, difference, src0, src1, saturate, cross, scale } => {
                self.vec_add_sub(crossed_signs, sum, difference, src0, src1, saturate, cross, scale);
            }
            Op::AddHalf { sub, dst, src0, src1, overflow } => {
                self.add_half(sub, dst, self.half(src0), self.half(src1), overflow.saturates());
            }
            Op::Add { sub, dst, src0, src1, overflow } => {
                let (value, flags) = Self::add_or_sub(sub, self.d(src0), self.d(src1), overflow.saturates());
                self.set_flags(NZ | V | AC0, flags);
                self.set_d(dst, value);
            }
            Op::AddSub { sum, difference, src0, src1, overflow } => {
                let (a, b) = (self.d(src0), self.d(src1));
                let (plus, plus_flags) = Self::add_or_sub(false, a, b, overflow.saturates());
                let (minus, minus_flags) = Self::add_or_sub(true, a, b, overflow.saturates());
                self.set_flags(NZ | V | AC0, plus_flags | minus_flags);
                self.set_d(sum, plus);
                self.set_d(difference, minus);
            }
            Op::AccAddSub { sum, difference, minuend, overflow } => {
                self.acc_add_sub(sum, difference, minuend, overflow.saturates());
            }
            Op::AddRound { sub, dst, src0, src1, round } => {
                self.add_round(sub, dst, self.d(src0), self.d(src1), round);
            }
            Op::Round { dst, src } => self.round(dst, src),
            Op::Max { vector, dst, src0, src1 } => {
                self.select(vector, dst, self.d(src0), self.d(src1), |a, b| a >= b);
            }
            Op::Min { vector, dst, src0, src1 } => {
                self.select(vector, dst, self.d(src0), self.d(src1), |a, b| a <= b);
            }
            Op::Abs { vector, dst, src } => self.abs(vector, dst, src),
            Op::Neg { dst, src, saturate } => self.neg(dst, src, saturate),
            Op::VecNeg { dst, src } => self.vec_neg(dst, src),
            Op::AccClear(accs) => each(accs).for_each(|acc| self.acc[acc as usize] = 0),
            Op::AccSaturate(accs) => self.acc_saturate(accs),
            Op::AccCopy { dst } => self.acc[dst as usize] = self.acc[1 - dst as usize],
            Op::AccNeg { dst, src } => {
                let flags = self.acc_neg(dst, src);
                self.set_flags(NZ, flags);
            }
            // Unlike that of one, this leaves the flags alone.
            Op::AccNegBoth => {
                for acc in &mut self.acc {
                    *acc = clamp40(-*acc).0;
                }
            }
            Op::AccAbs { dst, src } => {
                let flags = self.acc_abs(dst, src);
                self.set_flags(NZ, flags);
            }
            Op::AccAbsBoth => {
                let flags = self.acc_abs(Acc::A0, Acc::A0) | self.acc_abs(Acc::A1, Acc::A1);
                self.set_flags(NZ, flags);
            }
            Op::AccSetHalf { dst, src } => {
                let old = self.a(dst);
                let value = i64::from(self.half(src));
                self.set_a(
                    dst,
                    match src.half {
                        Half::Lo => old & !0xFFFF | value,
                        Half::Hi => old & !0xFFFF_0000 | value << 16,
                    },
                );
            }
            Op::AccSet { dst, src } => self.set_a(dst, i64::from(self.d(src) as i32)),
            Op::AccSetExt { dst, src } => {
                let low = self.a(dst) & 0xFFFF_FFFF;
                self.set_a(dst, i64::from(self.d(src) as i8) << 32 | low);
            }
            Op::AccGetExt { dst, src } => self.set_half(dst.half(Half::Lo), (self.a(src) >> 32) as u16),
            Op::AccAccumulate { sub, w32 } => self.acc_accumulate(sub, w32),
            Op::AccAccumulateTo { dst } => self.acc_accumulate_to(None, dst),
            Op::AccAccumulateToHalf { dst } => self.acc_accumulate_to(Some(dst), dst.reg),
            Op::SignMultiply { dst, src0, src1 } => self.sign_multiply(dst, src0, src1),
            Op::AccAddHalves { from_a1, from_a0 } => {
                let sum = |acc: i64| (i32::from(acc as i16) + i32::from((acc >> 16) as i16)) as u32;
                self.set_d(from_a0, sum(self.acc[0]));
                self.set_d(from_a1, sum(self.acc[1]));
            }
            Op::CompareAcc(relation) => self.compare_acc(relation),
            Op::Search { dst1, dst0, src, mode } => self.search(dst1, dst0, src, mode),
            _ => {
                if !self.shift_op(op) {
                    video::run(self, op);
                }
            }
        }
    }
}

fn each(accs: Accs) -> impl Iterator<Item = Acc> {
    let (a0, a1) = (accs != Accs::A1, accs != Accs::A0);
    [a0.then_some(Acc::A0), a1.then_some(Acc::A1)].into_iter().flatten()
}
