//! `cargo xtask exact`: are the counts of the benchmark's programs those of callgrind, instruction by instruction?
//!
//! Each program runs once edited (under valgrind, too, so that its memory looks the same), and once as it is under callgrind.
//! Both list how often each address of the program ran
//! (`lancet report --format callgrind` writes the same format), and every one that Lancet counted must agree. Left out is
//! what callgrind counts otherwise: instructions with a repeat prefix, whose rounds it counts, stubs to other objects,
//! which it gives to their callers, and the sections `.init` and `.fini`, which it does not show.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::bench::workloads::Maker;
use crate::{callgrind, shell};

#[derive(clap::Args)]
#[command(after_help = "\
Callgrind is 20 to 60 times slower than the programs, so this takes minutes.

Examples:
  cargo xtask exact
  cargo xtask exact bzip2 shapes")]
pub struct Options {
    /// This lancet, instead of the one that is built for release
    #[arg(long)]
    lancet: Option<PathBuf>,
    /// Who counts, as for `lancet rewrite --counters`
    #[arg(long)]
    counters: Option<String>,
    /// Names of workloads of `cargo xtask bench count`, instead of all
    workloads: Vec<String>,
}

/// Differences that are told in full.
const SHOWN: usize = 10;

pub fn run(options: &Options) -> Result<ExitCode> {
    let lancet = shell::lancet_or_build(options.lancet.as_deref())?;
    ensure!(shell::find_program("valgrind").is_some(), "valgrind is not installed");
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let maker = Maker { lancet: &lancet, scratch: scratch.path(), with_peers: false };
    let mut good = true;
    for (name, run) in maker.native_runs(&options.workloads)? {
        let program = PathBuf::from(run.get_program());
        // Some programs look at their own name, so both have the same.
        let name_of_both = scratch.path().join(program.file_name().context("a program without a name")?);
        let mut native = Command::new(&name_of_both);
        native.args(run.get_args());
        let ours = counted(&lancet, options.counters.as_deref(), &program, &native, scratch.path())?;
        std::fs::copy(&program, &name_of_both).with_context(|| format!("cannot write {}", name_of_both.display()))?;
        let theirs = interpreted(&native, scratch.path())?;
        let left_out = left_out(&program)?;
        let compared: Vec<(u64, u64, u64)> = ours
            .iter()
            .filter(|(at, _)| !left_out.contains(at))
            .map(|(at, count)| (*at, *count, theirs.get(at).copied().unwrap_or(0)))
            .collect();
        let executed: u64 = compared.iter().map(|(_, count, _)| count).sum();
        let different: Vec<_> = compared.iter().filter(|(_, ours, theirs)| ours != theirs).collect();
        let (addresses, differences) = (compared.len(), different.len());
        println!("{name:<10} {addresses:>7} addresses, {executed:>14} instructions, {differences} differences");
        for (at, ours, theirs) in different.iter().take(SHOWN) {
            println!("  {at:#x}: {ours}, callgrind has {theirs}");
        }
        good &= differences == 0 && addresses > 0;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What Lancet counts, by address.
fn counted(
    lancet: &Path,
    counters: Option<&str>,
    program: &Path,
    native: &Command,
    scratch: &Path,
) -> Result<BTreeMap<u64, u64>> {
    let counts = scratch.join("counts");
    let mut rewrite = Command::new(lancet);
    rewrite.arg("rewrite").arg(program).arg("-o").arg(native.get_program());
    rewrite.args(counters.iter().flat_map(|who| ["--counters", who]));
    shell::output(&mut rewrite)?;
    // What depends on where memory is must come out as it does under callgrind.
    let mut run = Command::new("valgrind");
    run.args(["-q", "--tool=none"]).arg(native.get_program()).args(native.get_args());
    shell::output(run.env("LANCET_COUNTS", &counts).stdin(Stdio::null()))?;
    let text = shell::output(Command::new(lancet).args(["report", "--format", "callgrind"]).arg(&counts))?;
    std::fs::remove_file(&counts).with_context(|| format!("cannot remove {}", counts.display()))?;
    Ok(callgrind::parse(&String::from_utf8_lossy(&text), &program.to_string_lossy()))
}

/// What callgrind counts, by address. The environment has the size that it has for the edited program.
fn interpreted(native: &Command, scratch: &Path) -> Result<BTreeMap<u64, u64>> {
    let out = scratch.join("callgrind.out");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["-q", "--tool=callgrind", "--dump-instr=yes", "--skip-plt=no"]);
    valgrind.arg(format!("--callgrind-out-file={}", out.display())).env("LANCET_COUNTS", scratch.join("counts"));
    shell::output(valgrind.arg(native.get_program()).args(native.get_args()).stdin(Stdio::null()))?;
    let text = std::fs::read(&out).with_context(|| format!("cannot read {}", out.display()))?;
    Ok(callgrind::parse(&String::from_utf8_lossy(&text), &native.get_program().to_string_lossy()))
}

/// Addresses that callgrind counts otherwise, by what objdump says of them.
fn left_out(program: &Path) -> Result<BTreeSet<u64>> {
    let text = shell::output(Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(program))?;
    let mut left_out = BTreeSet::new();
    let mut unseen = false;
    for line in String::from_utf8_lossy(&text).lines() {
        if let Some(section) = line.strip_prefix("Disassembly of section ") {
            unseen = [".init:", ".fini:"].contains(&section) || section.starts_with(".plt");
        } else if let Some((address, insn)) = line.split_once(":\t")
            && (unseen || insn.starts_with("rep"))
            && let Ok(at) = u64::from_str_radix(address.trim(), 16)
        {
            left_out.insert(at);
        }
    }
    Ok(left_out)
}
