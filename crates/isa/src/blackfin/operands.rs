//! What stands in an [`Op`](super::Op) beside registers and numbers: opcodes within a family, options, addresses.

use super::regs::{Dreg, Half, Ireg, Mreg, Preg, coded};

coded! {
    pub enum ReturnFrom {
        /// `RTS`: from a call, to RETS
        Subroutine = 0,
        /// `RTI`: from an interrupt, to RETI
        Interrupt = 1,
        /// `RTX`: from an exception, to RETX
        Exception = 2,
        /// `RTN`: from a non-maskable interrupt, to RETN
        Nmi = 3,
        /// `RTE`: from emulation, to RETE
        Emulation = 4,
    }
}

coded! {
    pub enum CacheOp { Prefetch = 0, FlushInv = 1, Flush = 2, Iflush = 3 }
}

/// `(R7:d, P5:p)`: from the named registers up to R7 and P5. At least one is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegRange {
    pub dregs: Option<Dreg>,
    /// P0 to P5.
    pub pregs: Option<Preg>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopCount {
    /// LC stays as it is.
    Keep,
    /// `LC0 = P0`
    Reg(Preg),
    /// `LC0 = P0 >> 0x1`
    HalfReg(Preg),
}

/// What an immediate load writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImmPart {
    /// The low half; the high half stays.
    Lo,
    /// The high half; the low half stays.
    Hi,
    /// All; the constant was sign-extended from 16 bits.
    SignExtended,
    /// All; the constant was zero-extended from 16 bits.
    ZeroExtended,
}

coded! {
    pub enum Compare {
        Equal = 0,
        Less = 1,
        LessOrEqual = 2,
        LessUnsigned = 3,
        LessOrEqualUnsigned = 4,
    }
}

impl Compare {
    pub fn is_unsigned(self) -> bool {
        matches!(self, Compare::LessUnsigned | Compare::LessOrEqualUnsigned)
    }
}

coded! {
    /// `A0` on the left, `A1` on the right.
    pub enum CompareAcc { Equal = 5, Less = 6, LessOrEqual = 7 }
}

coded! {
    pub enum CcBitOp { Assign = 0, Or = 1, And = 2, Xor = 3 }
}

coded! {
    /// Two-operand arithmetic on data registers.
    pub enum Alu2 {
        /// `R0 >>>= R1`
        ShiftArithmetic = 0,
        /// `R0 >>= R1`
        ShiftRight = 1,
        /// `R0 <<= R1`
        ShiftLeft = 2,
        /// `R0 *= R1`
        Multiply = 3,
        /// `R0 = (R0 + R1) << 0x1`
        AddDouble = 4,
        /// `R0 = (R0 + R1) << 0x2`
        AddQuadruple = 5,
        Divq = 8,
        Divs = 9,
        /// `R0 = R1.L (X)`
        SignExtendHalf = 10,
        /// `R0 = R1.L (Z)`
        ZeroExtendHalf = 11,
        /// `R0 = R1.B (X)`
        SignExtendByte = 12,
        /// `R0 = R1.B (Z)`
        ZeroExtendByte = 13,
        /// `R0 = -R1`
        Negate = 14,
        /// `R0 =~ R1`
        Not = 15,
    }
}

coded! {
    /// Two-operand arithmetic on pointer registers.
    pub enum Ptr2 {
        /// `P0 -= P1`
        Sub = 0,
        /// `P0 = P1 << 0x2`
        ShiftLeft2 = 1,
        /// `P0 = P1 >> 0x2`
        ShiftRight2 = 3,
        /// `P0 = P1 >> 0x1`
        ShiftRight1 = 4,
        /// `P0 += P1 (BREV)`
        AddBitReversed = 5,
        /// `P0 = (P0 + P1) << 0x1`
        AddDouble = 6,
        /// `P0 = (P0 + P1) << 0x2`
        AddQuadruple = 7,
    }
}

coded! {
    /// A data register and a 5-bit constant.
    pub enum BitImm {
        /// `CC = !BITTST (R0, 0x1)`
        TestClear = 0,
        /// `CC = BITTST (R0, 0x1)`
        TestSet = 1,
        Set = 2,
        Toggle = 3,
        Clear = 4,
        /// `R0 >>>= 0x1`
        ShiftArithmetic = 5,
        /// `R0 >>= 0x1`
        ShiftRight = 6,
        /// `R0 <<= 0x1`
        ShiftLeft = 7,
    }
}

coded! {
    /// Three-operand arithmetic on data registers.
    pub enum Alu3 { Add = 0, Sub = 1, And = 2, Or = 3, Xor = 4 }
}

coded! {
    /// Three-operand arithmetic on pointer registers.
    pub enum Ptr3 {
        /// `P0 = P1 + P2`; of a register with itself `P0 = P1 << 0x1`
        Add = 5,
        /// `P0 = P1 + (P2 << 0x1)`
        AddDouble = 6,
        /// `P0 = P1 + (P2 << 0x2)`
        AddQuadruple = 7,
    }
}

