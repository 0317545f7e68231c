//! Patches made by hand, with the smallest code that shows that it ran.

use lancet_engine::image::Image;
use lancet_engine::layout::{Chunk, ChunkKind, NewSection, NewSymbol, Patch};
use lancet_engine::program::Part;
use lancet_engine::sink::elf_writer;
use lancet_isa::Svma;

const PAGE: u64 = 0x1000;

pub fn first_free(image: &Image) -> Svma {
    elf_writer::first_free(image).unwrap_or_else(|error| panic!("{error}"))
}

pub fn code(at: Svma, bytes: &[u8]) -> Chunk {
    Chunk { at, bytes: bytes.to_vec(), kind: ChunkKind::Code }
}

/// A chunk that nothing leads to.
pub fn idle(image: &Image) -> Patch {
    Patch { chunks: vec![code(first_free(image), &[0xcc; 100])], ..Patch::default() }
}

/// Code that says something before everything else, from data of its own, and counts in memory that is not in the
/// file. It goes on with what would have run in its place.
pub fn announce(image: &Image, text: &str) -> Patch {
    let at = first_free(image);
    let old = elf_writer::hook(image).unwrap_or_else(|error| panic!("{error}")).old();
    let data = at + PAGE;
    let counter = data + 2 * PAGE;
    let stub = stub(at, data, text.len() as u32, counter, old);
    let end = at + stub.len() as u64;
    let section = |name, start, end| NewSection { name, range: Part { start, end } };
    Patch {
        chunks: vec![
            Chunk { at: data, bytes: text.as_bytes().to_vec(), kind: ChunkKind::Data { size: 3 * PAGE } },
            code(at, &stub),
        ],
        symbols: vec![
            NewSymbol { name: "announce".into(), at, size: stub.len() as u64 },
            NewSymbol { name: "announcements".into(), at: counter, size: 8 },
        ],
        sections: vec![section(".announce.text", at, end), section(".announce.counters", counter, counter + PAGE)],
        start_up: Some(at),
        ..Patch::default()
    }
}

/// x86-64: `counter += 1; write(1, message, length)`, all registers kept, then on to `old`, or back.
fn stub(at: Svma, message: Svma, length: u32, counter: Svma, old: Option<Svma>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let relative = |bytes: &mut Vec<u8>, opcode: &[u8], to: Svma| {
        bytes.extend(opcode);
        let next = at + bytes.len() as u64 + 4;
        bytes.extend(((to - next) as u32).to_le_bytes());
    };
    bytes.extend([0x50, 0x51, 0x52, 0x56, 0x57, 0x41, 0x53]); // push rax, rcx, rdx, rsi, rdi, r11
    relative(&mut bytes, &[0x48, 0xff, 0x05], counter); // inc qword [rip+counter]
    relative(&mut bytes, &[0x48, 0x8d, 0x35], message); // lea rsi, [rip+message]
    bytes.extend([0xb8, 1, 0, 0, 0, 0xbf, 1, 0, 0, 0, 0xba]); // mov eax, 1; mov edi, 1; mov edx, length
    bytes.extend(length.to_le_bytes());
    bytes.extend([0x0f, 0x05]); // syscall
    bytes.extend([0x41, 0x5b, 0x5f, 0x5e, 0x5a, 0x59, 0x58]); // pop all
    match old {
        Some(old) => relative(&mut bytes, &[0xe9], old), // jmp old
        None => bytes.push(0xc3),                        // ret
    }
    bytes
}
