//! Loops with less than an increment in memory for each round: the counts are the same.

use crate::bench::{Bench, check, lancet};
use crate::exact::equals_callgrind;

/// Returns the rewritten program.
fn is_exact(bench: &Bench, (compiler, flags): (&str, &str), who: &str, rounds: &str) -> Vec<u8> {
    let program = bench.compile(compiler, &["loops.c"], "loops", flags);
    let (out, counts) = (bench.path("loops.counting"), bench.counts_path("loops.counting"));
    let mut rewrite = lancet("rewrite");
    rewrite.args(["--rounds", rounds, "--counters", who, "--counts"]).arg(&counts).arg("-o").arg(&out).arg(&program);
    check(&mut rewrite);
    assert_eq!(bench.run(&out, &[]), bench.run(&program, &[]), "{compiler} {flags} {who} {rounds}");
    assert!(equals_callgrind(bench, "loops.counting", (&program, &[]), &program, None) > 300);
    std::fs::remove_file(counts).expect("the counts were there");
    std::fs::read(&out).expect("the output")
}

#[test]
fn rounds_are_counted_exactly_wherever_they_are_counted() {
    for (compiler, flags) in [
        ("gcc", "-O0"),
        ("gcc", "-O1"),
        ("gcc", "-O2"),
        ("gcc", "-O3 -mavx2"),
        ("gcc", "-Os -no-pie"),
        ("clang", "-O1"),
        ("clang", "-O2"),
        ("clang", "-O3 -march=x86-64-v3"),
    ] {
        let bench = Bench::new();
        let with = |rounds| is_exact(&bench, (compiler, flags), "together", rounds);
        let (memory, induction, registers) = (with("memory"), with("induction"), with("registers"));
        // Without optimization, variables are in memory.
        assert_eq!(memory == induction, flags == "-O0", "{compiler} {flags}");
        assert!(induction != registers, "{compiler} {flags}");
    }
}

/// However the counters themselves are shared.
#[test]
fn rounds_in_registers_for_threads() {
    for who in ["each", "atomic"] {
        is_exact(&Bench::new(), ("gcc", "-O2"), who, "registers");
    }
}
