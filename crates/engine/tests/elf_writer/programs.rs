//! Programs of every kind, with more segments than they were linked with.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use lancet_engine::image::Image;
use lancet_engine::layout::Patch;
use lancet_engine::sink::elf_writer::Tactic;

use crate::patches::{announce, idle};
use crate::support::{Bench, check_sound, drop_section_headers, open, run, run_program};

/// Needs what a careless writer breaks: constructors, thread-local and zeroed memory, the unwind tables, its own
/// program headers in memory, and a look-up of an own symbol.
const PROGRAM: &str = r#"
#include <cstdio>
#include <cstring>
#include <elf.h>
#include <link.h>
#include <dlfcn.h>
#include <stdexcept>
#include <sys/auxv.h>
static int zeroed[5000];
static thread_local int own = 7;
struct Global { Global() { zeroed[4999] = 35; } } global;
extern "C" int exported() { return own + zeroed[4999]; }
__attribute__((noinline)) int thrower(int x) { if (x) throw std::runtime_error("caught"); return x; }
int main(int argc, char **) {
  auto headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
  unsigned long count = getauxval(AT_PHNUM), bias = 0;
  bool code = false;
  for (unsigned long i = 0; i < count; i++)
    if (headers[i].p_type == PT_PHDR) bias = (unsigned long)headers - headers[i].p_vaddr;
#ifdef SELF_BASED
  extern const char base[] __asm__("__ehdr_start");
  bias = (unsigned long)base;
#endif
  for (unsigned long i = 0; i < count; i++)
    if (headers[i].p_type == PT_LOAD && headers[i].p_flags & PF_X)
      code |= (unsigned long)&main - bias - headers[i].p_vaddr < headers[i].p_memsz;
  if (!code) { puts("program headers do not match"); return 1; }
#ifdef LOOKUP
  if (dlsym(RTLD_DEFAULT, "exported") != (void *)exported) { puts("own symbol not found"); return 1; }
#endif
  try { thrower(argc); } catch (std::exception &e) { printf("%s %d\n", e.what(), exported()); }
}
"#;
const SAYS: &str = "caught 42\n";

fn build(flags: &[&str]) -> Bench {
    let bench = Bench::new();
    bench.compile("g++", PROGRAM, "program", &[&["-O1", "-w"], flags].concat());
    bench
}

/// Everything that shall work on a program that writes `says`: patched, stripped, patched again.
fn round(bench: &Bench, says: &str, expected: Tactic) {
    let original = bench.path("program");
    let says_this = |path: &Path, words: &str| assert_eq!(run_program(path), format!("{words}{says}"), "{path:?}");
    says_this(&original, "");

    let (still, _) = bench.patched(&original, "still", idle);
    says_this(&still, "");
    let (one, tactic) = bench.patched(&original, "one", |image| announce(image, "[one]"));
    assert_eq!(tactic, expected);
    says_this(&one, "[one]");
    let (two, _) = bench.patched(&one, "two", |image| announce(image, "[two]"));
    says_this(&two, "[two][one]");
    let bytes = |path: &Path| fs::read(path).expect("a program");
    assert!(bytes(&original) != bytes(&one));

    if open(&original).sections().is_empty() {
        return;
    }
    for (strip, words) in [("strip", "s"), ("llvm-strip", "l")] {
        // LLVM 14 does not strip static programs, patched or not (the link of `.rela.plt`).
        let plain = Command::new(strip).arg(bench.copy(&original, "plain")).output().expect("strip runs");
        if strip == "llvm-strip" && !plain.status.success() {
            continue;
        }
        let stripped = bench.copy(&two, &format!("two.{words}"));
        run(Command::new(strip).arg(&stripped));
        check_sound(&stripped);
        says_this(&stripped, "[two][one]");
        let (three, _) =
            bench.patched(&stripped, &format!("three.{words}"), |image| announce(image, &format!("[{words}]")));
        says_this(&three, &format!("[{words}][two][one]"));
        run(Command::new(strip).arg(&three));
        says_this(&three, &format!("[{words}][two][one]"));
    }
}

#[test]
fn position_independent() {
    round(&build(&["-pie", "-fPIE", "-rdynamic", "-DLOOKUP"]), SAYS, Tactic::InPlace);
}

#[test]
fn position_independent_without_separate_code() {
    round(&build(&["-pie", "-fPIE", "-Wl,-z,noseparate-code"]), SAYS, Tactic::InPlace);
}

#[test]
fn fixed_address() {
    round(&build(&["-no-pie", "-rdynamic", "-DLOOKUP"]), SAYS, Tactic::InPlace);
}

#[test]
fn fixed_address_without_separate_code() {
    round(&build(&["-no-pie", "-Wl,-z,noseparate-code"]), SAYS, Tactic::InPlace);
}

#[test]
fn static_at_a_fixed_address() {
    round(&build(&["-static"]), SAYS, Tactic::Prepended);
}

#[test]
fn static_with_huge_pages() {
    round(&build(&["-static", "-Wl,-z,max-page-size=0x200000"]), SAYS, Tactic::Prepended);
}

