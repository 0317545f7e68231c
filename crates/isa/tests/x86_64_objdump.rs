//! Lengths of instructions, against an independent disassembler, over the whole text of real programs.
//!
//! Every address at which objdump starts an instruction is decoded on its own; the next one must be where Lancet's
//! ends. What objdump calls bad must not decode, and the text must not be empty.

use std::process::Command;

use lancet_isa::{Svma, Syntax, decode_one, for_elf_machine};

const EM_X86_64: u16 = 62;

/// Address, bytes and text of every instruction that objdump lists.
fn listing(file: &str) -> Vec<(u64, Vec<u8>, String)> {
    let out = Command::new("objdump").args(["-d", "-w", "-z", "--section=.text", file]).output().expect("objdump runs");
    assert!(out.status.success(), "objdump fails on {file}");
    let text = String::from_utf8_lossy(&out.stdout);
    let line = |line: &str| {
        let mut columns = line.split('\t');
        let at = u64::from_str_radix(columns.next()?.trim().strip_suffix(':')?, 16).ok()?;
        let bytes = columns.next()?.split_whitespace().map(|byte| u8::from_str_radix(byte, 16));
        Some((at, bytes.collect::<Result<Vec<u8>, _>>().ok()?, columns.next().unwrap_or("").to_owned()))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn lengths_agree_with_objdump() {
    let isa = for_elf_machine(EM_X86_64).expect("x86-64 is known");
    for file in ["/usr/bin/objdump", "/usr/bin/gdb"] {
        let listing = listing(file);
        assert!(listing.len() > 20_000, "{file}: only {} instructions", listing.len());
        let mut wrong = Vec::new();
        for (at, bytes, theirs) in &listing {
            let ours = decode_one(isa, bytes, Svma(*at));
            let agrees = match &ours {
                Ok(insn) => usize::from(insn.len) == bytes.len(),
                Err(_) => theirs.contains("(bad)"),
            };
            let named =
                ours.is_err() || isa.text(bytes, Svma(*at), Syntax::Gnu, &|_| None).is_ok_and(|t| !t.is_empty());
            if !agrees || !named {
                wrong.push(format!("{at:#x}: {bytes:02x?} {theirs}: {ours:?}"));
            }
        }
        assert!(wrong.is_empty(), "{file}: {} of {}: {:#?}", wrong.len(), listing.len(), &wrong[..wrong.len().min(5)]);
    }
}
