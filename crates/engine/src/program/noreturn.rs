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

use super::active::Active;
use super::blocks::{End, NOT_FOLLOWED};
use super::discover::{Discovery, Region, is_padding};
use super::exits::Exits;
use super::index::Index;
use super::never::Slots;
use crate::image::Image;

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

    fn through_slot(slots: &Slots, index: &Index, slot: Svma) -> Leads {
        if slots.never_return(slot) {
            return Leads::Never;
        }
        slots.own(slot).and_then(|own| index.starting_at(own)).map_or(Leads::Returning, Leads::To)
    }
}

/// What the blocks of a region call, and where they leave it.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// Blocks that end in a call, in order, unless the call returns for sure.
    calls: Box<[(u32, Leads)]>,
    /// Blocks that end in a jump out of the region, or run out of it.
    ways_out: Box<[(u32, Leads)]>,
    /// Blocks that lead to, or call, what is not the start of a known region.
    pub(super) elsewhere: Box<[u32]>,
    /// Blocks that end in a trap.
    pub(super) traps: Box<[u32]>,
}

/// What is known of calls before any code was read.
struct Known<'a> {
    image: &'a Image,
    slots: &'a Slots,
    exits: &'a Exits,
}

/// Buffers for [`Links`].
#[derive(Default)]
struct Growing {
    calls: Vec<(u32, Leads)>,
    ways_out: Vec<(u32, Leads)>,
    elsewhere: Vec<u32>,
    traps: Vec<u32>,
}

impl Links {
    fn find(known: &Known<'_>, index: &Index, region: &Region, found: &mut Growing) -> Links {
        let Known { image, slots, exits } = *known;
        found.calls.clear();
        found.ways_out.clear();
        found.elsewhere.clear();
        found.traps.clear();
        for (block, i) in region.cfg.blocks.iter().zip(0..) {
            match block.end {
                End::Call(to) => {
                    let leads = match to {
                        Target::Direct(to) => index.starting_at(to).map_or(Leads::Returning, Leads::To),
                        Target::Slot(slot) => Leads::through_slot(slots, index, slot),
                        Target::Computed => Leads::Returning,
                    };
                    if leads == Leads::Returning && matches!(to, Target::Direct(_)) {
                        found.elsewhere.push(i);
                    }
                    let at_end = is_end(image, region, i as usize + 1, block.end_address());
                    let leads = if at_end || exits.ends_at(image, block) { Leads::Never } else { leads };
                    if leads != Leads::Returning {
                        found.calls.push((i, leads));
                    }
                    // What is called there may return for its caller: a thunk that hides a jump from speculation.
                    if matches!(to, Target::Direct(to) if region.calls_middle(to, block.end_address())) {
                        found.ways_out.push((i, Leads::Returning));
                    }
                }
                End::Slot(slot) => found.ways_out.push((i, Leads::through_slot(slots, index, slot))),
                End::Return | End::Pointer | End::Unresolved => found.ways_out.push((i, Leads::Returning)),
                End::Stop => found.traps.push(i),
                End::Bad(_) => {}
                End::Fall | End::Jump(_) | End::Branch(_) | End::Repeat | End::Tables => {
                    let mut all_known = true;
                    region.cfg.ways_out(i as usize, &mut |to| {
                        if !region.contains(to) {
                            let place = index.place_of(to);
                            all_known &= place.is_some_and(|(_, is_start)| is_start);
                            let leads = place.map_or(Leads::Returning, |(region, _)| Leads::To(region));
                            found.ways_out.push((i, leads));
                        }
                    });
                    if !all_known {
                        found.elsewhere.push(i);
                    }
                }
            }
        }
        Links {
            calls: found.calls.as_slice().into(),
            ways_out: found.ways_out.as_slice().into(),
            elsewhere: found.elsewhere.as_slice().into(),
            traps: found.traps.as_slice().into(),
        }
    }

    /// The blocks that end in a jump out of the region, or that nobody knows the end of.
    pub(super) fn ways_out(&self) -> impl Iterator<Item = usize> {
        self.ways_out.iter().map(|(block, _)| *block as usize)
    }

    /// The regions that it leads to.
    fn targets(&self) -> impl Iterator<Item = u32> {
        self.calls.iter().chain(&self.ways_out).filter_map(|(_, leads)| match leads {
            Leads::To(region) => Some(*region),
            Leads::Returning | Leads::Never => None,
        })
    }

    pub(super) fn lead_to(&self, regions: &[bool]) -> bool {
        self.targets().any(|region| regions[region as usize])
    }

    /// Regions have other numbers now.
    pub(super) fn renumber(&mut self, new: impl Fn(u32) -> u32) {
        for (_, leads) in self.calls.iter_mut().chain(&mut self.ways_out) {
            if let Leads::To(region) = leads {
                *region = new(*region);
            }
        }
    }
}

/// Which regions lead to a region, so that nobody has to look through all of them for it.
#[derive(Debug, Default)]
pub(super) struct Dependents {
    /// For each region, where those that lead to it start in `sources`; and one more.
    starts: Vec<u32>,
    sources: Vec<u32>,
    /// Regions that were linked anew since then: what they lead to is not in `sources`.
    relinked: Vec<u32>,
}

