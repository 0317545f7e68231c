//! What is added, as code that protects every register; and the routines that such code calls.
//!
//! A counter is a few instructions in place: one register is kept in RETE, others in a scratch area beside the counters.
//! A call of a routine gets a stack of its own and saves everything that a C function may change. While the routine runs,
//! the cycle counter and the performance monitor stand still.

use lancet_isa::Reg;
use lancet_isa::blackfin::{
    Address, AllReg, Alu3, Assembler, BfInsn, BitImm, Compare, DPreg, Dreg, EncodeError, Load, OffsetForm, Op, Preg,
    Ptr2, RegRange, ReturnFrom, Store,
};

use super::events::{EVT0, IMASK};
use super::levels::Environment;
use super::room::Allocator;
use super::{Deed, InPlaceError, Invocation, Operand, Order};

/// Enough for a routine written in C.
const STACK_BYTES: u32 = 0x800;
/// Where a C function may keep its register arguments, by the calling convention.
const ARGUMENT_SPACE: i8 = -12;
/// Where a routine finds what is restored to PFCTL and SYSCFG, from SP.
pub const SAVED_PFCTL: i32 = 12;
pub const SAVED_SYSCFG: i32 = SAVED_PFCTL + 4 * (1 + SAVED.len() as i32 + ALL_COUNT);
/// Words beside the counters that hold registers for a moment.
const SCRATCH_BYTES: u32 = 16;
const SCRATCH_R0: i32 = 12;
const BORROWED: [(DPreg, i32); 3] = [(DPreg::P1, 0), (DPreg::P2, 4), (DPreg::P3, 8)];
/// The instructions that ask whether a loop ends here: two moves of a half each, one between registers, compare, branch.
const LOOP_TEST_BYTES: u32 = 2 + 8 + 2 + 2;

/// The registers a call saves beside those of PUSH MULTIPLE, in the order of their pushes.
const SAVED: [AllReg; 27] = [
    AllReg::Fp,
    AllReg::I0,
    AllReg::I1,
    AllReg::I2,
    AllReg::I3,
    AllReg::M0,
    AllReg::M1,
    AllReg::M2,
    AllReg::M3,
    AllReg::B0,
    AllReg::B1,
    AllReg::B2,
    AllReg::B3,
    AllReg::L0,
    AllReg::L1,
    AllReg::L2,
    AllReg::L3,
    AllReg::A0X,
    AllReg::A0W,
    AllReg::A1X,
    AllReg::A1W,
    AllReg::Lc0,
    AllReg::Lt0,
    AllReg::Lb0,
    AllReg::Lc1,
    AllReg::Lt1,
    AllReg::Lb1,
];

/// How many these are.
const ALL_COUNT: i32 = 14;
/// Where the first arguments go.
const IN_REGISTERS: [DPreg; 3] = [DPreg::R0, DPreg::R1, DPreg::R2];
const ALL: RegRange = RegRange { dregs: Some(Dreg::R0), pregs: Some(Preg::P0) };

/// The control of the performance monitor.
const PFCTL: u32 = 0xFFE0_8000;
/// SYSCFG: CYCLES counts.
const COUNT_CYCLES: u8 = 1;

pub struct Runtime {
    pub counters_at: u32,
    pub payload_data_at: u32,
    pub routines: Vec<u32>,
    invocations: Vec<Invocation>,
    /// Bytes from SP in a routine to the top of the stack.
    frame: i32,
    /// The top of our own stack.
    pub stack_top: u32,
    /// Saves and restores around calls.
    enter: u32,
    leave: u32,
    /// Sets the vector of the trap, if a word in memory names one, and calls the payload's start.
    pub start: u32,
    pub vector_word: u32,
    scratch: u32,
}

