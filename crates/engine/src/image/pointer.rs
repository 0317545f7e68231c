//! Pointers in unwind tables: a byte says how they are written (`DW_EH_PE_*`; "DWARF exception header encoding" in the
//! Linux Standard Base).

use gimli::{DwEhPe, EndianSlice, Reader, RunTimeEndian, constants};

/// Reads the number itself, whatever it is relative to. Signed formats are extended, so that wrapping addition to the
/// base does the right thing.
pub(crate) fn read_encoded(
    rest: &mut EndianSlice<'_, RunTimeEndian>,
    encoding: DwEhPe,
    address_size: u8,
) -> gimli::Result<u64> {
    match encoding.format() {
        constants::DW_EH_PE_absptr => rest.read_address(address_size),
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
