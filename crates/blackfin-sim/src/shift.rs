//! Shifts, rotations and bit operations (dsp32shift, dsp32shiftimm).
//!
//! A count is signed: positive shifts to the left. A left shift overflows when it pushes out bits that are no copies of
//! the sign. Arithmetic and saturating shifts by a register also overflow when the sign changes; shifts by a constant
//! and logical shifts do not look at that. The comments say where the hardware differs from what one would expect.

use crate::astat::{AN, AV, AZ, NZ, V, nz, overflow, when};
use crate::state::{State, pack};
use lancet_isa::blackfin::{Acc, AccShift, Dhalf, Dreg, Half, Op, Shift, ShiftDir};

/// A shifted value and what V becomes.
#[derive(Clone, Copy)]
struct Shifted<T> {
    value: T,
    overflow: bool,
}

/// The count in the low 6 bits of a register.
fn count_in(value: u32) -> i32 {
    (value << 26) as i32 >> 26
}

/// Left by `count`, of a `bits`-wide value: the result, and whether anything but copies of the new sign was pushed out.
fn left(value: u32, count: u32, bits: u32) -> Shifted<u32> {
    let mask = u32::MAX >> (32 - bits);
    let count = count.min(bits);
    let wide = u64::from(value) << count;
    let (result, out) = (wide as u32 & mask, (wide >> bits) as u32);
    let ones = ((1u64 << count) - 1) as u32;
    let negative = result >> (bits - 1) != 0;
    Shifted { value: result, overflow: out != 0 && !(out == ones && negative) }
}

/// Left with saturation to the range of `bits`.
fn left_saturating(value: u32, count: u32, bits: u32) -> Shifted<u32> {
    let shifted = left(value, count, bits);
    let sign = value >> (bits - 1);
    let lost_everything = sign == 0 && shifted.value == 0 && value != 0;
    if shifted.overflow || shifted.value >> (bits - 1) != sign || lost_everything {
        let most = u32::MAX >> (33 - bits);
        Shifted { value: if sign == 0 { most } else { most + 1 }, overflow: true }
    } else {
        shifted
    }
}

fn sign_changed(before: u32, after: u32, bits: u32) -> bool {
    (before ^ after) >> (bits - 1) & 1 != 0
}

fn right_arithmetic16(value: u16, count: u32) -> u16 {
    (value as i16 >> count.min(15)) as u16
}

fn right_logical16(value: u16, count: u32) -> u16 {
    value.checked_shr(count).unwrap_or(0)
}

/// One half by a register, or by a constant that was brought to the same form.
fn half(op: Shift, value: u16, count: i32) -> Shifted<u16> {
    let wide = u32::from(value);
    let by = count.unsigned_abs();
    let narrow = |shifted: Shifted<u32>| Shifted { value: shifted.value as u16, overflow: shifted.overflow };
    match (op, count > 0) {
        (Shift::Arithmetic | Shift::Saturating, false) => {
            Shifted { value: right_arithmetic16(value, by), overflow: false }
        }
        (Shift::Arithmetic, true) => {
            let mut shifted = left(wide, by, 16);
            shifted.overflow |= sign_changed(wide, shifted.value, 16);
            narrow(shifted)
        }
        (Shift::Saturating, true) => narrow(left_saturating(wide, by, 16)),
        (Shift::Logical, false) => Shifted { value: right_logical16(value, by), overflow: false },
        (Shift::Logical, true) => Shifted { value: left(wide, by, 16).value as u16, overflow: false },
    }
}

/// What the hardware makes of the 6-bit constant of a half or vector shift.
///
/// Saturating shifts to the left and logical shifts take it as it is. The others take it as a count to the right; if that
/// is above 16, they shift to the left by what is missing to the next multiple of 16.
fn half_by_constant(op: Shift, value: u16, by: i8) -> Shifted<u16> {
    let right = u32::from(by.unsigned_abs());
    match (op, by < 0) {
        (Shift::Logical, true) => Shifted { value: right_logical16(value, right), overflow: false },
        (Shift::Logical, false) => {
            let shifted = left(u32::from(value), right, 16);
            Shifted { value: shifted.value as u16, overflow: shifted.overflow }
        }
        (Shift::Saturating, false) => half(op, value, i32::from(by)),
        (Shift::Saturating, true) if right > 16 => half(op, value, 32 - right as i32),
        (Shift::Arithmetic, _) if !(-16..=0).contains(&by) => {
            let right = by.wrapping_neg() as u32 & 0x3F;
            half(Shift::Arithmetic, value, 16 - (right & 15) as i32)
        }
        (Shift::Arithmetic | Shift::Saturating, _) => half(op, value, i32::from(by)),
    }
}

