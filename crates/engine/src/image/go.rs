//! The code that Go's run-time system knows by its addresses.
//!
//! A Go program grows and copies its stacks, collects garbage and unwinds by a table that describes every return
//! address (`pclntab`). The table is found by its section, or by its first bytes where there are no section headers.
//!
//! ```text
//! magic, 0, 0, step of instructions, size of pointers (8 bytes); then words of that size:
//! go 1.18 on   number of functions, of files, start of the code, four offsets, offset of the list
//! go 1.16      number of functions, of files, four offsets, offset of the list
//! go 1.2       number of functions; the list follows
//! list         from 1.18 on pairs of 4 bytes: start of the function, from that of the code; before, pairs of words;
//!              the end of the last function
//! ```
//!
//! What of it cannot be read makes the code end nowhere: all code is then taken for Go's.

use lancet_isa::Svma;
use memchr::memmem;

use super::Image;

const SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];
/// What the table begins with on x86-64, by version.
const MAGICS: [([u8; 8], Version); 4] = [
    ([0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8], Version::Go118),
    ([0xf0, 0xff, 0xff, 0xff, 0, 0, 1, 8], Version::Go118),
    ([0xfa, 0xff, 0xff, 0xff, 0, 0, 1, 8], Version::Go116),
    ([0xfb, 0xff, 0xff, 0xff, 0, 0, 1, 8], Version::Go12),
];

#[derive(Clone, Copy)]
enum Version {
    Go118,
    Go116,
    Go12,
}

/// Whether code at an address is Go's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoCode {
    start: Svma,
    end: Svma,
}

impl GoCode {
    const ALL: GoCode = GoCode { start: Svma(0), end: Svma(u64::MAX) };

    pub fn contains(&self, at: Svma) -> bool {
        self.start <= at && at < self.end
    }

    pub(super) fn of(image: &Image) -> Option<GoCode> {
        let table = table_at(image)?;
        Some(read(image, table).filter(|code| code.start.0 != 0 && code.start < code.end).unwrap_or(GoCode::ALL))
    }
}

fn table_at(image: &Image) -> Option<Svma> {
    if let Some(section) = SECTIONS.iter().find_map(|name| image.section(name)) {
        return Some(section.svma);
    }
    if !image.sections().is_empty() {
        return None;
    }
    image.segments().iter().find_map(|segment| {
        let bytes = image.bytes(segment.svma, segment.file_size)?;
        let found = MAGICS.iter().find_map(|(magic, _)| memmem::find(bytes, magic))?;
        Some(segment.svma + found as u64)
    })
}

fn read(image: &Image, table: Svma) -> Option<GoCode> {
    let magic = image.bytes(table, 8)?;
    let version = MAGICS.iter().find(|(known, _)| known == magic)?.1;
    let word = |at: Svma| Some(u64::from_le_bytes(image.bytes(at, 8)?.try_into().ok()?));
    let functions = word(table + 8)?;
    let list = match version {
        Version::Go118 => table + word(table + 64)?,
        Version::Go116 => table + word(table + 56)?,
        Version::Go12 => table + 16,
    };
    match version {
        Version::Go118 => {
            let start = image.pointer_at(table + 24)?;
            let end = image.bytes(list + functions.checked_mul(8)?, 4)?;
            Some(GoCode { start, end: start + u64::from(u32::from_le_bytes(end.try_into().ok()?)) })
        }
        Version::Go116 | Version::Go12 => {
            let end = image.pointer_at(list + functions.checked_mul(16)?)?;
            Some(GoCode { start: image.pointer_at(list)?, end })
        }
    }
}
