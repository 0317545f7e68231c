//! How fast the core runs, against the time-stamp counter.
//!
//! The counter ticks at a fixed rate, whatever the core's clock does. A chain of multiplications, each of which needs the
//! result of the one before, takes three cycles for each on every x86-64 core of the last fifteen years, so timing such a
//! chain tells how many cycles fit into a tick.

use std::arch::asm;
use std::arch::x86_64::{_mm_lfence, _rdtsc};

const MULTIPLICATIONS: u64 = 60;
const CYCLES_EACH: u64 = 3;
const ROUNDS: u64 = 500;
const TRIES: usize = 40;

/// The time-stamp counter.
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and it touches no memory.
    unsafe { _rdtsc() }
}

/// Core cycles in a tick, at this moment, on this core.
pub fn cycles_per_tick() -> f64 {
    // Interrupts only make a try longer.
    let fastest = (0..TRIES).map(|_| chain_ticks()).min().unwrap_or(1).max(1);
    (MULTIPLICATIONS * CYCLES_EACH * ROUNDS) as f64 / fastest as f64
}

/// Ticks that pass between two readings that directly follow each other, the second when all before is done.
pub fn reading_ticks() -> u64 {
    let one = || {
        // SAFETY: as in `ticks`.
        unsafe {
            let begin = _rdtsc();
            _mm_lfence();
            _rdtsc().wrapping_sub(begin)
        }
    };
    (0..TRIES).map(|_| one()).min().unwrap_or(0)
}

/// The least by which two readings differ if they differ at all: some processors let the counter go in steps.
pub fn step_ticks() -> u64 {
    let mut last = ticks();
    let steps = std::iter::repeat_with(|| {
        let now = ticks();
        std::mem::replace(&mut last, now).abs_diff(now)
    });
    steps.filter(|step| *step > 0).take(TRIES).min().unwrap_or(1)
}

fn chain_ticks() -> u64 {
    let begin = ticks();
    // SAFETY: only the two registers that are named change, and flags.
    unsafe {
        asm!(
            "2:",
            ".rept 60",
            "imul {value}, {value}",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            value = inout(reg) 3_u64 => _,
            rounds = inout(reg) ROUNDS => _,
            options(nomem, nostack),
        );
    }
    ticks().wrapping_sub(begin)
}
