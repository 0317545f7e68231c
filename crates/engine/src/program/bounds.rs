//! What bounds the index of a jump table.
//!
//! The conditions of the branches that were passed on the way to a jump are kept beside the index, as expressions over the
//! values at the same point. One of them bounds the index as soon as both have the same form.

use std::rc::Rc;

use lancet_isa::value::{Expr, Place, Relation};
use lancet_isa::{Reg, RegSet};

use super::expr::{Linear, upper_bound, visit};
use super::table::MAX_ENTRIES;

/// An expression, and what it depends on.
#[derive(Clone)]
pub(super) struct Term {
    pub(super) expr: Rc<Expr>,
    pub(super) needs: Needs,
}

impl Term {
    pub(super) fn new(expr: Expr) -> Term {
        let mut needs = Needs::default();
        visit(&expr, &mut |part| match part {
            Expr::Reg(Reg::COMPARED | Reg::COMPARED_TO) => needs.comparison = true,
            Expr::Reg(reg) => needs.regs |= RegSet::of(*reg),
            Expr::Load { .. } => needs.memory = true,
            Expr::Opaque => needs.opaque = true,
            _ => {}
        });
        Term { expr: Rc::new(expr), needs }
    }
}

impl PartialEq for Term {
    fn eq(&self, other: &Term) -> bool {
        Rc::ptr_eq(&self.expr, &other.expr) || self.expr == other.expr
    }
}

/// What an expression or a state depends on: an instruction that touches none of it is passed without a look.
#[derive(Clone, Copy, Default)]
pub(super) struct Needs {
    pub(super) regs: RegSet,
    pub(super) comparison: bool,
    pub(super) memory: bool,
    /// An opaque value equals itself only where it was made.
    pub(super) opaque: bool,
}

impl Needs {
    pub(super) fn and(self, other: Needs) -> Needs {
        Needs {
            regs: self.regs | other.regs,
            comparison: self.comparison || other.comparison,
            memory: self.memory || other.memory,
            opaque: self.opaque || other.opaque,
        }
    }

    /// Is it about one of these, or about the comparison?
    pub(super) fn depends_on(self, regs: RegSet, compared: bool) -> bool {
        self.regs.intersects(regs) || compared && self.comparison
    }

    pub(super) fn depends_on_place(self, place: &Place) -> bool {
        match place {
            Place::Reg(Reg::COMPARED | Reg::COMPARED_TO) => self.comparison,
            Place::Reg(reg) => self.regs.contains(*reg),
            Place::Memory { .. } => self.memory,
        }
    }
}

#[derive(Clone)]
pub(super) struct Condition {
    pub(super) relation: Relation,
    pub(super) left: Term,
    pub(super) right: Term,
    /// It has not been compared with the index yet.
    pub(super) is_new: bool,
}

impl PartialEq for Condition {
    fn eq(&self, other: &Condition) -> bool {
        self.relation == other.relation && self.left == other.left && self.right == other.right
    }
}

impl Condition {
    /// May it bound an index, as far as its sides are known? See [`bounded_by`].
    pub(super) fn may_bound(&self) -> bool {
        use Relation::*;
        let bounds = |relation| matches!(relation, Equal | Below | BelowOrEqual | Less | LessOrEqual);
        match (&*self.left.expr, &*self.right.expr) {
            (Expr::Const(_), Expr::Const(_)) => false,
            (_, Expr::Const(_)) => bounds(self.relation),
            (Expr::Const(_), _) => bounds(mirrored(self.relation)),
            _ => self.relation != NotEqual,
        }
    }

    /// Is one side a number, or is the comparison still to come?
    pub(super) fn has_limit(&self) -> bool {
        let sides = [&*self.left.expr, &*self.right.expr];
        sides.iter().any(|side| matches!(side, Expr::Const(_) | Expr::Reg(Reg::COMPARED | Reg::COMPARED_TO)))
    }

    pub(super) fn needs(&self) -> Needs {
        self.left.needs.and(self.right.needs)
    }
}

/// The first and the last value of an index; the first may be negative.
pub(super) type Bounds = (i64, i64);

/// What is known of the values of an index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) range: Bounds,
    pub(super) by: Limit,
}

/// What keeps an index in its range. The order is by how much that tells of a table's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Limit {
    /// Its width: it just cannot be larger.
    Width,
    /// A mask. It tells the largest index if all values that pass it occur; a compiler may know that some do not.
    Mask,
    /// A comparison.
    Check,
}

impl Span {
    /// Of an index that may be either.
    pub(super) fn and(self, other: Span) -> Span {
        let range = (self.range.0.min(other.range.0), self.range.1.max(other.range.1));
        Span { range, by: self.by.min(other.by) }
    }
}

