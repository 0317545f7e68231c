//! The clients in `examples/` that work on a running process, on programs of our own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Cargo builds examples together with tests, and puts them beside.
fn example(name: &str) -> PathBuf {
    let here = std::env::current_exe().expect("a path");
    let built = here.ancestors().nth(2).expect("a folder").join("examples").join(name);
    assert!(built.exists(), "no {}: build it with cargo build --examples", built.display());
    built
}

fn gcc(source: &str, out: &Path, flags: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/x86_64/live").join(source);
    let status = Command::new("gcc").arg(source).arg("-o").arg(out).args(flags).status().expect("gcc runs");
    assert!(status.success());
}

struct Running(Child);

impl Running {
    fn start(program: &Path, arguments: &[&str]) -> Running {
        Running(Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().expect("it runs"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn measure_the_hottest_function() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("stencil");
    gcc("stencil.c", &program, &["-O2"]);
    let mut stencil = Running::start(&program, &[]);
    let told = run(Command::new(example("measure_hotspot")).arg(stencil.0.id().to_string()));
    assert!(told.contains("in stream_collide at 0x"), "{told}");
    assert_eq!(told.lines().filter(|line| line.contains(" ns, ")).count(), 10, "{told}");
    // On a busy machine ten calls may differ too much.
    assert!(told.contains("ipc (calibrated) = ") || told.contains("ipc not known: calls differ"), "{told}");
    assert_eq!(stencil.0.try_wait().expect("it can be asked"), None, "it has ended");
}

#[test]
fn replace_the_hottest_function() {
    let folder = tempfile::tempdir().expect("a folder");
    let (program, object, raw) =
        (folder.path().join("vecadd-sse"), folder.path().join("vecadd-avx.o"), folder.path().join("vecadd-avx.bin"));
    gcc("vecadd-sse.c", &program, &["-O3", "-pthread"]);
    gcc("vecadd-avx.c", &object, &["-O3", "-c"]);
    run(Command::new("objcopy").args(["-O", "binary", "-j", ".text"]).args([&object, &raw]));
    let mut vecadd = Running::start(&program, &["0"]);
    let told = run(Command::new(example("replace_hotspot")).arg(vecadd.0.id().to_string()).arg(&raw));
    assert!(told.contains("hot function: vecadd at 0x") && told.contains("calls lead to 0x"), "{told}");
    // It checks its own results.
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(vecadd.0.try_wait().expect("it can be asked"), None, "it has ended");
}

#[test]
fn a_client_that_is_killed_leaves_a_process_that_works() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("answer");
    gcc("answer.c", &program, &["-O2"]);
    for form in [&["answer", "trap"][..], &["answer"]] {
        let mut answer = Running::start(&program, &[]);
        let mut lines = BufReader::new(answer.0.stdout.take().expect("a pipe")).lines();
        let mut check = |count: usize| {
            for _ in 0..count {
                assert_eq!(lines.next().expect("it runs").expect("a line"), "45");
            }
        };
        check(10);
        let pid = answer.0.id();
        let client = Command::new(example("breakpoint")).arg(pid.to_string()).args(form).stdout(Stdio::piped()).spawn();
        let mut client = client.expect("it runs");
        let mut told = BufReader::new(client.stdout.take().expect("a pipe")).lines();
        for _ in 0..20 {
            assert!(told.next().expect("it runs").expect("a line").ends_with(": 10"));
        }
        client.kill().expect("it can be killed");
        client.wait().expect("it ends");
        // Nobody answers breakpoints any more.
        check(500);
        let mut target = lancet::live::Target::open(pid).expect("it can be opened");
        let ids: Vec<u64> = target.patches().iter().map(|patch| patch.id).collect();
        assert_eq!(ids.len(), 1);
        target.revert(ids[0]).expect("it can be taken back");
        check(500);
        assert_eq!(answer.0.try_wait().expect("it can be asked"), None, "it has ended");
    }
}
