//! The form in which the interpreter keeps instructions.
//!
//! An [`Op`] of the decoder says what an instruction is; a [`Uop`] says what to do, with the choices made that do not
//! change from run to run. What real programs execute most has a variant of its own. Uops are small, so that a block of
//! them is a few cache lines.

use lancet_isa::blackfin::{
    Address, AllReg, Alu2, BitImm, CcBitOp, Compare, DPreg, Dreg, Ireg, Load, Loop, LoopCount, Mreg, Op, Preg, Ptr2,
    Store,
};

/// One of the 32 registers that stand in [`crate::state::State::r`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct R(pub u8);

impl R {
    #[inline(always)]
    pub fn index(self) -> usize {
        usize::from(self.0 & 31)
    }
}

/// A data register that is loaded or stored through a pointer and an offset, or which the pointer then passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mem {
    pub reg: DPreg,
    pub base: Preg,
    pub offset: i32,
}

#[rustfmt::skip]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uop {
    Nop,
    /// Not for the fast path.
    Slow,

    // ---- control ----
    Branch { cc: bool, target: u32 },
    Jump { target: u32 },
    Call { target: u32, back: u32 },
    JumpReg(Preg),
    CallReg { to: Preg, back: u32 },
    /// `JUMP (PC + P0)`
    JumpOffset { by: Preg, pc: u32 },
    CallOffset { by: Preg, pc: u32 },
    ReturnSubroutine,
    LoopSetup { which: Loop, count: LoopCount, top: u32, bottom: u32 },

    // ---- moves, CC ----
    Const { dst: R, value: u32 },
    SetLow { dst: R, value: u16 },
    SetHigh { dst: R, value: u16 },
    Move { dst: R, src: R },
    MoveIf { cc: bool, dst: DPreg, src: DPreg },
    FromAstat(Dreg),
    ToAstat(R),
    FromRets(R),
    ToRets(R),
    /// A call that the block follows.
    SetRets(u32),
    FromAccExt { dst: R, acc: u8 },
    FromAccWord { dst: R, acc: u8 },
    ToAccExt { acc: u8, src: R },
    ToAccWord { acc: u8, src: R },
    FromLoopCount { dst: R, which: u8 },
    ToLoopCount { which: u8, src: R },
    Equal { left: Dreg, right: Dreg },
    Less { left: Dreg, right: Dreg },
    LessOrEqual { left: Dreg, right: Dreg },
    LessUnsigned { left: Dreg, right: Dreg },
    LessOrEqualUnsigned { left: Dreg, right: Dreg },
    EqualImm { left: Dreg, right: i8 },
    LessImm { left: Dreg, right: i8 },
    LessOrEqualImm { left: Dreg, right: i8 },
    LessUnsignedImm { left: Dreg, right: i8 },
    LessOrEqualUnsignedImm { left: Dreg, right: i8 },
    ComparePointers { relation: Compare, left: Preg, right: Preg },
    ComparePointerImm { relation: Compare, left: Preg, right: i8 },
    MoveFromCc(Dreg),
    MoveToCc(Dreg),
    NegateCc,
    CcBit { op: CcBitOp, bit: u8, to_cc: bool },
    BitTest { set: bool, reg: Dreg, bit: u8 },

    // ---- arithmetic ----
    AddImm { dst: Dreg, imm: i8 },
    AddImmP { dst: Preg, imm: i8 },
    Add { dst: Dreg, a: Dreg, b: Dreg },
    Sub { dst: Dreg, a: Dreg, b: Dreg },
    And { dst: Dreg, a: Dreg, b: Dreg },
    Or { dst: Dreg, a: Dreg, b: Dreg },
    Xor { dst: Dreg, a: Dreg, b: Dreg },
    AddP { dst: Preg, a: Preg, b: Preg, shift: u8 },
    Ptr2 { op: Ptr2, dst: Preg, src: Preg },
    Multiply { dst: Dreg, src: Dreg },
    SignExtendHalf { dst: Dreg, src: Dreg },
    ZeroExtendHalf { dst: Dreg, src: Dreg },
    ZeroExtendByte { dst: Dreg, src: Dreg },
    Alu2 { op: Alu2, dst: Dreg, src: Dreg },
    ShiftRightArithmeticImm { dst: Dreg, by: u8 },
    ShiftRightImm { dst: Dreg, by: u8 },
    ShiftLeftImm { dst: Dreg, by: u8 },
    BitImm { op: BitImm, dst: Dreg, bit: u8 },
    DagAdd { dst: Ireg, by: Mreg },
    DagAddBitReversed { dst: Ireg, by: Mreg },
    DagSub { dst: Ireg, by: Mreg },
    DagAddImm { dst: Ireg, by: u8 },
    DagSubImm { dst: Ireg, by: u8 },
    /// The dsp32 families.
    Dsp(Op),

    // ---- memory ----
    LoadWord(Mem),
    LoadHalfZero(Mem),
    LoadHalfSign(Mem),
    LoadByteZero(Mem),
    LoadByteSign(Mem),
    StoreWord(Mem),
    StoreHalf(Mem),
    StoreByte(Mem),
    /// The offset is what the pointer moves by, after the access.
    LoadWordPost(Mem),
    LoadHalfZeroPost(Mem),
    LoadHalfSignPost(Mem),
    LoadByteZeroPost(Mem),
    LoadByteSignPost(Mem),
    StoreWordPost(Mem),
    StoreHalfPost(Mem),
    StoreBytePost(Mem),
    /// The other ways to form an address.
    Load { what: Load, reg: DPreg, addr: Address },
    Store { what: Store, reg: DPreg, addr: Address },
    Link { frame: u32 },
    Unlink,
    Push(R),
    PushRets,
    /// ASTAT, accumulators, LC and LT.
    PushReg(AllReg),
    PopReg(AllReg),
    PushMultiple { first_d: u8, first_p: u8 },
    PopMultiple { first_d: u8, first_p: u8 },
    PopRets,

    /// The index of a [`Bundle`].
    Bundle(u32),
}

const _: () = assert!(size_of::<Uop>() <= 20);

/// Three operations that see the same registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bundle {
    pub op: Op,
    /// The first may be any load, store or move of an index register; the second only one through an index register.
    pub slots: [Slot; 2],
    /// Loads ignore the low bits of their addresses.
    pub skip_alignment: bool,
}

/// What a 16-bit part of a bundle may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    Nop,
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
    /// `I0 += M0`
    DagAdd {
        dst: Ireg,
        by: Mreg,
        bit_reversed: bool,
    },
    DagSub {
        dst: Ireg,
        by: Mreg,
    },
    DagAddImm {
        dst: Ireg,
        by: i8,
    },
}

impl Slot {
    pub fn from_op(op: Op) -> Option<Slot> {
        Some(match op {
            Op::Nop => Slot::Nop,
            Op::Load { what, reg, addr } => Slot::Load { what, reg, addr },
            Op::Store { what, reg, addr } => Slot::Store { what, reg, addr },
            Op::DagAdd { dst, by, bit_reversed } => Slot::DagAdd { dst, by, bit_reversed },
            Op::DagSub { dst, by } => Slot::DagSub { dst, by },
            Op::DagAddImm { dst, by } => Slot::DagAddImm { dst, by },
            _ => return None,
        })
    }
}
