//! Real work by edited programs, beside the originals.
//!
//! A piece of work is a shell script and the programs that it is about. It runs twice in an empty folder: once with
//! copies of the original programs at the head of the PATH, once with edited ones, under the same paths. What it
//! prints (checksums of what it made, mostly) and how it ends must be the same, and it must succeed. The shell and all
//! other programs that it uses are the machine's own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::run::{self, Outcome};
use crate::packages::{self, Package, package};
use crate::shell;

struct Work {
    name: &'static str,
    programs: &'static [Program],
    script: &'static str,
}

enum Program {
    Path(&'static str),
    /// The program of that name inside of the compiler.
    OfCompiler(&'static str),
    /// The library that is rustc.
    RustcDriver,
    /// Lancet itself.
    Lancet,
}

macro_rules! script {
    ($name:literal) => {
        concat!("set -eu\n", include_str!(concat!("work/", $name, ".sh")))
    };
}

use Program::{Lancet, OfCompiler, Path as At, RustcDriver};

const SYSTEM_PYTHON: &str = "/usr/bin/python3";

const ALL: &[Work] = &[
    Work { name: "gzip", programs: &[At("/usr/bin/gzip")], script: script!("gzip") },
    Work { name: "xz", programs: &[At("/usr/bin/xz")], script: script!("xz") },
    Work { name: "zstd", programs: &[At("/usr/bin/zstd")], script: script!("zstd") },
    Work { name: "bzip2", programs: &[At("/usr/bin/bzip2")], script: script!("bzip2") },
    Work { name: "sqlite3", programs: &[At("/usr/bin/sqlite3")], script: script!("sqlite3") },
    Work { name: "python3", programs: &[At(SYSTEM_PYTHON)], script: script!("python3") },
    Work { name: "python3-tests", programs: &[At(SYSTEM_PYTHON)], script: script!("python3-tests") },
    Work { name: "perl", programs: &[At("/usr/bin/perl")], script: script!("perl") },
    Work { name: "bash", programs: &[At("/usr/bin/bash")], script: script!("bash") },
    Work { name: "g++", programs: &[OfCompiler("cc1plus")], script: script!("g++") },
    Work { name: "gdb", programs: &[At("/usr/bin/gdb")], script: script!("gdb") },
    Work { name: "git", programs: &[At("/usr/bin/git")], script: script!("git") },
    Work { name: "rustc", programs: &[RustcDriver], script: script!("rustc") },
    Work { name: "lancet", programs: &[Lancet], script: script!("lancet") },
];

const NEEDED: &[Package] = &[
    package("bzip2", "bzip2"),
    package("g++", "g++"),
    package("gdb", "gdb"),
    package("git", "/usr/bin/git"),
    package("perl", "perl"),
    package("python3", SYSTEM_PYTHON),
    package("sqlite3", "sqlite3"),
    package("xz-utils", "xz"),
    package("zstd", "zstd"),
];

const LIMIT: Duration = Duration::from_secs(300);

/// Installs what is missing for the work.
pub fn install() -> Result<()> {
    packages::install_missing(NEEDED)?;
    let ask = "import sysconfig; print(sysconfig.get_python_version(), sysconfig.get_path('stdlib'))";
    let answer = String::from_utf8(shell::output(Command::new(SYSTEM_PYTHON).args(["-c", ask]))?)?;
    let (version, library) = answer.trim_end().split_once(' ').context("python3 states no version")?;
    let (name, proof) = (format!("libpython{version}-testsuite"), format!("{library}/test/test_json"));
    packages::install_missing(&[Package { name: name.into(), proof: proof.into() }])
}

/// Does all the work that is wanted, prints the table, and returns the number of differences.
pub fn run(lancet: &Path, scratch: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<usize> {
    println!("real work: edited and original");
    println!("{:<16} {:>12} {:>12}   result", "", "original s", "edited s");
    let mut different = 0;
    for work in ALL.iter().filter(|work| wanted(work.name)) {
        let folder = scratch.join(format!("work-{}", work.name));
        let verdict = compare(lancet, work, &folder).with_context(|| format!("the work of {}", work.name))?;
        different += usize::from(verdict.is_different);
        println!("{:<16} {:>12.2} {:>12.2}   {}", work.name, verdict.seconds[0], verdict.seconds[1], verdict.text);
    }
    println!();
    Ok(different)
}

struct Verdict {
    seconds: [f64; 2],
    is_different: bool,
    text: String,
}

fn compare(lancet: &Path, work: &Work, folder: &Path) -> Result<Verdict> {
    let verdict = |seconds, is_different, text| Ok(Verdict { seconds, is_different, text });
    let programs = work.programs.iter().map(|program| locate(program, lancet)).collect::<Result<Vec<PathBuf>>>()?;
    // Set-up: the originals as copies, so that nobody finds more beside the one than beside the other.
    let name_of = |path: &Path| path.file_name().unwrap_or_default().to_os_string();
    let mut outcomes = Vec::new();
    let mut seconds = [0.0; 2];
    for (edit, seconds) in [false, true].into_iter().zip(&mut seconds) {
        let bin = folder.join("bin");
        std::fs::create_dir_all(&bin).with_context(|| format!("cannot make {}", bin.display()))?;
        for program in &programs {
            let target = bin.join(name_of(program));
            match edit {
                false => std::fs::copy(program, &target).map(drop).context("cannot copy a program")?,
                true => super::rewrite(lancet, program, &target)?,
            }
        }
        let start = Instant::now();
        let outcome = once(work, lancet, folder, &bin)?;
        *seconds = start.elapsed().as_secs_f64();
        std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        match &outcome {
            Outcome::Ended { status, stderr, .. } if !status.success() && !edit => {
                let stderr = String::from_utf8_lossy(stderr);
                return verdict([0.0; 2], true, format!("the original fails ({status}): {}", stderr.trim_end()));
            }
            Outcome::TimedOut if !edit => return verdict([0.0; 2], true, "the original takes too long".into()),
            _ => outcomes.push(outcome),
        }
    }
    match outcomes.as_slice() {
        [original, edited] => match original.difference(edited) {
            Some(difference) => verdict(seconds, true, format!("DIFFERENT: {difference}")),
            None => verdict(seconds, false, "same".into()),
        },
        _ => unreachable!("two runs have two outcomes"),
    }
}

fn locate(program: &Program, lancet: &Path) -> Result<PathBuf> {
    let path = match program {
        At(path) => PathBuf::from(path),
        OfCompiler(name) => {
            let printed = shell::output(Command::new("g++").arg(format!("-print-prog-name={name}")))?;
            PathBuf::from(String::from_utf8(printed)?.trim_end())
        }
        RustcDriver => crate::bench::rustc_driver()?,
        Lancet => lancet.to_path_buf(),
    };
    ensure!(path.is_file(), "{} is not there", path.display());
    Ok(path)
}

/// Runs the script. `INPUT` names a file of a few megabytes to work on, `BIN` the folder of the programs.
fn once(work: &Work, input: &Path, folder: &Path, bin: &Path) -> Result<Outcome> {
    let working = folder.join("working");
    std::fs::create_dir(&working).context("cannot make a folder")?;
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(bin.to_path_buf()).chain(std::env::split_paths(&inherited)));
    let mut command = Command::new("/bin/sh");
    command.args(["-c", work.script]).current_dir(&working);
    command.env("PATH", path.context("the PATH")?).env("BIN", bin).env("INPUT", input).env("HOME", &working);
    command.env("LC_ALL", "C.UTF-8").env("LANCET_COUNTS", folder.join("counts.%p"));
    run::run(&mut command, folder, LIMIT)
}
