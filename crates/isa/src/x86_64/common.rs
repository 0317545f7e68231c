//! The effects of the instructions that most code is made of.
//!
//! iced's factory knows every instruction, but lists registers one by one to say so. More than nine in ten instructions
//! of compiled code do nothing that their operands do not show; for these, the few rules below say the same in a
//! fraction of the time. A test compares the two.

use std::sync::LazyLock;

use iced_x86::{Code, FlowControl, Instruction, Mnemonic, OpKind, Register};

use super::effects::{flags_of, number};
use super::facts::FACTS;
use crate::regs::{Effects, RegSet};

/// What an instruction does to its operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Overwrites the first, reads the others.
    Write,
    /// Overwrites the first or leaves it alone, reads the others.
    MayWrite,
    /// Changes the first, reads the others.
    Update,
    /// Changes the first, reads the others; but if there are two and they are the same register, its old value does
    /// not count.
    UpdateOrClear,
    /// Reads all.
    Read,
    /// Reads its operands, and moves the stack pointer.
    Push,
    /// Overwrites its operand, and moves the stack pointer.
    Pop,
    /// Has no effect on registers.
    Nothing,
    /// More than that.
    Other,
}

/// What is worked out once for all instructions.
#[derive(Clone, Copy)]
pub(super) struct Common {
    /// By iced's [`Code`].
    forms: &'static [Form],
    /// By [`Register`].
    registers: &'static [Numbered],
}

impl Common {
    pub(super) fn get() -> Common {
        Common { forms: &FORMS, registers: &NUMBERS }
    }

    #[inline]
    pub(super) fn form(&self, insn: &Instruction) -> Form {
        self.forms[insn.code() as usize]
    }

    /// The effects on registers, the flags aside, and whether memory may be written. `None`: not one of the common ones.
    #[inline]
    pub(super) fn on_registers(&self, insn: &Instruction, form: Form) -> Option<(Effects, bool)> {
        let Form { kind, operands, .. } = form;
        match kind {
            Kind::Other => return None,
            Kind::Nothing => return Some((Effects::default(), false)),
            _ => {}
        }
        let mut e = Effects::default();
        let mut to_memory = false;
        if operands > 0 {
            let op0 = insn.op0_kind();
            match kind {
                Kind::Write | Kind::Pop if op0 == OpKind::Register => {
                    let register = self.registers[insn.op0_register() as usize];
                    e.writes = register.set;
                    e.kills = register.killed;
                }
                Kind::MayWrite if op0 == OpKind::Register => {
                    let register = self.registers[insn.op0_register() as usize];
                    e.writes = register.set;
                    // 32 bits that stay are extended to 64.
                    e.reads = register.killed_by_update;
                    e.kills = register.killed_by_update;
                }
                Kind::Update | Kind::UpdateOrClear if op0 == OpKind::Register => {
                    let register = self.registers[insn.op0_register() as usize];
                    e.reads = register.set;
                    e.writes = register.set;
                    e.kills = register.killed_by_update;
                }
                _ => e.reads = self.read(insn, op0, insn.op0_register())?,
            }
            to_memory = op0 == OpKind::Memory && kind != Kind::Read;
        }
        if operands > 1 {
            e.reads |= self.read(insn, insn.op1_kind(), insn.op1_register())?;
        }
        for op in 2..u32::from(operands) {
            e.reads |= self.read(insn, insn.op_kind(op), insn.op_register(op))?;
        }
        let stack = RegSet::of(FACTS.stack_pointer);
        match kind {
            Kind::Push | Kind::Pop => {
                // `pop %rsp` and the like: which of the two writes counts?
                if e.writes.intersects(stack) {
                    return None;
                }
                e.reads |= stack;
                e.writes |= stack;
                to_memory = true;
            }
            Kind::UpdateOrClear
                if insn.op1_kind() == OpKind::Register && insn.op0_register() == insn.op1_register() =>
            {
                let register = self.registers[insn.op0_register() as usize];
                e = Effects { reads: RegSet::EMPTY, writes: register.set, kills: register.killed };
            }
            _ => {}
        }
        Some((e, to_memory))
    }

