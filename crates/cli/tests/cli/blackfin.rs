//! `lancet rewrite` and `lancet dvfs` on Blackfin programs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Ran, json, lancet};

fn blackfin(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/blackfin").join(file)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Rewrites a program of testdata into a folder.
fn rewrite(folder: &Path, program: &str, options: &[&str]) -> (PathBuf, Ran) {
    let (program, out) = (blackfin(program), folder.join("out.elf"));
    let ran = lancet(["rewrite", text(&program), "-o", text(&out)].iter().chain(options));
    (out, ran)
}

#[test]
fn counts_come_out_of_the_simulator() {
    let folder = tempfile::tempdir().expect("a folder");
    let (out, ran) = rewrite(folder.path(), "elf/crc.op.elf", &[]);
    let said = ran.good();
    for line in [" points by jumps (", " points by traps (", " points refused", "it runs in an event handler"] {
        assert!(said.contains(line), "{line} in {said}");
    }
    let notes = folder.path().join("out.elf.notes");
    let ran = lancet(["sim", "--environment", "operating", "--notes", text(&notes), text(&out)]);
    let expected = fs::read_to_string(blackfin("expected/crc.txt")).expect("expected output");
    assert_eq!((ran.status, ran.stdout), (Some(0), expected));
    assert!(ran.stderr.contains("  block "), "{}", ran.stderr);
    assert!(ran.stderr.contains("(repeat)"), "hardware loops have edges: {}", ran.stderr);
}

#[test]
fn phases_have_cycles_and_misses() {
    let folder = tempfile::tempdir().expect("a folder");
    let (out, ran) = rewrite(folder.path(), "elf/jpeg.op.elf", &["--tool", "phases"]);
    ran.good();
    let notes = folder.path().join("out.elf.notes");
    let ran = lancet(["sim", "--environment", "operating", "--json", "--notes", text(&notes), text(&out)]);
    let measured = json(ran.stderr.lines().last().expect("a line"));
    let phases = measured["phases"].as_array().expect("phases");
    assert!(phases.iter().any(|phase| phase["misses"].as_u64() > Some(0)), "{measured}");
    assert!(phases.iter().all(|phase| phase["cycles"].as_u64() > Some(0)), "{measured}");
}

#[test]
fn dvfs_tells_what_it_saves_and_draws_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = blackfin("consumer/elf/djpeg.op.elf");
    let said = lancet(["dvfs", "--json", "--plots", text(folder.path()), text(&program)]).good();
    let study = &json(&said)["programs"][0]["study"];
    assert!(study["scaled"]["energy"].as_f64() < study["original"]["energy"].as_f64(), "{study}");
    for picture in ["djpeg.op.elf.misses.svg", "bars.svg"] {
        let svg = fs::read_to_string(folder.path().join(picture)).expect("a picture");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{picture}");
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, contents: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, contents).expect("a file");
        path
    };
    let refused = |options: &[&str]| {
        let line = rewrite(folder.path(), "elf/crc.op.elf", options).1.error_line();
        line.split_once(": ").expect("lancet: ").1.to_owned()
    };
    assert_eq!(refused(&["--tool", "points"]), "--tool points needs --points FILE");
    let points = file("points", b"call _seen before procedure _main kind load\n");
    let options = |object| vec!["--tool", "points", "--points", text(&points), "--object", object];
    let without = refused(&["--tool", "points", "--points", text(&points)]);
    assert!(without.ends_with("it calls routines, but there is no object"), "{without}");
    assert!(refused(&options("/no/such/object")).starts_with("/no/such/object: "));
    assert!(refused(&options(text(&points))).starts_with(text(&points)));
    assert!(refused(&options("/proc/self/exe")).starts_with("/proc/self/exe: is "));
    let program = blackfin("elf/crc.O2.elf");
    assert!(refused(&options(text(&program))).contains(": is neither a relocatable object nor a shared library"));
    let nowhere = file("nowhere", b"\ncount before procedure _no_such_procedure\n");
    let line = refused(&["--tool", "points", "--points", text(&nowhere)]);
    assert!(line.ends_with("line 2: no instruction is like that"), "{line}");
    let wrong = file("wrong", b"count around entry\n");
    let line = refused(&["--tool", "points", "--points", text(&wrong)]);
    assert!(line.ends_with("line 1: before or after is missing"), "{line}");
    let other = file("other", b"call _no_such_routine before entry\n");
    let object = blackfin("analysis/seen.o");
    let line = refused(&["--tool", "points", "--points", text(&other), "--object", text(&object)]);
    assert!(line.contains("seen.o: no function _no_such_routine in it; there are _seen, "), "{line}");
    let line = lancet(["dvfs", text(&blackfin("elf/crc.O2.elf"))]).error_line();
    assert!(line.ends_with("this needs a program for the operating environment"), "{line}");
    let line = rewrite(folder.path(), "elf/crc.O2.elf", &["--tool", "phases"]).1.error_line();
    assert!(line.ends_with("this needs a program for the operating environment"), "{line}");
    assert!(refused(&["--functions", "main"]).ends_with("are not for Blackfin programs"));
    let line = lancet(["rewrite", "sample.elf", "-o", text(&folder.path().join("x")), "--tool", "phases"]).error_line();
    assert!(line.ends_with("this tool is for Blackfin programs"), "{line}");
    let line = lancet(["dvfs", "sample.elf"]).error_line();
    assert!(line.contains("sample.elf: "), "{line}");
}

#[test]
fn damaged_objects_are_refused_or_used_but_never_crash() {
    let folder = tempfile::tempdir().expect("a folder");
    let points = folder.path().join("points");
    fs::write(&points, "call _seen before procedure _main kind load\n").expect("a file");
    let whole = fs::read(blackfin("analysis/seen.o")).expect("the object");
    let path = folder.path().join("damaged.o");
    for i in (0..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[i] ^= 0xFF;
        fs::write(&path, &damaged).expect("a file");
        let options = ["--tool", "points", "--points", text(&points), "--object", text(&path)];
        let status = rewrite(folder.path(), "elf/crc.O2.elf", &options).1.status;
        assert!(matches!(status, Some(0 | 1)), "byte {i}: {status:?}");
    }
}
