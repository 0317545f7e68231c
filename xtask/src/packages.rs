//! The Debian packages that the chores need, and their installation.
//!
//! A package counts as present when the file that is wanted from it is there, however it came to be there:
//! on another distribution nothing is installed as long as the programs are on the PATH.

use std::borrow::Cow;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

pub struct Package {
    pub name: Cow<'static, str>,
    /// A program on the PATH, or the absolute path of a file.
    pub proof: Cow<'static, str>,
}

pub const fn package(name: &'static str, proof: &'static str) -> Package {
    Package { name: Cow::Borrowed(name), proof: Cow::Borrowed(proof) }
}

/// What the tests need.
pub const OF_TESTS: &[Package] = &[
    package("binutils", "objdump"),
    package("clang", "clang++"),
    package("g++", "g++"),
    package("gcc", "gcc"),
    package("gdb", "gdb"),
    package("git", "git"),
    package("golang-go", "go"),
    package("libc6-dev", "/usr/include/stdio.h"),
    package("lld", "ld.lld"),
    package("llvm", "llvm-dwarfdump"),
    package("valgrind", "valgrind"),
];

fn is_present(package: &Package) -> bool {
    match package.proof.starts_with('/') {
        true => Path::new(&*package.proof).exists(),
        false => shell::find_program(&package.proof).is_some(),
    }
}

/// Installs what is missing, or says what the user must install.
pub fn install_missing(needed: &[Package]) -> Result<()> {
    let missing: Vec<&str> = needed.iter().filter(|p| !is_present(p)).map(|p| &*p.name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("these Debian packages are missing: {}", missing.join(" "));
    apt_get(&["update", "-qq"])
        .and_then(|()| apt_get(&[&["install", "-y", "-qq", "--no-install-recommends"], &missing[..]].concat()))
        .with_context(|| format!("please install by hand: {}", missing.join(" ")))?;
    match needed.iter().find(|p| !is_present(p)) {
        Some(p) => bail!("package {} was installed, but {} is still not there", p.name, p.proof),
        None => Ok(()),
    }
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    if shell::find_program("apt-get").is_none() {
        bail!("this is not a Debian system: there is no apt-get");
    }
    let user = shell::output(Command::new("id").arg("-u"))?;
    let mut command = match user.trim_ascii() == b"0" {
        true => Command::new("apt-get"),
        false => {
            // Without a terminal to ask for a password, sudo must fail rather than wait.
            let mut sudo = Command::new("sudo");
            sudo.args(["--non-interactive", "apt-get"]);
            sudo
        }
    };
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    println!("running: {}", shell::words(&command));
    shell::run(&mut command)
}
