//! Writing encoded pointers: sizes, what can be moved, and what fits.

use gimli::{DwEhPe, Endianity, RunTimeEndian, constants};
use lancet_isa::Svma;

/// How many bytes such a pointer takes; `None` if that depends on its value or nothing is known of it.
pub(super) fn size(encoding: DwEhPe, address_size: u8) -> Option<usize> {
    Some(match encoding.format() {
        constants::DW_EH_PE_absptr => address_size.into(),
        constants::DW_EH_PE_udata2 | constants::DW_EH_PE_sdata2 => 2,
        constants::DW_EH_PE_udata4 | constants::DW_EH_PE_sdata4 => 4,
        constants::DW_EH_PE_udata8 | constants::DW_EH_PE_sdata8 => 8,
        _ => return None,
    })
}

/// A pointer with this encoding can be written anew at another place. Absolute ones in position-independent code have
/// a relocation, which a copy has not.
pub(super) fn is_movable(encoding: DwEhPe, address_size: u8, position_independent: bool) -> bool {
    let known_base = match encoding.application() {
        constants::DW_EH_PE_pcrel => true,
        constants::DW_EH_PE_absptr => !position_independent,
        _ => false,
    };
    known_base && size(encoding, address_size).is_some()
}

/// Puts `value` into all of `field`, if it fits.
pub(super) fn put(field: &mut [u8], endian: RunTimeEndian, signed: bool, value: u64) -> Option<()> {
    let bits = 8 * field.len() as u32;
    if bits < 64 {
        let beyond = if signed { value as i64 >> (bits - 1) } else { (value >> bits) as i64 };
        if beyond != 0 && !(signed && beyond == -1) {
            return None;
        }
    }
    match field.len() {
        2 => endian.write_u16(field, value as u16),
        4 => endian.write_u32(field, value as u32),
        8 => endian.write_u64(field, value),
        _ => return None,
    }
    Some(())
}

/// Puts a pointer to `to` into `field`, which stands at `at`.
pub(super) fn put_pointer(field: &mut [u8], endian: RunTimeEndian, encoding: DwEhPe, at: Svma, to: Svma) -> Option<()> {
    let value = if encoding.application() == constants::DW_EH_PE_pcrel { to - at } else { to.0 };
    // A distance as wide as an address wraps, so its sign does not matter; nor does it if the field has 64 bits.
    let wraps = encoding.format() == constants::DW_EH_PE_absptr && field.len() == 4;
    let value = if wraps { value & u64::from(u32::MAX) } else { value };
    put(field, endian, is_signed(encoding), value)
}

pub(super) fn is_signed(encoding: DwEhPe) -> bool {
    encoding.format().0 & constants::DW_EH_PE_sdata2.0 & !constants::DW_EH_PE_udata2.0 != 0
}

pub(super) fn push_uleb(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(gimli::leb128::write::Leb128::unsigned(value).bytes());
}

pub(super) fn push_sleb(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(gimli::leb128::write::Leb128::signed(value).bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_fit() {
        let fits = |bytes: usize, signed, value: i64| {
            put(&mut [0; 8][..bytes], RunTimeEndian::Little, signed, value as u64).is_some()
        };
        for (bytes, limit) in [(2, 1i64 << 15), (4, 1 << 31)] {
            assert!(fits(bytes, true, limit - 1) && fits(bytes, true, -limit));
            assert!(!fits(bytes, true, limit) && !fits(bytes, true, -limit - 1));
            assert!(fits(bytes, false, 2 * limit - 1) && !fits(bytes, false, 2 * limit) && !fits(bytes, false, -1));
        }
        assert!(fits(8, true, i64::MIN) && fits(8, false, -1));
        assert!(!fits(3, false, 0), "no such field");
    }

    #[test]
    fn a_relative_pointer_backwards() {
        let mut field = [0; 4];
        let encoding = DwEhPe(constants::DW_EH_PE_pcrel.0 | constants::DW_EH_PE_sdata4.0);
        assert!(
            is_signed(encoding) && !is_signed(constants::DW_EH_PE_udata4) && !is_signed(constants::DW_EH_PE_absptr)
        );
        put_pointer(&mut field, RunTimeEndian::Big, encoding, Svma(0x2000), Svma(0x1ffe)).expect("it fits");
        assert_eq!(field, [0xff, 0xff, 0xff, 0xfe]);
    }
}
