//! The self-checking programs of the GNU simulator's test suite, which are not ours to keep here.
//!
//! `LANCET_BLACKFIN_CONFORMANCE` names a folder with them. Its file `LIST` has a line for each: the name without `.elf`,
//! and in brackets the options of the simulator. Each prints `pass`.

mod common;

use lancet_blackfin_sim::End;
use std::path::PathBuf;

#[test]
fn programs_of_the_gnu_simulator_pass() {
    let Some(folder) = std::env::var_os("LANCET_BLACKFIN_CONFORMANCE").map(PathBuf::from) else {
        eprintln!("skipped: LANCET_BLACKFIN_CONFORMANCE does not name a folder with the conformance programs");
        return;
    };
    let list = std::fs::read_to_string(folder.join("LIST")).unwrap();
    let mut failed = Vec::new();
    for line in list.lines() {
        let (name, options) = line.split_once(' ').unwrap_or((line, ""));
        let operating = options.contains("--environment operating");
        let (end, output) = common::run(&folder.join(format!("{name}.elf")), operating);
        if end != End::Exited(0) || output.lines().last() != Some("pass") {
            failed.push(format!("{name}: {end:?} {output}"));
        }
    }
    assert!(failed.is_empty(), "{} of {} failed:\n{}", failed.len(), list.lines().count(), failed.join("\n"));
}
