//! Moving x86-64 instructions, and the few that Lancet adds.
//!
//! Increments write all flags but the carry, so with live flags the counter goes through a
//! dead register (`mov`, `lea`, `mov`), and where none is dead through a spilled one, below the red zone.
//! A counter that is kept in a register grows by `lea`, which writes no flag.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

use super::X86_64;
use super::decode::one;
use super::effects::EffectsOf;
use super::facts::FACTS;
use crate::edit::{
    Argument, Counter, Edit, EncodeError, Field, FieldKind, Free, GateDest, GateKind, Marked, Movable, OutOfReach,
    Reach,
};
use crate::runtime::{RunTime, RunTimePlaces};
use crate::{Reg, RegSet, Svma};

/// Registers that a function may change without giving them back.
const SCRATCH: [u8; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];
const RAX: u8 = 0;
/// In the byte in front of a distance, apart from the bits for a register.
const RELATIVE_TO_NEXT: u8 = 0x05;
/// The numbers of `clone`, `fork` and `clone3`. (After `vfork` the parent waits.)
const MAKES_A_PROCESS: [u32; 3] = [56, 57, 435];
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
/// `rsp -= 128`, and back, leaving the flags: the red zone belongs to the function.
const BELOW_RED_ZONE: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 0x80];
const ABOVE_RED_ZONE: [u8; 8] = [0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];

