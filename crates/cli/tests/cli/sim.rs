//! `lancet sim` on the fixtures of testdata/blackfin, and on programs that cannot go on.

use std::fs;
use std::path::PathBuf;

use crate::{Ran, json, lancet};

fn blackfin() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/blackfin"))
}

fn sim(arguments: &[&str], program: &str) -> Ran {
    let path = blackfin().join("elf").join(program);
    let path = path.to_str().expect("UTF-8");
    lancet(["sim"].iter().chain(arguments).chain([&path]))
}

fn expected(program: &str) -> String {
    fs::read_to_string(blackfin().join("expected").join(program).with_extension("txt")).expect("expected output")
}

#[test]
fn prints_what_the_program_prints() {
    assert_eq!(sim(&[], "crc.O2.elf").good(), expected("crc"));
    assert_eq!(sim(&["--environment", "operating"], "crc.op.elf").good(), expected("crc"));
}

#[test]
fn the_statistics_are_beside_the_output() {
    let ran = sim(&["--stats"], "stride.O2.elf");
    assert_eq!((ran.status, ran.stdout), (Some(0), expected("stride")));
    for line in ["instructions ", "cycles ", "stalls ", "data cache misses ", "energy "] {
        assert!(ran.stderr.contains(line), "{line} in {}", ran.stderr);
    }
    let ran = sim(&["--json"], "stride.O2.elf");
    let stats = json(&ran.stderr);
    assert_eq!(ran.stdout, expected("stride"));
    assert!(stats["cycles"].as_u64() > stats["instructions"].as_u64(), "{stats}");
    assert!(stats["data_cache_misses"].as_u64() > Some(0), "{stats}");
    assert!(stats["stalls"]["read"].as_u64() > Some(0), "{stats}");
}

#[test]
fn the_trace_has_every_instruction() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let ran = sim(&["--json", "--trace", trace.to_str().expect("UTF-8")], "fib.O2.elf");
    let lines = fs::read_to_string(&trace).expect("a trace");
    // The last one ends the program instead of completing.
    assert_eq!(lines.lines().count() as u64 + 1, json(&ran.stderr)["instructions"].as_u64().expect("a count"));
    assert!(lines.lines().all(|line| !line.contains('?')), "an instruction without text");
    assert!(lines.contains(" RETS="), "calls change RETS");
}

/// An executable of `code` at 0x1000.
fn program(code: &[u16]) -> Vec<u8> {
    let code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);
    let halves = |file: &mut Vec<u8>, list: &[u16]| list.iter().for_each(|x| file.extend(x.to_le_bytes()));
    let words = |file: &mut Vec<u8>, list: &[u32]| list.iter().for_each(|x| file.extend(x.to_le_bytes()));
    halves(&mut file, &[2, 106]);
    words(&mut file, &[1, 0x1000, 52, 0, 0]);
    halves(&mut file, &[52, 32, 1, 0, 0, 0]);
    let bytes = code.len() as u32;
    words(&mut file, &[1, 84, 0x1000, 0x1000, bytes, bytes, 5, 4]);
    file.extend(code);
    file
}

/// What is said of a program that cannot go on, without its path.
#[track_caller]
fn stopped(code: &[u16], options: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program.elf");
    fs::write(&path, program(code)).expect("a file");
    let path = path.to_str().expect("UTF-8");
    let ran = lancet(["sim"].iter().chain(options).chain([&path]));
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    ran.stderr.strip_prefix(&format!("lancet: {path}: ")).expect("the path first").to_owned()
}

#[test]
fn trouble_names_the_place_the_instruction_and_the_registers() {
    let cases: [(&[u16], &str); 5] = [
        (&[0x0001], "undefined instruction at 0x00001000: ILLEGAL;\n"),
        // P0 = -16 (X); R0 = [P0];
        (&[0x6f80, 0x9100], "(address 0xfffffff0) at 0x00001002: R0 = [P0];\n"),
        // P0 = 2 (X); R0 = [P0];
        (&[0x6810, 0x9100], "misaligned data access (address 0x00000002) at 0x00001002: R0 = [P0];\n"),
        // P0 = 63 (X); EXCPT 0x0;
        (&[0x69f8, 0x00a0], "unknown system call 63 at 0x00001002: EXCPT 0x0;\n"),
        // P0.H = 0x1000; JUMP (P0);
        (&[0xe148, 0x1000, 0x0050], "at 0x10000000: no memory\n"),
    ];
    for (code, wanted) in cases {
        let said = stopped(code, &[]);
        assert!(said.contains(wanted), "{wanted} in {said}");
        for register in ["R0 ", "P0 ", "ASTAT ", "RETS ", "LC0 "] {
            assert!(said.contains(register), "{register} in {said}");
        }
    }
    // R0 = 5 (X);
    assert!(stopped(&[0x6028, 0x0001], &[]).contains("R0      00000005"));
}

#[test]
fn a_program_without_end_is_given_up() {
    // JUMP.S to itself
    assert_eq!(stopped(&[0x2000], &["--limit", "1000"]), "it did not end within 1000 instructions\n");
}

#[test]
fn files_that_are_no_blackfin_programs() {
    let other = lancet(["sim", "sample.elf"]).error_line();
    assert_eq!(other, "lancet: sample.elf: the file is for another machine (x86-64), not for Blackfin");
    let missing = lancet(["sim", "no-such-file"]).error_line();
    assert!(missing.starts_with("lancet: no-such-file: "), "{missing}");
}

#[test]
fn the_exit_status_is_the_programs() {
    // HLT and ABORT, pseudo instructions of the simulator
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program.elf");
    for (code, status) in [(0xf8c4, 0), (0xf8c3, 1)] {
        fs::write(&path, program(&[code])).expect("a file");
        assert_eq!(lancet(["sim".as_ref(), path.as_os_str()]).status, Some(status));
    }
}
