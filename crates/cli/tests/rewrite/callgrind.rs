//! Valgrind's callgrind, which counts every instruction by interpreting the program.
//!
//! Its output names addresses as the file states them, one line per instruction or as a distance from the line before:
//!
//! ```text
//! ob=(2) /path/of/the/object     names are written once, then only their number is
//! fn=(7) main
//! 0x1139 12 100                  address, source line, count
//! +4 12 100                      4 behind the address before
//! calls=100 0x1120 0             the next line is a call's sum, not an instruction
//! * 13 4200
//! ```

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::{Command, Stdio};

use lancet::Svma;

/// How often each instruction of `object` runs in a run of `program`.
pub fn instruction_counts(program: &Path, arguments: &[&str], object: &Path, folder: &Path) -> BTreeMap<Svma, u64> {
    let out = tempfile::NamedTempFile::new_in(folder).expect("a temporary file");
    let mut command = Command::new("valgrind");
    command.args(["-q", "--tool=callgrind", "--dump-instr=yes", "--skip-plt=no"]);
    command.arg(format!("--callgrind-out-file={}", out.path().display()));
    command.arg(program).args(arguments).current_dir(folder).stdin(Stdio::null()).env_remove("LANCET_COUNTS");
    command.output().expect("valgrind runs");
    let text = std::fs::read_to_string(out.path()).expect("callgrind's output");
    let object = std::fs::canonicalize(object).expect("the object");
    parse(&text, &object.to_string_lossy())
}

/// How often each instruction of `object` ran, in callgrind's format.
pub fn parse(text: &str, object: &str) -> BTreeMap<Svma, u64> {
    let mut objects: HashMap<&str, &str> = HashMap::new();
    let mut counts = BTreeMap::new();
    let (mut is_ours, mut is_call, mut at) = (false, false, 0u64);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("ob=") {
            is_ours = named(&mut objects, name) == object;
        } else if let Some(name) = line.strip_prefix("cob=") {
            named(&mut objects, name);
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if let Some((address, count)) = cost(line, at) {
            at = address;
            if !std::mem::take(&mut is_call) && is_ours {
                *counts.entry(Svma(at)).or_default() += count;
            }
        }
    }
    counts
}

/// The name behind `(7) name`, or behind an earlier mention of `(7)`; names need not have numbers.
fn named<'a>(names: &mut HashMap<&'a str, &'a str>, text: &'a str) -> &'a str {
    match text.split_once(' ') {
        Some((number, name)) if number.starts_with('(') => {
            names.insert(number, name);
            name
        }
        _ => names.get(text).copied().unwrap_or(text),
    }
}

fn cost(line: &str, before: u64) -> Option<(u64, u64)> {
    let mut words = line.split(' ');
    let address = words.next()?;
    let at = match address.split_at_checked(1)? {
        ("*", _) => before,
        ("+", distance) => before.checked_add(distance.parse().ok()?)?,
        ("-", distance) => before.checked_sub(distance.parse().ok()?)?,
        _ => u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?,
    };
    Some((at, words.nth(1)?.parse().ok()?))
}
