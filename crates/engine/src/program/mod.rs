//! Functions, control flow, loops and liveness of an image.
//!
//! ```text
//! seeds ──> regions ──> rounds of: analyse (region, jump_tables), noreturn, follow ──> functions ──> loops, liveness
//! seeds.rs  region.rs   discover.rs                                                    assemble.rs
//! ```
//!
//! A [`Program`] holds no instructions: a block knows its bytes, and decoding them again is cheaper than keeping
//! them ([`Program::insns`]). Addresses are as stated in the file.

mod active;
mod additions;
mod adopt;
mod assemble;
mod blocks;
mod bounds;
mod constants;
pub mod dfs;
mod discover;
pub mod dom;
mod exits;
mod expr;
mod extend;
mod func;
mod gaps;
pub mod graph;
mod groups;
mod growth;
mod index;
mod jump_tables;
mod jumps;
pub mod liveness;
pub mod loops;
mod never;
mod noreturn;
mod region;
mod relied;
pub mod rounds;
mod scratch;
mod seeds;
mod table;
mod ways;

use std::ops::ControlFlow;
use std::sync::Arc;

use lancet_isa::{Insn, RegSet, Svma};

pub use func::{Block, BlockId, Call, Edge, EdgeId, EdgeKind, Exit, ExitKind, FoundBy, Func, FuncId, Part, Problem};
pub use loops::{Loop, LoopForest, LoopId};
pub use relied::relied_on;
pub use table::{Bound, JumpTable};

use crate::image::Image;

/// The functions of an image, with their control flow, loops and liveness.
///
/// ```no_run
/// # use std::{path::Path, sync::Arc};
/// # use lancet_engine::{image::{Image, ImageError}, program::Program};
/// let program = Program::analyse(Arc::new(Image::open(Path::new("/bin/true"))?));
/// let partial = program.funcs().iter().filter(|func| !func.is_complete()).count();
/// # Ok::<(), ImageError>(())
/// ```
pub struct Program {
    image: Arc<Image>,
    /// By entry address.
    funcs: Vec<Func>,
    /// Every part of every function, by address.
    parts: Vec<(Part, FuncId)>,
}

impl Program {
    /// Finds and analyses all functions, on all cores.
    pub fn analyse(image: Arc<Image>) -> Program {
        let funcs = assemble::functions(discover::discover(&image));
        let mut parts: Vec<(Part, FuncId)> = Vec::with_capacity(funcs.len());
        for (i, func) in funcs.iter().enumerate() {
            parts.extend(func.parts.iter().map(|part| (*part, FuncId(i as u32))));
        }
        parts.sort_by_key(|(part, _)| part.start);
        Program { image, funcs, parts }
    }

    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// All functions, by entry address.
    pub fn funcs(&self) -> &[Func] {
        &self.funcs
    }

    pub fn func(&self, id: FuncId) -> &Func {
        &self.funcs[id.0 as usize]
    }

    /// The function that starts at an address.
    pub fn func_starting_at(&self, at: Svma) -> Option<FuncId> {
        self.funcs.binary_search_by_key(&at, |func| func.entry).ok().map(|i| FuncId(i as u32))
    }

    /// The function that an address is in.
    pub fn func_at(&self, at: Svma) -> Option<FuncId> {
        let i = self.parts.partition_point(|(part, _)| part.start <= at).checked_sub(1)?;
        let (part, id) = &self.parts[i];
        part.contains(at).then_some(*id)
    }

    /// Where the last piece of a function ends that starts at or before an address.
    pub fn end_before(&self, at: Svma) -> Option<Svma> {
        let i = self.parts.partition_point(|(part, _)| part.start <= at).checked_sub(1)?;
        Some(self.parts[i].0.end)
    }

    /// The function's name as its symbol has it: mangled. Stubs are named after what they lead to.
    pub fn symbol_name(&self, func: &Func) -> Option<String> {
        if func.found_by == FoundBy::Plt {
            let slot = discover::stub_slot(&self.image, func.entry, func.parts.first().map(|part| part.end))?;
            return Some(format!("{}@plt", self.image.slot_name(slot)?));
        }
        self.image.name_at(func.entry).map(str::to_owned)
    }

    /// The instructions of a block, in order.
    pub fn insns(&self, block: &Block) -> Vec<Insn> {
        let mut insns = Vec::with_capacity(block.insns as usize);
        if let Some(code) = self.image.bytes(block.start, u64::from(block.len)) {
            // Blocks are made of instructions that decoded.
            let _ = self.image.isa().decode(code, block.start, &mut |insn| {
                insns.push(*insn);
                ControlFlow::Continue(())
            });
        }
        insns
    }

    /// What is live before each instruction of a block.
    pub fn live_before(&self, func: &Func, block: BlockId) -> Vec<RegSet> {
        let insns = self.insns(func.block(block));
        let call = func.call_of(block).map(|_| assemble::call_effects(self.image.isa()));
        let last = insns.len().saturating_sub(1);
        let effects = insns.iter().enumerate().map(|(i, insn)| match call {
            Some(call) if i == last => insn.effects.then(call),
            _ => insn.effects,
        });
        let effects: Vec<_> = effects.collect();
        let mut live: Vec<RegSet> =
            liveness::steps_back(func.live_out(block), effects).map(|step| step.before).collect();
        live.reverse();
        live
    }
}
