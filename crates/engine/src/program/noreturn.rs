//! Functions that never return.
//!
//! What stands behind a call that does not come back is other code, or none. Some functions are known by the names
//! that libraries document; the rest is a fixpoint over the control flow. At first every other function is taken to
//! return; one is found not to when no return, no tail call and no unknown jump can be reached in it without passing
//! a call that does not come back.
//!
//! A region is looked at again for every other that turns out not to return, so what it calls and where it leads is
//! looked up once ([`Links`]), and each further look is a pass over its blocks.

use lancet_isa::{Svma, Target};
use rayon::prelude::*;

use super::blocks::End;
use super::discover::{Discovery, Region, is_padding};
use super::index::Index;
use crate::image::Image;

/// Documented never to return, by the C, POSIX, C++ ABI, unwinder and Rust run-time interfaces.
const NAMES: &[&str] = &[
    "_Exit",
    "_Unwind_Resume",
    "__assert",
    "__assert_fail",
    "__assert_perror_fail",
    "__chk_fail",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_call_terminate",
    "__cxa_call_unexpected",
    "__cxa_deleted_virtual",
    "__cxa_pure_virtual",
    "__cxa_rethrow",
    "__cxa_throw",
    "__cxa_throw_bad_array_length",
    "__cxa_throw_bad_array_new_length",
    "__fortify_fail",
    "__libc_fatal",
    "__longjmp_chk",
    "__rust_start_panic",
    "__stack_chk_fail",
    "_exit",
    "_longjmp",
    "abort",
    "err",
    "errx",
    "exit",
    "longjmp",
    "pthread_exit",
    "quick_exit",
    "rust_begin_unwind",
    "siglongjmp",
    "thrd_exit",
    "verr",
    "verrx",
];

/// Mangled C++ functions of the standard library that only throw or terminate.
const PREFIXES: &[&str] =
    &["_ZSt9terminatev", "_ZSt10unexpectedv", "_ZSt17rethrow_exception", "_ZSt25__throw_bad_function_call"];

pub(super) fn is_noreturn_name(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || is_throw_helper(name)
}

/// `std::__throw_length_error(char const*)` and its kin: `_ZSt<length>__throw_...`.
fn is_throw_helper(name: &str) -> bool {
    name.strip_prefix("_ZSt")
        .is_some_and(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with("__throw_"))
}

/// The slots that hold the address of a function that never returns, sorted.
pub(super) fn noreturn_slots(image: &Image) -> Vec<Svma> {
    let slots = image.relocations().iter().map(|reloc| reloc.place);
    let mut never: Vec<Svma> = slots.filter(|slot| image.slot_name(*slot).is_some_and(is_noreturn_name)).collect();
    never.sort_unstable();
    never
}

/// Where control goes when it leaves a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Leads {
    /// To a region, which may return or not.
    To(u32),
    /// To where it returns from, or to where nobody knows.
    Returning,
    /// To where it does not return from, whatever else is found out.
    Never,
}

impl Leads {
    fn returns(self, noreturn: &[bool]) -> bool {
        match self {
            Leads::To(region) => !noreturn[region as usize],
            Leads::Returning => true,
            Leads::Never => false,
        }
    }

    fn is_one_of(self, regions: &[bool]) -> bool {
        matches!(self, Leads::To(region) if regions[region as usize])
    }

    fn through_slot(never: &[Svma], slot: Svma) -> Leads {
        if never.binary_search(&slot).is_ok() { Leads::Never } else { Leads::Returning }
    }
}

/// What the blocks of a region call, and where they leave it.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// Blocks that end in a call, in order, unless the call returns for sure.
    calls: Box<[(u32, Leads)]>,
    /// Blocks that end in a jump out of the region, or run out of it.
    ways_out: Box<[(u32, Leads)]>,
}

/// Buffers for [`Links`].
#[derive(Default)]
struct Growing {
    calls: Vec<(u32, Leads)>,
    ways_out: Vec<(u32, Leads)>,
}

impl Links {
    fn find(image: &Image, never: &[Svma], index: &Index, region: &Region, found: &mut Growing) -> Links {
        found.calls.clear();
        found.ways_out.clear();
        for (block, i) in region.cfg.blocks.iter().zip(0..) {
            match block.end {
                End::Call(to) => {
                    let next = block.end_address();
                    let leads = match to {
                        _ if is_end(image, region, i as usize + 1, next) => Leads::Never,
                        Target::Direct(to) => index.starting_at(to).map_or(Leads::Returning, Leads::To),
                        Target::Slot(slot) => Leads::through_slot(never, slot),
                        Target::Computed => Leads::Returning,
                    };
                    if leads != Leads::Returning {
                        found.calls.push((i, leads));
                    }
                }
                End::Slot(slot) => found.ways_out.push((i, Leads::through_slot(never, slot))),
                End::Return | End::Pointer | End::Unresolved => found.ways_out.push((i, Leads::Returning)),
                End::Stop | End::Bad(_) => {}
                End::Fall | End::Jump(_) | End::Branch(_) | End::Repeat | End::Tables => {
                    region.cfg.ways_out(i as usize, &mut |to| {
                        if !region.contains(to) {
                            let leads = index.containing(to).map_or(Leads::Returning, |q| Leads::To(q as u32));
                            found.ways_out.push((i, leads));
                        }
                    });
                }
            }
        }
        Links { calls: found.calls.as_slice().into(), ways_out: found.ways_out.as_slice().into() }
    }

