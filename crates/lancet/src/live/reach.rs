//! Which functions a call may run: the function itself and all that it leads to, if all of them are known.
//!
//! Their clones call each other, and only calls of the first are led to its clone. So what they count belongs to such
//! calls, whoever else calls the others.

use std::collections::BTreeSet;

use lancet_engine::program::{ExitKind, Func, FuncId, Program};
use lancet_isa::{Svma, Target};

use crate::names;

/// More functions are not copied for a measurement.
const MOST: usize = 200;

/// The function and all that its calls may run, itself first; or why they are not all known.
pub(super) fn reached(program: &Program, first: FuncId) -> Result<Vec<FuncId>, String> {
    let mut known = BTreeSet::from([first]);
    let mut reached = vec![first];
    let mut next = 0;
    while let Some(id) = reached.get(next).copied() {
        next += 1;
        let func = program.func(id);
        for target in targets(func) {
            let callee = callee(program, func, target)?;
            if callee == first {
                return Err("it may call itself".into());
            }
            if known.insert(callee) {
                reached.push(callee);
            }
        }
        if reached.len() > MOST {
            return Err(format!("its calls may run more than {MOST} functions"));
        }
    }
    Ok(reached)
}

/// Where calls go, and what follows in its place.
fn targets(func: &Func) -> impl Iterator<Item = Target> {
    let calls = func.calls.iter().map(|call| call.to);
    let exits = func.exits.iter().filter_map(|exit| match exit.kind {
        ExitKind::TailCall(to) => Some(to),
        ExitKind::RunsInto(at) => Some(Target::Direct(at)),
        ExitKind::Unresolved => Some(Target::Computed),
        ExitKind::Return | ExitKind::NoReturn | ExitKind::Stop | ExitKind::Bad(_) => None,
    });
    calls.chain(exits)
}

fn callee(program: &Program, caller: &Func, target: Target) -> Result<FuncId, String> {
    let name = |func: &Func| names::of_function(program, func);
    let begins = |at: Svma| program.func_at(at).filter(|id| program.func(*id).entry == at);
    match target {
        Target::Direct(at) => match begins(at) {
            Some(id) if leads_away(program.func(id)) => {
                let callee = name(program.func(id));
                Err(format!("{} calls {callee}, which may lead to another object", name(caller)))
            }
            Some(id) => Ok(id),
            None => Err(format!("{} calls {at}, where no known function begins", name(caller))),
        },
        Target::Slot(_) | Target::Computed => Err(format!("{} calls what only a pointer tells", name(caller))),
    }
}

/// A stub whose only purpose is to jump to another object.
fn leads_away(func: &Func) -> bool {
    func.blocks.len() == 1 && func.exits.iter().any(|exit| matches!(exit.kind, ExitKind::TailCall(Target::Slot(_))))
}