fn flags16(shifted: Shifted<u16>) -> u32 {
    when(shifted.value == 0, AZ) | when(shifted.value >> 15 != 0, AN) | overflow(shifted.overflow)
}

fn word(op: Shift, value: u32, count: i32) -> Shifted<u32> {
    let by = count.unsigned_abs();
    match (op, count >= 0) {
        (Shift::Logical, false) => Shifted { value: value.checked_shr(by).unwrap_or(0), overflow: false },
        (_, false) => Shifted { value: (value as i32 >> by.min(31)) as u32, overflow: false },
        (Shift::Saturating, true) => left_saturating(value, by, 32),
        (_, true) => left(value, by, 32),
    }
}

/// Rotation through CC of a `bits`-wide value.
fn rotate(value: u64, count: i32, cc: bool, bits: u32) -> (u64, bool) {
    if count == 0 {
        return (value, cc);
    }
    let ring = bits + 1;
    let mask = (1u64 << ring) - 1;
    let by = if count > 0 { count as u32 % ring } else { (ring as i32 + count) as u32 };
    let whole = u64::from(cc) << bits | value;
    let turned = (whole << by | whole.checked_shr(ring - by).unwrap_or(0)) & mask;
    (turned & (mask >> 1), turned >> bits != 0)
}

/// Redundant sign bits of a `bits`-wide value.
fn sign_bits(value: u64, bits: u32) -> u32 {
    let aligned = (value << (64 - bits)) as i64;
    let same = if aligned < 0 { (!aligned).leading_zeros() } else { aligned.leading_zeros() };
    same.min(bits) - 1
}

fn parity(value: u64) -> bool {
    value.count_ones() & 1 != 0
}

impl State {
    fn set_shifted_half(&mut self, dst: Dhalf, shifted: Shifted<u16>) {
        self.set_flags(NZ | V, flags16(shifted));
        self.set_half(dst, shifted.value);
    }

    fn set_shifted_halves(&mut self, dst: Dreg, src: u32, shift: impl Fn(u16) -> Shifted<u16>) {
        let (high, low) = (shift((src >> 16) as u16), shift(src as u16));
        self.set_flags(NZ | V, flags16(high) | flags16(low));
        self.set_d(dst, pack(high.value, low.value));
    }

    fn set_shifted(&mut self, dst: Dreg, shifted: Shifted<u32>) {
        self.set_flags(NZ | V, nz(shifted.value) | overflow(shifted.overflow));
        self.set_d(dst, shifted.value);
    }

    fn shift_acc(&mut self, op: AccShift, acc: Acc, count: i32) {
        let by = count.unsigned_abs();
        let value = match (op, count > 0) {
            (AccShift::Rotate, _) => {
                let (value, cc) = rotate(self.a_unsigned(acc), count.clamp(-40, 40), self.cc, 40);
                self.cc = cc;
                return self.set_a(acc, value as i64);
            }
            (_, true) => self.a(acc) << by,
            (AccShift::Arithmetic, false) => self.a(acc) >> by,
            (AccShift::Logical, false) => (self.a_unsigned(acc) >> by) as i64,
        };
        self.set_a(acc, value);
        let value = self.a(acc);
        self.set_flags(NZ | AV[acc as usize], when(value == 0, AZ) | when(value < 0, AN));
    }

    /// `EXPADJ`: the smaller of two exponents.
    fn set_smaller(&mut self, dst: Dreg, a: u16, b: u16, mask: u16) {
        let smaller = if a & mask < b & mask { a } else { b };
        self.set_half(dst.half(Half::Lo), smaller);
    }

    fn bitmux(&mut self, src0: Dreg, src1: Dreg, dir: ShiftDir) {
        let (s0, s1, acc) = (self.d(src0), self.d(src1), self.a_unsigned(Acc::A0));
        let acc = match dir {
            ShiftDir::Right => {
                self.set_d(src0, s0 >> 1);
                self.set_d(src1, s1 >> 1);
                acc >> 2 | u64::from(s0 & 1) << 38 | u64::from(s1 & 1) << 39
            }
            ShiftDir::Left => {
                self.set_d(src0, s0 << 1);
                self.set_d(src1, s1 << 1);
                acc << 2 | u64::from(s0 >> 31) | u64::from(s1 >> 31) << 1
            }
        };
        self.set_a(Acc::A0, acc as i64);
    }

