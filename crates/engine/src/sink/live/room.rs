//! New memory in a process, near the code that leads to it.
//!
//! ```text
//! region: | code, r-x | data, rw- |    mapped by the process itself, from an empty memory file named lancet
//! ```
//!
//! A region lies in a gap within reach of a 32-bit distance from the code: below it if possible, since what is above a
//! program is its heap, which grows. Regions are private memory, so a process that forks gives its child a copy. They are
//! never unmapped: nobody can know that no thread will return there.
//!
//! Where a region will be is written to the journal before the process is asked for it. If Lancet is killed in between,
//! a later one finds the region there, or nothing.

use std::fs;
use std::ops::Range;
use std::time::Duration;

use lancet_isa::Avma;

use super::LiveError;
use super::call::{Call, Caller, SCRATCH_BYTES};
use super::journal::{Content, Expected, Journal, Region};
use super::memory::Memory;
use super::threads::{Stopped, StoppedThread, with_all_stopped};
use crate::image::{Process, maps};

const PAGE: u64 = 4096;
/// A margin is left for the size of the code itself.
const REACH: u64 = (1 << 31) - (64 << 20);
/// Nothing is mapped below, for safety of null pointers.
const LOWEST: u64 = 0x10000;
const HIGHEST: u64 = 0x7fff_ffff_0000;
/// Distance to neighbours: stacks and heaps want to grow.
const GUARD: u64 = 16 * PAGE;

const SYS_MMAP: u64 = 9;
const SYS_MPROTECT: u64 = 10;
const SYS_CLOSE: u64 = 3;
const SYS_FTRUNCATE: u64 = 77;
const SYS_MEMFD_CREATE: u64 = 319;
const PROT_READ_WRITE: u64 = 3;
const PROT_READ_EXEC: u64 = 5;
const MAP_PRIVATE_NOREPLACE: u64 = 0x2 | 0x10_0000;
const MFD_CLOEXEC: u64 = 1;
const EXISTS: i64 = -17;
const MOST_TRIES: usize = 16;

pub(super) fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE) * PAGE
}

/// What a region's mapping is called in /proc/PID/maps, and its file in /proc/PID/fd.
const NAME: &str = "/memfd:lancet";

/// Makes a region for `code` and `data` bytes within reach of `near`. The journal is not saved with it yet.
pub(super) fn make<'j>(
    pid: u32,
    memory: &Memory,
    journal: &'j mut Journal,
    near: Avma,
    code: u64,
    data: u64,
) -> Result<&'j mut Region, LiveError> {
    let (code, data) = (pages(code), pages(data));
    let len = code.checked_add(data).filter(|len| *len < REACH).unwrap_or(REACH);
    let no_room = || LiveError::NoRoom { pid, bytes: len, near };
    let mut expect = |avoid: &[Range<u64>]| {
        let start = gap(&mapped(pid)?, near, len, avoid).ok_or_else(no_room)?;
        journal.content.expected = Some(Expected { start, code, data });
        journal.save().map(|()| start)
    };
    let mut free = expect(&[])?;
    let caller = caller(pid, memory)?;
    let call = |number, arguments| caller.call(&Call { number, arguments });
    // A file gives the mapping a name that everybody sees in /proc/PID/maps; its pages stay private to the process.
    let file = call(SYS_MEMFD_CREATE, [caller.text("lancet")?, MFD_CLOEXEC, 0, 0, 0, 0])?;
    check(pid, "it cannot make a memory file", file)?;
    let file = file.cast_unsigned();
    check(pid, "it cannot make a memory file", call(SYS_FTRUNCATE, [file, len, 0, 0, 0, 0])?)?;
    let mut avoid = Vec::new();
    let mut result = EXISTS;
    // Taken since it was looked at: again elsewhere.
    while result == EXISTS && avoid.len() < MOST_TRIES {
        if !avoid.is_empty() {
            free = expect(&avoid)?;
        }
        result = call(SYS_MMAP, [free, len, PROT_READ_EXEC, MAP_PRIVATE_NOREPLACE, file, 0])?;
        avoid.push(free..free + len);
    }
    call(SYS_CLOSE, [file, 0, 0, 0, 0, 0])?;
    check(pid, "it cannot map memory", result)?;
    let start = result.cast_unsigned();
    if data > 0 {
        let protected = call(SYS_MPROTECT, [start + code, data, PROT_READ_WRITE, 0, 0, 0])?;
        check(pid, "its new memory cannot be made writable", protected)?;
    }
    journal.content.expected = None;
    let regions = &mut journal.content.regions;
    regions.push(Region { start, code, data, code_used: 0, data_used: 0 });
    let last = regions.len() - 1;
    Ok(&mut regions[last])
}

