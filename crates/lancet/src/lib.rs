//! The library that people build their own tools on.
//!
//! ```text
//! file ──┐
//!        ├─> Image ─> Program ─> Func ─> Block, Edge, Loop, live registers ─> report
//! process┘   bytes,   functions
//!            symbols
//! ```
//!
//! - [`Image`] is a linked ELF file seen by address: code, symbols, relocations, unwind tables, source lines.
//! - [`Program`] is its functions ([`Func`]), found without symbols where there are none.
//! - A [`Func`] has [`Block`]s (straight runs of instructions; a call ends one), [`Edge`]s between them, exits, calls,
//!   jump tables, and a [`LoopForest`](program::LoopForest) of [`Loop`]s, nested and perhaps irreducible. What it could
//!   not find out is listed in [`Func::problems`].
//! - Liveness tells which registers and flags hold a value that something may still read: [`Func::live_in`] and
//!   [`Func::live_out`] for blocks, [`Program::live_before`] for instructions. Registers are numbers in a [`RegSet`];
//!   [`Facts`](isa::Facts) names them.
//! - [`Subject`] is a file or a whole process, and [`lookup`] finds in it the function that a person names.
//! - [`report`] turns all of this into what the `lancet` command shows.
//!
//! The loops of a program, and where a counter would find a free register:
//!
//! ```
//! use lancet::prelude::*;
//!
//! fn hot_candidates(path: &std::path::Path) -> Result<Vec<(Svma, u32, RegSet)>, ImageError> {
//!     let program = Program::analyse(std::sync::Arc::new(Image::open(path)?));
//!     let general = program.image().isa().facts().general;
//!     let mut found = Vec::new();
//!     for func in program.funcs() {
//!         for (_, l) in func.loops.iter() {
//!             let header = BlockId(l.header);
//!             found.push((func.block(header).start, l.depth, general.without(func.live_in(header))));
//!         }
//!     }
//!     Ok(found)
//! }
//! # let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/x86_64/sample/sample.elf");
//! # assert_eq!(hot_candidates(sample.as_ref()).unwrap().iter().map(|found| found.1).max(), Some(2));
//! ```
//!
//! Addresses are of type [`Svma`]: as the file states them. A process has the file's code elsewhere, by the
//! [`bias`](Object::bias) of its object.
#![forbid(unsafe_code)]

pub mod counting;
pub mod dsp;
pub mod dvfs;
mod error;
pub mod live;
pub mod lookup;
pub mod names;
pub mod prelude;
pub mod profile;
pub mod report;
pub mod rewrite;
pub mod simulate;
mod subject;
pub mod tool;
pub mod tools;

pub use error::Error;
pub use lancet_blackfin_sim as blackfin_sim;
pub use lancet_engine::collect;
pub use lancet_engine::image::{self, Image, ImageError, Process};
pub use lancet_engine::layout;
pub use lancet_engine::load;
pub use lancet_engine::plan;
pub use lancet_engine::program::{self, Block, BlockId, Edge, EdgeKind, Func, FuncId, Loop, LoopId, Program};
pub use lancet_isa::{self as isa, Avma, Insn, Reg, RegSet, Svma};
pub use subject::{Object, Opened, Subject};
