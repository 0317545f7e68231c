//! Decoded code.
//!
//! Instructions are decoded once, into blocks. A block ends at a jump whose target is not in the instruction, at an
//! instruction for the slow path, or where a hardware loop may end. The last point is what makes loops cheap: an address
//! that is (or was) in LB0 or LB1 is a block's end, so the interpreter looks at the loop registers only between blocks.
//! [`CodeCache::note_loop_bottom`] keeps that true.
//!
//! Without a model of time, blocks follow direct jumps and calls and go on behind conditional branches; the interpreter
//! leaves them in the middle when a branch is taken. With one they are straight code, so that their cache lines and
//! predictions can be counted as a whole.
//!
//! When code is overwritten, all blocks are forgotten. Blocks have running numbers, so entries of the look-up table that
//! point to forgotten blocks are recognized by their number and need not be cleared.

use crate::cost::{self, Hazards};
use crate::exception::Cause;
use crate::legality;
use crate::lower::{Lowered, lower};
use crate::memory::Memory;
use crate::mmu::Mmu;
use crate::timing::cache::LINE;
use crate::uop::{Bundle, Uop};
use lancet_isa::blackfin::{BfInsn, Op};
use std::collections::HashSet;

/// Longer runs are cut.
const MAX_BLOCK: usize = 64;
/// So many jumps are followed.
const MAX_JUMPS: usize = 4;

/// When so many instructions are kept, everything is forgotten: no reasonable program has that much code.
const MAX_KEPT: usize = 1 << 19;

const TABLE_BITS: u32 = 15;
const SINGLES_BITS: u32 = 12;

/// What an instruction was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Insn(BfInsn),
    Illegal(Cause),
    /// There is no memory for it.
    NoMemory,
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
    /// Cycles when it is run to its end, and the most it can take.
    pub cycles: u32,
    pub max_cycles: u32,
    /// Cycles of these in which the address generators wait.
    pub hazards: u32,
    /// The first and the last instruction cache line, of straight code.
    pub first_line: u32,
    pub last_line: u32,
    pub ending: Ending,
    /// The last instruction may be the bottom of a hardware loop.
    pub loop_bottom: bool,
}

/// What is known of an instruction beside its uop.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub pc: u32,
    pub source: Source,
    /// Cycles from the start of the block until this instruction is through, when it falls through and when it jumps.
    pub falls: u32,
    pub taken: u32,
}

pub struct CodeCache {
    table: Vec<Entry>,
    /// Instructions that were run one by one. Making a block for each would be quadratic where code is rewritten often.
    singles: Vec<Single>,
    blocks: Vec<Block>,
    /// How often everything was forgotten.
    generation: u64,
    /// The number of the first of `blocks`.
    first_number: u32,
    /// The instructions of all blocks, and `places` for each.
    pub ops: Vec<Uop>,
    pub places: Vec<Place>,
    pub bundles: Vec<Bundle>,
    loop_bottoms: HashSet<u32>,
    /// Blocks are straight code.
    pub straight: bool,
}

#[derive(Clone, Copy)]
struct Entry {
    pc: u32,
    number: u32,
}

#[derive(Clone, Copy)]
struct Single {
    pc: u32,
    /// It is valid while this is the cache's `generation`.
    generation: u64,
    source: Source,
}

impl CodeCache {
    pub fn new() -> CodeCache {
        CodeCache {
            table: vec![Entry { pc: 0, number: 0 }; 1 << TABLE_BITS],
            singles: vec![Single { pc: 0, generation: 0, source: Source::NoMemory }; 1 << SINGLES_BITS],
            generation: 1,
            blocks: Vec::new(),
            first_number: 1,
            ops: Vec::new(),
            places: Vec::new(),
            bundles: Vec::new(),
            loop_bottoms: HashSet::new(),
            straight: false,
        }
    }

