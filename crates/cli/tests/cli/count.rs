//! Counting programs that run: the counts, every format, and what can go wrong.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::live::Workshop;
use crate::{json, lancet};

/// A folder with `tally`, whose numbers are known, and a cache of its own.
struct Bench {
    workshop: Workshop,
    tally: PathBuf,
}

impl Bench {
    fn new() -> Bench {
        let workshop = Workshop::new();
        let tally = workshop.compile("tally.c", "tally", &["-O1", "-g"]);
        Bench { workshop, tally }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.workshop.path(name)
    }

    /// Runs `lancet` in the folder, with something on standard input.
    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = crate::command(arguments);
        command.current_dir(self.path("")).env("XDG_CACHE_HOME", self.path("cache")).env_remove("LANCET_COUNTS");
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("lancet runs");
        // A program that does not read its input is no fault.
        let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
        child.wait_with_output().expect("it ends")
    }

    /// Rewrites `tally` and runs the result; the counts are in the file of this name.
    fn counts(&self, name: &str) -> PathBuf {
        let (out, counts) = (self.path("tally.counting"), self.path(name));
        if !out.exists() {
            lancet([Path::new("rewrite"), &self.tally, Path::new("-o"), &out]).good();
        }
        let mut command = std::process::Command::new(&out);
        let ran = command.env("LANCET_COUNTS", &counts).stdin(Stdio::null()).output().expect("it runs");
        assert_eq!((ran.status.code(), text(&ran.stderr)), (Some(0), ""));
        counts
    }

    fn report(&self, format: &str, counts: &[&Path]) -> String {
        let options = ["report", "--format", format].map(Path::new);
        lancet(options.iter().chain(counts)).good()
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

fn list<'a>(report: &'a Value, key: &str) -> &'a [Value] {
    report[key].as_array().expect("an array")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn function<'a>(report: &'a Value, name: &str) -> &'a Value {
    list(report, "functions").iter().find(|function| function["name"] == name).expect("it was counted")
}

#[test]
fn a_run_is_the_users_own_and_counted_exactly() {
    let bench = Bench::new();
    let ran = bench.run(&["count", "--json", "-o", "counts.json", "./tally", "3"], "some input\n");
    assert_eq!((ran.status.code(), text(&ran.stdout), text(&ran.stderr)), (Some(3), "./tally\nsome input\n", ""));
    let report = json(&fs::read_to_string(bench.path("counts.json")).expect("the report"));
    let calls = ["main", "work", "step", "odd"].map(|name| number(&function(&report, name)["calls"]));
    assert_eq!(calls, [1, 7, 70, 35]);
    let of_work = &function(&report, "work")["address"];
    let mut counts: Vec<u64> = list(&report, "blocks")
        .iter()
        .filter(|block| block["function"] == *of_work)
        .map(|block| number(&block["count"]))
        .collect();
    counts.sort_unstable();
    counts.dedup();
    assert!(counts.contains(&7) && counts.contains(&70), "{counts:?}");
    assert_eq!(report["objects"][0]["faults"].as_array().map(Vec::len), Some(0));
}

#[test]
fn counts_add_up_and_flow_is_kept() {
    let bench = Bench::new();
    let report = json(&bench.report("json", &[&bench.counts("one.counts")]));
    let executed = |block: &Value| number(&block["count"]) * number(&block["instructions"]);
    let all: u64 = list(&report, "blocks").iter().map(executed).sum();
    assert_eq!(number(&report["instructions"]), all);
    let mut entered: HashMap<&str, u64> = HashMap::new();
    for way in list(&report, "edges").iter().chain(list(&report, "entries")) {
        *entered.entry(way["to"].as_str().expect("an address")).or_default() += number(&way["count"]);
    }
    for block in list(&report, "blocks") {
        let address = block["address"].as_str().expect("an address");
        assert_eq!(entered.get(address).copied().unwrap_or(0), number(&block["count"]), "{address}");
    }
}

#[test]
fn runs_of_the_same_program_add_up() {
    let bench = Bench::new();
    let (one, two) = (bench.counts("one.counts"), bench.counts("two.counts"));
    let report = json(&bench.report("json", &[&one, &two]));
    assert_eq!(number(&function(&report, "step")["calls"]), 140);
    // A second run into the same file, too.
    bench.counts("one.counts");
    let report = json(&bench.report("json", &[&one, &two]));
    assert_eq!(number(&function(&report, "step")["calls"]), 210);
}

#[test]
fn tables_and_totals() {
    let bench = Bench::new();
    let counts = bench.counts("tally.counts");
    let report = bench.report("text", &[&counts]);
    let row =
        |name: &str| report.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}: {report}"));
    assert_eq!(row("work").split_whitespace().nth(2), Some("7"));
    let of_loop: Vec<&str> = row("in work, depth 1").split_whitespace().collect();
    assert_eq!(of_loop[2..4], ["7", "10.0"]);
    assert!(report.contains("one way only") && report.contains("NOT TAKEN"));

    let total = bench.run(&["count", "--total", "-o", "total", "./tally"], "");
    assert_eq!((total.status.code(), text(&total.stderr)), (Some(0), ""));
    let total = fs::read_to_string(bench.path("total")).expect("the total");
    let all = number(&json(&bench.report("json", &[&counts]))["instructions"]);
    assert_eq!(total, format!("{all} instructions\n"));
}

