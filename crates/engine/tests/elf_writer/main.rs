//! Tests of the file writer: programs and libraries are built, patched by hand, run, stripped, and patched again.

mod hostile;
mod libraries;
mod patches;
mod pointers;
mod programs;
mod refusals;
mod support;
