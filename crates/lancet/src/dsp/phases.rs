//! The profiling tool: at every LSETUP, how many cycles and data cache misses there were since the one before.
//!
//! The routine that does it keeps a table with a cell for every pair of points (start and end of a phase), and the misses of
//! a few hundred slices of time for the picture. All of it is in on-chip memory if it fits, and the counters stand still
//! meanwhile, so the profile is that of the program alone.

use lancet_blackfin_sim::Simulator;
use lancet_engine::layout::inplace::{
    Deed, Environment, Order, Payload, Place, PlacedPayload, SAVED_PFCTL, SAVED_SYSCFG, Tactics,
};
use lancet_engine::program::Program;
use lancet_isa::blackfin::{
    Address, AllReg, Alu2, Alu3, Assembler, BitImm, CcBitOp, Compare, DPreg, Dreg, EncodeError, Load, OffsetForm, Op,
    Preg, ReturnFrom, Store, decode,
};

use super::notes::{self, Notes, PhasesNote, Totals};
use crate::{Error, dsp};

/// What runs from one LSETUP to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// Indices of points; the start of the program is behind the last.
    pub start: usize,
    pub end: usize,
    pub executions: u64,
    pub cycles: u64,
    pub misses: u64,
}

pub struct Profile {
    /// The addresses of the LSETUPs that were instrumented.
    pub points: Vec<u32>,
    /// Those that were executed.
    pub phases: Vec<Phase>,
    /// Misses by slice of time, and the cycles of a slice.
    pub slices: Vec<u64>,
    pub slice_cycles: u64,
}

impl Profile {
    /// What starts at each point, together.
    pub fn by_start(&self) -> Vec<Phase> {
        let mut starts = vec![Phase::default(); self.points.len()];
        for phase in &self.phases {
            if let Some(start) = starts.get_mut(phase.start) {
                start.executions += phase.executions;
                start.cycles += phase.cycles;
                start.misses += phase.misses;
            }
        }
        starts
    }

    /// Reads what an instrumented program left in memory. What ran behind its last LSETUP is no phase.
    pub fn read(notes: &PhasesNote, simulator: &Simulator) -> Profile {
        let word = |at: u32| -> u64 {
            let bytes = simulator.memory(at, 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, |bytes| u64::from(u32::from_le_bytes(bytes)))
        };
        let of_data = |offset: u32| word(notes.data.wrapping_add(offset));
        let count = notes.points.len();
        let recorder = Recorder { points: count as u32, slice: notes.slice as u8 };
        let mut phases = Vec::new();
        for (start, end) in (0..=count).flat_map(|start| (0..count).map(move |end| (start, end))) {
            let cell = recorder.cell(start as u32, end as u32);
            let executions = of_data(cell);
            if executions > 0 {
                let cycles = of_data(cell.wrapping_add(4)) | of_data(cell.wrapping_add(8)) << 32;
                phases.push(Phase { start, end, executions, cycles, misses: of_data(cell.wrapping_add(12)) });
            }
        }
        let slices = (0..SLICES).map(|i| of_data(SLICES_AT + 4 * i)).collect();
        Profile { points: notes.points.clone(), phases, slices, slice_cycles: 1 << notes.slice.min(63) }
    }
}

