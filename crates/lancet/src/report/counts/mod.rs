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

pub mod hot;
pub mod json;
pub mod summary;
