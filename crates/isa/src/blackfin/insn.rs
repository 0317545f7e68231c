//! A decoded instruction, with everything an interpreter, a printer or an analysis needs and no raw bits.
//!
//! Registers are typed, immediates are sign-extended and scaled, targets are absolute addresses. One [`Op`] variant
//! stands for one kind of work; where the hardware has several encodings of the same work (three forms of
//! `[P + offset]`), the variant says which one was used, so that the text and the bytes can be made again.
//!
//! What `decode` accepts is what the GNU disassembler prints. The processor accepts a little less; an interpreter
//! checks in addition: [`Op::in_parallel`] for bundles, odd register pairs, and reserved registers.

use super::regs::{Acc, AllReg, DPreg, Dhalf, Dreg, Half, Ireg, Loop, Mreg, Preg, coded};

/// One instruction, or one bundle of three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BfInsn {
    pub at: u32,
    /// 2, 4 or 8 bytes.
    pub len: u8,
    pub op: Op,
    /// The two 16-bit slots of a 64-bit bundle. All operations of a bundle see the registers from before it.
    pub slots: Option<[Op; 2]>,
}

impl BfInsn {
    /// The operations of the bundle, or the only one, in the order of their encoding.
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        std::iter::once(&self.op).chain(self.slots.iter().flatten())
    }

    /// The address just behind the instruction.
    pub fn end(&self) -> u32 {
        self.at.wrapping_add(u32::from(self.len))
    }
}