    /// The registers that an operand which is not written depends on.
    #[inline]
    fn read(&self, insn: &Instruction, kind: OpKind, register: Register) -> Option<RegSet> {
        match kind {
            OpKind::Register => Some(self.registers[register as usize].set),
            OpKind::Memory => {
                let (base, index) = (insn.memory_base(), insn.memory_index());
                Some(self.registers[base as usize].set | self.registers[index as usize].set)
            }
            OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
            | OpKind::NearBranch64 => Some(RegSet::EMPTY),
            // String instructions and relics.
            _ => None,
        }
    }
}

/// What all instructions with one of iced's codes have in common.
#[derive(Clone, Copy)]
pub(super) struct Form {
    kind: Kind,
    pub(super) operands: u8,
    pub(super) flow: FlowControl,
    /// The flags that it reads, and those that it may change. `None`: the operands tell.
    pub(super) flags: Option<(RegSet, RegSet)>,
}

static FORMS: LazyLock<Box<[Form]>> = LazyLock::new(|| {
    let form = |code: Code| {
        let mut insn = Instruction::default();
        insn.set_code(code);
        let kind = kind(code.mnemonic());
        // Shifts leave the flags alone if they shift by nothing.
        let is_fixed = kind != Kind::Other && !is_shift(code.mnemonic());
        Form {
            kind,
            operands: insn.op_count() as u8,
            flow: insn.flow_control(),
            flags: is_fixed.then(|| flags_of(&insn)),
        }
    };
    Code::values().map(form).collect()
});

fn is_shift(mnemonic: Mnemonic) -> bool {
    matches!(mnemonic, Mnemonic::Shl | Mnemonic::Shr | Mnemonic::Sar | Mnemonic::Rol | Mnemonic::Ror)
}

#[derive(Clone, Copy)]
struct Numbered {
    set: RegSet,
    /// What a write of it overwrites as a whole.
    killed: RegSet,
    /// The same for an update, which iced takes for a read of 32 bits and a write of 64.
    killed_by_update: RegSet,
}

/// By [`Register`].
static NUMBERS: LazyLock<Box<[Numbered]>> = LazyLock::new(|| {
    let numbered = |register: Register| {
        let (set, whole) = number(register);
        let if_so = |so: bool| if so { set } else { RegSet::EMPTY };
        Numbered { set, killed: if_so(whole), killed_by_update: if_so(register.is_gpr32()) }
    };
    Register::values().map(numbered).collect()
});

fn kind(mnemonic: Mnemonic) -> Kind {
    use Mnemonic::*;
    match mnemonic {
        Mov | Movzx | Movsx | Movsxd | Lea | Movaps | Movups | Movapd | Movupd | Movdqa | Movdqu | Movq | Movd
        | Seto | Setno | Setb | Setae | Sete | Setne | Setbe | Seta | Sets | Setns | Setp | Setnp | Setl | Setge
        | Setle | Setg | Pmovmskb | Pshufd | Pshuflw | Tzcnt => Kind::Write,
        Add | And | Or | Adc | Inc | Dec | Neg | Not | Shl | Shr | Sar | Rol | Ror | Punpcklbw | Punpckldq
        | Punpcklqdq => Kind::Update,
        Cmovo | Cmovno | Cmovb | Cmovae | Cmove | Cmovne | Cmovbe | Cmova | Cmovs | Cmovns | Cmovp | Cmovnp | Cmovl
        | Cmovge | Cmovle | Cmovg => Kind::MayWrite,
        Xor | Sub | Pxor | Xorps => Kind::UpdateOrClear,
        Cmp | Test | Bt | Jmp => Kind::Read,
        Push | Call | Ret => Kind::Push,
        Pop => Kind::Pop,
        Jo | Jno | Jb | Jae | Je | Jne | Jbe | Ja | Js | Jns | Jp | Jnp | Jl | Jge | Jle | Jg | Nop | Endbr64 | Ud2 => {
            Kind::Nothing
        }
        _ => Kind::Other,
    }
}
