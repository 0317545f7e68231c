//! Code at a function's entry and at its return that times each call.
//!
//! ```text
//! entry ─jump─> begin: nobody is being timed, and there is room?
//!                 keep the return address, put `end` in its place, read the clock
//!               the instructions under the jump ─> the rest of the function ─return─> end:
//!                 read the clock, note the difference, go where the call came from
//! ```
//!
//! One call is timed at a time, so nothing needs to be known of threads: calls inside a timed one, and in other threads
//! meanwhile, are not timed. Flags are free at both places, and so is the stack below the pointer. If Lancet is gone the
//! code stops timing when its memory is full, and a call that is under way still finds its way back.

use lancet_isa::Avma;

/// What the code keeps, in front of the times.
const BUSY: u64 = 0;
const INDEX: u64 = 8;
const RETURN: u64 = 16;
const BEGIN: u64 = 24;
const CAPACITY: u64 = 32;
pub(super) const TIMES: u64 = 64;
/// Threads that saw room at the same moment may each add one.
const SPARE: u64 = 64;

/// Bytes for so many times.
pub(super) fn data_size(capacity: u64) -> u64 {
    TIMES + (capacity + SPARE) * 8
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
        self.code[from - 1] = (self.code.len() - from) as u8;
    }
}

/// The part before the instructions under the jump. `end` is where the other part will be.
pub(super) fn begin(at: Avma, data: Avma, end: Avma) -> Vec<u8> {
    let mut w = Writer { at, code: Vec::new() };
    w.raw(&[0x50, 0x52]); // push rax, rdx
    w.refer(&[0x48, 0x8b, 0x05], data + INDEX, &[]); // mov rax, [index]
    w.refer(&[0x48, 0x3b, 0x05], data + CAPACITY, &[]); // cmp rax, [capacity]
    let full = w.skip(0x73); // jae
    w.raw(&[0xb8, 1, 0, 0, 0]); // mov eax, 1
    w.refer(&[0x87, 0x05], data + BUSY, &[]); // xchg [busy], eax
    w.raw(&[0x85, 0xc0]); // test eax, eax
    let busy = w.skip(0x75); // jnz
    w.raw(&[0x48, 0x8b, 0x44, 0x24, 0x10]); // mov rax, [rsp + 16]
    w.refer(&[0x48, 0x89, 0x05], data + RETURN, &[]); // mov [return], rax
    w.refer(&[0x48, 0x8d, 0x05], end, &[]); // lea rax, [end]
    w.raw(&[0x48, 0x89, 0x44, 0x24, 0x10]); // mov [rsp + 16], rax
    w.raw(&[0x0f, 0xae, 0xe8, 0x0f, 0x31]); // lfence, rdtsc
    w.raw(&[0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0]); // shl rdx, 32; or rax, rdx
    w.refer(&[0x48, 0x89, 0x05], data + BEGIN, &[]); // mov [begin], rax
    w.land(full);
    w.land(busy);
    w.raw(&[0x5a, 0x58]); // pop rdx, rax
    w.code
}

/// The part that a timed call returns to.
pub(super) fn end(at: Avma, data: Avma) -> Vec<u8> {
    let mut w = Writer { at, code: Vec::new() };
    w.raw(&[0x6a, 0, 0x50, 0x52, 0x51]); // push 0, rax, rdx, rcx
    w.raw(&[0x0f, 0x01, 0xf9]); // rdtscp
    w.raw(&[0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0]); // shl rdx, 32; or rax, rdx
    w.refer(&[0x48, 0x2b, 0x05], data + BEGIN, &[]); // sub rax, [begin]
    w.refer(&[0x48, 0x8b, 0x0d], data + INDEX, &[]); // mov rcx, [index]
    w.refer(&[0x48, 0x8d, 0x15], data + TIMES, &[]); // lea rdx, [times]
    w.raw(&[0x48, 0x89, 0x04, 0xca]); // mov [rdx + rcx * 8], rax
    w.refer(&[0x48, 0xff, 0x05], data + INDEX, &[]); // inc qword [index]
    w.refer(&[0x48, 0x8b, 0x05], data + RETURN, &[]); // mov rax, [return]
    w.raw(&[0x48, 0x89, 0x44, 0x24, 0x18]); // mov [rsp + 24], rax
    w.refer(&[0xc7, 0x05], data + BUSY, &[0, 0, 0, 0]); // mov dword [busy], 0
    w.raw(&[0x59, 0x5a, 0x58, 0xc3]); // pop rcx, rdx, rax; ret
    w.code
}

#[cfg(test)]
mod tests {
    use super::*;
    use lancet_isa::{Svma, Syntax, for_elf_machine};

    fn text(code: &[u8], at: u64) -> Vec<String> {
        let isa = for_elf_machine(62).expect("x86-64");
        let mut lines = Vec::new();
        isa.listing(code, Svma(at), Syntax::Vendor, &|_| None, &mut |line| lines.push(line.text.to_owned()));
        lines
    }

    #[test]
    fn both_parts_decode_and_refer_to_their_memory() {
        let (at, data) = (Avma(0x1000), Avma(0x9000));
        let lines = text(&begin(at, data, Avma(0x1100)), 0x1000);
        assert!(lines.iter().all(|line| !line.contains("bad")), "{lines:#?}");
        assert_eq!(lines.iter().filter(|line| line.contains("rdtsc")).count(), 1);
        assert!(lines.iter().any(|line| line.contains("9018h") || line.contains("0x9018")), "{lines:#?}");
        // Both ways around the timing lead to the end.
        let around = lines.iter().filter(|line| line.starts_with("jae") || line.starts_with("jne"));
        let targets: Vec<&str> = around.filter_map(|line| line.split_whitespace().last()).collect();
        assert!(targets.len() == 2 && targets[0] == targets[1], "{targets:?}");
        let lines = text(&end(at, data), 0x1000);
        assert!(lines.iter().all(|line| !line.contains("bad")) && lines.last().is_some_and(|line| line == "ret"));
        assert!(
            lines.iter().any(|line| line.starts_with("mov")
                && line.contains("dword")
                && (line.contains("9000h") || line.contains("0x9000"))),
            "{lines:#?}"
        );
    }
}
