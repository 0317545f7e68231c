//! Programs to look at while they run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

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
        wait_until_started(child.id());
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

/// More than any loader needs.
const CPU_TIME_OF_LOADING: u64 = 20_000_000;

/// Waits until a program has all its libraries: until it sleeps in a system call of its own, or has run for a while.
pub fn wait_until_started(pid: u32) {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).expect("it is there");
    let sleeps = || read("stat").rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'));
    let cpu_time = || read("schedstat").split(' ').next().and_then(|time| time.parse::<u64>().ok());
    while !sleeps() && cpu_time() < Some(CPU_TIME_OF_LOADING) {
        std::thread::sleep(Duration::from_millis(1));
    }
}
