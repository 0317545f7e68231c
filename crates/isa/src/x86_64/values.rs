//! What the common integer instructions compute, for slicing.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use super::X86_64;
use super::decode::{fixed_address, one};
use crate::regs::Reg;
use crate::value::{Expr, Guard, Place, Relation, Set, Values};
use crate::{Semantic, Svma};

impl Semantic for X86_64 {
    fn values(&self, code: &[u8], at: Svma) -> Values {
        let mut values = Values::default();
        if let Ok(insn) = one(code, at) {
            lift(&insn, &mut values.sets);
            let stores = insn.op_count() > 0
                && insn.op0_kind() == OpKind::Memory
                && !matches!(insn.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Nop);
            let modelled = values.sets.iter().any(|set| matches!(set.dst, Place::Memory { .. }));
            values.other_stores = (stores || insn.is_stack_instruction() || insn.is_string_instruction()) && !modelled;
        }
        values
    }

    fn jump_target(&self, code: &[u8], at: Svma) -> Option<Expr> {
        operand(&one(code, at).ok()?, 0)
    }

    fn guard(&self, code: &[u8], at: Svma) -> Option<Guard> {
        let insn = one(code, at).ok()?;
        let relation = match insn.mnemonic() {
            Mnemonic::Je => Relation::Equal,
            Mnemonic::Jne => Relation::NotEqual,
            Mnemonic::Jb => Relation::Below,
            Mnemonic::Jbe => Relation::BelowOrEqual,
            Mnemonic::Ja => Relation::Above,
            Mnemonic::Jae => Relation::AboveOrEqual,
            Mnemonic::Jl => Relation::Less,
            Mnemonic::Jle => Relation::LessOrEqual,
            Mnemonic::Jg => Relation::Greater,
            Mnemonic::Jge => Relation::GreaterOrEqual,
            _ => return None,
        };
        Some(Guard { relation, left: Expr::Reg(Reg::COMPARED), right: Expr::Reg(Reg::COMPARED_TO) })
    }

    fn may_call_system(&self, code: &[u8]) -> bool {
        // syscall, sysenter, int
        code.windows(2).any(|pair| matches!(pair, [0x0f, 0x05 | 0x34] | [0xcd, _]))
    }

    fn likely_addresses(&self, code: &[u8], at: Svma, visit: &mut dyn FnMut(Svma)) {
        // lea disp32(%rip), ...
        const LEA: u8 = 0x8d;
        for place in memchr::memchr_iter(LEA, code) {
            let [mod_rm, a, b, c, d] = *code.get(place + 1..).and_then(<[u8]>::first_chunk).unwrap_or(&[0; 5]);
            if mod_rm & 0xc7 == 0x05 {
                let displacement = i32::from_le_bytes([a, b, c, d]);
                visit(Svma((at + place as u64 + 6).0.wrapping_add(displacement as u64)));
            }
        }
    }

    fn is_padding(&self, code: &[u8], at: Svma) -> bool {
        one(code, at).is_ok_and(|insn| pads(&insn))
    }

    fn padding(&self, code: &[u8], at: Svma) -> usize {
        let decoder = Decoder::with_ip(64, code, at.0, DecoderOptions::NONE);
        decoder.into_iter().take_while(|insn| !insn.is_invalid() && pads(insn)).map(|insn| insn.len()).sum()
    }
}

fn pads(insn: &Instruction) -> bool {
    match insn.mnemonic() {
        Mnemonic::Nop | Mnemonic::Fnop | Mnemonic::Int3 => true,
        // `xchg %ax,%ax`, and `lea 0(%rsi),%rsi` as older assemblers pad.
        Mnemonic::Xchg | Mnemonic::Mov if insn.op_count() == 2 => {
            insn.op0_kind() == OpKind::Register
                && insn.op1_kind() == OpKind::Register
                && insn.op0_register() == insn.op1_register()
                && !insn.op0_register().is_gpr32()
        }
        Mnemonic::Lea => {
            insn.op0_register() == insn.memory_base()
                && insn.memory_index() == Register::None
                && insn.memory_displacement64() == 0
                && insn.op0_register().is_gpr64()
        }
        _ => false,
    }
}