#[test]
fn formats_for_other_tools() {
    let bench = Bench::new();
    let counts = bench.counts("tally.counts");
    let all = number(&json(&bench.report("json", &[&counts]))["instructions"]);

    let callgrind = bench.report("callgrind", &[&counts]);
    let cost = |line: &str| line.rsplit(' ').next().and_then(|cost| cost.parse::<u64>().ok()).expect("a cost");
    // The line behind a call is what it cost with everything below.
    let lines: Vec<&str> = callgrind.lines().collect();
    let of_calls = |name: &str, calls: &str| {
        let called =
            |lines: &&[&str]| lines[0] == format!("cfn={name}") && lines[1].starts_with(&format!("calls={calls} "));
        lines.windows(3).find(called).map(|lines| cost(lines[2])).unwrap_or_else(|| panic!("{name}: {callgrind}"))
    };
    let own = lines.windows(2).filter(|lines| lines[1].starts_with("0x") && !lines[0].starts_with("calls="));
    assert_eq!(own.map(|lines| cost(lines[1])).sum::<u64>(), all);
    assert!(of_calls("step", "70") > of_calls("odd", "35") && of_calls("odd", "35") > 0);
    assert!(of_calls("work", "7") > of_calls("step", "70"));
    assert!(callgrind.contains("\nfn=work\n") && callgrind.contains(&format!("summary: {all}\n")));

    let lcov = bench.report("lcov", &[&counts]);
    let source = fs::read_to_string(crate::testdata().join("live/tally.c")).expect("the source");
    let line_of = |text: &str| 1 + source.lines().position(|line| line.contains(text)).expect("it is there");
    for (what, count) in [("step(i);", 70), ("odd(i);", 35), ("work(10);", 7), ("abort();", 0)] {
        let record = format!("\nDA:{},{count}\n", line_of(what));
        assert!(lcov.contains(&record), "{what}: no {record} in {lcov}");
    }
    assert!(lcov.contains("\nFNDA:7,work\n"));

    let fdata = bench.report("fdata", &[&counts]);
    assert!(fdata.lines().any(|line| line.starts_with("1 main ") && line.ends_with(" 1 work 0 0 7")), "{fdata}");
    assert!(fdata.lines().any(|line| line.starts_with("1 work ") && line.ends_with(" 1 step 0 0 70")), "{fdata}");

    let html = bench.report("html", &[&counts]);
    assert!(html.starts_with("<!doctype html>") && html.contains("<svg") && html.contains("class=\"heat\""));
    // Nothing is loaded from anywhere.
    assert!(!html.contains("<script") && !html.contains("src=") && !html.contains("href=\"http"));
}

#[test]
fn formats_that_a_stripped_program_has_nothing_for() {
    let bench = Bench::new();
    let bare = bench.workshop.compile("tally.c", "bare", &["-O1", "-s"]);
    let (out, counts) = (bench.path("bare.counting"), bench.path("bare.counts"));
    lancet([Path::new("rewrite"), &bare, Path::new("-o"), &out]).good();
    let ran = std::process::Command::new(&out).env("LANCET_COUNTS", &counts).stdin(Stdio::null()).output();
    assert!(ran.expect("it runs").status.success());
    for (format, missing) in [("lcov", "source lines"), ("fdata", "symbols")] {
        let report = bench.path(format);
        let options = ["report", "--format", format, "-o"].map(Path::new);
        let line = lancet(options.into_iter().chain([report.as_path(), &counts])).error_line();
        assert!(line.contains("bare") && line.ends_with(&format!("it has no {missing}")), "{line}");
        assert!(!report.exists());
    }
    bench.report("callgrind", &[&counts]);
}

#[test]
fn functions_with_their_counts() {
    let bench = Bench::new();
    let counts = bench.counts("tally.counts");
    let annotated = |options: &[&str]| {
        let counts = counts.to_str().expect("UTF-8");
        lancet(["annotate", counts].iter().chain(options)).good()
    };
    let listing = annotated(&["work"]);
    assert!(listing.lines().any(|line| line.trim_start().starts_with("70 ") && line.contains("call")), "{listing}");
    let source = annotated(&["work", "--source"]);
    assert!(source.lines().any(|line| line.trim_start().starts_with("35 ") && line.contains("odd(i);")), "{source}");
    let blocks = json(&annotated(&["work", "--json"]));
    assert_eq!(number(&blocks["calls"]), 7);
}

