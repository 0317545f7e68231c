//! `cargo xtask fuzz`: runs the fuzz targets on stable Rust.
//!
//! The targets are built with LLVM's coverage instrumentation switched on by hand, which is what `cargo fuzz` does,
//! less the sanitizers that need nightly: our own code is safe Rust, so a panic, a hang or a memory blow-up is all
//! there is to find. Inputs that cause one are saved under `testdata/fuzz-regressions/`, where an ordinary test
//! replays them.
//!
//! Seeds are tiny ELF files that are built on the spot, or pieces of code from testdata; the corpus grows in the target
//! folder.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, anyhow, ensure};
use object::{Object, ObjectSection};

use crate::shell;

/// A fuzz target, and what its inputs are like. Small inputs are tried more often in the same time.
struct Target {
    name: &'static str,
    /// How often to run it, unless told otherwise.
    runs: u64,
    max_input_bytes: u32,
    /// Whether the fuzzer looks at what is compared, to find magic numbers. Opcodes are no such thing, and without it a
    /// target that decodes and executes them runs three times as often.
    compares: bool,
    seeds: Seeds,
}

/// Where the first inputs come from.
enum Seeds {
    /// Built by gcc: names and options.
    Built(&'static [(&'static str, &'static [&'static str])]),
    /// All files of a folder of testdata, cut to the target's size.
    Folder(&'static str),
}

const TARGETS: [Target; 4] = [
    Target {
        name: "image",
        runs: 8_000_000,
        max_input_bytes: 8192,
        compares: true,
        seeds: Seeds::Built(&[
            ("static", &["-s", "-static", "-no-pie"]),
            ("static-pie", &["-s", "-static-pie"]),
            ("shared", &["-s", "-shared", "-Wl,-soname,seed"]),
            ("symbols", &["-g", "-static", "-no-pie", "-Wl,--build-id"]),
        ]),
    },
    Target {
        name: "program",
        runs: 2_500_000,
        max_input_bytes: 1536,
        compares: true,
        seeds: Seeds::Built(&[
            ("packed", &["-s", "-static", "-no-pie", "-Wl,-n,-z,max-page-size=16"]),
            ("code", &["-static", "-no-pie", "-Wl,--oformat=binary"]),
        ]),
    },
    Target {
        name: "blackfin",
        runs: 10_000_000,
        max_input_bytes: 64,
        compares: false,
        seeds: Seeds::Folder("blackfin/elf"),
    },
    Target {
        name: "simulator",
        runs: 10_000_000,
        max_input_bytes: 256,
        compares: false,
        seeds: Seeds::Folder("blackfin/elf"),
    },
];
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

const COVERAGE: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Ccodegen-units=1",
];
const COMPARES: &str = "-Cllvm-args=-sanitizer-coverage-trace-compares";

// What one input may cost: files of a few kilobytes need milliseconds and a few megabytes.
const MAX_SECONDS: u32 = 10;
const MAX_MEMORY_MIB: u32 = 1024;

/// Lines of the fuzzer that say nothing to a person: each new input, and the words it would put in a dictionary.
const NOISE: &[&str] = &["\tREDUCE", "\tNEW", "# Uses: ", "recommended dictionary"];

#[derive(clap::Args)]
pub struct Options {
    /// How often to run each target; by default more than ten million times in all
    #[arg(long)]
    runs: Option<u64>,
    /// Stop each target after this many seconds, even if it has not run that often
    #[arg(long, default_value_t = 0)]
    seconds: u64,
    /// Only this target
    #[arg(value_parser = TARGETS.map(|target| target.name))]
    target: Option<String>,
}

