//! Which fields of new code say where something is in each thread's area.
//!
//! An object that is loaded where others have counters already goes elsewhere in the areas, and the run-time code adds the
//! difference to all these fields. They are listed as distances, each from the one before and the first from the start of
//! the code, times two, plus one for a cell that a gate looks at; in LEB128, and with [`END`] behind the last.

use lancet_isa::Svma;

const END: u8 = 0;

#[derive(Default)]
pub(super) struct OwnPlaces {
    /// In order.
    pub counters: Vec<Svma>,
    /// Behind all of those, in order.
    pub cells: Vec<Svma>,
}

impl OwnPlaces {
    pub fn to_bytes(&self, code: Svma) -> Vec<u8> {
        let counters = self.counters.iter().map(|place| (*place, 0));
        let cells = self.cells.iter().map(|place| (*place, 1));
        let mut before = code;
        let mut bytes = Vec::new();
        for (place, kind) in counters.chain(cells) {
            let mut left = (place - before) << 1 | kind;
            before = place;
            while left >= 0x80 {
                bytes.push(left as u8 | 0x80);
                left >>= 7;
            }
            bytes.push(left as u8);
        }
        bytes.push(END);
        bytes
    }
}