    fn vit_max(&mut self, dst: Dreg, src: Dreg, dir: ShiftDir) {
        let (best, high_won) = larger_half(self.d(src));
        let acc = self.a_unsigned(Acc::A0);
        let acc = match dir {
            // Bit 31 takes the decision, so what would move into it is dropped.
            ShiftDir::Right => (acc & !(1 << 32)) >> 1 | u64::from(high_won) << 31,
            ShiftDir::Left => acc << 1 | u64::from(high_won),
        };
        self.set_a(Acc::A0, acc as i64);
        self.set_half(dst.half(Half::Lo), best);
    }

    fn vit_max2(&mut self, dst: Dreg, src1: Dreg, src0: Dreg, dir: ShiftDir) {
        let (best0, high_won0) = larger_half(self.d(src0));
        let (best1, high_won1) = larger_half(self.d(src1));
        let acc = self.a(Acc::A0);
        let acc = match dir {
            ShiftDir::Right => acc >> 2 | i64::from(high_won0) << 30 | i64::from(high_won1) << 31,
            ShiftDir::Left => acc << 2 | i64::from(high_won0) << 1 | i64::from(high_won1),
        };
        self.set_a(Acc::A0, acc);
        self.set_d(dst, pack(best1, best0));
    }

    fn extract(&mut self, dst: Dreg, scene: Dreg, pattern: Dreg, sign_extend: bool) {
        let pattern = self.d(pattern);
        let (length, position) = (pattern & 0x1F, pattern >> 8 & 0x1F);
        let mask = (1 << length) - 1;
        let mut field = self.d(scene) >> position & mask;
        if sign_extend && field & (1 << length >> 1) != 0 {
            field |= !mask;
        }
        let field = self.logical(field);
        self.set_d(dst, field);
    }

    fn deposit(&mut self, dst: Dreg, background: Dreg, foreground: Dreg, sign_extend: bool) {
        let pattern = self.d(foreground);
        let (length, position) = ((pattern & 0x1F).min(16), pattern >> 8 & 0x1F);
        let mask = (1u32 << length) - 1;
        let field = pattern >> 16 & mask;
        let (field, mask) = if sign_extend {
            // The sign fills everything above the field.
            let unused = 32 - length;
            (if length == 0 { 0 } else { ((field << unused) as i32 >> unused) as u32 }, u32::MAX)
        } else {
            (field, mask)
        };
        let result = self.logical(self.d(background) & !(mask << position) | field << position);
        self.set_d(dst, result);
    }

    fn set_cc_and_low(&mut self, dst: Dreg, cc: bool) {
        self.cc = cc;
        self.set_half(dst.half(Half::Lo), u16::from(cc));
    }

