//! `lancet disasm --raw`: memory dumps.

use std::fs;

use crate::{json, lancet};

/// What the command says of these bytes.
fn dump(bytes: &[u8], options: &[&str]) -> crate::Ran {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dump.bin");
    fs::write(&path, bytes).expect("a file");
    let path = path.to_str().expect("UTF-8");
    lancet(["disasm"].iter().chain(options).chain([&path]))
}

#[test]
fn blackfin() {
    // A bundle, a jump to itself, and half of a 32-bit instruction.
    let bytes = [0x03, 0xcc, 0x00, 0x34, 0x00, 0x9c, 0x00, 0x00, 0x00, 0x20, 0xff, 0xe1];
    let text = json(&dump(&bytes, &["--raw", "blackfin", "--at", "0xffa00000", "--json"]).good());
    assert_eq!(text["isa"], "blackfin");
    let lines = text["instructions"].as_array().expect("an array");
    let line = |i: usize| ["address", "bytes", "text"].map(|key| lines[i][key].as_str().expect("a string"));
    assert_eq!(lines.len(), 3);
    assert_eq!(line(0)[..2], ["0xffa00000", "03cc0034009c0000"]);
    assert!(line(0)[2].contains(" || R0 = [I0++] || NOP"), "{}", line(0)[2]);
    assert_eq!(line(1)[..2], ["0xffa00008", "0020"]);
    assert!(line(1)[2].starts_with("JUMP.S 0x"), "{}", line(1)[2]);
    assert_eq!(line(2)[1], "ffe1");
    // A bundle with an illegal slot, which the end of the dump cuts off.
    let cut = dump(&[0xc0, 0xc8, 0x34, 0xcf, 0x2c, 0x3a], &["--raw", "blackfin"]).good();
    assert!(cut.lines().all(|line| line.ends_with("  ILLEGAL;")), "{cut}");
}

#[test]
fn x86_64() {
    let text =
        dump(&[0x48, 0x89, 0xd8, 0xc3, 0x06], &["--raw", "x86-64", "--at", "4096", "--bytes", "--syntax", "intel"]);
    let text = text.good();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        lines,
        [vec!["0x1000", "4889d8", "mov", "rax,", "rbx"], vec!["0x1003", "c3", "ret"], vec!["0x1004", "06", "(bad)"]]
    );
}

#[test]
fn what_makes_no_sense() {
    assert_eq!(dump(&[], &["--raw", "blackfin"]).good(), "");
    let unknown = dump(&[], &["--raw", "pdp11"]);
    assert_eq!(unknown.status, Some(2));
    assert!(unknown.stderr.contains("x86-64, blackfin"), "{}", unknown.stderr);
    assert_eq!(dump(&[], &["--at", "0x10"]).status, Some(2));
    let missing = lancet(["disasm", "--raw", "blackfin", "no-such-file"]).error_line();
    assert!(missing.starts_with("lancet: no-such-file: "), "{missing}");
}
