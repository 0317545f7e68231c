//! At which event level code runs.
//!
//! A trap is an interrupt, of level 14 if that is free: it is taken at once only in code of level 15 or of user mode, with interrupts let
//! through. In an event handler, before the program has pushed RETI for the first time, or while CLI masks everything,
//! it would be latched and come late, and the instruction that it replaced would be skipped. Jumps do not care, but
//! what they lead to uses a stack of its own, which one level alone may use.
//!
//! So code is instrumented if it runs at the main level and nowhere else. The main level starts where RETI is pushed by
//! code that does not go back through RTI. What the ELF entry reaches without passing there is start-up. Handlers are
//! functions with RTI, RTX or RTN, and code whose address start-up loads; with everything that they call.

use std::collections::{BTreeSet, HashMap, VecDeque};

use lancet_isa::Target;
use lancet_isa::blackfin::{AllReg, Op, ReturnFrom};

use super::Refusal;
use super::code::{Code, CodeBlock};
use super::{constants, events};
use crate::program::{ExitKind, Program};

/// Who serves exceptions and interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Environment {
    /// Nobody: the program runs on a simulator that serves its system calls.
    Virtual,
    /// The program, through the event controller.
    Operating,
}

impl Environment {
    /// Of a program that lets interrupts through: operating.
    pub fn guess(program: &Program) -> Environment {
        if main_root(program, &Code::read(program)).is_some() { Environment::Operating } else { Environment::Virtual }
    }
}

pub struct Levels {
    operating: bool,
    /// Where RETI is pushed at the main level.
    pub root: Option<u32>,
    /// By block.
    refused: HashMap<u32, Refusal>,
    /// Instructions behind CLI, up to and with STI.
    masked: BTreeSet<u32>,
    /// The event that traps raise, if one is free and always let through.
    event: Result<u8, Refusal>,
}

impl Levels {
    pub fn of(program: &Program, code: &Code, environment: Environment) -> Levels {
        let mut levels = Levels {
            operating: environment == Environment::Operating,
            root: None,
            refused: HashMap::new(),
            masked: BTreeSet::new(),
            event: Err(Refusal::NoTraps),
        };
        if !levels.operating {
            return levels;
        }
        levels.root = main_root(program, code);
        let root_block = levels.root.and_then(|root| code.block_with(root)).map(CodeBlock::start);
        let entry = program.image().entry().map(|entry| entry.0 as u32);
        let walk = Walk { program, code };

        let start_up = walk.reach(entry, root_block);
        let loaded = start_up.blocks.iter().filter_map(|at| code.blocks.get(at));
        let loaded = loaded.flat_map(|block| constants::loaded(&block.insns));
        let loaded: BTreeSet<u32> =
            loaded.filter(|at| code.blocks.contains_key(at) && Some(*at) != root_block).collect();
        let returns = code.blocks.values().filter(|block| returns_from_event(block));
        let own = returns.map(|block| program.func(block.func).entry.0 as u32).filter(|at| Some(*at) != entry);
        let handlers = walk.reach(loaded.into_iter().chain(own), root_block);
        let main = walk.reach(root_block, None);
        for (&at, block) in &code.blocks {
            let in_main = main.blocks.contains(&at) || main.anywhere;
            let refusal = if handlers.blocks.contains(&at) || handlers.anywhere || returns_from_event(block) {
                Refusal::InHandler
            } else if start_up.blocks.contains(&at) || !in_main {
                Refusal::InStartUp
            } else {
                continue;
            };
            levels.refused.insert(at, refusal);
        }
        levels.masked = walk.masked();
        levels.event = match (levels.root, events::free(code)) {
            (None, _) => Err(Refusal::NoTraps),
            (_, None) => Err(Refusal::EventInUse),
            (_, Some(event)) => {
                let in_main = code.blocks.iter().filter(|(at, _)| !levels.refused.contains_key(at));
                let blocks: Vec<&CodeBlock> = in_main.map(|(_, block)| block).collect();
                let by_function = blocks.chunk_by(|a, b| a.func == b.func);
                let mut masks = by_function.map(|blocks| events::masks(blocks, event));
                if masks.any(|masks| masks) { Err(Refusal::OwnMask) } else { Ok(event) }
            }
        };
        levels
    }

