//! Source lines: which line of which file an address was compiled from.
//!
//! DWARF keeps one line program for each compilation unit, to be run from the start. The index here is the units'
//! address ranges, made when the first line is asked for; a unit's program is run when an address of it is. So looking
//! at one function of a huge file costs one unit.

use std::sync::OnceLock;

use gimli::{EndianSlice, RunTimeEndian, Unit, UnitHeader};
use lancet_isa::Svma;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::dwarf::ImageDwarf;
use super::headers::utf8_prefix;

/// Paths are cut here: many files that share one huge folder name must not cost a copy each.
const LONGEST_PATH: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLine<'a> {
    pub file: &'a str,
    pub line: u32,
}

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// Units by address. The DWARF is not kept here; the caller has it.
#[derive(Default)]
pub(super) struct Lines {
    /// Sorted by start.
    ranges: Vec<UnitRange>,
    units: Vec<LazyUnit>,
}

struct UnitRange {
    start: u64,
    end: u64,
    unit: u32,
}

struct LazyUnit {
    offset: gimli::DebugInfoOffset<usize>,
    rows: OnceLock<Rows>,
}

/// A unit's line program, run.
#[derive(Default)]
struct Rows {
    /// Sorted by address; each holds up to the next.
    rows: Vec<Row>,
    files: Vec<String>,
}

struct Row {
    at: u64,
    file: u32,
    /// 0: no line from here on.
    line: u32,
}

impl Lines {
    pub fn index(dwarf: &ImageDwarf<'_>) -> Lines {
        let mut headers = Vec::new();
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            headers.push(header);
        }
        let mut ranges: Vec<UnitRange> = headers
            .par_iter()
            .enumerate()
            .flat_map_iter(|(index, header)| unit_ranges(dwarf, header, index as u32))
            .collect();
        ranges.sort_by_key(|range| range.start);
        let offsets = headers.iter().filter_map(|header| header.debug_info_offset());
        Lines { ranges, units: offsets.map(|offset| LazyUnit { offset, rows: OnceLock::new() }).collect() }
    }

    pub fn at<'a>(&self, dwarf: impl FnOnce() -> Option<ImageDwarf<'a>>, at: Svma) -> Option<SourceLine<'_>> {
        let after = self.ranges.partition_point(|range| range.start <= at.0);
        let range = self.ranges[..after].last().filter(|range| at.0 < range.end)?;
        let unit = self.units.get(range.unit as usize)?;
        let rows = unit.rows.get_or_init(|| {
            let run = |dwarf: ImageDwarf<'_>| {
                let header = dwarf.unit_header(unit.offset).ok()?;
                run_program(&dwarf, &dwarf.unit(header).ok()?).ok()
            };
            dwarf().and_then(run).unwrap_or_default()
        });
        let after = rows.rows.partition_point(|row| row.at <= at.0);
        let row = rows.rows[..after].last().filter(|row| row.line != 0)?;
        Some(SourceLine { file: rows.files.get(row.file as usize)?, line: row.line })
    }
}

fn unit_ranges(dwarf: &ImageDwarf<'_>, header: &UnitHeader<Slice<'_>>, unit: u32) -> Vec<UnitRange> {
    let mut found = Vec::new();
    let Ok(parsed) = dwarf.unit(*header) else { return found };
    if ends_past_all_addresses(&parsed) {
        return found;
    }
    let Ok(mut ranges) = dwarf.unit_ranges(&parsed) else { return found };
    while let Ok(Some(range)) = ranges.next() {
        // A linker that drops a function leaves its range at 0, or empty.
        if range.begin != 0 && range.begin < range.end {
            found.push(UnitRange { start: range.begin, end: range.end, unit });
        }
    }
    found
}

/// A unit that claims to be so large that its end wraps around. gimli 0.34 adds without a look.
fn ends_past_all_addresses(unit: &Unit<Slice<'_>>) -> bool {
    let mut entries = unit.entries();
    let Ok(Some(root)) = entries.next_dfs() else { return true };
    match root.attr_value(gimli::DW_AT_high_pc) {
        Some(gimli::AttributeValue::Udata(size)) => unit.low_pc.checked_add(size).is_none(),
        _ => false,
    }
}

fn run_program(dwarf: &ImageDwarf<'_>, unit: &Unit<Slice<'_>>) -> gimli::Result<Rows> {
    let mut result = Rows::default();
    let Some(program) = unit.line_program.clone() else { return Ok(result) };
    let mut known: FxHashMap<u64, u32> = FxHashMap::default();
    let mut rows = program.rows();
    while let Some((header, row)) = rows.next_row()? {
        let line = match row.end_sequence() {
            true => 0,
            false => row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0)),
        };
        let file = *known.entry(row.file_index()).or_insert_with(|| {
            let path = row.file(header).and_then(|file| path(dwarf, unit, header, file)).unwrap_or_default();
            result.files.push(path);
            result.files.len() as u32 - 1
        });
        result.rows.push(Row { at: row.address(), file, line });
    }
    // Where one sequence ends at the start of the next, the start holds. Otherwise the last row of an address does.
    result.rows.sort_by_key(|row| (row.at, row.line != 0));
    Ok(result)
}

fn path(
    dwarf: &ImageDwarf<'_>,
    unit: &Unit<Slice<'_>>,
    header: &gimli::LineProgramHeader<Slice<'_>>,
    file: &gimli::FileEntry<Slice<'_>>,
) -> Option<String> {
    let text = |value| dwarf.attr_string(unit, value).ok().map(|text| utf8_prefix(text.slice()));
    let mut path = std::path::PathBuf::new();
    // Each of these replaces what is before it if it is absolute.
    path.push(unit.comp_dir.map_or("", |folder| utf8_prefix(folder.slice())));
    // Folder 0 is the first again, and need not be absolute.
    if file.directory_index() != 0 {
        path.push(file.directory(header).and_then(text).unwrap_or(""));
    }
    path.push(text(file.path_name())?);
    let path = path.to_string_lossy();
    Some(path.chars().take(LONGEST_PATH).collect())
}
