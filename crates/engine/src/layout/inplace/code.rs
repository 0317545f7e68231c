//! The instructions of a program as the editor wants them: decoded, by address, with their blocks, and the bottoms of all
//! hardware loops.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lancet_isa::blackfin::{AllReg, BfInsn, Op, decode};

use super::constants::{self, Known};
use crate::program::{BlockId, FuncId, Program};

/// A block of the program.
#[derive(Clone, Debug)]
pub struct CodeBlock {
    pub func: FuncId,
    pub id: BlockId,
    pub insns: Vec<BfInsn>,
}

impl CodeBlock {
    pub fn start(&self) -> u32 {
        self.insns.first().map_or(0, |insn| insn.at)
    }

    pub fn end(&self) -> u32 {
        self.insns.last().map_or(0, BfInsn::end)
    }
}

pub struct Code {
    /// By address. Blocks of functions that share code are here once.
    pub blocks: BTreeMap<u32, CodeBlock>,
    /// The block of every instruction.
    block_of: HashMap<u32, u32>,
    /// The tops of the hardware loops that end with the instruction at an address.
    pub bottoms: BTreeMap<u32, BTreeSet<u32>>,
    /// Blocks into whose middle an address leads that some instruction loads: there may be a way in.
    pub entered: BTreeSet<u32>,
    /// Blocks that overlap others out of step: hostile or wrong, not to be touched.
    pub overlapping: BTreeSet<u32>,
}

impl Code {
    pub fn read(program: &Program) -> Code {
        let mut code = Code {
            blocks: BTreeMap::new(),
            block_of: HashMap::new(),
            bottoms: BTreeMap::new(),
            entered: BTreeSet::new(),
            overlapping: BTreeSet::new(),
        };
        let mut loaded = BTreeSet::new();
        for (i, func) in program.funcs().iter().enumerate() {
            for id in func.block_ids() {
                let block = func.block(id);
                let bytes = program.image().bytes(block.start, u64::from(block.len)).unwrap_or_default();
                let insns = decode_all(bytes, block.start.0 as u32);
                code.add_loops(&insns);
                loaded.extend(constants::loaded(&insns));
                code.block_of.extend(insns.iter().map(|insn| (insn.at, block.start.0 as u32)));
                code.blocks.insert(block.start.0 as u32, CodeBlock { func: FuncId(i as u32), id, insns });
            }
        }
        let inside = |at: &u32| code.block_of.get(at).copied().filter(|start| start != at);
        code.entered = loaded.iter().filter_map(inside).collect();
        let mut last_end = 0;
        let mut last_start = 0;
        for (&start, block) in &code.blocks {
            if start < last_end {
                code.overlapping.extend([start, last_start]);
            }
            (last_start, last_end) = (start, last_end.max(block.end()));
        }
        code
    }

    /// The hardware loops that LSETUP makes, and those whose registers are set to constants one by one.
    fn add_loops(&mut self, insns: &[BfInsn]) {
        let mut known = Known::default();
        let (mut tops, mut bottoms) = ([const { Vec::new() }; 2], [const { Vec::new() }; 2]);
        for insn in insns {
            match insn.op {
                Op::LoopSetup { first, last, .. } => {
                    self.bottoms.entry(last).or_default().insert(first);
                }
                Op::Move { dst: AllReg::Lt0, src } => tops[0].extend(known.get(src)),
                Op::Move { dst: AllReg::Lt1, src } => tops[1].extend(known.get(src)),
                Op::Move { dst: AllReg::Lb0, src } => bottoms[0].extend(known.get(src)),
                Op::Move { dst: AllReg::Lb1, src } => bottoms[1].extend(known.get(src)),
                _ => {}
            }
            known.step(insn);
        }
        for (tops, bottoms) in tops.iter().zip(bottoms) {
            for bottom in bottoms {
                self.bottoms.entry(bottom).or_default().extend(tops);
            }
        }
    }

    pub fn insn(&self, at: u32) -> Option<&BfInsn> {
        self.block_with(at)?.insns.iter().find(|insn| insn.at == at)
    }

    /// The block that the instruction at `at` is in.
    pub fn block_with(&self, at: u32) -> Option<&CodeBlock> {
        self.blocks.get(self.block_of.get(&at)?)
    }

    pub fn is_bottom(&self, at: u32) -> bool {
        self.bottoms.contains_key(&at)
    }
}

fn decode_all(bytes: &[u8], at: u32) -> Vec<BfInsn> {
    let (mut insns, mut offset) = (Vec::new(), 0);
    while let Some(insn) = bytes.get(offset..).and_then(|rest| decode(rest, at + offset as u32).ok()) {
        offset += usize::from(insn.len);
        insns.push(insn);
    }
    insns
}

/// The system registers that an operation reads or writes by name.
pub fn named(op: &Op) -> [Option<AllReg>; 2] {
    match *op {
        Op::Push(reg) | Op::Pop(reg) | Op::DbgReg(reg) => [Some(reg), None],
        Op::Move { dst, src } => [Some(dst), Some(src)],
        Op::Assert { reg, .. } => [Some(reg), None],
        _ => [None, None],
    }
}

/// Does it use the registers that editing in place uses?
pub fn uses_event_registers(op: &Op) -> bool {
    named(op).into_iter().flatten().any(|reg| matches!(reg, AllReg::Reti | AllReg::Retn | AllReg::Rete))
}

/// Does it use LC, LT or LB?
pub fn uses_loop_registers(op: &Op) -> bool {
    let is_loop =
        |reg: AllReg| matches!(reg, AllReg::Lc0 | AllReg::Lc1 | AllReg::Lt0 | AllReg::Lt1 | AllReg::Lb0 | AllReg::Lb1);
    matches!(op, Op::LoopSetup { .. }) || named(op).into_iter().flatten().any(is_loop)
}
