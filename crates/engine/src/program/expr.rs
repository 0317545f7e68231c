//! Normal forms of [`Expr`], so that equal values look equal.
//!
//! Sums become a constant and sorted terms with factors; extensions that change nothing disappear. Two
//! expressions over the registers at one point of the program that are equal after [`simplify`] have the same
//! value. (The reverse does not hold, and need not: an analysis that misses an equality reports less.)

use lancet_isa::value::Expr;
use lancet_isa::{Reg, RegSet};

/// Larger expressions are given up: nothing that a compiler emits for a switch comes near.
const MAX_NODES: usize = 32;

/// `constant + sum of factor * atom`, modulo 2^64, atoms sorted and none of them a sum.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Linear<'e> {
    pub(super) constant: u64,
    pub(super) terms: Vec<(&'e Expr, u64)>,
}

impl<'e> Linear<'e> {
    pub(super) fn of(expr: &'e Expr) -> Linear<'e> {
        let mut sum = Linear::default();
        sum.accumulate(expr, 1);
        sum.terms.sort();
        sum
    }

    fn accumulate(&mut self, expr: &'e Expr, factor: u64) {
        match expr {
            Expr::Const(value) => self.constant = self.constant.wrapping_add(value.wrapping_mul(factor)),
            Expr::Add(a, b) => {
                self.accumulate(a, factor);
                self.accumulate(b, factor);
            }
            Expr::Sub(a, b) => {
                self.accumulate(a, factor);
                self.accumulate(b, factor.wrapping_neg());
            }
            Expr::Mul(a, by) => self.accumulate(a, factor.wrapping_mul(*by)),
            atom => match self.terms.iter().position(|(known, _)| *known == atom) {
                Some(i) => {
                    self.terms[i].1 = self.terms[i].1.wrapping_add(factor);
                    if self.terms[i].1 == 0 {
                        self.terms.remove(i);
                    }
                }
                None if factor != 0 => self.terms.push((atom, factor)),
                None => {}
            },
        }
    }

    fn into_expr(self) -> Expr {
        let mut sum: Option<Expr> = None;
        for (atom, factor) in self.terms {
            let term = if factor == 1 { atom.clone() } else { Expr::Mul(Box::new(atom.clone()), factor) };
            sum = Some(match sum {
                None => term,
                Some(before) => before.plus(term),
            });
        }
        match sum {
            None => Expr::Const(self.constant),
            Some(sum) if self.constant == 0 => sum,
            Some(sum) => sum.plus(Expr::Const(self.constant)),
        }
    }
}

pub(super) fn simplify(expr: &Expr) -> Expr {
    match expr {
        Expr::Const(_) | Expr::Reg(_) | Expr::Opaque => expr.clone(),
        Expr::Load { addr, bits } => simplify(addr).load(*bits),
        Expr::Extend { value, bits, signed } => extend(simplify(value), *bits, *signed),
        Expr::And(value, mask) => and(simplify(value), *mask),
        Expr::Shr(value, by) => match simplify(value) {
            Expr::Const(value) => Expr::Const(value.checked_shr(u32::from(*by)).unwrap_or(0)),
            value => Expr::Shr(Box::new(value), *by),
        },
        Expr::Add(a, b) => Linear::of(&simplify(a).plus(simplify(b))).into_expr(),
        Expr::Sub(a, b) => Linear::of(&Expr::Sub(Box::new(simplify(a)), Box::new(simplify(b)))).into_expr(),
        Expr::Mul(a, by) => Linear::of(&Expr::Mul(Box::new(simplify(a)), *by)).into_expr(),
    }
}

fn extend(value: Expr, bits: u8, signed: bool) -> Expr {
    if bits >= 64 {
        return value;
    }
    let mask = (1u64 << bits) - 1;
    if let Expr::Const(c) = value {
        let low = c & mask;
        let sign = signed && low >> (bits - 1) & 1 != 0;
        return Expr::Const(if sign { low | !mask } else { low });
    }
    let limit = if signed { mask >> 1 } else { mask };
    if upper_bound(&value) <= limit {
        return value;
    }
    match value {
        // Only the low bits count, so an inner extension of at least as many says nothing.
        Expr::Extend { value: inner, bits: inner_bits, .. } if inner_bits >= bits => extend(*inner, bits, signed),
        sum @ (Expr::Add(..) | Expr::Sub(..) | Expr::Mul(..)) => match low_bits_of_sum(&sum, bits) {
            low @ Expr::Const(_) => extend(low, bits, signed),
            low => Expr::Extend { value: Box::new(low), bits, signed },
        },
        value => Expr::Extend { value: Box::new(value), bits, signed },
    }
}

/// A sum of which only the low `bits` are used: the same for its terms, and its constant as a small signed number.
fn low_bits_of_sum(sum: &Expr, bits: u8) -> Expr {
    let mut linear = Linear::of(sum);
    linear.terms.retain(|(atom, factor)| zeros_below(atom) + factor.trailing_zeros() < u32::from(bits));
    for (atom, _) in &mut linear.terms {
        if let Expr::Extend { value, bits: inner, .. } = atom
            && *inner >= bits
        {
            *atom = value;
        }
    }
    let shift = 64 - bits;
    linear.constant = ((linear.constant << shift) as i64 >> shift) as u64;
    Linear::of(&linear.into_expr()).into_expr()
}

fn and(value: Expr, mask: u64) -> Expr {
    if let Expr::Const(c) = value {
        return Expr::Const(c & mask);
    }
    // A mask of low ones is an extension; `and $0xff,%eax` and `movzbl %al,%eax` are then the same.
    let ones = mask.trailing_ones() as u8;
    if ones < 64 && mask == (1u64 << ones) - 1 && ones > 0 {
        return extend(value, ones, false);
    }
    high_part(&value, mask).unwrap_or_else(|| Expr::And(Box::new(value), mask))
}

/// `value & mask` where the mask takes only the constant of a sum: a register whose halves are loaded one after the
/// other is `(low half + constant) & 0xffff0000` in between.
fn high_part(value: &Expr, mask: u64) -> Option<Expr> {
    let mut sum = Linear::of(value);
    let constant = std::mem::take(&mut sum.constant);
    let below = 64 - upper_bound(&sum.into_expr()).leading_zeros();
    let apart = constant.trailing_zeros() >= below && mask.trailing_zeros() >= below;
    apart.then_some(Expr::Const(constant & mask))
}

/// The number of low bits that are 0 whatever the registers hold.
fn zeros_below(expr: &Expr) -> u32 {
    match expr {
        Expr::And(value, mask) => mask.trailing_zeros().max(zeros_below(value)),
        _ => 0,
    }
}

/// No value of the expression is larger (unsigned), whatever the registers hold.
pub(super) fn upper_bound(expr: &Expr) -> u64 {
    let of_bits = |bits: u8| if bits >= 64 { !0 } else { (1u64 << bits) - 1 };
    match expr {
        Expr::Const(c) => *c,
        Expr::Load { bits, .. } => of_bits(*bits),
        Expr::Extend { value, bits, signed: false } => of_bits(*bits).min(upper_bound(value)),
        Expr::And(value, mask) => (*mask).min(upper_bound(value)),
        Expr::Shr(value, by) => upper_bound(value).checked_shr(u32::from(*by)).unwrap_or(0),
        Expr::Add(a, b) => upper_bound(a).saturating_add(upper_bound(b)),
        Expr::Mul(a, by) => upper_bound(a).saturating_mul(*by),
        Expr::Extend { .. } | Expr::Sub(..) | Expr::Reg(_) | Expr::Opaque => !0,
    }
}

/// Replaces every part for which `with` has a value. `None`: too large.
pub(super) fn substitute(expr: &Expr, with: &dyn Fn(&Expr) -> Option<Expr>) -> Option<Expr> {
    let replaced = simplify(&rewrite(expr, with));
    (size(&replaced) <= MAX_NODES).then_some(replaced)
}

fn rewrite(expr: &Expr, with: &dyn Fn(&Expr) -> Option<Expr>) -> Expr {
    if let Some(new) = with(expr) {
        return new;
    }
    let go = |e: &Expr| Box::new(rewrite(e, with));
    match expr {
        Expr::Const(_) | Expr::Reg(_) | Expr::Opaque => expr.clone(),
        Expr::Load { addr, bits } => Expr::Load { addr: go(addr), bits: *bits },
        Expr::Extend { value, bits, signed } => Expr::Extend { value: go(value), bits: *bits, signed: *signed },
        Expr::Add(a, b) => Expr::Add(go(a), go(b)),
        Expr::Sub(a, b) => Expr::Sub(go(a), go(b)),
        Expr::Mul(a, by) => Expr::Mul(go(a), *by),
        Expr::And(a, mask) => Expr::And(go(a), *mask),
        Expr::Shr(a, by) => Expr::Shr(go(a), *by),
    }
}

fn size(expr: &Expr) -> usize {
    let mut count = 0;
    visit(expr, &mut |_| count += 1);
    count
}

/// Shows every part of the expression, itself first.
pub(super) fn visit(expr: &Expr, see: &mut dyn FnMut(&Expr)) {
    see(expr);
    match expr {
        Expr::Const(_) | Expr::Reg(_) | Expr::Opaque => {}
        Expr::Load { addr: a, .. } | Expr::Extend { value: a, .. } => visit(a, see),
        Expr::Mul(a, _) | Expr::And(a, _) | Expr::Shr(a, _) => visit(a, see),
        Expr::Add(a, b) | Expr::Sub(a, b) => {
            visit(a, see);
            visit(b, see);
        }
    }
}

/// Is there a part like that?
pub(super) fn any_part(expr: &Expr, wanted: &dyn Fn(&Expr) -> bool) -> bool {
    wanted(expr)
        || match expr {
            Expr::Const(_) | Expr::Reg(_) | Expr::Opaque => false,
            Expr::Load { addr: a, .. } | Expr::Extend { value: a, .. } => any_part(a, wanted),
            Expr::Mul(a, _) | Expr::And(a, _) | Expr::Shr(a, _) => any_part(a, wanted),
            Expr::Add(a, b) | Expr::Sub(a, b) => any_part(a, wanted) || any_part(b, wanted),
        }
}

/// Does the value depend on a register of the set, or on the pseudo registers of a comparison if `compared`?
pub(super) fn mentions(expr: &Expr, regs: RegSet, compared: bool) -> bool {
    any_part(expr, &|part| match part {
        Expr::Reg(Reg::COMPARED | Reg::COMPARED_TO) => compared,
        Expr::Reg(reg) => regs.contains(*reg),
        _ => false,
    })
}

pub(super) fn has_opaque(expr: &Expr) -> bool {
    any_part(expr, &|part| *part == Expr::Opaque)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reg(n: u8) -> Expr {
        Expr::Reg(Reg(n))
    }

    #[test]
    fn sums_are_equal_in_any_order() {
        let a = reg(1).plus(Expr::Const(4)).plus(Expr::Mul(Box::new(reg(2)), 8));
        let b = Expr::Mul(Box::new(reg(2)), 4).plus(reg(1)).plus(Expr::Mul(Box::new(reg(2)), 4)).plus(Expr::Const(4));
        assert_eq!(simplify(&a), simplify(&b));
        assert_eq!(simplify(&Expr::Sub(Box::new(a.clone()), Box::new(b))), Expr::Const(0));
    }

    #[test]
    fn halves_of_a_constant_come_together() {
        let low = |value: Expr| Expr::And(Box::new(value), 0xffff_0000).plus(Expr::Const(0x5678));
        let high = |value: Expr| Expr::And(Box::new(value), 0xffff).plus(Expr::Const(0x1234_0000));
        assert_eq!(simplify(&low(high(reg(1)))), Expr::Const(0x1234_5678));
        assert_eq!(simplify(&high(low(reg(1)))), Expr::Const(0x1234_5678));
        assert_ne!(simplify(&low(reg(1).zero_extend(17))), Expr::Const(0x5678));
        let carry = Expr::And(Box::new(reg(1).zero_extend(16).plus(Expr::Const(0x1_8000))), 0xffff_0000);
        assert_eq!(
            simplify(&carry),
            Expr::And(Box::new(reg(1).zero_extend(16).plus(Expr::Const(0x1_8000))), 0xffff_0000)
        );
    }

    #[test]
    fn extensions_that_change_nothing_go() {
        let byte = reg(3).load(8);
        assert_eq!(simplify(&byte.clone().zero_extend(8).zero_extend(32)), byte);
        assert_eq!(simplify(&reg(1).zero_extend(32).zero_extend(8)), reg(1).zero_extend(8));
        assert_eq!(simplify(&Expr::And(Box::new(reg(1)), 0xff)), reg(1).zero_extend(8));
        assert_eq!(simplify(&reg(1).zero_extend(8).sign_extend(32)), reg(1).zero_extend(8));
        let less = |e: Expr| e.plus(Expr::Const(0xffff_fffb)).zero_extend(32);
        assert_eq!(simplify(&less(reg(1).zero_extend(32))), simplify(&less(reg(1))));
        assert_eq!(simplify(&Expr::Const(0xffff_fffb).sign_extend(32)), Expr::Const(!4));
    }
}
