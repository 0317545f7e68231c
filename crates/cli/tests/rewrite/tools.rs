//! Other tools on rewritten programs: debuggers see the frames of clones, and gcov counts the same lines.

use std::path::Path;
use std::process::Command;

use crate::bench::Bench;

/// What gdb says of the frames when `leaf` is reached.
fn back_trace(program: &Path, leaf: &str, arguments: &str) -> String {
    let script = [
        "set debuginfod enabled off",
        "set confirm off",
        &format!("break {leaf}"),
        &format!("run {arguments}"),
        "backtrace",
        "kill",
    ];
    let script: Vec<&str> = script.iter().flat_map(|line| ["-ex", line]).collect();
    let output = Command::new("gdb").args(["-nx", "-batch"]).args(script).arg(program).output().expect("gdb runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn back_traces_through_clones() {
    for flags in ["-O0 -w", "-O2 -w -g -fno-omit-frame-pointer", "-O2 -w -fno-optimize-sibling-calls -no-pie"] {
        let bench = Bench::new();
        let program = bench.compile("gcc", &["ends.c"], "ends", flags);
        let rewritten = bench.counting(&program, "ends.counting");
        let trace = back_trace(&rewritten, "quick_exit", "quick_exit");
        let frames: Vec<&str> = trace.lines().filter(|line| line.starts_with('#')).collect();
        assert!(frames.iter().any(|frame| frame.contains("main")), "{flags}: {trace}");
        assert_eq!(frames.iter().filter(|frame| frame.contains(" end")).count(), 21, "{flags}: {trace}");
        assert!(!trace.contains("corrupt"), "{trace}");
    }
}
