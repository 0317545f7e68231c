//! The two multipliers and their accumulators (dsp32mac, dsp32mult).
//!
//! Fractions are shifted left by one after the multiplication; integers and unsigned fractions are not. -1 times -1 is the
//! only product that does not fit: it stays 2^31 in the 40-bit accumulator. A mode decides how operands are read, to which
//! range the accumulator saturates, and how a result is taken from it.

use crate::astat::{AN, AV, AVS, AZ, NZ, RND_MOD, V, overflow, when};
use crate::state::{ACC_MASK, State, extend40, half_of, with_half};
use lancet_isa::blackfin::{Half, MacMode, MacOp, MacRegs, MacUnit, MultUnit};

const ACC_MAX: i64 = (1 << 39) - 1;
const ACC_MIN: i64 = -(1 << 39);
const I32: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);

/// A number and whether it had to be saturated.
#[derive(Clone, Copy)]
struct Saturated<T> {
    value: T,
    saturated: bool,
}

#[inline(always)]
fn clamp(value: i64, (low, high): (i64, i64)) -> Saturated<i64> {
    Saturated { value: value.clamp(low, high), saturated: value < low || value > high }
}

#[inline(always)]
fn is_signed(mode: MacMode) -> bool {
    !matches!(mode, MacMode::Fu | MacMode::Iu | MacMode::Tfu)
}

/// The product of two halves, as the accumulator sees it. Saturation means -1 times -1.
#[inline(always)]
fn product(x: u16, y: u16, mode: MacMode, mixed: bool) -> Saturated<i64> {
    let exact = |value| Saturated { value, saturated: false };
    if mixed {
        return exact(i64::from(i32::from(x as i16).wrapping_mul(i32::from(y))));
    }
    if !is_signed(mode) {
        return exact(i64::from(u32::from(x) * u32::from(y)));
    }
    let value = i32::from(x as i16) * i32::from(y as i16);
    match mode {
        MacMode::Default | MacMode::T | MacMode::S2rnd | MacMode::W32 => match value {
            0x4000_0000 if mode == MacMode::W32 => Saturated { value: i64::from(i32::MAX), saturated: true },
            0x4000_0000 => Saturated { value: 1 << 31, saturated: true },
            value => exact(i64::from(value << 1)),
        },
        _ => exact(i64::from(value)),
    }
}

/// Divides by 2^16, rounding to nearest; ties go to even unless `biased`.
#[inline(always)]
fn round(value: i64, biased: bool) -> i64 {
    let up = if biased || value & 0x1_0000 != 0 { 0x8000 } else { 0x7FFF };
    value.wrapping_add(up) >> 16
}

/// Takes a 16- or 32-bit result (`full`) out of a product or an accumulator. Unsigned modes hold a zero-extended number.
#[inline(always)]
fn extract(value: i64, mode: MacMode, mixed: bool, full: bool, biased: bool) -> Saturated<u32> {
    use MacMode::*;
    let signed = mixed || is_signed(mode);
    let value = match mode {
        S2rnd | Iss2 => value.wrapping_shl(1),
        _ => value,
    };
    let value = match mode {
        _ if full => value,
        Default | W32 | Ih | Fu | S2rnd => round(value, biased),
        T | Tfu => value >> 16,
        Is | Iu | Iss2 => value,
    };
    let range = match (signed, full) {
        (true, true) => I32,
        (true, false) => (i64::from(i16::MIN), i64::from(i16::MAX)),
        (false, true) => (0, i64::from(u32::MAX)),
        (false, false) => (0, i64::from(u16::MAX)),
    };
    let result = if !signed && value < 0 {
        // An unsigned number with the top bit set: far too large, not negative.
        Saturated { value: range.1, saturated: true }
    } else {
        clamp(value, range)
    };
    let mask = if full { u32::MAX } else { 0xFFFF };
    Saturated { value: result.value as u32 & mask, saturated: result.saturated }
}

/// What a unit did.
#[derive(Clone, Copy, Default)]
struct Done {
    result: u32,
    overflow: bool,
    negative: bool,
}

impl State {
    #[inline(always)]
    fn biased(&self) -> bool {
        self.flags & RND_MOD != 0
    }

