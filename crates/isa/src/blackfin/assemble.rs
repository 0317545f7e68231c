//! Writes code, instruction by instruction.
//!
//! Knows where it is, so that targets are given as addresses, and takes the shorter of two encodings where there is a
//! choice.

use super::encode::{EncodeError, encode};
use super::insn::Op;
use super::operands::{Address, ImmPart, Load, LoopCount};
use super::regs::{AllReg, DPreg, Loop, Preg};

/// Code that starts at a known address.
#[derive(Clone, Debug)]
pub struct Assembler {
    start: u32,
    code: Vec<u8>,
}

impl Assembler {
    pub fn new(start: u32) -> Assembler {
        Assembler { start, code: Vec::new() }
    }

    /// Where the next instruction goes.
    pub fn here(&self) -> u32 {
        self.start.wrapping_add(self.code.len() as u32)
    }

    pub fn finish(self) -> Vec<u8> {
        self.code
    }

    pub fn op(&mut self, op: Op) -> Result<&mut Assembler, EncodeError> {
        self.code.extend_from_slice(&encode(&op, self.here())?);
        Ok(self)
    }

    /// Instructions that are bytes already.
    pub fn raw(&mut self, code: &[u8]) -> &mut Assembler {
        self.code.extend_from_slice(code);
        self
    }

    pub fn mov(&mut self, dst: AllReg, src: AllReg) -> Result<&mut Assembler, EncodeError> {
        self.op(Op::Move { dst, src })
    }

    pub fn raise(&mut self, event: u8) -> Result<&mut Assembler, EncodeError> {
        self.op(Op::Raise(event))
    }

    /// `JUMP.S` if it reaches, else `JUMP.L`.
    pub fn jump(&mut self, target: u32) -> Result<&mut Assembler, EncodeError> {
        let short = Op::JumpShort { target };
        let op = if encode(&short, self.here()).is_ok() { short } else { Op::JumpLong { target } };
        self.op(op)
    }

    pub fn call(&mut self, target: u32) -> Result<&mut Assembler, EncodeError> {
        self.op(Op::Call { target })
    }

    pub fn push(&mut self, reg: AllReg) -> Result<&mut Assembler, EncodeError> {
        self.op(Op::Push(reg))
    }

    /// Data and pointer registers are popped by a load, the others have an instruction of their own.
    pub fn pop(&mut self, reg: AllReg) -> Result<&mut Assembler, EncodeError> {
        let op = if reg.is_dreg() || reg.is_preg() {
            let addr = Address::PostIncrement(Preg::Sp);
            Op::Load { what: Load::Word, reg: DPreg::from_bits(reg.code()), addr }
        } else {
            Op::Pop(reg)
        };
        self.op(op)
    }

    /// Loads all 32 bits, in 2, 4 or 8 bytes. Only registers below 32 have such loads.
    pub fn load(&mut self, reg: AllReg, value: u32) -> Result<&mut Assembler, EncodeError> {
        let signed = value as i32;
        if (-64..64).contains(&signed) && (reg.is_dreg() || reg.is_preg()) {
            return self.op(Op::MoveImm { dst: DPreg::from_bits(reg.code()), imm: signed as i8 });
        }
        if i16::try_from(signed).is_ok() {
            return self.op(Op::LoadImm { dst: reg, part: ImmPart::SignExtended, value });
        }
        if u16::try_from(value).is_ok() {
            return self.op(Op::LoadImm { dst: reg, part: ImmPart::ZeroExtended, value });
        }
        self.load_address(reg, value)
    }

    /// Loads all 32 bits in 8 bytes, whatever they are: for values that are patched later.
    pub fn load_address(&mut self, reg: AllReg, value: u32) -> Result<&mut Assembler, EncodeError> {
        self.op(Op::LoadImm { dst: reg, part: ImmPart::Lo, value: value & 0xFFFF })?;
        self.op(Op::LoadImm { dst: reg, part: ImmPart::Hi, value: value >> 16 })
    }

    /// `LSETUP`: the loop from `first` to the instruction that starts at `last`.
    pub fn loop_setup(
        &mut self,
        which: Loop,
        first: u32,
        last: u32,
        count: LoopCount,
    ) -> Result<&mut Assembler, EncodeError> {
        self.op(Op::LoopSetup { which, first, last, count })
    }
}
