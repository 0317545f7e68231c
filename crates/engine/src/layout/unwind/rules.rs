//! Call frame instructions: programs that say, address by address, how to find a caller's frame and registers.
//!
//! A program is read instruction by instruction with its raw bytes, so that most of it can be copied as it is: only
//! what advances the address depends on where code stands. Beside that, a [`Machine`] runs it, and [`State::changes`]
//! writes the instructions that lead from one state to another. That is how code that is not in the order of the
//! original gets its rules.

use gimli::{DwCfa, Reader, constants};
use lancet_isa::Svma;

use super::entry::{Bytes, Cie, Field, Table};
use super::pointer::{push_sleb, push_uleb};
use crate::image::read_encoded;

/// What an instruction does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    Nothing,
    Advance(u64),
    Goto(Svma),
    Remember,
    Recall,
    Frame(u64, i64),
    FrameRegister(u64),
    FrameOffset(i64),
    FrameExpression,
    /// A register has this rule.
    Rule(u64),
    /// A register has the CIE's rule again.
    Default(u64),
    ArgsSize(u64),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Instruction<'a> {
    pub effect: Effect,
    pub raw: &'a [u8],
    /// Of an instruction that goes to an address: where that stands.
    pub address: Option<Field>,
}

/// Reads a program.
#[derive(Clone, Debug)]
pub(super) struct Rules<'a> {
    table: Table<'a>,
    rest: Bytes<'a>,
    pc_encoding: gimli::DwEhPe,
    code_align: u64,
    data_align: i64,
    at: Svma,
}

impl<'a> Rules<'a> {
    pub fn new(table: Table<'a>, cie: &Cie<'a>, rules: Bytes<'a>, start: Svma) -> Rules<'a> {
        Rules {
            table,
            rest: rules,
            pc_encoding: cie.pc_encoding,
            code_align: cie.code_align,
            data_align: cie.data_align,
            at: start,
        }
    }

    /// The next instruction that says something about the frame, and the address from which on it does.
    pub fn next_rule(&mut self) -> gimli::Result<Option<(Svma, Instruction<'a>)>> {
        while let Some(instruction) = self.next_instruction()? {
            match instruction.effect {
                Effect::Nothing => {}
                Effect::Advance(by) => self.at = self.at + by.wrapping_mul(self.code_align),
                Effect::Goto(at) if at >= self.at => self.at = at,
                Effect::Goto(at) => return Err(gimli::Error::InvalidCfiSetLoc(at.0)),
                _ => return Ok(Some((self.at, instruction))),
            }
        }
        Ok(None)
    }

    pub fn next_instruction(&mut self) -> gimli::Result<Option<Instruction<'a>>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let before = self.rest;
        let mut address = None;
        let effect = self.effect(&mut address)?;
        let raw = &before.slice()[..before.len() - self.rest.len()];
        Ok(Some(Instruction { effect, raw, address }))
    }

