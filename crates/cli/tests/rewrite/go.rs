//! Programs in Go: their code is left alone, and they do what they always did.

use std::path::PathBuf;
use std::process::Command;

use crate::bench::{Bench, Ran, check, lancet, sources_folder};

/// Builds with options that go behind `go build`.
fn build(bench: &Bench, options: &[&str]) -> PathBuf {
    let program = bench.path("routines");
    let mut command = Command::new("go");
    command.arg("build").args(options).arg("-o").arg(&program).arg(sources_folder().join("routines.go"));
    command.env("GOCACHE", bench.path("cache")).env("GOFLAGS", "").current_dir(bench.path(""));
    check(&mut command);
    program
}

#[test]
fn go_programs_run_as_before() {
    for options in [&[][..], &["-ldflags=-s -w"], &["-buildmode=pie"]] {
        let bench = Bench::new();
        let program = build(&bench, options);
        let rewritten = bench.behaves_the_same(&program, &[]);
        let ending = bench.run_as(&program, &rewritten, &["panics"]);
        assert_eq!(ending.status, Some(2), "{options:?}");
        assert!(ending.stderr.starts_with("panic: the end\n\ngoroutine 1 [running]:\nmain.main()\n"), "{ending:?}");
        let explained = check(lancet("rewrite").arg("--explain").arg("-o").arg(bench.path("out")).arg(&program));
        let by_reason =
            explained.lines().filter(|line| line.ends_with("Go's run-time system knows it by its addresses"));
        assert!(by_reason.count() > 500, "{options:?}: {explained}");
        let report = bench.path("report");
        Ran::of(lancet("count").arg("-o").arg(&report).arg(&program));
        let report = std::fs::read_to_string(report).expect("a report");
        assert!(report.contains("(Go's run-time system knows its functions by their addresses)"), "{report}");
        let moved = bench.path("moved");
        check(lancet("rewrite").args(["--tool", "null", "-o"]).arg(&moved).arg(&program));
        assert_eq!(bench.run_as(&program, &moved, &[]), bench.run(&program, &[]), "{options:?}");
    }
}