impl Dependents {
    fn of_all(regions: &[Box<Region>]) -> Dependents {
        let mut starts = vec![0; regions.len() + 1];
        let targets = || regions.iter().flat_map(|region| region.links.targets());
        targets().for_each(|to| starts[to as usize] += 1);
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut sources = vec![0; sum as usize];
        for (region, number) in regions.iter().zip(0..) {
            for to in region.links.targets() {
                let place = &mut starts[to as usize];
                *place -= 1;
                sources[*place as usize] = number;
            }
        }
        Dependents { starts, sources, relinked: Vec::new() }
    }

    /// Regions that may lead to one of these, and all that do.
    fn candidates(&mut self, regions: &[Box<Region>], changed: &[u32]) -> Active {
        if self.starts.len() != regions.len() + 1 || self.relinked.len() > regions.len() / 8 {
            *self = Dependents::of_all(regions);
        }
        let sources =
            |to: &u32| &self.sources[self.starts[*to as usize] as usize..self.starts[*to as usize + 1] as usize];
        Active::only(changed.iter().flat_map(sources).chain(&self.relinked).copied().collect())
    }
}

impl Discovery<'_> {
    /// Settles which regions return, for those that changed and those that depend on them. Gives the numbers of those of
    /// which something else can run now.
    pub(super) fn settle_noreturn(&mut self) -> Vec<u32> {
        let known = Known { image: self.image, slots: &self.slots, exits: &self.exits };
        let index = &self.index;
        let mut active = self.active.pick(&mut self.regions);
        active.retain(|(_, region)| region.fresh || region.unlinked);
        active.par_iter_mut().for_each_init(Growing::default, |found, (_, region)| {
            region.links = Links::find(&known, index, region, found);
            region.unlinked = false;
        });
        self.dependents.relinked.extend(active.iter().map(|(number, _)| *number));
        active.retain(|(_, region)| region.fresh);
        // What was read again may return after all.
        for (number, region) in &active {
            self.noreturn[*number as usize] = region.noreturn;
        }
        let mut fresh: Vec<u32> = active.iter().map(|(number, _)| *number).collect();
        let mut changed = run_all(active, true, &mut self.noreturn, &mut fresh);
        let mut has_changed = vec![false; self.regions.len()];
        let mut passes = 1;
        while !changed.is_empty() {
            passes += 1;
            changed.iter().for_each(|number| has_changed[*number as usize] = true);
            let mut dependent = self.dependents.candidates(&self.regions, &changed).pick(&mut self.regions);
            dependent.retain(|(_, region)| region.links.lead_to(&has_changed));
            changed.iter().for_each(|number| has_changed[*number as usize] = false);
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
fn run_all(regions: Vec<(u32, &mut Region)>, may_end: bool, noreturn: &mut [bool], fresh: &mut Vec<u32>) -> Vec<u32> {
    struct Settled {
        number: u32,
        never: bool,
        is_new: bool,
        fresh: bool,
    }
    let settled = regions.into_par_iter().map_init(Vec::new, |reached, (number, region)| {
        let never = !region.run(noreturn, reached) && (may_end || noreturn[number as usize]);
        // Others may know what it was before it changed, or what this round began with.
        let was = std::mem::replace(&mut region.was_noreturn, never);
        region.noreturn = never;
        let is_new = was != never || noreturn[number as usize] != never;
        Settled { number, never, is_new, fresh: region.fresh }
    });
    let settled: Vec<Settled> = settled.collect();
    for one in &settled {
        noreturn[one.number as usize] = one.never;
        fresh.extend(Some(one.number).filter(|_| one.fresh));
    }
    settled.iter().filter(|one| one.is_new).map(|one| one.number).collect()
}

impl Region {
    /// Finds what of the region can run, and whether it can return. `reached` is a buffer.
    fn run(&mut self, noreturn: &[bool], reached: &mut Vec<bool>) -> bool {
        let blocks = self.cfg.blocks.len();
        self.returning.clear();
        self.returning.resize(blocks, true);
        // Ways into code that was read may be forgotten again: entries of tables, and entries of parts.
        let may_be_cut_off = !self.cfg.followed.is_empty() || self.parts.len() > 1;
        let mut as_read = true;
        for (block, leads) in &self.links.calls {
            let returns = leads.returns(noreturn);
            self.returning[*block as usize] = returns;
            let was_followed = || may_be_cut_off || self.cfg.blocks[*block as usize].to != NOT_FOLLOWED;
            as_read &= returns || !was_followed();
        }
        reached.clear();
        reached.resize(blocks, as_read);
        // Where all calls come back that were followed, everything found can run.
        if !as_read {
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
    // Most calls are followed by code.
    if region.cfg.blocks.get(likely).is_some_and(|block| block.start == at && block.end != End::Fall) {
        return false;
    }
    let Some(part) = region.parts.iter().find(|part| part.contains(at)) else { return true };
    let Some(i) = region.cfg.block_near(likely, at) else { return true };
    let block = &region.cfg.blocks[i];
    block.end == End::Fall && block.end_address() == part.end && is_padding(image, block.start, block.end_address())
}
