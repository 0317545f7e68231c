//! The library that people build their own tools on.
//!
//! [`Image`] is a file, [`Program`] its functions with their control flow, loops and liveness. [`report`] turns
//! them into what the `lancet` command shows, and [`tools`] decide what to measure.
#![forbid(unsafe_code)]

pub mod report;
pub mod tools;

pub use lancet_engine::image::{Image, ImageError};
pub use lancet_engine::program::{self, Block, Edge, EdgeKind, Func, FuncId, Program};
pub use lancet_isa::{self as isa, RegSet, Svma};
