//! What the kernel puts on a thread's stack when it runs the handler of a signal.

use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::fs;

/// Return address, context and what is known of the signal: `struct rt_sigframe`.
const WITHOUT_VECTORS: u64 = 440;
/// What every processor has of floating point and vector registers.
const OLDEST_VECTORS: u64 = 512;
/// State of this size or more has parts (tiles) that threads without leave to use them do not have.
const WITH_TILES: u64 = 4096;
const XSAVE_LEAF: u32 = 0xd;

/// Bytes that the kernel puts there at the very least. Before Linux 4.6 threads without vectors had none saved, so of
/// kernels before 5 nothing is promised but that which all have.
pub fn least_signal_frame() -> u64 {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let major: u32 = release.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    if major < 5 {
        return WITHOUT_VECTORS;
    }
    WITHOUT_VECTORS + vectors()
}

fn vectors() -> u64 {
    if __cpuid(0).eax < XSAVE_LEAF {
        return OLDEST_VECTORS;
    }
    // All state that the kernel has enabled.
    match __cpuid_count(XSAVE_LEAF, 0).ebx.into() {
        enabled @ OLDEST_VECTORS..WITH_TILES => enabled,
        _ => OLDEST_VECTORS,
    }
}