fn lift(insn: &Instruction, sets: &mut Vec<Set>) {
    use Mnemonic::*;
    match insn.mnemonic() {
        Mov if insn.op0_kind() == OpKind::Memory => {
            if let (Some(addr), Some(value)) = (address(insn), operand(insn, 1)) {
                sets.push(Set { dst: Place::Memory { addr, bits: bits(insn, 0) }, value });
            }
        }
        Mov | Movzx => assign(insn, sets, |i| operand(i, 1)),
        Movsx | Movsxd => assign(insn, sets, |i| Some(operand(i, 1)?.sign_extend(bits(i, 1)))),
        Cdqe => push(sets, Register::RAX, Expr::reg(Reg(0)).sign_extend(32)),
        Cwde => push(sets, Register::EAX, Expr::reg(Reg(0)).sign_extend(16)),
        Lea => assign(insn, sets, address),
        Add => assign(insn, sets, |i| Some(operand(i, 0)?.plus(operand(i, 1)?))),
        Sub => {
            compare(insn, sets);
            assign(insn, sets, |i| Some(Expr::Sub(Box::new(operand(i, 0)?), Box::new(operand(i, 1)?))));
        }
        Cmp => compare(insn, sets),
        // Only the form that asks about one value: `test %eax,%eax`.
        Test if insn.op0_kind() == OpKind::Register && insn.op0_register() == insn.op1_register() => {
            if let Some(left) = operand(insn, 0) {
                set(sets, Reg::COMPARED, left);
                set(sets, Reg::COMPARED_TO, Expr::Const(0));
            }
        }
        Inc => assign(insn, sets, |i| Some(operand(i, 0)?.plus(Expr::Const(1)))),
        Dec => assign(insn, sets, |i| Some(operand(i, 0)?.plus(Expr::Const(!0)))),
        And if immediate(insn, 1).is_some() => {
            assign(insn, sets, |i| Some(Expr::And(Box::new(operand(i, 0)?), immediate(i, 1)?)));
        }
        Shl if insn.op_count() == 2 && immediate(insn, 1).is_some_and(|by| by < 32) => {
            assign(insn, sets, |i| Some(Expr::Mul(Box::new(operand(i, 0)?), 1 << immediate(i, 1)?)));
        }
        Shr if immediate(insn, 1).is_some_and(|by| by < 64) => {
            assign(insn, sets, |i| Some(Expr::Shr(Box::new(operand(i, 0)?), immediate(i, 1)? as u8)));
        }
        Xor if insn.op0_kind() == OpKind::Register
            && insn.op1_kind() == OpKind::Register
            && insn.op0_register() == insn.op1_register() =>
        {
            assign(insn, sets, |_| Some(Expr::Const(0)));
        }
        Cmovo | Cmovno | Cmovb | Cmovae | Cmove | Cmovne | Cmovbe | Cmova | Cmovs | Cmovns | Cmovp | Cmovnp | Cmovl
        | Cmovge | Cmovle | Cmovg | Shl | Shr | Sar | Rol | Ror | And | Or | Xor | Not | Neg | Imul | Adc | Sbb
        | Bswap | Bsf | Bsr | Tzcnt | Lzcnt | Popcnt | Andn | Bextr | Bzhi | Shlx | Shrx | Sarx | Rorx | Movd
        | Movmskps | Movmskpd | Pmovmskb | Vpmovmskb | Cvttsd2si | Cvttss2si => {
            assign(insn, sets, |_| Some(Expr::Opaque));
        }
        _ => {}
    }
}

/// `dst := value`, where `dst` is operand 0 if that is a register whose write replaces all of it.
fn assign(insn: &Instruction, sets: &mut Vec<Set>, value: impl Fn(&Instruction) -> Option<Expr>) {
    if insn.op0_kind() == OpKind::Register
        && let Some(value) = value(insn)
    {
        push(sets, insn.op0_register(), value);
    }
}

fn push(sets: &mut Vec<Set>, dst: Register, value: Expr) {
    let value = if dst.is_gpr64() {
        value
    } else if dst.is_gpr32() {
        value.zero_extend(32)
    } else {
        return;
    };
    if let Some(dst) = reg(dst) {
        set(sets, dst, value);
    }
}

fn set(sets: &mut Vec<Set>, dst: Reg, value: Expr) {
    sets.push(Set { dst: Place::Reg(dst), value });
}

fn compare(insn: &Instruction, sets: &mut Vec<Set>) {
    if let (Some(left), Some(right)) = (operand(insn, 0), operand(insn, 1)) {
        let right = match right {
            // An immediate is sign-extended; as an operand of this width it is compared unsigned.
            Expr::Const(value) => Expr::Const(value & width_mask(bits(insn, 0))),
            other => other,
        };
        set(sets, Reg::COMPARED, left);
        set(sets, Reg::COMPARED_TO, right);
    }
}

/// The value of an operand, zero-extended from its width.
fn operand(insn: &Instruction, op: u32) -> Option<Expr> {
    match insn.op_kind(op) {
        OpKind::Register => {
            let register = insn.op_register(op);
            // ah, bh, ch, dh are not at the bottom of their register.
            if matches!(register, Register::AH | Register::BH | Register::CH | Register::DH) {
                return Some(Expr::Shr(Box::new(Expr::Reg(reg(register)?)), 8).zero_extend(8));
            }
            Some(Expr::Reg(reg(register)?).zero_extend(bits(insn, op)))
        }
        OpKind::Memory => Some(address(insn)?.load(bits(insn, op))),
        _ => Some(Expr::Const(immediate(insn, op)?)),
    }
}

fn immediate(insn: &Instruction, op: u32) -> Option<u64> {
    insn.try_immediate(op).ok()
}

fn bits(insn: &Instruction, op: u32) -> u8 {
    let bytes = match insn.op_kind(op) {
        OpKind::Register => insn.op_register(op).size(),
        OpKind::Memory => insn.memory_size().size(),
        _ => 8,
    };
    (bytes.min(8) * 8) as u8
}

fn width_mask(bits: u8) -> u64 {
    if bits >= 64 { !0 } else { (1 << bits) - 1 }
}

/// The address of the memory operand (of `lea`, too).
fn address(insn: &Instruction) -> Option<Expr> {
    if matches!(insn.segment_prefix(), Register::FS | Register::GS) {
        return None;
    }
    if let Some(at) = fixed_address(insn) {
        return Some(Expr::Const(at.0));
    }
    let mut sum = Expr::Const(insn.memory_displacement64());
    if insn.memory_base() != Register::None {
        sum = sum.plus(Expr::Reg(reg(insn.memory_base())?));
    }
    if insn.memory_index() != Register::None {
        let index = Expr::Reg(reg(insn.memory_index())?);
        let scale = u64::from(insn.memory_index_scale());
        sum = sum.plus(if scale == 1 { index } else { Expr::Mul(Box::new(index), scale) });
    }
    Some(sum)
}

/// General registers only, by the number of their 64-bit whole.
fn reg(register: Register) -> Option<Reg> {
    register.is_gpr().then(|| Reg(register.full_register().number() as u8))
}