impl Edit for X86_64 {
    fn walk(&self, code: &[u8], at: Svma, visit: &mut dyn FnMut(usize, Movable)) {
        let mut decoder = Decoder::with_ip(64, code, at.0, DecoderOptions::NONE);
        let mut insn = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut insn);
            visit(insn.len(), movable(&decoder, &insn));
        }
    }

    fn may_stay(&self, code: &[u8]) -> bool {
        // A call to the next instruction, xbegin.
        code.windows(2).any(|pair| matches!(pair, [0xe8, 0] | [0xc7, 0xf8]))
    }

    fn transfer(&self, code: &[u8], reach: Reach, out: &mut Vec<u8>) -> Field {
        match *code {
            [0xe9 | 0xeb, ..] => self.jump(reach, out),
            [0xe8, ..] => with_field(out, &[0xe8], FieldKind::Far),
            [short @ 0x70..=0x7f, ..] => conditional(short, reach, out),
            [0x0f, near @ 0x80..=0x8f, ..] => conditional(near, reach, out),
            _ => self.transfer_with_prefix(code, reach, out),
        }
    }

    fn landing_mark(&self, code: &[u8]) -> usize {
        if code.starts_with(&ENDBR64) { ENDBR64.len() } else { 0 }
    }

    fn mentions(&self, code: &[u8], at: Svma, (first, last): (Svma, Svma), visit: &mut dyn FnMut(Svma)) {
        for (i, window) in code.windows(5).enumerate() {
            let &[mode, a, b, c, d] = window else { continue };
            if mode & 0xc7 != RELATIVE_TO_NEXT {
                continue;
            }
            let end = at.0.wrapping_add(i as u64 + 5).wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into());
            // The distance counts from the end of the instruction, which is behind an immediate.
            if end.wrapping_add(4) >= first.0 && end <= last.0 {
                [0, 1, 2, 4].into_iter().for_each(|immediate| visit(Svma(end.wrapping_add(immediate))));
            }
        }
    }

    fn longest_mention(&self) -> usize {
        5
    }

    fn jump(&self, reach: Reach, out: &mut Vec<u8>) -> Field {
        match reach {
            Reach::Near => with_field(out, &[0xeb], FieldKind::Near),
            Reach::Far => with_field(out, &[0xe9], FieldKind::Far),
        }
    }

    fn count(&self, counter: Counter, free: Free, out: &mut Vec<u8>, fields: &mut Vec<Field>) -> usize {
        let mut in_one_step = |out: &mut Vec<u8>| {
            fields.push(increment(counter, out));
            out.len()
        };
        if flags_are_free(free) {
            return in_one_step(out);
        }
        if counter == Counter::Contended {
            return with_flags_saved(out, in_one_step);
        }
        with_registers(free, RegSet::EMPTY, out, |out, [through]| {
            fields.push(access(counter, 0x8b, through, out));
            add_one(through, out);
            fields.push(access(counter, 0x89, through, out));
            out.len()
        })
    }

    fn set(&self, reg: Reg, from: Option<Reg>, out: &mut Vec<u8>) {
        match from {
            Some(from) => {
                out.extend([0x48 | (from.0 >> 3) << 2 | reg.0 >> 3, 0x89, 0xc0 | (from.0 & 7) << 3 | reg.0 & 7])
            }
            None => load(reg.0, 0, out),
        }
    }

    fn count_in(&self, reg: Reg, out: &mut Vec<u8>) {
        add_one(reg.0, out);
    }

    fn add(
        &self,
        counter: Counter,
        Reg(reg): Reg,
        since: Option<Reg>,
        free: Free,
        out: &mut Vec<u8>,
        fields: &mut Vec<Field>,
    ) {
        let mut plus = reg;
        if let Some(Reg(since)) = since {
            // not since; lea since, [since + reg + 1]: neither touches the flags.
            out.extend([0x48 | since >> 3, 0xf7, 0xd0 | since & 7]);
            sum(since, since, reg, 1, out);
            plus = since;
        }
        let in_one_step = |out: &mut Vec<u8>| {
            out.extend(Some(0xf0).filter(|_| counter == Counter::Contended));
            access(counter, 0x01, plus, out)
        };
        if FACTS.flags.without(free.regs | RegSet::of(Reg(super::facts::DF))).is_empty() {
            fields.push(in_one_step(out));
        } else if counter == Counter::Contended {
            with_flags_saved(out, |out| fields.push(in_one_step(out)));
        } else {
            let used = RegSet::of(Reg(plus));
            with_registers(free, used, out, |out, [through]| {
                fields.push(access(counter, 0x8b, through, out));
                sum(through, through, plus, 0, out);
                fields.push(access(counter, 0x89, through, out));
            });
        }
    }

    fn mark(&self, row: Counter, note: Counter, free: Free, out: &mut Vec<u8>, fields: &mut Vec<(Field, Marked)>) {
        with_registers(free, RegSet::EMPTY, out, |out, [through]| {
            match row {
                Counter::Shared | Counter::Contended => fields.push((access(row, 0x8d, through, out), Marked::Row)),
                Counter::PerThread(distance) => load(through, distance, out),
            }
            fields.push((access(note, 0x89, through, out), Marked::Note));
        });
    }

    fn count_marked(
        &self,
        note: Counter,
        column: u32,
        free: Free,
        out: &mut Vec<u8>,
        fields: &mut Vec<(Field, Marked)>,
    ) {
        // With the row in `base`, and `reg` in the other field.
        let in_row = |out: &mut Vec<u8>, fields: &mut Vec<(Field, Marked)>, opcode: u8, base: u8, reg: u8| {
            let rex = 0x48 | (reg >> 3) << 2 | base >> 3;
            if let Counter::PerThread(_) = note {
                // The row is a distance from the first counter, which the field is for: gs:[base + disp32].
                let front = [0x65, rex, opcode, 0x84 | (reg & 7) << 3, 0x20 | base & 7];
                fields.push((with_field(out, &front, FieldKind::Own), Marked::Column));
            } else {
                out.extend([rex, opcode, 0x80 | (reg & 7) << 3 | base & 7]);
                out.extend((8 * column).to_le_bytes());
            }
        };
        if flags_are_free(free) {
            return with_registers(free, RegSet::EMPTY, out, |out, [base]| {
                fields.push((access(note, 0x8b, base, out), Marked::Note));
                in_row(out, fields, 0xff, base, 0);
            });
        }
        with_registers(free, RegSet::EMPTY, out, |out, [base, through]| {
            fields.push((access(note, 0x8b, base, out), Marked::Note));
            in_row(out, fields, 0x8b, base, through);
            add_one(through, out);
            in_row(out, fields, 0x89, base, through);
        });
    }

    fn check_fork(&self, out: &mut Vec<u8>) -> Field {
        // test eax, eax; jne over the call
        out.extend([0x85, 0xc0, 0x75, 5]);
        with_field(out, &[0xe8], FieldKind::Far)
    }

    fn may_fork(&self, code: &[u8]) -> bool {
        let insns: Vec<Instruction> = Decoder::new(64, code, DecoderOptions::NONE).into_iter().collect();
        let mut effects = EffectsOf::default();
        let sets_number =
            |insn: &&Instruction| insn.mnemonic() == Mnemonic::Syscall || effects.of(insn).0.writes.contains(Reg(RAX));
        match insns.iter().rev().skip(1).find(sets_number) {
            Some(insn) if insn.code() == Code::Mov_r32_imm32 => MAKES_A_PROCESS.contains(&insn.immediate32()),
            _ => true,
        }
    }

    fn call(&self, arguments: &[Argument], out: &mut Vec<u8>) -> Field {
        out.extend(BELOW_RED_ZONE);
        out.push(0x9c); // pushfq
        SAVED.iter().for_each(|reg| push(*reg, out));
        // push rbp; mov rbp, rsp; and rsp, -16; cld
        out.extend([0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xf0, 0xfc]);
        for (to, argument) in ARGUMENTS.into_iter().zip(arguments) {
            give(to, *argument, out);
        }
        let field = with_field(out, &[0xe8], FieldKind::Far);
        // mov rsp, rbp; pop rbp
        out.extend([0x48, 0x89, 0xec, 0x5d]);
        SAVED.iter().rev().for_each(|reg| pop(*reg, out));
        out.push(0x9d); // popfq
        out.extend(ABOVE_RED_ZONE);
        field
    }

    fn call_from(&self, back: u64, out: &mut Vec<u8>) {
        // A call to the byte behind the next, so that the processor expects a return: to the next it would not. Then the
        // return address is overwritten.
        out.extend([0xe8, 1, 0, 0, 0, 0xcc]);
        out.extend([0xc7, 0x04, 0x24]);
        out.extend((back as u32).to_le_bytes());
        out.extend([0xc7, 0x44, 0x24, 0x04]);
        out.extend(((back >> 32) as u32).to_le_bytes());
    }

    fn jump_as_call(&self, code: &[u8], out: &mut Vec<u8>) -> bool {
        const PREFIXES: [u8; 10] = [0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf2, 0xf3];
        let is_prefix = |byte: &u8| PREFIXES.contains(byte) || (0x40..=0x4f).contains(byte);
        let prefixes = code.iter().take_while(|byte| is_prefix(byte)).count();
        let (front, rest) = code.split_at(prefixes);
        let &[0xff, mode, ref behind @ ..] = rest else { return false };
        if mode >> 3 & 7 != 2 {
            return false;
        }
        let jump = mode & 0xc7 | 0x20;
        let extends_base = front.last().is_some_and(|byte| byte & 0xf1 == 0x41);
        out.extend_from_slice(front);
        match (mode >> 6, behind) {
            // From the stack pointer, which the call has moved by eight.
            (distance @ 0..=2, [base, more @ ..]) if mode & 7 == 4 && base & 7 == 4 && !extends_base => {
                let distance = match (distance, more) {
                    (0, []) => 0,
                    (1, [byte]) => i32::from(byte.cast_signed()),
                    (2, &[a, b, c, d]) => i32::from_le_bytes([a, b, c, d]),
                    _ => return false,
                };
                out.extend([0xff, jump & 0x3f | 0x80, *base]);
                out.extend(distance.wrapping_add(8).to_le_bytes());
            }
            _ => {
                out.extend([0xff, jump]);
                out.extend_from_slice(behind);
            }
        }
        true
    }

    fn kept_around_calls(&self) -> RegSet {
        RegSet((1 << super::facts::ZMM0) - 1)
    }

    fn gate_changes(&self) -> RegSet {
        FACTS.flags.without(RegSet::of(Reg(super::facts::DF)))
    }

    fn gate(&self, kind: GateKind, out: &mut Vec<u8>) -> Vec<(Field, GateDest)> {
        let mut fields = Vec::new();
        if kind.signals {
            // lea rdx, [rdx - 8]; cmp rdx, rsp; lea rdx, [rdx + 8]: for a handler, the context is what stands on the
            // stack, right behind the return address. Most other calls are told from that by this alone.
            out.extend([0x48, 0x8d, 0x52, 0xf8, 0x48, 0x39, 0xe2, 0x48, 0x8d, 0x52, 0x08]);
            out.extend([0x74, 0]); // je
        }
        let plain = out.len();
        match kind.threads {
            true => gate_for_threads(out, &mut fields),
            false => fields.push((with_field(out, &[0xe9], FieldKind::Far), GateDest::Target)),
        }
        if kind.signals {
            out[plain - 1] = (out.len() - plain) as u8;
            // lea r11, [plain]
            let distance = plain as i32 - (out.len() + 9) as i32;
            push_way_on(out, |out| {
                out.extend([0x4c, 0x8d, 0x1d]);
                out.extend(distance.to_le_bytes());
            });
            fields.push((with_field(out, &[0xe9], FieldKind::Far), GateDest::Signal));
        }
        fields
    }

    fn run_time(&self, places: &RunTimePlaces) -> Result<RunTime, EncodeError> {
        super::runtime::assemble(places).map_err(|error| EncodeError { at: places.at, why: error.to_string() })
    }

    fn fill(&self, code: &mut [u8], at: Svma, field: Field, to: Svma) -> Result<(), OutOfReach> {
        let from = at + u64::from(field.origin);
        let distance = to.0.wrapping_sub(from.0) as i64;
        let offset = field.offset as usize;
        let lost = OutOfReach { from, to };
        match field.kind {
            FieldKind::Near => code[offset] = i8::try_from(distance).map_err(|_| lost)? as u8,
            FieldKind::Far => {
                let distance = i32::try_from(distance).map_err(|_| lost)?;
                code[offset..offset + 4].copy_from_slice(&distance.to_le_bytes());
            }
            FieldKind::Own => {
                let place = u32::try_from(to.0).map_err(|_| lost)?;
                code[offset..offset + 4].copy_from_slice(&place.to_le_bytes());
            }
        }
        Ok(())
    }

    fn pad(&self, len: usize, out: &mut Vec<u8>) {
        const NOPS: [&[u8]; 9] = [
            &[0x90],
            &[0x66, 0x90],
            &[0x0f, 0x1f, 0x00],
            &[0x0f, 0x1f, 0x40, 0x00],
            &[0x0f, 0x1f, 0x44, 0x00, 0x00],
            &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
            &[0x0f, 0x1f, 0x80, 0, 0, 0, 0],
            &[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
            &[0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
        ];
        let mut left = len;
        while left > 0 {
            let nop = NOPS[left.min(NOPS.len()) - 1];
            out.extend(nop);
            left -= nop.len();
        }
    }
}

/// A conditional branch. The condition is the low half of the opcode's last byte in both forms.
fn conditional(opcode: u8, reach: Reach, out: &mut Vec<u8>) -> Field {
    let condition = opcode & 15;
    match reach {
        Reach::Near => with_field(out, &[0x70 | condition], FieldKind::Near),
        Reach::Far => with_field(out, &[0x0f, 0x80 | condition], FieldKind::Far),
    }
}

impl X86_64 {
    /// A transfer that is no plain opcode: with prefixes, or near in every form.
    fn transfer_with_prefix(&self, code: &[u8], reach: Reach, out: &mut Vec<u8>) -> Field {
        let Ok(insn) = one(code, Svma(0)) else { return self.jump(reach, out) };
        match insn.mnemonic() {
            Mnemonic::Jmp => self.jump(reach, out),
            Mnemonic::Call => with_field(out, &[0xe8], FieldKind::Far),
            _ if insn.is_jcc_short_or_near() => {
                let last = insn.len() - if insn.is_jcc_short() { 2 } else { 5 };
                conditional(code[last], reach, out)
            }
            _ => near_only(&insn, code, reach, out),
        }
    }
}

/// May `inc` be used? It leaves the carry alone.
fn flags_are_free(free: Free) -> bool {
    let changed = FACTS.flags.without(RegSet::of(Reg(super::facts::CF)).union(RegSet::of(Reg(super::facts::DF))));
    changed.without(free.regs).is_empty()
}

/// Code that uses registers beside those in `used`: dead ones, or others that are saved around it, below the red zone.
fn with_registers<const N: usize, R>(
    free: Free,
    used: RegSet,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>, [u8; N]) -> R,
) -> R {
    let is_dead = |reg: &u8| free.regs.contains(Reg(*reg));
    let others = SCRATCH.into_iter().filter(|reg| !used.contains(Reg(*reg)));
    let dead = others.clone().filter(is_dead);
    let live = others.filter(|reg| !is_dead(reg));
    let mut chosen = [0; N];
    chosen.iter_mut().zip(dead.clone().chain(live)).for_each(|(place, reg)| *place = reg);
    let saved = &chosen[dead.count().min(N)..];
    if !saved.is_empty() {
        out.extend(BELOW_RED_ZONE);
    }
    saved.iter().for_each(|reg| push(*reg, out));
    let result = write(out, chosen);
    saved.iter().rev().for_each(|reg| pop(*reg, out));
    if !saved.is_empty() {
        out.extend(ABOVE_RED_ZONE);
    }
    result
}

