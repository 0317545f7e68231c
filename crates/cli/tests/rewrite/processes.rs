//! Processes that are made, replaced and ended in all ways: no count is lost, none is counted twice.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lancet::FuncId;
use lancet::tools::count::Counted;

use crate::bench::{Bench, calls_of, check, lancet};
use crate::exact::is_exact;

/// Counts of parents, children and grandchildren that run at the same time add up.
#[test]
fn forks_and_execs() {
    for flags in ["-O2", "-O0 -no-pie", "-O2 -static", "-O2 -s"] {
        let bench = Bench::new();
        let program = bench.compile("gcc", &["processes.c"], "processes", flags);
        let rewritten = bench.counting(&program, "processes.counting");
        assert_eq!(bench.run(&rewritten, &[]), bench.run(&program, &[]), "{flags}");
        let counted = bench.counted("processes.counting");
        if flags.contains("-s ") || flags.ends_with("-s") {
            continue;
        }
        // Four children and the parent's own thousands; the grandchild.
        assert_eq!(calls_of(&counted, "once"), 8 * 1000 + 500, "{flags}");
        // First, last, and in three processes that became the program again.
        assert_eq!(calls_of(&counted, "work"), 2 + 3, "{flags}");
        assert_eq!(calls_of(&counted, "main"), 1 + 3, "{flags}");
    }
}

/// The counts file is the one of the directory that the program was started in, wherever the program goes.
#[test]
fn in_another_directory() {
    for flags in ["-O2 -pthread", "-O2 -pthread -static"] {
        let bench = Bench::new();
        let program = bench.compile("gcc", &["elsewhere.c"], "elsewhere", flags);
        let out = bench.path("elsewhere.counting");
        check(lancet("rewrite").arg("-o").arg(&out).arg(&program));
        let ran = bench.run(&out, &[]);
        assert_eq!((ran.stderr.as_str(), ran.status), ("", Some(0)), "{flags}");
        assert_eq!(calls_of(&bench.counted("elsewhere.counting"), "work"), 1 + 3 + 1, "{flags}");
        assert!(!Path::new("/elsewhere.counting.counts").exists(), "{flags}");
    }
}

/// Each process has a file of its own, also if threads of its parent have ended.
#[test]
fn a_file_for_each_process() {
    let bench = Bench::new();
    let program = bench.compile("gcc", &["elsewhere.c"], "elsewhere", "-O2 -pthread");
    let out = bench.counting(&program, "elsewhere.counting");
    let folder = bench.path("all");
    std::fs::create_dir(&folder).expect("a folder");
    let status = Command::new(&out).env("LANCET_COUNTS", folder.join("%p")).status().expect("it runs");
    assert!(status.success());
    let files = std::fs::read_dir(&folder).expect("the folder").map(|file| file.expect("a file").path());
    let calls = |files: &[PathBuf]| {
        let counted = Counted::open_all(files, None, None).expect("counts");
        assert_eq!(counted.len(), 1);
        calls_of(&counted[0], "work")
    };
    let files: Vec<PathBuf> = files.collect();
    let mut each: Vec<u64> = files.iter().map(|file| calls(std::slice::from_ref(file))).collect();
    each.sort_unstable();
    assert_eq!(each, [1, 1 + 3]);
    assert_eq!(calls(&files), 5);
}

#[test]
fn all_ways_to_end() {
    let ways = ["exit", "_exit", "quick_exit", "abort", "trap", "fault", "divide", "kill", "term"];
    for (compiler, flags) in [("gcc", "-O2 -w"), ("clang", "-O0 -w"), ("gcc", "-Os -w -static")] {
        let bench = Bench::new();
        let program = bench.compile(compiler, &["ends.c"], "ends", flags);
        let rewritten = bench.counting(&program, "ends.counting");
        for (i, way) in ways.iter().enumerate() {
            let expected = bench.run(&program, &[way]);
            assert_eq!(bench.run(&rewritten, &[way]), expected, "{flags} {way}");
            let counted = bench.counted("ends.counting");
            let runs = i as u64 + 1;
            assert_eq!(calls_of(&counted, "work"), 1000 * runs, "{flags} {way}");
            assert_eq!(calls_of(&counted, "main"), runs, "{flags} {way}");
        }
    }
}

