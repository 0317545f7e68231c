//! Control that goes where no call and no return leads: signals, `longjmp`, coroutines, exceptions, panics, and code
//! that was written by hand.

use std::path::PathBuf;

use lancet::Svma;
use lancet::tools::count::Counted;

use crate::bench::{Bench, calls_of, check, lancet};
use crate::exact::{counted_equals_callgrind, is_exact};

#[test]
fn signals_long_jumps_and_coroutines() {
    for (compiler, flags) in [("gcc", "-O2 -w"), ("gcc", "-O0 -w -no-pie"), ("clang", "-O2 -w"), ("clang", "-Os -w")] {
        let bench = Bench::new();
        let program = bench.compile(compiler, &["control.c"], "control", flags);
        assert!(is_exact(&bench, &program, &[]) > 100);
    }
}

/// Labels and functions in arrays of structures; and functions that return, by names of such that do not.
#[test]
fn labels_in_structures() {
    for (compiler, flags) in
        [("gcc", "-O2"), ("gcc", "-O2 -no-pie"), ("gcc", "-O0 -w"), ("clang", "-O2"), ("gcc", "-Os")]
    {
        let bench = Bench::new();
        let program = bench.compile(compiler, &["labels.c"], "labels", flags);
        assert!(is_exact(&bench, &program, &[]) > 100);
        let counted = bench.counted("labels.counting");
        assert_eq!(["labels", "calls", "xexit", "err"].map(|name| calls_of(&counted, name)), [9, 11, 2, 1], "{flags}");
    }
}

/// The compiler's own start files are edited with the rest.
#[test]
fn small_programs_as_a_whole() {
    for flags in ["-O2", "-O2 -no-pie", "-O2 -s"] {
        let bench = Bench::new();
        let program = bench.compile("gcc", &["labels.c"], "labels", flags);
        let explained = check(lancet("rewrite").arg("--explain").arg("-o").arg(bench.path("out")).arg(&program));
        assert!(explained.trim_end().ends_with(" bytes of code (100.00 %)"), "{flags}: {explained}");
    }
}

/// Signals come at every instruction, those that were added included, and handlers may never return.
#[test]
fn signals_at_any_instruction() {
    for flags in ["-O2 -w", "-O0 -w"] {
        let bench = Bench::new();
        let program = bench.compile("gcc", &["control.c"], "control", flags);
        bench.behaves_the_same(&program, &["interrupted"]);
        let counted = bench.counted("control.counting");
        assert_eq!(calls_of(&counted, "on_tick"), 40);
    }
}

/// Every instruction that handlers took control away from, and those around it, ran as often as the program itself says.
#[test]
fn cuts_at_any_instruction() {
    for (compiler, flags) in [
        ("gcc", "-O2 -w"),
        ("gcc", "-O0 -w -no-pie"),
        ("clang", "-O2 -w"),
        ("gcc", "-O2 -w -static"),
        ("gcc", "-O1 -pthread"),
    ] {
        for arguments in [&["400"][..], &["50", "end"]] {
            let bench = Bench::new();
            let program = bench.compile(compiler, &["cuts.c"], "cuts", flags);
            let rewritten = bench.counting(&program, "cuts.counting");
            let ran = bench.run(&rewritten, arguments);
            assert_eq!((ran.stderr.as_str(), ran.signal), ("", None));
            let counted = bench.counted("cuts.counting");
            assert_eq!((counted.stopped().count(), counted.unlocated), (0, 0), "{flags}");
            let start = counted.program.image().segments().iter().map(|segment| segment.svma).min().expect("segments");
            for line in ran.stdout.lines() {
                let (at, expected) = line.split_once(' ').expect("an address and a number");
                let at = start + u64::from_str_radix(at, 16).expect("an address");
                assert_eq!(runs_of(&counted, at), expected.parse().ok(), "{compiler} {flags}: {at}");
            }
        }
    }
}

fn runs_of(counted: &Counted, at: Svma) -> Option<u64> {
    let id = counted.program.func_at(at)?;
    let func = counted.program.func(id);
    let block = func.block_ids().find(|id| (func.block(*id).start..func.block(*id).end()).contains(&at))?;
    let insn = counted.program.insns(func.block(block)).iter().position(|insn| insn.at == at)?;
    Some(counted.counts(id)?.runs(block, insn as u32))
}

fn exceptions(bench: &Bench, compiler: &str, flags: &str) -> (PathBuf, PathBuf) {
    let library = bench.compile(compiler, &["thrower.cc"], "libthrower.so", &format!("{flags} -fPIC -shared"));
    let flags = format!("{flags} ./libthrower.so -Wl,-rpath,$ORIGIN");
    (bench.compile(compiler, &["exceptions.cc"], "exceptions", &flags), library)
}