#[test]
fn static_position_independent() {
    round(&build(&["-static-pie", "-fPIE", "-DSELF_BASED"]), SAYS, Tactic::InPlace);
}

#[test]
fn stripped() {
    round(&build(&["-pie", "-fPIE", "-s"]), SAYS, Tactic::InPlace);
}

#[test]
fn packed_relocations() {
    round(&build(&["-pie", "-fPIE", "-Wl,-z,pack-relative-relocs"]), SAYS, Tactic::InPlace);
}

#[test]
fn both_hash_tables() {
    round(&build(&["-pie", "-fPIE", "-Wl,--hash-style=both", "-rdynamic", "-DLOOKUP"]), SAYS, Tactic::InPlace);
}

#[test]
fn by_lld() {
    round(&build(&["-pie", "-fPIE", "-fuse-ld=lld", "-rdynamic", "-DLOOKUP"]), SAYS, Tactic::InPlace);
}

#[test]
fn by_lld_at_a_fixed_address() {
    round(&build(&["-no-pie", "-fuse-ld=lld"]), SAYS, Tactic::InPlace);
}

#[test]
fn by_lld_static() {
    round(&build(&["-static", "-fuse-ld=lld"]), SAYS, Tactic::Prepended);
}

#[test]
fn by_lld_static_position_independent() {
    round(&build(&["-static-pie", "-fPIE", "-fuse-ld=lld"]), SAYS, Tactic::InPlace);
}

#[test]
fn by_rustc() {
    let bench = Bench::new();
    let source =
        r#"fn main() { println!("{:?}", std::panic::catch_unwind(|| [1, 2][std::env::args().count() - 1])); }"#;
    bench.compile("rustc", source, "program", &["-O"]);
    round(&bench, "Ok(1)\n", Tactic::InPlace);
}

#[test]
fn without_section_headers() {
    let bench = build(&["-pie", "-fPIE"]);
    drop_section_headers(&bench.path("program"));
    round(&bench, SAYS, Tactic::NewTable);
    // The table stands far behind the rest, but the gap takes no room.
    let output = fs::metadata(bench.path("one")).expect("the output");
    assert!(output.blocks() * 512 < output.size(), "{} blocks, {} bytes", output.blocks(), output.size());
}

#[test]
fn static_without_section_headers() {
    let bench = build(&["-static"]);
    drop_section_headers(&bench.path("program"));
    round(&bench, SAYS, Tactic::Prepended);
}

#[test]
fn the_build_id_stays_in_the_first_page() {
    let bench = build(&["-pie", "-fPIE", "-Wl,--build-id"]);
    let (out, _) = bench.patched(&bench.path("program"), "out", |image| announce(image, "[one]"));
    let image = open(&out);
    assert!(image.build_id().is_some());
    assert_eq!(image.build_id(), open(&bench.path("program")).build_id());
    let note = image.section(".note.gnu.build-id").expect("the note");
    assert!(note.svma.0 < 0x1000 && note.offset.expect("bytes").0 < 0x1000, "{note:?}");
}

/// Debuggers find new functions by name, and break there.
#[test]
fn gdb_knows_the_new_code() {
    let bench = build(&["-pie", "-fPIE", "-g"]);
    for name in ["with-symbols", "without"] {
        if name == "without" {
            run(Command::new("strip").arg(bench.path("program")));
        }
        let (out, _) = bench.patched(&bench.path("program"), name, |image| announce(image, "[one]"));
        let script =
            ["-ex", "set debuginfod enabled off", "-ex", "break announce", "-ex", "run", "-ex", "info symbol $pc"];
        let said = Command::new("gdb").args(["-nx", "-batch"]).args(script).arg(&out).output().expect("gdb runs");
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.contains("announce in section .announce.text"), "{said}");
    }
}

/// A program may have an archive behind its end, and look for it from either side.
#[test]
fn a_payload_behind_the_end_is_found_from_both_sides() {
    let bench = build(&["-pie", "-fPIE"]);
    let program = bench.path("program");
    let mut bytes = fs::read(&program).expect("the program");
    let (at, payload) = (bytes.len(), b"PAYLOAD".repeat(1000));
    bytes.extend_from_slice(&payload);
    fs::write(&program, bytes).expect("the program again");
    let (out, _) = bench.patched(&program, "out", idle);
    let bytes = fs::read(&out).expect("the output");
    assert!(bytes.ends_with(&payload));
    assert_eq!(bytes[at..at + payload.len()], payload);
    assert_eq!(run_program(&out), SAYS);
}

/// Nothing that is not needed changes: all loaded bytes outside of the first page are as they were.
#[test]
fn an_idle_patch_changes_only_headers() {
    let bench = build(&["-pie", "-fPIE"]);
    let (out, _) = bench.patched(&bench.path("program"), "out", |_: &Image| Patch::default());
    let (old, new) = (open(&bench.path("program")), open(&out));
    assert_eq!(old.segments().len(), new.segments().len());
    for segment in old.segments().iter().skip(1) {
        assert_eq!(old.bytes(segment.svma, segment.file_size), new.bytes(segment.svma, segment.file_size));
    }
    assert_eq!(old.symbols().len(), new.symbols().len());
    assert_eq!(run_program(&out), SAYS);
}
