//! Jump tables by the relocations that `--emit-relocs` keeps.
//!
//! A table is a run of relocated words that point into one function, not at its start, and starts where the code's own
//! relocations refer to. It ends at the first word that is none of these, or where the next table starts.
//!
//! Two forms exist. Words of 8 bytes hold the target itself (`R_X86_64_64`). Words of 4 bytes hold the target's
//! distance from the start of the table: the assembler writes `target - table` as a distance from the word
//! (`R_X86_64_PC32`), with the word's place in the table in the addend.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionFlags, elf};

use super::functions::Functions;
use super::{Layout, Table};

/// What a relocated word of data adds up to.
#[derive(Clone, Copy)]
enum Word {
    /// 8 bytes: an address.
    Address(u64),
    /// 4 bytes: a distance.
    Distance(i64),
}

impl Word {
    fn size(self) -> u8 {
        match self {
            Word::Address(_) => 8,
            Word::Distance(_) => 4,
        }
    }

    /// The target, if the word belongs to the table at `table`.
    fn target(self, table: u64) -> u64 {
        match self {
            Word::Address(address) => address,
            Word::Distance(distance) => table.wrapping_add_signed(distance),
        }
    }
}

pub(super) fn tables(file: &object::File, layout: &Layout, functions: &Functions) -> Result<BTreeMap<u64, Table>> {
    let mut words: BTreeMap<u64, Word> = BTreeMap::new();
    let mut references: BTreeSet<u64> = BTreeSet::new();
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        let name = section.name().unwrap_or_default();
        if !sh_flags.contains(elf::SHF_ALLOC) || name == ".eh_frame" || name == ".gcc_except_table" {
            continue;
        }
        for (place, relocation) in section.relocations() {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let RelocationTarget::Symbol(index) = relocation.target() else { continue };
            let symbol = file.symbol_by_index(index).context("a relocation's symbol does not exist")?;
            let value = symbol.address().wrapping_add_signed(relocation.addend());
            if layout.is_code(place) {
                match r_type {
                    // The distance counts from the end of the 4 bytes, where instructions that take an address end.
                    elf::R_X86_64_PC32 => references.insert(value.wrapping_add(4)),
                    elf::R_X86_64_32S | elf::R_X86_64_32 | elf::R_X86_64_64 => references.insert(value),
                    _ => false,
                };
            } else {
                match r_type {
                    elf::R_X86_64_PC32 => words.insert(place, Word::Distance(value.wrapping_sub(place) as i64)),
                    elf::R_X86_64_64 => words.insert(place, Word::Address(value)),
                    _ => None,
                };
            }
        }
    }
    let mut tables = BTreeMap::new();
    for &start in &references {
        if let Some(table) = table_at(start, &words, &references, functions) {
            tables.insert(start, table);
        }
    }
    Ok(tables)
}

fn table_at(
    start: u64,
    words: &BTreeMap<u64, Word>,
    references: &BTreeSet<u64>,
    functions: &Functions,
) -> Option<Table> {
    let entry_bytes = words.get(&start)?.size();
    let owner = functions.start_of(words.get(&start)?.target(start))?;
    let mut targets = Vec::new();
    let mut place = start;
    while let Some(word) = words.get(&place).filter(|word| word.size() == entry_bytes) {
        let target = word.target(start);
        let is_next_table = place != start && references.contains(&place);
        if is_next_table || functions.start_of(target) != Some(owner) || target == owner {
            break;
        }
        targets.push(target);
        place += u64::from(entry_bytes);
    }
    (!targets.is_empty()).then_some(Table { entry_bytes, targets, copied: false })
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)] // one part is meant, not a list of addresses
mod tests {
    use super::*;

    fn found(start: u64, words: &[(u64, Word)], references: &[u64]) -> Option<Vec<u64>> {
        let functions = Functions::of(&[("f", &[0x10..0x20, 0x80..0x90]), ("g", &[0x20..0x30])]);
        let table =
            table_at(start, &words.iter().copied().collect(), &references.iter().copied().collect(), &functions);
        table.map(|table| table.targets)
    }

    /// A word of a table at 0x100 that leads to `target`.
    fn distance(target: u64) -> Word {
        Word::Distance(target.wrapping_sub(0x100) as i64)
    }

    #[test]
    fn a_table_ends_where_words_leave_the_function() {
        let words = [(0x100, distance(0x12)), (0x104, distance(0x84)), (0x108, distance(0x22))];
        assert_eq!(found(0x100, &words, &[0x100]), Some(vec![0x12, 0x84]));
    }

    #[test]
    fn a_table_ends_where_the_next_one_starts() {
        let words = [(0x100, distance(0x12)), (0x104, distance(0x14)), (0x108, distance(0x16))];
        assert_eq!(found(0x100, &words, &[0x100, 0x108]), Some(vec![0x12, 0x14]));
    }

    #[test]
    fn addresses_of_functions_are_no_table() {
        let words = [(0x100, Word::Address(0x10)), (0x108, Word::Address(0x20))];
        assert_eq!(found(0x100, &words, &[0x100]), None);
        let labels = [(0x100, Word::Address(0x12)), (0x108, Word::Address(0x84))];
        assert_eq!(found(0x100, &labels, &[0x100]), Some(vec![0x12, 0x84]));
    }

    #[test]
    fn words_of_another_size_end_a_table() {
        let words = [(0x100, distance(0x12)), (0x104, Word::Address(0x14))];
        assert_eq!(found(0x100, &words, &[0x100]), Some(vec![0x12]));
    }
}
