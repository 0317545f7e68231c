//! From samples to functions, loops and instructions.
//!
//! A [`Recording`] has addresses. [`Programs`] analyses the objects that they are in, those where time was spent in full
//! (functions with their loops), the others only so far that callers have names. A [`Profile`] adds it all up. It can be
//! made again and again while sampling goes on; the programs are kept.
//!
//! | module | what |
//! | --- | --- |
//! | `programs.rs` | which function an address is in |
//! | `folded.rs` | call chains as lines, and as a flame graph |
//! | `firefox.rs`, `pprof.rs` | for other tools |

mod firefox;
mod folded;
mod pprof;
mod programs;

use std::collections::{BTreeMap, HashMap, HashSet};

pub use firefox::write_firefox;
pub use folded::{folded, write_flame_graph};
use lancet_engine::collect::{FrameId, Place, Recording};
use lancet_engine::program::{BlockId, LoopId};
use lancet_isa::Svma;
pub use pprof::write_pprof;
pub use programs::{Home, Programs};

/// How much fell on something.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Share {
    pub samples: u64,
    /// Events: nanoseconds, cycles.
    pub weight: u64,
}

impl Share {
    fn add(&mut self, weight: u64) {
        self.samples += 1;
        self.weight += weight;
    }

    /// Per cent of a whole.
    pub fn percent(self, of: Share) -> f64 {
        if of.weight == 0 { 0.0 } else { 100.0 * self.weight as f64 / of.weight as f64 }
    }
}

#[derive(Clone, Debug)]
pub struct HotFunction {
    /// Demangled.
    pub name: String,
    pub home: Home,
    /// Samples in the function itself.
    pub own: Share,
    /// Also those in what it called.
    pub total: Share,
    /// Its own samples by instruction.
    pub at: BTreeMap<u64, Share>,
}

#[derive(Clone, Copy, Debug)]
pub struct HotLoop {
    pub id: LoopId,
    pub header: Svma,
    pub depth: u32,
    /// Samples in it, nested loops included.
    pub share: Share,
}

/// Samples, added up.
pub struct Profile {
    pub all: Share,
    /// Those with the most samples of their own first.
    pub functions: Vec<HotFunction>,
    /// By frame, an index into `functions`.
    function_of: Vec<u32>,
}

impl Profile {
    pub fn new(recording: &Recording, programs: &mut Programs) -> Profile {
        programs.analyse(recording);
        let mut functions: Vec<HotFunction> = Vec::new();
        let mut known: HashMap<Home, u32> = HashMap::new();
        let mut function_of: Vec<u32> = Vec::with_capacity(recording.frames.len());
        for frame in &recording.frames {
            let home = programs.home(frame.place);
            function_of.push(*known.entry(home).or_insert_with(|| {
                let name = programs.name(&home, frame.place);
                let (own, total) = (Share::default(), Share::default());
                functions.push(HotFunction { name, home, own, total, at: BTreeMap::new() });
                functions.len() as u32 - 1
            }));
        }
        let mut profile = Profile { all: Share::default(), functions, function_of };
        profile.add_up(recording);
        profile.sort();
        profile
    }

    fn add_up(&mut self, recording: &Recording) {
        // Samples with the same stack are looked at once.
        let mut by_stack: HashMap<u32, Share> = HashMap::new();
        for sample in &recording.samples {
            self.all.add(sample.weight);
            by_stack.entry(sample.stack.0).or_default().add(sample.weight);
        }
        let mut on_chain = HashSet::new();
        for (stack, share) in by_stack {
            let add = |to: &mut Share| {
                to.samples += share.samples;
                to.weight += share.weight;
            };
            on_chain.clear();
            for (depth, frame) in recording.chain(lancet_engine::collect::StackId(stack)).enumerate() {
                let function = &mut self.functions[self.function_of[frame.0 as usize] as usize];
                if depth == 0 {
                    add(&mut function.own);
                    add(function.at.entry(address(recording.frame(frame).place)).or_default());
                }
                // A recursive function is on the chain once.
                if on_chain.insert(self.function_of[frame.0 as usize]) {
                    add(&mut function.total);
                }
            }
        }
    }

    fn sort(&mut self) {
        let mut order: Vec<u32> = (0..self.functions.len() as u32).collect();
        let key = |index: &u32| {
            let function = &self.functions[*index as usize];
            (std::cmp::Reverse((function.own.weight, function.total.weight)), function.name.clone())
        };
        order.sort_by_cached_key(key);
        let mut place_of = vec![0; order.len()];
        for (place, index) in order.iter().enumerate() {
            place_of[*index as usize] = place as u32;
        }
        let mut sorted: Vec<(u32, HotFunction)> = place_of.iter().copied().zip(self.functions.drain(..)).collect();
        sorted.sort_by_key(|(place, _)| *place);
        self.functions = sorted.into_iter().map(|(_, function)| function).collect();
        for function in &mut self.function_of {
            *function = place_of[*function as usize];
        }
    }

    /// The function that a frame is in.
    pub fn function_of(&self, frame: FrameId) -> &HotFunction {
        &self.functions[self.function_of[frame.0 as usize] as usize]
    }

    /// The loops of a function in which there were samples, outer ones before those in them.
    pub fn loops(&self, programs: &Programs, function: &HotFunction) -> Vec<HotLoop> {
        let Some((object, func)) = programs.function(&function.home) else { return Vec::new() };
        let func = object.program.func(func);
        let mut shares: BTreeMap<u32, Share> = BTreeMap::new();
        for (at, share) in &function.at {
            let Some(block) = func.block_at(Svma(*at)) else { continue };
            let innermost = func.loops.innermost(block.0);
            for id in std::iter::successors(innermost, |id| func.loops.get(*id).parent) {
                let sum = shares.entry(id.0).or_default();
                sum.samples += share.samples;
                sum.weight += share.weight;
            }
        }
        let hot = shares.into_iter().map(|(id, share)| {
            let l = func.loops.get(LoopId(id));
            HotLoop { id: LoopId(id), header: func.block(BlockId(l.header)).start, depth: l.depth, share }
        });
        hot.collect()
    }
}

/// An address as stated in the file, or as it is if there is none.
fn address(place: Place) -> u64 {
    match place {
        Place::Object(_, at) => at.0,
        Place::Kernel(at) | Place::Unknown(at) => at,
    }
}
