//! What is done with a fuzzed input: the fuzz targets and the test that replays old findings share it.
//!
//! Whatever the bytes are, everything must return without a panic, and what comes out must hang together. The second
//! is asserted here, so that the fuzzer finds wrong results too, not only crashes.

use std::hint::black_box;
use std::sync::Arc;

use lancet_engine::image::Image;
use lancet_engine::program::{Func, Program};
use lancet_isa::Svma;

/// Reads the bytes as a file, and asks everything about it.
#[allow(dead_code)] // each target uses one of the two
pub fn image(bytes: &[u8]) {
    let Ok(image) = Image::from_bytes("fuzzed", bytes.to_vec()) else { return };
    black_box((image.name(), image.kind(), image.entry(), image.isa().facts()));
    for section in image.sections() {
        black_box(image.section(&section.name));
    }
    for segment in image.segments() {
        black_box((image.bytes_from(segment.svma), image.bytes(segment.svma, u64::MAX), image.is_code(segment.svma)));
    }
    for range in image.code_ranges() {
        assert!(image.bytes(range.start, range.len).is_some(), "a code range without bytes at {}", range.start);
        black_box((range.end(), image.code_range_at(range.start), image.pointer_at(range.start)));
    }
    for symbol in image.symbols() {
        black_box((image.symbol_name(symbol), image.symbols_at(symbol.svma)));
    }
    for relocation in image.relocations() {
        black_box((image.relocation_at(relocation.place), image.slot_name(relocation.place)));
        black_box(image.pointer_at(relocation.place));
    }
    for fde in image.fdes() {
        black_box((image.fde_at(fde.start), image.cie(fde), image.cfa_at(fde.start)));
        black_box((image.cfa_rows(fde), image.landing_pads(fde)));
        black_box(image.source_line(fde.start));
    }
    black_box((image.init_functions(), image.imports().count(), image.needed().count(), image.problems()));
    black_box((image.build_id(), image.soname(), image.interpreter(), image.dynamic_symbol(1)));
    black_box((image.dwarf().is_some(), image.source_line(Svma(0))));
}

/// Analyses the bytes: as a file if they are one, else as code and data of a made-up file.
#[allow(dead_code)]
pub fn program(bytes: &[u8]) {
    let as_file = Image::from_bytes("fuzzed", bytes.to_vec());
    let Ok(image) = as_file.or_else(|_| Image::from_bytes("fuzzed", elf_around(bytes))) else { return };
    let program = Program::analyse(Arc::new(image));
    for func in program.funcs() {
        check_func(&program, func);
    }
}

fn check_func(program: &Program, func: &Func) {
    let entry = func.entry;
    assert!(func.blocks.windows(2).all(|pair| pair[0].start < pair[1].start), "{entry}: blocks are not in order");
    for id in func.block_ids() {
        let block = func.block(id);
        let insns = program.insns(block);
        let bytes: u64 = insns.iter().map(|insn| u64::from(insn.len)).sum();
        assert_eq!(bytes, u64::from(block.len), "{entry}: the block at {} is not made of instructions", block.start);
        assert_eq!(insns.len(), block.insns as usize, "{entry}: the block at {}", block.start);
        // Hostile code may jump into the middle of an instruction: blocks overlap then, but never in step.
        let joins = insns.iter().skip(1).find(|insn| func.block_starting_at(insn.at).is_some());
        assert!(joins.is_none(), "{entry}: the block at {} is not cut where another starts", block.start);
        assert!(
            func.parts.iter().any(|part| part.start <= block.start && block.end() <= part.end),
            "{entry}: the block at {} is in no part",
            block.start
        );
        assert!(func.successors(id).iter().all(|edge| edge.from == id && (edge.to.0 as usize) < func.blocks.len()));
        assert_eq!(program.live_before(func, id).len(), insns.len());
        black_box((func.exits_of(id).count(), func.call_of(id), func.live_in(id), func.live_out(id)));
    }
    black_box((program.symbol_name(func), func.size(), program.func_at(entry)));
}

const CODE: u64 = 0x40_0000;
const DATA: u64 = 0x80_0000;

/// An executable whose code is the first half of the bytes, entered at its start, and whose constants are the rest.
fn elf_around(bytes: &[u8]) -> Vec<u8> {
    const HEADERS: u64 = 64 + 2 * 56;
    let (code, data) = bytes.split_at(bytes.len() / 2);
    let (code_size, data_size) = (code.len() as u64, data.len() as u64);
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let half = |file: &mut Vec<u8>, values: &[u16]| values.iter().for_each(|v| file.extend(v.to_le_bytes()));
    let word = |file: &mut Vec<u8>, values: &[u32]| values.iter().for_each(|v| file.extend(v.to_le_bytes()));
    let long = |file: &mut Vec<u8>, values: &[u64]| values.iter().for_each(|v| file.extend(v.to_le_bytes()));
    half(&mut file, &[2, 62]); // ET_EXEC, EM_X86_64
    word(&mut file, &[1]);
    long(&mut file, &[CODE, 64, 0]); // entry, program headers, no section headers
    word(&mut file, &[0]);
    half(&mut file, &[64, 56, 2, 64, 0, 0]);
    word(&mut file, &[1, 5]); // PT_LOAD, read and execute
    long(&mut file, &[HEADERS, CODE, CODE, code_size, code_size, 1]);
    word(&mut file, &[1, 4]); // PT_LOAD, read
    long(&mut file, &[HEADERS + code_size, DATA, DATA, data_size, data_size, 1]);
    file.extend_from_slice(code);
    file.extend_from_slice(data);
    file
}
