//! Libraries that were rewritten by themselves, in programs that know nothing of it: what threads count is exact, and
//! nothing else changes. Expected numbers follow from what `alone.c` does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lancet::Program;
use lancet::program::EdgeKind;
use lancet::tools::count::Counted;

use crate::bench::{Bench, calls_of, check};

/// Calls of each library by the threads of `alone.c`, and rounds of each.
const CALLS: u64 = 8 * 200;
const EACH: u64 = 500;
/// What threads with even and with odd numbers interpret.
const CODES: [&[u8]; 2] = [&[0, 1, 0, 2, 0, 1, 1, 3, 4], &[1, 2, 1, 2, 0, 0, 3, 4]];
const AGAIN: u8 = 3;

/// A library and its rewritten copy, which count for themselves.
fn library(bench: &Bench, number: u32) -> PathBuf {
    let library = bench.compile("gcc", &["crowd_library.c"], &format!("crowd{number}.so"), "-O2 -fPIC -shared");
    bench.counting(&library, &format!("counting{number}.so"))
}

fn program(bench: &Bench) -> PathBuf {
    bench.compile("gcc", &["alone.c"], "alone", "-O2 -pthread")
}

fn run(bench: &Bench, program: &Path, does: &str, libraries: &[&Path], complaint: &str) {
    let names = libraries.iter().map(|library| library.to_str().expect("UTF-8"));
    let arguments: Vec<&str> = [does].into_iter().chain(names).collect();
    let ran = bench.run(program, &arguments);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.status), ("done\n", complaint, Some(0)), "{does}");
}

/// Everything in a library ran so often as if this many runs of `alone.c` had called it.
fn is_exact(counted: &Counted, times: u64) {
    assert_eq!(calls_of(counted, "crowd_each"), times * CALLS);
    assert_eq!(calls_of(counted, "crowd_interpret"), times * CALLS);
    assert_eq!(calls_of(counted, "crowd_step"), times * CALLS * EACH);
    assert_eq!(jumps_of(counted), expected_jumps(times));
}

/// How often each way through the interpreter's jump table was taken, in order.
fn jumps_of(counted: &Counted) -> Vec<u64> {
    let is_interpreter =
        |program: &Program, id| program.symbol_name(program.func(id)).is_some_and(|name| name == "crowd_interpret");
    let (id, counts) = counted.funcs().find(|(id, _)| is_interpreter(&counted.program, *id)).expect("it was counted");
    let edges = counted.program.func(id).edges.iter().zip(&counts.edges);
    let mut taken: Vec<u64> =
        edges.filter(|(edge, count)| edge.kind == EdgeKind::Table && **count > 0).map(|(_, count)| *count).collect();
    taken.sort_unstable();
    taken
}

fn expected_jumps(times: u64) -> Vec<u64> {
    let mut jumps: BTreeMap<(Option<u8>, u8), u64> = BTreeMap::new();
    for code in CODES {
        let mut add = |from: Option<u8>, to: u8, count: u64| *jumps.entry((from, to)).or_default() += count;
        let calls = times * CALLS / CODES.len() as u64;
        add(None, code[0], calls);
        for pair in code.windows(2) {
            match pair {
                [AGAIN, end] => {
                    add(Some(AGAIN), code[0], calls * (EACH - 1));
                    add(Some(AGAIN), *end, calls);
                }
                [from, to] => add(Some(*from), *to, calls * EACH),
                _ => unreachable!("pairs"),
            }
        }
    }
    let mut jumps: Vec<u64> = jumps.into_values().collect();
    jumps.sort_unstable();
    jumps
}

#[test]
fn one_library() {
    let bench = Bench::new();
    let (program, one) = (program(&bench), library(&bench, 1));
    run(&bench, &program, "-", &[&one], "");
    is_exact(&bench.counted("counting1.so"), 1);
    let text = check(std::process::Command::new("objdump").args(["-d", "-j", ".lancet.text"]).arg(&one));
    assert!(text.contains("incq   %gs:0x"), "{text}");
    assert!(!text.lines().any(|line| line.contains("lock inc") || line.contains("lock add")), "{text}");
}

