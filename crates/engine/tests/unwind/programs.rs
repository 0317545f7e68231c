//! Programs of all kinds, compiled here; and real ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lancet_engine::image::Image;
use tempfile::TempDir;

use super::checks::check;

/// Handlers of all kinds, clean-ups, what may be thrown, and cold parts.
pub const CPP: &str = r#"
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
struct Guard { const char *name; ~Guard() { std::printf("~%s ", name); } };
int sink;
__attribute__((noinline, cold)) void fail(int x) { throw std::runtime_error("fail " + std::to_string(x)); }
__attribute__((noinline)) int risky(int x) {
  Guard guard{"risky"};
  if (__builtin_expect(x % 3 == 0, 0)) fail(x);
  if (x % 3 == 1) throw x;
  return x;
}
__attribute__((noinline)) void narrow(int x) throw(int, std::runtime_error) { Guard guard{"narrow"}; sink += risky(x); }
__attribute__((noinline)) int nothrow(int x) noexcept { try { return risky(x); } catch (...) { return -7; } }
__attribute__((noinline)) int grow(int x) {
  char *room = (char *)__builtin_alloca(x * 16 + 16);
  std::sprintf(room, "%d", x);
  try { narrow(x); } catch (int y) { return y + std::atoi(room); }
  return std::atoi(room);
}
int main() {
  for (int x = 0; x < 9; x++) {
    try {
      Guard guard{"loop"};
      try { std::printf("%d ", grow(x) + nothrow(x)); }
      catch (const std::logic_error &) { std::puts("never"); }
    } catch (const std::exception &error) { std::printf("[%s] ", error.what()); }
  }
  std::puts("");
}
"#;

/// Clean-ups in C, frames of changing size, and a function that returns twice.
pub const C: &str = r#"
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
static jmp_buf back;
static void note(int *x) { printf("(%d) ", *x); }
__attribute__((noinline)) static int many(int a, int b, int c, int d, int e, int f, int g, int h, const char *s) {
  __attribute__((cleanup(note))) int local = a + h;
  char copy[strlen(s) + a];
  strcpy(copy, s);
  if (a == 3) longjmp(back, b + c + d + e + f + g);
  return copy[0] + local;
}
int main(int argc, char **argv) {
  volatile int x = 0;
  int jumped = setjmp(back);
  if (!jumped) for (; x < 5; x++) printf("%d ", many(x, 1, 2, 3, 4, 5, 6, 7, argv[0] ? "abc" : "d"));
  printf("%d %d\n", jumped, x);
  return 0;
}
"#;

pub const RUST: &str = r#"
struct Noisy(u32);
impl Drop for Noisy { fn drop(&mut self) { print!("~{} ", self.0); } }
#[inline(never)] fn risky(x: u32) -> u32 { let _noisy = Noisy(x); if x % 2 == 1 { panic!("odd") } x * 2 }
fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    for x in 0..5 {
        let result = std::panic::catch_unwind(|| { let _outer = Noisy(x + 100); risky(x) });
        print!("{:?} ", result.ok());
    }
    println!();
}
"#;

/// Lists of what may be thrown went with C++17.
pub const OLD_CPP: &str = "-std=c++14";

const POSITION_DEPENDENT: [&str; 2] = ["-fno-pie", "-no-pie"];

pub struct Bench(TempDir);

impl Bench {
    pub fn new() -> Bench {
        Bench(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn compile(&self, compiler: &str, source: &str, flags: &[&str]) -> PathBuf {
        let suffix = match compiler {
            "rustc" => "rs",
            "gcc" | "clang" => "c",
            _ => "cc",
        };
        let (file, out) = (self.path(&format!("source.{suffix}")), self.path("program"));
        fs::write(&file, source).expect("the source is written");
        run(Command::new(compiler).current_dir(self.0.path()).arg(&file).arg("-o").arg(&out).args(flags));
        out
    }
}

pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{errors}", output.status);
    assert!(!errors.contains("arning"), "{command:?}: {errors}");
    out.into_owned()
}

pub fn open(path: &Path) -> Image {
    Image::open(path).unwrap_or_else(|error| panic!("{error}"))
}

/// Moves the functions of a program in two ways.
fn moves(compiler: &str, source: &str, flags: &[&str]) {
    let bench = Bench::new();
    let image = open(&bench.compile(compiler, source, flags));
    for seed in [1, 0x1234_5678_9abc_def1] {
        assert!(check(&image, seed) > 50);
    }
}

#[test]
fn cpp_of_gcc() {
    for level in ["-O0", "-O2", "-Os"] {
        moves("g++", CPP, &[level, OLD_CPP, "-Wno-deprecated"]);
        moves("g++", CPP, &[&[level, OLD_CPP, "-Wno-deprecated"], &POSITION_DEPENDENT[..]].concat());
    }
}

#[test]
fn cpp_of_clang() {
    for level in ["-O1", "-O2"] {
        moves("clang++", CPP, &[level, OLD_CPP, "-Wno-deprecated"]);
        moves("clang++", CPP, &[&[level, OLD_CPP, "-Wno-deprecated"], &POSITION_DEPENDENT[..]].concat());
    }
}

#[test]
fn c() {
    for compiler in ["gcc", "clang"] {
        for level in ["-O0", "-O2", "-Os"] {
            moves(compiler, C, &[level, "-fexceptions"]);
        }
    }
    // Arguments are pushed and popped around calls.
    moves("gcc", C, &["-O2", "-fexceptions", "-mpush-args", "-mno-accumulate-outgoing-args", "-mstackrealign"]);
}

#[test]
fn static_programs() {
    moves("g++", CPP, &["-O2", OLD_CPP, "-Wno-deprecated", "-static"]);
    moves("gcc", C, &["-O2", "-static-pie", "-fPIE"]);
}

#[test]
fn rust() {
    moves("rustc", RUST, &["-O"]);
    moves("rustc", RUST, &["-Crelocation-model=static"]);
}

/// These tests themselves, and what `LANCET_TEST_FILES` names.
#[test]
fn large_files() {
    let named = std::env::var_os("LANCET_TEST_FILES").unwrap_or_default();
    let own = std::env::current_exe().expect("a path");
    let named = std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty());
    for path in std::iter::once(own).chain(named) {
        let image = open(&path);
        assert!(check(&image, 7) > 10_000, "{}", path.display());
    }
}
