//! Programs that run with new tables: in place of the old ones, and for clones.
//!
//! A real clone needs its code changed. Code that addresses everything absolutely (`-mcmodel=large`, not
//! position-independent) does not, so whole functions can be copied as they are.

use std::path::{Path, PathBuf};
use std::process::Command;

use lancet_engine::image::{Fde, Image};
use lancet_engine::layout::unwind::{Tables, tables};
use lancet_engine::layout::{Chunk, ChunkKind, MovedPiece, NewSection, NewSymbol, Overwrite, Patch, Span};
use lancet_engine::program::{FuncId, Part};
use lancet_engine::sink::elf_writer;
use lancet_isa::Svma;

use super::moves::in_place;
use super::programs::{Bench, C, CPP, OLD_CPP, RUST, open, run};

fn sections(tables: &Tables) -> Vec<NewSection> {
    let parts =
        [(".gcc_except_table", tables.lsdas), (".eh_frame", tables.eh_frame), (".eh_frame_hdr", tables.eh_frame_hdr)];
    let parts = parts.into_iter().filter(|(_, range)| range.size() != 0);
    parts.map(|(name, range)| NewSection { name, range }).collect()
}

fn new_tables(image: &Image, pieces: &[MovedPiece], at: Svma) -> Tables {
    let tables = tables(image, pieces, None, at).unwrap_or_else(|error| panic!("{error}"));
    tables.expect("the program has unwind tables")
}

/// Writes the patched program, which readelf must like.
fn write(image: &Image, patch: &Patch, out: &Path) {
    elf_writer::write(image, patch, out).unwrap_or_else(|error| panic!("{error}"));
    let text = run(Command::new("readelf").args(["-W", "--debug-dump=frames"]).arg(out));
    assert!(text.contains("ZERO terminator"));
}

fn first_free(image: &Image) -> Svma {
    elf_writer::first_free(image).unwrap_or_else(|error| panic!("{error}"))
}

/// Of two entries for the same code, the search table keeps the later one, which is the new one.
fn keep_new_entries(tables: &mut Tables) {
    let start = (tables.eh_frame_hdr.start - tables.lsdas.start) as usize;
    let header = tables.bytes.split_off(start);
    let (head, entries) = header.split_at(12);
    let mut kept: Vec<[u8; 8]> = Vec::new();
    for entry in entries.as_chunks::<8>().0 {
        match kept.last_mut().filter(|last| last[..4] == entry[..4]) {
            Some(last) => *last = *entry,
            None => kept.push(*entry),
        }
    }
    assert!(kept.len() < entries.len() / 8);
    tables.bytes.extend_from_slice(&head[..8]);
    tables.bytes.extend_from_slice(&(kept.len() as u32).to_le_bytes());
    tables.bytes.extend(kept.iter().flatten());
    tables.eh_frame_hdr.end = tables.eh_frame_hdr.start + 12 + 8 * kept.len() as u64;
}

/// Runs a program whose functions all have new entries, though they are where they were.
fn runs_in_place(compiler: &str, source: &str, flags: &[&str]) {
    let bench = Bench::new();
    let program = bench.compile(compiler, source, flags);
    let image = open(&program);
    let at = first_free(&image);
    let mut tables = new_tables(&image, &in_place(&image), at);
    keep_new_entries(&mut tables);
    let patch = Patch {
        sections: sections(&tables),
        eh_frame_hdr: Some(tables.eh_frame_hdr),
        chunks: vec![Chunk { at, bytes: tables.bytes, kind: ChunkKind::Code }],
        ..Patch::default()
    };
    let out = bench.path("patched");
    write(&image, &patch, &out);
    assert_eq!(run(&mut Command::new(&out)), run(&mut Command::new(&program)));
}

#[test]
fn in_place_of_the_old_tables() {
    let cpp = |level| ["-Wno-deprecated", OLD_CPP, level];
    runs_in_place("g++", CPP, &cpp("-O2"));
    runs_in_place("g++", CPP, &[&cpp("-Os")[..], &["-no-pie", "-fno-pie"]].concat());
    runs_in_place("clang++", CPP, &cpp("-O1"));
    runs_in_place("gcc", C, &["-O2", "-fexceptions"]);
    runs_in_place("rustc", RUST, &["-O"]);
}

