//! `lancet rewrite` on real programs: the output behaves exactly like the input, and its counts are exact.
//!
//! The programs are in `testdata/x86_64/rewrite`. Each test builds what it needs, rewrites it, and runs it beside the
//! original. Counts are compared with callgrind's for every single instruction (`exact.rs`), with gcov's for every
//! line, or with what the program is known to do.

mod alone;
mod bench;
mod callgrind;
mod control;
mod ends;
mod exact;
mod go;
mod kinds;
mod libraries;
mod loops;
mod options;
mod processes;
mod safety;
mod tools;
