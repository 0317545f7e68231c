//! A program that is run in the user's name: found as the shell finds it, and ended as it ended.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};

use lancet::counting::{Ended, Watched};
use nix::sys::resource::{Resource, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

/// What a shell answers for a program that is not there, and for one that cannot be run.
pub const NOT_FOUND: u8 = 127;
pub const NOT_RUNNABLE: u8 = 126;

/// The file that a shell would run.
pub fn find(program: &OsStr) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(program)).filter(|path| path.exists());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Runs a command to its end. What the terminal sends goes to the command, which decides; a request to Lancet alone to
/// end is passed on.
pub fn run(mut command: Command) -> io::Result<ExitStatus> {
    passing_signals_on(|| command.spawn(), Child::id, |mut child| wait(&mut child))
}

/// The same, and tells where its threads and those of its children end.
pub fn run_watched(command: Command) -> io::Result<Ended> {
    passing_signals_on(|| Watched::start(command), Watched::pid, Watched::wait)
}

fn passing_signals_on<C, T>(
    start: impl FnOnce() -> io::Result<C>,
    pid: impl FnOnce(&C) -> u32,
    finish: impl FnOnce(C) -> io::Result<T>,
) -> io::Result<T> {
    // Handlers, unlike ignored signals, are not inherited. What the user has ignored stays so.
    let ignored = ignored_signals();
    let caught = [SIGINT, SIGQUIT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(caught)?;
    let child = start()?;
    let pid = pid(&child);
    let handle = signals.handle();
    let passing_on = std::thread::spawn(move || {
        for signal in signals.forever().filter(|signal| matches!(*signal, SIGTERM | SIGHUP)) {
            pass_on(pid, signal);
        }
    });
    let result = finish(child);
    handle.close();
    let _ = passing_on.join();
    result
}

fn pass_on(pid: u32, signal: i32) {
    let (Ok(pid), Ok(signal)) = (i32::try_from(pid), nix::sys::signal::Signal::try_from(signal)) else { return };
    // It may have ended just now.
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal);
}

fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    loop {
        match child.wait() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            status => return status,
        }
    }
}

/// One bit for each signal, from 1 on.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Ends as the program did: by the same signal, or with its status.
pub fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal() {
        // The core that matters is the program's.
        let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        return ExitCode::from(128 | signal as u8);
    }
    ExitCode::from(status.code().unwrap_or(1) as u8)
}
