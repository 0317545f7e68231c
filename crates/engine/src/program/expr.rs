//! Normal forms of [`Expr`], so that equal values look equal.
//!
//! Sums become a constant and sorted terms with factors; extensions that change nothing disappear. Two
//! expressions over the registers at one point of the program that are equal after [`simplify`] have the same
//! value. (The reverse does not hold, and need not: an analysis that misses an equality reports less.)

use lancet_isa::value::Expr;
use smallvec::SmallVec;

/// Larger expressions are given up: nothing that a compiler emits for a switch comes near.
const MAX_NODES: usize = 32;

/// `constant + sum of factor * atom`, modulo 2^64, atoms sorted and none of them a sum.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Linear<'e> {
    pub(super) constant: u64,
    pub(super) terms: SmallVec<[(&'e Expr, u64); 3]>,
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
            atom => add_term(&mut self.terms, atom, factor),
        }
    }
}

fn add_term<A: PartialEq>(terms: &mut SmallVec<[(A, u64); 3]>, atom: A, factor: u64) {
    match terms.iter().position(|(known, _)| *known == atom) {
        Some(i) => {
            terms[i].1 = terms[i].1.wrapping_add(factor);
            if terms[i].1 == 0 {
                terms.remove(i);
            }
        }
        None if factor != 0 => terms.push((atom, factor)),
        None => {}
    }
}

/// The same, of parts that it owns.
#[derive(Default)]
struct Sum {
    constant: u64,
    terms: SmallVec<[(Expr, u64); 3]>,
}

impl Sum {
    fn of(expr: Expr) -> Sum {
        let mut sum = Sum::default();
        sum.accumulate(expr, 1);
        sum
    }

    fn accumulate(&mut self, expr: Expr, factor: u64) {
        match expr {
            Expr::Const(value) => self.constant = self.constant.wrapping_add(value.wrapping_mul(factor)),
            Expr::Add(a, b) => {
                self.accumulate(*a, factor);
                self.accumulate(*b, factor);
            }
            Expr::Sub(a, b) => {
                self.accumulate(*a, factor);
                self.accumulate(*b, factor.wrapping_neg());
            }
            Expr::Mul(a, by) => self.accumulate(*a, factor.wrapping_mul(by)),
            atom => add_term(&mut self.terms, atom, factor),
        }
    }

