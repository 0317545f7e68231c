//! The only crate with `unsafe`: what the operating system offers, behind a safe interface.

mod map;

pub use map::{Mapped, map_file};
