//! The Blackfin simulator on hostile programs.
#![no_main]

#[path = "../src/exercise_blackfin.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::simulator(bytes));
