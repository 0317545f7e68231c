//! Sampling programs that run.

use std::process::Command;

use serde_json::Value;

use crate::live::{Busy, Workshop};
use crate::{json, lancet};

fn function<'a>(profile: &'a Value, name: &str) -> &'a Value {
    let functions = profile["functions"].as_array().expect("an array");
    functions.iter().find(|function| function["name"] == name).unwrap_or_else(|| panic!("no {name} in {functions:#?}"))
}

/// The share of stacks in which these frames follow each other.
fn share_of_chain(profile: &Value, chain: &[&str]) -> f64 {
    let stacks = profile["stacks"].as_array().expect("an array");
    let has = |stack: &&Value| {
        let frames: Vec<&str> =
            stack["frames"].as_array().expect("an array").iter().filter_map(Value::as_str).collect();
        frames.windows(chain.len()).any(|frames| frames == chain)
    };
    let samples = |stack: &Value| stack["samples"].as_f64().expect("a number");
    stacks.iter().filter(has).map(samples).sum::<f64>() / stacks.iter().map(samples).sum::<f64>()
}

#[test]
fn call_chains_without_frame_pointers() {
    let workshop = Workshop::new();
    let chain = workshop.compile("chain.c", "chain", &["-O2", "-fomit-frame-pointer"]);
    let mut busy = Busy::start(&chain, &[]);
    let profile = json(&lancet(["profile", "--pid", &busy.pid(), "--seconds", "1", "--json"]).good());
    busy.check_alive();
    assert!(profile["samples"].as_u64() > Some(50), "{}", profile["samples"]);
    let innermost = function(&profile, "innermost");
    assert!(innermost["own_percent"].as_f64() > Some(90.0));
    assert!(share_of_chain(&profile, &["main", "outermost", "middle", "innermost"]) > 0.95);
    let depths: Vec<Option<u64>> =
        innermost["loops"].as_array().expect("an array").iter().map(|l| l["depth"].as_u64()).collect();
    assert_eq!(depths, [Some(1), Some(2)]);
    assert!(innermost["loops"][1]["percent"].as_f64() > Some(80.0));
    assert!(innermost["instructions"].as_array().is_some_and(|list| !list.is_empty()));
    assert!(["cycles", "cpu-clock"].contains(&profile["event"].as_str().expect("a name")));
}

#[test]
fn instructions_where_control_flow_is_not_known() {
    let workshop = Workshop::new();
    let mut busy = Busy::start(&workshop.compile("hidden.c", "hidden", &["-O2"]), &[]);
    let profile = json(&lancet(["profile", "--pid", &busy.pid(), "--seconds", "1", "--json"]).good());
    busy.check_alive();
    let instructions = function(&profile, "hidden")["instructions"].as_array().expect("an array").clone();
    assert!(!instructions.is_empty());
    for instruction in &instructions {
        let text = instruction["text"].as_str().unwrap_or_default();
        assert!(["imul", "dec", "jne"].iter().any(|name| text.starts_with(name)), "{instructions:#?}");
    }
}

#[test]
fn a_stripped_command_and_its_children() {
    let workshop = Workshop::new();
    let chain = workshop.compile("chain.c", "chain", &["-O2", "-s"]);
    let ran =
        lancet(["profile".as_ref(), "--json".as_ref(), "--".as_ref(), chain.as_os_str(), "800".as_ref(), "2".as_ref()]);
    let profile = json(&ran.good());
    let threads = profile["threads"].as_array().expect("an array");
    assert_eq!(threads.len(), 3, "{threads:#?}");
    let hottest = &profile["functions"][0];
    assert!(
        hottest["name"].as_str().is_some_and(|name| name.starts_with("sub_"))
            && hottest["own_percent"].as_f64() > Some(80.0)
    );
    // main, outermost, middle, innermost, all without names.
    let deep = profile["stacks"].as_array().expect("an array").iter();
    let deepest = deep.max_by_key(|stack| stack["samples"].as_u64()).expect("a stack");
    let unnamed = deepest["frames"].as_array().expect("an array").iter().filter_map(Value::as_str);
    assert!(unnamed.filter(|frame| frame.starts_with("sub_")).count() >= 4, "{deepest}");
}

