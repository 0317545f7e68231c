//! Building, rewriting and running programs.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use lancet::tools::count::Counted;
use tempfile::TempDir;

/// Nothing here runs for a second, on an idle machine.
const LONGEST_RUN: Duration = Duration::from_secs(60);

/// A folder in which things are built and run.
pub struct Bench {
    folder: TempDir,
}

/// What a run left behind: standard output and error, and how it ended.
#[derive(PartialEq, Eq, Debug)]
pub struct Ran {
    pub stdout: String,
    pub stderr: String,
    pub status: Option<i32>,
    pub signal: Option<i32>,
}

impl Bench {
    pub fn new() -> Bench {
        Bench { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Compiles sources of the test data to `name`. Flags are written as one types them.
    pub fn compile(&self, compiler: &str, sources: &[&str], name: &str, flags: &str) -> PathBuf {
        let out = self.path(name);
        let mut command = Command::new(compiler);
        command.args(sources.iter().map(|source| sources_folder().join(source))).arg("-o").arg(&out);
        command.args(flags.split_whitespace()).current_dir(self.folder.path());
        check(&mut command);
        out
    }

    /// Rewrites `from` to `name` with edge counting; the counts go to `name.counts` in the folder.
    pub fn counting(&self, from: &Path, name: &str) -> PathBuf {
        let out = self.path(name);
        let counts = self.counts_path(name);
        let arguments: [&OsStr; 5] = ["-o".as_ref(), out.as_ref(), "--counts".as_ref(), counts.as_ref(), from.as_ref()];
        check(lancet("rewrite").args(arguments));
        out
    }

    pub fn counts_path(&self, name: &str) -> PathBuf {
        self.path(&format!("{name}.counts"))
    }

    /// What the rewritten program `name` counted. Nothing of it contradicts itself.
    pub fn counted(&self, name: &str) -> Counted {
        self.counted_by(name, &self.path(name))
    }

    /// The same for a program that is elsewhere now.
    pub fn counted_by(&self, name: &str, program: &Path) -> Counted {
        let counts = self.counts_path(name);
        let counted = Counted::open(&counts, Some(program), None).unwrap_or_else(|error| panic!("{error}"));
        assert!(counted.faults.is_empty(), "{name}: {:?}", counted.faults);
        counted
    }

    pub fn run(&self, program: &Path, arguments: &[&str]) -> Ran {
        self.run_as(program, program, arguments)
    }

    /// Runs a program that believes to be another: what it says of itself then is the same.
    pub fn run_as(&self, name: &Path, program: &Path, arguments: &[&str]) -> Ran {
        let mut command = Command::new(program);
        command.arg0(name).args(arguments).current_dir(self.folder.path()).env_remove("LANCET_COUNTS");
        Ran::of(&mut command)
    }

    /// Rewrites a program and runs it beside the original: nothing may differ. Returns the rewritten one.
    pub fn behaves_the_same(&self, original: &Path, arguments: &[&str]) -> PathBuf {
        let name = format!("{}.counting", original.file_name().expect("a name").to_string_lossy());
        let rewritten = self.counting(original, &name);
        let (expected, found) = (self.run(original, arguments), self.run_as(original, &rewritten, arguments));
        assert_eq!(found, expected, "{}", original.display());
        rewritten
    }
}

impl Ran {
    /// Runs a command that takes no input. One that hangs fails the test.
    pub fn of(command: &mut Command) -> Ran {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let group = format!("-{}", child.id());
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        let Ok(output) = receiver.recv_timeout(LONGEST_RUN) else {
            Command::new("kill").args(["-KILL", "--", &group]).status().expect("kill runs");
            panic!("{command:?} hangs");
        };
        let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Ran {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            status: output.status.code(),
            signal: output.status.signal(),
        }
    }
}

pub fn lancet(subcommand: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lancet"));
    command.arg(subcommand).stdin(Stdio::null());
    command
}

/// Runs a command that must succeed without a word of complaint, and gives what it wrote.
pub fn check(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{errors}", output.status);
    assert_eq!(errors, "", "{command:?} complains");
    out.into_owned()
}

pub fn sources_folder() -> PathBuf {
    fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/x86_64/rewrite")).expect("the test data")
}

/// How often functions of this name were called.
pub fn calls_of(counted: &Counted, name: &str) -> u64 {
    let named =
        |program: &lancet::Program, id| program.symbol_name(program.func(id)).is_some_and(|found| found == name);
    let found: Vec<u64> = counted
        .funcs()
        .filter(|(id, _)| named(&counted.program, *id))
        .map(|(_, counts)| counts.entries.first().copied().unwrap_or(0))
        .collect();
    assert!(!found.is_empty(), "{name} was not counted");
    found.iter().sum()
}
