//! A decoded instruction, with everything an interpreter, a printer or an analysis needs and no raw bits.
//!
//! Registers are typed, immediates are sign-extended and scaled, targets are absolute addresses. One [`Op`] variant
//! stands for one kind of work; where the hardware has several encodings of the same work (three forms of
//! `[P + offset]`), the variant says which one was used, so that the text and the bytes can be made again.
//!
//! What `decode` accepts is what the GNU disassembler prints. The processor accepts a little less; an interpreter
//! checks in addition: [`Op::in_parallel`] for bundles, odd register pairs, and reserved registers.

use super::operands::*;
use super::regs::{Acc, AllReg, DPreg, Dhalf, Dreg, Half, Ireg, Loop, Mreg, Preg};

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
// One operation a line: this is a table.
#[rustfmt::skip]
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
    Cache { op: CacheOp, ptr: Preg, post_increment: bool },
    /// `IF CC JUMP`, `IF !CC JUMP ... (BP)`: taken when CC equals `cc`.
    Branch { cc: bool, predicted: bool, target: u32 },
    /// `JUMP.S`, 16 bits
    JumpShort { target: u32 },
    /// `JUMP.L`, 32 bits
    JumpLong { target: u32 },
    /// `CALL`, 32 bits
    Call { target: u32 },
    /// `LSETUP(first, last) LC0 = P0`
    LoopSetup { which: Loop, first: u32, last: u32, count: LoopCount },
    /// `LINK 0x10`; the size is in bytes.
    Link { frame: u32 },
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
    Move { dst: AllReg, src: AllReg },
    /// `IF CC R0 = P0`: moves when CC equals `cc`.
    MoveIf { cc: bool, dst: DPreg, src: DPreg },
    /// `R0 = 0x3f (X)`, `P0 = -0x1 (X)`: 7 bits
    MoveImm { dst: DPreg, imm: i8 },
    /// `R0 += 0x3f`: 7 bits
    AddImm { dst: DPreg, imm: i8 },
    /// `R0 = 0x1234 (X)`, `R0.L = 0x1234`: `value` is all 32 bits for the extended forms, 16 for the halves. Only
    /// registers below 32 (data, pointer, index, modify, base, length).
    LoadImm { dst: AllReg, part: ImmPart, value: u32 },
    /// `CC = R0 < R1 (IU)`, `CC = P0 == P1`: both sides are data registers or both are pointers.
    Compare { relation: Compare, left: DPreg, right: DPreg },
    /// `CC = R0 <= 0x2`: `right` is 0..=7 for the unsigned relations, -4..=3 for the others.
    CompareImm { relation: Compare, left: DPreg, right: i8 },
    /// `CC = A0 < A1`
    CompareAcc(CompareAcc),
    /// `R0 = CC`
    MoveFromCc(Dreg),
    /// `CC = R0`
    MoveToCc(Dreg),
    /// `CC = !CC`
    NegateCc,
    /// `CC |= AZ`, `AC0 = CC`: `bit` of ASTAT and CC; the result goes to CC or to the bit.
    CcBit { op: CcBitOp, bit: u8, to_cc: bool },

    // ---- 32-bit arithmetic of the 16-bit encodings ----
    Alu2 { op: Alu2, dst: Dreg, src: Dreg },
    Ptr2 { op: Ptr2, dst: Preg, src: Preg },
    /// `BITSET (R0, 0x1f)`, `R0 >>= 0x3`
    BitImm { op: BitImm, dst: Dreg, bit: u8 },
    Alu3 { op: Alu3, dst: Dreg, src0: Dreg, src1: Dreg },
    Ptr3 { op: Ptr3, dst: Preg, src0: Preg, src1: Preg },
    /// `I0 += M0 (BREV)`
    DagAdd { dst: Ireg, by: Mreg, bit_reversed: bool },
    /// `I0 -= M0`
    DagSub { dst: Ireg, by: Mreg },
    /// `I0 += 0x4`: 2, -2, 4 or -4
    DagAddImm { dst: Ireg, by: i8 },

    // ---- memory ----
    Load { what: Load, reg: DPreg, addr: Address },
    Store { what: Store, reg: DPreg, addr: Address },

    // ---- multiply, multiply and accumulate ----
    /// `R0.H = (A1 += R0.L * R1.H) (M), A0 = R0.L * R1.L (IS)`
    Mac { mode: MacMode, mixed: bool, regs: MacRegs, mac1: MacUnit, mac0: MacUnit },
    /// `R0.H = R0.L * R1.H (M), R0.L = R0.L * R1.L (IS)`: the units that do not write do nothing.
    Mult { mode: MacMode, mixed: bool, regs: MacRegs, mult1: MultUnit, mult0: MultUnit },

    // ---- vector and accumulator arithmetic (dsp32alu) ----
    /// `R0 = R1 +|- R2 (S)`
    VecAdd { op: VecOp, dst: Dreg, src0: Dreg, src1: Dreg, saturate: bool, cross: bool },
    /// `R0 = R1 +|+ R2, R3 = R1 -|- R2 (S, ASR)`, or with `crossed_signs` `+|-` and `-|+`
    VecAddSub {
        crossed_signs: bool, sum: Dreg, difference: Dreg, src0: Dreg, src1: Dreg,
        saturate: bool, cross: bool, scale: VecScale,
    },
    /// `R0.L = R1.H + R2.L (NS)`
    AddHalf { sub: bool, dst: Dhalf, src0: Dhalf, src1: Dhalf, overflow: Overflow },
    /// `R0 = R1 + R2 (S)`, 32 bits
    Add { sub: bool, dst: Dreg, src0: Dreg, src1: Dreg, overflow: Overflow },
    /// `R0 = R1 + R2, R3 = R1 - R2 (NS)`
    AddSub { sum: Dreg, difference: Dreg, src0: Dreg, src1: Dreg, overflow: Overflow },
    /// `R0 = A1 + A0, R1 = A1 - A0 (S)`: `minuend` is named first.
    AccAddSub { sum: Dreg, difference: Dreg, minuend: Acc, overflow: Overflow },
    /// `R0.L = R1 - R2 (RND12)`
    AddRound { sub: bool, dst: Dhalf, src0: Dreg, src1: Dreg, round: RoundAt },
    /// `R0.H = R1 (RND)`
    Round { dst: Dhalf, src: Dreg },
    /// `R0 = MAX (R1, R2)`, `... (V)`
    Max { vector: bool, dst: Dreg, src0: Dreg, src1: Dreg },
    Min { vector: bool, dst: Dreg, src0: Dreg, src1: Dreg },
    Abs { vector: bool, dst: Dreg, src: Dreg },
    /// `R0 = -R1 (S)`
    Neg { dst: Dreg, src: Dreg, saturate: bool },
    /// `R0 = -R1 (V)`
    VecNeg { dst: Dreg, src: Dreg },
    /// `A0 = 0`
    AccClear(Accs),
    /// `A0 = A0 (S)`
    AccSaturate(Accs),
    /// `A0 = A1`
    AccCopy { dst: Acc },
    /// `A1 = -A0`; the other accumulator of `dst` may be the source.
    AccNeg { dst: Acc, src: Acc },
    /// `A1 = -A1, A0 = -A0`
    AccNegBoth,
    AccAbs { dst: Acc, src: Acc },
    AccAbsBoth,
    /// `A0.L = R0.L`, `A1.H = R0.H`
    AccSetHalf { dst: Acc, src: Dhalf },
    /// `A0 = R0`, sign-extended
    AccSet { dst: Acc, src: Dreg },
    /// `A0.X = R0.L`
    AccSetExt { dst: Acc, src: Dreg },
    /// `R0.L = A0.X`
    AccGetExt { dst: Dreg, src: Acc },
    /// `A0 += A1 (W32)`
    AccAccumulate { sub: bool, w32: bool },
    /// `R0 = (A0 += A1)`
    AccAccumulateTo { dst: Dreg },
    /// `R0.L = (A0 += A1)`
    AccAccumulateToHalf { dst: Dhalf },
    /// `R0.H = R0.L = SIGN (R1.H) * R2.H + SIGN (R1.L) * R2.L`
    SignMultiply { dst: Dreg, src0: Dreg, src1: Dreg },
    /// `R1 = A1.L + A1.H, R0 = A0.L + A0.H`
    AccAddHalves { from_a1: Dreg, from_a0: Dreg },
    /// `(R1, R0) = SEARCH R2 (GT)`
    Search { dst1: Dreg, dst0: Dreg, src: Dreg, mode: SearchMode },
    /// `SAA (R1:0, R3:2) (R)`
    Saa { src0: Dreg, src1: Dreg, reversed: bool },
    Disalgnexcpt,
    /// `R0 = BYTEOP1P (R1:0, R3:2) (T, R)`
    ByteAverage { dst: Dreg, src0: Dreg, src1: Dreg, truncate: bool, reversed: bool },
    /// `R0 = BYTEOP2P (R1:0, R3:2) (RNDH, R)`
    ByteAverage4 { dst: Dreg, src0: Dreg, src1: Dreg, truncate: bool, half: Half, reversed: bool },
    /// `R0 = BYTEOP3P (R1:0, R3:2) (HI, R)`
    ByteAddClip { dst: Dreg, src0: Dreg, src1: Dreg, half: Half, reversed: bool },
    /// `(R1, R0) = BYTEOP16P (R1:0, R3:2) (R)`, `BYTEOP16M`
    ByteAdd { sub: bool, dst1: Dreg, dst0: Dreg, src0: Dreg, src1: Dreg, reversed: bool },
    /// `R0 = BYTEPACK (R1, R2)`
    BytePack { dst: Dreg, src0: Dreg, src1: Dreg },
    /// `(R1, R0) = BYTEUNPACK R3:2 (R)`
    ByteUnpack { dst1: Dreg, dst0: Dreg, src: Dreg, reversed: bool },

    // ---- shifts by a register (dsp32shift) ----
    /// `R0.L = ASHIFT R1.H BY R2.L (S)`
    ShiftHalf { op: Shift, dst: Dhalf, src: Dhalf, by: Dreg },
    /// `R0 = LSHIFT R1 BY R2.L (V)`
    ShiftVec { op: Shift, dst: Dreg, src: Dreg, by: Dreg },
    /// `R0 = ASHIFT R1 BY R2.L (S)`
    Shift { op: Shift, dst: Dreg, src: Dreg, by: Dreg },
    /// `R0 = ROT R1 BY R2.L`. The hardware has two encodings.
    Rotate { dst: Dreg, src: Dreg, by: Dreg },
    /// `A0 = LSHIFT A0 BY R0.L`, `A0 = ROT A0 BY R0.L`
    ShiftAcc { op: AccShift, acc: Acc, by: Dreg },
    /// `R0 = PACK (R1.L, R2.H)`
    Pack { dst: Dreg, high: Dhalf, low: Dhalf },
    /// `R0.L = SIGNBITS R1`
    Signbits { dst: Dreg, src: Dreg },
    SignbitsHalf { dst: Dreg, src: Dhalf },
    SignbitsAcc { dst: Dreg, src: Acc },
    /// `R0.L = ONES R1`
    Ones { dst: Dreg, src: Dreg },
    /// `R0.L = EXPADJ (R1, R2.L) (V)`
    Expadj { vector: bool, dst: Dreg, src: Dreg, limit: Dreg },
    ExpadjHalf { dst: Dreg, src: Dhalf, limit: Dreg },
    /// `BITMUX (R0, R1, A0) (ASL)`
    Bitmux { src0: Dreg, src1: Dreg, dir: ShiftDir },
    /// `R0.L = VIT_MAX (R1) (ASL)`
    VitMax { dst: Dreg, src: Dreg, dir: ShiftDir },
    /// `R0 = VIT_MAX (R1, R2) (ASR)`: `src1` is named first.
    VitMax2 { dst: Dreg, src1: Dreg, src0: Dreg, dir: ShiftDir },
    /// `R0 = EXTRACT (R1, R2.L) (Z)`
    Extract { dst: Dreg, scene: Dreg, pattern: Dreg, sign_extend: bool },
    /// `R0 = DEPOSIT (R1, R2) (X)`
    Deposit { dst: Dreg, background: Dreg, foreground: Dreg, sign_extend: bool },
    /// `R0.L = CC = BXORSHIFT (A0, R1)`
    BxorShift { dst: Dreg, src: Dreg },
    /// `R0.L = CC = BXOR (A0, R1)`
    Bxor { dst: Dreg, src: Dreg },
    /// `A0 = BXORSHIFT (A0, A1, CC)`
    BxorShiftAcc,
    /// `R0.L = CC = BXOR (A0, A1, CC)`
    BxorAcc { dst: Dreg },
    /// `R0 = ALIGN8 (R1, R2)`: `bytes` is 1, 2 or 3; `src1` is named first.
    Align { bytes: u8, dst: Dreg, src1: Dreg, src0: Dreg },

    // ---- shifts by a constant (dsp32shiftimm) ----
    // `by` is the 6-bit field, sign-extended: positive to the left, negative to the right. GNU's text shows it
    // through several formats.
    /// `R0.L = R1.H >>> 0x3`
    ShiftHalfImm { op: Shift, dst: Dhalf, src: Dhalf, by: i8 },
    /// `R0 = R1 << 0x3 (V, S)`
    ShiftVecImm { op: Shift, dst: Dreg, src: Dreg, by: i8 },
    /// `R0 = R1 >> 0x3`
    ShiftImm { op: Shift, dst: Dreg, src: Dreg, by: i8 },
    /// `R0 = ROT R1 BY -0x3`
    RotateImm { dst: Dreg, src: Dreg, by: i8 },
    /// `A0 = A0 >>> 0x3`, `A0 = ROT A0 BY 0x3`
    ShiftAccImm { op: AccShift, acc: Acc, by: i8 },

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
    Assert { part: AssertPart, reg: AllReg, expected: u16 },
}

impl Op {
    /// Does it write memory?
    pub fn stores(&self) -> bool {
        matches!(self, Op::Store { .. } | Op::Push(_) | Op::PushMultiple(_) | Op::Link { .. } | Op::Testset(_))
    }

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