/// rax rcx rdx rsi rdi r8-r11: what a routine may change, in the order in which they are saved.
const SAVED: [u8; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];
/// rdi rsi rdx rcx r8 r9: where arguments go.
const ARGUMENTS: [u8; 6] = [7, 6, 2, 1, 8, 9];
const RSP: u8 = 4;
const RBP: u8 = 5;

fn push(reg: u8, out: &mut Vec<u8>) {
    out.extend(Some(0x41).filter(|_| reg >= 8));
    out.push(0x50 | reg & 7);
}

fn pop(reg: u8, out: &mut Vec<u8>) {
    out.extend(Some(0x41).filter(|_| reg >= 8));
    out.push(0x58 | reg & 7);
}

/// Loads an argument, with rbp at the saved rbp, and [`SAVED`], the flags and the red zone above it.
fn give(to: u8, argument: Argument, out: &mut Vec<u8>) {
    let (high, low) = (to >> 3, to & 7);
    let from_frame = |opcode: u8, slots: usize, out: &mut Vec<u8>| {
        out.extend([0x48 | high << 2, opcode, 0x80 | low << 3 | RBP]);
        out.extend((8 * slots as u32).to_le_bytes());
    };
    match argument {
        Argument::Number(number) => {
            out.extend([0x48 | high, 0xb8 | low]); // mov reg, imm64
            out.extend(number.to_le_bytes());
        }
        Argument::Register(Reg(reg)) => match SAVED.iter().position(|saved| *saved == reg) {
            Some(i) => from_frame(0x8b, SAVED.len() - i, out),
            None if reg == RBP => from_frame(0x8b, 0, out),
            // What it was before anything was saved: lea.
            None if reg == RSP => from_frame(0x8d, 1 + SAVED.len() + 1 + 16, out),
            None => out.extend([0x48 | (reg >> 3) << 2 | high, 0x89, 0xc0 | (reg & 7) << 3 | low]),
        },
    }
}

