//! Running other programs, and finding the repository.
//!
//! Every failure names the command line and how it ended.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// The top folder of the repository that this program was built from.
pub fn root() -> Result<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = manifest.parent().context("the xtask folder has no parent")?;
    ensure!(root.join("Cargo.toml").is_file(), "the repository has moved: no {}", root.join("Cargo.toml").display());
    Ok(root.to_path_buf())
}

/// The cargo that started us, or the one on the PATH.
pub fn cargo() -> Result<Command> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()?);
    Ok(command)
}

/// The command line, for messages.
pub fn words(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// Runs the command with our own input and output.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run `{}`", words(command)))?;
    ensure!(status.success(), "`{}` failed ({status})", words(command));
    Ok(())
}

/// Runs the command and returns what it printed.
pub fn output(command: &mut Command) -> Result<Vec<u8>> {
    let done = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run `{}`", words(command)))?;
    if !done.status.success() {
        let stderr = String::from_utf8_lossy(&done.stderr);
        bail!("`{}` failed ({}): {}", words(command), done.status, stderr.trim_end());
    }
    Ok(done.stdout)
}

/// Where a program is on the PATH.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|candidate| candidate.is_file())
}

/// Where cargo builds.
pub fn target_dir() -> Result<PathBuf> {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => Ok(root()?.join(folder)),
        None => Ok(root()?.join("target")),
    }
}

/// Builds the `lancet` program for release, and returns its path.
pub fn build_lancet() -> Result<PathBuf> {
    run(cargo()?.args(["build", "--quiet", "--release", "--package", "lancet-cli"]))?;
    let program = target_dir()?.join("release/lancet");
    ensure!(program.is_file(), "cargo built no {}", program.display());
    Ok(program)
}

/// The `lancet` that the user names, or one built for release.
pub fn lancet_or_build(named: Option<&Path>) -> Result<PathBuf> {
    match named {
        Some(path) => std::path::absolute(path).context("the path of lancet"),
        None => build_lancet(),
    }
}
