//! The image reader on hostile files.
#![no_main]

#[path = "../src/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::image(bytes));
