//! The engine: from an ELF file or a process to its functions, loops and liveness.
//!
//! Data goes one way: [`image`] (bytes, symbols, unwind tables) to [`program`] (functions, control flow, loops,
//! liveness). Nothing here prints, exits or knows the command line.
#![forbid(unsafe_code)]

pub mod image;
pub mod layout;
pub mod program;
pub mod sink;
