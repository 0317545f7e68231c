//! New entries, written before their place is known: pointers in them are filled in at the end.

use gimli::{DwEhPe, Endianity, RunTimeEndian, constants};
use lancet_isa::Svma;

use super::UnwindError;
use super::entry::Cie;
use super::pointer;
use crate::program::Part;

/// Entries are padded to this.
const ALIGN: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Area {
    Lsdas,
    Frames,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    At(Svma),
    /// An offset into the draft's own LSDAs.
    Lsda(u32),
    /// The CIE at this offset of the old table, as an FDE refers to it.
    Cie(u32),
}

/// A pointer to fill in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blank {
    pub area: Area,
    pub at: u32,
    pub encoding: DwEhPe,
    pub to: Target,
}

/// The entries of some pieces.
pub(super) struct Draft {
    pub lsdas: Vec<u8>,
    pub frames: Vec<u8>,
    pub blanks: Vec<Blank>,
    /// The start of the code of each new FDE, and the FDE's offset in `frames`.
    pub fdes: Vec<(Svma, u32)>,
    endian: RunTimeEndian,
    address_size: u8,
}

/// An FDE that is being written.
pub(super) struct Open<'c, 'a> {
    cie: &'c Cie<'a>,
    at: usize,
    /// Up to here its rules are written.
    reached: Svma,
}

impl Draft {
    pub fn new(endian: RunTimeEndian, address_size: u8) -> Draft {
        let (lsdas, frames, blanks, fdes) = Default::default();
        Draft { lsdas, frames, blanks, fdes, endian, address_size }
    }

    /// Makes room for a pointer.
    pub fn leave_blank(&mut self, area: Area, encoding: DwEhPe, size: usize, to: Target) {
        let bytes = match area {
            Area::Lsdas => &mut self.lsdas,
            Area::Frames => &mut self.frames,
        };
        let at = bytes.len();
        bytes.resize(at + size, 0);
        self.blank(area, at, encoding, to);
    }

    /// Marks a pointer that is already there.
    pub fn blank(&mut self, area: Area, at: usize, encoding: DwEhPe, to: Target) {
        self.blanks.push(Blank { area, at: at as u32, encoding, to });
    }

    /// Starts an FDE whose CIE can be moved.
    pub fn open<'c, 'a>(
        &mut self,
        cie: &'c Cie<'a>,
        code: Part,
        lsda: Option<Target>,
    ) -> Result<Open<'c, 'a>, UnwindError> {
        let at = self.frames.len();
        self.frames.extend_from_slice(&[0; 4]);
        self.leave_blank(Area::Frames, constants::DW_EH_PE_udata4, 4, Target::Cie(cie.offset as u32));
        let size = pointer::size(cie.pc_encoding, self.address_size).unwrap_or(0);
        self.leave_blank(Area::Frames, cie.pc_encoding, size, Target::At(code.start));
        let len = self.frames.len();
        self.frames.resize(len + size, 0);
        pointer::put(&mut self.frames[len..], self.endian, pointer::is_signed(cie.pc_encoding), code.size())
            .ok_or(UnwindError::NoRoom { what: "size of code", at: code.start, value: code.size() })?;
        if cie.augmented {
            let size = cie.lsda_encoding.and_then(|encoding| pointer::size(encoding, self.address_size)).unwrap_or(0);
            self.frames.push(size as u8);
            match (lsda, cie.lsda_encoding) {
                (Some(to), Some(encoding)) => self.leave_blank(Area::Frames, encoding, size, to),
                _ => self.frames.resize(self.frames.len() + size, 0),
            }
        }
        self.fdes.push((code.start, at as u32));
        Ok(Open { cie, at, reached: code.start })
    }

    /// What follows holds from `to` on.
    pub fn advance(&mut self, fde: &mut Open<'_, '_>, to: Svma) -> Result<(), UnwindError> {
        if to <= fde.reached {
            return Ok(());
        }
        let (bytes, align) = (to - fde.reached, fde.cie.code_align);
        let no_room = UnwindError::NoRoom { what: "distance between frame rules", at: fde.reached, value: bytes };
        if align == 0 || bytes % align != 0 {
            return Err(no_room);
        }
        fde.reached = to;
        let out = &mut self.frames;
        match bytes / align {
            by @ ..0x40 => out.push(constants::DW_CFA_advance_loc.0 | by as u8),
            by @ ..0x100 => out.extend_from_slice(&[constants::DW_CFA_advance_loc1.0, by as u8]),
            by @ ..0x1_0000 => {
                let mut field = [0; 2];
                self.endian.write_u16(&mut field, by as u16);
                out.push(constants::DW_CFA_advance_loc2.0);
                out.extend_from_slice(&field);
            }
            by => {
                let mut field = [0; 4];
                self.endian.write_u32(&mut field, u32::try_from(by).map_err(|_| no_room)?);
                out.push(constants::DW_CFA_advance_loc4.0);
                out.extend_from_slice(&field);
            }
        }
        Ok(())
    }

    pub fn close(&mut self, fde: Open<'_, '_>) {
        self.frames.resize(self.frames.len().next_multiple_of(ALIGN), constants::DW_CFA_nop.0);
        let len = self.frames.len() - fde.at - 4;
        self.endian.write_u32(&mut self.frames[fde.at..], len as u32);
    }
}