/// Finds out what became of memory that an earlier Lancet asked for, and closes the file that it came from.
pub(super) fn settle(pid: u32, memory: &Memory, journal: &mut Journal) -> Result<(), LiveError> {
    let Some(expected) = journal.content.expected else { return Ok(()) };
    // Changes can be taken back all the same.
    let Ok(caller) = caller(pid, memory) else { return Ok(()) };
    for file in leaked_files(pid) {
        caller.call(&Call { number: SYS_CLOSE, arguments: [file, 0, 0, 0, 0, 0] })?;
    }
    if is_there(pid, &expected)? {
        let Expected { start, code, data } = expected;
        let protect = Call { number: SYS_MPROTECT, arguments: [start + code, data, PROT_READ_WRITE, 0, 0, 0] };
        check(pid, "its new memory cannot be made writable", caller.call(&protect)?)?;
        journal.content.regions.push(Region { start, code, data, code_used: 0, data_used: 0 });
    }
    journal.content.expected = None;
    journal.save()
}

/// The process has got the memory.
pub(super) fn is_there(pid: u32, expected: &Expected) -> Result<bool, LiveError> {
    Ok(starts(pid)?.contains(&expected.start))
}

/// Forgets everything if the process runs another program by now: that began with new memory, in which nothing of the
/// old is left. Its number and the time at which it started are the same.
pub(super) fn forget_other_program(pid: u32, content: &mut Content) -> Result<(), LiveError> {
    if content.regions.is_empty() {
        return Ok(());
    }
    let there = starts(pid)?;
    if !content.regions.iter().any(|region| there.contains(&region.start)) {
        let Content { regions, expected, patches, placed, .. } = content;
        regions.clear();
        patches.clear();
        placed.clear();
        *expected = None;
    }
    Ok(())
}

/// Where memory that came from Lancet starts in a process.
fn starts(pid: u32) -> Result<Vec<u64>, LiveError> {
    let text = fs::read(format!("/proc/{pid}/maps")).map_err(|_| LiveError::Ended { pid })?;
    let list = maps::parse(&String::from_utf8_lossy(&text));
    Ok(list.iter().filter(|mapping| mapping.name == NAME).map(|mapping| mapping.range.start.0).collect())
}

/// Open files of the process that only Lancet can have opened.
fn leaked_files(pid: u32) -> Vec<u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let is_ours = |path: &std::path::Path| fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with(NAME));
    let ours = entries.filter(|entry| is_ours(&entry.path()));
    ours.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// A thread that makes calls for Lancet.
pub(super) fn caller(pid: u32, memory: &Memory) -> Result<Caller<'_>, LiveError> {
    refuse_seccomp(pid)?;
    let scratch = scratch(pid)?;
    wait_until_unused(pid, scratch)?;
    Caller::new(pid, memory, scratch)
}

/// A filter of system calls might kill a process for a call that Lancet makes it make.
fn refuse_seccomp(pid: u32) -> Result<(), LiveError> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).map_err(|_| LiveError::Ended { pid })?;
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:")).map_or("0", str::trim);
    match mode {
        "0" => Ok(()),
        mode => {
            let why = format!(
                "its system calls are filtered (Seccomp: {mode} in /proc/{pid}/status), and one that Lancet needs might kill it"
            );
            Err(LiveError::Refused { pid, why })
        }
    }
}

