//! `cargo xtask test`: what a change must pass.
//!
//! The checks run in order of price, and a failed check does not hide the later ones: all run, and the failed ones
//! are named at the end. The last line is always the sum over all of cargo's test programs,
//! `N passed, N failed`.

use std::io::{BufRead, BufReader, Write};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::{accuracy, packages, shell, tidy};

type Step = (&'static str, fn() -> Result<()>);

/// Passed and failed tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
}

pub fn run() -> Result<ExitCode> {
    packages::install_missing(packages::OF_TESTS)?;
    let steps: [Step; 5] = [
        ("fmt", || cargo(&["fmt", "--all", "--check"])),
        ("clippy", || cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])),
        ("tidy", tidy::run),
        ("build", || cargo(&["build", "--workspace", "--all-targets"])),
        ("accuracy", accuracy::check_small),
    ];
    let mut broken = Vec::new();
    for (name, step) in steps {
        println!("== {name}");
        if let Err(error) = step() {
            eprintln!("{name}: {error:#}");
            broken.push(name);
        }
    }
    println!("== test");
    let (tally, clean) = cargo_test()?;
    if !clean && tally.failed == 0 {
        broken.push("test");
    }
    if !broken.is_empty() {
        println!("failed: {}", broken.join(", "));
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    Ok(if broken.is_empty() && clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn cargo(arguments: &[&str]) -> Result<()> {
    shell::run(shell::cargo()?.args(arguments))
}

/// Runs all tests, shows their output, and adds up the results. Also says whether cargo itself was content: a test
/// program that does not build or crashes leaves no result line.
fn cargo_test() -> Result<(Tally, bool)> {
    let mut command = shell::cargo()?;
    command.args(["test", "--workspace", "--no-fail-fast"]).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot run `{}`", shell::words(&command)))?;
    let mut tally = Tally::default();
    if let Some(stdout) = child.stdout.take() {
        let mut reader = BufReader::new(stdout);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).context("reading the output of cargo test")? > 0 {
            std::io::stdout().write_all(&line)?;
            tally.add(&String::from_utf8_lossy(&line));
            line.clear();
        }
    }
    let status = child.wait().context("waiting for cargo test")?;
    Ok((tally, status.success()))
}

impl Tally {
    /// Adds what a line like `test result: ok. 3 passed; 0 failed; ...` says; other lines say nothing.
    fn add(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else { return };
        let Some((_, counts)) = rest.split_once(". ") else { return };
        for part in counts.split("; ") {
            match part.split_once(' ') {
                Some((n, "passed")) => self.passed += n.parse().unwrap_or(0),
                Some((n, "failed")) => self.failed += n.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn result_lines_are_added_up() {
        let mut tally = Tally::default();
        tally.add("test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n");
        tally.add("test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n");
        tally.add("test discovery::7 passed; 9 failed ... ok\n");
        assert_eq!(tally, Tally { passed: 7, failed: 2 });
    }
}
