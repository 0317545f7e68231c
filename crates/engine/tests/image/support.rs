//! What the tests of images share.

use std::path::{Path, PathBuf};
use std::process::Command;

use lancet_engine::image::{Image, demangle};
use tempfile::TempDir;

/// A folder to build in, with what was built.
pub struct Built {
    pub folder: TempDir,
    pub path: PathBuf,
}

/// Builds a C++ program with exceptions, constructors and a function pointer table. With an argument it writes one
/// byte and waits for ever.
pub fn build(flags: &[&str]) -> Built {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (source, path) = (folder.path().join("program.cc"), folder.path().join("program"));
    std::fs::write(&source, PROGRAM).expect("the source is written");
    run(Command::new("g++").args(flags).arg("-o").arg(&path).arg(&source));
    Built { folder, path }
}

pub fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

/// Line numbers matter: `thrower` is on line 3, `guarded` on line 5.
const PROGRAM: &str = r#"#include <stdexcept>
#include <unistd.h>
int __attribute__((noinline)) thrower(int x) { if (x > 3) throw std::runtime_error("x"); return x; }
struct Global { Global() { pause_at = 1; } static int pause_at; } global;
int __attribute__((noinline)) guarded(int x) { try { return thrower(x); } catch (std::exception &) { return -1; } }
int Global::pause_at;
int (*table[])(int) = {thrower, guarded};
int main(int argc, char **) { if (argc > 1 && write(1, "!", 1)) pause(); return table[argc & 1](argc); }
"#;

pub fn open(path: &Path) -> Image {
    Image::open(path).unwrap_or_else(|error| panic!("{error}"))
}

/// Asks an image everything that it can be asked.
pub fn touch_everything(image: &Image) {
    let mut seen = 0usize;
    let mut see = |what: usize| seen = seen.wrapping_add(what);
    see(image.name().len() + image.entry().is_some() as usize + image.sections().len());
    for symbol in image.symbols() {
        let name = image.symbol_name(symbol);
        see(demangle(name).len() + image.symbols_at(symbol.svma).len());
        see(image.source_line(symbol.svma).map_or(0, |line| line.file.len()));
    }
    see(image.imports().map(str::len).sum());
    for reloc in image.relocations() {
        see(image.pointer_at(reloc.place).is_some() as usize);
        see(image.slot_name(reloc.place).map_or(0, str::len));
    }
    for at in image.init_functions() {
        assert!(image.is_code(at));
    }
    for fde in image.fdes() {
        see(image.landing_pads(fde).len() + image.cfa_rows(fde).len());
        see(image.cfa_at(fde.start).is_some() as usize + image.cie(fde).is_some() as usize);
    }
    for range in image.code_ranges() {
        let bytes = image.bytes(range.start, range.len).expect("code is in the file");
        assert_eq!(bytes.len() as u64, range.len);
        assert!(image.bytes_from(range.start).is_some_and(|more| more.len() >= bytes.len()));
    }
    see(image.build_id().map_or(0, <[u8]>::len) + image.needed().map(str::len).sum::<usize>());
    see(image.soname().map_or(0, str::len) + image.interpreter().map_or(0, str::len));
    see(image.dwarf().is_some() as usize + image.problems().len());
    std::hint::black_box(seen);
}
