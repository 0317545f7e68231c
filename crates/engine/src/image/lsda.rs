//! Landing pads: where exceptions re-enter a function.
//!
//! A language-specific data area (Itanium C++ ABI, level II, "exception handling tables"; gcc, clang and rustc all
//! write this form) is
//!
//! ```text
//! u8 encoding of LPStart, [LPStart]     landing pads are relative to it; the function's start if omitted
//! u8 encoding of the types, [uleb]      where the type table ends
//! u8 encoding of call sites, uleb size  then the call sites: start, length, pad (encoded), action (uleb)
//! actions                               chains of: sleb type, sleb distance to the next one
//! types                                 pointers, counted backwards from the end of the table
//! specifications                        lists of uleb types, ended by 0: what a function may throw
//! ```
//!
//! Call sites are sorted by start. A pad of 0 means that an exception there passes through.

use gimli::{DwEhPe, EndianSlice, Reader, RunTimeEndian, constants};
use lancet_isa::Svma;

use super::frames::Fde;
use super::pointer::read_encoded;

type Bytes<'a> = EndianSlice<'a, RunTimeEndian>;

/// A stretch of code, and where an exception that a call in it throws goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LandingPad {
    pub start: Svma,
    pub len: u64,
    pub pad: Svma,
    /// 0: clean-up only. Otherwise 1 + offset into the action table: there are handlers to choose from.
    pub action: u64,
}

/// The call sites with a landing pad; what follows a malformed one is left out.
pub(super) fn landing_pads(lsda: &Lsda<'_>, fde: &Fde) -> Vec<LandingPad> {
    let mut pads = Vec::new();
    let mut sites = lsda.call_sites(fde);
    while let Ok(Some(site)) = sites.next_site() {
        let pad = site.pad.filter(|_| site.len > 0);
        pads.extend(pad.map(|pad| LandingPad { start: site.start, len: site.len, pad, action: site.action }));
    }
    pads
}

/// The header of a language-specific data area, read.
#[derive(Clone, Debug)]
pub(crate) struct Lsda<'a> {
    /// From its start to wherever the segment ends: nothing tells its size.
    pub whole: Bytes<'a>,
    pub at: Svma,
    pub address_size: u8,
    pads_start: Option<Svma>,
    pub type_encoding: DwEhPe,
    /// Where the type table ends, as an offset.
    pub types_end: Option<usize>,
    /// In so many bytes.
    pub types_end_len: usize,
    site_encoding: DwEhPe,
    /// The size of all call sites is in so many bytes.
    pub sites_size_len: usize,
    sites: Bytes<'a>,
    /// Where the action table starts, as an offset.
    pub actions: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallSite {
    pub start: Svma,
    pub len: u64,
    pub pad: Option<Svma>,
    pub action: u64,
    /// How many bytes the four of them take in the table.
    pub coded: [u8; 4],
}

impl<'a> Lsda<'a> {
    pub fn read(bytes: &'a [u8], at: Svma, endian: RunTimeEndian, address_size: u8) -> gimli::Result<Lsda<'a>> {
        let whole = EndianSlice::new(bytes, endian);
        let mut rest = whole;
        let offset = |rest: &Bytes<'a>| rest.offset_from(whole);
        let encoding = DwEhPe(rest.read_u8()?);
        let base = at + offset(&rest) as u64;
        let pads_start = match (encoding, encoding.application()) {
            (constants::DW_EH_PE_omit, _) => None,
            (_, constants::DW_EH_PE_pcrel) => Some(base + read_encoded(&mut rest, encoding, address_size)?),
            (_, constants::DW_EH_PE_absptr) => Some(Svma(read_encoded(&mut rest, encoding, address_size)?)),
            _ => return Err(gimli::Error::UnsupportedPointerEncoding(encoding)),
        };
        let type_encoding = DwEhPe(rest.read_u8()?);
        let before = offset(&rest);
        let types_end = match type_encoding {
            constants::DW_EH_PE_omit => None,
            _ => {
                let distance = rest.read_uleb128()?;
                Some(offset(&rest).saturating_add(usize::try_from(distance).unwrap_or(usize::MAX)))
            }
        };
        let types_end_len = offset(&rest) - before;
        let site_encoding = DwEhPe(rest.read_u8()?);
        let before = offset(&rest);
        let size = usize::try_from(rest.read_uleb128()?).unwrap_or(usize::MAX).min(rest.len());
        let sites_size_len = offset(&rest) - before;
        let sites = rest.split(size)?;
        Ok(Lsda {
            whole,
            at,
            address_size,
            pads_start,
            type_encoding,
            types_end,
            types_end_len,
            site_encoding,
            sites_size_len,
            sites,
            actions: offset(&rest),
        })
    }

    pub fn call_sites(&self, fde: &Fde) -> CallSites<'a> {
        CallSites {
            rest: self.sites,
            encoding: self.site_encoding,
            address_size: self.address_size,
            function: fde.start,
            pads_start: self.pads_start.unwrap_or(fde.start),
            len: fde.len,
            lowest: 0,
            left: fde.len,
        }
    }
}

/// Reads call sites one by one.
pub(crate) struct CallSites<'a> {
    rest: Bytes<'a>,
    encoding: DwEhPe,
    address_size: u8,
    function: Svma,
    pads_start: Svma,
    len: u64,
    lowest: u64,
    /// Bounds the work on a hostile table: there are no more sites than bytes of code.
    left: u64,
}

impl CallSites<'_> {
    /// The next site, which may be empty.
    pub fn next_site(&mut self) -> gimli::Result<Option<CallSite>> {
        if !self.rest.is_empty() && self.left > 0 {
            self.left -= 1;
            let mut coded = [0; 4];
            let mut left = self.rest.len();
            let mut values = [0; 4];
            for (i, (value, coded)) in values.iter_mut().zip(&mut coded).enumerate() {
                *value = if i < 3 { self.value()? } else { self.rest.read_uleb128()? };
                *coded = (left - self.rest.len()) as u8;
                left = self.rest.len();
            }
            let [start, len, pad, action] = values;
            if start < self.lowest || start > self.len || len > self.len - start {
                self.left = 0;
                return Err(gimli::Error::OffsetOutOfBounds(start));
            }
            self.lowest = start + len;
            let pad = (pad != 0).then(|| self.pads_start + pad);
            return Ok(Some(CallSite { start: self.function + start, len, pad, action, coded }));
        }
        Ok(None)
    }

    fn value(&mut self) -> gimli::Result<u64> {
        read_encoded(&mut self.rest, self.encoding, self.address_size)
    }
}
