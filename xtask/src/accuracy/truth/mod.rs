//! What is true of a program, taken from its unstripped twin.
//!
//! | what | source | checked against |
//! | --- | --- | --- |
//! | functions and their parts | symbols | DWARF |
//! | jump tables of compiled C, C++, assembly | labels in the assembly, addresses from the symbols | relocations |
//! | jump tables of Rust | relocations kept by the linker | the assembly: functions and numbers of entries |
//! | instruction boundaries | `objdump -d` | |
//!
//! Where two sources disagree the truth is not known, and that is an error: no result is worth more than its truth.
//!
//! - `functions`: symbols to functions; `dwarf`: the second opinion on them;
//! - `listing`: jump tables by label; `relocations`: jump tables by relocation;
//! - `boundaries`: instructions.

mod boundaries;
mod dwarf;
mod functions;
mod listing;
mod relocations;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use object::{Object, ObjectSection, SectionFlags};

pub(super) use boundaries::Boundaries;
pub(super) use functions::Functions;

use super::corpus::Built;

pub(super) struct Truth {
    pub(super) functions: Functions,
    /// By address.
    pub(super) tables: BTreeMap<u64, Table>,
    pub(super) boundaries: Boundaries,
    /// The linker's own stubs (`.plt` and its kin): neither functions nor mistakes.
    pub(super) stubs: Vec<Range<u64>>,
    pub(super) checks: Checks,
}

/// A jump table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) entry_bytes: u8,
    pub(super) targets: Vec<u64>,
    /// The program copies it and jumps through the copy. It need not be found, but a compiler that sees through the copy
    /// may read it after all.
    pub(super) copied: bool,
}

/// How much of the truth was confirmed by its second source.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checks {
    /// Functions whose extent DWARF confirms.
    pub(super) dwarf_functions: usize,
    /// Tables that labels and relocations agree on, or (Rust) relocations and the listing's count.
    pub(super) confirmed_tables: usize,
    /// Tables that only the labels know, because the assembler left no relocation.
    pub(super) label_only_tables: usize,
}

/// Where the code is.
struct Layout {
    code: Vec<Range<u64>>,
    stubs: Vec<Range<u64>>,
}

impl Layout {
    fn is_code(&self, address: u64) -> bool {
        self.code.iter().any(|range| range.contains(&address))
    }
}

pub(super) fn extract(built: &Built, is_rust: bool) -> Result<Truth> {
    extract_from(built, is_rust).with_context(|| format!("the truth about {}", built.twin.display()))
}

fn extract_from(built: &Built, is_rust: bool) -> Result<Truth> {
    let bytes = std::fs::read(&built.twin).context("cannot read it")?;
    let elf = object::File::parse(&*bytes).context("cannot parse it")?;
    let layout = layout(&elf)?;
    let functions = Functions::from_symbols(&elf, &layout)?;
    let mut checks = Checks { dwarf_functions: dwarf::check(&elf, &functions)?, ..Checks::default() };
    let by_relocation = relocations::tables(&elf, &layout, &functions)?;
    let tables = if is_rust {
        listing::check_counts(&built.listings, &functions, &by_relocation)?;
        checks.confirmed_tables = by_relocation.len();
        by_relocation
    } else {
        let (mut by_label, copied) = listing::tables(&built.listings, &elf)?;
        compare(&by_label, &by_relocation, &functions, &mut checks)?;
        for address in copied {
            by_label.entry(address).and_modify(|table| table.copied = true);
        }
        by_label
    };
    let boundaries = Boundaries::from_objdump(Path::new(&built.twin), &functions.data)?;
    Ok(Truth { functions, tables, boundaries, stubs: layout.stubs, checks })
}

fn layout(elf: &object::File) -> Result<Layout> {
    let mut layout = Layout { code: Vec::new(), stubs: Vec::new() };
    for section in elf.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        if !sh_flags.contains(object::elf::SHF_EXECINSTR) {
            continue;
        }
        let range = section.address()..section.address() + section.size();
        let name = section.name().context("a section's name is bad")?;
        if name.starts_with(".plt") || name == ".iplt" {
            layout.stubs.push(range);
        } else {
            layout.code.push(range);
        }
    }
    Ok(layout)
}

/// Labels and relocations must tell the same tables. Only tables whose entries the assembler could work out by itself
/// have no relocation: offsets between places of one section.
fn compare(
    by_label: &BTreeMap<u64, Table>,
    by_relocation: &BTreeMap<u64, Table>,
    functions: &Functions,
    checks: &mut Checks,
) -> Result<()> {
    for (address, table) in by_relocation {
        let owner = table.targets.first().and_then(|&t| functions.containing(t)).map_or("?", |f| &f.name);
        let labelled = by_label.get(address).with_context(|| {
            format!("relocations show a jump table at {address:#x} (in {owner}) that no label in the assembly starts")
        })?;
        ensure!(
            labelled == table,
            "the jump table at {address:#x} (in {owner}) is {labelled:x?} by its labels and {table:x?} by relocations"
        );
    }
    checks.confirmed_tables = by_relocation.len();
    checks.label_only_tables = by_label.len() - by_relocation.len();
    Ok(())
}
