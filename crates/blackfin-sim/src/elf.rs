//! Executable files into memory.

use crate::error::SimError;
use crate::memory::Memory;
use object::LittleEndian as LE;
use object::elf::{EM_BLACKFIN, ET_EXEC, FileHeader32, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};

/// Loads the segments and returns the entry.
pub fn load(file: &[u8], mem: &mut Memory) -> Result<u32, SimError> {
    if let Some(machine) = machine(file).filter(|&machine| machine != EM_BLACKFIN.0) {
        return Err(SimError::OtherMachine { machine });
    }
    let header = FileHeader32::<LE>::parse(file)?;
    let endian = header.endian()?;
    let kind = header.e_type(endian);
    if kind != ET_EXEC {
        return Err(SimError::NotExecutable { kind: kind.0 });
    }
    for segment in header.program_headers(endian, file)? {
        if segment.p_type(endian) != PT_LOAD || segment.p_memsz(endian) == 0 {
            continue;
        }
        let (at, bytes) = (segment.p_paddr(endian), segment.p_memsz(endian));
        let outside = || SimError::SegmentOutsideMemory { at, bytes: bytes.into() };
        // The part that is not in the file is zero, as memory is; but it must be there.
        mem.bytes(at, bytes as usize).ok_or_else(outside)?;
        let in_file = u64::from(segment.p_filesz(endian));
        let data = segment.data(endian, file).map_err(|()| SimError::Truncated { at, bytes: in_file })?;
        if !data.is_empty() {
            mem.write(at, data).ok_or_else(outside)?;
        }
    }
    Ok(header.e_entry(endian))
}

/// The machine of any ELF file, of either class and byte order.
fn machine(file: &[u8]) -> Option<u16> {
    let bytes = file.strip_prefix(b"\x7fELF")?.get(14..16)?.try_into().ok()?;
    Some(if file.get(5) == Some(&2) { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
}