    /// Runs an operation of the dsp32shift and dsp32shiftimm families; `false` if it is none.
    pub fn shift_op(&mut self, op: &Op) -> bool {
        match *op {
            Op::ShiftHalf { op, dst, src, by } => {
                let count = count_in(self.d(by));
                self.set_shifted_half(dst, half(op, self.half(src), count));
            }
            Op::ShiftHalfImm { op, dst, src, by } => {
                self.set_shifted_half(dst, half_by_constant(op, self.half(src), by));
            }
            Op::ShiftVec { op, dst, src, by } => {
                let count = count_in(self.d(by));
                self.set_shifted_halves(dst, self.d(src), |value| half(op, value, count));
            }
            // Saturating ones take the constant as 5 bits with a sign.
            Op::ShiftVecImm { op: Shift::Saturating, dst, src, by } if by >= 16 => {
                self.set_shifted_halves(dst, self.d(src), |value| half(Shift::Saturating, value, i32::from(by) - 32));
            }
            Op::ShiftVecImm { op: Shift::Saturating, dst, src, by } if by < 0 => {
                self.set_shifted_halves(dst, self.d(src), |value| half_by_constant(Shift::Arithmetic, value, by));
            }
            Op::ShiftVecImm { op, dst, src, by } => {
                self.set_shifted_halves(dst, self.d(src), |value| half_by_constant(op, value, by));
            }
            Op::Shift { op, dst, src, by } => {
                let (value, count) = (self.d(src), count_in(self.d(by)));
                let mut shifted = word(op, value, count);
                shifted.overflow |= count >= 0 && sign_changed(value, shifted.value, 32);
                self.set_shifted(dst, shifted);
            }
            // There is no shift to the right by 32.
            Op::ShiftImm { op: op @ (Shift::Arithmetic | Shift::Logical), dst, src, by: -32 } => {
                self.set_shifted(dst, word(op, self.d(src), 32));
            }
            Op::ShiftImm { op, dst, src, by } => self.set_shifted(dst, word(op, self.d(src), i32::from(by))),
            Op::Rotate { dst, src, by } => self.rotate_word(dst, src, count_in(self.d(by))),
            Op::RotateImm { dst, src, by } => self.rotate_word(dst, src, i32::from(by)),
            Op::ShiftAcc { op, acc, by } => self.shift_acc(op, acc, count_in(self.d(by))),
            Op::ShiftAccImm { op, acc, by } => self.shift_acc(op, acc, i32::from(by)),
            Op::Pack { dst, high, low } => self.set_d(dst, pack(self.half(high), self.half(low))),
            Op::Signbits { dst, src } => {
                self.set_half(dst.half(Half::Lo), sign_bits(u64::from(self.d(src)), 32) as u16);
            }
            Op::SignbitsHalf { dst, src } => {
                self.set_half(dst.half(Half::Lo), sign_bits(u64::from(self.half(src)), 16) as u16);
            }
            // Those of the upper 8 bits are not counted: the result is what normalizes to 32 bits.
            Op::SignbitsAcc { dst, src } => {
                let bits = sign_bits(self.a_unsigned(src), 40);
                self.set_half(dst.half(Half::Lo), (bits as u16).wrapping_sub(8));
            }
            Op::Ones { dst, src } => self.set_half(dst.half(Half::Lo), self.d(src).count_ones() as u16),
            Op::Expadj { vector: false, dst, src, limit } => {
                self.set_smaller(dst, sign_bits(u64::from(self.d(src)), 32) as u16, self.d(limit) as u16, 0x1F);
            }
            Op::Expadj { vector: true, dst, src, limit } => {
                let bits = |half: u32| sign_bits(u64::from(half & 0xFFFF), 16) as u16;
                let (high, low) = (bits(self.d(src) >> 16), bits(self.d(src)));
                let halves = if high < low { high } else { low };
                self.set_smaller(dst, halves, self.d(limit) as u16, 0xF);
            }
            Op::ExpadjHalf { dst, src, limit } => {
                self.set_smaller(dst, sign_bits(u64::from(self.half(src)), 16) as u16, self.d(limit) as u16, 0xF);
            }
            Op::Bitmux { src0, src1, dir } => self.bitmux(src0, src1, dir),
            Op::VitMax { dst, src, dir } => self.vit_max(dst, src, dir),
            Op::VitMax2 { dst, src1, src0, dir } => self.vit_max2(dst, src1, src0, dir),
            Op::Extract { dst, scene, pattern, sign_extend } => self.extract(dst, scene, pattern, sign_extend),
            Op::Deposit { dst, background, foreground, sign_extend } => {
                self.deposit(dst, background, foreground, sign_extend);
            }
            Op::BxorShift { dst, src } => {
                let acc = self.a_unsigned(Acc::A0) << 1;
                let cc = parity(acc & u64::from(self.d(src)));
                self.set_a(Acc::A0, acc as i64);
                self.set_cc_and_low(dst, cc);
            }
            Op::Bxor { dst, src } => {
                let cc = parity(self.a_unsigned(Acc::A0) & u64::from(self.d(src)));
                self.set_cc_and_low(dst, cc);
            }
            Op::BxorShiftAcc => {
                let (a0, a1) = (self.a_unsigned(Acc::A0), self.a_unsigned(Acc::A1));
                let bit = self.cc ^ parity(a0 & a1);
                self.set_a(Acc::A0, (a0 << 1 | u64::from(bit)) as i64);
            }
            Op::BxorAcc { dst } => {
                let cc = self.cc ^ parity(self.a_unsigned(Acc::A0) & self.a_unsigned(Acc::A1));
                self.set_cc_and_low(dst, cc);
            }
            Op::Align { bytes, dst, src1, src0 } => {
                let pair = u64::from(self.d(src1)) << 32 | u64::from(self.d(src0));
                self.set_d(dst, (pair >> (8 * (bytes & 3))) as u32);
            }
            _ => return false,
        }
        true
    }

    fn rotate_word(&mut self, dst: Dreg, src: Dreg, count: i32) {
        let (value, cc) = rotate(u64::from(self.d(src)), count, self.cc, 32);
        self.set_d(dst, value as u32);
        self.cc = cc;
    }
}

/// The half that is larger on the number circle (so that path metrics may wrap), and whether it is the high one.
fn larger_half(value: u32) -> (u16, bool) {
    let (high, low) = ((value >> 16) as u16, value as u16);
    let high_won = high.wrapping_sub(low) >> 15 == 0;
    (if high_won { high } else { low }, high_won)
}
