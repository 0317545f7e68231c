//! Registers and sets of them.
//!
//! Each instruction set numbers its registers and its flags from 0 to 63 in a way of its own, so a set is one
//! word and liveness is bit arithmetic. Numbers from 64 are pseudo registers that only [values](crate::value) use.

use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

/// A register or a flag, by the instruction set's own numbering.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Reg(pub u8);

impl Reg {
    /// Left side of the last comparison. Set by whatever writes the condition flags by comparing.
    pub const COMPARED: Reg = Reg(64);
    /// Right side of the last comparison.
    pub const COMPARED_TO: Reg = Reg(65);
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct RegSet(pub u64);

impl RegSet {
    pub const EMPTY: RegSet = RegSet(0);
    pub const ALL: RegSet = RegSet(!0);

    /// The set of one register; a pseudo register is in no set.
    pub const fn of(reg: Reg) -> RegSet {
        if reg.0 < 64 { RegSet(1 << reg.0) } else { RegSet(0) }
    }

    pub fn contains(self, reg: Reg) -> bool {
        self.0 & RegSet::of(reg).0 != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn intersects(self, other: RegSet) -> bool {
        self.0 & other.0 != 0
    }

    pub const fn union(self, other: RegSet) -> RegSet {
        RegSet(self.0 | other.0)
    }

    pub const fn without(self, other: RegSet) -> RegSet {
        RegSet(self.0 & !other.0)
    }

    pub fn iter(self) -> impl Iterator<Item = Reg> {
        (0..64u8).filter(move |n| self.0 >> n & 1 != 0).map(Reg)
    }
}

impl BitOr for RegSet {
    type Output = RegSet;
    fn bitor(self, other: RegSet) -> RegSet {
        RegSet(self.0 | other.0)
    }
}

impl BitOrAssign for RegSet {
    fn bitor_assign(&mut self, other: RegSet) {
        self.0 |= other.0;
    }
}

impl BitAnd for RegSet {
    type Output = RegSet;
    fn bitand(self, other: RegSet) -> RegSet {
        RegSet(self.0 & other.0)
    }
}

impl Not for RegSet {
    type Output = RegSet;
    fn not(self) -> RegSet {
        RegSet(!self.0)
    }
}

/// What an instruction does to registers and flags.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Effects {
    /// May depend on the old value of these.
    pub reads: RegSet,
    /// Always overwrites all of these: the old value is gone.
    pub kills: RegSet,
    /// May change these (kills included).
    pub writes: RegSet,
}

impl Effects {
    /// `self`, then `next`, as one.
    pub fn then(self, next: Effects) -> Effects {
        Effects {
            reads: self.reads | next.reads.without(self.kills),
            kills: self.kills | next.kills,
            writes: self.writes | next.writes,
        }
    }
}