/// The range of `index` under the conditions, if they bound it. It is empty, with the first value behind the last, where they
/// contradict each other: control never takes that path.
pub(super) fn bounded<'c>(index: &Expr, conditions: impl Iterator<Item = &'c Condition>) -> Option<Bounds> {
    let index = Core::of(index);
    conditions.filter_map(|c| bounded_by(&index, c)).reduce(|a, b| (a.0.max(b.0), a.1.min(b.1)))
}

/// An explicit mask, of a width that is no operand's, is there to bound the index.
pub(super) fn masked(index: &Expr) -> Option<Bounds> {
    match index {
        Expr::Extend { bits, signed: false, .. } if *bits < 16 && *bits != 8 => Some((0, (1 << bits) - 1)),
        _ => None,
    }
}

fn bounded_by(index: &Core<'_>, condition: &Condition) -> Option<Bounds> {
    let (relation, value, limit) = match (&*condition.left.expr, &*condition.right.expr) {
        (value, Expr::Const(limit)) => (condition.relation, value, *limit),
        (Expr::Const(limit), value) => (mirrored(condition.relation), value, *limit),
        _ => return None,
    };
    let core = Core::of(value);
    if index.sum.terms[..] != core.sum.terms[..] || core.bits < index.bits {
        return None;
    }
    // The condition holds for value = core + c modulo 2^bits; the index is value + shift.
    let (low, high) = match relation {
        Relation::Below => (0, limit.checked_sub(1)?),
        Relation::BelowOrEqual => (0, limit),
        Relation::Equal => (limit, limit),
        Relation::Less if upper_bound(value) <= i32::MAX as u64 => (0, limit.checked_sub(1)?),
        Relation::LessOrEqual if upper_bound(value) <= i32::MAX as u64 => (0, limit),
        _ => return None,
    };
    if index.bits < 64 && high - low >= 1 << index.bits {
        return None;
    }
    let shift = index.sum.constant.wrapping_sub(core.sum.constant);
    let (low, high) = (low.wrapping_add(shift), high.wrapping_add(shift));
    let range = if index.bits >= 64 {
        // Part of the sum may stand in the table's address instead, and the index start below zero.
        (low as i64, high as i64)
    } else {
        let modulus = (1u64 << index.bits) - 1;
        let high = high & modulus;
        if high > modulus >> u32::from(index.signed) {
            return None;
        }
        ((low & modulus) as i64, high as i64)
    };
    (range.0 <= range.1 && range.1.wrapping_sub(range.0) as u64 <= MAX_ENTRIES).then_some(range)
}

fn mirrored(relation: Relation) -> Relation {
    use Relation::*;
    match relation {
        Below => Above,
        BelowOrEqual => AboveOrEqual,
        Above => Below,
        AboveOrEqual => BelowOrEqual,
        Less => Greater,
        LessOrEqual => GreaterOrEqual,
        Greater => Less,
        GreaterOrEqual => LessOrEqual,
        same => same,
    }
}

/// An expression as `extend(sum, bits)`.
struct Core<'e> {
    sum: Linear<'e>,
    bits: u8,
    signed: bool,
}

impl Core<'_> {
    fn of(expr: &Expr) -> Core<'_> {
        let (value, bits, signed) = match expr {
            Expr::Extend { value, bits, signed } => (&**value, *bits, *signed),
            other => (other, 64, false),
        };
        Core { sum: Linear::of(value), bits, signed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(relation: Relation, left: Expr, limit: u64) -> Condition {
        Condition { relation, left: Term::new(left), right: Term::new(Expr::Const(limit)), is_new: true }
    }

    #[test]
    fn conditions_bound_an_index_together() {
        let eax = || Expr::Reg(Reg(0)).zero_extend(32);
        let index = eax().plus(Expr::Const((-0x29i64) as u64)).zero_extend(32);
        let index = super::super::expr::simplify(index);
        let below_5 = || is(Relation::Below, index.clone(), 5);
        assert_eq!(bounded(&index, [below_5()].iter()), Some((0, 4)));
        let first_two = is(Relation::BelowOrEqual, eax(), 0x2a);
        assert_eq!(bounded(&index, [below_5(), is(Relation::Equal, eax(), 0x2b)].iter()), Some((2, 2)));
        assert_eq!(bounded(&index, [first_two].iter()), None, "0x2a values below zero wrap");
        let (first, last) = bounded(&index, [below_5(), is(Relation::Equal, eax(), 0x1e)].iter()).expect("bounds");
        assert!(first > last, "no value is both");
    }

    #[test]
    fn a_condition_on_more_bits_that_allows_all_of_fewer_bounds_nothing() {
        let index = Expr::Reg(Reg(0)).zero_extend(8);
        assert_eq!(bounded(&index, [is(Relation::BelowOrEqual, Expr::Reg(Reg(0)), 0x104)].iter()), None);
        assert_eq!(bounded(&index, [is(Relation::BelowOrEqual, Expr::Reg(Reg(0)), 4)].iter()), Some((0, 4)));
    }
}
