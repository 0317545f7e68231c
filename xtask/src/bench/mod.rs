//! `cargo xtask bench`: costs, as ratios. `analyze`, what full analysis costs, is here; the others are modules.
//!
//! Functions, control flow, loops and liveness of two large files, against `objdump -d` on the same file. Each round
//! runs everything once, so that whatever else the machine does falls on all alike; the minimum over the rounds
//! counts.

mod count;
mod dvfs;
mod live;
mod sim;
mod sources;
pub mod workloads;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use object::{Object, ObjectSection};

use crate::measure::{self, Cost};
use crate::shell;

#[derive(clap::Args)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Full analysis of gcc's cc1 and rustc's driver library, against objdump
    Analyze {
        /// How often to run everything; the minimum counts
        #[arg(long, default_value_t = 3)]
        rounds: u32,
        /// Files to analyse instead
        files: Vec<PathBuf>,
    },
    /// Counting every edge, against native runs and peers, and rewriting gcc's cc1 against objdump
    Count(count::Options),
    /// Sampling, stops, calls, measuring and reporting of programs that run, against perf and gdb
    Live(live::Options),
    /// The speed of the Blackfin simulator, against the GNU simulator where it is on the PATH
    Sim(sim::Options),
    /// What slowing the clock saves on the consumer programs, next to the paper
    Dvfs(dvfs::Options),
}

// The bars.
const MAX_CPU_OVER_OBJDUMP: f64 = 0.25;
const MAX_MEMORY_OVER_TEXT: f64 = 12.0;
const MIN_SPEED_UP_ON_TWO: f64 = 1.7;

pub fn run(options: &Options) -> Result<ExitCode> {
    match &options.what {
        What::Analyze { rounds, files } => {
            ensure!(*rounds > 0, "--rounds must be at least 1");
            analyze_all(&shell::build_lancet()?, files, *rounds)
        }
        What::Count(options) => count::run(options),
        What::Live(options) => Ok(if live::run(options)? { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        What::Sim(options) => sim::run(options),
        What::Dvfs(options) => dvfs::run(options),
    }
}

fn analyze_all(lancet: &Path, files: &[PathBuf], rounds: u32) -> Result<ExitCode> {
    let files = if files.is_empty() { vec![cc1()?, rustc_driver()?] } else { files.to_vec() };
    let mut good = true;
    for file in &files {
        good &= analyze(lancet, file, rounds).with_context(|| file.display().to_string())?;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn cc1() -> Result<PathBuf> {
    path_printed_by(Command::new("gcc").arg("-print-prog-name=cc1"))
}

/// The library that is rustc.
pub fn rustc_driver() -> Result<PathBuf> {
    let folder = path_printed_by(Command::new("rustc").args(["--print", "sysroot"]))?.join("lib");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let is_driver = |path: &PathBuf| {
        path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name.starts_with("librustc_driver-") && name.ends_with(".so")
        })
    };
    let driver = entries.filter_map(|entry| Some(entry.ok()?.path())).find(is_driver);
    driver.with_context(|| format!("no librustc_driver-*.so in {}", folder.display()))
}

fn path_printed_by(command: &mut Command) -> Result<PathBuf> {
    let output = shell::output(command)?;
    let path = PathBuf::from(String::from_utf8(output).context("a path is not UTF-8")?.trim());
    ensure!(path.exists(), "`{}` names {}, which is not there", shell::words(command), path.display());
    Ok(path)
}

/// The best of several runs, in each respect.
#[derive(Clone, Copy, Debug)]
struct Best {
    cpu: f64,
    wall: f64,
    peak_bytes: u64,
}

impl Best {
    fn of(costs: &[Cost]) -> Best {
        let least = |value: fn(&Cost) -> f64| costs.iter().map(value).fold(f64::INFINITY, f64::min);
        Best {
            cpu: least(|c| c.cpu().as_secs_f64()),
            wall: least(|c| c.wall().as_secs_f64()),
            peak_bytes: costs.iter().map(|c| c.peak_bytes).min().unwrap_or(0),
        }
    }
}

/// Measures one file and prints its table. True if all bars are reached.
fn analyze(lancet: &Path, file: &Path, rounds: u32) -> Result<bool> {
    let text = text_size(file)?;
    let on_threads = |threads: u32| {
        let mut command = Command::new(lancet);
        command.args(["functions", "--summary"]).arg(file).env("RAYON_NUM_THREADS", threads.to_string());
        command
    };
    let mut objdump = Command::new("objdump");
    objdump.arg("-d").arg(file);
    let (mut one, mut two, mut peer) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        one.push(measure::cost_of(&on_threads(1))?);
        two.push(measure::cost_of(&on_threads(2))?);
        peer.push(measure::cost_of(&objdump)?);
    }
    let (one, two, peer) = (Best::of(&one), Best::of(&two), Best::of(&peer));

    let name = file.file_name().unwrap_or_default().to_string_lossy();
    println!("{name}: {:.1} MiB of text, best of {rounds} rounds", mebibytes(text));
    println!("{:<20} {:>10} {:>10} {:>12}", "", "CPU s", "wall s", "peak MiB");
    for (what, cost) in [("lancet, 1 thread", one), ("lancet, 2 threads", two), ("objdump -d", peer)] {
        println!("{what:<20} {:>10.3} {:>10.3} {:>12.1}", cost.cpu, cost.wall, mebibytes(cost.peak_bytes));
    }
    // Of the two ways to run, the dearer one counts.
    let cpu = one.cpu.max(two.cpu) / peer.cpu;
    let memory = one.peak_bytes.max(two.peak_bytes) as f64 / text as f64;
    let speed_up = one.wall / two.wall;
    let bars = [
        judge("CPU over objdump", cpu, "at most", MAX_CPU_OVER_OBJDUMP),
        judge("peak memory over text", memory, "at most", MAX_MEMORY_OVER_TEXT),
        judge("speed-up on two cores", speed_up, "at least", MIN_SPEED_UP_ON_TWO),
    ];
    println!();
    Ok(bars.iter().all(|reached| *reached))
}

/// Prints a figure beside its bar, which is `at most` or `at least`. True if it is reached.
fn judge(what: &str, figure: f64, direction: &str, bar: f64) -> bool {
    let reached = if direction == "at most" { figure <= bar } else { figure >= bar };
    println!("{what:<24} {figure:>8.3}   bar {direction} {bar}   {}", if reached { "ok" } else { "MISSED" });
    reached
}

/// The size of all sections of code: what went through a post-link optimizer has several.
fn text_size(file: &Path) -> Result<u64> {
    let bytes = std::fs::read(file).context("cannot read it")?;
    let elf = object::File::parse(&*bytes).context("cannot parse it")?;
    let text: u64 = elf.sections().filter(|s| s.kind() == object::SectionKind::Text).map(|s| s.size()).sum();
    ensure!(text > 0, "it has no section of code");
    Ok(text)
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}