/// `lea reg, [reg + 1]`: leaves the flags alone.
fn add_one(reg: u8, out: &mut Vec<u8>) {
    let high = reg >> 3;
    out.extend([0x48 | high << 2 | high, 0x8d, 0x40 | (reg & 7) << 3 | reg & 7]);
    // rsp and r12 in this field announce one more byte.
    out.extend(Some(0x24).filter(|_| reg & 7 == RSP));
    out.push(1);
}

/// `lea to, [base + index + more]`: leaves the flags alone. The index is not rsp.
fn sum(to: u8, base: u8, index: u8, more: u8, out: &mut Vec<u8>) {
    out.extend([0x48 | (to >> 3) << 2 | (index >> 3) << 1 | base >> 3, 0x8d, 0x44 | (to & 7) << 3]);
    out.extend([(index & 7) << 3 | base & 7, more]);
}

/// `mov reg, value`, with zeros above.
fn load(reg: u8, value: u32, out: &mut Vec<u8>) {
    out.extend(Some(0x41).filter(|_| reg >= 8));
    out.push(0xb8 | reg & 7);
    out.extend(value.to_le_bytes());
}

/// Between pushfq and popfq: no instruction adds to memory in one step and leaves the flags.
fn with_flags_saved<T>(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    out.extend(BELOW_RED_ZONE);
    out.push(0x9c);
    let written = write(out);
    out.push(0x9d);
    out.extend(ABOVE_RED_ZONE);
    written
}