impl Runtime {
    pub fn place(room: &mut Allocator, order: &Order<'_>, event: Option<u8>) -> Result<Runtime, InPlaceError> {
        let operating = order.environment == Environment::Operating;
        // First, so that they are in the fastest memory.
        let counters_at = room.data(SCRATCH_BYTES + 8 * order.counters)? + SCRATCH_BYTES;
        let vector_word = room.data(8)?;
        let stack_top = room.data(STACK_BYTES)? + STACK_BYTES;
        let payload_data_at = room.data(order.payload.data_bytes())?;
        let enter = room.code(|at| enter(at, operating))?;
        let leave = room.code(|at| leave(at, operating))?;
        let (mut routines, mut data) = (Vec::new(), Vec::new());
        room.code(|at| {
            let placed = order.payload.place(at, payload_data_at)?;
            (routines, data) = (placed.routines, placed.data);
            Ok(placed.code)
        })?;
        room.fill(payload_data_at, &data);
        let mut runtime = Runtime {
            counters_at,
            payload_data_at,
            routines,
            invocations: order.invocations.to_vec(),
            frame: SAVED_SYSCFG + 4 * 4 - if operating { 0 } else { 4 },
            stack_top,
            enter,
            leave,
            start: 0,
            vector_word,
            scratch: counters_at - SCRATCH_BYTES,
        };
        let first = order.start;
        runtime.start = room.code(|at| runtime.start_routine(at, event, first))?;
        Ok(runtime)
    }

    /// What is done at a place.
    pub fn deed(&self, out: &mut Assembler, deed: Deed, at: u32) -> Result<(), EncodeError> {
        match deed {
            Deed::Count(counter) => self.count(out, self.counters_at + 8 * counter),
            Deed::Call { routine, argument } => self.call(out, routine, argument, at),
            Deed::Invoke(number) => match self.invocations.get(number as usize) {
                Some(invocation) => self.invoke(out, invocation),
                None => Ok(()),
            },
            Deed::Switch { routine, argument, unless } => self.switch(out, (routine, argument), unless, at),
            Deed::Set(value) => {
                self.borrow_pointers(out)?;
                out.load_address(AllReg::P1, self.payload_data_at)?.load(AllReg::P2, value.into())?;
                store(out, DPreg::P2, Preg::P1, 0)?;
                give_pointers_back(out)
            }
        }
    }

    fn call(&self, out: &mut Assembler, routine: u32, argument: u32, at: u32) -> Result<(), EncodeError> {
        let target = self.routines.get(routine as usize).copied().unwrap_or_default();
        self.on_own_stack(out, |out| {
            out.call(self.enter)?.load(AllReg::R0, argument)?.load_address(AllReg::R1, at)?;
            out.call(target)?.call(self.leave).map(|_| ())
        })
    }

    /// A call with arguments of its own.
    fn invoke(&self, out: &mut Assembler, invocation: &Invocation) -> Result<(), EncodeError> {
        let target = self.routines.get(invocation.routine as usize).copied().unwrap_or_default();
        let arguments = &invocation.arguments;
        let on_stack = arguments.get(IN_REGISTERS.len()..).unwrap_or_default();
        let more = 4 * on_stack.len() as u32;
        let frame = self.frame + more as i32;
        self.on_own_stack(out, |out| {
            out.call(self.enter)?;
            if more > 0 {
                lower_stack(out, more)?;
                for (i, argument) in on_stack.iter().enumerate() {
                    give(out, DPreg::R0, *argument, frame)?;
                    store(out, DPreg::R0, Preg::Sp, -i32::from(ARGUMENT_SPACE) + 4 * i as i32)?;
                }
            }
            for (reg, argument) in IN_REGISTERS.into_iter().zip(arguments) {
                give(out, reg, *argument, frame)?;
            }
            out.call(target)?;
            if more > 0 {
                lower_stack(out, more.wrapping_neg())?;
            }
            out.call(self.leave).map(|_| ())
        })
    }

    /// A call under a condition that is tested in a few instructions.
    fn switch(&self, out: &mut Assembler, call: (u32, u32), unless: u8, at: u32) -> Result<(), EncodeError> {
        let test = |out: &mut Assembler| {
            out.load_address(AllReg::P1, self.payload_data_at)?;
            load(out, DPreg::P1, Preg::P1, 0)?;
            out.op(Op::CompareImm { relation: Compare::Equal, left: DPreg::P1, right: (unless & 3) as i8 }).map(|_| ())
        };
        self.unless(out, test, |out| self.call(out, call.0, call.1, at))
    }

