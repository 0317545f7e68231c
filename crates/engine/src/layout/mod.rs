//! From a plan to bytes: clones of functions with what was added, and the ways that lead to them.

mod map;
mod patch;
pub mod unwind;

pub use map::{Aside, MovedPiece, Span};
pub use patch::{Chunk, ChunkKind, NewSection, NewSymbol, Overwrite, Patch, Repoint};
