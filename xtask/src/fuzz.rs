//! `cargo xtask fuzz`: runs the fuzz targets on stable Rust.
//!
//! The targets are built with LLVM's coverage instrumentation switched on by hand, which is what `cargo fuzz` does,
//! less the sanitizers that need nightly: our own code is safe Rust, so a panic, a hang or a memory blow-up is all
//! there is to find. Inputs that cause one are saved under `testdata/fuzz-regressions/`, where an ordinary test
//! replays them.
//!
//! Seeds are tiny ELF files that are built on the spot; the corpus grows in the target folder.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::shell;

const TARGETS: [&str; 2] = ["image", "program"];
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

const COVERAGE: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];

// What one input may cost: files of a few kilobytes need milliseconds and a few megabytes.
const MAX_INPUT_BYTES: u32 = 8192;
const MAX_SECONDS: u32 = 10;
const MAX_MEMORY_MIB: u32 = 1024;

/// Lines of the fuzzer that say nothing to a person: each new input, and the words it would put in a dictionary.
const NOISE: &[&str] = &["\tREDUCE", "\tNEW", "# Uses: ", "recommended dictionary"];

#[derive(clap::Args)]
pub struct Options {
    /// How often to run each target
    #[arg(long, default_value_t = 5_000_000)]
    runs: u64,
    /// Stop each target after this many seconds, even if it has not run that often
    #[arg(long, default_value_t = 0)]
    seconds: u64,
    /// Only this target
    #[arg(value_parser = TARGETS)]
    target: Option<String>,
}

pub fn run(options: &Options) -> Result<ExitCode> {
    let root = shell::root()?;
    let folder = shell::target_dir()?.join("fuzz");
    let chosen: Vec<&str> =
        TARGETS.into_iter().filter(|t| options.target.as_deref().is_none_or(|wanted| wanted == *t)).collect();
    build(&root, &folder)?;
    let seeds = seeds(&root, &folder.join("seeds"))?;
    let results: Vec<Result<u64>> = std::thread::scope(|scope| {
        let start = |target: &&'static str| {
            let (target, root, folder, seeds) = (*target, &root, &folder, &seeds);
            scope.spawn(move || fuzz(target, options, root, folder, seeds))
        };
        let threads: Vec<_> = chosen.iter().map(start).collect();
        let join = |thread: std::thread::ScopedJoinHandle<_>| thread.join().unwrap_or_else(|_| Ok(0));
        threads.into_iter().map(join).collect()
    });
    let (mut all, mut good) = (0, true);
    for (target, result) in chosen.iter().zip(results) {
        match result {
            Ok(executions) => {
                println!("{target}: {executions} executions, no findings");
                all += executions;
            }
            Err(error) => {
                eprintln!("{target}: {error:#}");
                good = false;
            }
        }
    }
    println!("{all} executions in all");
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn build(root: &Path, folder: &Path) -> Result<()> {
    let mut cargo = shell::cargo()?;
    cargo.current_dir(root.join("fuzz")).args(["build", "--release", "--bins", "--target", TRIPLE]);
    cargo.arg("--target-dir").arg(folder).env("RUSTFLAGS", COVERAGE.join(" "));
    shell::run(&mut cargo)
}

/// Small files of each kind, so that the fuzzer need not invent ELF by itself.
fn seeds(root: &Path, folder: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let source = root.join("testdata/x86_64/corpus/assembly_cfi.S");
    let kinds: &[(&str, &[&str])] = &[
        ("static", &["-static", "-no-pie"]),
        ("static-pie", &["-static-pie"]),
        ("shared", &["-shared", "-Wl,-soname,seed"]),
        ("symbols", &["-static", "-no-pie", "-g", "-Wl,--build-id"]),
    ];
    for (name, options) in kinds {
        let mut gcc = Command::new("gcc");
        gcc.args(["-nostdlib", "-Wl,-z,noseparate-code,-e,asm_frame"]).args(*options);
        if *name != "symbols" {
            gcc.arg("-s");
        }
        shell::output(gcc.arg("-o").arg(folder.join(name)).arg(&source))?;
    }
    Ok(folder.to_path_buf())
}

/// Runs one target and shows its output under its name. Returns the number of executions.
fn fuzz(target: &str, options: &Options, root: &Path, folder: &Path, seeds: &Path) -> Result<u64> {
    let corpus = folder.join("corpus").join(target);
    let findings = root.join("testdata/fuzz-regressions").join(target);
    for needed in [&corpus, &findings] {
        std::fs::create_dir_all(needed).with_context(|| format!("cannot create {}", needed.display()))?;
    }
    let mut command = Command::new(folder.join(TRIPLE).join("release").join(target));
    command.arg(format!("-runs={}", options.runs)).arg(format!("-max_total_time={}", options.seconds));
    command.arg(format!("-max_len={MAX_INPUT_BYTES}")).arg(format!("-timeout={MAX_SECONDS}"));
    command.arg(format!("-rss_limit_mb={MAX_MEMORY_MIB}")).arg(format!("-artifact_prefix={}/", findings.display()));
    command.args(["-print_final_stats=1", "-verbosity=1", "-reload=0"]).args([&corpus, seeds, &findings]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot run `{}`", shell::words(&command)))?;
    let mut executions = 0;
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n') {
            let line = String::from_utf8_lossy(&line.context("reading the fuzzer's output")?).into_owned();
            if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
                executions = count.trim().parse().unwrap_or(0);
            }
            if !NOISE.iter().any(|noise| line.contains(noise)) {
                println!("{target}: {line}");
            }
        }
    }
    let status = child.wait().context("waiting for the fuzzer")?;
    ensure!(status.success(), "the fuzzer stopped ({status}); the input is in {}", findings.display());
    Ok(executions)
}