    /// What is done at the bottom of hardware loops, just before its instruction, if control goes to `target` behind it:
    /// to the top of one of the loops, or on to the next instruction.
    pub fn deed_where_loop_goes(
        &self,
        out: &mut Assembler,
        deed: Deed,
        bottom: &BfInsn,
        target: u32,
    ) -> Result<(), EncodeError> {
        const LOOPS: [[AllReg; 3]; 2] =
            [[AllReg::Lb0, AllReg::Lc0, AllReg::Lt0], [AllReg::Lb1, AllReg::Lc1, AllReg::Lt1]];
        let test = |out: &mut Assembler| {
            // P1: where control goes. Loop 1 is asked first by the hardware, so last here.
            out.load_address(AllReg::P1, bottom.end())?;
            for [lb, lc, lt] in LOOPS {
                // If this is its bottom, and its count is more than 1, it is to its top.
                let mut ends_here = Assembler::new(out.here() + LOOP_TEST_BYTES);
                ends_here.mov(AllReg::P2, lc)?.load(AllReg::P3, 1)?;
                compare(&mut ends_here, Compare::LessOrEqualUnsigned, DPreg::P2, DPreg::P3)?;
                ends_here.mov(AllReg::P2, lt)?;
                ends_here.op(Op::MoveIf { cc: false, dst: DPreg::P1, src: DPreg::P2 })?;
                let start = out.here();
                out.mov(AllReg::P2, lb)?.load_address(AllReg::P3, bottom.at)?;
                compare(out, Compare::Equal, DPreg::P2, DPreg::P3)?;
                out.op(Op::Branch { cc: false, predicted: false, target: ends_here.here() })?;
                debug_assert_eq!(out.here(), start + LOOP_TEST_BYTES);
                out.raw(&ends_here.finish());
            }
            out.load_address(AllReg::P2, target)?;
            compare(out, Compare::Equal, DPreg::P1, DPreg::P2)?;
            // CC is turned round.
            out.op(Op::NegateCc).map(|_| ())
        };
        self.unless(out, test, |out| self.deed(out, deed, bottom.at))
    }

    /// Does something unless a test, which may use P1 to P3, leaves CC set. Registers are as they were where it is done.
    fn unless(
        &self,
        out: &mut Assembler,
        test: impl FnOnce(&mut Assembler) -> Result<(), EncodeError>,
        then: impl FnOnce(&mut Assembler) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let restore = |out: &mut Assembler| -> Result<(), EncodeError> {
            out.op(Op::MoveToCc(Dreg::R0))?;
            load(out, DPreg::R0, Preg::P0, SCRATCH_R0)?;
            give_pointers_back(out)
        };
        self.borrow_pointers(out)?;
        store(out, DPreg::R0, Preg::P0, SCRATCH_R0)?;
        out.op(Op::MoveFromCc(Dreg::R0))?;
        test(out)?;
        let mut clear = Assembler::new(out.here() + 2);
        restore(&mut clear)?;
        then(&mut clear)?;
        let mut set = Assembler::new(clear.here() + 4);
        restore(&mut set)?;
        let behind = set.here();
        clear.op(Op::JumpLong { target: behind })?;
        out.op(Op::Branch { cc: true, predicted: true, target: clear.here() })?.raw(&clear.finish());
        out.raw(&set.finish());
        Ok(())
    }

    /// P0 becomes the address of the scratch area, and P1 to P3 are free.
    fn borrow_pointers(&self, out: &mut Assembler) -> Result<(), EncodeError> {
        out.mov(AllReg::Rete, AllReg::P0)?.load_address(AllReg::P0, self.scratch)?;
        BORROWED.into_iter().try_for_each(|(reg, offset)| store(out, reg, Preg::P0, offset))
    }

    /// The call of the start-up routine.
    pub fn call_start(&self, out: &mut Assembler) -> Result<(), EncodeError> {
        self.on_own_stack(out, |out| out.call(self.enter)?.call(self.start)?.call(self.leave).map(|_| ()))
    }

    /// SP is kept in RETE, and RETS on our stack.
    fn on_own_stack(
        &self,
        out: &mut Assembler,
        inside: impl FnOnce(&mut Assembler) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.switch_stack(out)?;
        inside(out)?;
        Runtime::switch_back(out)
    }

    pub fn switch_stack(&self, out: &mut Assembler) -> Result<(), EncodeError> {
        out.mov(AllReg::Rete, AllReg::Sp)?.load_address(AllReg::Sp, self.stack_top)?.push(AllReg::Rets).map(|_| ())
    }

    pub fn switch_back(out: &mut Assembler) -> Result<(), EncodeError> {
        out.pop(AllReg::Rets)?.mov(AllReg::Sp, AllReg::Rete).map(|_| ())
    }

