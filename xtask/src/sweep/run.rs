//! One run of a program: what it printed and how it ended, within a time limit.
//!
//! Output goes to files and not to pipes: a child left behind that holds the pipe open would otherwise keep us waiting.
//! The program leads a process group of its own, so that at the limit its children end with it.

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Ended { status: ExitStatus, stdout: Vec<u8>, stderr: Vec<u8> },
    TimedOut,
}

impl Outcome {
    /// The same with 0 for every number that was printed.
    pub fn without_numbers(&self) -> Outcome {
        let zeros = |bytes: &[u8]| {
            let mut bytes: Vec<u8> = bytes.iter().map(|b| if b.is_ascii_digit() { b'0' } else { *b }).collect();
            bytes.dedup_by(|a, b| *a == b'0' && *b == b'0');
            bytes
        };
        match self {
            Outcome::Ended { status, stdout, stderr } => {
                Outcome::Ended { status: *status, stdout: zeros(stdout), stderr: zeros(stderr) }
            }
            Outcome::TimedOut => Outcome::TimedOut,
        }
    }

    /// Says in what the other differs, with the first line that does.
    pub fn difference(&self, other: &Outcome) -> Option<String> {
        match (self, other) {
            _ if self == other => None,
            (Outcome::TimedOut, _) => Some("the original ran past the limit, the edited one did not".into()),
            (_, Outcome::TimedOut) => Some("the edited one ran past the limit".into()),
            (
                Outcome::Ended { status: status_a, stdout: stdout_a, stderr: stderr_a },
                Outcome::Ended { status: status_b, stdout: stdout_b, stderr: stderr_b },
            ) => {
                let mut parts = Vec::new();
                if status_a != status_b {
                    parts.push(format!("{}, not {}", how_ended(*status_b), how_ended(*status_a)));
                }
                parts.extend(first_difference("stdout", stdout_a, stdout_b));
                parts.extend(first_difference("stderr", stderr_a, stderr_b));
                Some(parts.join("; "))
            }
        }
    }
}

fn how_ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

fn first_difference(what: &str, a: &[u8], b: &[u8]) -> Option<String> {
    if a == b {
        return None;
    }
    let (mut a, mut b) = (a.split(|byte| *byte == b'\n'), b.split(|byte| *byte == b'\n'));
    let shown = |line: Option<&[u8]>| match line {
        Some(line) => format!("`{}`", String::from_utf8_lossy(line).chars().take(120).collect::<String>()),
        None => "nothing".to_string(),
    };
    loop {
        match (a.next(), b.next()) {
            (None, None) => return None,
            (x, y) if x == y => {}
            (x, y) => return Some(format!("{what} has {}, not {}", shown(y), shown(x))),
        }
    }
}

/// Runs the command with nothing on its input. `scratch` is a folder for its output.
pub fn run(command: &mut Command, scratch: &Path, limit: Duration) -> Result<Outcome> {
    let (stdout, stderr) = (scratch.join("stdout"), scratch.join("stderr"));
    let create = |path: &Path| File::create(path).with_context(|| format!("cannot write {}", path.display()));
    command.stdin(Stdio::null()).stdout(create(&stdout)?).stderr(create(&stderr)?).process_group(0);
    let mut child = command.spawn().with_context(|| format!("cannot run `{}`", crate::shell::words(command)))?;
    let group = Pid::from_raw(i32::try_from(child.id()).context("a process id")?);
    let start = Instant::now();
    let status = loop {
        match child.try_wait().context("wait")? {
            Some(status) => break Some(status),
            None if start.elapsed() > limit => break None,
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    // Children that outlive the program are no part of the comparison. None left is no error.
    let _ = killpg(group, Signal::SIGKILL);
    let Some(status) = status else {
        child.wait().context("wait")?;
        return Ok(Outcome::TimedOut);
    };
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    Ok(Outcome::Ended { status, stdout: read(&stdout)?, stderr: read(&stderr)? })
}
