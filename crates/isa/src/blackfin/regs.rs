//! The registers, as the encodings name them.
//!
//! Every type is one byte whose value is the register's number in the instruction word, so an array indexed by
//! `reg as usize` needs no bounds check, and decoding and encoding are casts.

/// An enum whose value is a field of the instruction word.
macro_rules! coded {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $code:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        $vis enum $name { $($(#[$vmeta])* $variant = $code),* }

        impl $name {
            /// The variant with this value in the instruction word, if there is one.
            pub const fn from_code(code: u16) -> Option<$name> {
                match code {
                    $($code => Some($name::$variant),)*
                    _ => None,
                }
            }

            /// The value in the instruction word.
            pub const fn code(self) -> u16 {
                self as u16
            }
        }

        impl From<$name> for u32 {
            fn from(value: $name) -> u32 {
                value as u32
            }
        }
    };
}
pub(super) use coded;

/// A [`coded`] enum that has a variant for every value of its field.
macro_rules! register_file {
    ($(#[$meta:meta])* $vis:vis enum $name:ident[$mask:literal] { $($variant:ident = $code:literal),* $(,)? }) => {
        coded! { $(#[$meta])* $vis enum $name { $($variant = $code),* } }

        impl $name {
            pub const ALL: [$name; $mask + 1] = [$($name::$variant),*];

            /// The register with this number; higher bits are ignored.
            pub const fn from_bits(bits: u16) -> $name {
                $name::ALL[(bits & $mask) as usize]
            }
        }
    };
}

register_file! {
    /// Data registers.
    pub enum Dreg[7] { R0 = 0, R1 = 1, R2 = 2, R3 = 3, R4 = 4, R5 = 5, R6 = 6, R7 = 7 }
}
register_file! {
    /// Pointer registers; SP and FP are two of them.
    pub enum Preg[7] { P0 = 0, P1 = 1, P2 = 2, P3 = 3, P4 = 4, P5 = 5, Sp = 6, Fp = 7 }
}
register_file! {
    /// Index registers of the data address generators.
    pub enum Ireg[3] { I0 = 0, I1 = 1, I2 = 2, I3 = 3 }
}
register_file! {
    /// Modify registers of the data address generators.
    pub enum Mreg[3] { M0 = 0, M1 = 1, M2 = 2, M3 = 3 }
}
register_file! {
    /// Accumulators of 40 bits.
    pub enum Acc[1] { A0 = 0, A1 = 1 }
}
register_file! {
    /// Which hardware loop: LC0/LT0/LB0 or LC1/LT1/LB1.
    pub enum Loop[1] { Loop0 = 0, Loop1 = 1 }
}
register_file! {
    /// Data and pointer registers together.
    pub enum DPreg[15] {
        R0 = 0, R1 = 1, R2 = 2, R3 = 3, R4 = 4, R5 = 5, R6 = 6, R7 = 7,
        P0 = 8, P1 = 9, P2 = 10, P3 = 11, P4 = 12, P5 = 13, Sp = 14, Fp = 15,
    }
}
register_file! {
    /// Every register that a move can name, by group (3 bits) and number (3 bits). The numbers that name nothing
    /// are here because the simulator's pseudo instructions may hold them.
    pub enum AllReg[63] {
        R0 = 0, R1 = 1, R2 = 2, R3 = 3, R4 = 4, R5 = 5, R6 = 6, R7 = 7,
        P0 = 8, P1 = 9, P2 = 10, P3 = 11, P4 = 12, P5 = 13, Sp = 14, Fp = 15,
        I0 = 16, I1 = 17, I2 = 18, I3 = 19, M0 = 20, M1 = 21, M2 = 22, M3 = 23,
        B0 = 24, B1 = 25, B2 = 26, B3 = 27, L0 = 28, L1 = 29, L2 = 30, L3 = 31,
        A0X = 32, A0W = 33, A1X = 34, A1W = 35, Reserved36 = 36, Reserved37 = 37, Astat = 38, Rets = 39,
        Reserved40 = 40, Reserved41 = 41, Reserved42 = 42, Reserved43 = 43,
        Reserved44 = 44, Reserved45 = 45, Reserved46 = 46, Reserved47 = 47,
        Lc0 = 48, Lt0 = 49, Lb0 = 50, Lc1 = 51, Lt1 = 52, Lb1 = 53, Cycles = 54, Cycles2 = 55,
        Usp = 56, Seqstat = 57, Syscfg = 58, Reti = 59, Retx = 60, Retn = 61, Rete = 62, Emudat = 63,
    }
}
register_file! {
    /// Half of a 32-bit register.
    pub enum Half[1] { Lo = 0, Hi = 1 }
}

/// `Rn.L` or `Rn.H`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dhalf {
    pub reg: Dreg,
    pub half: Half,
}

impl Dreg {
    /// The other register of a pair: `R1` of `R1:0`. Wraps, as the encodings do.
    pub const fn next(self) -> Dreg {
        Dreg::from_bits(self.code() + 1)
    }

    pub const fn half(self, half: Half) -> Dhalf {
        Dhalf { reg: self, half }
    }
}

impl DPreg {
    pub const fn as_dreg(self) -> Option<Dreg> {
        if self.code() < 8 { Some(Dreg::from_bits(self.code())) } else { None }
    }

    pub const fn as_preg(self) -> Option<Preg> {
        if self.code() >= 8 { Some(Preg::from_bits(self.code())) } else { None }
    }
}

impl From<Dreg> for DPreg {
    fn from(reg: Dreg) -> DPreg {
        DPreg::from_bits(reg.code())
    }
}

impl From<Preg> for DPreg {
    fn from(reg: Preg) -> DPreg {
        DPreg::from_bits(8 + reg.code())
    }
}

impl From<DPreg> for AllReg {
    fn from(reg: DPreg) -> AllReg {
        AllReg::from_bits(reg.code())
    }
}

impl From<Dreg> for AllReg {
    fn from(reg: Dreg) -> AllReg {
        AllReg::from_bits(reg.code())
    }
}

impl From<Preg> for AllReg {
    fn from(reg: Preg) -> AllReg {
        AllReg::from_bits(8 + reg.code())
    }
}

impl AllReg {
    pub const fn group(self) -> u16 {
        self.code() >> 3
    }

    pub const fn number(self) -> u16 {
        self.code() & 7
    }

    /// Names nothing.
    pub const fn is_reserved(self) -> bool {
        matches!(self.code(), 36 | 37 | 40..=47)
    }

    pub const fn is_dreg(self) -> bool {
        self.group() == 0
    }

    pub const fn is_preg(self) -> bool {
        self.group() == 1
    }

    /// A part of an accumulator (`A0.X`, `A0.W`, `A1.X`, `A1.W`).
    pub const fn is_accumulator(self) -> bool {
        matches!(self.code(), 32..=35)
    }
}
