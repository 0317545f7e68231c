//! From a plan to bytes: clones of functions with what was added, and the ways that lead to them.

mod patch;

pub use patch::{Chunk, ChunkKind, NewSection, NewSymbol, Overwrite, Patch, Repoint};
