//! Overwritten bytes, pointers that lead elsewhere, and unwind tables that stand elsewhere.

use lancet_engine::image::Image;
use lancet_engine::layout::{Overwrite, Patch, Repoint};
use lancet_engine::sink::elf_writer::{SinkError, write_to_vec};
use lancet_isa::Svma;

use crate::patches::first_free;
use crate::support::{Bench, open};

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
