//! The Blackfin decoder and encoder on hostile code.
#![no_main]

#[path = "../src/exercise_blackfin.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::decoder(bytes));
