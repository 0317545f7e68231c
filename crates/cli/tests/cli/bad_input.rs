//! Files and processes that are not what they should be: one line that says what is wrong, exit status 1.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{lancet, lancet_line, sample_folder};

/// The sample program, changed, in a file of its own.
struct Changed {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Changed {
    fn new(change: impl FnOnce(&mut Vec<u8>)) -> Changed {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("changed.elf");
        let mut bytes = fs::read(sample_folder().join("sample.elf")).expect("the sample");
        change(&mut bytes);
        fs::write(&path, bytes).expect("a file");
        Changed { _folder: folder, path }
    }

    /// The error, without the path that it must begin with.
    #[track_caller]
    fn error(&self) -> String {
        error_of(&self.path)
    }
}

#[track_caller]
fn error_of(path: &Path) -> String {
    let line = lancet([Path::new("functions"), path]).error_line();
    let start = format!("lancet: {}: ", path.display());
    line.strip_prefix(&start).unwrap_or_else(|| panic!("{line} does not begin with {start}")).to_owned()
}

#[test]
fn what_is_no_file() {
    assert_eq!(error_of(Path::new("/no/such/file")), "cannot open: No such file or directory (os error 2)");
    assert_eq!(error_of(Path::new("/usr")), "is a directory");
    assert_eq!(error_of(Path::new("/dev/null")), "is not a regular file");
}

#[test]
fn what_is_no_program() {
    assert_eq!(
        Changed::new(|bytes| *bytes = b"#!/bin/sh\n".to_vec()).error(),
        "not an ELF file: it starts with 23 21 2f 62, not with 7f 45 4c 46"
    );
    assert!(Changed::new(Vec::clear).error().starts_with("not an ELF file: "));
    // e_machine is AArch64, then e_type is ET_REL.
    assert!(Changed::new(|bytes| bytes[18] = 183).error().starts_with("unsupported machine 183 "));
    assert!(Changed::new(|bytes| bytes[16] = 1).error().starts_with("unsupported ELF type: "));
    // A 32-bit class makes the headers nonsense.
    Changed::new(|bytes| bytes[4] = 1).error();
}

#[test]
fn a_file_that_ends_early_is_refused_or_read_as_far_as_it_goes() {
    let whole = fs::metadata(sample_folder().join("sample.elf")).expect("the sample").len() as usize;
    let mut refused = 0;
    for len in (1..whole).step_by(whole / 23).chain([4, 16, 52, 63, 64, 100]) {
        let short = Changed::new(|bytes| bytes.truncate(len));
        let ran = lancet([Path::new("functions"), &short.path]);
        if ran.status == Some(0) {
            continue;
        }
        ran.error_line();
        refused += 1;
    }
    assert!(refused > 6);
}

#[test]
fn functions_that_are_not_there() {
    let error = |query: &str| lancet(["disasm", "sample.elf", query]).error_line();
    assert_eq!(error("mian"), "lancet: sample.elf: no function mian; did you mean main?");
    assert_eq!(
        error("shapes::larges"),
        "lancet: sample.elf: no function shapes::larges; did you mean shapes::largest<int>?"
    );
    assert_eq!(error("zzzzzzzz"), "lancet: sample.elf: no function zzzzzzzz");
    assert_eq!(error("0x7"), "lancet: sample.elf: 0x7: no function is there");
    assert_eq!(error("0x12aa"), "lancet: sample.elf: 0x12aa: no function is there");
}

#[test]
fn names_of_several_functions() {
    let ran = lancet_line("disasm sample.elf step");
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(1), ""));
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines[0], "lancet: sample.elf: step: 2 functions have this name; give the address of one");
    assert_eq!(lines[1..], ["  0x12b0  step", "  0x13f0  step"]);

    let overloads = lancet_line("loops sample.elf shapes::sum").stderr;
    assert!(overloads.contains("shapes::sum(int, int)\n") && overloads.contains("shapes::sum(int, int, int)\n"));
}

#[test]
fn processes_that_cannot_be_looked_at() {
    let mut child = Command::new("true").stdin(Stdio::null()).spawn().expect("true runs");
    let pid = child.id().to_string();
    // It has ended, and nobody has waited for it yet.
    while !fs::read_to_string(format!("/proc/{pid}/stat")).expect("a zombie is listed").contains(") Z ") {
        std::thread::yield_now();
    }
    let error = || lancet(["functions", "--pid", &pid]).error_line();
    assert_eq!(error(), format!("lancet: process {pid}: has ended (zombie): it has no memory any more"));
    child.wait().expect("it can be waited for");
    assert_eq!(error(), format!("lancet: process {pid}: no such process"));

    // A container may show no kernel threads.
    if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n") {
        let line = lancet_line("functions --pid 2").error_line();
        assert!(line.starts_with("lancet: process 2: "), "{line}");
    }
}
