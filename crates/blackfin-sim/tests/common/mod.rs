//! What the tests share.

use lancet_blackfin_sim::{Captured, Config, End, Environment, Simulator};
use std::path::{Path, PathBuf};

pub fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/blackfin")
}

/// Runs a program to its end; returns how it ended and what it printed.
pub fn run(program: &Path, operating: bool) -> (End, String) {
    let file = std::fs::read(program).unwrap();
    let environment = if operating { Environment::Operating } else { Environment::Virtual };
    let mut host = Captured::default();
    let mut simulator = Simulator::load(&file, Config { environment, ..Config::default() }).unwrap();
    match simulator.run(&mut host) {
        Ok(end) => (end, host.text()),
        Err(error) => panic!("{}: {error}\n{}", program.display(), host.text()),
    }
}