/// The LSETUPs that control reaches.
fn loop_setups(program: &Program) -> Vec<u32> {
    let mut found = Vec::new();
    for insn in program.funcs().iter().flat_map(|func| func.blocks.iter()).flat_map(|block| program.insns(block)) {
        let bytes = program.image().bytes(insn.at, insn.len.into()).unwrap_or_default();
        if decode(bytes, insn.at.0 as u32).is_ok_and(|insn| matches!(insn.op, Op::LoopSetup { .. })) {
            found.push(insn.at.0 as u32);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The program with every LSETUP instrumented that can be. A slice of time has `1 << slice` cycles.
pub fn rewrite(program: &Program, name: &str, slice: u32, tactics: Tactics) -> Result<(Vec<u8>, Notes), Error> {
    if Environment::guess(program) != Environment::Operating {
        return Err(Error::NotOperating { program: name.to_owned() });
    }
    let all = loop_setups(program);
    if all.len() > MOST_POINTS {
        return Err(Error::ManyPhases { program: name.to_owned(), points: all.len(), most: MOST_POINTS });
    }
    let edit = |points: &[u32]| {
        let call = |(i, &at): (usize, &u32)| (Place::Before(at), Deed::Call { routine: RECORD, argument: i as u32 });
        let calls: Vec<(Place, Deed)> = points.iter().enumerate().map(call).collect();
        let recorder = Recorder { points: points.len() as u32, slice: slice as u8 };
        let order = Order {
            points: &calls,
            start: Some(START),
            environment: Environment::Operating,
            tactics,
            ..Order::new(&recorder)
        };
        dsp::edit(program, name, &order)
    };
    // Points that are refused have no cell in the table: once it is known which, it is made anew.
    let (tried, _) = edit(&all)?;
    let is_refused = |at: &u32| tried.refused.iter().any(|(place, _)| place.at() == *at);
    let points: Vec<u32> = all.into_iter().filter(|at| !is_refused(at)).collect();
    let (edited, file) = edit(&points)?;
    let functions = points.iter().map(|&at| dsp::function_at(program, at)).collect();
    let notes = Notes {
        program: name.to_owned(),
        blocks: Vec::new(),
        edges: Vec::new(),
        points: Vec::new(),
        phases: Some(PhasesNote { points, functions, data: edited.payload_data_at, slice }),
        analysis_data: Some(edited.payload_data_at),
        totals: Totals { refused: tried.refused.len(), ..Totals::of(&edited) },
        placed: notes::placed(&edited),
        refused: tried.refused.iter().map(|(place, why)| (place.at(), why.to_string())).collect(),
    };
    Ok((file, notes))
}

/// Numbers of routines.
const START: u32 = 0;
const RECORD: u32 = 1;

const SLICES: u32 = 512;

/// The table has a cell for each pair of them, all in the memory that the editor has.
const MOST_POINTS: usize = 500;

// The data: what was true at the last point, the slices, the cells.
const LAST_POINT: i32 = 0;
const LAST_CYCLES: i32 = 4;
const LAST_MISSES: i32 = 8;
const SLICES_AT: u32 = 16;
const CELLS_AT: u32 = SLICES_AT + 4 * SLICES;
/// A cell: executions, cycles (64 bits), misses.
const CELL_SHIFT: u8 = 4;

const PFCNTR0: u32 = 0xFFE0_8100;
/// The performance monitor: on, counter 0 counts fills of both data caches in all modes.
const COUNT_MISSES: u32 = 1 | 3 << 3 | 0x9E << 5;
const COUNT_CYCLES: u8 = 1;

struct Recorder {
    points: u32,
    /// Cycles of a slice, as a power of two below 32.
    slice: u8,
}

impl Recorder {
    fn cell(&self, start: u32, end: u32) -> u32 {
        CELLS_AT.wrapping_add(start.wrapping_mul(self.points).wrapping_add(end) << CELL_SHIFT)
    }

    /// Starts the counters: they count from when the start-up code has returned.
    fn start(&self, out: &mut Assembler, data_at: u32) -> Result<(), EncodeError> {
        // The start-up code has pushed RETS.
        let saved = |offset| Address::Offset { base: Preg::Sp, offset: offset + 4, form: OffsetForm::Long };
        out.load_address(AllReg::P0, data_at)?.load(AllReg::R0, self.points)?;
        store(out, Dreg::R0, Preg::P0, LAST_POINT)?;
        out.load_address(AllReg::R0, COUNT_MISSES)?;
        out.op(Op::Store { what: Store::Word, reg: DPreg::R0, addr: saved(SAVED_PFCTL) })?;
        out.op(Op::Load { what: Load::Word, reg: DPreg::R0, addr: saved(SAVED_SYSCFG) })?;
        out.op(Op::BitImm { op: BitImm::Set, dst: Dreg::R0, bit: COUNT_CYCLES })?;
        out.op(Op::Store { what: Store::Word, reg: DPreg::R0, addr: saved(SAVED_SYSCFG) })?;
        out.op(Op::Return(ReturnFrom::Subroutine)).map(|_| ())
    }

    /// R0 is the point. Registers are free.
    fn record(&self, out: &mut Assembler, data_at: u32) -> Result<(), EncodeError> {
        let (r0, r1, r2, r3, r4, r5) = (Dreg::R0, Dreg::R1, Dreg::R2, Dreg::R3, Dreg::R4, Dreg::R5);
        let (p0, p1) = (Preg::P0, Preg::P1);
        // R1: cycles and R2: misses since the last point. R4: the cycles, high half in R5.
        out.load_address(AllReg::P0, data_at)?.load_address(AllReg::P1, PFCNTR0)?;
        load(out, r3, p1, 0)?;
        out.mov(AllReg::R4, AllReg::Cycles)?.mov(AllReg::R5, AllReg::Cycles2)?;
        load(out, r1, p0, LAST_CYCLES)?;
        load(out, r2, p0, LAST_MISSES)?;
        store(out, r4, p0, LAST_CYCLES)?;
        store(out, r3, p0, LAST_MISSES)?;
        alu(out, Alu3::Sub, r1, r4, r1)?;
        alu(out, Alu3::Sub, r2, r3, r2)?;
        // The slice: (R5:R4 >> slice), at most the last.
        out.op(Op::BitImm { op: BitImm::ShiftRight, dst: r4, bit: self.slice })?;
        out.op(Op::BitImm { op: BitImm::ShiftLeft, dst: r5, bit: 32 - self.slice })?;
        alu(out, Alu3::Or, r4, r4, r5)?;
        out.load(AllReg::R5, SLICES - 1)?;
        out.op(Op::Compare { relation: Compare::LessUnsigned, left: r5.into(), right: r4.into() })?;
        out.op(Op::MoveIf { cc: true, dst: r4.into(), src: r5.into() })?;
        out.op(Op::BitImm { op: BitImm::ShiftLeft, dst: r4, bit: 2 })?;
        out.load_address(AllReg::R5, data_at + SLICES_AT)?;
        alu(out, Alu3::Add, r4, r4, r5)?;
        out.mov(AllReg::P1, AllReg::R4)?;
        load(out, r3, p1, 0)?;
        alu(out, Alu3::Add, r3, r3, r2)?;
        store(out, r3, p1, 0)?;
        // The cell: (last * points + this) * 16.
        load(out, r4, p0, LAST_POINT)?;
        store(out, r0, p0, LAST_POINT)?;
        out.load(AllReg::R5, self.points)?;
        out.op(Op::Alu2 { op: Alu2::Multiply, dst: r4, src: r5 })?;
        alu(out, Alu3::Add, r4, r4, r0)?;
        out.op(Op::BitImm { op: BitImm::ShiftLeft, dst: r4, bit: CELL_SHIFT })?;
        out.load_address(AllReg::R5, data_at + CELLS_AT)?;
        alu(out, Alu3::Add, r4, r4, r5)?;
        out.mov(AllReg::P1, AllReg::R4)?;
        load(out, r3, p1, 0)?;
        out.op(Op::AddImm { dst: r3.into(), imm: 1 })?;
        store(out, r3, p1, 0)?;
        load(out, r3, p1, 4)?;
        alu(out, Alu3::Add, r3, r3, r1)?;
        out.op(Op::CcBit { op: CcBitOp::Assign, bit: CARRY, to_cc: true })?.op(Op::MoveFromCc(r5))?;
        store(out, r3, p1, 4)?;
        load(out, r3, p1, 8)?;
        alu(out, Alu3::Add, r3, r3, r5)?;
        store(out, r3, p1, 8)?;
        load(out, r3, p1, 12)?;
        alu(out, Alu3::Add, r3, r3, r2)?;
        store(out, r3, p1, 12)?;
        out.op(Op::Return(ReturnFrom::Subroutine)).map(|_| ())
    }
}

/// AC0 in ASTAT.
const CARRY: u8 = 12;

impl Payload for Recorder {
    fn data_bytes(&self) -> u32 {
        // The last row is for what runs before the first point.
        self.cell(self.points + 1, 0)
    }

    fn place(&self, code_at: u32, data_at: u32) -> Result<PlacedPayload, EncodeError> {
        let mut out = Assembler::new(code_at);
        self.start(&mut out, data_at)?;
        let record = out.here();
        self.record(&mut out, data_at)?;
        Ok(PlacedPayload { code: out.finish(), routines: vec![code_at, record], data: Vec::new() })
    }
}

fn offset(base: Preg, offset: i32) -> Address {
    if offset == 0 { Address::At(base) } else { Address::Offset { base, offset, form: OffsetForm::Short } }
}

fn load(out: &mut Assembler, reg: Dreg, base: Preg, at: i32) -> Result<(), EncodeError> {
    out.op(Op::Load { what: Load::Word, reg: reg.into(), addr: offset(base, at) }).map(|_| ())
}

fn store(out: &mut Assembler, reg: Dreg, base: Preg, at: i32) -> Result<(), EncodeError> {
    out.op(Op::Store { what: Store::Word, reg: reg.into(), addr: offset(base, at) }).map(|_| ())
}

fn alu(out: &mut Assembler, op: Alu3, dst: Dreg, src0: Dreg, src1: Dreg) -> Result<(), EncodeError> {
    out.op(Op::Alu3 { op, dst, src0, src1 }).map(|_| ())
}