#[test]
fn formats_for_other_tools() {
    let workshop = Workshop::new();
    let busy = Busy::start(&workshop.compile("chain.c", "chain", &["-O2"]), &[]);
    let pid = busy.pid();
    let profile = |format: &str| {
        let arguments = ["profile", "--pid", &pid, "--seconds", "0.3", "--format", format];
        let output = crate::command(arguments).output().expect("lancet runs");
        assert!(output.status.success());
        output.stdout
    };
    let text = |format: &str| String::from_utf8(profile(format)).expect("text");
    assert!(text("folded").contains("main;outermost;middle;innermost "));
    let flame = text("flame");
    assert!(flame.starts_with("<?xml") && flame.contains("innermost") && flame.trim_end().ends_with("</svg>"));
    let firefox = json(&text("firefox"));
    assert!(firefox["threads"][0]["samples"]["length"].as_u64() > Some(10));
    assert_eq!(profile("pprof")[..2], [0x1f, 0x8b]);
    assert!(text("text").contains("innermost"));
}

#[test]
fn differences_and_counts() {
    let workshop = Workshop::new();
    let busy = Busy::start(&workshop.compile("chain.c", "chain", &["-O2"]), &[]);
    let one = lancet(["profile", "--pid", &busy.pid(), "--seconds", "0.3", "--json"]).good();
    let path = workshop.path("one.json");
    std::fs::write(&path, one).expect("a file");
    let diff = lancet(["diff".as_ref(), "--json".as_ref(), path.as_os_str(), path.as_os_str()]).good();
    let changes = json(&diff);
    assert!(changes["functions"].as_array().expect("an array").iter().all(|change| change["change"] == 0.0));

    let counts = lancet(["stat", "--pid", &busy.pid(), "--seconds", "0.4", "--interval", "0.2", "--json"]).good();
    let lines: Vec<Value> = counts.lines().map(json).collect();
    assert!(lines.len() >= 2 && lines[0]["events"][0]["count"].as_u64() > Some(1_000_000), "{counts}");
}

#[test]
fn a_process_that_is_stopped_gives_no_samples() {
    let workshop = Workshop::new();
    let busy = Busy::start(&workshop.compile("chain.c", "chain", &["-O2"]), &[]);
    let pid = busy.pid();
    assert!(Command::new("kill").args(["-STOP", &pid]).status().is_ok_and(|status| status.success()));
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there");
    while !stat().contains(") T ") {
        std::thread::yield_now();
    }
    let error = lancet(["profile", "--pid", &pid, "--seconds", "0.1"]).error_line();
    assert_eq!(error, format!("lancet: process {pid}: no samples: it is stopped (kill -CONT {pid} lets it run on)"));
}

#[test]
fn what_cannot_be_sampled() {
    let error = |line: &str| lancet(line.split(' ')).error_line();
    let unknown = error("profile --pid 1 --event no-such-event");
    assert!(unknown.starts_with("lancet: no-such-event: no such event; "), "{unknown}");
    assert_eq!(error("profile --pid 4194300"), "lancet: process 4194300: no such process");
    assert!(error("profile --cpu 9999").starts_with("lancet: CPU 9999: there is no such CPU; online are 0"));
    assert!(error("profile -- /no/such/program").starts_with("lancet: /no/such/program: cannot run it: "));
    assert!(error("diff /no/such/file /dev/null").starts_with("lancet: /no/such/file: cannot read: "));
    let nothing = Command::new(env!("CARGO_BIN_EXE_lancet")).arg("profile").output().expect("lancet runs");
    assert_eq!(nothing.status.code(), Some(2));
}
