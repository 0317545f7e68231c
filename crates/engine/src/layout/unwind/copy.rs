//! The old table at its new place.
//!
//! Entries keep their order and their bytes; pointers relative to their own place are changed. What ends the chain is
//! left out: linkers leave terminators inside, and readers that walk the chain would stop there. So are entries that
//! cannot be moved, and those of code that has moved, of which nothing runs but the jump to the new place; the search
//! table goes on to find the old ones.

use gimli::{Endianity, constants};
use lancet_isa::Svma;
use rustc_hash::{FxHashMap, FxHashSet};

use super::UnwindError;
use super::entry::{Cie, Entry, Field, Table};
use super::pointer;

pub(super) struct Copied {
    pub bytes: Vec<u8>,
    /// Old offsets of CIEs, and their new ones.
    pub cies: FxHashMap<u32, u32>,
    /// Old offsets of FDEs and their new ones, sorted.
    fdes: Vec<(u32, u32)>,
}

impl Copied {
    pub fn fde(&self, old: u32) -> Option<u32> {
        self.fdes.binary_search_by_key(&old, |fde| fde.0).ok().map(|index| self.fdes[index].1)
    }
}

/// Copies the table to `at`, without the FDEs that are `left`.
pub(super) fn copy(table: Table<'_>, at: Svma, left: &FxHashSet<u32>) -> Result<Copied, UnwindError> {
    let cies = movable_cies(&table);
    let mut entries: Vec<(&Cie<'_>, Option<Entry<'_>>)> = cies.values().map(|cie| (cie, None)).collect();
    for &fde in table.raw.fde_offsets.iter().filter(|fde| !left.contains(fde)) {
        let Some(cie) = table.cie_offset(fde as usize).ok().and_then(|offset| cies.get(&offset)) else { continue };
        entries.extend(table.entry(fde as usize, cie).ok().map(|entry| (cie, Some(entry))));
    }
    let range = |(cie, entry): &(&Cie<'_>, Option<Entry<'_>>)| match entry {
        Some(entry) => entry.offset..entry.end,
        None => cie.offset..cie.end,
    };
    entries.sort_by_key(|entry| range(entry).start);

    let mut copied = Copied { bytes: Vec::new(), cies: FxHashMap::default(), fdes: Vec::with_capacity(entries.len()) };
    let mut size = 0;
    for entry in &entries {
        let old = range(entry);
        match entry.1 {
            Some(_) => copied.fdes.push((old.start as u32, size as u32)),
            None => {
                copied.cies.insert(old.start as u32, size as u32);
            }
        }
        size += old.len();
    }
    let mut copier = Copier { table, at, bytes: Vec::with_capacity(size) };
    for entry in &entries {
        let old = range(entry);
        let shift = copier.bytes.len() as isize - old.start as isize;
        copier.bytes.extend_from_slice(&table.raw.bytes.slice()[old]);
        match &entry.1 {
            Some(fde) => copier.fde(shift, fde, entry.0, copied.cies[&(entry.0.offset as u32)])?,
            None => copier.move_pointer(shift, entry.0.personality)?,
        }
    }
    copied.bytes = copier.bytes;
    Ok(copied)
}

fn movable_cies<'a>(table: &Table<'a>) -> FxHashMap<usize, Cie<'a>> {
    let mut seen: FxHashMap<usize, Option<Cie<'a>>> = FxHashMap::default();
    for &fde in table.raw.fde_offsets {
        let Ok(offset) = table.cie_offset(fde as usize) else { continue };
        seen.entry(offset).or_insert_with(|| table.cie(offset).ok().filter(|cie| is_movable(table, cie)));
    }
    seen.into_iter().filter_map(|(offset, cie)| Some((offset, cie?))).collect()
}

fn is_movable(table: &Table<'_>, cie: &Cie<'_>) -> bool {
    let personality = cie.personality.map(|field| field.encoding);
    [Some(cie.pc_encoding), cie.lsda_encoding, personality].into_iter().flatten().all(|e| table.is_movable(e))
}

struct Copier<'a> {
    table: Table<'a>,
    at: Svma,
    bytes: Vec<u8>,
}

impl<'a> Copier<'a> {
    /// Changes a copied FDE, which stands `shift` bytes further, and whose CIE now is at `cie_offset`.
    fn fde(&mut self, shift: isize, fde: &Entry<'a>, cie: &Cie<'a>, cie_offset: u32) -> Result<(), UnwindError> {
        let reference = fde.start.at.wrapping_add_signed(shift) - 4;
        // Entries keep their order, so a CIE that was in front still is.
        let distance = (reference as u32).wrapping_sub(cie_offset);
        let field = &mut self.bytes[reference..reference + 4];
        self.table.endian().write_u32(field, distance);

        if cie.pc_encoding.application() != constants::DW_EH_PE_pcrel {
            return self.move_pointer(shift, fde.lsda);
        }
        self.move_pointer(shift, Some(fde.start))?;
        self.move_pointer(shift, fde.lsda)?;
        // Rules that nobody can read stay as they are.
        let mut rules = self.table.rules(cie, fde, Svma(0));
        while let Ok(Some(instruction)) = rules.next_instruction() {
            self.move_pointer(shift, instruction.address)?;
        }
        Ok(())
    }

    /// Lets a pointer lead to where it led.
    fn move_pointer(&mut self, shift: isize, field: Option<Field>) -> Result<(), UnwindError> {
        let Some(field) = field.filter(|field| field.encoding.application() == constants::DW_EH_PE_pcrel) else {
            return Ok(());
        };
        let Ok(Some(to)) = self.table.target(field) else { return Ok(()) };
        let new = field.at.wrapping_add_signed(shift);
        let size = pointer::size(field.encoding, self.table.raw.address_size).unwrap_or(0);
        let at = self.at + new as u64;
        pointer::put_pointer(&mut self.bytes[new..new + size], self.table.endian(), field.encoding, at, to)
            .ok_or(UnwindError::NoRoom { what: "pointer in .eh_frame", at, value: to - at })
    }
}
