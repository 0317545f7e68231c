//! Bytes to instructions, and where control goes after them.

use std::ops::ControlFlow;

use iced_x86::{Code, Decoder, DecoderError, DecoderOptions, FlowControl, Instruction, OpKind, Register};

use super::X86_64;
use super::effects::EffectsOf;
use crate::{Decode, DecodeError, Delay, Flow, Insn, Mentions, Reader, Svma, Syntax, Target};

impl Decode for X86_64 {
    fn decode(
        &self,
        code: &[u8],
        at: Svma,
        visit: &mut dyn FnMut(&Insn) -> ControlFlow<()>,
    ) -> Result<(), DecodeError> {
        CodeReader::new(code, at).decode(visit)
    }

    fn reader<'c>(&self, code: &'c [u8], at: Svma) -> Box<dyn Reader + 'c> {
        Box::new(CodeReader::new(code, at))
    }

    fn text(
        &self,
        code: &[u8],
        at: Svma,
        syntax: Syntax,
        name: &dyn Fn(Svma) -> Option<String>,
    ) -> Result<String, DecodeError> {
        Ok(super::text::format(&one(code, at)?, syntax, name))
    }
}

/// Keeps iced's decoder, which is large.
struct CodeReader<'c> {
    decoder: Decoder<'c>,
    effects: EffectsOf,
    at: Svma,
}

impl CodeReader<'_> {
    fn new(code: &[u8], at: Svma) -> CodeReader<'_> {
        let decoder = Decoder::with_ip(64, code, at.0, DecoderOptions::NONE);
        CodeReader { decoder, effects: EffectsOf::default(), at }
    }

    fn decode(&mut self, visit: &mut dyn FnMut(&Insn) -> ControlFlow<()>) -> Result<(), DecodeError> {
        let mut insn = Instruction::default();
        while self.decoder.can_decode() {
            self.decoder.decode_out(&mut insn);
            check(&self.decoder, &insn)?;
            let form = self.effects.common.form(&insn);
            let (effects, stores) = self.effects.of_form(&insn, form);
            let shown = Insn {
                at: Svma(insn.ip()),
                len: insn.len() as u8,
                flow: flow(&insn, form.flow),
                delay: Delay::None,
                stores,
                effects,
                mentions: mentions(&insn, form.operands),
            };
            if visit(&shown).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl Reader for CodeReader<'_> {
    fn decode_from(
        &mut self,
        offset: usize,
        visit: &mut dyn FnMut(&Insn) -> ControlFlow<()>,
    ) -> Result<(), DecodeError> {
        let at = self.at + offset as u64;
        self.decoder.set_position(offset).map_err(|_| DecodeError::Truncated { at })?;
        self.decoder.set_ip(at.0);
        self.decode(visit)
    }
}

/// The iced instruction at the start of `code`.
pub(super) fn one(code: &[u8], at: Svma) -> Result<Instruction, DecodeError> {
    let mut decoder = Decoder::with_ip(64, code, at.0, DecoderOptions::NONE);
    let insn = decoder.decode();
    check(&decoder, &insn)?;
    Ok(insn)
}

fn check(decoder: &Decoder<'_>, insn: &Instruction) -> Result<(), DecodeError> {
    if !insn.is_invalid() {
        return Ok(());
    }
    let at = Svma(insn.ip());
    Err(match decoder.last_error() {
        DecoderError::NoMoreBytes => DecodeError::Truncated { at },
        _ => DecodeError::Invalid { at },
    })
}

#[inline]
fn flow(insn: &Instruction, control: FlowControl) -> Flow {
    match control {
        FlowControl::Next => match insn.code() {
            Code::Hlt => Flow::Stop,
            _ => Flow::Next,
        },
        FlowControl::UnconditionalBranch => Flow::Jump(direct(insn)),
        FlowControl::ConditionalBranch => Flow::Branch(Svma(insn.near_branch_target())),
        FlowControl::IndirectBranch => Flow::Jump(indirect(insn)),
        FlowControl::Return => Flow::Return,
        FlowControl::Call => match insn.code() {
            Code::Syscall | Code::Sysenter => Flow::System,
            _ => Flow::Call(direct(insn)),
        },
        FlowControl::IndirectCall => Flow::Call(indirect(insn)),
        // A debugger or a handler sees the registers at `int3` and may resume behind it.
        FlowControl::Interrupt => Flow::System,
        FlowControl::XbeginXabortXend => match insn.code() {
            Code::Xbegin_rel16 | Code::Xbegin_rel32 => Flow::Branch(Svma(insn.near_branch_target())),
            _ => Flow::Next,
        },
        FlowControl::Exception => Flow::Stop,
    }
}

#[inline]
fn mentions(insn: &Instruction, operands: u8) -> Mentions {
    // `table(,%rax,8)` mentions the table though a register is part of the address.
    let is_fixed = insn.memory_displ_size() >= 4 && matches!(insn.memory_base(), Register::None | Register::RIP);
    let memory = if is_fixed { insn.memory_displacement64() } else { 0 };
    // No instruction has two immediates of that size, or one that is not its last operand.
    let last = u32::from(operands.saturating_sub(1));
    let is_wide = matches!(insn.op_kind(last), OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64);
    let immediate = if is_wide { insn.immediate(last) } else { 0 };
    Mentions::new(Svma(memory), Svma(immediate))
}

fn direct(insn: &Instruction) -> Target {
    match insn.op0_kind() {
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => {
            Target::Direct(Svma(insn.near_branch_target()))
        }
        _ => Target::Computed,
    }
}

fn indirect(insn: &Instruction) -> Target {
    if insn.op0_kind() != OpKind::Memory || insn.segment_prefix() != Register::None {
        return Target::Computed;
    }
    match fixed_address(insn) {
        Some(at) => Target::Slot(at),
        None => Target::Computed,
    }
}

/// The address of the memory operand, if no register is part of it.
pub(super) fn fixed_address(insn: &Instruction) -> Option<Svma> {
    if matches!(insn.segment_prefix(), Register::FS | Register::GS) {
        return None;
    }
    if insn.is_ip_rel_memory_operand() {
        return Some(Svma(insn.ip_rel_memory_address()));
    }
    (insn.memory_base() == Register::None && insn.memory_index() == Register::None)
        .then(|| Svma(insn.memory_displacement64()))
}
