//! `cargo xtask bench count`: what counting every edge costs, as ratios to the native run, beside the peers.
//!
//! Each round runs every version of every workload once, so that whatever else the machine does falls on all alike;
//! the minimum of the CPU time over the rounds counts. Callgrind runs in the first round only. The columns behind `count`
//! are what `lancet rewrite --rounds` can gain. Then the rewriting
//! itself: its time against `objdump -d`, the size of its output, and how much of the text it edits.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use super::workloads::{Maker, Version, Workload};
use super::{Best, cc1};
use crate::measure::{self, Cost};
use crate::shell;

/// A column of the table: the version, and the bars for its geometric mean and for each workload.
struct Column {
    version: Version,
    title: &'static str,
    mean: Option<f64>,
    any: Option<f64>,
}

const fn column(version: Version, title: &'static str, mean: Option<f64>, any: Option<f64>) -> Column {
    Column { version, title, mean, any }
}

const COLUMNS: [Column; 10] = [
    column(Version::Null, "null", Some(1.02), Some(1.05)),
    column(Version::Count, "count", Some(1.08), Some(1.20)),
    column(Version::Induction, "+ induction", None, None),
    column(Version::Registers, "+ registers", None, None),
    column(Version::CountEach, "threads", Some(1.12), None),
    column(Version::Gcov, "gcov", None, None),
    column(Version::GcovAtomic, "gcov atomic", None, None),
    column(Version::ClangGenerate, "clang", None, None),
    column(Version::Bolt, "bolt", None, None),
    column(Version::Callgrind, "callgrind", None, None),
];
const MAX_CPU_OVER_OBJDUMP: f64 = 0.6;
const MAX_SIZE_OVER_INPUT: f64 = 2.2;
const MIN_PERCENT_EDITED: f64 = 99.0;
const MIN_PERCENT_EDITED_OF_RUST: f64 = 97.0;
/// Stands for all that is not a workload.
const REWRITING: &str = "rewriting";
/// A library that is rewritten by itself, in a program with threads.
const LIBRARY: &str = "library";

#[derive(clap::Args)]
#[command(after_help = "\
Workloads: bzip2, lua, sqlite3 and zstd of Debian's source packages, which are
fetched and built once, and two programs of bench/count in C++ and Rust. Peers
that are not installed are left out: gcov, clang -fprofile-generate, llvm-bolt
-instrument, callgrind. Then a library that is rewritten by itself, in a program
with threads. Then rewriting: gcc's cc1 against objdump, sqlite3
against llvm-bolt, and the share of text that is edited.")]
pub struct Options {
    /// How often to run everything; the minimum counts
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Leave the peers out
    #[arg(long)]
    no_peers: bool,
    /// This lancet, instead of the one that is built for release
    #[arg(long)]
    lancet: Option<PathBuf>,
    /// Names of workloads, `library` or `rewriting`, instead of all
    workloads: Vec<String>,
}

