//! The engine: from an ELF file or a process to its functions, loops and liveness, and back to an edited one.
//!
//! Data goes one way: [`image`] (bytes, symbols, unwind tables) to [`program`] (functions, control flow, loops,
//! liveness) to [`plan`] (what to add) to [`layout`] (clones, redirects, tables) to [`sink`] (a file). Nothing here
//! prints, exits or knows the command line.
#![forbid(unsafe_code)]

pub mod collect;
pub mod image;
pub mod layout;
pub mod load;
pub mod plan;
pub mod program;
pub mod sink;
