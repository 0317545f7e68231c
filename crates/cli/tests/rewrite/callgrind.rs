//! Valgrind's callgrind, which counts every instruction by interpreting the program.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use lancet::Svma;

#[path = "../../../../xtask/src/callgrind.rs"]
mod format;

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
    format::parse(text, object).into_iter().map(|(at, count)| (Svma(at), count)).collect()
}
