//! Where the parts of an instruction word are.
//!
//! A 16-bit word stands in the low half of a `u32`; a 32-bit word has its first half on top. The decoder takes fields
//! out, the encoder puts them in: both use the same tables, so they cannot disagree.

/// Consecutive bits of an instruction word.
#[derive(Clone, Copy)]
pub(super) struct Field {
    shift: u8,
    bits: u8,
}

impl Field {
    const fn mask(self) -> u32 {
        ((1u64 << self.bits) - 1) as u32
    }

    pub(super) const fn get(self, word: u32) -> u32 {
        word >> self.shift & self.mask()
    }

    /// As a register number or an opcode: at most 16 bits.
    pub(super) const fn code(self, word: u32) -> u16 {
        self.get(word) as u16
    }

    pub(super) const fn flag(self, word: u32) -> bool {
        self.get(word) != 0
    }

    /// Sign-extended.
    pub(super) const fn signed(self, word: u32) -> i32 {
        let up = 32 - self.bits as u32;
        (self.get(word) << up) as i32 >> up
    }

    /// A word of zeros with `value` in the field; bits that do not fit are cut off.
    pub(super) fn put(self, value: impl Into<u32>) -> u32 {
        (value.into() & self.mask()) << self.shift
    }
}

/// Bits `low` to `high` of the 16-bit word, or of the second half of a 32-bit one.
const fn bits(high: u8, low: u8) -> Field {
    Field { shift: low, bits: high - low + 1 }
}

/// Bits `low` to `high` of the first half of a 32-bit word.
const fn first(high: u8, low: u8) -> Field {
    Field { shift: low + 16, bits: high - low + 1 }
}

macro_rules! layouts {
    ($($(#[$meta:meta])* $family:ident { $($name:ident = $field:expr;)* })*) => {
        $(
            $(#[$meta])*
            pub(super) mod $family {
                // A 16-bit family has no first half.
                #[allow(unused_imports)]
                use super::{Field, bits, first};
                $(pub(in super::super) const $name: Field = $field;)*
            }
        )*
    };
}

layouts! {
    prog_ctrl { FUNC = bits(7, 4); ARG = bits(3, 0); }
    cache_ctrl { POST = bits(5, 5); OP = bits(4, 3); PTR = bits(2, 0); }
    push_pop { WRITE = bits(6, 6); REG = bits(5, 0); }
    push_pop_multiple { D = bits(8, 8); P = bits(7, 7); WRITE = bits(6, 6); DREG = bits(5, 3); PREG = bits(2, 0); }
    cc_move { CC = bits(8, 8); DST_P = bits(7, 7); SRC_P = bits(6, 6); DST = bits(5, 3); SRC = bits(2, 0); }
    cc_flag { IMM = bits(10, 10); OP = bits(9, 7); PTR = bits(6, 6); Y = bits(5, 3); X = bits(2, 0); }
    cc_dreg { OP = bits(4, 3); REG = bits(2, 0); }
    cc_stat { TO_BIT = bits(7, 7); OP = bits(6, 5); BIT = bits(4, 0); }
    branch { CC = bits(11, 11); PREDICTED = bits(10, 10); OFFSET = bits(9, 0); }
    jump { OFFSET = bits(11, 0); }
    reg_move { DST_GROUP = bits(11, 9); SRC_GROUP = bits(8, 6); DST = bits(5, 3); SRC = bits(2, 0); }
    alu2 { OP = bits(9, 6); SRC = bits(5, 3); DST = bits(2, 0); }
    ptr2 { OP = bits(8, 6); SRC = bits(5, 3); DST = bits(2, 0); }
    bit_imm { OP = bits(10, 8); BIT = bits(7, 3); DST = bits(2, 0); }
    comp3 { OP = bits(11, 9); DST = bits(8, 6); SRC1 = bits(5, 3); SRC0 = bits(2, 0); }
    comp_imm { PTR = bits(11, 11); ADD = bits(10, 10); IMM = bits(9, 3); DST = bits(2, 0); }
    dag_mod { BREV = bits(7, 7); SUB = bits(4, 4); M = bits(3, 2); I = bits(1, 0); }
    dag_mod_imm { OP = bits(3, 2); I = bits(1, 0); }
    ldst_post_mod { WRITE = bits(11, 11); OP = bits(10, 9); REG = bits(8, 6); INDEX = bits(5, 3); PTR = bits(2, 0); }
    ldst_dag { WRITE = bits(9, 9); OP = bits(8, 7); M = bits(6, 5); I = bits(4, 3); REG = bits(2, 0); }
    ldst {
        SIZE = bits(11, 10); WRITE = bits(9, 9); OP = bits(8, 7); Z = bits(6, 6); PTR = bits(5, 3); REG = bits(2, 0);
    }
    ldst_offset { WRITE = bits(12, 12); OP = bits(11, 10); OFFSET = bits(9, 6); PTR = bits(5, 3); REG = bits(2, 0); }
    ldst_frame { WRITE = bits(9, 9); OFFSET = bits(8, 4); REG = bits(3, 0); }

    loop_setup {
        COUNT = first(6, 5); WHICH = first(4, 4); FIRST = first(3, 0);
        REG = bits(15, 12); LAST = bits(9, 0);
    }
    load_imm { ZERO = first(7, 7); HIGH = first(6, 6); SIGN = first(5, 5); REG = first(4, 0); VALUE = bits(15, 0); }
    call { CALL = first(8, 8); OFFSET = Field { shift: 0, bits: 24 }; }
    ldst_long {
        WRITE = first(9, 9); Z = first(8, 8); SIZE = first(7, 6); PTR = first(5, 3); REG = first(2, 0);
        OFFSET = bits(15, 0);
    }
    link { UNLINK = first(0, 0); FRAME = bits(15, 0); }
    /// Multiply, and multiply and accumulate; unit 1 and unit 0.
    mac {
        MODE = first(8, 5); MIXED = first(4, 4); PAIR = first(3, 3); WRITE1 = first(2, 2); OP1 = first(1, 0);
        HALF01 = bits(15, 15); HALF11 = bits(14, 14); WRITE0 = bits(13, 13); OP0 = bits(12, 11);
        HALF00 = bits(10, 10); HALF10 = bits(9, 9); DST = bits(8, 6); SRC0 = bits(5, 3); SRC1 = bits(2, 0);
    }
    alu {
        HIGH = first(5, 5); CODE = first(4, 0);
        OP = bits(15, 14); S = bits(13, 13); X = bits(12, 12); OVERFLOW = bits(13, 12);
        DST0 = bits(11, 9); DST1 = bits(8, 6); SRC0 = bits(5, 3); SRC1 = bits(2, 0);
    }
    shift {
        CODE = first(4, 0);
        OP = bits(15, 14); DST_HALF = bits(13, 13); SRC_HALF = bits(12, 12); HALVES = bits(13, 12);
        DST = bits(11, 9); COUNT = bits(8, 3); SRC0 = bits(5, 3); SRC1 = bits(2, 0);
    }
    debug { OP = bits(7, 6); GROUP = bits(5, 3); NUMBER = bits(2, 0); REG = bits(5, 0); }
    debug_char { CHAR = bits(7, 0); }
    debug_assert { PART = first(7, 6); REG = first(5, 0); EXPECTED = bits(15, 0); }
}
