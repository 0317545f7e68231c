//! Shared libraries: their start-up code runs when they are loaded, however they were linked.

use std::path::Path;
use std::process::Command;

use lancet_engine::sink::elf_writer::{Hook, Tactic, hook};

use crate::patches::announce;
use crate::support::{Bench, check_sound, open, run};

const LIBRARY: &str = r#"
#include <unistd.h>
#ifdef CONSTRUCTOR
__attribute__((constructor)) static void construct() { (void)!write(1, "constructed ", 12); }
#endif
static int seven() { return 7; }
static int (*table[])() = {seven};
extern "C" int answer() { return table[0]() * 6; }
"#;
const MAIN: &str = r#"
#include <cstdio>
extern "C" int answer();
int main() { printf("%d\n", answer()); }
"#;

/// Builds a library and a program that uses it, patches the library in place of the first, strips it, runs all.
fn round(flags: &[&str], expected: Hook, room: Tactic, says: &str) {
    let bench = Bench::new();
    let base = ["-shared", "-fPIC", "-O1"];
    let library = bench.compile("g++", LIBRARY, "libanswer.so", &[&base, flags].concat());
    let program = bench.compile("g++", MAIN, "program", &["-L.", "-lanswer", "-Wl,-rpath,$ORIGIN"]);
    let run_program = || run(&mut Command::new(&program));
    assert_eq!(run_program(), says);
    let install = |from: &Path| std::fs::rename(from, &library).expect("the library is replaced");

    let found = hook(&open(&library)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(std::mem::discriminant(&found), std::mem::discriminant(&expected));
    assert_eq!(found.old().is_some(), expected.old().is_some(), "{found:?}");
    let (one, tactic) = bench.patched(&library, "one.so", |image| announce(image, "[one]"));
    assert_eq!(tactic, room);
    install(&one);
    assert_eq!(run_program(), format!("[one]{says}"));
    let (two, _) = bench.patched(&library, "two.so", |image| announce(image, "[two]"));
    for strip in ["strip", "llvm-strip"] {
        let stripped = bench.copy(&two, "stripped.so");
        run(Command::new(strip).arg(&stripped));
        check_sound(&stripped);
        install(&stripped);
        assert_eq!(run_program(), format!("[two][one]{says}"), "{strip}");
    }
    let needs = run(Command::new("ldd").arg(&program));
    assert!(needs.contains("libanswer.so => /"), "{needs}");
}

const SOME: Hook = Hook::Init { old: Some(lancet_isa::Svma(0)) };
const NONE: Hook = Hook::Init { old: None };

#[test]
fn with_an_initializer() {
    round(&["-DCONSTRUCTOR"], SOME, Tactic::InPlace, "constructed 42\n");
}

/// The dynamic section has spare entries at its end.
#[test]
fn without_an_initializer() {
    round(&["-nostartfiles", "-DCONSTRUCTOR"], NONE, Tactic::InPlace, "constructed 42\n");
}

/// This linker leaves no spare entry: the dynamic section moves. So few tables precede the library's data that not even
/// all of them would make room for the program headers.
#[test]
fn without_an_initializer_or_room_for_one() {
    round(&["-nostartfiles", "-fuse-ld=lld"], NONE, Tactic::NewTable, "42\n");
}

#[test]
fn without_separate_code() {
    round(&["-Wl,-z,noseparate-code"], SOME, Tactic::InPlace, "42\n");
}

#[test]
fn with_packed_relocations() {
    round(&["-Wl,-z,pack-relative-relocs"], SOME, Tactic::InPlace, "42\n");
}
