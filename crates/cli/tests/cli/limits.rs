//! Where changing a process ends: what is refused, and why, with the process untouched.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::live::{Busy, Workshop};
use crate::{json, lancet};

fn compile(workshop: &Workshop, name: &str, text: &str, flags: &[&str]) -> PathBuf {
    let out = workshop.path(name);
    let mut gcc = Command::new("gcc").args(["-x", "c", "-", "-o"]).arg(&out).args(flags).stdin(Stdio::piped()).spawn();
    let gcc = gcc.as_mut().expect("gcc runs");
    gcc.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    assert!(gcc.wait().expect("it ends").success());
    out
}

/// A function that its caller knows: rcx is as it was behind a call.
const KNOWN: &str = r#"
long known(long x);
long sum(long n);
__asm__(".type known, @function\nknown: lea 1(%rdi), %rax\nnop\nnop\nnop\nret\n.size known, . - known\n"
        ".type sum, @function\nsum: mov %rdi, %rcx\nxor %edi, %edi\n"
        "1: call known\nmov %rax, %rdi\ndec %rcx\njnz 1b\nmov %rdi, %rax\nret\n.size sum, . - sum\n");
int main(void) {
    while (sum(1000) == 1000) {
    }
    return 1;
}
"#;

#[test]
fn what_callers_know_of_a_function_stays_true() {
    let workshop = Workshop::new();
    let mut busy = Busy::start(&compile(&workshop, "program", KNOWN, &["-O1"]), &[]);
    let pid = busy.pid();
    let text = "long known(long x) { long y; __asm__(\"mov %1, %%rcx; mov %%rcx, %0\" : \"=r\"(y) : \"r\"(x) : \"rcx\"); \
                return y + 1; }";
    let careless = compile(&workshop, "careless.o", text, &["-O1", "-c"]).display().to_string();
    let refused = lancet(["replace", "--pid", &pid, "known", "--with", &careless]).error_line();
    assert!(refused.contains("its callers know that it leaves rcx alone"), "{refused}");
    assert!(refused.contains("compile that with -fcall-saved-rcx"), "{refused}");
    let careful = compile(&workshop, "careful.o", text, &["-O1", "-c", "-fcall-saved-rcx"]).display().to_string();
    lancet(["replace", "--pid", &pid, "known", "--with", &careful]).good();
    std::thread::sleep(std::time::Duration::from_millis(50));
    busy.check_alive();
    lancet(["undo", "--pid", &pid]).good();
    busy.check_alive();
}

#[test]
fn functions_of_two_objects_are_counted_at_once() {
    let workshop = Workshop::new();
    let text = "#include <stdlib.h>\nlong out; __attribute__((noipa)) long twice(long x) { return 2 * x; }\n\
                int main(void) { for (long i = 0;; i++) out += twice(labs(-i)); }";
    let mut busy = Busy::start(&compile(&workshop, "program", text, &["-O2", "-fno-builtin"]), &[]);
    let counted = lancet(["count", "--pid", &busy.pid(), "twice", "labs", "--seconds", "0.2", "--json"]).good();
    let calls: Vec<(String, u64)> = counted
        .lines()
        .map(|line| {
            (json(line)["name"].as_str().unwrap_or_default().to_owned(), json(line)["calls"].as_u64().unwrap_or(0))
        })
        .collect();
    assert!(calls.len() == 2 && calls.iter().all(|(_, calls)| *calls > 1000), "{calls:?}");
    assert!(calls[0].0 == "twice" && calls[1].0.contains("abs"), "{calls:?}");
    busy.check_alive();
}

#[test]
fn a_replacement_larger_than_any_cache() {
    let workshop = Workshop::new();
    let mut busy = Busy::start(&workshop.compile("chain.c", "chain", &["-O2"]), &[]);
    let large = workshop.path("large.bin");
    fs::File::create(&large).and_then(|file| file.set_len(1 << 32)).expect("a file with a hole");
    let large = large.display().to_string();
    let refused = lancet(["replace", "--pid", &busy.pid(), "innermost", "--with", &large]).error_line();
    assert_eq!(refused, format!("lancet: {large}: is larger than any code cache"));
    assert!(!fs::read_to_string(format!("/proc/{}/maps", busy.pid())).expect("its maps").contains("lancet"));
    busy.check_alive();
}

#[test]
fn filtered_system_calls() {
    let workshop = Workshop::new();
    let text =
        "#include <sys/prctl.h>\nint main(void) { prctl(PR_SET_SECCOMP, 1); for (volatile long i = 0;; i++) { } }";
    let mut busy = Busy::start(&compile(&workshop, "program", text, &["-O1"]), &[]);
    let pid = busy.pid();
    let raw = workshop.path("raw.bin");
    fs::write(&raw, [0xc3]).expect("a file");
    let refused = lancet(["replace", "--pid", &pid, "main", "--with", &raw.display().to_string()]).error_line();
    let why = "its system calls are filtered (Seccomp: 1 in /proc/";
    assert!(refused.starts_with(&format!("lancet: process {pid}: cannot take control of it: {why}")), "{refused}");
    // To look at it needs none.
    assert!(lancet(["profile", "--pid", &pid, "--seconds", "0.2"]).good().contains("main"));
    busy.check_alive();
}

#[test]
fn calls_that_a_clock_cannot_time_have_no_ipc() {
    let workshop = Workshop::new();
    let mut busy = Busy::start(&workshop.compile("gaps.c", "gaps", &["-O2"]), &[]);
    let measured = json(&lancet(["measure", "--pid", &busy.pid(), "small", "--calls", "50", "--json"]).good());
    if measured["ipc_by"] == "calibrated" {
        assert!(measured["ipc"].is_null(), "{measured:#}");
        assert!(measured["ipc_unknown"].as_str().is_some_and(|why| why.contains("too short")), "{measured:#}");
    }
    assert_eq!(measured["instructions"].as_f64(), Some(2.0), "{measured:#}");
    busy.check_alive();
}
