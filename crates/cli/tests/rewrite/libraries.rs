//! Programs and libraries that count together, in threads and processes at once.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use lancet::Svma;

use crate::bench::{Bench, Ran, calls_of, lancet};
use crate::callgrind;

/// Calls of `crowd.c`: threads, times four rounds (two of them in children), times calls.
const CALLS: u64 = 8 * 4 * 200;

fn counting_all(bench: &Bench, program: &Path, format: &str) -> Command {
    let mut command = lancet("count");
    command.args(["--libs", "--format", format, "-o"]).arg(bench.path("report")).arg(program);
    command.current_dir(bench.path("")).env("XDG_CACHE_HOME", bench.path("cache")).env_remove("LANCET_COUNTS");
    command
}

/// How often each instruction of an object ran, by `report` in callgrind's format.
fn runs_in(bench: &Bench, object: &Path) -> BTreeMap<Svma, u64> {
    let text = std::fs::read_to_string(bench.path("report")).expect("a report");
    callgrind::parse(&text, &object.to_string_lossy())
}

/// No count is lost and none is told twice, whoever calls a library, and wherever processes are made.
#[test]
fn a_crowd_in_a_library() {
    for flags in ["-O2", "-O0"] {
        let bench = Bench::new();
        let library = bench.compile("gcc", &["crowd_library.c"], "libcrowd.so", &format!("{flags} -fPIC -shared"));
        let flags = format!("{flags} -pthread -L. -lcrowd -Wl,-rpath,$ORIGIN");
        let program = bench.compile("gcc", &["crowd.c"], "crowd", &flags);
        let ran = Ran::of(&mut counting_all(&bench, &program, "callgrind"));
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.status), ("done\n", "", Some(0)));
        let names = |object: &Path| {
            let image = lancet::Image::open(object).expect("the object");
            let named = image.symbols().iter().map(|symbol| (image.symbol_name(symbol).to_owned(), symbol.svma));
            named.collect::<BTreeMap<String, Svma>>()
        };
        let (inside, outside) = (runs_in(&bench, &library), runs_in(&bench, &program));
        let (of_library, of_program) = (names(&library), names(&program));
        let first = |runs: &BTreeMap<Svma, u64>, at: Svma| runs.get(&at).copied();
        assert_eq!(first(&inside, of_library["crowd_step"]), Some(CALLS * 500), "{flags}");
        assert_eq!(first(&inside, of_library["crowd_each"]), Some(CALLS), "{flags}");
        assert_eq!(first(&inside, of_library["crowd_interpret"]), Some(CALLS), "{flags}");
        assert_eq!(first(&inside, of_library["crowd_fork"]), Some(16), "{flags}");
        assert_eq!(first(&outside, of_program["callback"]), Some(CALLS * 500), "{flags}");
        // Every operation of the interpreter, which jumps of their own lead to: three, three, one, one and one each.
        let [mut often, mut whole] = [0, 0];
        for count in inside.values() {
            often += u64::from(*count == 3 * CALLS * 500);
            whole += u64::from(*count == CALLS * 500);
        }
        assert!(often > 2 && whole > 2, "{flags}: {inside:?}");
    }
}

