//! The programs of `testdata/blackfin` print what the same source prints on the host.

mod common;

use common::{run, testdata};
use lancet_blackfin_sim::End;
use std::path::Path;

/// Runs every program of a folder whose name ends with `suffix`; returns how many there were.
fn check(folder: &Path, suffix: &str) -> usize {
    let mut programs: Vec<_> =
        std::fs::read_dir(folder.join("elf")).unwrap().map(|entry| entry.unwrap().path()).collect();
    programs.retain(|path| path.to_str().unwrap().ends_with(suffix));
    for program in &programs {
        let file_name = program.file_name().unwrap().to_str().unwrap();
        let name = file_name.split('.').next().unwrap();
        let expected = std::fs::read_to_string(folder.join("expected").join(format!("{name}.txt"))).unwrap();
        let (end, output) = run(program, file_name.ends_with(".op.elf"));
        assert_eq!(output, expected, "{file_name}");
        assert_eq!(end, End::Exited(0), "{file_name}");
    }
    programs.len()
}

#[test]
fn small_programs() {
    assert_eq!(check(&testdata(), "elf"), 64);
}

#[test]
fn consumer_programs_in_the_virtual_environment() {
    assert_eq!(check(&testdata().join("consumer"), ".O2.elf"), 4);
}

#[test]
fn consumer_programs_in_the_operating_environment() {
    assert_eq!(check(&testdata().join("consumer"), ".op.elf"), 4);
}
