//! Loops that control leaves by their edges alone, and what their instructions do to registers.
//!
//! In such a loop a register that it does not use can hold a number from the first round to the last. And if one
//! instruction alone changes a register, by adding a constant, the register tells how often that instruction ran:
//! whatever paths control took, each run added the constant once.

use lancet_isa::value::{Expr, Place};
use lancet_isa::{Flow, Reg, RegSet, Target};

use super::expr::Linear;
use super::{BlockId, EdgeId, EdgeKind, ExitKind, Func, LoopId, Program};

/// Larger steps are not believed to be steps.
const LARGEST_STEP: i64 = 256;

/// A loop without calls, calls of the system, and jump tables that lead into it or out of it.
#[derive(Clone, Debug)]
pub struct ClosedLoop {
    pub id: LoopId,
    /// Read, changed or needed somewhere in it.
    pub used: RegSet,
    pub steps: Vec<Step>,
    /// All ways in lead to its header: these edges, and these of [`Func::entries`].
    pub edges_in: Vec<EdgeId>,
    pub entries: Vec<u32>,
    /// All ways out: these edges, and these of [`Func::exits`].
    pub edges_out: Vec<EdgeId>,
    pub exits: Vec<u32>,
}

/// Each run of a block adds a constant to a 64-bit register that nothing else in the loop changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    pub block: BlockId,
    pub reg: Reg,
    /// Not 0.
    pub by: i64,
}

/// The closed loops of a function, outer ones before those in them.
pub fn closed_loops(program: &Program, func: &Func) -> Vec<ClosedLoop> {
    func.loops.iter().filter_map(|(id, _)| closed_loop(program, func, id)).collect()
}

fn closed_loop(program: &Program, func: &Func, id: LoopId) -> Option<ClosedLoop> {
    let mut found = ways(func, id)?;
    let blocks = || func.loops.blocks(id).iter().map(|block| BlockId(*block));
    let (mut once, mut twice) = (RegSet::EMPTY, RegSet::EMPTY);
    let mut insns = Vec::new();
    for block in blocks() {
        let first = insns.len();
        insns.extend(program.insns(func.block(block)).into_iter().map(|insn| (block, insn)));
        found.used |= func.live_in(block) | func.live_out(block);
        for (_, insn) in &insns[first..] {
            if !matches!(insn.flow, Flow::Next | Flow::Jump(_) | Flow::Branch(_)) {
                return None;
            }
            found.used |= insn.effects.reads | insn.effects.writes;
            twice |= once & insn.effects.writes;
            once |= insn.effects.writes;
        }
    }
    let candidates = once.without(twice) & program.image().isa().facts().general;
    for (block, insn) in insns {
        for reg in (insn.effects.writes & insn.effects.reads & candidates).iter() {
            let code = program.image().bytes(insn.at, u64::from(insn.len)).unwrap_or_default();
            let values = program.image().isa().values(code, insn.at);
            let set = values.sets.iter().find(|set| set.dst == Place::Reg(reg));
            if let Some(by) = set.and_then(|set| step(&set.value, reg)) {
                found.steps.push(Step { block, reg, by });
            }
        }
    }
    Some(found)
}

/// What an expression adds to a register, if it does nothing else.
fn step(value: &Expr, reg: Reg) -> Option<i64> {
    let sum = Linear::of(value);
    let by = sum.constant as i64;
    let is_step = sum.terms.len() == 1 && sum.terms[0] == (&Expr::Reg(reg), 1);
    (is_step && by != 0 && by.abs() <= LARGEST_STEP).then_some(by)
}

/// The ways into a loop and out of it, if they are such that something can be added to all.
fn ways(func: &Func, id: LoopId) -> Option<ClosedLoop> {
    let loops = &func.loops;
    let header = BlockId(loops.get(id).header);
    let mut found = ClosedLoop {
        id,
        used: RegSet::EMPTY,
        steps: Vec::new(),
        edges_in: Vec::new(),
        entries: Vec::new(),
        edges_out: Vec::new(),
        exits: Vec::new(),
    };
    if loops.get(id).irreducible || loops.blocks(id).iter().any(|block| func.call_of(BlockId(*block)).is_some()) {
        return None;
    }
    for (i, entry) in func.entries.iter().enumerate().filter(|(_, entry)| loops.contains(id, entry.0)) {
        found.entries.push(i as u32);
        (*entry == header).then_some(())?;
    }
    for (i, edge) in func.edges.iter().enumerate() {
        let (from, to) = (loops.contains(id, edge.from.0), loops.contains(id, edge.to.0));
        if from == to {
            continue;
        }
        (!matches!(edge.kind, EdgeKind::Table | EdgeKind::Repeat) && (from || edge.to == header)).then_some(())?;
        let edges = if from { &mut found.edges_out } else { &mut found.edges_in };
        edges.push(EdgeId(i as u32));
    }
    for (i, exit) in func.exits.iter().enumerate().filter(|(_, exit)| loops.contains(id, exit.from.0)) {
        matches!(exit.kind, ExitKind::TailCall(Target::Direct(_)) | ExitKind::RunsInto(_)).then_some(())?;
        found.exits.push(i as u32);
    }
    Some(found)
}