fn movable(decoder: &Decoder<'_>, insn: &Instruction) -> Movable {
    if insn.is_ip_rel_memory_operand() {
        let offset = decoder.get_constant_offsets(insn).displacement_offset() as u32;
        let field = Field { offset, origin: insn.len() as u32, kind: FieldKind::Far };
        return Movable::Refers { field, target: Svma(insn.ip_rel_memory_address()) };
    }
    match insn.flow_control() {
        FlowControl::Next => Movable::AsIs,
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch if is_near(insn) => Movable::Transfers,
        FlowControl::Call if is_near(insn) && insn.near_branch_target() == insn.next_ip() => {
            Movable::Never("a call to the next instruction asks for its own address")
        }
        FlowControl::Call if is_near(insn) => Movable::Transfers,
        FlowControl::XbeginXabortXend if is_near(insn) => Movable::Never("a transaction"),
        _ => Movable::AsIs,
    }
}

fn is_near(insn: &Instruction) -> bool {
    matches!(insn.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64)
}

fn with_field(out: &mut Vec<u8>, opcode: &[u8], kind: FieldKind) -> Field {
    out.extend(opcode);
    let offset = out.len() as u32;
    let size = match kind {
        FieldKind::Near => 1,
        FieldKind::Far | FieldKind::Own => 4,
    };
    out.resize(out.len() + size, 0);
    Field { offset, origin: out.len() as u32, kind }
}

