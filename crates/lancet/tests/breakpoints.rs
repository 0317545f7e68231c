//! Closures that run where threads of another process come by.

use std::io::{BufRead, BufReader, Lines, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use lancet::Avma;
use lancet::live::{Breakpoints, Live, Next, Place};
use lancet::program::EdgeId;

const LONG: Duration = Duration::from_secs(20);

fn compile(folder: &Path, source: &str) -> PathBuf {
    let out = folder.join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/x86_64/live").join(source);
    let status = Command::new("gcc").arg(source).arg("-o").arg(&out).args(["-O2", "-pthread"]).status();
    assert!(status.expect("gcc runs").success());
    out
}

struct Running(Child);

impl Running {
    fn start(program: &Path, arguments: &[&str]) -> Running {
        Running(Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().expect("it runs"))
    }

    fn lines(&mut self) -> Lines<BufReader<ChildStdout>> {
        BufReader::new(self.0.stdout.take().expect("a pipe")).lines()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads until a line says so: what was printed before is still in the pipe.
#[track_caller]
fn wait_for(lines: &mut Lines<BufReader<ChildStdout>>, expected: &str) {
    let mut last = String::new();
    for _ in 0..20_000 {
        last = lines.next().expect("it runs").expect("a line");
        if last == expected {
            return;
        }
    }
    panic!("no {expected}, but {last}");
}

#[test]
fn arguments_and_results_change_by_injected_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut running = Running::start(&compile(folder.path(), "answer.c"), &[]);
    let mut lines = running.lines();
    wait_for(&mut lines, "45");
    let mut live = Live::attach(running.0.id()).expect("it can be attached to");
    let answer = live.function("answer").expect("a function");

    let mut seen = Vec::new();
    let mut breakpoints = Breakpoints::default();
    breakpoints.add(Place::Entry(answer), |hit| {
        seen.push((hit.thread, hit.registers.rdi));
        // Its caller's address is on the stack.
        assert_eq!(hit.read(Avma(hit.registers.rsp), 8).map(|bytes| bytes.len()).ok(), Some(8));
        hit.registers.rdi = 4;
        if seen.len() == 50 { Next::Stop } else { Next::Continue }
    });
    assert_eq!(live.run(&mut breakpoints, LONG).expect("it runs"), 50);
    drop(breakpoints);
    assert!(seen.iter().all(|hit| *hit == (running.0.id(), 10)), "{seen:?}");
    wait_for(&mut lines, "6");

    let mut exits = 0;
    let mut breakpoints = Breakpoints::default();
    breakpoints.add(Place::Exit(answer), |hit| {
        exits += 1;
        hit.registers.rax += 1000;
        if exits == 20 { Next::Stop } else { Next::Continue }
    });
    live.run(&mut breakpoints, LONG).expect("it runs");
    wait_for(&mut lines, "1045");
    wait_for(&mut lines, "45");

    // The edge back to the loop's beginning is taken nine times in a call.
    let func = live.func(answer);
    let edge = (0..func.edges.len() as u32).find(|i| {
        let edge = &func.edges[*i as usize];
        func.loops.iter().any(|(_, l)| l.header == edge.to.0) && edge.from == edge.to
    });
    let edge = EdgeId(edge.expect("a loop of one block"));
    let (mut calls, mut rounds) = (0, 0);
    let counts = std::cell::Cell::new((0, 0));
    let mut breakpoints = Breakpoints::default();
    breakpoints.add(Place::Entry(answer), |_| {
        calls += 1;
        counts.set((calls, counts.get().1));
        if calls == 11 { Next::Stop } else { Next::Continue }
    });
    breakpoints.add(Place::Edge(answer, edge), |_| {
        rounds += 1;
        counts.set((counts.get().0, rounds));
        Next::Continue
    });
    live.run(&mut breakpoints, LONG).expect("it runs");
    assert_eq!(counts.get(), (11, 90));
    assert!(live.target().patches().is_empty());
    wait_for(&mut lines, "45");
}

#[test]
fn traps_at_any_instruction() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut running = Running::start(&compile(folder.path(), "answer.c"), &[]);
    let mut lines = running.lines();
    wait_for(&mut lines, "45");
    let mut live = Live::attach(running.0.id()).expect("it can be attached to");
    let answer = live.function("answer").expect("a function");
    let (func, bias) = (live.func(answer), live.object(answer).bias);
    let program = &live.object(answer).program;
    let insns: Vec<Avma> = func
        .blocks
        .iter()
        .flat_map(|block| program.insns(block))
        .map(|insn| Avma(insn.at.0.wrapping_add(bias)))
        .collect();
    let seen = std::cell::RefCell::new(Vec::new());
    let mut breakpoints = Breakpoints::default();
    for at in &insns {
        let (at, seen) = (*at, &seen);
        breakpoints.add(Place::At(at), move |hit| {
            assert_eq!((hit.at, hit.registers.rip), (at, at.0));
            seen.borrow_mut().push(at);
            if seen.borrow().len() == 500 { Next::Stop } else { Next::Continue }
        });
    }
    assert_eq!(live.run(&mut breakpoints, LONG).expect("it runs"), 500);
    drop(breakpoints);
    // Every instruction was seen, and each call passed all of them: its results are right.
    let seen = seen.into_inner();
    let missing: Vec<&Avma> = insns.iter().filter(|at| !seen.contains(at)).collect();
    assert!(missing.len() <= 3, "{missing:?} of {insns:?}");
    for _ in 0..300 {
        assert_eq!(lines.next().expect("it runs").expect("a line"), "45");
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.0.id())).expect("it is there");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).expect("a line");
    assert_eq!(u64::from_str_radix(caught, 16).expect("a number") & 0x10, 0, "its handler is gone");
}

#[test]
fn threads_forks_and_signals_with_and_without_somebody_who_looks() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "torture.c");
    for arguments in [&["hot", "3"][..], &["churn"]] {
        let mut running = Running::start(&program, arguments);
        std::thread::sleep(Duration::from_millis(100));
        let pid = running.0.id();
        let mut live = Live::attach(pid).expect("it can be attached to");
        let small = live.function("small").expect("a function");
        let at = live.entry(small);
        // Often, because each time threads may just have been made that must be let go, too.
        let places = [Place::At(at), Place::Entry(small)].repeat(5);
        for place in places {
            let mut hits = 0;
            let mut breakpoints = Breakpoints::default();
            breakpoints.add(place, |hit| {
                assert!(hit.registers.rdi < 100_000, "{:#x}", hit.registers.rdi);
                hits += 1;
                if hits == 200 { Next::Stop } else { Next::Continue }
            });
            live.run(&mut breakpoints, LONG).expect("it runs");
            drop(breakpoints);
            assert!(hits >= 200, "{hits} at {place:?}");
        }
        assert!(live.target().patches().is_empty());
        assert!(Command::new("kill").arg(pid.to_string()).status().expect("kill runs").success());
        let mut told = String::new();
        running.0.stdout.take().expect("a pipe").read_to_string(&mut told).expect("text");
        assert!(told.starts_with("right ") && running.0.wait().expect("it ends").success(), "{told}");
    }
}
