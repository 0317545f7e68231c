//! The entries of `.eh_frame` field by field: what a copy at another place must change, and the rules in between.

use gimli::{DwEhPe, EndianSlice, Reader, RunTimeEndian, constants};
use lancet_isa::Svma;

use super::pointer;
use super::rules::Rules;
use crate::image::{Fde, Image, LONGEST_CIE, RawFrames, read_encoded};

pub(super) type Bytes<'a> = EndianSlice<'a, RunTimeEndian>;

/// A pointer in the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    /// Its offset.
    pub at: usize,
    pub encoding: DwEhPe,
}

#[derive(Clone, Debug)]
pub(super) struct Cie<'a> {
    pub offset: usize,
    /// Behind it.
    pub end: usize,
    pub code_align: u64,
    pub data_align: i64,
    /// Its FDEs state the size of what they have besides rules.
    pub augmented: bool,
    pub pc_encoding: DwEhPe,
    pub lsda_encoding: Option<DwEhPe>,
    pub personality: Option<Field>,
    pub rules: Bytes<'a>,
}

#[derive(Clone, Debug)]
pub(super) struct Entry<'a> {
    pub offset: usize,
    pub end: usize,
    pub start: Field,
    pub lsda: Option<Field>,
    pub rules: Bytes<'a>,
}

/// The old table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'a> {
    pub raw: RawFrames<'a>,
    pub position_independent: bool,
}

impl<'a> Table<'a> {
    pub fn of(image: &'a Image) -> Option<Table<'a>> {
        Some(Table { raw: image.raw_frames()?, position_independent: image.kind().is_position_independent() })
    }

    pub fn endian(&self) -> RunTimeEndian {
        self.raw.bytes.endian()
    }

    pub fn svma(&self, offset: usize) -> Svma {
        self.raw.start + offset as u64
    }

    fn offset_of(&self, rest: &Bytes<'a>) -> usize {
        rest.offset_from(self.raw.bytes)
    }

    /// The contents of an entry, from behind its length on.
    fn contents(&self, offset: usize) -> gimli::Result<Bytes<'a>> {
        let mut rest = self.raw.bytes;
        rest.skip(offset)?;
        let (length, _) = rest.read_initial_length()?;
        rest.split(length)
    }

    /// Where the CIE of an FDE is.
    pub fn cie_offset(&self, fde: usize) -> gimli::Result<usize> {
        let mut rest = self.contents(fde)?;
        let place = self.offset_of(&rest);
        let distance = rest.read_u32()?;
        match place.checked_sub(distance as usize) {
            Some(offset) if distance != 0 => Ok(offset),
            _ => Err(gimli::Error::NotCiePointer(distance.into())),
        }
    }

    pub fn cie(&self, offset: usize) -> gimli::Result<Cie<'a>> {
        let mut rest = self.contents(offset)?;
        let end = self.offset_of(&rest) + rest.len();
        let id = rest.read_u32()?;
        if rest.len() > LONGEST_CIE {
            return Err(gimli::Error::OffsetOutOfBounds(rest.len() as u64));
        }
        if id != 0 {
            return Err(gimli::Error::NotCieId(id.into()));
        }
        let version = rest.read_u8()?;
        let letters = rest.read_null_terminated_slice()?.slice();
        let code_align = rest.read_uleb128()?;
        let data_align = rest.read_sleb128()?;
        match version {
            1 => u64::from(rest.read_u8()?),
            3 | 4 => rest.read_uleb128()?,
            _ => return Err(gimli::Error::UnknownVersion(version.into())),
        };
        let mut cie = Cie {
            offset,
            end,
            code_align,
            data_align,
            augmented: letters.first() == Some(&b'z'),
            pc_encoding: constants::DW_EH_PE_absptr,
            lsda_encoding: None,
            personality: None,
            rules: rest,
        };
        if let [b'z', letters @ ..] = letters {
            let size = rest.read_uleb128()?;
            let mut data = rest.split(usize::try_from(size).unwrap_or(usize::MAX))?;
            for letter in letters {
                match letter {
                    b'L' => cie.lsda_encoding = Some(DwEhPe(data.read_u8()?)),
                    b'R' => cie.pc_encoding = DwEhPe(data.read_u8()?),
                    b'P' => {
                        let encoding = DwEhPe(data.read_u8()?);
                        cie.personality = Some(Field { at: self.offset_of(&data), encoding });
                        read_encoded(&mut data, encoding, self.raw.address_size)?;
                    }
                    // Flags: a signal's frame, and two of AArch64.
                    b'S' | b'B' | b'G' => {}
                    _ => return Err(gimli::Error::UnknownAugmentation),
                }
            }
            cie.rules = rest;
        } else if !letters.is_empty() {
            return Err(gimli::Error::UnknownAugmentation);
        }
        cie.lsda_encoding = cie.lsda_encoding.filter(|encoding| !encoding.is_absent());
        cie.personality = cie.personality.filter(|field| !field.encoding.is_absent());
        Ok(cie)
    }

    pub fn entry(&self, offset: usize, cie: &Cie<'a>) -> gimli::Result<Entry<'a>> {
        let mut rest = self.contents(offset)?;
        let end = self.offset_of(&rest) + rest.len();
        rest.skip(4)?;
        let start = Field { at: self.offset_of(&rest), encoding: cie.pc_encoding };
        read_encoded(&mut rest, cie.pc_encoding, self.raw.address_size)?;
        read_encoded(&mut rest, cie.pc_encoding, self.raw.address_size)?;
        let mut lsda = None;
        if cie.augmented {
            let size = rest.read_uleb128()?;
            let data = rest.split(usize::try_from(size).unwrap_or(usize::MAX))?;
            let field = |encoding| Field { at: self.offset_of(&data), encoding };
            lsda = cie.lsda_encoding.map(field).filter(|_| !data.is_empty());
        }
        Ok(Entry { offset, end, start, lsda, rules: rest })
    }

    /// The entry of an FDE that the image has, with its CIE.
    pub fn entry_of(&self, fde: &Fde) -> gimli::Result<(Cie<'a>, Entry<'a>)> {
        let cie = self.cie(self.cie_offset(fde.offset as usize)?)?;
        let entry = self.entry(fde.offset as usize, &cie)?;
        Ok((cie, entry))
    }

    /// The number in a field, whatever it is relative to.
    pub fn value(&self, field: Field) -> gimli::Result<u64> {
        let mut rest = self.raw.bytes;
        rest.skip(field.at)?;
        read_encoded(&mut rest, field.encoding, self.raw.address_size)
    }

    /// Where a field leads to that has a movable encoding. `None`: nowhere.
    pub fn target(&self, field: Field) -> gimli::Result<Option<Svma>> {
        let value = self.value(field)?;
        Ok((value != 0).then(|| match field.encoding.application() {
            constants::DW_EH_PE_pcrel => self.svma(field.at) + value,
            _ => Svma(value),
        }))
    }

    pub fn is_movable(&self, encoding: DwEhPe) -> bool {
        pointer::is_movable(encoding, self.raw.address_size, self.position_independent)
    }

    /// The rules of an entry, each with the address from which on it holds.
    pub fn rules(&self, cie: &Cie<'a>, entry: &Entry<'a>, start: Svma) -> Rules<'a> {
        Rules::new(*self, cie, entry.rules, start)
    }
}