const JUMP: u64 = 5;

/// Copies functions to new places, far from each other, and leads to them from the old ones.
fn cloned(image: &Image, names: &[&str]) -> Patch {
    let start = first_free(image);
    let (mut code, mut pieces, mut patch) = (Vec::new(), Vec::new(), Patch::default());
    let named = |fde: &Fde| image.name_at(fde.start).is_some_and(|name| names.iter().any(|part| name.contains(part)));
    for (index, fde) in image.fdes().iter().filter(|fde| named(fde)).enumerate() {
        code.resize(code.len() + 1000 * index, 0xcc);
        let new = start + code.len() as u64;
        let old = image.bytes(fde.start, fde.len).expect("code");
        code.extend_from_slice(old);
        pieces.push(MovedPiece {
            counted: Vec::new(),
            func: FuncId(index as u32),
            old_start: fde.start,
            old_end: fde.end(),
            new_start: new,
            body_end: new + fde.len,
            new_end: new + fde.len,
            spans: vec![Span { old: fde.start, begin: new, body: new }],
            asides: Vec::new(),
        });
        let distance = (new - (fde.start + JUMP)) as u32;
        let jump = [&[0xe9][..], &distance.to_le_bytes()].concat();
        patch.overwrites.push(Overwrite { at: fde.start, old: old[..jump.len()].to_vec(), new: jump });
        let name = format!("{}.clone", image.name_at(fde.start).unwrap_or_default());
        patch.symbols.push(NewSymbol { name, at: new, size: fde.len });
    }
    assert_eq!(pieces.len(), names.len());
    let text = Part { start, end: start + code.len() as u64 };
    code.resize(code.len().next_multiple_of(16), 0xcc);
    let tables = new_tables(image, &pieces, start + code.len() as u64);
    code.extend_from_slice(&tables.bytes);
    patch.sections = sections(&tables);
    patch.sections.push(NewSection { name: ".lancet.text", range: text });
    patch.eh_frame_hdr = Some(tables.eh_frame_hdr);
    patch.chunks.push(Chunk { at: start, bytes: code, kind: ChunkKind::Code });
    patch
}

const ABSOLUTE: [&str; 7] = [
    "-O2",
    "-no-pie",
    "-fno-pie",
    "-mcmodel=large",
    "-fno-jump-tables",
    "-fno-reorder-blocks-and-partition",
    "-fcf-protection=none",
];

fn compile_absolute(bench: &Bench) -> PathBuf {
    bench.compile("g++", CPP, &[&["-Wno-deprecated", OLD_CPP], &ABSOLUTE[..]].concat())
}

const FUNCTIONS: [&str; 6] = ["main", "fail", "risky", "narrow", "nothrow", "grow"];

#[test]
fn exceptions_pass_through_clones() {
    let bench = Bench::new();
    let program = compile_absolute(&bench);
    let out = bench.path("patched");
    let image = open(&program);
    write(&image, &cloned(&image, &FUNCTIONS), &out);
    assert_eq!(run(&mut Command::new(&out)), run(&mut Command::new(&program)));
}

#[test]
fn debuggers_see_callers_of_clones() {
    let bench = Bench::new();
    let program = compile_absolute(&bench);
    let out = bench.path("patched");
    let image = open(&program);
    write(&image, &cloned(&image, &FUNCTIONS), &out);
    let script = ["-ex", "break __cxa_throw", "-ex", "run", "-ex", "backtrace"];
    let output = Command::new("gdb").args(["-nx", "-batch"]).args(script).arg(&out).output().expect("gdb runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let callers: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
    assert!(callers.len() > FUNCTIONS.len() - 1, "{text}");
    for (caller, line) in ["__cxa_throw", "fail", "risky", "narrow", "grow", "main"].iter().zip(&callers) {
        // gdb shows what follows a dot as "[clone .clone]".
        let clone = *caller == "__cxa_throw" || line.contains("clone]");
        assert!(line.contains(caller) && clone, "{line}\n{text}");
    }
}