    fn lead_to(&self, regions: &[bool]) -> bool {
        self.calls.iter().chain(&self.ways_out).any(|(_, leads)| leads.is_one_of(regions))
    }
}

impl Discovery<'_> {
    /// Settles which regions return, for those that changed and those that depend on them. Gives the numbers of those of
    /// which something else can run now.
    pub(super) fn settle_noreturn(&mut self) -> Vec<u32> {
        let (image, index, never) = (self.image, &self.index, &self.noreturn_slots);
        let moved = std::mem::replace(&mut self.renumbered, false);
        let mut active = self.active.pick(&mut self.regions);
        active.retain(|(_, region)| moved || region.fresh);
        active.par_iter_mut().for_each_init(Growing::default, |found, (_, region)| {
            region.links = Links::find(image, never, index, region, found);
        });
        active.retain(|(_, region)| region.fresh);
        // What was read again may return after all.
        for (number, region) in &active {
            self.noreturn[*number as usize] = region.noreturn;
        }
        let mut fresh: Vec<u32> = active.iter().map(|(number, _)| *number).collect();
        let mut changed = run_all(active.into_par_iter(), true, &mut self.noreturn, &mut fresh);
        let mut passes = 1;
        while changed.contains(&true) {
            passes += 1;
            let all = self.regions.par_iter_mut().enumerate().map(|(i, region)| (i as u32, region));
            let dependent = all.filter(|(_, region)| region.links.lead_to(&changed));
            changed = run_all(dependent, passes < MOST_PASSES, &mut self.noreturn, &mut fresh);
        }
        fresh
    }
}

/// Two regions that lead to each other could change places for ever, each because of what the other was. So after as many
/// passes no more regions are found never to return.
const MOST_PASSES: usize = 256;

/// Looks at regions again, and tells which turned out to return, or not to, if they still may. `fresh` gets those of which
/// something else can run now.
fn run_all<'r>(
    regions: impl ParallelIterator<Item = (u32, &'r mut Region)>,
    may_end: bool,
    noreturn: &mut [bool],
    fresh: &mut Vec<u32>,
) -> Vec<bool> {
    struct Settled {
        number: u32,
        never: bool,
        is_new: bool,
        fresh: bool,
    }
    let settled = regions.map_init(Vec::new, |reached, (number, region)| {
        let never = !region.run(noreturn, reached) && (may_end || noreturn[number as usize]);
        // Others may know what it was before it changed, or what this round began with.
        let was = std::mem::replace(&mut region.was_noreturn, never);
        region.noreturn = never;
        let is_new = was != never || noreturn[number as usize] != never;
        Settled { number, never, is_new, fresh: region.fresh }
    });
    let settled: Vec<Settled> = settled.collect();
    let mut changed = vec![false; noreturn.len()];
    for one in settled {
        noreturn[one.number as usize] = one.never;
        changed[one.number as usize] = one.is_new;
        fresh.extend(Some(one.number).filter(|_| one.fresh));
    }
    changed
}

impl Region {
    /// Finds what of the region can run, and whether it can return. `reached` is a buffer.
    fn run(&mut self, noreturn: &[bool], reached: &mut Vec<bool>) -> bool {
        let blocks = self.cfg.blocks.len();
        self.returning.clear();
        self.returning.resize(blocks, true);
        let mut all_return = true;
        for (block, leads) in &self.links.calls {
            let returns = leads.returns(noreturn);
            self.returning[*block as usize] = returns;
            all_return &= returns;
        }
        reached.clear();
        reached.resize(blocks, all_return);
        // Decoding followed every call: where all return, everything found can run.
        if !all_return {
            self.cfg.reach(self.all_entries(), &self.returning, reached);
        }
        if self.reached != *reached {
            self.fresh = true;
            self.reached.clone_from(reached);
        }
        let mut ways_out = self.links.ways_out.iter().filter(|(block, _)| reached[*block as usize]);
        let returns = blocks == 0 || ways_out.any(|(_, leads)| leads.returns(noreturn));
        returns && !self.named_noreturn
    }
}

/// Is there nothing but padding from here (probably the `likely` block) to the end of the region? A call before it
/// cannot come back.
fn is_end(image: &Image, region: &Region, likely: usize, at: Svma) -> bool {
    let Some(part) = region.parts.iter().find(|part| part.contains(at)) else { return true };
    let Some(i) = region.cfg.block_near(likely, at) else { return true };
    let block = &region.cfg.blocks[i];
    block.end == End::Fall && block.end_address() == part.end && is_padding(image, block.start, block.end_address())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(NAMES.is_sorted());
    }

    #[test]
    fn throw_helpers_are_known() {
        assert!(is_noreturn_name("_ZSt20__throw_length_errorPKc"));
        assert!(!is_noreturn_name("_ZSt4endlIcSt11char_traitsIcEE"));
        assert!(is_noreturn_name("exit") && !is_noreturn_name("exitable"));
    }
}
