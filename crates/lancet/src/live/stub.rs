//! Code at a function's entry and at its return that times each call.
//!
//! ```text
//! entry ─jump─> is somebody being timed, or is the memory full? ─────────────────────┐
//!               keep the return address, read the clock, call ─> the instructions under the jump ─> the rest of it
//!               read the clock, note the difference, return where the call came from <─return───────────┘
//! ```
//!
//! The timed call takes the place of the original one on the stack, so the processor foresees both returns. One call is
//! timed at a time, so nothing needs to be known of threads: calls inside a timed one, and in other threads meanwhile, are
//! not timed. The clock is read last when all that the call did is done; it is first read when the call is under way, so
//! what the caller left unfinished counts, too, which is a matter of nanoseconds. Flags are free at both places, and so is
//! the stack below the pointer. If Lancet is gone the code stops timing when its memory is full, and a call that is under
//! way still finds its way back.

use lancet_isa::Avma;

/// What the code keeps, in front of the times.
const BUSY: u64 = 0;
const INDEX: u64 = 8;
const RETURN: u64 = 16;
const BEGIN: u64 = 24;
const CAPACITY: u64 = 32;
pub(super) const TIMES: u64 = 64;
/// The code is shorter.
pub(super) const MOST_CODE: u64 = 256;
/// Bytes for so many times.
pub(super) fn data_size(capacity: u64) -> u64 {
    TIMES + capacity * 8
}

/// What the memory holds before the first call.
pub(super) fn fresh(capacity: u64) -> Vec<u8> {
    let mut bytes = vec![0; TIMES as usize];
    bytes[CAPACITY as usize..CAPACITY as usize + 8].copy_from_slice(&capacity.to_le_bytes());
    bytes
}

/// How many calls were timed, from the memory.
pub(super) fn count(header: &[u8]) -> u64 {
    let word = header.get(INDEX as usize..INDEX as usize + 8).and_then(|word| word.try_into().ok());
    word.map_or(0, u64::from_le_bytes)
}

/// Code at a known address, with distances to memory.
struct Writer {
    at: Avma,
    code: Vec<u8>,
}

impl Writer {
    fn raw(&mut self, bytes: &[u8]) {
        self.code.extend_from_slice(bytes);
    }

    /// An instruction that ends in the distance to an address, or in `behind` more bytes after it.
    fn refer(&mut self, opcode: &[u8], to: Avma, behind: &[u8]) {
        self.raw(opcode);
        let next = self.at + (self.code.len() + 4 + behind.len()) as u64;
        self.raw(&(to.0.wrapping_sub(next.0) as u32).to_le_bytes());
        self.raw(behind);
    }

    /// A short conditional jump to a place that is not known yet.
    fn skip(&mut self, opcode: u8) -> usize {
        self.raw(&[opcode, 0]);
        self.code.len()
    }

    fn land(&mut self, from: usize) {
        let distance = self.code.len() - from;
        debug_assert!(distance < 128, "too far for a short jump");
        self.code[from - 1] = distance as u8;
    }
}

/// Code to be put at `at`, where the instructions under the jump follow it.
pub(super) struct Timing {
    pub code: Vec<u8>,
    /// Where the jump at the function's entry leads to.
    pub entry: Avma,
}

pub(super) fn timing(at: Avma, data: Avma) -> Timing {
    // What it is long does not depend on where anything is.
    let draft = write(at, data, at);
    write(at, data, at + draft.code.len() as u64)
}

