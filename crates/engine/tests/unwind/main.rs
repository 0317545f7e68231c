//! Tests of unwind tables for moved code: real functions are "moved" by random maps, and an independent reader must
//! find the same at the new places as at the old ones.

mod checks;
mod moves;
mod programs;
mod reader;
mod running;
