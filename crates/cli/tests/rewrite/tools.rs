//! Other tools on rewritten programs: debuggers see the frames of clones, and gcov counts the same lines.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use lancet::tools::count::Counted;

use crate::bench::{Bench, check};

/// What gdb says of the frames when `leaf` is reached.
fn back_trace(program: &Path, leaf: &str, arguments: &str) -> String {
    let script = [
        "set debuginfod enabled off",
        "set confirm off",
        "handle SIGSEGV nostop noprint pass",
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

/// The handler was called from added code, by the kernel, in the middle of an edited function.
#[test]
fn back_traces_out_of_handlers() {
    for flags in ["-O0 -w", "-O2 -w -no-pie", "-O1 -w -pthread"] {
        let bench = Bench::new();
        let program = bench.compile("gcc", &["cuts.c"], "cuts", flags);
        let rewritten = bench.counting(&program, "cuts.counting");
        let trace = back_trace(&rewritten, "siglongjmp", "1");
        let at = |name: &str| trace.lines().position(|line| line.starts_with('#') && line.contains(name));
        let order = ["on_signal", "<signal handler called>", "touch", "main"].map(at);
        assert!(order.is_sorted() && order.iter().all(Option::is_some), "{flags}: {trace}");
    }
}

/// Executable lines and their counts, as gcov has them.
fn gcov_lines(bench: &Bench, notes: &str) -> BTreeMap<u32, u64> {
    let text = check(Command::new("gcov").args(["-t", notes]).current_dir(bench.path("")));
    let line = |line: &str| {
        let mut fields = line.split(':').map(str::trim);
        let (count, number) = (fields.next()?, fields.next()?);
        let count = if count == "#####" { "0" } else { count.trim_end_matches('*') };
        Some((number.parse().ok()?, count.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// How often each line ran: as often as what ran most often of it.
fn our_lines(counted: &Counted) -> BTreeMap<u32, u64> {
    let mut lines = BTreeMap::new();
    for (id, counts) in counted.funcs() {
        let func = counted.program.func(id);
        for (block, count) in func.block_ids().zip(&counts.blocks) {
            for insn in counted.program.insns(func.block(block)) {
                let line = counted.program.image().source_line(insn.at).filter(|line| line.file.ends_with("lines.c"));
                if let Some(line) = line {
                    let most = lines.entry(line.line).or_insert(0);
                    *most = (*count).max(*most);
                }
            }
        }
    }
    lines
}

/// The same source, built with gcov's counters and without: counters of the compiler have lines, too.
#[test]
fn lines_as_gcov_counts_them() {
    let bench = Bench::new();
    let with_gcov = bench.compile("gcc", &["lines.c"], "lines", "-O0 -g --coverage");
    let program = bench.compile("gcc", &["lines.c"], "plain", "-O0 -g");
    let rewritten = bench.counting(&program, "lines.counting");
    assert_eq!(bench.run(&with_gcov, &[]).status, Some(4));
    assert_eq!(bench.run(&rewritten, &[]).status, Some(4));
    let (ours, theirs) = (our_lines(&bench.counted("lines.counting")), gcov_lines(&bench, "lines.gcda"));
    // Labels are lines with code for gcov only.
    let both: Vec<u32> = theirs.keys().copied().filter(|line| ours.contains_key(line)).collect();
    assert!(both.len() > 30, "{both:?}");
    for line in both {
        assert_eq!(ours[&line], theirs[&line], "line {line}");
    }
}