    /// Adds one to 64 bits, with nothing but pointer arithmetic and a CC that is put back.
    fn count(&self, out: &mut Assembler, counter: u32) -> Result<(), EncodeError> {
        let (p0, p1) = (Preg::P0, Preg::P1);
        let to_scratch = self.scratch.wrapping_sub(counter) as i32;
        out.mov(AllReg::Rete, AllReg::P0)?.load_address(AllReg::P0, counter)?;
        store(out, p1.into(), p0, to_scratch)?;
        store(out, DPreg::R0, p0, to_scratch + 4)?;
        load(out, p1.into(), p0, 0)?;
        out.op(Op::AddImm { dst: p1.into(), imm: 1 })?;
        store(out, p1.into(), p0, 0)?;
        out.op(Op::MoveFromCc(Dreg::R0))?;
        out.op(Op::CompareImm { relation: Compare::Equal, left: p1.into(), right: 0 })?;
        let mut carry = Assembler::new(out.here() + 2);
        load(&mut carry, p1.into(), p0, 4)?;
        carry.op(Op::AddImm { dst: p1.into(), imm: 1 })?;
        store(&mut carry, p1.into(), p0, 4)?;
        out.op(Op::Branch { cc: false, predicted: true, target: carry.here() })?.raw(&carry.finish());
        out.op(Op::MoveToCc(Dreg::R0))?;
        load(out, DPreg::R0, p0, to_scratch + 4)?;
        load(out, p1.into(), p0, to_scratch)?;
        out.mov(AllReg::P0, AllReg::Rete).map(|_| ())
    }

    /// Runs with all registers saved.
    fn start_routine(&self, at: u32, event: Option<u8>, first: Option<u32>) -> Result<Vec<u8>, EncodeError> {
        let mut out = Assembler::new(at);
        out.push(AllReg::Rets)?;
        if let Some(event) = event {
            out.load_address(AllReg::P0, self.vector_word)?;
            load(&mut out, DPreg::R0, Preg::P0, 0)?;
            out.op(Op::CompareImm { relation: Compare::Equal, left: DPreg::R0, right: 0 })?;
            let mut part = Assembler::new(out.here() + 2);
            part.load_address(AllReg::P0, EVT0 + 4 * u32::from(event))?;
            store(&mut part, DPreg::R0, Preg::P0, 0)?;
            part.load_address(AllReg::P0, IMASK)?;
            load(&mut part, DPreg::R0, Preg::P0, 0)?;
            part.op(Op::BitImm { op: BitImm::Set, dst: Dreg::R0, bit: event })?;
            store(&mut part, DPreg::R0, Preg::P0, 0)?;
            part.op(Op::Csync)?;
            out.op(Op::Branch { cc: true, predicted: false, target: part.here() })?.raw(&part.finish());
        }
        if let Some(target) = first.and_then(|first| self.routines.get(first as usize)) {
            out.call(*target)?;
        }
        out.pop(AllReg::Rets)?.op(Op::Return(ReturnFrom::Subroutine))?;
        Ok(out.finish())
    }
}

/// SP goes down. P0, which is saved, changes.
fn lower_stack(out: &mut Assembler, by: u32) -> Result<(), EncodeError> {
    out.load(AllReg::P0, by)?;
    out.op(Op::Ptr2 { op: Ptr2::Sub, dst: Preg::Sp, src: Preg::P0 }).map(|_| ())
}

/// The register of this number, if it can be an argument.
pub fn operand(reg: Reg) -> Option<AllReg> {
    match reg.0 {
        0..=31 | 48..=53 => Some(AllReg::from_bits(reg.0.into())),
        47 => Some(AllReg::Rets),
        _ => None,
    }
}

/// Loads what a register held before everything was saved, `frame` bytes below the top of the stack.
fn give(out: &mut Assembler, to: DPreg, argument: Operand, frame: i32) -> Result<(), EncodeError> {
    let reg = match argument {
        Operand::Number(number) => return out.load(to.into(), number).map(|_| ()),
        Operand::Register(AllReg::Sp) => return out.mov(to.into(), AllReg::Rete).map(|_| ()),
        Operand::Register(reg) => reg,
    };
    // From the top: RETS, R0, ASTAT, SYSCFG, R0 to R7 and P0 to P5 as PUSH MULTIPLE has them, and SAVED.
    let words = match reg {
        AllReg::Rets => 1,
        AllReg::R0 => 2,
        _ if reg.is_dreg() || reg.is_preg() && reg != AllReg::Fp => 5 + i32::from(reg.code()),
        _ => match SAVED.iter().position(|saved| *saved == reg) {
            Some(i) => 5 + ALL_COUNT + i as i32,
            // What is not saved is not changed.
            None => return out.mov(to.into(), reg).map(|_| ()),
        },
    };
    load(out, to, Preg::Sp, frame - 4 * words)
}