pub fn run(options: &Options) -> Result<ExitCode> {
    let root = shell::root()?;
    let folder = shell::target_dir()?.join("fuzz");
    let is_chosen = |target: &&Target| options.target.as_deref().is_none_or(|wanted| wanted == target.name);
    let chosen: Vec<&Target> = TARGETS.iter().filter(is_chosen).collect();
    for target in &chosen {
        build(target, &root, &folder)?;
    }
    let results: Vec<Result<u64>> = std::thread::scope(|scope| {
        let start = |target| {
            let (root, folder) = (&root, &folder);
            scope.spawn(move || fuzz(target, options, root, folder))
        };
        let threads: Vec<_> = chosen.iter().copied().map(start).collect();
        let join = |thread: std::thread::ScopedJoinHandle<_>| {
            thread.join().unwrap_or_else(|_| Err(anyhow!("the thread that watched the fuzzer panicked")))
        };
        threads.into_iter().map(join).collect()
    });
    let (mut all, mut good) = (0, true);
    for (target, result) in chosen.iter().zip(results) {
        match result {
            Ok(executions) => {
                println!("{}: {executions} executions, no findings", target.name);
                all += executions;
            }
            Err(error) => {
                eprintln!("{}: {error:#}", target.name);
                good = false;
            }
        }
    }
    println!("{all} executions in all");
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Where a target is built: programs with other flags in another folder.
fn built_in(target: &Target, folder: &Path) -> PathBuf {
    if target.compares { folder.to_owned() } else { folder.join("without-compares") }
}

fn build(target: &Target, root: &Path, folder: &Path) -> Result<()> {
    let mut cargo = shell::cargo()?;
    cargo.current_dir(root.join("fuzz")).args(["build", "--release", "--bin", target.name, "--target", TRIPLE]);
    let mut flags = COVERAGE.to_vec();
    flags.extend(target.compares.then_some(COMPARES));
    cargo.arg("--target-dir").arg(built_in(target, folder)).env("RUSTFLAGS", flags.join(" "));
    shell::run(&mut cargo)
}

/// Builds small files of each kind, so that the fuzzer need not invent ELF by itself.
fn seeds(target: &Target, root: &Path, folder: &Path) -> Result<PathBuf> {
    let folder = create(folder.join("seeds").join(target.name))?;
    match target.seeds {
        Seeds::Built(kinds) => {
            for (name, options) in kinds {
                let mut gcc = Command::new("gcc");
                gcc.args(["-nostdlib", "-Wl,-z,noseparate-code,-e,asm_frame"]).args(*options);
                gcc.arg("-o").arg(folder.join(name)).arg(root.join("testdata/x86_64/corpus/assembly_cfi.S"));
                shell::output(&mut gcc)?;
            }
        }
        Seeds::Folder(source) => cut_seeds(&root.join("testdata").join(source), target, &folder)?,
    }
    Ok(folder)
}

/// How many pieces of each file become seeds.
const PIECES: usize = 8;

/// Pieces of the code of each ELF file of a folder.
fn cut_seeds(source: &Path, target: &Target, folder: &Path) -> Result<()> {
    let listed = std::fs::read_dir(source).with_context(|| format!("cannot list {}", source.display()))?;
    for entry in listed {
        let path = entry?.path();
        let file = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let elf = object::File::parse(&*file).with_context(|| path.display().to_string())?;
        let code = elf.section_by_name(".text").and_then(|text| text.data().ok()).unwrap_or_default();
        let step = (code.len() / PIECES).max(1) & !1;
        for (i, start) in (0..code.len()).step_by(step.max(2)).take(PIECES).enumerate() {
            let end = (start + target.max_input_bytes as usize).min(code.len());
            let name = format!("{}.{i}", path.file_name().unwrap_or_default().to_string_lossy());
            std::fs::write(folder.join(name), &code[start..end]).context("cannot write a seed")?;
        }
    }
    Ok(())
}

fn create(folder: PathBuf) -> Result<PathBuf> {
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

/// Runs one target and shows its output under its name. Returns the number of executions.
fn fuzz(target: &Target, options: &Options, root: &Path, folder: &Path) -> Result<u64> {
    let seeds = seeds(target, root, folder)?;
    let corpus = create(folder.join("corpus").join(target.name))?;
    let findings = create(root.join("testdata/fuzz-regressions").join(target.name))?;
    let mut command = Command::new(built_in(target, folder).join(TRIPLE).join("release").join(target.name));
    command
        .arg(format!("-runs={}", options.runs.unwrap_or(target.runs)))
        .arg(format!("-max_total_time={}", options.seconds));
    command.arg(format!("-max_len={}", target.max_input_bytes)).arg(format!("-timeout={MAX_SECONDS}"));
    command.arg(format!("-rss_limit_mb={MAX_MEMORY_MIB}")).arg(format!("-artifact_prefix={}/", findings.display()));
    command.args(["-print_final_stats=1", "-verbosity=1", "-reload=0"]).args([&corpus, &seeds, &findings]);
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
                println!("{}: {line}", target.name);
            }
        }
    }
    let status = child.wait().context("waiting for the fuzzer")?;
    ensure!(status.success(), "the fuzzer stopped ({status}); the input is in {}", findings.display());
    Ok(executions)
}