    /// Forgets everything.
    pub fn reset(&mut self, mem: &mut Memory) {
        self.flush(mem);
        self.loop_bottoms.clear();
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

    /// What the instruction at `pc` is made from.
    pub fn source(&mut self, pc: u32, mem: &mut Memory) -> Source {
        if let Some(place) = self.find(pc).and_then(|block| self.places.get(block.first as usize)) {
            return place.source;
        }
        let slot = (pc >> 1) as usize & ((1 << SINGLES_BITS) - 1);
        match self.singles.get(slot) {
            Some(single) if single.pc == pc && single.generation == self.generation => single.source,
            _ => {
                let source = fetch(pc, mem);
                mark(source, pc, mem);
                if let Some(single) = self.singles.get_mut(slot) {
                    *single = Single { pc, generation: self.generation, source };
                }
                source
            }
        }
    }

    /// Forgets all blocks.
    pub fn flush(&mut self, mem: &mut Memory) {
        self.first_number = self.first_number.wrapping_add(self.blocks.len() as u32).max(1);
        self.blocks.clear();
        self.ops.clear();
        self.places.clear();
        self.bundles.clear();
        self.generation += 1;
        mem.forget_code();
    }

    pub fn is_loop_bottom(&self, addr: u32) -> bool {
        self.loop_bottoms.contains(&addr)
    }

    /// A hardware loop may end with the instruction at `addr` from now on.
    pub fn note_loop_bottom(&mut self, addr: u32, mem: &mut Memory) {
        // An odd one matches no instruction.
        if addr & 1 == 0 && self.loop_bottoms.insert(addr) && mem.is_decoded(addr) {
            self.flush(mem);
        }
    }

    /// Makes the block that starts at `pc`.
    #[cold]
    #[inline(never)]
    pub fn build(&mut self, pc: u32, mem: &mut Memory) {
        if self.ops.len() > MAX_KEPT {
            self.flush(mem);
        }
        loop {
            let generation = self.generation;
            let block = self.try_build(pc, mem);
            // A loop inside the block may have made its own first part obsolete.
            if generation == self.generation {
                let entry = Entry { pc, number: self.first_number.wrapping_add(self.blocks.len() as u32) };
                self.blocks.push(block);
                if let Some(slot) = self.table.get_mut(Self::slot(pc)) {
                    *slot = entry;
                }
                return;
            }
        }
    }

    fn try_build(&mut self, pc: u32, mem: &mut Memory) -> Block {
        let first = self.ops.len();
        let mut block = Block {
            first: first as u32,
            len: 0,
            last_pc: pc,
            end_pc: pc,
            cycles: 0,
            max_cycles: 0,
            hazards: 0,
            first_line: pc / LINE,
            last_line: pc / LINE,
            ending: Ending::Other,
            loop_bottom: false,
        };
        let mut hazards = Hazards::default();
        let mut jumps = 0;
        for _ in 0..MAX_BLOCK {
            let at = block.end_pc;
            block.last_pc = at;
            let source = fetch(at, mem);
            mark(source, at, mem);
            let insn = match source {
                Source::Insn(insn) if Mmu::allows_fetch(at) => insn,
                // What is fetched from where it must not be is an exception, found by the slow path.
                _ => {
                    self.push(Uop::Slow, Place { pc: at, source, falls: block.cycles, taken: block.cycles });
                    break;
                }
            };
            if let Op::LoopSetup { last, .. } = insn.op {
                self.note_loop_bottom(last, mem);
            }
            block.loop_bottom = self.is_loop_bottom(at);
            let uop = match lower(&insn, block.loop_bottom) {
                Lowered::Uop(uop) => uop,
                Lowered::Bundle(bundle) => {
                    self.bundles.push(bundle);
                    Uop::Bundle(self.bundles.len() as u32 - 1)
                }
            };
            let (cost, stall) = (cost::of(&insn), hazards.stall(&insn, block.cycles));
            let (falls, taken) = (block.cycles + stall + cost.falls, block.cycles + stall + cost.taken);
            let place = Place { pc: at, source, falls, taken };
            block.hazards += stall;
            block.max_cycles = block.max_cycles.max(taken).max(falls);
            block.ending = Ending::of(&insn.op);
            block.last_line = insn.end().wrapping_sub(1) / LINE;
            let may_go_on = !self.straight && !block.loop_bottom;
            if let Some((followed, target)) = followed(uop).filter(|_| may_go_on && jumps < MAX_JUMPS) {
                jumps += 1;
                self.push(followed, place);
                (block.cycles, block.end_pc) = (taken, target);
                continue;
            }
            self.push(uop, place);
            (block.cycles, block.end_pc) = (falls, insn.end());
            let goes_on = matches!(uop, Uop::Branch { .. }) && may_go_on;
            if block.loop_bottom || ends_block(&uop) && !goes_on {
                break;
            }
        }
        block.len = self.ops.len().saturating_sub(first) as u32;
        block
    }

    fn push(&mut self, uop: Uop, place: Place) {
        self.ops.push(uop);
        self.places.push(place);
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

/// What is left to do of a jump or call that is followed, and where it leads.
fn followed(uop: Uop) -> Option<(Uop, u32)> {
    match uop {
        Uop::Jump { target } => Some((Uop::Nop, target)),
        Uop::Call { target, back } => Some((Uop::SetRets(back), target)),
        _ => None,
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
    let bytes = [8, 4, 2].into_iter().find_map(|len| mem.bytes(at, len));
    match bytes.and_then(|bytes| legality::read(bytes, at)) {
        Some(Ok(insn)) => Source::Insn(insn),
        Some(Err(cause)) => Source::Illegal(cause),
        None => Source::NoMemory,
    }
}

/// Remembers which bytes an instruction was made from.
fn mark(source: Source, at: u32, mem: &mut Memory) {
    match source {
        Source::Insn(insn) => mem.mark_code(at, insn.len.into()),
        // It may become legal when any of the bytes that were looked at changes.
        _ => (0..4).for_each(|half| mem.mark_code(at.wrapping_add(2 * half), 2)),
    }
}
