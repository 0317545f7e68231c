//! Other processes that run in the same memory.
//!
//! `clone` can make a process that shares its memory and is no thread. It would run on while code is changed that it may be
//! in, so such a target is refused. A child of vfork is one, too, for a short time; its parent does not stop before that is
//! over, so none is left once all threads have stopped.

use std::fs;

use lancet_sys::remote::have_same_memory;

use super::LiveError;

/// Processes with the memory of this one. Looked for before anybody is stopped, because there may be many processes. What
/// the kernel does not tell is taken for a no.
pub(super) fn find(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter(|other| *other != pid && have_same_memory(pid, *other).unwrap_or(false)).collect()
}

/// An error if one of them still is there.
pub(super) fn refuse(pid: u32, sharers: &[u32]) -> Result<(), LiveError> {
    match sharers.iter().find(|other| have_same_memory(pid, **other).unwrap_or(false)) {
        None => Ok(()),
        Some(other) => {
            let why =
                format!("process {other} runs in the same memory (clone with CLONE_VM), and would not stop with it");
            Err(LiveError::Refused { pid, why })
        }
    }
}
