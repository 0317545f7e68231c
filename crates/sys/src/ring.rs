//! The ring that the kernel writes perf records to.
//!
//! ```text
//! page 0: control (head, tail)   pages 1..=n: records, each with an 8-byte header, wrapping around
//! ```
//!
//! The kernel moves the head, the reader moves the tail; both only grow. What is between them belongs to the reader:
//! the mapping is writable, so the kernel never writes over what was not released.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags};
use perf_event_open_sys::bindings as raw;

const PAGE: usize = 4096;
const HEADER: usize = 8;

/// A mapped ring of one perf event.
#[derive(Debug)]
pub struct Ring {
    base: NonNull<u8>,
    /// Bytes of records; a power of two.
    size: usize,
    /// A record that wraps around is put together here.
    joined: Vec<u8>,
}

// SAFETY: the mapping belongs to the ring alone and is not tied to the thread that made it.
unsafe impl Send for Ring {}

/// One record, without its header.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// `PERF_RECORD_*`.
    pub kind: u32,
    /// `PERF_RECORD_MISC_*`.
    pub misc: u16,
    pub body: &'a [u8],
}

impl Ring {
    pub(crate) fn map(event: BorrowedFd<'_>, pages: usize) -> io::Result<Ring> {
        let size = pages.checked_mul(PAGE).filter(|_| pages.is_power_of_two());
        let size = size.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let length =
            std::num::NonZeroUsize::new(size + PAGE).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a fresh mapping at an address that the kernel chooses; it is unmapped in `drop` only, and nothing
        // that borrows from it outlives the ring.
        let base = unsafe { nix::sys::mman::mmap(None, length, access, MapFlags::MAP_SHARED, event, 0)? };
        Ok(Ring { base: base.cast(), size, joined: Vec::new() })
    }

    fn control(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page is a `perf_event_mmap_page`, mapped as long as `self` lives; the two words used are
        // aligned, and the kernel too accesses them only as atomic words.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// Nothing waits to be read.
    pub fn is_empty(&self) -> bool {
        let word = |offset| self.control(offset).load(Ordering::Acquire);
        word(std::mem::offset_of!(raw::perf_event_mmap_page, data_head))
            == word(std::mem::offset_of!(raw::perf_event_mmap_page, data_tail))
    }

    /// Shows `visit` all records that are there, and releases them.
    pub fn drain(&mut self, mut visit: impl FnMut(Record<'_>)) {
        let head = self.control(std::mem::offset_of!(raw::perf_event_mmap_page, data_head)).load(Ordering::Acquire);
        let tail_at = std::mem::offset_of!(raw::perf_event_mmap_page, data_tail);
        let mut tail = self.control(tail_at).load(Ordering::Relaxed);
        // SAFETY: the pages behind the first are `size` bytes of records. Those between tail and head are complete,
        // and the kernel writes none of them until the tail is moved, which happens below when the slice is gone.
        let records = unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(PAGE), self.size) };
        while head.wrapping_sub(tail) >= HEADER as u64 {
            let start = tail as usize & (self.size - 1);
            let header = &records[start..start + HEADER];
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let misc = u16::from_ne_bytes([header[4], header[5]]);
            let length = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            if length < HEADER || length as u64 > head.wrapping_sub(tail) {
                // Not the kernel's doing; nothing behind it can be trusted.
                tail = head;
                break;
            }
            let end = start + length;
            let body = match records.get(start + HEADER..end) {
                Some(body) => body,
                None => {
                    self.joined.clear();
                    self.joined.extend_from_slice(records.get(start + HEADER..).unwrap_or_default());
                    self.joined.extend_from_slice(&records[..end - self.size]);
                    &self.joined
                }
            };
            visit(Record { kind, misc, body });
            tail = tail.wrapping_add(length as u64);
        }
        self.control(tail_at).store(tail, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `map`, which nothing refers to any more. Failure would leave it mapped.
        let _ = unsafe { nix::sys::mman::munmap(self.base.cast(), self.size + PAGE) };
    }
}
