//! What a program did, from the counts of its edges.
//!
//! All reports are made from the same [`Counted`] objects: the program and, if they were rewritten too, its libraries.
//! Addresses are as stated in the original files.
//!
//! | module | what |
//! | --- | --- |
//! | [`hot`] | loops and branches with their counts |
//! | [`summary`] | the hottest functions and loops, branches by bias |
//! | [`json`] | everything, for programs |
//! | [`lines`] | how often source lines ran |
//! | [`annotate`] | the instructions and the source of a function, with counts |
//! | [`html`] | a page with tables and coloured control-flow graphs |
//! | [`callgrind`], [`lcov`], [`fdata`] | for KCachegrind, genhtml, llvm-bolt |

pub mod annotate;
pub mod callgrind;
mod calls;
pub mod fdata;
pub mod hot;
pub mod html;
pub mod json;
pub mod lcov;
pub mod lines;
pub mod summary;
