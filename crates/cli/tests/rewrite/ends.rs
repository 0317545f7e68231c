//! `lancet count --ends`: threads that are ended at any instruction, and a program that does not feel that it is watched.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use lancet::{Image, Svma};

use crate::bench::{Bench, Ran, lancet};
use crate::callgrind;

/// `lancet count --ends` with everything that it leaves behind in the folder.
fn count_ends(bench: &Bench, options: &[&str]) -> Command {
    let mut command = lancet("count");
    command.arg("--ends").args(options).current_dir(bench.path("")).env_remove("LANCET_COUNTS");
    command.env("XDG_CACHE_HOME", bench.path("cache")).env("TMPDIR", bench.path(""));
    command
}

/// Every instruction that counts for itself ran as often as it says, whatever ended its thread. Returns how the program
/// ended.
#[track_caller]
fn ends_exactly(bench: &Bench, program: &Path, options: &[&str], arguments: &[&str]) -> Ran {
    let marks = bench.path("marks");
    let _ = std::fs::remove_file(&marks);
    let mut command = count_ends(bench, &["--format", "callgrind", "-o", "counts"]);
    let ran = Ran::of(command.args(options).arg(program).arg(&marks).args(arguments));
    let text = std::fs::read_to_string(bench.path("counts")).expect("the report");
    let found = callgrind::parse(&text, &program.to_string_lossy());
    let marks = std::fs::read(&marks).expect("the program's own counts");
    let image = Image::open(program).expect("the program");
    let start = image.segments().iter().map(|segment| segment.svma).min().expect("segments");
    // The compiler may have copied the code: then several instructions have one count.
    let mut own = std::collections::BTreeMap::<usize, Vec<Svma>>::new();
    for line in ran.stdout.lines() {
        let (at, place) = line.split_once(' ').expect("an address and a place");
        let at = start + u64::from_str_radix(at, 16).expect("an address");
        own.entry(place.parse().expect("a place")).or_default().push(at);
    }
    assert!(own.len() > 20, "{own:?}");
    for (place, instructions) in own {
        let count = marks[place..place + 8].try_into().map(u64::from_le_bytes).expect("8 bytes");
        let ours: u64 = instructions.iter().filter_map(|at| found.get(at)).sum();
        assert_eq!(ours, count, "{}, {options:?} {arguments:?}: {instructions:?}", program.display());
    }
    ran
}

#[test]
fn ends_at_any_instruction() {
    for (compiler, flags) in [
        ("gcc", "-O2 -w -pthread"),
        ("gcc", "-O0 -w -pthread -no-pie"),
        ("gcc", "-O2 -w -pthread -static"),
        ("clang", "-O2 -w -pthread"),
    ] {
        let bench = Bench::new();
        let program = bench.compile(compiler, &["fatal.c"], "fatal", flags);
        for (round, threads) in ["0", "3", "0", "2"].into_iter().enumerate() {
            for (how, signal) in [
                ("kill", Some(9)),
                ("alarm", Some(14)),
                ("fault", Some(11)),
                ("ud2", Some(4)),
                ("abort", Some(6)),
                ("child", None),
                ("return", None),
            ] {
                let wait = (1 + 2741 * round).to_string();
                let ran = ends_exactly(&bench, &program, &[], &[threads, how, &wait]);
                assert_eq!((ran.signal, ran.stderr.as_str()), (signal, ""), "{flags} {how}");
            }
        }
    }
}

#[test]
fn ends_in_libraries() {
    let bench = Bench::new();
    let program = bench.compile("gcc", &["fatal.c"], "fatal", "-O1 -w -pthread");
    for how in ["kill", "abort", "return"] {
        ends_exactly(&bench, &program, &["--libs"], &["2", how, "1500"]);
    }
}

/// Nothing is left to doubt where without watching the report has to name a function.
#[test]
fn ends_leave_no_doubt() {
    let bench = Bench::new();
    let program = bench.compile("gcc", &["fatal.c"], "fatal", "-O2 -w -pthread");
    let mut command = count_ends(&bench, &["-o", "report"]);
    Ran::of(command.arg(&program).args(["marks", "0", "fault"]));
    let report = std::fs::read_to_string(bench.path("report")).expect("the report");
    assert!(report.starts_with(&*program.to_string_lossy()) && !report.contains("may be off"), "{report}");
}

/// Signals, handlers, job control of the program and of its children, status, input and output.
#[test]
fn a_watched_program_is_its_own() {
    let script = r#"
        trap 'echo got' USR1
        kill -USR1 $$
        sleep 100 & child=$!
        kill -STOP $child; kill -CONT $child; kill $child; wait $child; echo $?
        (while ! grep -q '^State:.[Tt]' /proc/$$/status; do sleep 0.01; done; echo stopped; kill -CONT $$) &
        kill -STOP $$
        wait; echo continued
        (kill -KILL $(sh -c 'echo $PPID')); echo $?
        read line; echo "$line"; exit 7"#;
    let bench = Bench::new();
    let run = |command: &mut Command| {
        let command = command.args(["-c", script]).current_dir(bench.path("")).stderr(Stdio::null());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
        child.stdin.take().expect("a pipe").write_all(b"a line\n").expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let expected = run(&mut Command::new("sh"));
    assert_eq!(expected, (Some(7), "got\n143\nstopped\ncontinued\n137\na line\n".to_owned()));
    assert_eq!(run(count_ends(&bench, &["--total", "-o", "total"]).arg("sh")), expected);
    assert!(bench.path("total").exists());
}

#[test]
fn a_killed_watcher_leaves_the_program() {
    let bench = Bench::new();
    let mut command = count_ends(&bench, &["sh", "-c", "echo ready; read line; echo \"$line\""]);
    let mut watcher = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    let (mut input, output) = (watcher.stdin.take().expect("a pipe"), watcher.stdout.take().expect("a pipe"));
    let mut output = BufReader::new(output);
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    watcher.kill().expect("it is killed");
    watcher.wait().expect("it ended");
    input.write_all(b"still here\n").expect("it reads");
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("its output");
    assert_eq!(rest, "still here\n");
}

#[test]
fn what_cannot_be_run_is_not_waited_for() {
    let bench = Bench::new();
    let program = bench.compile("gcc", &["ends.c"], "ends", "-w -Wl,--dynamic-linker=/no/such/loader");
    let ran = Ran::of(count_ends(&bench, &[]).arg(&program));
    assert_eq!(ran.status, Some(126), "{ran:?}");
    assert!(ran.stderr.contains("cannot run it: No such file"), "{ran:?}");
}
