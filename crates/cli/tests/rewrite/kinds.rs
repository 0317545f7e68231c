//! One program, built and linked in every way.

use std::path::Path;
use std::process::Command;

use crate::bench::{Bench, Ran, check};
use crate::exact::{equals_callgrind, function_names, is_exact};

const SOURCES: &[&str] = &["kinds.c"];

/// Built with these flags, the program is exact.
#[track_caller]
fn exact(compiler: &str, flags: &str) -> usize {
    let bench = Bench::new();
    let program = bench.compile(compiler, SOURCES, "kinds", flags);
    is_exact(&bench, &program, &[])
}

/// In a static program the C library chooses among its functions by the machine's abilities, and Valgrind's are
/// others: only the program's own functions are compared.
#[track_caller]
fn exact_static(compiler: &str, flags: &str) {
    let bench = Bench::new();
    let own = function_names(&bench.compile(compiler, SOURCES, "dynamic", "-O2 -w"));
    let program = bench.compile(compiler, SOURCES, "kinds", flags);
    bench.behaves_the_same(&program, &[]);
    assert!(equals_callgrind(&bench, "kinds.counting", (&program, &[]), &program, Some(&own)) > 200);
}

macro_rules! matrix {
    ($($name:ident: $check:ident($compiler:literal, $flags:literal);)*) => {
        $(#[test] fn $name() { $check($compiler, $flags); })*
    };
}

matrix! {
    gcc_o0: exact("gcc", "-O0 -pie -fPIE");
    gcc_o2: exact("gcc", "-O2 -pie -fPIE");
    gcc_os: exact("gcc", "-Os -pie -fPIE");
    gcc_o3_fixed_address: exact("gcc", "-O3 -no-pie");
    gcc_o0_fixed_address: exact("gcc", "-O0 -no-pie");
    gcc_with_cet: exact("gcc", "-O2 -fcf-protection=full");
    gcc_without_cet: exact("gcc", "-O2 -fcf-protection=none -no-pie");
    gcc_packed_relocations: exact("gcc", "-O2 -pie -fPIE -Wl,-z,pack-relative-relocs");
    gcc_without_separate_code: exact("gcc", "-O2 -Wl,-z,noseparate-code");
    gcc_separate_code_fixed_address: exact("gcc", "-Os -no-pie -Wl,-z,separate-code");
    gcc_bind_now: exact("gcc", "-O2 -Wl,-z,now -Wl,-z,relro -fno-plt");
    gcc_without_unwind_tables: exact("gcc", "-O2 -fno-asynchronous-unwind-tables");
    gcc_stripped: exact("gcc", "-O2 -s");
    gcc_stripped_o0: exact("gcc", "-O0 -s -no-pie");
    gcc_by_lld: exact("gcc", "-O2 -fuse-ld=lld");
    gcc_by_gold: exact("gcc", "-O2 -fuse-ld=gold");
    gcc_with_thunks: exact("gcc", "-O2 -mindirect-branch=thunk -mfunction-return=thunk -fcf-protection=none");
    gcc_with_inline_thunks: exact("gcc", "-O2 -mfunction-return=thunk-inline -fcf-protection=none");
    gcc_with_lto: exact("gcc", "-O2 -flto");
    clang_o0: exact("clang", "-O0 -pie -fPIE");
    clang_o2: exact("clang", "-O2 -pie -fPIE");
    clang_os: exact("clang", "-Os -pie -fPIE");
    clang_o2_fixed_address: exact("clang", "-O2 -no-pie");
    clang_stripped: exact("clang", "-O2 -s -fuse-ld=lld");
    clang_with_cet: exact("clang", "-O2 -fcf-protection=full -fuse-ld=lld");
    gcc_static: exact_static("gcc", "-O2 -static");
    gcc_static_o0: exact_static("gcc", "-O0 -static");
    gcc_static_pie: exact_static("gcc", "-O2 -static-pie -fPIE");
    clang_static: exact_static("clang", "-O2 -static");
}

/// Nothing but segments tells what is where, in the output too.
#[test]
fn without_section_headers() {
    for flags in ["-O2 -pie -fPIE -s", "-O2 -no-pie -s"] {
        let bench = Bench::new();
        let program = bench.compile("gcc", SOURCES, "kinds", flags);
        let instructions = |original: &Path, name: &str| {
            let rewritten = bench.counting(original, name);
            assert_eq!(bench.run_as(original, &rewritten, &[]), bench.run(original, &[]), "{flags} {name}");
            bench.counted(name).instructions()
        };
        let expected = instructions(&program, "with");
        let mut bytes = std::fs::read(&program).expect("the program");
        // Where they are, how many, and which one has their names.
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
        std::fs::write(&program, bytes).expect("the program");
        assert_eq!(instructions(&program, "once"), expected, "{flags}");
        assert!(instructions(&bench.path("once"), "twice") > expected, "{flags}");
    }
}

/// What was rewritten can be stripped, and rewritten again.
#[test]
fn stripped_and_rewritten_again() {
    for flags in ["-O2 -pie -fPIE", "-O2 -no-pie", "-O2 -static"] {
        let bench = Bench::new();
        let program = bench.compile("gcc", SOURCES, "kinds", flags);
        let expected = bench.run(&program, &[]);
        let same = |path: &Path| assert_eq!(bench.run(path, &[]), expected, "{flags}: {}", path.display());
        let once = bench.counting(&program, "once");
        same(&once);
        let twice = bench.counting(&once, "twice");
        same(&twice);
        bench.counted("twice");
        // Both want the same file, and the one that does not get it says so. The text of that stands between code.
        let file = bench.path("both.counts");
        let both = Ran::of(Command::new(&twice).env("LANCET_COUNTS", &file)).stderr;
        let expected = format!("lancet: counts are not kept: {}: holds", file.display());
        assert!(both.starts_with(&expected), "{flags}: {both}");
        check(Command::new("strip").arg(&once));
        same(&once);
        let again = bench.counting(&once, "again");
        same(&again);
        check(Command::new("strip").arg(&again));
        same(&again);
    }
}

/// A null rewrite moves everything and changes nothing.
#[test]
fn moved_without_additions() {
    for flags in ["-O2", "-O0 -no-pie", "-Os -static"] {
        let bench = Bench::new();
        let program = bench.compile("gcc", SOURCES, "kinds", flags);
        let moved = bench.path("moved");
        check(crate::bench::lancet("rewrite").args(["--tool", "null", "-o"]).arg(&moved).arg(&program));
        assert_eq!(bench.run(&moved, &[]), bench.run(&program, &[]), "{flags}");
        assert!(!bench.counts_path("moved").exists());
    }
}
