//! A jump table that was found.

use lancet_isa::Svma;

use super::func::Part;
use crate::image::Image;

/// No switch has more entries.
pub(super) const MAX_ENTRIES: u64 = 1 << 16;

/// A table that a jump reads its target from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JumpTable {
    /// The jump instruction.
    pub jump: Svma,
    /// Address of the first entry that the jump can use.
    pub at: Svma,
    pub entry_bytes: u8,
    /// From one entry to the next: more than its bytes in an array of structures.
    pub stride: u8,
    /// What a relative entry is added to; `None`: entries are addresses.
    pub base: Option<Svma>,
    /// One for each entry, in order. Where no value of the index can use an entry, compilers let it lead to the function's
    /// end: see [`is_nowhere`].
    pub targets: Box<[Svma]>,
    pub bound: Bound,
}

impl JumpTable {
    /// Does it end where its content does, so that it may turn out to be longer?
    pub(crate) fn may_go_on(&self) -> bool {
        matches!(self.bound, Bound::Cut { .. } | Bound::Content)
    }

    /// The address behind the last entry.
    pub fn end(&self) -> Svma {
        self.at + self.targets.len() as u64 * u64::from(self.stride)
    }

    /// Where the table itself starts, of which the jump may use only a part: offsets are relative to that, or to code.
    pub(super) fn start(&self, image: &Image) -> Svma {
        let is_start = |base: &Svma| {
            let is_near = *base < self.at && self.at - *base < MAX_ENTRIES * u64::from(self.entry_bytes);
            is_near && !image.is_code(*base)
        };
        self.base.filter(is_start).unwrap_or(self.at)
    }

    /// Where an entry that stands at an address leads.
    pub(super) fn entry(&self, image: &Image, at: Svma) -> Option<Svma> {
        read_entry(image, at, self.entry_bytes, self.base)
    }
}

/// Is an address the end of a function, as its unwind table states it? LLVM lets entries of a table lead there that are
/// never used.
pub(super) fn is_nowhere(image: &Image, parts: &[Part], at: Svma) -> bool {
    parts.iter().any(|part| image.fde_at(part.start).is_some_and(|fde| fde.start == part.start && fde.end() == at))
}

/// How the size of a table is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Conditions on every path to the jump bound the index.
    Checked,
    /// On some path only a mask or the index's width does, and all entries that it allows make sense.
    Masked,
    /// Conditions do, but not all entries that they allow lead into the function: the table ends before the first other.
    Cut { allowed: u32 },
    /// Nothing does: the table ends where its content stops making sense.
    Content,
}

/// The first of `stops`, which are sorted, behind an address.
pub(super) fn first_behind(stops: &[Svma], at: Svma) -> Option<Svma> {
    stops.get(stops.partition_point(|stop| *stop <= at)).copied()
}

/// Where the entry of a table leads: an address, or relative to a base.
pub(super) fn read_entry(image: &Image, at: Svma, bytes: u8, base: Option<Svma>) -> Option<Svma> {
    if bytes == 8 {
        return image.pointer_at(at);
    }
    let mut word = [0; 8];
    word[..usize::from(bytes)].copy_from_slice(image.bytes(at, u64::from(bytes))?);
    let word = u64::from_le_bytes(word);
    Some(match base {
        Some(base) if bytes == 4 => Svma(base.0.wrapping_add(word as u32 as i32 as i64 as u64)),
        Some(base) => Svma(base.0.wrapping_add(word)),
        None => Svma(word),
    })
}
