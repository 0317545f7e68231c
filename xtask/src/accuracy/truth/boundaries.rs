//! Instruction boundaries by `objdump -d`.
//!
//! objdump sweeps from symbol to symbol. With all symbols there, and data in the text left out, the sweep is right.

use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

#[derive(Debug, Default)]
pub(in super::super) struct Boundaries {
    /// Sorted starts of instructions, and whether the instruction is padding.
    instructions: Vec<(u64, bool)>,
}

impl Boundaries {
    pub(super) fn from_objdump(file: &Path, data: &[Range<u64>]) -> Result<Boundaries> {
        let mut command = Command::new("objdump");
        command.args(["-d", "-w", "--no-show-raw-insn"]).arg(file);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot run objdump")?;
        let stdout = child.stdout.take().context("objdump has no output")?;
        let mut instructions = Vec::new();
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.context("reading from objdump")?;
            if let Some((address, text)) = parse(&line)
                && !data.iter().any(|range| range.contains(&address))
            {
                instructions.push((address, is_padding(text)));
            }
        }
        let status = child.wait().context("waiting for objdump")?;
        ensure!(status.success(), "objdump failed ({status})");
        instructions.sort_unstable();
        ensure!(!instructions.is_empty(), "objdump shows no instructions");
        Ok(Boundaries { instructions })
    }

    /// Instructions at given places, and whether each is padding.
    #[cfg(test)]
    pub(in super::super) fn at(instructions: &[(u64, bool)]) -> Boundaries {
        Boundaries { instructions: instructions.to_vec() }
    }

    pub(in super::super) fn contains(&self, address: u64) -> bool {
        self.instructions.binary_search_by_key(&address, |(at, _)| *at).is_ok()
    }

    /// The starts of all instructions in a range that do something.
    pub(in super::super) fn working(&self, range: &Range<u64>) -> impl Iterator<Item = u64> {
        let from = self.instructions.partition_point(|(at, _)| *at < range.start);
        let end = range.end;
        self.instructions[from..].iter().take_while(move |(at, _)| *at < end).filter(|(_, p)| !p).map(|(at, _)| *at)
    }
}

/// `  401000:\tpush   %rbp` to its address and text.
fn parse(line: &[u8]) -> Option<(u64, &str)> {
    let line = std::str::from_utf8(line).ok()?;
    let (address, text) = line.split_once(":\t")?;
    Some((u64::from_str_radix(address.trim_start(), 16).ok()?, text))
}

/// What assemblers and linkers fill gaps with.
fn is_padding(text: &str) -> bool {
    let without_prefixes = text.trim_start_matches("data16 ").trim_start_matches("cs ");
    let mnemonic = without_prefixes.split_whitespace().next().unwrap_or_default();
    matches!(mnemonic, "nop" | "nopw" | "nopl" | "int3") || without_prefixes.trim() == "xchg   %ax,%ax"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed() {
        assert_eq!(parse(b"  401000:\tpush   %rbp"), Some((0x401000, "push   %rbp")));
        assert_eq!(parse(b"0000000000401000 <main>:"), None);
        assert_eq!(parse(b"Disassembly of section .text:"), None);
    }

    #[test]
    fn padding_is_known() {
        for padding in ["nop", "data16 cs nopw 0x0(%rax,%rax,1)", "xchg   %ax,%ax", "int3", "nopl   0x0(%rax)"] {
            assert!(is_padding(padding), "{padding}");
        }
        assert!(!is_padding("xchg   %ax,%bx"));
        assert!(!is_padding("ret"));
    }
}
