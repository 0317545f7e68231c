//! Changing programs that run.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::live::{Busy, Workshop};
use crate::{json, lancet};

/// A program whose lines are read: it checks its own results.
struct Telling {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Telling {
    fn start(program: &Path, arguments: &[&str]) -> Telling {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut telling = Telling { child, lines };
        telling.check(1);
        telling
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Sends it a byte.
    fn tell(&mut self) {
        let input = self.child.stdin.as_mut().expect("a pipe");
        input.write_all(b"x").expect("it reads");
    }

    /// It goes on, and its results are right.
    #[track_caller]
    fn check(&mut self, steps: usize) {
        for _ in 0..steps {
            let line = self.lines.next().expect("it runs").expect("a line");
            assert!(line.starts_with("redstep: "), "{line}");
        }
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn vecadd(workshop: &Workshop) -> (PathBuf, String) {
    let program = workshop.compile("vecadd-sse.c", "vecadd-sse", &["-O3", "-pthread"]);
    let object = workshop.compile("vecadd-avx.c", "vecadd-avx.o", &["-O3", "-c"]);
    (program, object.display().to_string())
}

fn code_at(pid: &str, at: &str) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let at = u64::from_str_radix(at.trim_start_matches("0x"), 16).expect("an address");
    let mut bytes = vec![0; 16];
    let memory = fs::File::open(format!("/proc/{pid}/mem")).expect("its memory");
    memory.read_exact_at(&mut bytes, at).expect("its code");
    bytes
}

#[test]
fn nobody_waits_for_a_thread_that_waits_for_its_child() {
    let workshop = Workshop::new();
    let program = workshop.compile("waits.c", "waits", &["-O2", "-pthread"]);
    let object = workshop.compile("small.c", "small.o", &["-O2", "-c"]).display().to_string();
    let mut busy = Telling::start(&program, &["vfork"]);
    let pid = busy.pid();
    while !sleeps_for_good(&pid) {
        std::thread::yield_now();
    }
    let replace = || lancet(["replace", "--pid", &pid, "small", "--with", &object]);
    // The child lives until it is told to end, so Lancet has not waited for it, and neither do the others.
    let error = replace().error_line();
    assert!(error.contains("does not stop: it waits until its child of vfork"), "{error}");
    assert_eq!(code_changes(&pid), 0);
    // Nobody is under control any more, also not the one that did not stop.
    for task in fs::read_dir(format!("/proc/{pid}/task")).expect("it runs") {
        let status = fs::read_to_string(task.expect("a thread").path().join("status")).expect("it runs");
        assert!(status.contains("TracerPid:\t0\n"), "{status}");
    }
    busy.check(3);
    busy.tell();
    replace().good();
    busy.check(3);
    lancet(["undo", "--pid", &pid]).good();
    busy.check(3);
}

/// A thread of the process sleeps where nothing can interrupt it, and not just for a moment.
fn sleeps_for_good(pid: &str) -> bool {
    let stat = |path: PathBuf| fs::read_to_string(path.join("stat")).unwrap_or_default();
    let tasks = || fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").filter_map(Result::ok);
    (0..5).all(|_| {
        std::thread::sleep(std::time::Duration::from_millis(2));
        tasks().any(|task| stat(task.path()).contains(") D "))
    })
}

fn code_changes(pid: &str) -> usize {
    let status = json(&lancet(["status", "--pid", pid, "--json"]).good());
    status["patches"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_process_that_shares_the_memory_is_in_the_way() {
    let workshop = Workshop::new();
    let program = workshop.compile("waits.c", "waits", &["-O2", "-pthread"]);
    let object = workshop.compile("small.c", "small.o", &["-O2", "-c"]).display().to_string();
    let mut busy = Telling::start(&program, &["clone"]);
    let pid = busy.pid();
    let replace = || lancet(["replace", "--pid", &pid, "small", "--with", &object]);
    let error = replace().error_line();
    assert!(error.ends_with("runs in the same memory (clone with CLONE_VM), and would not stop with it"), "{error}");
    busy.check(3);
    busy.tell();
    let child = error.split("process ").last().and_then(|rest| rest.split(' ').next()).expect("a number").to_owned();
    while fs::read(format!("/proc/{child}/maps")).is_ok_and(|maps| !maps.is_empty()) {
        std::thread::yield_now();
    }
    replace().good();
    busy.check(3);
}

#[test]
fn a_program_that_starts_again_is_changed_again() {
    let workshop = Workshop::new();
    let program = workshop.compile("again.c", "again", &["-O2"]);
    let object = workshop.compile("small.c", "small.o", &["-O2", "-c"]).display().to_string();
    let mut busy = Telling::start(&program, &[]);
    let pid = busy.pid();
    for _ in 0..3 {
        lancet(["replace", "--pid", &pid, "small", "--with", &object]).good();
        assert!(Command::new("kill").args(["-USR1", &pid]).status().is_ok_and(|status| status.success()));
        busy.check(1);
        let status = json(&lancet(["status", "--pid", &pid, "--json"]).good());
        let lens = [&status["patches"], &status["regions"]].map(|list| list.as_array().map(Vec::len));
        assert_eq!(lens, [Some(0), Some(0)]);
        lancet(["undo", "--pid", &pid]).good();
    }
}

#[test]
fn replace_and_undo_under_threads() {
    let workshop = Workshop::new();
    let (program, object) = vecadd(&workshop);
    let mut busy = Telling::start(&program, &["0", "4"]);
    let pid = busy.pid();
    for how in ["entry", "call-sites"] {
        let done =
            json(&lancet(["replace", "--pid", &pid, "vecadd", "--with", &object, "--how", how, "--json"]).good());
        assert_eq!(done["threads"], 4);
        busy.check(8);
        let id = done["id"].to_string();
        let status = json(&lancet(["status", "--pid", &pid, "--json"]).good());
        assert_eq!(status["patches"][0]["id"], done["id"]);
        assert_eq!((&status["patches"][0]["function"], &status["patches"][0]["how"]), (&"vecadd".into(), &how.into()));
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("its maps");
        let named: Vec<&str> = maps.lines().filter(|line| line.contains("/memfd:lancet")).collect();
        assert!(named.len() == 2 && named.iter().all(|line| !line.contains("wx")), "{named:?}");
        let at = done["at"].as_str().expect("an address");
        let changed = code_at(&pid, at);

        let twice = lancet(["replace", "--pid", &pid, "vecadd", "--with", &object]).error_line();
        assert_eq!(
            twice,
            format!("lancet: process {pid}: vecadd: patch {id} changes it already; lancet undo takes it back")
        );

        let undone = json(&lancet(["undo", "--pid", &pid, &id, "--json"]).good());
        assert_eq!(undone["id"], done["id"]);
        assert_eq!(code_at(&pid, at) != changed, how == "entry");
        busy.check(8);
    }
    // What has been placed once is used again.
    let status = json(&lancet(["status", "--pid", &pid, "--json"]).good());
    assert_eq!(
        (status["patches"].as_array().map(Vec::len), status["regions"].as_array().map(Vec::len)),
        (Some(0), Some(1))
    );
    assert!(status["regions"][0]["code_used"].as_u64() < Some(2048));
}

#[test]
fn code_of_every_kind() {
    let workshop = Workshop::new();
    let (program, _) = vecadd(&workshop);
    let mut busy = Telling::start(&program, &[]);
    let pid = busy.pid();
    let source = workshop.path("other.c");
    // A library and an object that refer to the process's symbols, far and near, and to data of their own.
    let text = "#include <string.h>\n\
        static long calls; extern int printf(const char *, ...); static const double zero[2];\n\
        __attribute__((noipa)) static double add(double a, double b) { return a + b + zero[calls & 1]; }\n\
        void other(double *s, const double *a, const double *b, long n) {\n\
        if (++calls == 0) printf(\"wrong\\n\");\n\
        for (long i = 0; i < n; i++) s[i] = add(a[i], b[i]); }\n";
    fs::write(&source, text).expect("a file");
    for (name, flags) in [
        ("other.o", &["-O1", "-c", "-fPIC"][..]),
        ("other2.o", &["-O1", "-c", "-fno-pic", "-mcmodel=small"]),
        ("libother.so", &["-O1", "-shared", "-fPIC"]),
    ] {
        let out = workshop.path(name);
        let built = Command::new("gcc").arg(&source).arg("-o").arg(&out).args(flags).status().expect("gcc runs");
        assert!(built.success());
        let with = format!("{}:other", out.display());
        let ran = lancet(["replace", "--pid", &pid, "vecadd", "--with", &with]);
        // Absolute 32-bit addresses cannot work this high.
        if ran.status != Some(0) && name == "other2.o" {
            assert!(ran.error_line().contains("cannot be reached"));
            continue;
        }
        assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{name}");
        busy.check(5);
        lancet(["undo", "--pid", &pid]).good();
        busy.check(2);
    }
}

#[test]
fn what_cannot_be_replaced() {
    let workshop = Workshop::new();
    let (program, object) = vecadd(&workshop);
    let mut busy = Telling::start(&program, &[]);
    let pid = busy.pid();
    let with = |function: &str, file: &str| lancet(["replace", "--pid", &pid, function, "--with", file]).error_line();
    assert!(
        with("vecad", &object).starts_with(&format!("lancet: process {pid}: no function vecad; did you mean vecadd"))
    );
    assert!(with("vecadd", "/no/such/file").contains("/no/such/file: cannot open: "));
    let unresolved = workshop.path("unresolved.c");
    fs::write(&unresolved, "int missing(void); int vecadd(void) { return missing(); }").expect("a file");
    let out = workshop.path("unresolved.o");
    assert!(Command::new("gcc").args(["-c", "-o"]).arg(&out).arg(&unresolved).status().expect("gcc runs").success());
    let out = out.display().to_string();
    assert_eq!(with("vecadd", &out), format!("lancet: {out}: it refers to what the process does not have: missing"));
    assert_eq!(
        with("vecadd", &format!("{object}:nothing")),
        format!("lancet: {object}: no function nothing in it; there are vecadd")
    );
    // Another machine.
    let mut bytes = fs::read(&object).expect("the object");
    bytes[18] = 183;
    let other = workshop.path("other.o");
    fs::write(&other, bytes).expect("a file");
    assert!(with("vecadd", &other.display().to_string()).contains("is for another machine (Aarch64), not x86-64"));
    assert_eq!(
        lancet(["undo", "--pid", &pid, "7"]).error_line(),
        format!("lancet: process {pid}: there is no patch 7")
    );
    assert_eq!(lancet(["status", "--pid", "4194300"]).error_line(), "lancet: process 4194300: no such process");
    // Nothing of this has touched it.
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("its maps");
    assert!(!maps.contains("lancet"));
    busy.check(2);
}

#[test]
fn a_process_that_sleeps_goes_on_sleeping() {
    let mut sleeping = Busy::start(Path::new("/bin/sleep"), &["1000"]);
    let pid = sleeping.pid();
    let workshop = Workshop::new();
    let raw = workshop.path("raw.bin");
    // xor eax, eax; ret
    fs::write(&raw, [0x31, 0xc0, 0xc3]).expect("a file");
    let raw = raw.display().to_string();
    let named = lancet(["replace", "--pid", &pid, "puts", "--with", &format!("{raw}:puts")]);
    assert!(named.stderr.contains("raw bytes, which have no names"), "{}", named.stderr);
    lancet(["replace", "--pid", &pid, "puts", "--with", &raw]).good();
    lancet(["undo", "--pid", &pid]).good();
    std::thread::sleep(std::time::Duration::from_millis(100));
    sleeping.check_alive();
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).expect("its system call");
    // clock_nanosleep again, or what the kernel restarts it as.
    assert!(call.starts_with("230 ") || call.starts_with("219 "), "{call}");
}
