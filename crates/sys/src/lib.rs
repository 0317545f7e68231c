//! The only crate with `unsafe`: what the operating system offers, behind a safe interface.

#[cfg(feature = "allocator")]
pub mod allocator;
pub mod clock;
pub mod frame;
mod map;
pub mod perf;
pub mod priority;
pub mod ptrace;
pub mod remote;
mod ring;
pub mod spawn;
pub mod ticks;

pub use map::{Mapped, map_file};
