//! What functions pass to each other beside the calling convention.
//!
//! Hand-written code passes values in any register, flags included, and compilers keep values across a call in
//! registers that they know the callee leaves alone. Liveness inside one function assumes the convention at calls and
//! exits; this says what more must be left alone for the sake of callers and callees. Facts go along direct calls
//! until nothing new is found; sets only grow.

use lancet_isa::{RegSet, Svma, Target};

use crate::program::{EdgeKind, ExitKind, Program};

/// By function: registers and flags that what is added must not change.
pub(super) fn kept(program: &Program) -> Vec<RegSet> {
    let mut links = Links::of(program);
    links.read_at_entry();
    links.read_after_return();
    let from_callees = links.calls.iter().map(|call| (call.caller, links.entry[call.callee]));
    let mut kept = links.exit.clone();
    from_callees.for_each(|(caller, regs)| kept[caller] |= regs);
    kept
}

struct Call {
    caller: usize,
    callee: usize,
    is_tail: bool,
}

struct Links {
    calls: Vec<Call>,
    changes: Vec<RegSet>,
    /// By function: what it or a callee may read on entry, beyond the convention.
    entry: Vec<RegSet>,
    /// By function: what a caller may read behind it, beyond the convention.
    exit: Vec<RegSet>,
}

impl Links {
    fn of(program: &Program) -> Links {
        let facts = program.image().isa().facts();
        let kept = facts.abi.preserved | RegSet::of(facts.stack_pointer);
        let callee = |to: Svma| program.func_starting_at(to).map(|id| id.0 as usize);
        let funcs = program.funcs();
        let mut links = Links {
            calls: Vec::new(),
            changes: funcs.iter().map(|func| func.changes).collect(),
            entry: Vec::with_capacity(funcs.len()),
            exit: vec![RegSet::EMPTY; funcs.len()],
        };
        for (caller, func) in funcs.iter().enumerate() {
            let live = func.entries.first().map_or(RegSet::EMPTY, |entry| func.live_in(*entry));
            links.entry.push(live.without(facts.abi.arguments | kept));
            for call in &func.calls {
                let Target::Direct(to) = call.to else { continue };
                let Some(callee) = callee(to) else { continue };
                links.calls.push(Call { caller, callee, is_tail: false });
                let back = func.successors(call.block).iter().find(|edge| edge.kind == EdgeKind::CallReturn);
                if let Some(edge) = back {
                    links.exit[callee] |= func.live_in(edge.to).without(facts.abi.results | kept);
                }
            }
            for exit in &func.exits {
                let (ExitKind::TailCall(Target::Direct(to)) | ExitKind::RunsInto(to)) = exit.kind else { continue };
                if let Some(callee) = callee(to) {
                    links.calls.push(Call { caller, callee, is_tail: true });
                }
            }
        }
        links
    }

    fn read_at_entry(&mut self) {
        loop {
            let mut grew = false;
            for call in self.calls.iter().rev() {
                let more = self.entry[call.callee].without(self.changes[call.caller]);
                grew |= !more.without(self.entry[call.caller]).is_empty();
                self.entry[call.caller] |= more;
            }
            if !grew {
                return;
            }
        }
    }

    fn read_after_return(&mut self) {
        loop {
            let mut grew = false;
            for call in &self.calls {
                let own = if call.is_tail { RegSet::EMPTY } else { self.changes[call.caller] };
                let more = self.exit[call.caller].without(own);
                grew |= !more.without(self.exit[call.callee]).is_empty();
                self.exit[call.callee] |= more;
            }
            if !grew {
                return;
            }
        }
    }
}
