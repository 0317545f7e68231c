//! Where changing a process ends: what is refused, and why, with the process untouched.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt;
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
    // To look at it needs none, and neither does taking changes back.
    lancet(["undo", "--pid", &pid]).good();
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

/// A loop whose first instruction would lie under a jump at the function's entry, with a known sum.
const TIGHT: &str = r#"
long tight(long n);
__asm__(".globl tight\n.type tight, @function\ntight: xor %eax, %eax\n1: add %rdi, %rax\nimul $1, %rax, %rax\n"
        "nopl 0(%rax)\nnopl 0(%rax)\ndec %rdi\njne 1b\nret\n.size tight, . - tight\n");
int main(void) {
    while (tight(3000000) == 3000000l * 3000001 / 2) {
    }
    return 1;
}
"#;

#[test]
fn threads_that_are_in_a_function_stay_right_when_it_is_changed() {
    let workshop = Workshop::new();
    let mut busy = Busy::start(&compile(&workshop, "program", TIGHT, &["-O1"]), &[]);
    for _ in 0..5 {
        lancet(["count", "--pid", &busy.pid(), "tight", "--seconds", "0.05"]).good();
        busy.check_alive();
    }
}

/// Does by itself what an injected call makes a process do, and tells where.
const MAPPED: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
    int file = memfd_create("lancet", MFD_CLOEXEC);
    if (ftruncate(file, 8192) < 0)
        return 1;
    printf("%lu\n", (unsigned long)mmap(0, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0));
    fflush(stdout);
    for (;;)
        pause();
}
"#;

#[test]
fn memory_that_a_killed_lancet_asked_for_is_found_again() {
    let workshop = Workshop::new();
    let program = compile(&workshop, "program", MAPPED, &["-O1"]);
    let mut child = Command::new(program).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("it tells");
    let start: u64 = line.trim().parse().expect("an address");
    let pid = child.id();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("its state");
    let started = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(19)).expect("when it started");
    let folder = workshop.path("lancet");
    fs::DirBuilder::new().mode(0o700).create(&folder).expect("a folder");
    let journal = format!(
        r#"{{"pid":{pid},"started":"{started}","next_id":1,"regions":[],"patches":[],"placed":[],
            "expected":{{"start":{start},"code":4096,"data":4096}}}}"#
    );
    fs::write(folder.join(format!("{pid}.json")), journal).expect("a journal");
    let run = |words: &[&str]| {
        let mut command = crate::command(words.iter().chain(&["--pid", &pid.to_string()]).copied());
        let output = command.env("XDG_RUNTIME_DIR", workshop.path("")).output().expect("lancet runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let is_known = |text: &str| json(text)["regions"][0]["address"] == format!("{start:#x}");
    assert!(is_known(&run(&["status", "--json"])));
    run(&["undo"]);
    assert!(is_known(&run(&["status", "--json"])));
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("its maps");
    let data = maps.lines().find(|line| line.starts_with(&format!("{:x}-", start + 4096))).expect("its data");
    assert!(data.contains(" rw-p "), "{data}");
    let files = fs::read_dir(format!("/proc/{pid}/fd")).expect("its files").flatten();
    assert!(
        files.filter_map(|file| fs::read_link(file.path()).ok()).all(|to| !to.to_string_lossy().contains("lancet"))
    );
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
}

#[test]
fn a_process_in_namespaces_of_its_own() {
    let workshop = Workshop::new();
    let object = workshop.compile("small.c", "small.o", &["-O2", "-c"]).display().to_string();
    let program = workshop.compile("torture.c", "torture", &["-O2", "-pthread"]).display().to_string();
    // Its file is where nobody outside sees it.
    let script = format!("mount -t tmpfs none /mnt && cp {program} /mnt/hidden && exec /mnt/hidden hot 2");
    let mut command = Command::new("unshare");
    command.args(["-Urmpf", "--kill-child", "sh", "-c", &script]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut outer = command.spawn().expect("unshare runs");
    std::thread::sleep(std::time::Duration::from_millis(500));
    if outer.try_wait().expect("it can be asked").is_some() {
        eprintln!("this machine allows no namespaces");
        return;
    }
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", outer.id())).expect("its children");
    let pid = children.trim();
    lancet(["replace", "--pid", pid, "small", "--with", &object]).good();
    lancet(["undo", "--pid", pid]).good();
    assert!(lancet(["count", "--pid", pid, "small", "--seconds", "0.1"]).good().contains("small"));
    assert!(lancet(["profile", "--pid", pid, "--seconds", "0.3"]).good().contains("small"));
    outer.kill().expect("it is ours");
    outer.wait().expect("it ends");
}