    fn into_expr(mut self) -> Expr {
        self.terms.sort_unstable();
        let mut sum: Option<Expr> = None;
        for (atom, factor) in self.terms {
            let term = if factor == 1 { atom } else { Expr::Mul(Box::new(atom), factor) };
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

pub(super) fn simplify(expr: Expr) -> Expr {
    match expr {
        Expr::Const(_) | Expr::Reg(_) | Expr::Opaque => expr,
        Expr::Load { addr, bits } => simplify(*addr).load(bits),
        Expr::Extend { value, bits, signed } => extend(simplify(*value), bits, signed),
        Expr::And(value, mask) => and(simplify(*value), mask),
        Expr::Shr(value, by) => shr(simplify(*value), by),
        Expr::Add(a, b) => Sum::of(simplify(*a).plus(simplify(*b))).into_expr(),
        Expr::Sub(a, b) => Sum::of(Expr::Sub(Box::new(simplify(*a)), Box::new(simplify(*b)))).into_expr(),
        Expr::Mul(a, by) => Sum::of(Expr::Mul(Box::new(simplify(*a)), by)).into_expr(),
    }
}

fn shr(value: Expr, by: u8) -> Expr {
    match value {
        Expr::Const(value) => Expr::Const(value.checked_shr(u32::from(by)).unwrap_or(0)),
        value => Expr::Shr(Box::new(value), by),
    }
}

/// The low `bits` of a simplified value.
pub(super) fn extend(value: Expr, bits: u8, signed: bool) -> Expr {
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
        sum @ (Expr::Add(..) | Expr::Sub(..) | Expr::Mul(..)) => match low_bits_of_sum(sum, bits) {
            low @ Expr::Const(_) => extend(low, bits, signed),
            low => Expr::Extend { value: Box::new(low), bits, signed },
        },
        value => Expr::Extend { value: Box::new(value), bits, signed },
    }
}

/// A sum of which only the low `bits` are used: the same for its terms, and its constant as a small signed number.
fn low_bits_of_sum(sum: Expr, bits: u8) -> Expr {
    let mut low = Sum::default();
    for (atom, factor) in Sum::of(sum.clone()).terms {
        if zeros_below(&atom) + factor.trailing_zeros() >= u32::from(bits) {
            continue;
        }
        match atom {
            Expr::Extend { value, bits: inner, .. } if inner >= bits => low.accumulate(*value, factor),
            atom => low.accumulate(atom, factor),
        }
    }
    let shift = 64 - bits;
    low.constant = low.constant.wrapping_add(Linear::of(&sum).constant);
    low.constant = ((low.constant << shift) as i64 >> shift) as u64;
    low.into_expr()
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
    let sum = Linear::of(value);
    let most =
        sum.terms.iter().fold(0, |most: u64, (atom, by)| most.saturating_add(upper_bound(atom).saturating_mul(*by)));
    let below = 64 - most.leading_zeros();
    let apart = sum.constant.trailing_zeros() >= below && mask.trailing_zeros() >= below;
    apart.then_some(Expr::Const(sum.constant & mask))
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

pub(super) enum Substituted {
    /// There was nothing to replace.
    Same,
    New(Expr),
    TooLarge,
}

/// Replaces every part of an expression for which `with` has a value. All are simplified.
pub(super) fn substitute(expr: &Expr, with: &dyn Fn(&Expr) -> Option<Expr>) -> Substituted {
    match replaced(expr, with) {
        Some(new) if size(&new) <= MAX_NODES => Substituted::New(new),
        Some(_) => Substituted::TooLarge,
        None => Substituted::Same,
    }
}

/// `None`: there is nothing to replace.
fn replaced(expr: &Expr, with: &dyn Fn(&Expr) -> Option<Expr>) -> Option<Expr> {
    if let Some(new) = with(expr) {
        return Some(new);
    }
    let both = |a: &Expr, b: &Expr| match (replaced(a, with), replaced(b, with)) {
        (None, None) => None,
        (new_a, new_b) => {
            let (a, b) = (new_a.unwrap_or_else(|| a.clone()), new_b.unwrap_or_else(|| b.clone()));
            Some((Box::new(a), Box::new(b)))
        }
    };
    Some(match expr {
        Expr::Const(_) | Expr::Reg(_) | Expr::Opaque => return None,
        Expr::Load { addr, bits } => replaced(addr, with)?.load(*bits),
        Expr::Extend { value, bits, signed } => extend(replaced(value, with)?, *bits, *signed),
        Expr::And(value, mask) => and(replaced(value, with)?, *mask),
        Expr::Shr(value, by) => shr(replaced(value, with)?, *by),
        Expr::Mul(a, by) => Sum::of(Expr::Mul(Box::new(replaced(a, with)?), *by)).into_expr(),
        Expr::Add(a, b) => both(a, b).map(|(a, b)| Sum::of(Expr::Add(a, b)).into_expr())?,
        Expr::Sub(a, b) => both(a, b).map(|(a, b)| Sum::of(Expr::Sub(a, b)).into_expr())?,
    })
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

#[cfg(test)]
mod tests {
    use lancet_isa::Reg;

    use super::*;

    fn reg(n: u8) -> Expr {
        Expr::Reg(Reg(n))
    }

    #[test]
    fn sums_are_equal_in_any_order() {
        let a = reg(1).plus(Expr::Const(4)).plus(Expr::Mul(Box::new(reg(2)), 8));
        let b = Expr::Mul(Box::new(reg(2)), 4).plus(reg(1)).plus(Expr::Mul(Box::new(reg(2)), 4)).plus(Expr::Const(4));
        assert_eq!(simplify(a.clone()), simplify(b.clone()));
        assert_eq!(simplify(Expr::Sub(Box::new(a), Box::new(b))), Expr::Const(0));
    }

    #[test]
    fn halves_of_a_constant_come_together() {
        let low = |value: Expr| Expr::And(Box::new(value), 0xffff_0000).plus(Expr::Const(0x5678));
        let high = |value: Expr| Expr::And(Box::new(value), 0xffff).plus(Expr::Const(0x1234_0000));
        assert_eq!(simplify(low(high(reg(1)))), Expr::Const(0x1234_5678));
        assert_eq!(simplify(high(low(reg(1)))), Expr::Const(0x1234_5678));
        assert_ne!(simplify(low(reg(1).zero_extend(17))), Expr::Const(0x5678));
        let carry = Expr::And(Box::new(reg(1).zero_extend(16).plus(Expr::Const(0x1_8000))), 0xffff_0000);
        assert_eq!(
            simplify(carry),
            Expr::And(Box::new(reg(1).zero_extend(16).plus(Expr::Const(0x1_8000))), 0xffff_0000)
        );
    }

    #[test]
    fn extensions_that_change_nothing_go() {
        let byte = reg(3).load(8);
        assert_eq!(simplify(byte.clone().zero_extend(8).zero_extend(32)), byte);
        assert_eq!(simplify(reg(1).zero_extend(32).zero_extend(8)), reg(1).zero_extend(8));
        assert_eq!(simplify(Expr::And(Box::new(reg(1)), 0xff)), reg(1).zero_extend(8));
        assert_eq!(simplify(reg(1).zero_extend(8).sign_extend(32)), reg(1).zero_extend(8));
        let less = |e: Expr| e.plus(Expr::Const(0xffff_fffb)).zero_extend(32);
        assert_eq!(simplify(less(reg(1).zero_extend(32))), simplify(less(reg(1))));
        assert_eq!(simplify(Expr::Const(0xffff_fffb).sign_extend(32)), Expr::Const(!4));
    }
}
