//! What callers of a function know of it beyond the calling convention.
//!
//! A compiler that sees both sides keeps a value across a call in a register that the convention lets the callee change,
//! because it sees that the callee does not. Such a register *holds* a value of the caller's just before the call (its
//! instructions have set it, or it is an argument that is still read), and is read behind it.
//!
//! Two flows over each caller: what is still read, backwards, where a call reads what its callee is seen to read; and
//! what holds a value, forwards, where a call leaves what its callee is seen to leave alone. What a caller's own callers
//! rely on, and it does not change itself, goes on to the function. Reads are rather too many than too few.

use lancet_isa::{Effects, RegSet, Svma, Target};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::liveness::{before, block_effects};
use super::{BlockId, EdgeKind, ExitKind, Func, FuncId, Program};

/// Registers and flags that a function must leave alone though the convention lets it change them.
pub fn relied_on(program: &Program, id: FuncId) -> RegSet {
    let callers = callers(program);
    let none = Vec::new();
    let of = |id: FuncId| callers.get(&program.func(id).entry).unwrap_or(&none);
    // Everybody from whom something can come.
    let (mut all, mut queue) = (FxHashSet::default(), vec![id]);
    while let Some(id) = queue.pop() {
        if all.insert(id) {
            queue.extend(of(id));
        }
    }
    let changes = Changes::of(program);
    let all: Vec<FuncId> = all.into_iter().collect();
    let flows: FxHashMap<FuncId, FxHashMap<Svma, RegSet>> =
        all.par_iter().map(|id| (*id, across_calls(program, &changes, program.func(*id)))).collect();
    let mut relied: FxHashMap<FuncId, RegSet> = FxHashMap::default();
    loop {
        let mut grew = false;
        for id in &all {
            let entry = program.func(*id).entry;
            let mut found = RegSet::EMPTY;
            for caller in of(*id) {
                found |= flows.get(caller).and_then(|flow| flow.get(&entry)).copied().unwrap_or(RegSet::EMPTY);
                found |= relied.get(caller).map_or(RegSet::EMPTY, |set| set.without(program.func(*caller).changes));
            }
            let known = relied.entry(*id).or_insert(RegSet::EMPTY);
            grew |= !found.without(*known).is_empty();
            *known |= found;
        }
        if !grew {
            return relied.get(&id).copied().unwrap_or(RegSet::EMPTY);
        }
    }
}

/// By entry: functions that call or jump there.
fn callers(program: &Program) -> FxHashMap<Svma, Vec<FuncId>> {
    let mut callers: FxHashMap<Svma, Vec<FuncId>> = FxHashMap::default();
    for (id, func) in (0..).map(FuncId).zip(program.funcs()) {
        for to in callees(func) {
            callers.entry(to).or_default().push(id);
        }
    }
    callers
}

fn callees(func: &Func) -> impl Iterator<Item = Svma> {
    let calls = func.calls.iter().filter_map(|call| if let Target::Direct(to) = call.to { Some(to) } else { None });
    let exits = func.exits.iter().filter_map(|exit| match exit.kind {
        ExitKind::TailCall(Target::Direct(to)) | ExitKind::RunsInto(to) => Some(to),
        _ => None,
    });
    calls.chain(exits)
}

/// By function: what it and all that it calls may change.
struct Changes<'p> {
    program: &'p Program,
    all: Vec<RegSet>,
}

