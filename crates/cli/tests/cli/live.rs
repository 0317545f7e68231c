//! Programs to look at while they run.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::testdata;

/// A folder in which the programs are built.
pub struct Workshop(tempfile::TempDir);

impl Workshop {
    pub fn new() -> Workshop {
        Workshop(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles a source of `testdata/x86_64/live`.
    pub fn compile(&self, source: &str, name: &str, flags: &[&str]) -> PathBuf {
        let (source, out) = (testdata().join("live").join(source), self.path(name));
        let status = Command::new("gcc").arg(source).arg("-o").arg(&out).args(flags).status().expect("gcc runs");
        assert!(status.success());
        out
    }
}

/// A program that runs until the test is over.
pub struct Busy(Child);

impl Busy {
    pub fn start(program: &Path, arguments: &[&str]) -> Busy {
        let child = Command::new(program).args(arguments).stdout(Stdio::null()).spawn().expect("it runs");
        Busy(child)
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }

    #[track_caller]
    pub fn check_alive(&mut self) {
        assert_eq!(self.0.try_wait().expect("it can be asked"), None, "it has ended");
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