    fn effect(&mut self, address: &mut Option<Field>) -> gimli::Result<Effect> {
        let rest = &mut self.rest;
        let opcode = rest.read_u8()?;
        let low = u64::from(opcode & 0x3f);
        match DwCfa(opcode & 0xc0) {
            constants::DW_CFA_advance_loc => return Ok(Effect::Advance(low)),
            constants::DW_CFA_restore => return Ok(Effect::Default(low)),
            constants::DW_CFA_offset => {
                rest.read_uleb128()?;
                return Ok(Effect::Rule(low));
            }
            _ => {}
        }
        let factored = |value: i64| value.wrapping_mul(self.data_align);
        Ok(match DwCfa(opcode) {
            constants::DW_CFA_nop => Effect::Nothing,
            constants::DW_CFA_set_loc => {
                let field = Field { at: rest.offset_from(self.table.raw.bytes), encoding: self.pc_encoding };
                read_encoded(rest, self.pc_encoding, self.table.raw.address_size)?;
                *address = Some(field);
                Effect::Goto(self.table.target(field)?.unwrap_or_default())
            }
            constants::DW_CFA_advance_loc1 => Effect::Advance(rest.read_u8()?.into()),
            constants::DW_CFA_advance_loc2 => Effect::Advance(rest.read_u16()?.into()),
            constants::DW_CFA_advance_loc4 => Effect::Advance(rest.read_u32()?.into()),
            constants::DW_CFA_MIPS_advance_loc8 => Effect::Advance(rest.read_u64()?),
            constants::DW_CFA_remember_state => Effect::Remember,
            constants::DW_CFA_restore_state => Effect::Recall,
            constants::DW_CFA_def_cfa => Effect::Frame(rest.read_uleb128()?, rest.read_uleb128()? as i64),
            constants::DW_CFA_def_cfa_sf => Effect::Frame(rest.read_uleb128()?, factored(rest.read_sleb128()?)),
            constants::DW_CFA_def_cfa_register => Effect::FrameRegister(rest.read_uleb128()?),
            constants::DW_CFA_def_cfa_offset => Effect::FrameOffset(rest.read_uleb128()? as i64),
            constants::DW_CFA_def_cfa_offset_sf => Effect::FrameOffset(factored(rest.read_sleb128()?)),
            constants::DW_CFA_def_cfa_expression => {
                skip_block(rest)?;
                Effect::FrameExpression
            }
            constants::DW_CFA_restore_extended => Effect::Default(rest.read_uleb128()?),
            constants::DW_CFA_undefined | constants::DW_CFA_same_value => Effect::Rule(rest.read_uleb128()?),
            constants::DW_CFA_offset_extended
            | constants::DW_CFA_register
            | constants::DW_CFA_val_offset
            | constants::DW_CFA_GNU_negative_offset_extended
            | constants::DW_CFA_offset_extended_sf
            | constants::DW_CFA_val_offset_sf => {
                let register = rest.read_uleb128()?;
                // Signed or not does not matter to what only skips it.
                rest.skip_leb128()?;
                Effect::Rule(register)
            }
            constants::DW_CFA_expression | constants::DW_CFA_val_expression => {
                let register = rest.read_uleb128()?;
                skip_block(rest)?;
                Effect::Rule(register)
            }
            constants::DW_CFA_GNU_args_size => Effect::ArgsSize(rest.read_uleb128()?),
            unknown => return Err(gimli::Error::UnknownCallFrameInstruction(unknown)),
        })
    }
}

fn skip_block(rest: &mut Bytes<'_>) -> gimli::Result<()> {
    let size = rest.read_uleb128()?;
    rest.skip(usize::try_from(size).unwrap_or(usize::MAX))
}

/// How a frame is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame<'a> {
    Register { register: u64, offset: i64 },
    Expression(&'a [u8]),
}

/// Far more than compilers use; they bound the work on a hostile program.
const MOST_REMEMBERED: usize = 64;
const MOST_RULES: usize = 192;

/// What holds at an address. Rules are kept as the instructions that set them.
#[derive(Clone, Debug, Default)]
pub(super) struct State<'a> {
    frame: Option<Frame<'a>>,
    /// By register; those without one have the CIE's or none.
    rules: Vec<(u64, &'a [u8])>,
    /// Not remembered with the rest by libgcc, but by others: so it is always stated anew.
    args_size: Option<u64>,
}