/// What a program looks for beside itself is there, also if it is called by a link.
#[test]
fn files_beside_the_program() {
    let bench = Bench::new();
    for folder in ["tool/bin", "tool/lib", "tool/share"] {
        fs::create_dir_all(bench.path(folder)).expect("a folder");
    }
    fs::write(bench.path("tool/share/word"), "nearby").expect("a file");
    bench.compile("gcc", &["home.c"], "tool/lib/libnear.so", "-O1 -DLIBRARY -fPIC -shared");
    let flags = "-O1 -Ltool/lib -lnear -Wl,-rpath,$ORIGIN/../lib";
    let program = bench.compile("gcc", &["home.c"], "tool/bin/home", flags);
    let called = bench.path("called");
    symlink("tool/bin/home", &called).expect("a link");
    for program in [&program, &called] {
        let expected = bench.run(program, &[]);
        assert_eq!(expected.status, Some(0), "{}", expected.stdout);
        for options in [&["--json"][..], &["--json", "--libs"], &["--json", "--ends"]] {
            let mut command = lancet("count");
            command.args(options).arg("-o").arg(bench.path("report")).arg(program);
            command.current_dir(bench.path("")).env("XDG_CACHE_HOME", bench.path("cache")).env_remove("LANCET_COUNTS");
            assert_eq!(Ran::of(&mut command), expected, "{options:?} {}", program.display());
            let report = fs::read_to_string(bench.path("report")).expect("a report");
            assert!(report.contains(r#""name":"main""#), "{report}");
        }
    }
    // Nothing of it stays.
    let kept = fs::read_dir(bench.path("cache/lancet")).expect("the cache").flatten();
    let files = kept.flat_map(|folder| fs::read_dir(folder.path()).expect("a folder").flatten());
    assert!(files.into_iter().all(|file| file.file_type().is_ok_and(|kind| kind.is_file())));
}

/// A library that was rewritten by itself, loaded and unloaded by a program with threads that counts, too.
#[test]
fn a_crowd_in_a_library_that_is_loaded() {
    let bench = Bench::new();
    let library = bench.compile("gcc", &["crowd_library.c"], "crowd_library.so", "-O2 -fPIC -shared");
    let program = bench.compile("gcc", &["crowd.c"], "crowd", "-O2 -pthread -DLOAD");
    let counting = bench.counting(&library, "library.counting");
    let rewritten = bench.counting(&program, "crowd.counting");
    let ran = bench.run(&rewritten, &[counting.to_str().expect("UTF-8")]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.status), ("done\n", "", Some(0)));
    let counted = bench.counted("library.counting");
    assert_eq!(calls_of(&counted, "crowd_step"), 2 * CALLS * 500);
    assert_eq!(calls_of(&bench.counted("crowd.counting"), "callback"), 2 * CALLS * 500);
}

/// A handler of the program interrupts a library for good: every instruction is counted exactly all the same.
#[test]
fn cuts_in_a_library() {
    let bench = Bench::new();
    let library = bench.compile("gcc", &["cuts.c"], "libspin.so", "-O2 -w -DLIBRARY -fPIC -shared");
    let program = bench.compile("gcc", &["cuts.c"], "cuts", "-O2 -w -DHOST -L. -lspin -Wl,-rpath,$ORIGIN");
    for arguments in [&["400"][..], &["50", "end"]] {
        let ran = Ran::of(counting_all(&bench, &program, "callgrind").args(arguments));
        assert_eq!((ran.stderr.as_str(), ran.signal), ("", None));
        let (inside, outside) = (runs_in(&bench, &library), runs_in(&bench, &program));
        assert!(ran.stdout.lines().filter(|line| line.starts_with("library ")).count() > 10);
        for line in ran.stdout.lines() {
            let (runs, line) = match line.strip_prefix("library ") {
                Some(line) => (&inside, line),
                None => (&outside, line),
            };
            let (at, expected) = line.split_once(' ').expect("an address and a number");
            let at = Svma(u64::from_str_radix(at, 16).expect("an address"));
            assert_eq!(runs.get(&at).copied().unwrap_or(0), expected.parse::<u64>().expect("a number"), "{line}");
        }
    }
}

/// No other library can be put in the place of one that is asked for by a path: that is said, and the rest is counted.
#[test]
fn a_library_by_its_path() {
    let bench = Bench::new();
    bench.compile("gcc", &["library.c"], "library.so", "-O1 -fPIC -shared");
    let host = bench.compile("gcc", &["host.c"], "host", "-O1 ./library.so");
    let expected = bench.run(&host, &[]);
    let ran = Ran::of(&mut counting_all(&bench, &host, "callgrind"));
    assert_eq!((ran.stdout, ran.status), (expected.stdout, expected.status));
    let [line] = ran.stderr.lines().collect::<Vec<_>>()[..] else { panic!("{}", ran.stderr) };
    assert!(line.starts_with("lancet: left out: ./library.so: ") && line.contains("by a path"), "{line}");
    assert!(!runs_in(&bench, &host).is_empty());
}
