//! What to add to a program, and where, in terms of its functions and their control flow.
//!
//! A tool writes a [`Plan`]; [`layout`](crate::layout) turns it into bytes. A plan says nothing of registers, of
//! addresses of new code, or of whether it goes into a file or a process.

use std::sync::Arc;

pub use lancet_isa::edit::Argument;
use lancet_isa::{Reg, Svma};

use crate::load::{LoadError, Module};
use crate::program::{BlockId, EdgeId, FuncId, LoopId};

/// A place in a function that control passes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Point {
    /// Control comes from elsewhere to this one of [`Func::entries`](crate::program::Func::entries). Edges to the same
    /// block do not pass here.
    Entry(u32),
    /// Control leaves through this one of [`Func::exits`](crate::program::Func::exits). A call that does not return is
    /// no such place.
    Exit(u32),
    Edge(EdgeId),
    /// The start of a block, however control came there.
    Block(BlockId),
    /// Just before an instruction.
    Before(Svma),
    /// Just behind an instruction that goes on to the next one.
    After(Svma),
}

/// A 64-bit number that starts at zero. In a threaded program every thread has its own; they are summed up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CounterId(pub u32);

/// A call of a routine in the plan's payload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub u32);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Adds one.
    Count(CounterId),
    Call(CallId),
    /// Gives a register that is [held](FuncPlan::held) the value of another, or zero.
    Set {
        reg: Reg,
        from: Option<Reg>,
    },
    /// Adds one to a register that is held.
    CountIn(Reg),
    /// Adds to a counter what a register holds or, with `since`, by how much it has grown since it had that value.
    /// A `since` is held no longer.
    Add {
        counter: CounterId,
        reg: Reg,
        since: Option<Reg>,
    },
}

/// A register that the program does not use in a loop, and so a plan may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    pub reg: Reg,
    pub within: LoopId,
}

/// Which routine, and what it is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PayloadCall {
    /// Of the routine, in the payload's code.
    pub offset: u64,
    pub arguments: Vec<Argument>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Insertion {
    pub at: Point,
    pub action: Action,
}

/// What to add to one function.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct FuncPlan {
    pub insertions: Vec<Insertion>,
    /// Where to remember which jump was taken, for edges that arrive together
    /// ([`Survey::joined`](crate::layout::Survey::joined)). Their counters are rows: those of the edges out of one
    /// block are consecutive, and the edges to one target have the same place in each row.
    pub note: Option<CounterId>,
    /// Registers that the plan uses: each one of [`spare_registers`](crate::layout::Survey::spare_registers). They
    /// have a value from the edges into the loop, where it must be [set](Action::Set), to those out of it.
    pub held: Vec<Held>,
}

impl FuncPlan {
    pub fn act(&mut self, at: Point, action: Action) {
        self.insertions.push(Insertion { at, action });
    }

    pub fn count(&mut self, at: Point, counter: CounterId) {
        self.act(at, Action::Count(counter));
    }

    pub fn call(&mut self, at: Point, call: CallId) {
        self.act(at, Action::Call(call));
    }
}

/// What to add to a program. A function with an empty plan is moved all the same; one without a plan stays as it is.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Plan {
    funcs: Vec<Option<FuncPlan>>,
    counters: u32,
    payload: Option<Arc<Module>>,
    calls: Vec<PayloadCall>,
}

impl Plan {
    pub fn new() -> Plan {
        Plan::default()
    }

    /// A new counter.
    pub fn counter(&mut self) -> CounterId {
        self.counters += 1;
        CounterId(self.counters - 1)
    }

    /// The first of `count` new counters with consecutive numbers.
    pub fn counters_for(&mut self, count: u32) -> CounterId {
        self.counters += count;
        CounterId(self.counters - count)
    }

    /// How many counters there are.
    pub fn counters(&self) -> u32 {
        self.counters
    }

    /// Routines that can be called: a relocatable object of code that uses general registers only (`gcc
    /// -mgeneral-regs-only -fPIC -c`), nothing of the program but functions by name, and no library.
    pub fn set_payload(&mut self, payload: Arc<Module>) {
        self.payload = Some(payload);
    }

    pub fn payload(&self) -> Option<&Arc<Module>> {
        self.payload.as_ref()
    }

    /// A call of a routine of the payload.
    pub fn call(&mut self, routine: &str, arguments: &[Argument]) -> Result<CallId, LoadError> {
        let none = || LoadError::Unusable { name: routine.to_owned(), what: "there is no payload with it".to_owned() };
        let offset = self.payload.as_ref().ok_or_else(none)?.function(Some(routine), routine)?.offset;
        self.calls.push(PayloadCall { offset, arguments: arguments.to_vec() });
        Ok(CallId(self.calls.len() as u32 - 1))
    }

    pub fn payload_call(&self, call: CallId) -> Option<&PayloadCall> {
        self.calls.get(call.0 as usize)
    }

    /// The plan of a function, made empty if there is none yet.
    pub fn edit(&mut self, func: FuncId) -> &mut FuncPlan {
        let i = func.0 as usize;
        if i >= self.funcs.len() {
            self.funcs.resize_with(i + 1, || None);
        }
        self.funcs[i].get_or_insert_default()
    }

    pub fn of(&self, func: FuncId) -> Option<&FuncPlan> {
        self.funcs.get(func.0 as usize)?.as_ref()
    }

    /// All functions with a plan, in order.
    pub fn funcs(&self) -> impl Iterator<Item = (FuncId, &FuncPlan)> {
        let planned = self.funcs.iter().enumerate();
        planned.filter_map(|(i, plan)| plan.as_ref().map(|plan| (FuncId(i as u32), plan)))
    }
}
