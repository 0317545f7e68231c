//! `cargo xtask tidy`: the house rules as tests.
//!
//! The rules look at the files that git tracks (or would track: new files count too), so a rule cannot be passed by
//! forgetting to add a module. Rust is looked at as tokens, never as text: the word `todo!` in a comment or a string
//! is no violation. A violation is one line, `file:line: rule`.
//!
//! - `rust`: rules about Rust source;
//! - `text`: rules about any file;
//! - `manifest`: the direction of dependencies.

mod manifest;
mod rust;
mod text;

use std::fmt;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

/// A tracked file, by its path in the repository.
struct File {
    path: String,
    content: Vec<u8>,
}

impl File {
    /// The content as text, unless it is binary.
    fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.content).ok().filter(|text| !text.contains('\0'))
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    path: String,
    line: usize,
    rule: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.rule)
    }
}

/// Collects the violations of one file.
struct Findings<'a> {
    path: &'a str,
    found: &'a mut Vec<Violation>,
}

impl Findings<'_> {
    fn add(&mut self, line: usize, rule: impl Into<String>) {
        self.found.push(Violation { path: self.path.to_string(), line, rule: rule.into() });
    }
}

pub fn run() -> Result<()> {
    let found = check(&tracked_files()?);
    for violation in &found {
        println!("{violation}");
    }
    match found.len() {
        0 => Ok(()),
        1 => bail!("1 violation of the house rules"),
        n => bail!("{n} violations of the house rules"),
    }
}

fn check(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files {
        let mut findings = Findings { path: &file.path, found: &mut found };
        text::check(file, &mut findings);
        if let Some(text) = file.text() {
            if file.path.ends_with(".rs") {
                rust::check(&file.path, text, &mut findings);
            }
            if file.path.ends_with("Cargo.toml") {
                manifest::check(&file.path, text, &mut findings);
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn tracked_files() -> Result<Vec<File>> {
    let root = shell::root()?;
    let mut git = Command::new("git");
    git.current_dir(&root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let list = String::from_utf8(shell::output(&mut git)?).context("a tracked path is not UTF-8")?;
    let mut files = Vec::new();
    for path in list.split_terminator('\0') {
        let on_disk = root.join(path);
        // A file that was deleted and not yet committed is still in git's index.
        if on_disk.is_file() {
            let content = std::fs::read(&on_disk).with_context(|| format!("cannot read {path}"))?;
            files.push(File { path: path.to_string(), content });
        }
    }
    Ok(files)
}

/// The rules broken by one file, as text without the path, for the tests of the rules.
#[cfg(test)]
fn rules_broken(path: &str, content: &str) -> Vec<String> {
    let file = File { path: path.to_string(), content: content.as_bytes().to_vec() };
    check(&[file]).into_iter().map(|v| format!("{}: {}", v.line, v.rule)).collect()
}