/// `loop`, `jrcxz` and their kin: near in every form, so the far one jumps over a jump.
fn near_only(insn: &Instruction, code: &[u8], reach: Reach, out: &mut Vec<u8>) -> Field {
    let opcode = &code[..insn.len() - 1];
    match reach {
        Reach::Near => with_field(out, opcode, FieldKind::Near),
        Reach::Far => {
            out.extend(opcode);
            out.extend([2, 0xeb, 5]);
            with_field(out, &[0xe9], FieldKind::Far)
        }
    }
}

/// To the target, unless the thread has no shard of its own.
fn gate_for_threads(out: &mut Vec<u8>, fields: &mut Vec<(Field, GateDest)>) {
    // cmp qword [state], 0: the distance is in front of the immediate.
    let mut state = with_field(out, &[0x48, 0x83, 0x3d], FieldKind::Far);
    out.push(0);
    state.origin += 1;
    // je over the next five
    out.extend([0x74, 28]);
    // push r11: a caller that knows this function may rely on any register that the function leaves alone.
    push(11, out);
    // mov r11, fs:[0]: the thread's own pointer to itself
    out.extend([0x64, 0x4c, 0x8b, 0x1c, 0x25, 0, 0, 0, 0]);
    // cmp r11, gs:[...]
    let cell = with_field(out, &[0x65, 0x4c, 0x3b, 0x1c, 0x25], FieldKind::Own);
    pop(11, out);
    let known = with_field(out, &[0x0f, 0x84], FieldKind::Far);
    let later = push_way_on(out, |out| with_field(out, &[0x4c, 0x8d, 0x1d], FieldKind::Far));
    fields.extend([(state, GateDest::State), (cell, GateDest::Cell)]);
    fields.extend([(known, GateDest::Target), (later, GateDest::Target)]);
    fields.push((with_field(out, &[0xe9], FieldKind::Far), GateDest::NewThread));
}

/// push r11; what loads it with the way on; xchg [rsp], r11: that way is on the stack, and no register has changed.
fn push_way_on<T>(out: &mut Vec<u8>, load: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    push(11, out);
    let loaded = load(out);
    out.extend([0x4c, 0x87, 0x1c, 0x24]);
    loaded
}

/// `inc` of the counter; for more than one thread in one step.
fn increment(counter: Counter, out: &mut Vec<u8>) -> Field {
    out.extend(Some(0xf0).filter(|_| counter == Counter::Contended));
    access(counter, 0xff, 0, out)
}

/// One instruction with a counter as its memory operand and `reg` in the other field.
fn access(counter: Counter, opcode: u8, reg: u8, out: &mut Vec<u8>) -> Field {
    let (rex, reg) = (0x48 | (reg >> 3) << 2, (reg & 7) << 3);
    match counter {
        Counter::Shared | Counter::Contended => with_field(out, &[rex, opcode, reg | 5], FieldKind::Far),
        // gs:[disp32], without a base: the thread's base is in gs.
        Counter::PerThread(_) => with_field(out, &[0x65, rex, opcode, reg | 4, 0x25], FieldKind::Own),
    }
}
