//! Calls that return twice, the second time in a new process.
//!
//! Parent and child then have the same counters mapped, and would write to them at once. So the child is given its
//! own as soon as such a call returns in it. (`vfork` is none of them: the parent waits.)

use lancet_isa::{Svma, Target};
use rustc_hash::FxHashSet;

use crate::program::{FoundBy, Program};

const NAMES: [&str; 6] = ["_Fork", "__fork", "__libc_fork", "daemon", "fork", "forkpty"];

/// Where such calls lead.
#[derive(Debug, Default)]
pub(super) struct Forks {
    functions: FxHashSet<Svma>,
    slots: FxHashSet<Svma>,
}

impl Forks {
    pub fn of(program: &Program) -> Forks {
        let image = program.image();
        let is_fork = |name: &str| NAMES.binary_search(&name).is_ok();
        let stubs = program.funcs().iter().filter(|func| func.found_by == FoundBy::Plt);
        let stubs = stubs.filter(|func| {
            program.symbol_name(func).is_some_and(|name| name.strip_suffix("@plt").is_some_and(is_fork))
        });
        let named = image.symbols().iter().filter(|symbol| is_fork(image.symbol_name(symbol)));
        let slots = image.relocations().iter().map(|reloc| reloc.place);
        Forks {
            functions: stubs.map(|func| func.entry).chain(named.map(|symbol| symbol.svma)).collect(),
            slots: slots.filter(|place| image.slot_name(*place).is_some_and(is_fork)).collect(),
        }
    }

    pub fn contains(&self, target: Target) -> bool {
        match target {
            Target::Direct(at) => self.functions.contains(&at),
            Target::Slot(at) => self.slots.contains(&at),
            Target::Computed => false,
        }
    }
}