#[test]
fn only_some_functions() {
    let bench = Bench::new();
    let ran = bench.run(&["count", "--functions", "^work$", "--json", "-o", "counts.json", "./tally"], "");
    assert_eq!((ran.status.code(), text(&ran.stderr)), (Some(0), ""));
    let report = json(&fs::read_to_string(bench.path("counts.json")).expect("the report"));
    let names: Vec<&str> = list(&report, "functions").iter().filter_map(|function| function["name"].as_str()).collect();
    assert!(names.contains(&"work") && !names.contains(&"main") && !names.contains(&"step"), "{names:?}");
}

#[test]
fn libraries_are_counted_too() {
    let bench = Bench::new();
    let ran = bench.run(&["count", "--libs", "--json", "-o", "counts.json", "./tally"], "abc");
    assert_eq!((ran.status.code(), text(&ran.stdout)), (Some(0), "./tally\nabc"));
    let report = json(&fs::read_to_string(bench.path("counts.json")).expect("the report"));
    let objects: Vec<&str> = list(&report, "objects").iter().filter_map(|object| object["object"].as_str()).collect();
    assert!(objects[0].ends_with("/tally") && objects.iter().any(|object| object.contains("libc.so")), "{objects:?}");
    assert!(list(&report, "blocks").iter().all(|block| block["object"].is_string()));
}

#[test]
fn ends_by_a_signal() {
    let bench = Bench::new();
    let ran = bench.run(&["count", "--total", "-o", "total", "./tally", "abort"], "");
    assert_eq!(ran.status.signal(), Some(6));
    // Also where the report is numbers alone.
    let doubt = "lancet: ended by signal 6 (SIGABRT): the function that ran last may be off by one";
    assert!(text(&ran.stderr).starts_with(doubt), "{}", text(&ran.stderr));
    assert!(fs::read_to_string(bench.path("total")).expect("the total").ends_with(" instructions\n"));
    bench.run(&["count", "-o", "report", "./tally", "abort"], "");
    let report = fs::read_to_string(bench.path("report")).expect("the report");
    assert!(
        report.starts_with("ended by signal 6 (SIGABRT): the function that ran last may be off by one"),
        "{report}"
    );
    // Rounds that only registers tell are the same.
    let ran = bench.run(&["count", "--rounds", "registers", "--total", "-o", "total", "./tally"], "");
    assert_eq!((ran.status.code(), text(&ran.stderr)), (Some(0), ""));
    let total = fs::read_to_string(bench.path("total")).expect("the total");
    bench.run(&["count", "--total", "-o", "total", "./tally"], "");
    assert_eq!(total, fs::read_to_string(bench.path("total")).expect("the total"));
}

#[test]
fn what_cannot_be_edited_runs_all_the_same() {
    let bench = Bench::new();
    let script = bench.path("script");
    fs::write(&script, "#!/bin/sh\necho \"$1\"\nexit 5\n").expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it may run");
    let ran = bench.run(&["count", "./script", "word"], "");
    assert_eq!((ran.status.code(), text(&ran.stdout)), (Some(5), "word\n"));
    let line = text(&ran.stderr);
    assert!(line.contains("not an ELF file") && line.ends_with("; it runs uncounted\n") && line.lines().count() == 1);
    let missing = bench.run(&["count", "no-such-program"], "");
    assert_eq!(text(&missing.stderr), "lancet: no-such-program: there is no such program\n");
    assert_eq!(missing.status.code(), Some(127));
}

#[test]
fn where_nothing_can_be_written() {
    let bench = Bench::new();
    let ran = bench.run(&["count", "-o", "/no/such/folder/report", "./tally", "4"], "");
    assert_eq!((ran.status.code(), text(&ran.stdout)), (Some(4), "./tally\n"));
    assert_eq!(text(&ran.stderr), "lancet: /no/such/folder/report: No such file or directory (os error 2)\n");
    // Neither is a cache needed.
    fs::remove_dir_all(bench.path("cache")).expect("the cache");
    fs::write(bench.path("cache"), "no folder").expect("a file");
    let ran = bench.run(&["count", "--total", "./tally", "4"], "");
    assert_eq!(ran.status.code(), Some(4));
    assert!(text(&ran.stderr).ends_with(" instructions\n"));
}

#[test]
fn counts_that_are_none() {
    let bench = Bench::new();
    let error = |arguments: &[&str]| lancet(std::iter::once(&"report").chain(arguments)).error_line();
    assert_eq!(error(&["/no/such.counts"]), "lancet: /no/such.counts: No such file or directory (os error 2)");
    let (other, counts) = (bench.path("other.counts"), bench.counts("tally.counts"));
    fs::write(&other, "something else").expect("a file");
    let (other, counts) = (other.to_str().expect("UTF-8"), counts.to_str().expect("UTF-8"));
    assert!(error(&[other]).contains("not a counts file"));
    let tally = bench.tally.to_str().expect("UTF-8");
    assert!(error(&[counts, "--program", tally]).contains("it was not rewritten to count"));
    let sample = crate::sample_folder().join("sample.elf");
    assert!(error(&[counts, "--original", sample.to_str().expect("UTF-8")]).contains("has changed"));
    let line = lancet(["annotate", counts, "wrok"]).error_line();
    assert!(line.contains("no function wrok; did you mean work"), "{line}");
}
