//! Overwritten bytes, pointers that lead elsewhere, and unwind tables that stand elsewhere.

use lancet_engine::image::Image;
use lancet_engine::layout::{NewSection, Overwrite, Patch, Repoint};
use lancet_engine::program::Part;
use lancet_engine::sink::elf_writer::{SinkError, write_to_vec};
use lancet_isa::Svma;

use crate::patches::{code, first_free};
use crate::support::{Bench, open, run_program};

const PROGRAM: &str = r#"
#include <cstdio>
#include <stdexcept>
extern "C" {
int first() { return 1; }
int second() { return 2; }
int (*volatile pointer)() = first;
char word[] = "old";
}
int main(int argc, char **) {
  try { if (argc) throw std::runtime_error(word); } catch (std::exception &e) { printf("%s %d\n", e.what(), pointer()); }
}
"#;

fn symbol(image: &Image, name: &str) -> Svma {
    let found = image.symbols().iter().find(|symbol| image.symbol_name(symbol) == name);
    found.unwrap_or_else(|| panic!("no symbol {name}")).svma
}

const KINDS: [&[&str]; 5] = [
    &["-pie", "-fPIE"],
    &["-no-pie"],
    &["-static"],
    &["-static-pie", "-fPIE"],
    &["-pie", "-Wl,-z,pack-relative-relocs"],
];

#[test]
fn bytes_and_pointers_change() {
    for flags in KINDS {
        let bench = Bench::new();
        let program = bench.compile("g++", PROGRAM, "program", flags);
        assert_eq!(run_program(&program), "old 1\n");
        let (out, _) = bench.patched(&program, "out", |image| Patch {
            overwrites: vec![Overwrite { at: symbol(image, "word"), old: b"old".into(), new: b"new".into() }],
            repoints: vec![Repoint { place: symbol(image, "pointer"), to: symbol(image, "second") }],
            ..Patch::default()
        });
        assert_eq!(run_program(&out), "new 2\n", "{flags:?}");
    }
}

#[test]
fn wrong_bytes_and_places_are_refused() {
    let bench = Bench::new();
    let image = open(&bench.compile("g++", PROGRAM, "program", &["-pie", "-fPIE"]));
    let word = symbol(&image, "word");
    let error = |patch: Patch| write_to_vec(&image, &patch).expect_err("a bad patch");
    let overwrite = |at, old: &[u8], new: &[u8]| Patch {
        overwrites: vec![Overwrite { at, old: old.into(), new: new.into() }],
        ..Patch::default()
    };
    assert!(matches!(error(overwrite(word, b"odd", b"new")), SinkError::OldBytes { at, .. } if at == word));
    assert!(matches!(error(overwrite(word, b"old", b"longer")), SinkError::BadPatch { .. }));
    assert!(matches!(error(overwrite(first_free(&image), b"x", b"y")), SinkError::BadPatch { .. }));
    let repoint = |place| Patch { repoints: vec![Repoint { place, to: word }], ..Patch::default() };
    assert!(matches!(error(repoint(word)), SinkError::NoPointer { place, .. } if place == word));
}

/// Moves the table of `.eh_frame_hdr` and wipes the old one, so that exceptions are only found through the new.
#[test]
fn unwind_tables_move() {
    for flags in [&["-pie", "-fPIE"][..], &["-no-pie"], &["-static-pie", "-fPIE"], &["-shared-libgcc", "-fuse-ld=lld"]]
    {
        let bench = Bench::new();
        let program = bench.compile("g++", PROGRAM, "program", flags);
        let (out, _) = bench.patched(&program, "out", move_frames);
        assert_eq!(run_program(&out), "old 1\n", "{flags:?}");
        let image = open(&out);
        let names: Vec<&str> = image.sections().iter().map(|section| section.name.as_str()).collect();
        assert!(names.contains(&".eh_frame_hdr.orig") && names.contains(&".eh_frame_hdr"), "{names:?}");
        let old = open(&program);
        let new = image.section(".eh_frame_hdr").expect("the new section");
        assert_eq!(new.svma, first_free(&old));
        assert!(!new.is_executable());
        assert_eq!(image.fdes().len(), old.fdes().len());
    }
}

fn move_frames(image: &Image) -> Patch {
    let section = image.section(".eh_frame_hdr").expect("an unwind table");
    let old = image.bytes(section.svma, section.size).expect("its bytes");
    // Version and encodings: all that follows is relative to this table, as the usual encodings have it.
    assert_eq!(old[..4], [1, 0x1b, 0x03, 0x3b]);
    let to = first_free(image);
    let moved_by = (to - section.svma) as u32;
    let mut new = old.to_vec();
    for (index, field) in new.chunks_exact_mut(4).enumerate().filter(|&(index, _)| index != 0 && index != 2) {
        let value = u32::from_le_bytes(field.try_into().expect("four bytes"));
        assert!(index == 1 || value != 0);
        field.copy_from_slice(&value.wrapping_sub(moved_by).to_le_bytes());
    }
    let range = Part { start: to, end: to + new.len() as u64 };
    Patch {
        chunks: vec![code(to, &new)],
        overwrites: vec![Overwrite { at: section.svma, old: old.to_vec(), new: vec![0; old.len()] }],
        sections: vec![NewSection { name: ".eh_frame_hdr", range }],
        eh_frame_hdr: Some(range),
        ..Patch::default()
    }
}
