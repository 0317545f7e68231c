//! For tests: code that is written here as bytes, as text.

use lancet_isa::{Svma, Syntax, for_elf_machine};

/// Addresses and instructions of code that begins at `at`.
pub(super) fn of(code: &[u8], at: u64) -> Vec<(u64, String)> {
    let isa = for_elf_machine(62).expect("x86-64");
    let mut lines = Vec::new();
    isa.listing(code, Svma(at), Syntax::Vendor, &|_| None, &mut |line| lines.push((line.at.0, line.text.to_owned())));
    assert!(lines.iter().all(|(_, text)| !text.contains("bad")), "{lines:#?}");
    lines
}

/// The same for a routine by itself, whose jumps and calls must lead to its instructions.
pub(super) fn of_routine(code: &[u8]) -> Vec<(u64, String)> {
    let lines = of(code, 0);
    for (_, text) in lines.iter().filter(|(_, text)| text.starts_with('j') || text.starts_with("call")) {
        let to = text.rsplit([' ', 'x']).next().and_then(|to| u64::from_str_radix(to.trim_end_matches('h'), 16).ok());
        assert!(lines.iter().any(|(at, _)| Some(*at) == to), "{text}: {lines:#?}");
    }
    lines
}
