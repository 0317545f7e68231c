//! Addresses that must not be mixed up.
//!
//! A file states addresses as if it were loaded where it asked to be; a process has it somewhere else; and
//! its bytes stand at yet another place in the file. Each is its own type, so the compiler finds the mistakes.

use std::fmt;
use std::ops::{Add, Sub};

/// A stated virtual memory address: as written in the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Svma(pub u64);

/// An actual virtual memory address: where a process has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Avma(pub u64);

/// An offset into a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileOff(pub u64);

macro_rules! address {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }
        /// Wraps, as the hardware does: hostile input may state any address.
        impl Add<u64> for $name {
            type Output = Self;
            fn add(self, by: u64) -> Self {
                Self(self.0.wrapping_add(by))
            }
        }
        impl Sub<$name> for $name {
            type Output = u64;
            fn sub(self, from: $name) -> u64 {
                self.0.wrapping_sub(from.0)
            }
        }
    };
}
address!(Svma);
address!(Avma);
address!(FileOff);