/// How much a load reads and what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Load {
    /// 32 bits into a data or pointer register.
    Word,
    /// 16 bits, zero-extended, into a data register; the others below likewise.
    HalfZero,
    HalfSign,
    ByteZero,
    ByteSign,
    /// 16 bits into `Rn.L`; the other half stays.
    Lo,
    /// 16 bits into `Rn.H`; the other half stays.
    Hi,
}

/// How much of the register a store writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Store {
    Word,
    /// The low 16 bits, named by the whole register: `W[P0] = R0`.
    Half,
    Byte,
    /// `W[P0 ++ P1] = R0.L`
    Lo,
    /// `W[P0 ++ P1] = R0.H`
    Hi,
}

/// Where a load or store goes. The index registers wrap at their circular buffer (B, L) when L is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// `[P0]`
    At(Preg),
    /// `[P0++]`: by the width of the access, after it
    PostIncrement(Preg),
    /// `[P0--]`
    PostDecrement(Preg),
    /// `[P0 + 0x10]`; `form` only tells the encodings apart.
    Offset { base: Preg, offset: i32, form: OffsetForm },
    /// `[P0 ++ P1]`: `index` is added after the access, unless both are the same register.
    PostAdd { base: Preg, index: Preg },
    /// `[I0]`
    DagAt(Ireg),
    /// `[I0++]`
    DagPostIncrement(Ireg),
    /// `[I0--]`
    DagPostDecrement(Ireg),
    /// `[I0 ++ M0]`
    DagPostAdd { base: Ireg, by: Mreg },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OffsetForm {
    /// 16 bits: 0 to 15 units of the access.
    Short,
    /// 16 bits: FP and -32 to -1 words.
    Frame,
    /// 32 bits: a signed 16-bit number of units of the access.
    Long,
}

coded! {
    /// How multipliers read their operands and how results are rounded and saturated.
    pub enum MacMode {
        /// Signed fractions
        Default = 0,
        S2rnd = 1,
        T = 2,
        W32 = 3,
        Fu = 4,
        Tfu = 6,
        Is = 8,
        Iss2 = 9,
        Ih = 11,
        Iu = 12,
    }
}

/// The registers both multipliers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MacRegs {
    /// Results are 32 bits: unit 1 writes `dst.next()`, unit 0 `dst`. Otherwise unit 1 writes `dst.H`, unit 0 `dst.L`.
    pub pair: bool,
    pub dst: Dreg,
    pub src0: Dreg,
    pub src1: Dreg,
}

/// One multiply-and-accumulate unit: unit 1 works on A1, unit 0 on A0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MacUnit {
    pub op: MacOp,
    /// The accumulator is also written to the data register.
    pub write: bool,
    /// Which halves of `src0` and `src1` are multiplied.
    pub half0: Half,
    pub half1: Half,
}

/// One multiplier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MultUnit {
    pub write: bool,
    pub half0: Half,
    pub half1: Half,
}

coded! {
    pub enum MacOp {
        /// `A0 = x * y`
        Assign = 0,
        Add = 1,
        Sub = 2,
        /// The accumulator stays as it is.
        Keep = 3,
    }
}

coded! {
    /// High halves, then low halves.
    pub enum VecOp { AddAdd = 0, AddSub = 1, SubAdd = 2, SubSub = 3 }
}

coded! {
    pub enum VecScale {
        None = 0,
        /// Printed as if it were not there; the processor has no such form.
        Reserved = 1,
        /// `(ASR)`: halve the results
        Halve = 2,
        /// `(ASL)`: double the results
        Double = 3,
    }
}

coded! {
    /// What an addition does when it overflows: bit 1 is `s`, bit 0 is `x`. With `x` set GNU prints no option; the
    /// processor has no such form.
    pub enum Overflow { Wrap = 0, WrapUnmarked = 1, Saturate = 2, SaturateUnmarked = 3 }
}

impl Overflow {
    pub fn saturates(self) -> bool {
        matches!(self, Overflow::Saturate | Overflow::SaturateUnmarked)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoundAt {
    /// `(RND12)`: shift left by 4, round at bit 16
    Rnd12,
    /// `(RND20)`: shift right by 4, round at bit 16
    Rnd20,
}

coded! {
    pub enum Accs { A0 = 0, A1 = 1, Both = 2 }
}

coded! {
    pub enum SearchMode { Greater = 0, GreaterOrEqual = 1, Less = 2, LessOrEqual = 3 }
}

coded! {
    /// The direction is the sign of the count: positive to the left.
    pub enum Shift {
        /// Arithmetic
        Arithmetic = 0,
        /// Arithmetic, saturating to the left
        Saturating = 1,
        Logical = 2,
    }
}

coded! {
    pub enum AccShift { Arithmetic = 0, Logical = 1, Rotate = 2 }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShiftDir {
    /// `(ASL)`
    Left,
    /// `(ASR)`
    Right,
}

coded! {
    /// Which half of the register an assertion looks at, and by which name.
    pub enum AssertPart {
        /// `DBGA (R0.L, ...)`
        Lo = 0,
        /// `DBGA (R0.H, ...)`
        Hi = 1,
        /// `DBGAL (R0, ...)`
        AllLo = 2,
        /// `DBGAH (R0, ...)`
        AllHi = 3,
    }
}