    /// Multiplies, accumulates and saturates; returns the accumulator, and what it was before if it saturated.
    #[inline(always)]
    fn accumulate(
        &mut self,
        which: usize,
        unit: MacUnit,
        regs: MacRegs,
        mode: MacMode,
        mixed: bool,
    ) -> (i64, Option<i64>) {
        let signed = mixed || is_signed(mode);
        let old = if signed { self.acc[which] } else { (self.acc[which] as u64 & ACC_MASK) as i64 };
        let product =
            product(half_of(self.d(regs.src0), unit.half0), half_of(self.d(regs.src1), unit.half1), mode, mixed);
        let exact = match unit.op {
            MacOp::Assign => product.value,
            MacOp::Add => old + product.value,
            MacOp::Sub => old - product.value,
            MacOp::Keep => return (old, None),
        };
        let new = match mode {
            MacMode::Default | MacMode::T | MacMode::Is | MacMode::Iss2 | MacMode::S2rnd => {
                clamp(exact, (ACC_MIN, ACC_MAX))
            }
            MacMode::Iu if mixed => Saturated { value: extend40(exact), saturated: false },
            MacMode::Fu | MacMode::Tfu if mixed => clamp(exact, (ACC_MIN, ACC_MAX)),
            MacMode::Fu | MacMode::Tfu | MacMode::Iu => clamp(exact, (0, ACC_MASK as i64)),
            MacMode::Ih => clamp(exact, I32),
            // The sign of the old accumulator decides to which end it saturates.
            MacMode::W32 => {
                let fits = exact == i64::from(exact as i32);
                let end = if old < 0 { I32.0 } else { I32.1 };
                Saturated { value: if fits { exact } else { end }, saturated: !fits || product.saturated }
            }
        };
        self.acc[which] = extend40(new.value);
        self.set_flags(AV[which], when(new.saturated, AV[which] | AVS[which]));
        (new.value, new.saturated.then_some(exact))
    }

    /// One unit of a multiply-and-accumulate, with the result it writes, if any.
    #[inline(always)]
    fn mac_unit(&mut self, which: usize, unit: MacUnit, regs: MacRegs, mode: MacMode, mixed: bool) -> Done {
        if unit.op == MacOp::Keep && !unit.write {
            return Done::default();
        }
        let (acc, before) = self.accumulate(which, unit, regs, mode, mixed);
        if !unit.write {
            return Done::default();
        }
        let taken = extract(acc, mode, mixed, regs.pair, self.biased());
        let lost = match before {
            None => false,
            Some(_) if regs.pair => true,
            Some(exact) => extract(exact, mode, mixed, false, self.biased()).saturated,
        };
        let sign = if regs.pair { 31 } else { 15 };
        Done { result: taken.value, overflow: taken.saturated || lost, negative: taken.value >> sign & 1 != 0 }
    }

    #[inline(always)]
    pub fn mac(&mut self, mode: MacMode, mixed: bool, regs: MacRegs, unit1: MacUnit, unit0: MacUnit) {
        let done1 = self.mac_unit(1, unit1, regs, mode, mixed);
        let done0 = self.mac_unit(0, unit0, regs, mode, false);
        self.write_results(regs, unit1.write.then_some(done1.result), unit0.write.then_some(done0.result));
        if regs.pair || unit1.write || unit0.write {
            self.set_flags(V, overflow(done1.overflow || done0.overflow));
        }
        // Moves out of an accumulator set AZ and AN; accumulations do not.
        let moves = [(unit1, done1), (unit0, done0)].map(|(unit, done)| (unit.op == MacOp::Keep && unit.write, done));
        if moves.iter().any(|(moved, _)| *moved) {
            let zero = moves.iter().any(|(moved, done)| *moved && done.result == 0);
            let negative = moves.iter().any(|(moved, done)| *moved && done.negative);
            self.set_flags(NZ, when(zero, AZ) | when(negative, AN));
        }
    }

    #[inline(always)]
    pub fn mult(&mut self, mode: MacMode, mixed: bool, regs: MacRegs, unit1: MultUnit, unit0: MultUnit) {
        let (x, y, biased) = (self.d(regs.src0), self.d(regs.src1), self.biased());
        let run = |unit: MultUnit, mixed: bool| {
            unit.write.then(|| {
                let product = product(half_of(x, unit.half0), half_of(y, unit.half1), mode, mixed);
                let taken = extract(product.value, mode, mixed, regs.pair, biased);
                Saturated { value: taken.value, saturated: product.saturated || taken.saturated }
            })
        };
        let (result1, result0) = (run(unit1, mixed), run(unit0, false));
        self.write_results(regs, result1.map(|result| result.value), result0.map(|result| result.value));
        let saturated = [result1, result0].into_iter().flatten().any(|result| result.saturated);
        self.set_flags(V, overflow(saturated));
    }

    #[inline(always)]
    fn write_results(&mut self, regs: MacRegs, result1: Option<u32>, result0: Option<u32>) {
        if regs.pair {
            if let Some(result) = result1 {
                self.set_d(regs.dst.next(), result);
            }
            if let Some(result) = result0 {
                self.set_d(regs.dst, result);
            }
        } else {
            let mut value = self.d(regs.dst);
            if let Some(result) = result1 {
                value = with_half(value, Half::Hi, result as u16);
            }
            if let Some(result) = result0 {
                value = with_half(value, Half::Lo, result as u16);
            }
            self.set_d(regs.dst, value);
        }
    }
}