    /// Does the instruction run at the main level only?
    pub fn check(&self, block: &CodeBlock, at: u32) -> Result<(), Refusal> {
        if let Some(refusal) = self.refused.get(&block.start()) {
            return Err(*refusal);
        }
        match self.root {
            Some(root) if self.operating && block.start() <= root && root < block.end() && at <= root => {
                Err(Refusal::InStartUp)
            }
            _ => Ok(()),
        }
    }

    /// The event to raise there, if it is taken at once.
    pub fn trap(&self, at: u32) -> Result<u8, Refusal> {
        if self.masked.contains(&at) { Err(Refusal::InterruptsDisabled) } else { self.event }
    }

    /// The event that traps raise.
    pub fn event(&self) -> Option<u8> {
        self.event.ok()
    }
}

/// The push of RETI from which no RTI is reached.
fn main_root(program: &Program, code: &Code) -> Option<u32> {
    code.blocks.values().find_map(|block| {
        let push = block.insns.iter().find(|insn| insn.op == Op::Push(AllReg::Reti))?;
        let func = program.func(block.func);
        let (mut seen, mut todo) = (BTreeSet::from([block.id]), vec![block.id]);
        while let Some(id) = todo.pop() {
            let start = func.block(id).start.0 as u32;
            if code.blocks.get(&start).is_some_and(returns_from_event) {
                return None;
            }
            todo.extend(func.successors(id).iter().map(|edge| edge.to).filter(|to| seen.insert(*to)));
        }
        Some(push.at)
    })
}

fn returns_from_event(block: &CodeBlock) -> bool {
    let returns = |op: &Op| matches!(op, Op::Return(from) if *from != ReturnFrom::Subroutine);
    block.insns.iter().any(|insn| returns(&insn.op))
}

/// What can be reached, also through calls.
struct Reached {
    blocks: BTreeSet<u32>,
    /// Through a pointer: whatever there is.
    anywhere: bool,
}

struct Walk<'a> {
    program: &'a Program,
    code: &'a Code,
}

impl Walk<'_> {
    fn reach(&self, from: impl IntoIterator<Item = u32>, stop: Option<u32>) -> Reached {
        let mut reached = Reached { blocks: BTreeSet::new(), anywhere: false };
        let mut todo: VecDeque<u32> = from.into_iter().collect();
        while let Some(at) = todo.pop_front() {
            if Some(at) == stop || !reached.blocks.insert(at) {
                continue;
            }
            if let Some(block) = self.code.blocks.get(&at) {
                todo.extend(self.next(block, &mut reached.anywhere));
            }
        }
        reached
    }

    fn next(&self, block: &CodeBlock, anywhere: &mut bool) -> Vec<u32> {
        let func = self.program.func(block.func);
        let mut next: Vec<u32> =
            func.successors(block.id).iter().map(|edge| func.block(edge.to).start.0 as u32).collect();
        let mut follow = |target: Target| match target {
            Target::Direct(to) => next.push(to.0 as u32),
            Target::Slot(_) | Target::Computed => *anywhere = true,
        };
        if let Some(call) = func.call_of(block.id) {
            follow(call.to);
        }
        for exit in func.exits_of(block.id) {
            match exit.kind {
                ExitKind::TailCall(to) => follow(to),
                ExitKind::RunsInto(to) => follow(Target::Direct(to)),
                ExitKind::Unresolved => follow(Target::Computed),
                _ => {}
            }
        }
        next
    }

    /// Instructions that run behind CLI, up to and with STI, those of called functions included.
    fn masked(&self) -> BTreeSet<u32> {
        let mut masked = BTreeSet::new();
        let mut todo: Vec<(u32, usize)> = Vec::new();
        for (&at, block) in &self.code.blocks {
            let cli = |insn: &lancet_isa::blackfin::BfInsn| matches!(insn.op, Op::Cli(_));
            todo.extend(block.insns.iter().enumerate().filter(|(_, insn)| cli(insn)).map(|(i, _)| (at, i + 1)));
        }
        let mut seen = BTreeSet::new();
        while let Some((at, from)) = todo.pop() {
            let Some(block) = self.code.blocks.get(&at).filter(|_| seen.insert((at, from))) else { continue };
            let rest = block.insns.get(from..).unwrap_or_default();
            // A trap in place of STI would come before it.
            let open = rest.iter().position(|insn| matches!(insn.op, Op::Sti(_)));
            masked.extend(rest[..open.map_or(rest.len(), |sti| sti + 1)].iter().map(|insn| insn.at));
            if open.is_none() {
                todo.extend(self.next(block, &mut false).into_iter().map(|next| (next, 0)));
            }
        }
        masked
    }
}
