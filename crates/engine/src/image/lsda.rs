//! Landing pads: where exceptions re-enter a function.
//!
//! A language-specific data area (Itanium C++ ABI, level II, "exception handling tables"; gcc, clang and rustc all
//! write this form) starts with
//!
//! ```text
//! u8 encoding of LPStart, [LPStart]     landing pads are relative to it; the function's start if omitted
//! u8 encoding of the types, [uleb]      where the type table ends: not needed here
//! u8 encoding of call sites, uleb size  then the call sites: start, length, pad (encoded), action (uleb)
//! ```
//!
//! Call sites are sorted by start. A pad of 0 means that an exception there passes through.

use gimli::{DwEhPe, EndianSlice, Reader, RunTimeEndian, constants};
use lancet_isa::Svma;

use super::frames::Fde;

/// A stretch of code, and where an exception that a call in it throws goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LandingPad {
    pub start: Svma,
    pub len: u64,
    pub pad: Svma,
    /// 0: clean-up only. Otherwise 1 + offset into the action table: there are handlers to choose from.
    pub action: u64,
}

/// Reads the call sites with a landing pad; what follows a malformed one is left out. `bytes` starts at `at`.
pub(super) fn landing_pads(
    bytes: &[u8],
    at: Svma,
    endian: RunTimeEndian,
    address_size: u8,
    fde: &Fde,
) -> Vec<LandingPad> {
    let mut pads = Vec::new();
    let mut reader =
        Lsda { whole: EndianSlice::new(bytes, endian), rest: EndianSlice::new(bytes, endian), at, address_size };
    // The table ends early or late in a damaged file: what was read up to there stands.
    let _ = reader.call_sites(fde, &mut pads);
    pads
}

struct Lsda<'a> {
    whole: EndianSlice<'a, RunTimeEndian>,
    rest: EndianSlice<'a, RunTimeEndian>,
    at: Svma,
    address_size: u8,
}

impl Lsda<'_> {
    fn call_sites(&mut self, fde: &Fde, pads: &mut Vec<LandingPad>) -> gimli::Result<()> {
        let encoding = DwEhPe(self.rest.read_u8()?);
        let pads_start = match encoding {
            constants::DW_EH_PE_omit => fde.start,
            _ => self.pointer(encoding)?,
        };
        if DwEhPe(self.rest.read_u8()?) != constants::DW_EH_PE_omit {
            self.rest.read_uleb128()?;
        }
        let encoding = DwEhPe(self.rest.read_u8()?);
        let size = self.rest.read_uleb128()? as usize;
        self.rest.truncate(size.min(self.rest.len()))?;
        // Starts rise inside the function, which also bounds the work on a hostile table.
        let mut lowest = 0;
        while !self.rest.is_empty() {
            let start = self.value(encoding)?;
            let len = self.value(encoding)?;
            let pad = self.value(encoding)?;
            let action = self.rest.read_uleb128()?;
            if start < lowest || start >= fde.len || len > fde.len - start {
                return Ok(());
            }
            lowest = start + len.max(1);
            if pad != 0 {
                pads.push(LandingPad { start: fde.start + start, len, pad: pads_start + pad, action });
            }
        }
        Ok(())
    }

    fn pointer(&mut self, encoding: DwEhPe) -> gimli::Result<Svma> {
        let base = match encoding.application() {
            constants::DW_EH_PE_pcrel => self.at + self.rest.offset_from(self.whole) as u64,
            constants::DW_EH_PE_absptr => Svma(0),
            _ => return Err(gimli::Error::UnsupportedPointerEncoding(encoding)),
        };
        Ok(base + self.value(encoding)?)
    }

    /// An offset: signed formats are extended, so that wrapping addition does the right thing.
    fn value(&mut self, encoding: DwEhPe) -> gimli::Result<u64> {
        let rest = &mut self.rest;
        match encoding.format() {
            constants::DW_EH_PE_absptr => rest.read_address(self.address_size),
            constants::DW_EH_PE_uleb128 => rest.read_uleb128(),
            constants::DW_EH_PE_udata2 => rest.read_u16().map(u64::from),
            constants::DW_EH_PE_udata4 => rest.read_u32().map(u64::from),
            constants::DW_EH_PE_udata8 => rest.read_u64(),
            constants::DW_EH_PE_sleb128 => rest.read_sleb128().map(|value| value as u64),
            constants::DW_EH_PE_sdata2 => rest.read_i16().map(|value| value as u64),
            constants::DW_EH_PE_sdata4 => rest.read_i32().map(|value| value as u64),
            constants::DW_EH_PE_sdata8 => rest.read_i64().map(|value| value as u64),
            _ => Err(gimli::Error::UnknownPointerEncoding(encoding)),
        }
    }
}
