//! Options that change how a program counts, but never what.

use std::path::{Path, PathBuf};

use crate::bench::{Bench, Ran, calls_of, check, lancet};
use crate::exact::equals_callgrind;

fn counting_with(bench: &Bench, program: &Path, name: &str, options: &[&str]) -> PathBuf {
    let out = bench.path(name);
    let counts = bench.counts_path(name);
    check(lancet("rewrite").args(options).arg("--counts").arg(counts).arg("-o").arg(&out).arg(program));
    out
}

#[test]
fn counters_together_and_of_each_thread() {
    for flags in ["-O2", "-O2 -no-pie"] {
        let bench = Bench::new();
        let program = bench.compile("gcc", &["kinds.c"], "kinds", flags);
        let expected = bench.run(&program, &[]);
        for who in ["together", "each"] {
            let name = format!("kinds.{who}");
            let out = counting_with(&bench, &program, &name, &["--counters", who]);
            assert_eq!(bench.run(&out, &[]), expected, "{flags} {who}");
            assert!(equals_callgrind(&bench, &name, (&program, &[]), &program, None) > 200);
        }
    }
}

/// The way from a function that is not edited to one that is changes no register.
#[test]
fn calls_from_functions_that_are_left_alone() {
    let bench = Bench::new();
    let program = bench.compile("gcc", &["held.c", "held.S"], "held", "-O2");
    for who in ["together", "each", "atomic"] {
        let name = format!("held.{who}");
        let out = counting_with(&bench, &program, &name, &["--counters", who, "--functions", "^twice$"]);
        assert_eq!(bench.run(&out, &[]), bench.run(&program, &[]), "{who}");
        assert_eq!(calls_of(&bench.counted(&name), "twice"), 100, "{who}");
    }
}

/// Counters stand elsewhere if it is known what runs often, and say the same.
#[test]
fn placed_by_a_profile() {
    let bench = Bench::new();
    let program = bench.compile("gcc", &["kinds.c"], "kinds", "-O2");
    bench.behaves_the_same(&program, &[]);
    let profile = bench.counts_path("kinds.counting");
    let profile = profile.to_str().expect("a path");
    let out = counting_with(&bench, &program, "kinds.profiled", &["--profile", profile]);
    assert_eq!(bench.run(&out, &[]), bench.run(&program, &[]));
    assert!(equals_callgrind(&bench, "kinds.profiled", (&program, &[]), &program, None) > 200);
    let read = |name: &str| std::fs::read(bench.path(name)).expect("an output");
    assert!(read("kinds.profiled") != read("kinds.counting"));
}

#[test]
fn the_profile_of_another_program() {
    let bench = Bench::new();
    let other = bench.compile("gcc", &["lines.c"], "lines", "-O2");
    bench.behaves_the_same(&other, &[]);
    let program = bench.compile("gcc", &["kinds.c"], "kinds", "-O2");
    let mut command = lancet("rewrite");
    command.arg("--profile").arg(bench.counts_path("lines.counting")).arg("-o").arg(bench.path("out")).arg(&program);
    let ran = Ran::of(&mut command);
    assert_eq!((ran.status, ran.stderr.lines().count()), (Some(1), 1), "{}", ran.stderr);
}
