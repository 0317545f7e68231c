//! The command as people run it: a process with arguments, output and an exit status.

mod bad_input;
mod blackfin;
mod count;
mod golden;
mod limits;
mod live;
mod measure;
mod options;
mod process;
mod profile;
mod raw;
mod replace;
mod sim;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What a run left behind.
struct Ran {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ran {
    /// The standard output of a run without complaints.
    #[track_caller]
    fn good(self) -> String {
        assert_eq!((self.status, self.stderr.as_str()), (Some(0), ""));
        self.stdout
    }

    /// The one line that a failed run leaves, without the newline.
    #[track_caller]
    fn error_line(self) -> String {
        assert_eq!((self.status, self.stdout.as_str()), (Some(1), ""), "{}", self.stderr);
        let line = self.stderr.strip_suffix('\n').expect("a whole line");
        assert!(!line.contains('\n'), "more than a line: {line}");
        line.to_owned()
    }
}

fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lancet"));
    command.args(arguments).current_dir(sample_folder()).stdin(Stdio::null()).env_remove("NO_COLOR");
    command
}

/// Runs in the folder of the sample program.
fn lancet<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    let output = command(arguments).output().expect("lancet runs");
    Ran {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// As [`lancet`], with arguments as one would type them. No quoting: arguments have no spaces.
fn lancet_line(line: &str) -> Ran {
    lancet(line.split(' '))
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

fn testdata() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/x86_64"))
}

fn sample_folder() -> PathBuf {
    testdata().join("sample")
}