fn write(at: Avma, data: Avma, displaced: Avma) -> Timing {
    let mut w = Writer { at, code: Vec::new() };
    w.raw(&[0x50, 0x52]); // push rax, rdx
    w.raw(&[0xb8, 1, 0, 0, 0]); // mov eax, 1
    w.refer(&[0x87, 0x05], data + BUSY, &[]); // xchg [busy], eax
    w.raw(&[0x85, 0xc0]); // test eax, eax
    let busy = w.skip(0x75); // jnz
    w.raw(&[0x48, 0x8b, 0x44, 0x24, 0x10]); // mov rax, [rsp + 16]
    w.refer(&[0x48, 0x89, 0x05], data + RETURN, &[]); // mov [return], rax
    w.raw(&[0x0f, 0x31]); // rdtsc
    w.raw(&[0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0]); // shl rdx, 32; or rax, rdx
    w.refer(&[0x48, 0x89, 0x05], data + BEGIN, &[]); // mov [begin], rax
    w.raw(&[0x5a, 0x58]); // pop rdx, rax
    w.raw(&[0x48, 0x8d, 0x64, 0x24, 0x08]); // lea rsp, [rsp + 8]
    w.refer(&[0xe8], displaced, &[]); // call
    w.refer(&[0xff, 0x35], data + RETURN, &[]); // push [return]
    w.raw(&[0x50, 0x52, 0x51]); // push rax, rdx, rcx
    w.raw(&[0x0f, 0xae, 0xe8, 0x0f, 0x31]); // lfence, rdtsc
    w.raw(&[0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0]); // shl rdx, 32; or rax, rdx
    w.refer(&[0x48, 0x2b, 0x05], data + BEGIN, &[]); // sub rax, [begin]
    w.refer(&[0x48, 0x8b, 0x0d], data + INDEX, &[]); // mov rcx, [index]
    w.refer(&[0x48, 0x8d, 0x15], data + TIMES, &[]); // lea rdx, [times]
    w.raw(&[0x48, 0x89, 0x04, 0xca]); // mov [rdx + rcx * 8], rax
    w.raw(&[0x48, 0xff, 0xc1]); // inc rcx
    w.refer(&[0x48, 0x89, 0x0d], data + INDEX, &[]); // mov [index], rcx
    w.raw(&[0x31, 0xc0]); // xor eax, eax
    w.refer(&[0x48, 0x3b, 0x0d], data + CAPACITY, &[]); // cmp rcx, [capacity]
    w.raw(&[0x0f, 0x93, 0xc0]); // setae al: nobody is timed any more
    w.refer(&[0x89, 0x05], data + BUSY, &[]); // mov [busy], eax
    w.raw(&[0x59, 0x5a, 0x58, 0xc3]); // pop rcx, rdx, rax; ret
    w.land(busy);
    w.raw(&[0x5a, 0x58]); // pop rdx, rax
    w.refer(&[0xe9], displaced, &[]); // jmp
    let entry = at + w.code.len() as u64;
    w.refer(&[0x83, 0x3d], data + BUSY, &[0]); // cmp dword [busy], 0
    w.refer(&[0x0f, 0x84], at, &[]); // je
    Timing { code: w.code, entry }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::listing;

    fn text(code: &[u8], at: u64) -> Vec<String> {
        listing::of(code, at).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn it_decodes_and_refers_to_its_memory() {
        let (at, data) = (Avma(0x1000), Avma(0x9000));
        let timing = timing(at, data);
        assert!(timing.code.len() as u64 <= MOST_CODE);
        let lines = text(&timing.code, 0x1000);
        assert_eq!(lines.iter().filter(|line| line.contains("rdtsc")).count(), 2);
        assert!(lines.iter().any(|line| line.contains("9018h") || line.contains("0x9018")), "{lines:#?}");
        // Called when timed and jumped to when not: what follows.
        let behind = format!("{:x}", at.0 + timing.code.len() as u64);
        let led = lines.iter().filter(|line| line.starts_with("call") || line.starts_with("jmp"));
        assert_eq!(led.filter(|line| line.contains(&behind)).count(), 2, "{lines:#?}");
        let entry = text(&timing.code[(timing.entry.0 - at.0) as usize..], timing.entry.0);
        assert!(entry.len() == 2 && entry[0].starts_with("cmp") && entry[1].starts_with("je"), "{entry:#?}");
        assert!(entry[1].contains("1000"), "{entry:#?}");
    }
}