/// Every instruction, in runs that do not end by returning from `main`.
#[test]
fn exact_whatever_the_end() {
    for way in ["exit", "abort", "fault", "term"] {
        let bench = Bench::new();
        let program = bench.compile("gcc", &["ends.c"], "ends", "-O1 -w");
        is_exact(&bench, &program, &[way]);
    }
}

/// Killed from outside, while it waits.
#[test]
fn killed() {
    let bench = Bench::new();
    let program = bench.compile("gcc", &["ends.c"], "ends", "-O2 -w");
    let rewritten = bench.counting(&program, "ends.counting");
    let mut child = Command::new(&rewritten).arg("wait").stdout(Stdio::piped()).spawn().expect("it runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    child.kill().expect("it is killed");
    assert_eq!(child.wait().expect("it ended").signal(), Some(9));
    assert_eq!(calls_of(&bench.counted("ends.counting"), "work"), 1000);
}

/// Ended while it works, from outside or by the end of its process: only where nothing tells, in the middle of the
/// function that it works in, may something be missing.
#[test]
fn ended_at_work() {
    let bench = Bench::new();
    let program = bench.compile("gcc", &["busy.c"], "busy", "-O2 -pthread");
    let rewritten = bench.counting(&program, "busy.counting");
    for threads in [0, 1, 3, 0, 3] {
        let mut child = Command::new(&rewritten);
        let mut child = child.arg(threads.to_string()).stdout(Stdio::piped()).spawn().expect("it runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        if threads == 0 {
            child.kill().expect("it is killed");
        }
        child.wait().expect("it ended");
        let counted = bench.counted("busy.counting");
        std::fs::remove_file(bench.counts_path("busy.counting")).expect("the counts are there");
        let ends: u64 = counted.stopped().map(|(_, times)| times).sum();
        assert!(ends <= threads.max(1), "{ends} ends of {threads} threads");
        let work = counted
            .program
            .funcs()
            .iter()
            .position(|func| counted.program.symbol_name(func).as_deref() == Some("work"));
        let work = FuncId(work.expect("it has symbols") as u32);
        let call = counted.program.func(work).calls.first().expect("it calls mix").block;
        let calls = counted.counts(work).expect("it is counted").blocks[call.0 as usize];
        assert!(calls_of(&counted, "mix").abs_diff(calls) <= ends, "{calls} calls");
    }
}

/// No thread's counts are lost, whether it ends, its process does, or it never does.
#[test]
fn threads() {
    for (compiler, flags) in [("gcc", "-O2"), ("clang", "-O0 -no-pie"), ("gcc", "-O2 -static")] {
        let bench = Bench::new();
        let program = bench.compile(compiler, &["threads.c"], "threads", &format!("{flags} -pthread"));
        bench.behaves_the_same(&program, &[]);
        let counted = bench.counted("threads.counting");
        assert_eq!(calls_of(&counted, "work"), 6 * 4 * 20_000, "{flags}");
        assert_eq!(calls_of(&counted, "run"), 6 * 4, "{flags}");
        assert_eq!(calls_of(&counted, "main"), 1, "{flags}");
        // Rewritten again, it counts for both; that makes three runs.
        let again = bench.behaves_the_same(&bench.path("threads.counting"), &[]);
        assert_eq!(calls_of(&bench.counted_by("threads.counting.counting", &again), "work"), 0, "{flags}");
        assert_eq!(calls_of(&bench.counted("threads.counting"), "work"), 3 * 6 * 4 * 20_000, "{flags}");
    }
}

/// Several runs at once, and one after the other, share a file.
#[test]
fn runs_at_once() {
    let bench = Bench::new();
    let program = bench.compile("gcc", &["ends.c"], "ends", "-O2 -w");
    let rewritten = bench.counting(&program, "ends.counting");
    let start = |_| Command::new(&rewritten).arg("exit").stdout(Stdio::null()).spawn().expect("it runs");
    let started: Vec<_> = (0..6).map(start).collect();
    for mut child in started {
        assert_eq!(child.wait().expect("it ended").code(), Some(3));
    }
    bench.run(&rewritten, &["exit"]);
    assert_eq!(calls_of(&bench.counted("ends.counting"), "work"), 7 * 1000);
}
