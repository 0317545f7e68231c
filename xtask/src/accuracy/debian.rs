//! The machine's own large stripped programs, against their unwind information.
//!
//! Nobody kept a twin of these. Their FDEs survive `strip`, and every FDE starts a function or a part of one: a start
//! that Lancet does not have at all is a miss.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};
use object::{Object, ObjectSection};

use super::analysis::{FunctionOutline, Lancet};
use super::report::share;
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
        "{:<12} {:>9} {:>9} {:>9} {:>10} {:>8} {:>11}",
        "", "functions", "FDEs", "found%", "complete%", "tables", "unresolved"
    );
    for program in programs() {
        one(lancet, &program).with_context(|| program.display().to_string())?;
    }
    Ok(())
}

fn one(lancet: &Lancet, program: &Path) -> Result<()> {
    let fdes = fde_starts(program)?;
    let mut starts: BTreeSet<u64> = BTreeSet::new();
    let (mut functions, mut complete, mut tables, mut unresolved) = (0, 0, 0, 0);
    lancet.graphs(program, |function: FunctionOutline| {
        starts.insert(function.address.0);
        starts.extend(function.parts.iter().map(|part| part.address.0));
        functions += 1;
        complete += usize::from(function.status == "complete");
        tables += function.jump_tables.len();
        unresolved += function.exits.iter().filter(|exit| exit.is_unresolved()).count();
    })?;
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let found = share(fdes.intersection(&starts).count(), fdes.len());
    let complete = share(complete, functions);
    println!("{name:<12} {functions:>9} {:>9} {found:>9} {complete:>10} {tables:>8} {unresolved:>11}", fdes.len());
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
