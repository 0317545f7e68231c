//! Which functions can be edited, and why the others cannot.
//!
//! A function is edited as a whole or left alone: it must be fully understood, all its instructions must be able to
//! run elsewhere, its jump tables and unwind tables must be able to lead to the clone, and there must be room for a
//! jump at every old address that control may still reach.

use std::collections::BTreeMap;

use lancet_isa::edit::{Edit, Movable};
use lancet_isa::{RegSet, Svma, Target};
use rayon::prelude::*;

use super::conventions;
use super::redirect::{Finder, Redirect};
use super::tables::{self, TableEdit, TableOwners};
use super::unframed::Unframed;
use super::unwind;
use crate::program::rounds::ClosedLoop;
use crate::program::{EdgeId, FoundBy, Func, FuncId, Part, Problem, Program};

/// Where control may still arrive in the old text of an edited function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrivals {
    /// Where other functions and pointers lead: nobody is in it when it is edited.
    Entries,
    /// Also wherever a thread goes that is in it already.
    Running,
    /// Also from every call, and from wherever an exception is thrown: that leads to the old addresses as before.
    Returns,
}

/// Why a function is left alone.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Obstacle {
    #[error("it was not asked for")]
    NotWanted,
    #[error("it is a stub that leads to another object")]
    Stub,
    #[error(transparent)]
    Unknown(Problem),
    #[error("the instruction at {at} must stay where it is: {why}")]
    Immovable { at: Svma, why: &'static str },
    #[error("its frame is a signal's")]
    SignalFrame,
    #[error("its unwind table cannot be moved: {0}")]
    Unwind(#[from] unwind::Obstacle),
    #[error("no unwind table describes it as it does others: whoever wrote it may copy it or know its addresses")]
    NoFrame,
    #[error("only a pointer leads to it, and nothing says that it is code")]
    MayBeData,
    #[error("Go's run-time system knows it by its addresses")]
    Go,
    #[error("its block at {at} is outside of it")]
    Scattered { at: Svma },
    #[error("the jump table at {at} belongs to another function, too")]
    SharedTable { at: Svma },
    #[error("the jump table at {at} overlaps another of its jump tables, which reads the entries otherwise")]
    OverlappingTables { at: Svma },
    #[error("there is no room at {at} for a jump to its clone")]
    NoRoom { at: Svma },
}

/// What is known of a function that can be edited.
#[derive(Clone, Debug, Default)]
pub(super) struct Editable {
    pub redirects: Vec<Redirect>,
    pub tables: Vec<TableEdit>,
    /// Edges that arrive at the same place as another, so that nothing can be added to one of them alone. In order.
    pub joined: Vec<EdgeId>,
}

pub struct Survey {
    verdicts: Vec<Result<Editable, Obstacle>>,
    kept: Vec<RegSet>,
}

impl Survey {
    /// Looks at all functions that are `wanted`.
    pub fn of(
        program: &Program,
        edit: &'static dyn Edit,
        arrivals: Arrivals,
        wanted: &(dyn Fn(FuncId) -> bool + Sync),
    ) -> Survey {
        let whole = Whole { owners: TableOwners::of(program), unframed: Unframed::of(program) };
        let go = program.image().go_code();
        let is_go = |id: FuncId| go.is_some_and(|go| go.contains(program.func(id).entry));
        let verdicts: Vec<Result<Candidate, Obstacle>> = (0..program.funcs().len() as u32)
            .into_par_iter()
            .map(|i| match wanted(FuncId(i)) {
                true if is_go(FuncId(i)) => Err(Obstacle::Go),
                true => Candidate::of(program, edit, arrivals, &whole, FuncId(i)),
                false => Err(Obstacle::NotWanted),
            })
            .collect();
        let mut points = BTreeMap::new();
        for (i, candidate) in verdicts.iter().enumerate() {
            let candidate = candidate.iter().flat_map(|candidate| &candidate.points);
            points.extend(candidate.map(|point| (*point, FuncId(i as u32))));
        }
        let mut finder = Finder::new(program, edit, points, arrivals != Arrivals::Entries);
        let place = |(i, verdict): (usize, Result<Candidate, Obstacle>)| {
            let candidate = verdict?;
            let redirects = finder.find(FuncId(i as u32), &candidate.points)?;
            Ok(Editable { redirects, tables: candidate.tables, joined: candidate.joined })
        };
        let verdicts = verdicts.into_iter().enumerate().map(place).collect();
        Survey { verdicts, kept: conventions::kept(program) }
    }

    /// Why a function is left alone, if it is.
    pub fn obstacle(&self, id: FuncId) -> Option<&Obstacle> {
        self.verdicts[id.0 as usize].as_ref().err()
    }

    /// All functions that can be edited.
    pub fn edited(&self) -> impl Iterator<Item = FuncId> {
        let ids = (0..).map(FuncId).zip(&self.verdicts);
        ids.filter(|(_, verdict)| verdict.is_ok()).map(|(id, _)| id)
    }

    /// Edges of a function that nothing can be added to alone: several jumps share the place they arrive at.
    pub fn joined(&self, id: FuncId) -> &[EdgeId] {
        self.editable(id).map_or(&[], |editable| &editable.joined)
    }

    pub(super) fn editable(&self, id: FuncId) -> Option<&Editable> {
        self.verdicts[id.0 as usize].as_ref().ok()
    }

    /// Registers that may be [held](crate::plan::FuncPlan::held) in a loop of a function: those that it changes anyway, and
    /// those that the calling convention lets it change, unless a caller or a callee is seen to rely on them.
    pub fn spare_registers(&self, program: &Program, id: FuncId, within: &ClosedLoop) -> RegSet {
        let facts = program.image().isa().facts();
        let changeable = program.func(id).changes | !facts.abi.preserved;
        let needed = within.used | self.kept(id) | RegSet::of(facts.stack_pointer);
        (facts.general & changeable).without(needed)
    }

    pub(super) fn kept(&self, id: FuncId) -> RegSet {
        self.kept[id.0 as usize]
    }
}

/// What the program as a whole tells.
struct Whole {
    owners: TableOwners,
    unframed: Unframed,
}

struct Candidate {
    /// Old addresses that control may still reach, in order.
    points: Vec<Svma>,
    tables: Vec<TableEdit>,
    joined: Vec<EdgeId>,
}

impl Candidate {
    fn of(
        program: &Program,
        edit: &'static dyn Edit,
        arrivals: Arrivals,
        whole: &Whole,
        id: FuncId,
    ) -> Result<Candidate, Obstacle> {
        let func = program.func(id);
        if func.found_by == FoundBy::Plt {
            return Err(Obstacle::Stub);
        }
        if let Some(problem) = func.problems.first() {
            return Err(Obstacle::Unknown(*problem));
        }
        check_frames(program, &whole.unframed, id)?;
        check_instructions(program, edit, func)?;
        let tables = tables::survey(program, &whole.owners, id)?;
        let mut points = match arrivals {
            Arrivals::Entries | Arrivals::Running => outer_entries(program, func),
            Arrivals::Returns => {
                check_calls(program, edit, func)?;
                let entries = func.entries.iter().map(|block| func.block(*block).start);
                let returns = func.calls.iter().filter(|call| call.returns).map(|call| func.block(call.block).end());
                entries.chain(returns).collect()
            }
        };
        points.extend(tables.old_targets);
        points.sort_unstable();
        points.dedup();
        Ok(Candidate { points, tables: tables.edits, joined: tables.joined })
    }
}

fn check_frames(program: &Program, unframed: &Unframed, id: FuncId) -> Result<(), Obstacle> {
    let image = program.image();
    for part in &program.func(id).parts {
        let Some(fde) = image.fde_at(part.start) else {
            // Run-time systems of some languages know their own frames by return addresses, which move, or copy their
            // code elsewhere (V8 both).
            if let Some(obstacle) = unframed.obstacle(id) {
                return Err(obstacle);
            }
            continue;
        };
        if fde.signal_frame {
            return Err(Obstacle::SignalFrame);
        }
        if let Some(obstacle) = unwind::obstacle(image, fde) {
            return Err(obstacle.into());
        }
    }
    Ok(())
}

fn check_instructions(program: &Program, edit: &dyn Edit, func: &Func) -> Result<(), Obstacle> {
    let image = program.image();
    let is_suspect = |part: &Part| image.bytes(part.start, part.size()).is_none_or(|code| edit.may_stay(code));
    let is_suspect = func.parts.iter().any(is_suspect);
    for block in &func.blocks {
        if !func.parts.iter().any(|part| part.contains(block.start) && block.end() <= part.end) {
            return Err(Obstacle::Scattered { at: block.start });
        }
        let Some(code) = image.bytes(block.start, u64::from(block.len)) else {
            return Err(Obstacle::Scattered { at: block.start });
        };
        if !is_suspect {
            continue;
        }
        let mut found = None;
        let mut at = block.start;
        edit.walk(code, block.start, &mut |len, movable| {
            if let Movable::Never(why) = movable {
                found.get_or_insert(Obstacle::Immovable { at, why });
            }
            at = at + len as u64;
        });
        if let Some(obstacle) = found {
            return Err(obstacle);
        }
    }
    Ok(())
}

/// Indirect calls must be able to return elsewhere than behind themselves.
fn check_calls(program: &Program, edit: &dyn Edit, func: &Func) -> Result<(), Obstacle> {
    let indirect = func.calls.iter().filter(|call| !matches!(call.to, Target::Direct(_)));
    for call in indirect {
        let Some(insn) = program.insns(func.block(call.block)).into_iter().last() else { continue };
        let code = program.image().bytes(insn.at, insn.len.into()).unwrap_or_default();
        if !edit.jump_as_call(code, &mut Vec::new()) {
            return Err(Obstacle::Immovable { at: insn.at, why: "no jump does what this call does" });
        }
    }
    Ok(())
}

/// Where control comes in from elsewhere by the old address. Exceptions do not: their tables lead to the clone.
fn outer_entries(program: &Program, func: &Func) -> Vec<Svma> {
    let image = program.image();
    let pads = func.parts.iter().filter_map(|part| image.fde_at(part.start)).flat_map(|fde| image.landing_pads(fde));
    let mut pads: Vec<Svma> = pads.map(|site| site.pad).collect();
    pads.sort_unstable();
    let entries = func.entries.iter().map(|block| func.block(*block).start);
    entries.filter(|at| *at == func.entry || pads.binary_search(at).is_err()).collect()
}
