//! What instructions compute, as far as an analysis of jump tables and addresses needs to know it.
//!
//! An instruction becomes a few [`Set`]s of places to [`Expr`]essions over the old values. Comparisons set the
//! pseudo registers [`Reg::COMPARED`] and [`Reg::COMPARED_TO`]; a conditional branch is a [`Guard`] over them.
//! What is not modelled is simply absent: a register that [`Effects::writes`](crate::Effects) names and no `Set`
//! does has an unknown new value.

use crate::regs::Reg;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Expr {
    Const(u64),
    Reg(Reg),
    /// Some value that this instruction computes and that is not modelled. Only the same occurrence equals itself.
    Opaque,
    /// Memory at the address; `bits` wide, zero-extended.
    Load {
        addr: Box<Expr>,
        bits: u8,
    },
    /// The low `bits` of the expression, zero- or sign-extended.
    Extend {
        value: Box<Expr>,
        bits: u8,
        signed: bool,
    },
    Add(Box<Expr>, Box<Expr>),
    Sub(Box<Expr>, Box<Expr>),
    Mul(Box<Expr>, u64),
    And(Box<Expr>, u64),
    /// Logical shift right by a constant.
    Shr(Box<Expr>, u8),
}

/// What one instruction computes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    pub sets: Vec<Set>,
    /// Writes memory in a way that no `Set` describes.
    pub other_stores: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    pub dst: Place,
    pub value: Expr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Reg(Reg),
    Memory { addr: Expr, bits: u8 },
}

/// The branch is taken exactly when this holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    pub relation: Relation,
    pub left: Expr,
    pub right: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    Equal,
    NotEqual,
    Below,
    BelowOrEqual,
    Above,
    AboveOrEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Relation {
    /// What holds where this does not.
    pub fn negated(self) -> Relation {
        use Relation::*;
        match self {
            Equal => NotEqual,
            NotEqual => Equal,
            Below => AboveOrEqual,
            BelowOrEqual => Above,
            Above => BelowOrEqual,
            AboveOrEqual => Below,
            Less => GreaterOrEqual,
            LessOrEqual => Greater,
            Greater => LessOrEqual,
            GreaterOrEqual => Less,
        }
    }
}

impl Expr {
    pub fn reg(reg: Reg) -> Expr {
        Expr::Reg(reg)
    }

    pub fn plus(self, other: Expr) -> Expr {
        Expr::Add(Box::new(self), Box::new(other))
    }

    pub fn load(self, bits: u8) -> Expr {
        Expr::Load { addr: Box::new(self), bits }
    }

    /// The low `bits`, zero-extended; all 64 are the value itself.
    pub fn zero_extend(self, bits: u8) -> Expr {
        if bits >= 64 { self } else { Expr::Extend { value: Box::new(self), bits, signed: false } }
    }

    pub fn sign_extend(self, bits: u8) -> Expr {
        if bits >= 64 { self } else { Expr::Extend { value: Box::new(self), bits, signed: true } }
    }
}