#[test]
fn exceptions_through_edited_frames() {
    for (compiler, flags) in [
        ("g++", "-O2 -w -std=c++14 -DSPECIFICATIONS"),
        ("g++", "-O0 -w -no-pie"),
        ("g++", "-Os -w -s"),
        ("clang++", "-O2 -w -std=c++14 -DSPECIFICATIONS"),
        ("clang++", "-O0 -w -fuse-ld=lld"),
    ] {
        let bench = Bench::new();
        let (program, _) = exceptions(&bench, compiler, flags);
        assert!(is_exact(&bench, &program, &[]) > 300);
        for ending in ["terminate", "uncaught"] {
            bench.behaves_the_same(&program, &[ending]);
        }
    }
}

/// The library is edited, too; then only the library is.
#[test]
fn exceptions_across_a_library() {
    let bench = Bench::new();
    let (program, library) = exceptions(&bench, "g++", "-O2 -w");
    let expected = bench.run(&program, &[]);
    let rewritten = bench.behaves_the_same(&program, &[]);
    let original = bench.path("original.so");
    std::fs::rename(&library, &original).expect("the library is moved");
    bench.counting(&original, "libthrower.so");
    assert_eq!(bench.run(&rewritten, &[]), expected);
    assert_eq!(calls_of(&bench.counted("libthrower.so"), "_Z12library_passPFiiEi"), 2);
    assert_eq!(bench.run(&program, &[]), expected);
    assert_eq!(calls_of(&bench.counted("libthrower.so"), "_Z12library_passPFiiEi"), 4);
}

#[test]
fn exceptions_in_a_static_program() {
    for flags in ["-O2 -w -static", "-O2 -w -static-pie -fPIE"] {
        let bench = Bench::new();
        let program = bench.compile("g++", &["exceptions.cc", "thrower.cc"], "exceptions", flags);
        for ending in ["", "terminate", "uncaught"] {
            bench.behaves_the_same(&program, &[ending]);
            bench.counted("exceptions.counting");
        }
    }
}

#[test]
fn panics() {
    for flags in ["-O", "-C opt-level=0", "-C opt-level=s -C strip=symbols -C debuginfo=0"] {
        let bench = Bench::new();
        let program = bench.compile("rustc", &["panics.rs"], "panics", flags);
        bench.behaves_the_same(&program, &[]);
        bench.counted("panics.counting");
        bench.behaves_the_same(&program, &["uncaught"]);
    }
}

#[test]
fn hand_written_code() {
    for (compiler, flags) in [("gcc", "-O1"), ("gcc", "-O1 -no-pie"), ("gcc", "-O2 -s"), ("clang", "-O2 -fuse-ld=lld")]
    {
        let bench = Bench::new();
        let program = bench.compile(compiler, &["odd.c", "odd.S"], "odd", flags);
        is_exact(&bench, &program, &[]);
    }
}

fn library(bench: &Bench, compiler: &str, flags: &str) -> PathBuf {
    bench.compile(compiler, &["library.c"], "library.so", &format!("{flags} -fPIC -shared"))
}

/// A library that the program is linked with, and one that it loads and unloads again and again.
#[test]
fn libraries() {
    for (compiler, flags) in [
        ("gcc", "-O2"),
        ("gcc", "-O0 -s"),
        ("clang", "-Os"),
        ("gcc", "-O2 -Wl,-z,pack-relative-relocs -Wl,-z,noseparate-code"),
    ] {
        for load in [false, true] {
            let bench = Bench::new();
            let original = library(&bench, compiler, flags);
            let host = match load {
                true => bench.compile(compiler, &["host.c"], "host", "-O1 -DLOAD"),
                false => bench.compile(compiler, &["host.c"], "host", "-O1 ./library.so"),
            };
            let expected = bench.run(&host, &[]);
            assert_eq!(expected.status, Some(0), "{expected:?}");
            let kept = bench.path("library.original.so");
            std::fs::rename(&original, &kept).expect("the library is moved");
            bench.counting(&kept, "library.so");
            assert_eq!(bench.run(&host, &[]), expected, "{flags}");
            std::fs::rename(bench.path("library.so"), bench.path("library.counting.so")).expect("moved");
            std::fs::copy(&kept, bench.path("library.so")).expect("a copy");
            let counted = bench.counted_by("library.so", &bench.path("library.counting.so"));
            counted_equals_callgrind(&bench, &counted, (&host, &[]), &bench.path("library.so"), None);
        }
    }
}
