//! The allocator of the command, for programs that ask for the feature `allocator`.
//!
//! Analysis makes and frees millions of small things on all cores, and with the C library's allocator these wait for each
//! other: two threads take 15 % longer. mimalloc does not let them wait, but keeps what was freed for a while, and an
//! analysis rarely asks for things of the same sizes again. So it is told to give memory back soon; but what an analysis
//! gives back and gets again is zeroed every time, so it is told to wait in proportion to the time that it takes.

use std::ffi::c_long;

use libmimalloc_sys::{mi_option_set, mi_option_t};
pub use mimalloc::MiMalloc as Allocator;

/// `mi_option_purge_delay` of mimalloc.h, which has no name in the crate.
const PURGE_DELAY: mi_option_t = 15;
const LEAST_MILLISECONDS: c_long = 10;
const LOG2_BYTES_A_MILLISECOND: u32 = 20;

/// What mimalloc starts with.
const DEFAULT_MILLISECONDS: c_long = 1000;

/// Has memory that was freed given back to the system soon, if so many bytes of code are analysed.
pub fn give_back_soon(code: u64) {
    set_delay(c_long::try_from(code >> LOG2_BYTES_A_MILLISECOND).unwrap_or(c_long::MAX).max(LEAST_MILLISECONDS));
}

/// Has memory that was freed kept for a while: for work in several steps, of which each needs what the last has freed.
pub fn give_back_late() {
    set_delay(DEFAULT_MILLISECONDS);
}

fn set_delay(milliseconds: c_long) {
    // SAFETY: an option is one number that the allocator reads when it needs it; it may be set at any time.
    unsafe { mi_option_set(PURGE_DELAY, milliseconds) }
}

#[cfg(test)]
mod tests {
    use libmimalloc_sys::mi_option_get;

    use super::*;

    #[test]
    fn the_option_is_the_delay() {
        // SAFETY: reads a number.
        let get = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(get(), DEFAULT_MILLISECONDS, "the delay that mimalloc starts with");
        give_back_soon(0);
        assert_eq!(get(), LEAST_MILLISECONDS);
        give_back_soon(100 << 20);
        assert_eq!(get(), 100);
        give_back_late();
        assert_eq!(get(), DEFAULT_MILLISECONDS);
    }
}