impl<'p> Changes<'p> {
    fn of(program: &'p Program) -> Changes<'p> {
        let anything = !program.image().isa().facts().abi.preserved;
        let is_known = |func: &Func| {
            func.problems.is_empty()
                && func.calls.iter().all(|call| matches!(call.to, Target::Direct(_)))
                && func.exits.iter().all(|exit| {
                    matches!(
                        exit.kind,
                        ExitKind::Return | ExitKind::TailCall(Target::Direct(_)) | ExitKind::RunsInto(_)
                    )
                })
        };
        let own = |func: &Func| if is_known(func) { func.changes } else { anything };
        let mut changes = Changes { program, all: program.funcs().iter().map(own).collect() };
        loop {
            let mut grew = false;
            for (i, func) in program.funcs().iter().enumerate() {
                let more = callees(func).fold(changes.all[i], |set, to| set | changes.behind(to));
                grew |= more != changes.all[i];
                changes.all[i] = more;
            }
            if !grew {
                return changes;
            }
        }
    }

    /// What may have changed behind a call of a place.
    fn behind(&self, to: Svma) -> RegSet {
        let preserved = self.program.image().isa().facts().abi.preserved;
        self.program.func_starting_at(to).map_or(RegSet::ALL, |id| self.all[id.0 as usize]).without(preserved)
    }
}

/// By callee: what holds a value of the function's before a call of it, and is read behind.
fn across_calls(program: &Program, changes: &Changes<'_>, func: &Func) -> FxHashMap<Svma, RegSet> {
    let facts = program.image().isa().facts();
    let kept = facts.abi.preserved | RegSet::of(facts.stack_pointer);
    let reads_of = |to: Target| match to {
        Target::Direct(to) => program.func_starting_at(to).map_or(facts.abi.arguments, |id| {
            let callee = program.func(id);
            callee.entries.first().map_or(RegSet::EMPTY, |entry| callee.live_in(*entry)).without(kept)
        }),
        _ => facts.abi.arguments,
    };
    let blocks = func.blocks.len();
    let mut call_of: Vec<Option<Target>> = vec![None; blocks];
    func.calls.iter().for_each(|call| call_of[call.block.0 as usize] = Some(call.to));
    // A call stands last in its block, and is looked at by itself.
    let effects: Vec<Effects> = (0..blocks)
        .map(|i| {
            let insns = program.insns(&func.blocks[i]);
            let own = insns.len() - usize::from(call_of[i].is_some() && !insns.is_empty());
            block_effects(insns[..own].iter().map(|insn| insn.effects))
        })
        .collect();
    let mut boundary = vec![RegSet::EMPTY; blocks];
    for exit in &func.exits {
        boundary[exit.from.0 as usize] |= match exit.kind {
            ExitKind::Return => facts.abi.results,
            ExitKind::TailCall(to) => reads_of(to),
            ExitKind::RunsInto(to) => reads_of(Target::Direct(to)),
            _ => RegSet::EMPTY,
        };
    }
    let (mut live_in, mut live_out) = (vec![RegSet::EMPTY; blocks], boundary);
    let mut grew = true;
    while grew {
        grew = false;
        for i in (0..blocks).rev() {
            let id = BlockId(i as u32);
            let out = func.successors(id).iter().fold(live_out[i], |out, edge| out | live_in[edge.to.0 as usize]);
            live_out[i] = out;
            let before_call = call_of[i].map_or(out, |to| reads_of(to) | out.without(facts.abi.results));
            let live = before(effects[i], before_call);
            grew |= live != live_in[i];
            live_in[i] = live;
        }
    }
    let mut holds = vec![RegSet::EMPTY; blocks];
    func.entries.iter().for_each(|entry| holds[entry.0 as usize] = facts.abi.arguments & live_in[entry.0 as usize]);
    let mut found: FxHashMap<Svma, RegSet> = FxHashMap::default();
    grew = true;
    while grew {
        grew = false;
        for i in 0..blocks {
            let before_call = holds[i] | effects[i].writes;
            let behind = match call_of[i] {
                None => before_call,
                Some(Target::Direct(to)) => before_call.without(changes.behind(to)),
                Some(_) => before_call & facts.abi.preserved,
            };
            for edge in func.successors(BlockId(i as u32)) {
                let to = &mut holds[edge.to.0 as usize];
                grew |= !behind.without(*to).is_empty();
                *to |= behind;
            }
            if let Some(Target::Direct(to)) = call_of[i] {
                let back = func.successors(BlockId(i as u32)).iter().filter(|edge| edge.kind == EdgeKind::CallReturn);
                let read = back.fold(RegSet::EMPTY, |set, edge| set | live_in[edge.to.0 as usize]);
                *found.entry(to).or_insert(RegSet::EMPTY) |= (before_call & read).without(facts.abi.results | kept);
            }
        }
    }
    found
}
