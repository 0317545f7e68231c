//! The second opinion on functions: DWARF.
//!
//! Every subprogram with code must be a function by its symbols too, with the same parts.

use std::borrow::Cow;
use std::ops::Range;

use anyhow::{Context, Result, ensure};
use gimli::{AttributeValue, EndianSlice, LittleEndian};
use object::{Object, ObjectSection};

use super::functions::Functions;

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// Compares all subprograms with the functions; returns how many agree.
pub(super) fn check(elf: &object::File, functions: &Functions) -> Result<usize> {
    let load = |id: gimli::SectionId| -> Result<Cow<[u8]>> {
        match elf.section_by_name(id.name()) {
            Some(section) => Ok(Cow::Borrowed(section.data()?)),
            None => Ok(Cow::Borrowed(&[])),
        }
    };
    let sections = gimli::DwarfSections::load(load)?;
    let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
    let mut agreed = 0;
    let mut units = dwarf.units();
    while let Some(header) = units.next().context("DWARF units")? {
        let unit = dwarf.unit(header).context("a DWARF unit")?;
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs().context("a DWARF entry")? {
            if entry.tag() != gimli::DW_TAG_subprogram {
                continue;
            }
            let Some(mut parts) = parts(&dwarf, &unit, entry)? else { continue };
            let Some(function) = parts.first().and_then(|main| functions.by_start.get(&main.start)) else {
                // Discarded by the linker: its addresses were set to 0 or 1.
                let discarded = parts.iter().all(|part| functions.start_of(part.start).is_none());
                ensure!(discarded, "DWARF has a function at {:x?} that symbols do not know", parts);
                continue;
            };
            let mut by_symbol = function.parts.clone();
            by_symbol.sort_by_key(|part| part.start);
            parts.sort_by_key(|part| part.start);
            ensure!(
                by_symbol == parts,
                "function {} is {:x?} by its symbols and {:x?} by DWARF",
                function.name,
                by_symbol,
                parts
            );
            agreed += 1;
        }
    }
    Ok(agreed)
}

/// The address ranges of a subprogram that has code, the one with its entry first.
fn parts<'a>(
    dwarf: &gimli::Dwarf<Reader<'a>>,
    unit: &gimli::Unit<Reader<'a>>,
    entry: &gimli::DebuggingInformationEntry<Reader<'a>>,
) -> Result<Option<Vec<Range<u64>>>> {
    let is_inline_copy = matches!(entry.attr_value(gimli::DW_AT_inline), Some(AttributeValue::Inline(_)));
    if is_inline_copy && entry.attr_value(gimli::DW_AT_low_pc).is_none() {
        return Ok(None);
    }
    let mut ranges = dwarf.die_ranges(unit, entry).context("the ranges of a DWARF subprogram")?;
    let mut parts = Vec::new();
    while let Some(range) = ranges.next().context("a range of a DWARF subprogram")? {
        if range.begin < range.end {
            parts.push(range.begin..range.end);
        }
    }
    Ok((!parts.is_empty()).then_some(parts))
}
