//! Measuring, counting and watching programs that run.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::live::{Busy, Workshop};
use crate::{command, json, lancet};

/// `mov`, a thousand times ten multiplications, `nop`s, `dec` and `jnz`, and `ret`.
const LOW: f64 = 2.0 + 44_000.0;
const HIGH: f64 = 2.0 + 72_000.0;

#[test]
fn instructions_of_a_call_are_exact() {
    let workshop = Workshop::new();
    let mut busy = Busy::start(&workshop.compile("known.c", "known", &["-O2"]), &[]);
    for (function, instructions) in [("known_low", LOW), ("known_high", HIGH)] {
        let measured = json(&lancet(["measure", "--pid", &busy.pid(), function, "--calls", "20", "--json"]).good());
        assert_eq!(measured["instructions"].as_f64(), Some(instructions), "{measured:#}");
        assert_eq!(measured["calls"], 20);
        assert!(measured["ipc_by"] == "calibrated" || measured["ipc_by"] == "pmu", "{measured:#}");
        let (least, median) = (&measured["nanoseconds"]["least"], &measured["nanoseconds"]["median"]);
        assert!(least.as_f64() > Some(0.0) && median.as_f64() >= least.as_f64(), "{measured:#}");
        // On a busy machine calls may differ too much.
        assert!(measured["ipc"].as_f64() > Some(0.0) || measured["ipc_unknown"].is_string(), "{measured:#}");
    }
    busy.check_alive();
    let hottest = lancet(["measure", "--pid", &busy.pid(), "--hottest", "--calls", "5"]).good();
    assert!(hottest.contains("known_"), "{hottest}");
    let status = json(&lancet(["status", "--pid", &busy.pid(), "--json"]).good());
    assert_eq!(status["patches"].as_array().map(Vec::len), Some(0), "{status:#}");
}

#[test]
fn instructions_of_what_is_called_are_told_apart() {
    let workshop = Workshop::new();
    let mut busy = Busy::start(&workshop.compile("chain.c", "chain", &["-O2"]), &[]);
    let measure =
        |function| json(&lancet(["measure", "--pid", &busy.pid(), function, "--calls", "20", "--json"]).good());
    let listed = |function: &str| {
        let cfg = json(&lancet(["cfg", "--pid", &busy.pid(), function, "--json"]).good());
        let blocks = cfg["functions"][0]["blocks"].as_array().expect("blocks").clone();
        blocks.iter().map(|block| block["instructions"].as_array().map_or(0, Vec::len)).sum::<usize>() as f64
    };
    // Each of its instructions runs once in a call.
    let middle = measure("middle");
    assert_eq!(middle["own_instructions"].as_f64(), Some(listed("middle")), "{middle:#}");
    assert_eq!(middle["instructions_exact"], true, "{middle:#}");
    let (outermost, innermost) = (measure("outermost"), measure("innermost"));
    let number = |value: &serde_json::Value| value["instructions"].as_f64().expect("all are known");
    assert_eq!(number(&outermost), number(&middle) + listed("outermost"), "{outermost:#}");
    assert_eq!(innermost["instructions"], innermost["own_instructions"], "{innermost:#}");
    busy.check_alive();
}

#[test]
fn counts_in_a_process_with_threads_lose_nothing() {
    let workshop = Workshop::new();
    let mut busy = Busy::start(&workshop.compile("volley.c", "volley", &["-O2", "-pthread"]), &[]);
    let pid = busy.pid();
    let counting = command(["count", "--pid", &pid, "shot", "--seconds", "4", "--json"]).stdout(Stdio::piped()).spawn();
    let counting = counting.expect("lancet runs");
    // Once its journal says that calls are counted, all threads begin.
    let is_counting = || {
        json(&lancet(["status", "--pid", &pid, "--json"]).good())["patches"].as_array().is_some_and(|p| !p.is_empty())
    };
    while !is_counting() {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-USR1", &pid]).status().expect("kill runs").success());
    let counted = counting.wait_with_output().expect("it ends");
    let counted = json(&String::from_utf8(counted.stdout).expect("UTF-8"));
    assert_eq!(counted["calls"], 4 * 500_000, "{counted:#}");
    busy.check_alive();
}

#[test]
fn exceptions_pass_through_what_is_counted_and_measured() {
    let workshop = Workshop::new();
    let program = workshop.compile("throws.cpp", "throws", &["-O2", "-pthread", "-lstdc++"]);
    const THREADS: u64 = 3;
    let mut busy = Busy::start(&program, &[&THREADS.to_string()]);
    let pid = busy.pid();
    let counted = lancet(["count", "--pid", &pid, "outer", "middle", "--seconds", "0.3", "--json"]).good();
    let calls: Vec<u64> = counted.lines().map(|line| json(line)["calls"].as_u64().unwrap_or(0)).collect();
    // One calls the other once, unless counting begins or ends in between.
    assert!(calls.len() == 2 && calls[0] > 1000 && calls[0].abs_diff(calls[1]) <= 2 * THREADS, "{counted}");
    for function in ["outer", "middle", "leaf"] {
        let measured = json(&lancet(["measure", "--pid", &pid, function, "--calls", "50", "--json"]).good());
        assert_eq!(measured["calls"], 50, "{measured:#}");
    }
    busy.check_alive();
}

#[test]
fn top_shows_functions_loops_and_instructions() {
    let workshop = Workshop::new();
    let mut busy = Busy::start(&workshop.compile("chain.c", "chain", &["-O2"]), &[]);
    let top = format!("stty rows 30 cols 100; exec {} top --pid {}", env!("CARGO_BIN_EXE_lancet"), busy.pid());
    let mut terminal = Command::new("script")
        .args(["-qec", &top, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script runs");
    let mut keys = terminal.stdin.take().expect("a pipe");
    for key in ["\r", "\r", "q"] {
        std::thread::sleep(Duration::from_millis(2500));
        keys.write_all(key.as_bytes()).expect("it reads");
    }
    let shown = terminal.wait_with_output().expect("it ends");
    assert!(shown.status.success(), "{shown:?}");
    let shown = String::from_utf8_lossy(&shown.stdout);
    for expected in ["FUNCTION", "innermost", "loop 0x", "INSTRUCTION"] {
        assert!(shown.contains(expected), "no {expected} in {shown}");
    }
    // The terminal is as it was.
    assert!(shown.contains("\u{1b}[?1049l"), "{shown}");
    busy.check_alive();
}

#[test]
fn top_needs_a_terminal_and_a_process() {
    assert!(lancet(["top", "--pid", "1"]).stderr.contains("not a terminal"));
    assert!(lancet(["top"]).stderr.contains("--pid"));
}
