//! Decoding and control flow on hostile code.
#![no_main]

#[path = "../src/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(
    // One thread, and that one ours: handing each input to a pool costs more than looking at it.
    init: {
        let _ = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    },
    |bytes: &[u8]| exercise::program(bytes)
);