pub fn run(options: &Options) -> Result<ExitCode> {
    let lancet = shell::lancet_or_build(options.lancet.as_deref())?;
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let maker = Maker { lancet: &lancet, scratch: scratch.path(), with_peers: !options.no_peers };
    let names = options.workloads.iter().map(String::as_str);
    let names: Vec<&str> = names.filter(|name| ![REWRITING, LIBRARY].contains(name)).collect();
    let wants = |what: &str| options.workloads.is_empty() || options.workloads.iter().any(|name| name == what);
    let mut good = true;
    if options.workloads.is_empty() || !names.is_empty() {
        good &= running(&maker.all(&names)?, options.rounds)?;
    }
    if wants(LIBRARY) {
        library(&maker, options.rounds)?;
    }
    if wants(REWRITING) {
        good &= rewriting(&maker, options.rounds)?;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The table of run times. True if all bars are reached.
fn running(workloads: &[Workload], rounds: u32) -> Result<bool> {
    let mut costs: Vec<Vec<Vec<Cost>>> = workloads.iter().map(|w| vec![Vec::new(); w.versions.len()]).collect();
    for round in 0..rounds {
        for (workload, costs) in workloads.iter().zip(&mut costs) {
            for ((version, command), costs) in workload.versions.iter().zip(costs) {
                if *version != Version::Callgrind || round == 0 {
                    costs.push(measure::cost_of(command).with_context(|| format!("{}, {version:?}", workload.name))?);
                }
            }
        }
    }
    println!("CPU time over native, best of {rounds} rounds (callgrind: one)");
    print!("{:<12} {:>9}", "", "native s");
    COLUMNS.iter().for_each(|column| print!(" {:>11}", column.title));
    println!();
    let mut ratios: [Vec<f64>; COLUMNS.len()] = Default::default();
    for (workload, costs) in workloads.iter().zip(&costs) {
        let seconds = |version: Version| {
            let at = workload.versions.iter().position(|(which, _)| *which == version)?;
            Some(Best::of(&costs[at]).cpu)
        };
        print!("{:<12} {:>9.3}", workload.name, seconds(Version::Native).unwrap_or(0.0));
        for (column, ratios) in COLUMNS.iter().zip(&mut ratios) {
            match (seconds(column.version), seconds(column.version.baseline())) {
                (Some(this), Some(base)) => {
                    ratios.push(this / base);
                    print!(" {:>11.3}", this / base);
                }
                _ => print!(" {:>11}", "-"),
            }
        }
        println!();
    }
    print!("{:<22}", "geometric mean");
    for ratios in &ratios {
        match ratios.is_empty() {
            true => print!(" {:>11}", "-"),
            false => print!(" {:>11.3}", geometric_mean(ratios)),
        }
    }
    println!("\n");
    let mut good = true;
    for (column, ratios) in COLUMNS.iter().zip(&ratios) {
        let worst = ratios.iter().copied().fold(0.0, f64::max);
        for (what, ratio, bar) in [("mean", geometric_mean(ratios), column.mean), ("worst", worst, column.any)] {
            if let Some(bar) = bar {
                good &= super::judge(&format!("{}, {what}", column.title), ratio, "at most", bar);
            }
        }
    }
    println!();
    Ok(good)
}

/// What threads pay for counting in a library alone, with counters for each, and with locked increments for comparison.
fn library(maker: &Maker<'_>, rounds: u32) -> Result<()> {
    let commands = maker.library()?;
    let mut costs: [Vec<Cost>; 3] = Default::default();
    for _ in 0..rounds {
        for (command, costs) in commands.iter().zip(&mut costs) {
            costs.push(measure::cost_of(command).context("threads.c")?);
        }
    }
    let [native, each, atomic] = costs.map(|costs| Best::of(&costs).cpu);
    println!("library alone, 4 threads: {native:.3} s, count {:.3}, atomic {:.3}", each / native, atomic / native);
    println!();
    Ok(())
}

fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

/// The cost of rewriting. True if all bars are reached.
fn rewriting(maker: &Maker<'_>, rounds: u32) -> Result<bool> {
    let cc1 = cc1()?;
    let output = maker.scratch.join("rewritten");
    let rewrite = |file: &Path| {
        let mut command = Command::new(maker.lancet);
        command.arg("rewrite").arg("--explain").arg(file).arg("-o").arg(&output);
        command
    };
    let mut objdump = Command::new("objdump");
    objdump.arg("-d").arg(&cc1);
    let (ours, peer) = compare(&rewrite(&cc1), &objdump, rounds)?;
    let size = |file: &Path| Ok::<f64, std::io::Error>(file.metadata()?.len() as f64);
    println!("rewriting cc1: {ours:.2} s of CPU; objdump -d: {peer:.2} s; best of {rounds} rounds");
    let mut good = super::judge("CPU over objdump", ours / peer, "at most", MAX_CPU_OVER_OBJDUMP);
    good &= super::judge("output over input", size(&output)? / size(&cc1)?, "at most", MAX_SIZE_OVER_INPUT);
    // cc1 is stripped and has no relocations: llvm-bolt refuses it.
    let (name, rust) = ("sqlite3", "paths");
    if maker.with_peers {
        match maker.bolting(name) {
            Ok(bolting) => {
                let (ours, peer) = compare(&rewrite(&maker.native(name)?), &bolting, rounds)?;
                println!("rewriting {name}: {ours:.2} s of CPU; llvm-bolt -instrument: {peer:.2} s");
            }
            Err(error) => println!("rewriting {name} with llvm-bolt: left out: {error:#}"),
        }
    }
    let others = ["/usr/bin/gdb", "/usr/bin/python3", "/usr/bin/bash"].map(PathBuf::from);
    let others = std::iter::once(cc1).chain(others).map(|file| (file, MIN_PERCENT_EDITED));
    let rust = (maker.native(rust)?, MIN_PERCENT_EDITED_OF_RUST);
    for (file, least) in others.chain([rust]).filter(|(file, _)| file.is_file()) {
        let explained = shell::output(&mut rewrite(&file))?;
        let percent = percent_edited(&String::from_utf8_lossy(&explained))
            .with_context(|| format!("`lancet rewrite --explain {}` states no share", file.display()))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        good &= super::judge(&format!("% edited of {name}"), percent, "at least", least);
    }
    Ok(good)
}

/// Seconds of CPU of two commands that take turns, each at its best.
fn compare(ours: &Command, peer: &Command, rounds: u32) -> Result<(f64, f64)> {
    let (mut of_ours, mut of_peer) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        of_ours.push(measure::cost_of(ours)?);
        of_peer.push(measure::cost_of(peer)?);
    }
    Ok((Best::of(&of_ours).cpu, Best::of(&of_peer).cpu))
}

/// The share in the last line, `edited: 1 of 2 bytes of code (50.00 %)`.
fn percent_edited(explained: &str) -> Option<f64> {
    let line = explained.lines().rev().find(|line| line.starts_with("edited:"))?;
    line.rsplit_once('(')?.1.split_once(" %")?.0.parse().ok()
}