/// All but the first are loaded where others have counters already.
#[test]
fn several_libraries() {
    let bench = Bench::new();
    let (program, libraries) = (program(&bench), [1, 2, 3].map(|number| library(&bench, number)));
    run(&bench, &program, "-", &libraries.each_ref().map(PathBuf::as_path), "");
    for number in 1..=3 {
        is_exact(&bench.counted(&format!("counting{number}.so")), 1);
    }
}

/// A process is not noticed where it is made, but at the next way into the library.
#[test]
fn children_of_threads() {
    let bench = Bench::new();
    let (program, one, two) = (program(&bench), library(&bench, 1), library(&bench, 2));
    run(&bench, &program, "f", &[&one, &two], "");
    is_exact(&bench.counted("counting1.so"), 3);
    is_exact(&bench.counted("counting2.so"), 3);
}

/// Loaded by eight threads at once, unloaded, and loaded again.
#[test]
fn loaded_again_and_again() {
    let bench = Bench::new();
    let (program, one, two) = (program(&bench), library(&bench, 1), library(&bench, 2));
    run(&bench, &program, "of", &[&one, &two], "");
    is_exact(&bench.counted("counting1.so"), 6);
    is_exact(&bench.counted("counting2.so"), 6);
}

/// A second copy of the same rewritten library has its counters.
#[test]
fn the_same_library_twice() {
    let bench = Bench::new();
    let (program, one, copy) = (program(&bench), library(&bench, 1), bench.path("copy.so"));
    std::fs::copy(&one, &copy).expect("a copy");
    run(&bench, &program, "f", &[&one, &copy], "");
    is_exact(&bench.counted("counting1.so"), 2 * 3);
}

#[test]
fn beside_a_program_that_counts() {
    let bench = Bench::new();
    let (program, one, two) = (program(&bench), library(&bench, 1), library(&bench, 2));
    let counting = bench.counting(&program, "alone.counting");
    run(&bench, &counting, "of", &[&one, &two], "");
    is_exact(&bench.counted("counting1.so"), 6);
    is_exact(&bench.counted("counting2.so"), 6);
    let counted = bench.counted("alone.counting");
    assert_eq!(calls_of(&counted, "callback"), 2 * 6 * CALLS * EACH);
    assert_eq!(calls_of(&counted, "main"), 1);
}

#[test]
fn where_other_memory_is_in_the_way() {
    let bench = Bench::new();
    let (program, one, two) = (program(&bench), library(&bench, 1), library(&bench, 2));
    run(&bench, &program, "wf", &[&one, &two], "");
    is_exact(&bench.counted("counting1.so"), 3);
    is_exact(&bench.counted("counting2.so"), 3);
}

/// Then nothing is counted, and nothing of the program's changes.
#[test]
fn where_the_program_needs_the_register() {
    let bench = Bench::new();
    let (program, one) = (program(&bench), library(&bench, 1));
    let complaint = "lancet: counts are not kept: the program uses the gs register itself\n";
    run(&bench, &program, "gf", &[&one], complaint);
    assert!(!bench.counts_path("counting1.so").exists());
}

/// What was rewritten twice counts twice. What it got first cannot leave its place any more, and says so.
#[test]
fn rewritten_again() {
    let bench = Bench::new();
    let (program, one, two) = (program(&bench), library(&bench, 1), library(&bench, 2));
    let again = bench.counting(&one, "again.so");
    run(&bench, &program, "f", &[&again], "");
    is_exact(&bench.counted("counting1.so"), 3);
    // The ways through the interpreter are not told apart here.
    let counted = Counted::open(&bench.counts_path("again.so"), Some(&again), None).expect("counts");
    assert_eq!(calls_of(&counted, "crowd_step.lancet"), 3 * CALLS * EACH);
    let ran = bench.run(&program, &["-", two.to_str().expect("UTF-8"), again.to_str().expect("UTF-8")]);
    assert_eq!((ran.stdout.as_str(), ran.status), ("", Some(127)));
    assert!(ran.stderr.starts_with("lancet: counters of another object are in the way, "), "{}", ran.stderr);
}
