//! The machine's own large stripped programs, against their unwind information.
//!
//! Nobody kept a twin of these. Their FDEs survive `strip`, and every FDE starts a function or a part of one: a start
//! that Lancet does not have at all is a miss.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};
use object::{Object, ObjectSection};

use super::analysis::Lancet;
use crate::shell;

/// Programs by name, and how to find those that are not on the PATH.
fn programs() -> Vec<PathBuf> {
    let on_path = ["/usr/bin/python3", "/usr/bin/bash", "/usr/bin/gdb"].map(PathBuf::from);
    let compiler = shell::output(Command::new("gcc").arg("-print-prog-name=cc1"));
    let cc1 = compiler.ok().and_then(|name| String::from_utf8(name).ok()).map(|name| PathBuf::from(name.trim()));
    on_path.into_iter().chain(cc1).filter(|path| path.is_file()).collect()
}

pub(super) fn report(lancet: &Lancet) -> Result<()> {
    println!("\nThe machine's own programs, against their unwind information:");
    println!(
        "{:<10} {:>9} {:>9} {:>9} {:>9} {:>10} {:>11}",
        "", "functions", "FDEs", "starts", "FDE%", "complete%", "unresolved"
    );
    for program in programs() {
        one(lancet, &program).with_context(|| program.display().to_string())?;
    }
    Ok(())
}

fn one(lancet: &Lancet, program: &Path) -> Result<()> {
    let fdes = fde_starts(program)?;
    let mut starts: BTreeSet<u64> = BTreeSet::new();
    let mut complete = 0usize;
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    lancet.functions(program, |function| {
        starts.insert(function.address.0);
        complete += usize::from(function.status == "complete");
        if let Some(reason) = function.reason {
            *reasons.entry(reason).or_default() += 1;
        }
    })?;
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let found = fdes.intersection(&starts).count();
    println!("{name:<10} {:>9} {:>9} {found:>9} {complete:>10}", starts.len(), fdes.len());
    for (reason, count) in reasons {
        println!("{:<10} {count} partial: {reason}", "");
    }
    Ok(())
}

/// Where FDEs start, without those of the linker's stubs.
fn fde_starts(program: &Path) -> Result<BTreeSet<u64>> {
    let bytes = std::fs::read(program).context("cannot read it")?;
    let elf = object::File::parse(&*bytes).context("cannot parse it")?;
    let address = |name: &str| elf.section_by_name(name).map(|section| section.address());
    let mut bases = BaseAddresses::default();
    if let Some(at) = address(".eh_frame") {
        bases = bases.set_eh_frame(at);
    }
    if let Some(at) = address(".text") {
        bases = bases.set_text(at);
    }
    let stubs: Vec<_> = elf
        .sections()
        .filter(|section| section.name().is_ok_and(|name| name.starts_with(".plt")))
        .map(|section| section.address()..section.address() + section.size())
        .collect();
    let section = elf.section_by_name(".eh_frame").context("it has no .eh_frame")?;
    let frames = EhFrame::new(section.data()?, LittleEndian);
    let mut starts = BTreeSet::new();
    let mut entries = frames.entries(&bases);
    while let Some(entry) = entries.next().context(".eh_frame")? {
        if let CieOrFde::Fde(partial) = entry {
            let fde = partial.parse(EhFrame::cie_from_offset).context("an FDE")?;
            let start = fde.initial_address();
            if fde.len() > 0 && !stubs.iter().any(|stub| stub.contains(&start)) {
                starts.insert(start);
            }
        }
    }
    Ok(starts)
}
