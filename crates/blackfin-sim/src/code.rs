//! Decoded code.
//!
//! Instructions are decoded once, into blocks: runs that end with a change of flow, at an instruction for the slow path,
//! or where a hardware loop may end. The last point is what makes loops cheap: an address that is (or was) in LB0 or LB1
//! is a block's end, so the interpreter looks at the loop registers only between blocks. [`CodeCache::note_loop_bottom`]
//! keeps that true.
//!
//! When code is overwritten, all blocks are forgotten. Blocks have running numbers, so entries of the look-up table that
//! point to forgotten blocks are recognized by their number and need not be cleared.

use crate::cost::{self, Hazards};
use crate::exception::Cause;
use crate::legality;
use crate::lower::{Lowered, lower};
use crate::memory::Memory;
use crate::timing::cache::LINE;
use crate::uop::{Bundle, Uop};
use lancet_isa::blackfin::{BfInsn, Op};
use std::collections::HashSet;

/// Longer runs are cut.
const MAX_BLOCK: usize = 64;

const TABLE_BITS: u32 = 15;

/// What an instruction was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Insn(BfInsn),
    Illegal(Cause),
    /// There is no memory at this address.
    NoMemory(u32),
}

/// What a block ends with, for the performance monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Other,
    DirectJump,
    /// Predicted as taken.
    LikelyBranch,
    UnlikelyBranch,
}

#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Index of the first instruction.
    pub first: u32,
    pub len: u32,
    /// The address of the last instruction, and the one behind it.
    pub last_pc: u32,
    pub end_pc: u32,
    /// Cycles when it falls through, and when its branch is taken.
    pub cycles: u32,
    pub taken_cycles: u32,
    /// Cycles of these in which the address generators wait.
    pub hazards: u32,
    /// The first and the last instruction cache line.
    pub first_line: u32,
    pub last_line: u32,
    pub ending: Ending,
    /// The last instruction may be the bottom of a hardware loop.
    pub loop_bottom: bool,
}

pub struct CodeCache {
    table: Vec<Entry>,
    blocks: Vec<Block>,
    /// The number of the first of `blocks`.
    first_number: u32,
    pub ops: Vec<Uop>,
    pub sources: Vec<Source>,
    /// Cycles of each instruction when the next one follows.
    pub costs: Vec<u32>,
    pub bundles: Vec<Bundle>,
    loop_bottoms: HashSet<u32>,
}

#[derive(Clone, Copy)]
struct Entry {
    pc: u32,
    number: u32,
}

impl CodeCache {
    pub fn new() -> CodeCache {
        CodeCache {
            table: vec![Entry { pc: 0, number: 0 }; 1 << TABLE_BITS],
            blocks: Vec::new(),
            first_number: 1,
            ops: Vec::new(),
            sources: Vec::new(),
            costs: Vec::new(),
            bundles: Vec::new(),
            loop_bottoms: HashSet::new(),
        }
    }

    #[inline(always)]
    fn slot(pc: u32) -> usize {
        (pc >> 1) as usize & ((1 << TABLE_BITS) - 1)
    }

    /// The block that starts at `pc`, if it is known.
    #[inline(always)]
    pub fn find(&self, pc: u32) -> Option<&Block> {
        let entry = self.table.get(Self::slot(pc))?;
        if entry.pc != pc {
            return None;
        }
        self.blocks.get(entry.number.wrapping_sub(self.first_number) as usize)
    }

    /// The block that starts at `pc`, made if it is not known.
    pub fn block(&mut self, pc: u32, mem: &mut Memory) -> Block {
        match self.find(pc) {
            Some(block) => *block,
            None => self.build(pc, mem),
        }
    }

    /// Forgets all blocks.
    pub fn flush(&mut self, mem: &mut Memory) {
        self.first_number = self.first_number.wrapping_add(self.blocks.len() as u32).max(1);
        self.blocks.clear();
        self.ops.clear();
        self.sources.clear();
        self.costs.clear();
        self.bundles.clear();
        mem.forget_code();
    }

    /// A hardware loop may end with the instruction at `addr` from now on.
    pub fn note_loop_bottom(&mut self, addr: u32, mem: &mut Memory) {
        // An odd one matches no instruction.
        if addr & 1 == 0 && self.loop_bottoms.insert(addr) && mem.is_decoded(addr) {
            self.flush(mem);
        }
    }