/// What an instruction does. The comments show GNU's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    // ---- program control ----
    Nop,
    /// The 32-bit `NOP` that starts a bundle of loads and stores.
    Mnop,
    /// `RTS`, `RTI`, ...
    Return(ReturnFrom),
    Idle,
    Csync,
    Ssync,
    Emuexcpt,
    /// `CLI R0`
    Cli(Dreg),
    /// `STI R0`
    Sti(Dreg),
    /// `JUMP (P0)`
    JumpReg(Preg),
    /// `CALL (P0)`
    CallReg(Preg),
    /// `CALL (PC + P0)`
    CallPcReg(Preg),
    /// `JUMP (PC + P0)`
    JumpPcReg(Preg),
    /// `RAISE 0xf`
    Raise(u8),
    /// `EXCPT 0x0`
    Excpt(u8),
    /// `TESTSET (P0)`
    Testset(Preg),
    /// `PREFETCH[P0]`, `FLUSH[P0++]`
    Cache {
        op: CacheOp,
        ptr: Preg,
        post_increment: bool,
    },
    /// `IF CC JUMP`, `IF !CC JUMP ... (BP)`: taken when CC equals `cc`.
    Branch {
        cc: bool,
        predicted: bool,
        target: u32,
    },
    /// `JUMP.S`, 16 bits
    JumpShort {
        target: u32,
    },
    /// `JUMP.L`, 32 bits
    JumpLong {
        target: u32,
    },
    /// `CALL`, 32 bits
    Call {
        target: u32,
    },
    /// `LSETUP(first, last) LC0 = P0`
    LoopSetup {
        which: Loop,
        first: u32,
        last: u32,
        count: LoopCount,
    },
    /// `LINK 0x10`; the size is in bytes.
    Link {
        frame: u32,
    },
    Unlink,

    // ---- stack ----
    /// `[--SP] = RETS`
    Push(AllReg),
    /// `RETS = [SP++]`
    Pop(AllReg),
    /// `[--SP] = (R7:4, P5:3)`
    PushMultiple(RegRange),
    /// `(R7:4, P5:3) = [SP++]`
    PopMultiple(RegRange),

    // ---- moves, CC ----
    /// `R0 = P0`
    Move {
        dst: AllReg,
        src: AllReg,
    },
    /// `IF CC R0 = P0`: moves when CC equals `cc`.
    MoveIf {
        cc: bool,
        dst: DPreg,
        src: DPreg,
    },
    /// `R0 = 0x3f (X)`, `P0 = -0x1 (X)`: 7 bits
    MoveImm {
        dst: DPreg,
        imm: i8,
    },
    /// `R0 += 0x3f`: 7 bits
    AddImm {
        dst: DPreg,
        imm: i8,
    },
    /// `R0 = 0x1234 (X)`, `R0.L = 0x1234`: `value` is all 32 bits for the extended forms, 16 for the halves. Only
    /// registers below 32 (data, pointer, index, modify, base, length).
    LoadImm {
        dst: AllReg,
        part: ImmPart,
        value: u32,
    },
    /// `CC = R0 < R1 (IU)`, `CC = P0 == P1`: both sides are data registers or both are pointers.
    Compare {
        relation: Compare,
        left: DPreg,
        right: DPreg,
    },
    /// `CC = R0 <= 0x2`: `right` is 0..=7 for the unsigned relations, -4..=3 for the others.
    CompareImm {
        relation: Compare,
        left: DPreg,
        right: i8,
    },
    /// `CC = A0 < A1`
    CompareAcc(CompareAcc),
    /// `R0 = CC`
    MoveFromCc(Dreg),
    /// `CC = R0`
    MoveToCc(Dreg),
    /// `CC = !CC`
    NegateCc,
    /// `CC |= AZ`, `AC0 = CC`: `bit` of ASTAT and CC; the result goes to CC or to the bit.
    CcBit {
        op: CcBitOp,
        bit: u8,
        to_cc: bool,
    },

    // ---- 32-bit arithmetic of the 16-bit encodings ----
    Alu2 {
        op: Alu2,
        dst: Dreg,
        src: Dreg,
    },
    Ptr2 {
        op: Ptr2,
        dst: Preg,
        src: Preg,
    },
    /// `BITSET (R0, 0x1f)`, `R0 >>= 0x3`
    BitImm {
        op: BitImm,
        dst: Dreg,
        bit: u8,
    },
    Alu3 {
        op: Alu3,
        dst: Dreg,
        src0: Dreg,
        src1: Dreg,
    },
    Ptr3 {
        op: Ptr3,
        dst: Preg,
        src0: Preg,
        src1: Preg,
    },
    /// `I0 += M0 (BREV)`
    DagAdd {
        dst: Ireg,
        by: Mreg,
        bit_reversed: bool,
    },
    /// `I0 -= M0`
    DagSub {
        dst: Ireg,
        by: Mreg,
    },
    /// `I0 += 0x4`: 2, -2, 4 or -4
    DagAddImm {
        dst: Ireg,
        by: i8,
    },

    // ---- memory ----
    Load {
        what: Load,
        reg: DPreg,
        addr: Address,
    },
    Store {
        what: Store,
        reg: DPreg,
        addr: Address,
    },

    // ---- multiply, multiply and accumulate ----
    /// `R0.H = (A1 += R0.L * R1.H) (M), A0 = R0.L * R1.L (IS)`
    Mac {
        mode: MacMode,
        mixed: bool,
        regs: MacRegs,
        mac1: MacUnit,
        mac0: MacUnit,
    },
    /// `R0.H = R0.L * R1.H (M), R0.L = R0.L * R1.L (IS)`: the units that do not write do nothing.
    Mult {
        mode: MacMode,
        mixed: bool,
        regs: MacRegs,
        mult1: MultUnit,
        mult0: MultUnit,
    },

    // ---- vector and accumulator arithmetic (dsp32alu) ----
    /// `R0 = R1 +|- R2 (S)`
    VecAdd {
        op: VecOp,
        dst: Dreg,
        src0: Dreg,
        src1: Dreg,
        saturate: bool,
        cross: bool,
    },
    /// `R0 = R1 +|+ R2, R3 = R1 -|- R2 (S, ASR)`, or with `crossed_signs` `+|-` and `-|+`
    VecAddSub {
        crossed_signs: bool,
        sum: Dreg,
        difference: Dreg,
        src0: Dreg,
        src1: Dreg,
        saturate: bool,
        cross: bool,
        scale: VecScale,
    },
    /// `R0.L = R1.H + R2.L (NS)`
    AddHalf {
        sub: bool,
        dst: Dhalf,
        src0: Dhalf,
        src1: Dhalf,
        overflow: Overflow,
    },
    /// `R0 = R1 + R2 (S)`, 32 bits
    Add {
        sub: bool,
        dst: Dreg,
        src0: Dreg,
        src1: Dreg,
        overflow: Overflow,
    },
    /// `R0 = R1 + R2, R3 = R1 - R2 (NS)`
    AddSub {
        sum: Dreg,
        difference: Dreg,
        src0: Dreg,
        src1: Dreg,
        overflow: Overflow,
    },
    /// `R0 = A1 + A0, R1 = A1 - A0 (S)`: `minuend` is named first.
    AccAddSub {
        sum: Dreg,
        difference: Dreg,
        minuend: Acc,
        overflow: Overflow,
    },
    /// `R0.L = R1 - R2 (RND12)`
    AddRound {
        sub: bool,
        dst: Dhalf,
        src0: Dreg,
        src1: Dreg,
        round: RoundAt,
    },
    /// `R0.H = R1 (RND)`
    Round {
        dst: Dhalf,
        src: Dreg,
    },
    /// `R0 = MAX (R1, R2)`, `... (V)`
    Max {
        vector: bool,
        dst: Dreg,
        src0: Dreg,
        src1: Dreg,
    },
    Min {
        vector: bool,
        dst: Dreg,
        src0: Dreg,
        src1: Dreg,
    },
    Abs {
        vector: bool,
        dst: Dreg,
        src: Dreg,
    },
    /// `R0 = -R1 (S)`
    Neg {
        dst: Dreg,
        src: Dreg,
        saturate: bool,
    },
    /// `R0 = -R1 (V)`
    VecNeg {
        dst: Dreg,
        src: Dreg,
    },
    /// `A0 = 0`
    AccClear(Accs),
    /// `A0 = A0 (S)`
    AccSaturate(Accs),
    /// `A0 = A1`
    AccCopy {
        dst: Acc,
    },
    /// `A1 = -A0`; the other accumulator of `dst` may be the source.
    AccNeg {
        dst: Acc,
        src: Acc,
    },
    /// `A1 = -A1, A0 = -A0`
    AccNegBoth,
    AccAbs {
        dst: Acc,
        src: Acc,
    },
    AccAbsBoth,
    /// `A0.L = R0.L`, `A1.H = R0.H`
    AccSetHalf {
        dst: Acc,
        src: Dhalf,
    },
    /// `A0 = R0`, sign-extended
    AccSet {
        dst: Acc,
        src: Dreg,
    },
    /// `A0.X = R0.L`
    AccSetExt {
        dst: Acc,
        src: Dreg,
    },
    /// `R0.L = A0.X`
    AccGetExt {
        dst: Dreg,
        src: Acc,
    },
    /// `A0 += A1 (W32)`
    AccAccumulate {
        sub: bool,
        w32: bool,
    },
    /// `R0 = (A0 += A1)`
    AccAccumulateTo {
        dst: Dreg,
    },
    /// `R0.L = (A0 += A1)`
    AccAccumulateToHalf {
        dst: Dhalf,
    },
    /// `R0.H = R0.L = SIGN (R1.H) * R2.H + SIGN (R1.L) * R2.L`
    SignMultiply {
        dst: Dreg,
        src0: Dreg,
        src1: Dreg,
    },
    /// `R1 = A1.L + A1.H, R0 = A0.L + A0.H`
    AccAddHalves {
        from_a1: Dreg,
        from_a0: Dreg,
    },
    /// `(R1, R0) = SEARCH R2 (GT)`
    Search {
        dst1: Dreg,
        dst0: Dreg,
        src: Dreg,
        mode: SearchMode,
    },
    /// `SAA (R1:0, R3:2) (R)`
    Saa {
        src0: Dreg,
        src1: Dreg,
        reversed: bool,
    },
    Disalgnexcpt,
    /// `R0 = BYTEOP1P (R1:0, R3:2) (T, R)`
    ByteAverage {
        dst: Dreg,
        src0: Dreg,
        src1: Dreg,
        truncate: bool,
        reversed: bool,
    },
    /// `R0 = BYTEOP2P (R1:0, R3:2) (RNDH, R)`
    ByteAverage4 {
        dst: Dreg,
        src0: Dreg,
        src1: Dreg,
        truncate: bool,
        half: Half,
        reversed: bool,
    },
    /// `R0 = BYTEOP3P (R1:0, R3:2) (HI, R)`
    ByteAddClip {
        dst: Dreg,
        src0: Dreg,
        src1: Dreg,
        half: Half,
        reversed: bool,
    },
    /// `(R1, R0) = BYTEOP16P (R1:0, R3:2) (R)`, `BYTEOP16M`
    ByteAdd {
        sub: bool,
        dst1: Dreg,
        dst0: Dreg,
        src0: Dreg,
        src1: Dreg,
        reversed: bool,
    },
    /// `R0 = BYTEPACK (R1, R2)`
    BytePack {
        dst: Dreg,
        src0: Dreg,
        src1: Dreg,
    },
    /// `(R1, R0) = BYTEUNPACK R3:2 (R)`
    ByteUnpack {
        dst1: Dreg,
        dst0: Dreg,
        src: Dreg,
        reversed: bool,
    },

    // ---- shifts by a register (dsp32shift) ----
    /// `R0.L = ASHIFT R1.H BY R2.L (S)`
    ShiftHalf {
        op: Shift,
        dst: Dhalf,
        src: Dhalf,
        by: Dreg,
    },
    /// `R0 = LSHIFT R1 BY R2.L (V)`
    ShiftVec {
        op: Shift,
        dst: Dreg,
        src: Dreg,
        by: Dreg,
    },
    /// `R0 = ASHIFT R1 BY R2.L (S)`
    Shift {
        op: Shift,
        dst: Dreg,
        src: Dreg,
        by: Dreg,
    },
    /// `R0 = ROT R1 BY R2.L`. The hardware has two encodings.
    Rotate {
        dst: Dreg,
        src: Dreg,
        by: Dreg,
    },
    /// `A0 = LSHIFT A0 BY R0.L`, `A0 = ROT A0 BY R0.L`
    ShiftAcc {
        op: AccShift,
        acc: Acc,
        by: Dreg,
    },
    /// `R0 = PACK (R1.L, R2.H)`
    Pack {
        dst: Dreg,
        high: Dhalf,
        low: Dhalf,
    },
    /// `R0.L = SIGNBITS R1`
    Signbits {
        dst: Dreg,
        src: Dreg,
    },
    SignbitsHalf {
        dst: Dreg,
        src: Dhalf,
    },
    SignbitsAcc {
        dst: Dreg,
        src: Acc,
    },
    /// `R0.L = ONES R1`
    Ones {
        dst: Dreg,
        src: Dreg,
    },
    /// `R0.L = EXPADJ (R1, R2.L) (V)`
    Expadj {
        vector: bool,
        dst: Dreg,
        src: Dreg,
        limit: Dreg,
    },
    ExpadjHalf {
        dst: Dreg,
        src: Dhalf,
        limit: Dreg,
    },
    /// `BITMUX (R0, R1, A0) (ASL)`
    Bitmux {
        src0: Dreg,
        src1: Dreg,
        dir: ShiftDir,
    },
    /// `R0.L = VIT_MAX (R1) (ASL)`
    VitMax {
        dst: Dreg,
        src: Dreg,
        dir: ShiftDir,
    },
    /// `R0 = VIT_MAX (R1, R2) (ASR)`: `src1` is named first.
    VitMax2 {
        dst: Dreg,
        src1: Dreg,
        src0: Dreg,
        dir: ShiftDir,
    },
    /// `R0 = EXTRACT (R1, R2.L) (Z)`
    Extract {
        dst: Dreg,
        scene: Dreg,
        pattern: Dreg,
        sign_extend: bool,
    },
    /// `R0 = DEPOSIT (R1, R2) (X)`
    Deposit {
        dst: Dreg,
        background: Dreg,
        foreground: Dreg,
        sign_extend: bool,
    },
    /// `R0.L = CC = BXORSHIFT (A0, R1)`
    BxorShift {
        dst: Dreg,
        src: Dreg,
    },
    /// `R0.L = CC = BXOR (A0, R1)`
    Bxor {
        dst: Dreg,
        src: Dreg,
    },
    /// `A0 = BXORSHIFT (A0, A1, CC)`
    BxorShiftAcc,
    /// `R0.L = CC = BXOR (A0, A1, CC)`
    BxorAcc {
        dst: Dreg,
    },
    /// `R0 = ALIGN8 (R1, R2)`: `bytes` is 1, 2 or 3; `src1` is named first.
    Align {
        bytes: u8,
        dst: Dreg,
        src1: Dreg,
        src0: Dreg,
    },

    // ---- shifts by a constant (dsp32shiftimm) ----
    // `by` is the 6-bit field, sign-extended: positive to the left, negative to the right. GNU's text shows it
    // through several formats.
    /// `R0.L = R1.H >>> 0x3`
    ShiftHalfImm {
        op: Shift,
        dst: Dhalf,
        src: Dhalf,
        by: i8,
    },
    /// `R0 = R1 << 0x3 (V, S)`
    ShiftVecImm {
        op: Shift,
        dst: Dreg,
        src: Dreg,
        by: i8,
    },
    /// `R0 = R1 >> 0x3`
    ShiftImm {
        op: Shift,
        dst: Dreg,
        src: Dreg,
        by: i8,
    },
    /// `R0 = ROT R1 BY -0x3`
    RotateImm {
        dst: Dreg,
        src: Dreg,
        by: i8,
    },
    /// `A0 = A0 >>> 0x3`, `A0 = ROT A0 BY 0x3`
    ShiftAccImm {
        op: AccShift,
        acc: Acc,
        by: i8,
    },

    // ---- pseudo instructions of the simulator ----
    Abort,
    Hlt,
    DbgHalt,
    /// `DBG`
    Dbg,
    /// `DBG A0`
    DbgAcc(Acc),
    /// `DBG R0`; may name a reserved register.
    DbgReg(AllReg),
    /// `DBGCMPLX (R0)`
    DbgCmplx(Dreg),
    /// `PRNT R0`; may name a reserved register.
    Prnt(AllReg),
    /// `OUTC R0`
    OutcReg(Dreg),
    /// `OUTC 0x41`
    OutcImm(u8),
    /// `DBGA (R0.L, 0x1234)`, `DBGAH (ASTAT, 0x1234)`
    Assert {
        part: AssertPart,
        reg: AllReg,
        expected: u16,
    },
}

impl Op {
    /// May the GNU disassembler's reading of a bundle have this in a 16-bit slot? The processor is stricter: it takes
    /// only `NOP`, loads and stores, and `DagAdd`, `DagSub`, `DagAddImm`.
    pub fn in_parallel(&self) -> bool {
        matches!(
            self,
            Op::Nop
                | Op::Move { .. }
                | Op::Alu2 { .. }
                | Op::Ptr2 { .. }
                | Op::Alu3 { .. }
                | Op::Ptr3 { .. }
                | Op::DagAdd { .. }
                | Op::DagSub { .. }
                | Op::DagAddImm { .. }
                | Op::Load { .. }
                | Op::Store { .. }
        )
    }
}

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