fn give_pointers_back(out: &mut Assembler) -> Result<(), EncodeError> {
    BORROWED.into_iter().try_for_each(|(reg, offset)| load(out, reg, Preg::P0, offset))?;
    out.mov(AllReg::P0, AllReg::Rete).map(|_| ())
}

/// Of pointers, which changes CC alone.
fn compare(out: &mut Assembler, relation: Compare, left: DPreg, right: DPreg) -> Result<(), EncodeError> {
    out.op(Op::Compare { relation, left, right }).map(|_| ())
}

/// Pushes everything on the stack; counters stand still.
fn enter(at: u32, operating: bool) -> Result<Vec<u8>, EncodeError> {
    let mut out = Assembler::new(at);
    // Cycles stop counting as early as can be.
    out.push(AllReg::R0)?.push(AllReg::Astat)?.mov(AllReg::R0, AllReg::Syscfg)?.push(AllReg::R0)?;
    out.op(Op::BitImm { op: BitImm::Clear, dst: Dreg::R0, bit: COUNT_CYCLES })?.mov(AllReg::Syscfg, AllReg::R0)?;
    out.op(Op::PushMultiple(ALL))?;
    for reg in SAVED {
        out.push(reg)?;
    }
    if operating {
        out.load_address(AllReg::P0, PFCTL)?;
        load(&mut out, DPreg::R0, Preg::P0, 0)?;
        out.push(AllReg::R0)?;
        out.op(Op::Alu3 { op: Alu3::Xor, dst: Dreg::R0, src0: Dreg::R0, src1: Dreg::R0 })?;
        store(&mut out, DPreg::R0, Preg::P0, 0)?;
    }
    // Circular buffers off: C code expects it.
    out.load(AllReg::R0, 0)?;
    for reg in [AllReg::L0, AllReg::L1, AllReg::L2, AllReg::L3] {
        out.mov(reg, AllReg::R0)?;
    }
    out.op(Op::AddImm { dst: DPreg::Sp, imm: ARGUMENT_SPACE })?;
    out.op(Op::Return(ReturnFrom::Subroutine))?;
    Ok(out.finish())
}

fn leave(at: u32, operating: bool) -> Result<Vec<u8>, EncodeError> {
    let mut out = Assembler::new(at);
    out.op(Op::AddImm { dst: DPreg::Sp, imm: -ARGUMENT_SPACE })?;
    if operating {
        out.load_address(AllReg::P0, PFCTL)?.pop(AllReg::R0)?;
        store(&mut out, DPreg::R0, Preg::P0, 0)?;
    }
    for reg in SAVED.into_iter().rev() {
        out.pop(reg)?;
    }
    out.op(Op::PopMultiple(ALL))?;
    out.pop(AllReg::R0)?.mov(AllReg::Syscfg, AllReg::R0)?.pop(AllReg::Astat)?.pop(AllReg::R0)?;
    out.op(Op::Return(ReturnFrom::Subroutine))?;
    Ok(out.finish())
}

/// `[base + offset]`, in the shortest form.
fn at(base: Preg, offset: i32) -> Address {
    match offset {
        0 => Address::At(base),
        4..=60 if base != Preg::Sp => Address::Offset { base, offset, form: OffsetForm::Short },
        _ => Address::Offset { base, offset, form: OffsetForm::Long },
    }
}

pub fn load(out: &mut Assembler, reg: DPreg, base: Preg, offset: i32) -> Result<(), EncodeError> {
    out.op(Op::Load { what: Load::Word, reg, addr: at(base, offset) }).map(|_| ())
}

pub fn store(out: &mut Assembler, reg: DPreg, base: Preg, offset: i32) -> Result<(), EncodeError> {
    out.op(Op::Store { what: Store::Word, reg, addr: at(base, offset) }).map(|_| ())
}