impl<'a> State<'a> {
    fn rule(&self, register: u64) -> Option<&'a [u8]> {
        self.rules.iter().find(|rule| rule.0 == register).map(|rule| rule.1)
    }

    fn set(&mut self, register: u64, rule: Option<&'a [u8]>) {
        let known = self.rules.iter().position(|rule| rule.0 == register);
        match (known, rule) {
            (Some(index), Some(raw)) => self.rules[index].1 = raw,
            (Some(index), None) => {
                self.rules.swap_remove(index);
            }
            (None, Some(raw)) => self.rules.push((register, raw)),
            (None, None) => {}
        }
    }

    /// Writes the instructions that make this state of `from`. Both are of the same CIE.
    pub fn changes(&self, from: &State<'a>, data_align: i64, out: &mut Vec<u8>) {
        match self.frame {
            frame if frame == from.frame => {}
            None => {}
            Some(Frame::Expression(raw)) => out.extend_from_slice(raw),
            Some(Frame::Register { register, offset }) => {
                let (same_register, same_offset) = match from.frame {
                    Some(Frame::Register { register: old, offset: at }) => (old == register, at == offset),
                    _ => (false, false),
                };
                let negative = offset < 0;
                let opcode = match (same_register, same_offset, negative) {
                    (true, _, false) => constants::DW_CFA_def_cfa_offset,
                    (true, _, true) => constants::DW_CFA_def_cfa_offset_sf,
                    (false, true, _) => constants::DW_CFA_def_cfa_register,
                    (false, false, false) => constants::DW_CFA_def_cfa,
                    (false, false, true) => constants::DW_CFA_def_cfa_sf,
                };
                out.push(opcode.0);
                if !same_register {
                    push_uleb(out, register);
                }
                match (same_offset && !same_register, negative) {
                    (true, _) => {}
                    (_, false) => push_uleb(out, offset as u64),
                    // It came from a multiple of the alignment.
                    (_, true) => push_sleb(out, offset.checked_div(data_align).unwrap_or(0)),
                }
            }
        }
        for &(register, raw) in &self.rules {
            if from.rule(register) != Some(raw) {
                out.extend_from_slice(raw);
            }
        }
        for &(register, _) in &from.rules {
            if self.rule(register).is_none() {
                match u8::try_from(register) {
                    Ok(low @ 0..=0x3f) => out.push(constants::DW_CFA_restore.0 | low),
                    _ => {
                        out.push(constants::DW_CFA_restore_extended.0);
                        push_uleb(out, register);
                    }
                }
            }
        }
        if self.args_size.is_some() || from.args_size.is_some() {
            out.push(constants::DW_CFA_GNU_args_size.0);
            push_uleb(out, self.args_size.unwrap_or(0));
        }
    }
}

/// Runs programs.
#[derive(Clone, Debug)]
pub(super) struct Machine<'a> {
    initial: State<'a>,
    pub state: State<'a>,
    pub remembered: Vec<State<'a>>,
}

impl<'a> Machine<'a> {
    /// As the CIE leaves it.
    pub fn new(table: Table<'a>, cie: &Cie<'a>) -> gimli::Result<Machine<'a>> {
        let mut machine = Machine { initial: State::default(), state: State::default(), remembered: Vec::new() };
        let mut rules = Rules::new(table, cie, cie.rules, Svma(0));
        while let Some((_, instruction)) = rules.next_rule()? {
            machine.run(&instruction)?;
        }
        machine.initial = machine.state.clone();
        Ok(machine)
    }

    pub fn initial(&self) -> &State<'a> {
        &self.initial
    }

    pub fn run(&mut self, instruction: &Instruction<'a>) -> gimli::Result<()> {
        let state = &mut self.state;
        let known = match state.frame {
            Some(Frame::Register { register, offset }) => Some((register, offset)),
            _ => None,
        };
        let no_register = gimli::Error::CfiInstructionInInvalidContext;
        let frame = |register, offset| Some(Frame::Register { register, offset });
        match instruction.effect {
            Effect::Nothing | Effect::Advance(_) | Effect::Goto(_) => {}
            Effect::Remember if self.remembered.len() == MOST_REMEMBERED => return Err(gimli::Error::StackFull),
            Effect::Remember => self.remembered.push(state.clone()),
            Effect::Recall => {
                let args_size = state.args_size;
                *state = self.remembered.pop().ok_or(gimli::Error::PopWithEmptyStack)?;
                state.args_size = args_size;
            }
            Effect::Frame(register, offset) => state.frame = frame(register, offset),
            Effect::FrameRegister(register) => state.frame = frame(register, known.ok_or(no_register)?.1),
            Effect::FrameOffset(offset) => state.frame = frame(known.ok_or(no_register)?.0, offset),
            Effect::FrameExpression => state.frame = Some(Frame::Expression(instruction.raw)),
            Effect::Rule(register) => {
                state.set(register, Some(instruction.raw));
                if state.rules.len() > MOST_RULES {
                    return Err(gimli::Error::TooManyRegisterRules);
                }
            }
            Effect::Default(register) => state.set(register, self.initial.rule(register)),
            Effect::ArgsSize(size) => state.args_size = Some(size),
        }
        Ok(())
    }
}