/// A thread may still be on its way through the instructions there if an earlier Lancet was killed.
fn wait_until_unused(pid: u32, scratch: Avma) -> Result<(), LiveError> {
    for _ in 0..MOST_TRIES {
        let is_inside =
            |thread: &StoppedThread| thread.ip().is_some_and(|ip| ip >= scratch && ip < scratch + SCRATCH_BYTES);
        if !with_all_stopped(pid, |stopped: Stopped| Ok(stopped.threads().iter().any(is_inside)))? {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(LiveError::Busy { pid, at: scratch })
}

pub(super) fn check(pid: u32, what: &str, result: i64) -> Result<(), LiveError> {
    if (-4095..0).contains(&result) {
        let cause = std::io::Error::from_raw_os_error(-result as i32);
        return Err(LiveError::System { pid, what: what.into(), cause });
    }
    Ok(())
}

pub(super) fn mappings(pid: u32) -> Result<Vec<maps::Mapping>, LiveError> {
    let text = fs::read(format!("/proc/{pid}/maps")).map_err(|_| LiveError::Ended { pid })?;
    let list = maps::parse(&String::from_utf8_lossy(&text));
    // A process that has ended, and that nobody has taken note of yet, has none.
    if list.is_empty() { Err(LiveError::Ended { pid }) } else { Ok(list) }
}

fn mapped(pid: u32) -> Result<Vec<Range<u64>>, LiveError> {
    Ok(mappings(pid)?.into_iter().map(|mapping| mapping.range.start.0..mapping.range.end.0).collect())
}

/// The start of a free range near an address: the nearest below, else the farthest above.
fn gap(mapped: &[Range<u64>], near: Avma, len: u64, avoid: &[Range<u64>]) -> Option<u64> {
    let mut taken: Vec<Range<u64>> = mapped.iter().chain(avoid).cloned().collect();
    taken.sort_by_key(|range| range.start);
    let (lowest, highest) = (near.0.saturating_sub(REACH).max(LOWEST), near.0.saturating_add(REACH).min(HIGHEST));
    let mut gaps = Vec::new();
    let mut from = LOWEST;
    for range in &taken {
        if range.start > from {
            gaps.push(from..range.start);
        }
        from = from.max(range.end);
    }
    gaps.push(from..HIGHEST.max(from));
    let usable = gaps.into_iter().filter_map(|gap| {
        let start = gap.start.saturating_add(GUARD).max(lowest).div_ceil(PAGE) * PAGE;
        let end = gap.end.saturating_sub(GUARD).min(highest) / PAGE * PAGE;
        (end > start && end - start >= len).then_some(start..end)
    });
    let usable: Vec<Range<u64>> = usable.collect();
    let below = usable.iter().filter(|gap| gap.end <= near.0).max_by_key(|gap| gap.end);
    let above = usable.iter().filter(|gap| gap.start > near.0).max_by_key(|gap| gap.end);
    below.or(above).map(|gap| gap.end - len)
}

/// Bytes that are mapped executable and that nothing runs: behind the end of a code segment, up to the end of its page.
fn scratch(pid: u32) -> Result<Avma, LiveError> {
    let process = Process::open(pid)?;
    for object in process.objects() {
        for segment in object.image.segments().iter().filter(|segment| segment.executable) {
            let end = segment.svma.0.wrapping_add(segment.file_size.max(segment.mem_size));
            let room = end.next_multiple_of(PAGE) - end;
            let at = end.next_multiple_of(16);
            if room >= SCRATCH_BYTES + 16 && object.path != "[vdso]" {
                return Ok(object.to_avma(lancet_isa::Svma(at)));
            }
        }
    }
    let why = "no object has room behind its code for a system call";
    Err(LiveError::Refused { pid, why: why.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_if_possible_else_high_above() {
        let mapped = [0x5000_0000_0000..0x5000_0010_0000, 0x5000_0100_0000..0x5000_0200_0000];
        let near = Avma(0x5000_0000_8000);
        let start = gap(&mapped, near, 0x10000, &[]).expect("room");
        assert!(start + 0x10000 <= 0x5000_0000_0000 - GUARD && near.0 - start < REACH);
        let avoid = 0x4000_0000_0000..0x5000_0000_0000;
        let start = gap(&mapped, near, 0x10000, std::slice::from_ref(&avoid)).expect("room");
        assert!(start > 0x5000_0200_0000 && start + 0x10000 - near.0 <= REACH);
        let full = [LOWEST..0x5000_0000_0000, 0x5000_0000_0000..HIGHEST];
        assert_eq!(gap(&full, near, PAGE, &[]), None);
    }
}