    #[cold]
    fn build(&mut self, pc: u32, mem: &mut Memory) -> Block {
        loop {
            let number = self.first_number;
            let block = self.try_build(pc, mem);
            // A loop inside the block may have made its own first part obsolete.
            if number == self.first_number {
                let entry = Entry { pc, number: number.wrapping_add(self.blocks.len() as u32) };
                self.blocks.push(block);
                if let Some(slot) = self.table.get_mut(Self::slot(pc)) {
                    *slot = entry;
                }
                return block;
            }
        }
    }

    fn try_build(&mut self, pc: u32, mem: &mut Memory) -> Block {
        let first = self.ops.len();
        let (mut at, mut last_pc) = (pc, pc);
        let (mut cycles, mut taken_cycles, mut stalled) = (0, 0, 0);
        let mut hazards = Hazards::default();
        let mut loop_bottom = false;
        let mut ending = Ending::Other;
        for _ in 0..MAX_BLOCK {
            let source = fetch(at, mem);
            last_pc = at;
            let Source::Insn(insn) = source else {
                // It may become legal when any of the bytes that were looked at changes.
                (1..=4).for_each(|halves| mem.mark_code(at.wrapping_add(2 * halves - 2), 2));
                self.push(Uop::Slow, source, 0);
                break;
            };
            if let Op::LoopSetup { last, .. } = insn.op {
                self.note_loop_bottom(last, mem);
            }
            loop_bottom = self.loop_bottoms.contains(&at);
            let uop = match lower(&insn, loop_bottom) {
                Lowered::Uop(uop) => uop,
                Lowered::Bundle(bundle) => {
                    self.bundles.push(bundle);
                    Uop::Bundle(self.bundles.len() as u32 - 1)
                }
            };
            mem.mark_code(at, insn.len.into());
            let (cost, stall) = (cost::of(&insn), hazards.stall(&insn, cycles));
            self.push(uop, source, stall + cost.falls);
            stalled += stall;
            taken_cycles = cycles + stall + cost.taken;
            cycles += stall + cost.falls;
            at = insn.end();
            ending = Ending::of(&insn.op);
            if loop_bottom || ends_block(&uop) {
                break;
            }
        }
        let len = self.ops.len().saturating_sub(first) as u32;
        Block {
            first: first as u32,
            len,
            last_pc,
            end_pc: at,
            cycles,
            taken_cycles,
            hazards: stalled,
            first_line: pc / LINE,
            last_line: at.wrapping_sub(1).max(pc) / LINE,
            ending,
            loop_bottom,
        }
    }

    fn push(&mut self, uop: Uop, source: Source, cost: u32) {
        self.costs.push(cost);
        self.ops.push(uop);
        self.sources.push(source);
    }
}

impl Ending {
    fn of(op: &Op) -> Ending {
        match op {
            Op::JumpShort { .. } | Op::JumpLong { .. } | Op::Call { .. } => Ending::DirectJump,
            Op::Branch { predicted: true, .. } => Ending::LikelyBranch,
            Op::Branch { predicted: false, .. } => Ending::UnlikelyBranch,
            _ => Ending::Other,
        }
    }
}

fn ends_block(uop: &Uop) -> bool {
    matches!(
        uop,
        Uop::Slow
            | Uop::Branch { .. }
            | Uop::Jump { .. }
            | Uop::Call { .. }
            | Uop::JumpReg(_)
            | Uop::CallReg { .. }
            | Uop::JumpOffset { .. }
            | Uop::CallOffset { .. }
            | Uop::ReturnSubroutine
    )
}

fn fetch(at: u32, mem: &Memory) -> Source {
    // An instruction of fewer bytes may stand at the very end of a memory.
    for len in [8, 4, 2] {
        if let Some(bytes) = mem.bytes(at, len) {
            return match legality::read(bytes, at) {
                Some(Ok(insn)) => Source::Insn(insn),
                Some(Err(cause)) => Source::Illegal(cause),
                None => Source::NoMemory(at.wrapping_add(len as u32)),
            };
        }
    }
    Source::NoMemory(at)
}
