//! Functions that no unwind table describes: may they be edited?
//!
//! Where other functions have such tables, one without may have been left out on purpose, by somebody who copies it or knows
//! it by its addresses, so it is left alone. gcc's start files (`crti.o`, `crtbegin.o`, `crtn.o`) are an exception: they are
//! built without. They are told from others by how they are reached: by the loader, through the tables of constructors and
//! destructors, or by each other, and no other code calls them or jumps to them.
//!
//! Where few functions have tables, there may be data between them. What neither a table, nor a symbol, nor known code
//! leads to, but only a pointer, may be data that happens to decode: a text, for one, is full of short jumps. An edit would
//! destroy it.

use lancet_isa::{Svma, Target};

use super::survey::Obstacle;
use crate::program::{ExitKind, FoundBy, Func, FuncId, Program};

pub(super) struct Unframed {
    /// Others have unwind tables.
    is_rule: bool,
    /// In order.
    start_files: Vec<FuncId>,
    /// By function, where a pointer leads to one: does known code lead to it? Else nothing.
    known: Vec<bool>,
}

impl Unframed {
    pub(super) fn of(program: &Program) -> Unframed {
        let is_rule = program.image().fdes().len() > program.funcs().len() / 2;
        Unframed {
            is_rule,
            start_files: if is_rule { start_files(program) } else { Vec::new() },
            known: if is_rule { Vec::new() } else { reached_by_known(program) },
        }
    }

    /// Why a function that no unwind table describes must be left alone.
    pub(super) fn obstacle(&self, id: FuncId) -> Option<Obstacle> {
        if self.is_rule {
            return self.start_files.binary_search(&id).is_err().then_some(Obstacle::NoFrame);
        }
        let is_known = self.known.get(id.0 as usize).is_none_or(|known| *known);
        (!is_known).then_some(Obstacle::MayBeData)
    }
}

/// Functions without unwind tables that only the loader and each other lead to.
fn start_files(program: &Program) -> Vec<FuncId> {
    let image = program.image();
    let is_bare = |func: &Func| image.fde_at(func.entry).is_none() && func.entries.len() == 1;
    let mut found: Vec<FuncId> = image
        .init_functions()
        .iter()
        .filter_map(|at| program.func_starting_at(*at))
        .filter(|id| is_bare(program.func(*id)))
        .collect();
    found.sort_unstable();
    found.dedup();
    let led_to: Vec<Svma> = found.iter().flat_map(|id| ways_out(program.func(*id))).collect();
    let mut others: Vec<FuncId> = led_to.iter().filter_map(|to| program.func_starting_at(*to)).collect();
    let may_join = |func: &Func| is_bare(func) && !matches!(func.found_by, FoundBy::Plt | FoundBy::Pointer);
    others.retain(|id| may_join(program.func(*id)) && found.binary_search(id).is_err());
    if others.is_empty() {
        return found;
    }
    others.sort_unstable();
    others.dedup();
    // What somebody else leads to as well is not theirs alone.
    for (func, id) in program.funcs().iter().zip((0..).map(FuncId)) {
        if found.binary_search(&id).is_err() {
            for to in ways_out(func) {
                others.retain(|other| *other == id || program.func(*other).entry != to);
            }
        }
    }
    found.extend(others);
    found.sort_unstable();
    found
}

/// By function: does a table or a symbol name it, or does such a function lead to it? Nothing if all were found so.
fn reached_by_known(program: &Program) -> Vec<bool> {
    let funcs = program.funcs();
    if !funcs.iter().any(|func| func.found_by == FoundBy::Pointer) {
        return Vec::new();
    }
    let is_named = |func: &Func| !matches!(func.found_by, FoundBy::Call | FoundBy::Jump | FoundBy::Pointer);
    let mut known: Vec<bool> = funcs.iter().map(is_named).collect();
    let mut open: Vec<usize> = (0..funcs.len()).filter(|i| known[*i]).collect();
    while let Some(i) = open.pop() {
        let by_tables = funcs[i].tables.iter().flat_map(|table| table.targets.iter().copied());
        for to in ways_out(&funcs[i]).chain(by_tables) {
            let Some(FuncId(to)) = program.func_at(to) else { continue };
            if !std::mem::replace(&mut known[to as usize], true) {
                open.push(to as usize);
            }
        }
    }
    known
}

/// Where a function calls, jumps or runs on to.
fn ways_out(func: &Func) -> impl Iterator<Item = Svma> {
    let calls = func.calls.iter().map(|call| call.to);
    let exits = func.exits.iter().filter_map(|exit| match exit.kind {
        ExitKind::TailCall(to) => Some(to),
        ExitKind::RunsInto(to) => Some(Target::Direct(to)),
        _ => None,
    });
    calls.chain(exits).filter_map(|to| match to {
        Target::Direct(to) => Some(to),
        Target::Slot(_) | Target::Computed => None,
    })
}
