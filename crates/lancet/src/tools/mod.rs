//! The built-in tools.

pub mod count;
