//! What must never happen: a harmed program, a lost input, counts that others can read or lead elsewhere.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::bench::{Bench, Ran, calls_of, lancet};

fn build(bench: &Bench) -> std::path::PathBuf {
    bench.compile("gcc", &["ends.c"], "ends", "-O2 -w")
}

fn run_with_counts(bench: &Bench, program: &Path, counts: &Path) -> Ran {
    let mut command = Command::new(program);
    Ran::of(command.arg("exit").env("LANCET_COUNTS", counts).current_dir(bench.path("")))
}

/// The line with which `lancet rewrite` refuses.
fn refusal(arguments: &[&Path]) -> String {
    let ran = Ran::of(lancet("rewrite").args(arguments));
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    ran.stderr
}

#[test]
fn the_input_is_not_overwritten() {
    let bench = Bench::new();
    let program = build(&bench);
    let before = fs::read(&program).expect("the program");
    let link = bench.path("link");
    symlink(&program, &link).expect("a link");
    let hard = bench.path("hard");
    fs::hard_link(&program, &hard).expect("a link");
    for out in [&program, &link, &hard] {
        refusal(&["-o".as_ref(), out, &program]);
        assert_eq!(fs::read(&program).expect("the program"), before, "{}", out.display());
    }
}

#[test]
fn set_uid_programs_are_refused() {
    let bench = Bench::new();
    let program = build(&bench);
    for mode in [0o4755, 0o2755] {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).expect("the mode is set");
        let line = refusal(&["-o".as_ref(), &bench.path("out"), &program]);
        assert!(line.contains("set-user-ID"), "{line}");
        assert!(!bench.path("out").exists());
    }
}

#[test]
fn the_mode_is_kept() {
    let bench = Bench::new();
    let program = build(&bench);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o710)).expect("the mode is set");
    let out = bench.counting(&program, "out");
    assert_eq!(fs::metadata(out).expect("the output").permissions().mode() & 0o7777, 0o710);
}

/// Counts belong to whoever ran the program, whatever the umask is.
#[test]
fn counts_are_private() {
    let bench = Bench::new();
    let program = bench.counting(&build(&bench), "ends.counting");
    let script = "umask 0; exec \"$0\" exit";
    Command::new("sh").args(["-c", script]).arg(&program).stdout(Stdio::null()).status().expect("it runs");
    let mode = fs::metadata(bench.counts_path("ends.counting")).expect("counts").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// By default counts go to the working directory; the variable and `%p` say otherwise.
#[test]
fn where_counts_go() {
    let bench = Bench::new();
    let program = build(&bench);
    let out = bench.path("out");
    crate::bench::check(lancet("rewrite").arg("-o").arg(&out).arg(&program));
    bench.run(&out, &["exit"]);
    assert_eq!(calls_of(&bench.counted("out"), "work"), 1000);
    let mut command = Command::new(&out);
    command.arg("exit").env("LANCET_COUNTS", "by-%p-%%p.counts").current_dir(bench.path("")).stdout(Stdio::null());
    let mut child = command.spawn().expect("it runs");
    child.wait().expect("it ends");
    let pid = child.id();
    assert!(bench.path(&format!("by-{pid}-%{pid}.counts")).exists());
    assert_eq!(calls_of(&bench.counted("out"), "work"), 1000);
}

/// One line on standard error, and nothing else is different.
#[test]
fn counts_that_cannot_be_kept() {
    let bench = Bench::new();
    let original = build(&bench);
    let program = bench.counting(&original, "ends.counting");
    let expected = bench.run(&original, &["exit"]);
    let with_threads = bench.compile("gcc", &["threads.c"], "threads", "-O2 -pthread");
    let threads = bench.counting(&with_threads, "threads.counting");
    let expected_of_threads = bench.run(&with_threads, &[]);
    let (link, target) = (bench.path("link"), bench.path("target"));
    symlink(&target, &link).expect("a link");
    let other = bench.path("other");
    fs::write(&other, "somebody's own text").expect("a file");
    let folder = bench.path("folder");
    fs::create_dir(&folder).expect("a folder");
    let pipe = bench.path("pipe");
    crate::bench::check(Command::new("mkfifo").arg(&pipe));
    let long = bench.path(&"x/".repeat(2000));
    for path in [
        link.as_path(),
        &other,
        &folder,
        &pipe,
        &long,
        Path::new("/no/such/folder"),
        Path::new("/dev/null"),
        Path::new("/dev/full"),
    ] {
        let ran = run_with_counts(&bench, &program, path);
        assert_eq!(ran.stderr.lines().count(), 1, "{}: {}", path.display(), ran.stderr);
        assert!(ran.stderr.starts_with("lancet: counts are not kept: "), "{}", ran.stderr);
        assert_eq!(Ran { stderr: String::new(), ..ran }, expected, "{}", path.display());
        // One line, however many threads there are.
        let ran = Ran::of(Command::new(&threads).env("LANCET_COUNTS", path));
        assert_eq!(ran.stderr.lines().count(), 1, "{}: {}", path.display(), ran.stderr);
        assert_eq!(Ran { stderr: String::new(), ..ran }, expected_of_threads, "{}", path.display());
    }
    assert!(!target.exists(), "counts went through a symbolic link");
    assert_eq!(fs::read_to_string(&other).expect("the file"), "somebody's own text");
    assert!(!bench.counts_path("ends.counting").exists());
}

/// Counts of another program are left as they are.
#[test]
fn counts_of_another_program() {
    let bench = Bench::new();
    let program = bench.counting(&build(&bench), "ends.counting");
    bench.run(&program, &["exit"]);
    let counts = bench.counts_path("ends.counting");
    let before = fs::read(&counts).expect("counts");
    let other = bench.compile("gcc", &["control.c"], "control", "-O1 -w");
    let other = bench.counting(&other, "control.counting");
    let ran = run_with_counts(&bench, &other, &counts);
    assert!(ran.stderr.contains("counts of another program"), "{}", ran.stderr);
    assert_eq!(ran.status, Some(0));
    assert_eq!(fs::read(&counts).expect("counts"), before);
}

/// A file that may grow no more.
#[test]
fn no_space() {
    let bench = Bench::new();
    let original = build(&bench);
    let program = bench.counting(&original, "ends.counting");
    let script = "ulimit -f 1; trap '' XFSZ; exec \"$0\" exit";
    let mut command = Command::new("sh");
    let ran = Ran::of(command.args(["-c", script]).arg(&program).current_dir(bench.path("")));
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert_eq!(Ran { stderr: String::new(), ..ran }, bench.run(&original, &["exit"]));
}

/// A handler goes on behind an instruction that only traps, where nothing else leads.
#[test]
fn passed_traps() {
    for flags in ["-O2", "-O0 -static"] {
        let bench = Bench::new();
        let program = bench.compile("gcc", &["passes.c"], "passes", flags);
        bench.behaves_the_same(&program, &[]);
    }
}
