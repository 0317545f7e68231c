//! All functions of an image.
//!
//! [Seeds](super::seeds) make the first [regions](super::region). Then, in rounds until nothing is new:
//!
//! 1. regions that are new or have changed are analysed, in parallel, or [extended](super::extend);
//! 2. which of them never return is settled ([`super::noreturn`]);
//! 3. what the code that can run calls and jumps to makes new regions, or new entries into known ones.
//!
//! Code behind calls that do not return contributes nothing, so stray bytes there make no functions.
//! After that, [parts](super::adopt) that stand elsewhere join their function, and jumps that are still open are
//! looked at again with all that is known by then.

use std::ops::Range;

use lancet_isa::{Svma, Target};
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::active::Active;
use super::blocks::{End, NO_BLOCK, RegionBlock, RegionCfg};
use super::bounds::Limit;
use super::exits::Exits;
use super::extend::extend_group;
use super::func::{FoundBy, Part};
use super::groups::Groups;
use super::growth::{Growth, grow_tables};
use super::index::Index;
use super::never::{self, Slots};
use super::noreturn::{Dependents, Links};
use super::region::{self, RegionSpec, Surroundings};
use super::seeds::{self, Seed};
use super::table::{Bound, JumpTable, first_behind, is_nowhere};
use crate::image::{Cfa, Image};

/// Functions are asked in groups of so many, with the group on either side, for the data that they mention.
const NEIGHBOURS: usize = 64;

/// How often tables are looked at again because others were found. Each time, fewer change.
const MAX_LOOKS: usize = 4;

/// A region with what is known of its place in the whole. In the end, a function.
#[derive(Debug)]
pub(super) struct Region {
    /// The main part first.
    pub(super) parts: Vec<Part>,
    /// Something states the main part's end; otherwise it is just where the next region starts.
    pub(super) exact: bool,
    pub(super) found_by: FoundBy,
    /// See [`Seed::part`].
    pub(super) part: bool,
    /// See [`Seed::referenced`].
    pub(super) referenced: bool,
    /// Landing pads: exceptions enter there.
    pub(super) pads: Vec<Svma>,
    /// Where other regions jump into the middle of this one.
    pub(super) entries: Vec<Svma>,
    pub(super) cfg: RegionCfg,
    /// See [`Links`].
    pub(super) links: Links,
    /// For each block: can it run?
    pub(super) reached: Vec<bool>,
    /// For each block: does the call that it ends in return?
    pub(super) returning: Vec<bool>,
    pub(super) noreturn: bool,
    /// Callers were told that it does not return, before it was analysed again.
    pub(super) was_noreturn: bool,
    /// Never returns by what its name says, whatever its code looks like.
    pub(super) named_noreturn: bool,
    /// Must be analysed (again).
    pub(super) dirty: bool,
    /// Entries that lead to code that was not read yet.
    pub(super) pending: Vec<Svma>,
    /// Must be analysed again once nothing else is new.
    pub(super) stale: bool,
    /// What can run of it has changed since its outflows were followed.
    pub(super) fresh: bool,
    /// Its links lead to addresses where other regions are now.
    pub(super) unlinked: bool,
}

impl Region {
    fn new(image: &Image, seed: &Seed, limit: Svma) -> Region {
        let end = seed.end.unwrap_or(limit).min(limit).max(seed.start + 1);
        Region {
            exact: seed.end.is_some(),
            found_by: seed.found_by,
            part: seed.part,
            referenced: seed.referenced,
            named_noreturn: named_noreturn(image, seed),
            ..Region::of_parts(vec![Part { start: seed.start, end }])
        }
    }

    /// Of which nothing else is known yet.
    pub(super) fn of_parts(parts: Vec<Part>) -> Region {
        Region {
            parts,
            exact: false,
            found_by: FoundBy::Pointer,
            part: false,
            referenced: false,
            pads: Vec::new(),
            entries: Vec::new(),
            cfg: RegionCfg::default(),
            links: Links::default(),
            reached: Vec::new(),
            returning: Vec::new(),
            noreturn: false,
            was_noreturn: false,
            named_noreturn: false,
            dirty: true,
            pending: Vec::new(),
            stale: false,
            fresh: true,
            unlinked: false,
        }
    }

    pub(super) fn start(&self) -> Svma {
        self.parts[0].start
    }

    pub(super) fn contains(&self, at: Svma) -> bool {
        self.parts.iter().any(|part| part.contains(at))
    }

    /// See [`is_nowhere`].
    pub(super) fn is_nowhere(&self, image: &Image, at: Svma) -> bool {
        is_nowhere(image, &self.parts, at)
    }

    /// Does a call that ends at `end` enter the region elsewhere than at its start? `call .+5` asks for the program counter.
    pub(super) fn calls_middle(&self, to: Svma, end: Svma) -> bool {
        to != self.start() && to != end && self.contains(to)
    }

    /// Where control may enter.
    pub(super) fn all_entries(&self) -> impl Iterator<Item = Svma> {
        [self.start()].into_iter().chain(self.pads.iter().chain(&self.entries).copied())
    }

    /// What must limit the index of a jump table so that its entries may lead into this region, which then is a part of the
    /// table's function. `None`: nothing makes it one.
    fn limit_of_ways(&self) -> Option<Limit> {
        match self.part {
            true => Some(Limit::Mask),
            false => self.may_be_part().then_some(Limit::Check),
        }
    }

    /// It does not say that it is a part of a function, but some do not.
    pub(super) fn may_be_part(&self) -> bool {
        self.found_by == FoundBy::Fde && !self.referenced
    }

    /// Lets control enter at an address; `true` if that leads to code that was not read yet.
    pub(super) fn enter(&mut self, at: Svma) -> bool {
        let Err(place) = self.entries.binary_search(&at) else { return false };
        self.entries.insert(place, at);
        self.fresh = true;
        let is_unread = self.cfg.block_at(at).is_none();
        self.pending.extend(Some(at).filter(|_| is_unread));
        is_unread
    }

    /// Notes that its blocks have changed.
    pub(super) fn read(&mut self) {
        self.dirty = false;
        self.fresh = true;
        self.was_noreturn = self.noreturn;
        self.noreturn = self.named_noreturn;
    }

    /// Where the code of the main part ends, which is before its `end` if that is only a guess.
    pub(super) fn code_end(&self) -> Svma {
        let main = self.parts[0];
        if self.exact {
            return main.end;
        }
        let runs = self.cfg.blocks.iter().zip(&self.reached).filter(|(_, reached)| **reached);
        let ends = runs.map(|(block, _)| block.end_address()).filter(|end| *end > main.start && *end <= main.end);
        ends.max().unwrap_or(main.start)
    }

    /// Has it a jump that another look could resolve?
    pub(super) fn has_open_jump(&self, image: &Image) -> bool {
        self.links.ways_out().map(|number| &self.cfg.blocks[number]).any(|block| match block.end {
            End::Unresolved => true,
            End::Pointer => !frame_is_gone(image, block),
            _ => false,
        })
    }

    /// The tables whose size no check tells.
    fn open_tables(&self) -> impl Iterator<Item = &JumpTable> {
        self.cfg.tables.iter().filter(|table| table.bound != Bound::Checked)
    }

    /// Does something else begin inside of a table?
    fn has_table_past(&self, stops: &[Svma]) -> bool {
        self.open_tables().any(|table| first_behind(stops, table.at).is_some_and(|stop| stop < table.end()))
    }
}

pub(super) struct Discovery<'a> {
    pub(super) image: &'a Image,
    /// By start. Boxed, so that one more moves only pointers.
    #[allow(clippy::vec_box)]
    pub(super) regions: Vec<Box<Region>>,
    pub(super) index: Index,
    /// Where jump tables start: no other goes on past one.
    pub(super) stops: Vec<Svma>,
    pub(super) slots: Slots,
    pub(super) exits: Exits,
    pub(super) dependents: Dependents,
    /// All regions that must be read, or that have changed since their outflows were followed.
    pub(super) active: Active,
    /// Regions of which the first leads to unread code in the middle of the second, which may lead back.
    met: Vec<(u32, u32)>,
    /// Does a region never return, as far as is known?
    pub(super) noreturn: Vec<bool>,
    /// Regions that may be parts of functions: see [`Region::limit_of_ways`].
    split: Vec<(Part, Limit)>,
}

/// Control that leaves a region, or calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outflow {
    pub(super) from: u32,
    pub(super) to: Svma,
    pub(super) kind: OutflowKind,
    /// The region that `to` is in.
    pub(super) into: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutflowKind {
    Call,
    Jump,
    Branch,
    /// Through a jump table, or by running on past the end.
    Other,
}

/// The blocks to ask for their outflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocks {
    All,
    /// See [`Links::elsewhere`].
    LeadingElsewhere,
}

pub(super) fn discover(image: &Image) -> Discovery<'_> {
    let mut found = Discovery {
        image,
        regions: Vec::new(),
        index: Index::default(),
        stops: Vec::new(),
        slots: Slots::find(image),
        exits: Exits::find(image),
        dependents: Dependents::default(),
        active: Active::All,
        met: Vec::new(),
        noreturn: Vec::new(),
        split: Vec::new(),
    };
    found.plant(seeds::collect(image));
    found.enter_landing_pads();
    found.rounds();
    let hidden = found.pointed_to_in_gaps();
    if !hidden.is_empty() {
        found.plant(hidden);
        found.rounds();
    }
    found.adopt_parts();
    found.rounds();
    while found.enter_behind_traps() {
        found.rounds();
    }
    let mut looks = 0;
    while looks < MAX_LOOKS && found.look_again(looks == 0) {
        found.rounds();
        looks += 1;
    }
    region::free_scratch();
    found
}

impl Discovery<'_> {
    /// The region that an address is in.
    pub(super) fn containing(&self, at: Svma) -> Option<usize> {
        self.index.containing(at)
    }

    /// Regions have other numbers now.
    pub(super) fn reindex(&mut self) {
        self.index = Index::new(&self.regions);
        self.noreturn = self.regions.iter().map(|region| region.noreturn || region.named_noreturn).collect();
        self.split =
            self.regions.iter().filter_map(|region| Some((region.parts[0], region.limit_of_ways()?))).collect();
        self.dependents = Dependents::default();
        let is_active = |region: &Region| region.dirty || region.fresh || region.unlinked || !region.pending.is_empty();
        let active = (0..).zip(&self.regions).filter(|(_, region)| is_active(region)).map(|(number, _)| number);
        let met = self.met.iter().flat_map(|(from, into)| [*from, *into]);
        self.active = Active::only(active.chain(met).collect());
    }

    /// Adds regions for seeds; regions that one falls into end before it.
    fn plant(&mut self, seeds: Vec<Seed>) {
        let image = self.image;
        let index = &self.index;
        let region = |seed: &Seed| {
            let is_new = index.starting_at(seed.start).is_none();
            let range = image.code_range_at(seed.start).filter(|_| is_new)?;
            Some(Box::new(Region::new(image, seed, range.end())))
        };
        let mut planted: Vec<Box<Region>> = seeds.par_iter().filter_map(region).collect();
        planted.sort_by_key(|region| region.start());
        planted.dedup_by_key(|region| region.start());
        if self.regions.is_empty() {
            self.regions = planted;
        } else {
            self.renumber(&planted);
            self.regions.append(&mut planted);
            self.regions.sort_by_key(|region| region.start());
        }
        for i in 1..self.regions.len() {
            let next = self.regions[i].start();
            let before = &mut self.regions[i - 1];
            if before.parts[0].end > next {
                before.parts[0].end = next;
                before.dirty = true;
            }
        }
        self.reindex();
    }

    /// Gives regions the numbers that they have once others are planted among them. What leads to no start of a region may
    /// lead to a new one.
    fn renumber(&mut self, planted: &[Box<Region>]) {
        let place = |new: Svma| self.regions.partition_point(|region| region.start() < new) as u32;
        let places: Vec<u32> = planted.iter().map(|new| place(new.start())).collect();
        let number = |old: u32| old + places.partition_point(|place| *place <= old) as u32;
        self.regions.par_iter_mut().for_each(|region| {
            region.unlinked |= !region.links.elsewhere.is_empty();
            region.links.renumber(number);
        });
        self.met.iter_mut().for_each(|(a, b)| (*a, *b) = (number(*a), number(*b)));
    }

    /// Exceptions enter a function, or the part of it where its landing pads were put.
    fn enter_landing_pads(&mut self) {
        let image = self.image;
        let with_pads: Vec<_> = image.fdes().iter().filter(|fde| fde.lsda.is_some()).collect();
        let pads = with_pads.par_iter().flat_map_iter(|fde| {
            let mut pads: Vec<Svma> = image.landing_pads(fde).iter().map(|site| site.pad).collect();
            pads.sort_unstable();
            pads.dedup();
            pads
        });
        for pad in pads.collect::<Vec<Svma>>() {
            if let Some(i) = self.containing(pad) {
                self.regions[i].pads.push(pad);
            }
        }
    }

    /// A signal's handler may go on behind an instruction that traps. No compiler puts code there that nothing leads to, so
    /// what an FDE has there is for that. `false`: there is nothing new.
    fn enter_behind_traps(&mut self) -> bool {
        let (image, index) = (self.image, &self.index);
        let behind_trap = |region: &Region, number: usize| {
            let block = &region.cfg.blocks[number];
            let at = block.end_address();
            let next = region.cfg.blocks.get(number + 1).map(|next| next.start);
            // Most are followed by code that something leads to.
            if next == Some(at) {
                return None;
            }
            let fde = image.fde_at(at).filter(|fde| fde.contains(block.start))?;
            let next = next.map_or(fde.end(), |next| next.min(fde.end()));
            let is_left_over = at < next && region.contains(at) && index.starting_at(at).is_none();
            (is_left_over && !is_padding(image, at, next)).then_some(at)
        };
        let behind_traps = |region: &Region| -> Vec<Svma> {
            let numbers = region.links.traps.iter().map(|number| *number as usize);
            numbers.filter(|number| region.reached[*number]).filter_map(|number| behind_trap(region, number)).collect()
        };
        let found = self.regions.par_iter().enumerate().map(|(i, region)| (i as u32, behind_traps(region)));
        let found: Vec<(u32, Vec<Svma>)> = found.filter(|(_, behind)| !behind.is_empty()).collect();
        let mut entered = Vec::new();
        for (i, behind) in found {
            let region = &mut self.regions[i as usize];
            entered.extend(behind.into_iter().filter(|at| region.enter(*at)).map(|_| i));
        }
        let is_new = !entered.is_empty();
        self.active = Active::only(entered);
        is_new
    }

    fn rounds(&mut self) {
        loop {
            self.analyse_dirty();
            let fresh = Active::only(self.settle_noreturn());
            // A call to a function that is known is nothing new.
            let is_new = |flow: &Outflow| flow.into.is_none_or(|into| self.regions[into as usize].start() != flow.to);
            let flows = self.outflows(&fresh, Blocks::LeadingElsewhere, is_new);
            fresh.pick(&mut self.regions).into_iter().for_each(|(_, region)| region.fresh = false);
            if self.follow(&flows) {
                continue;
            }
            let stale = (0..).zip(&mut self.regions).filter(|(_, region)| region.stale);
            let again = stale.map(|(number, region)| {
                (region.dirty, region.stale) = (true, false);
                number
            });
            let again: Vec<u32> = again.collect();
            if again.is_empty() {
                return;
            }
            self.active = Active::Only(again);
        }
    }

    fn analyse_dirty(&mut self) {
        let (image, index, split) = (self.image, &self.index, &self.split);
        let outside_target = |at: Svma, by: Limit| {
            let i = split.partition_point(|(part, _)| part.start <= at);
            i > 0 && split[i - 1].0.contains(at) && by >= split[i - 1].1
        };
        let slots = &self.slots;
        let never = self.regions.iter().zip(&self.noreturn).filter(|(_, never)| **never);
        let never: FxHashSet<Svma> = never.map(|(region, _)| region.start()).collect();
        let comes_back = |to: Svma| !never.contains(&to);
        let returns = |to: Target| match to {
            Target::Direct(to) => comes_back(to),
            Target::Slot(slot) => !slots.never_return(slot) && slots.own(slot).is_none_or(comes_back),
            Target::Computed => true,
        };
        let (exits, stops) = (&self.exits, &self.stops);
        let around = Surroundings { image, outside_target: &outside_target, returns: &returns, exits, stops };
        let (mut dirty, mut others): (Vec<_>, Vec<_>) =
            self.active.pick(&mut self.regions).into_iter().partition(|(_, region)| region.dirty);
        dirty.par_iter_mut().for_each(|(_, region)| {
            region.pending.clear();
            let entries: Vec<Svma> = region.all_entries().collect();
            region.cfg = region::analyse(&around, &RegionSpec { parts: &region.parts, entries: &entries });
            region.stale = false;
            region.read();
        });
        let met = std::mem::take(&mut self.met);
        if met.is_empty() {
            others.retain(|(_, region)| !region.pending.is_empty());
        }
        let groups = Groups::of(others.iter().map(|(number, _)| *number), &met);
        others.sort_by_key(|(number, _)| (groups.of_region(*number), *number));
        let is_one = |a: &(u32, _), b: &(u32, _)| groups.of_region(a.0) == groups.of_region(b.0);
        let groups: Vec<&mut [(u32, &mut Region)]> = others.chunk_by_mut(is_one).collect();
        groups.into_par_iter().for_each(|group| extend_group(group, &around, index));
    }

    /// Everything that the code that can run calls or jumps to outside its region.
    pub(super) fn outflows(
        &self,
        active: &Active,
        of: Blocks,
        useful: impl Fn(&Outflow) -> bool + Sync,
    ) -> Vec<Outflow> {
        let of_region = |i: u32| {
            let region = &self.regions[i as usize];
            let mut flows = Vec::new();
            let mut see = |number: usize| {
                if !region.reached[number] {
                    return;
                }
                let block = &region.cfg.blocks[number];
                let mut add = |to: Svma, kind| {
                    if kind == OutflowKind::Call || !region.contains(to) {
                        let into = self.containing(to).map(|into| into as u32);
                        flows.extend(Some(Outflow { from: i, to, kind, into }).filter(&useful));
                    }
                };
                let jumps_out = block.to == NO_BLOCK;
                let runs_out = || region.cfg.next(number).is_none();
                let next = block.end_address();
                match block.end {
                    // `call .+5` asks for the program counter.
                    End::Call(Target::Direct(to)) if to != next => add(to, OutflowKind::Call),
                    End::Jump(to) if jumps_out => add(to, OutflowKind::Jump),
                    End::Branch(taken) => {
                        if jumps_out {
                            add(taken, OutflowKind::Branch);
                        }
                        if runs_out() {
                            add(next, OutflowKind::Other);
                        }
                    }
                    End::Fall if runs_out() => add(next, OutflowKind::Other),
                    End::Tables => region.cfg.successors(block, &mut |to| {
                        if !region.is_nowhere(self.image, to) {
                            add(to, OutflowKind::Other);
                        }
                    }),
                    _ => {}
                }
            };
            match of {
                Blocks::All => (0..region.cfg.blocks.len()).for_each(see),
                Blocks::LeadingElsewhere => region.links.elsewhere.iter().for_each(|number| see(*number as usize)),
            }
            flows.sort_by_key(|flow| (flow.to, flow.kind as u8));
            flows.dedup_by_key(|flow| (flow.to, flow.kind as u8));
            flows
        };
        match active {
            Active::All => (0..self.regions.len() as u32).into_par_iter().flat_map_iter(of_region).collect(),
            Active::Only(numbers) => numbers.par_iter().flat_map_iter(|number| of_region(*number)).collect(),
        }
    }

    /// Makes regions and entries from outflows; `false` if there was nothing new.
    fn follow(&mut self, flows: &[Outflow]) -> bool {
        let mut planted: Vec<Seed> = Vec::new();
        let mut changed: Vec<u32> = Vec::new();
        let mut plant = |at: Svma, end, found_by| {
            planted.push(Seed { start: at, end, found_by, part: false, referenced: false });
        };
        for flow in flows {
            if !self.image.is_code(flow.to) {
                continue;
            }
            let found_by = if flow.kind == OutflowKind::Call { FoundBy::Call } else { FoundBy::Jump };
            let Some(i) = flow.into.map(|into| into as usize) else {
                // Running on into nothing known is a call that does not return, not a function.
                if flow.kind != OutflowKind::Other {
                    plant(flow.to, None, found_by);
                }
                continue;
            };
            let region = &mut self.regions[i];
            if i == flow.from as usize && region.exact {
                continue;
            }
            // A region without a stated end may cover what is a function of its own; and assembly has functions with
            // several entries, each of which is called like a function.
            let called = flow.kind == OutflowKind::Call;
            if !region.exact && (called || flow.to >= region.code_end()) {
                plant(flow.to, None, found_by);
            } else if called && region.parts[0].contains(flow.to) {
                plant(flow.to, Some(region.parts[0].end), found_by);
            } else if region.entries.binary_search(&flow.to).is_err() {
                if region.enter(flow.to) {
                    self.met.push((flow.from, i as u32));
                }
                changed.extend([flow.from, i as u32]);
            }
        }
        let is_new = !changed.is_empty() || !planted.is_empty();
        self.active = Active::only(changed);
        if !planted.is_empty() {
            self.plant(planted);
        }
        is_new
    }

    /// Has regions analysed again if their jumps or tables may come out otherwise now that it is known which calls return
    /// and where tables start; the `first` time, also because parts were joined. `false`: there are none.
    fn look_again(&mut self, first: bool) -> bool {
        let known = std::mem::take(&mut self.stops);
        let image = self.image;
        let tables = self.regions.par_iter().flat_map_iter(|region| &region.cfg.tables);
        self.stops = tables.map(|table| table.start(image)).collect();
        if first {
            self.stops.extend(self.image.sections().iter().map(|section| section.svma));
            self.stops.par_sort_unstable();
            self.stops.extend(self.data_behind_open_tables());
        } else {
            self.stops.extend(&known);
        }
        self.stops.par_sort_unstable();
        self.stops.dedup();
        let (image, stops) = (self.image, &self.stops);
        let new: Vec<Svma> = stops.iter().copied().filter(|stop| known.binary_search(stop).is_err()).collect();
        self.regions.par_iter_mut().for_each(|region| {
            region.dirty |= region.has_table_past(&new) || first && region.has_open_jump(image);
            if first && !region.dirty && region.parts.len() > 1 {
                match grow_tables(image, stops, &region.parts, &mut region.cfg) {
                    Growth::None => {}
                    Growth::To(unread) => {
                        region.pending.extend(unread);
                        region.fresh = true;
                    }
                    Growth::Unclear => region.dirty = true,
                }
            }
        });
        let changed = self.regions.par_iter().enumerate().filter(|(_, region)| region.dirty || region.fresh);
        let changed: Vec<u32> = changed.map(|(number, _)| number as u32).collect();
        let is_new = !changed.is_empty();
        self.active = Active::Only(changed);
        is_new
    }

    /// Data that code mentions and that an open table seems to run into. The data of one source file stands together,
    /// as its code does, so only the functions around are asked.
    fn data_behind_open_tables(&self) -> Vec<Svma> {
        let open = |region: &Region| {
            let is_joined = region.parts.len() > 1;
            let range = |table: &JumpTable| {
                // What was found before a part was joined may have ended at an entry that leads there.
                let end = if is_joined { first_behind(&self.stops, table.at) } else { None };
                table.at + 1..end.unwrap_or(table.end())
            };
            region.open_tables().map(range).collect::<Vec<_>>()
        };
        let neighbours = self.regions.par_chunks(NEIGHBOURS);
        let open: Vec<Vec<Range<Svma>>> =
            neighbours.map(|regions| regions.iter().flat_map(|region| open(region)).collect()).collect();
        let mentioned_in = |(i, regions): (usize, &[Box<Region>])| {
            let near = open[i.saturating_sub(1)..(i + 2).min(open.len())].concat();
            let near = union(near);
            let is_near = |at: Svma| {
                let next = near.partition_point(|range| range.start <= at);
                next > 0 && at < near[next - 1].end
            };
            regions.iter().flat_map(|region| Self::constants_in_code(region, &is_near)).collect::<Vec<Svma>>()
        };
        self.regions.par_chunks(NEIGHBOURS).enumerate().flat_map_iter(mentioned_in).collect()
    }
}

/// The same addresses in ranges that are sorted and apart.
fn union(mut ranges: Vec<Range<Svma>>) -> Vec<Range<Svma>> {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, range| {
        let touches = next.start <= range.end;
        if touches {
            range.end = range.end.max(next.end);
        }
        touches
    });
    ranges
}

fn named_noreturn(image: &Image, seed: &Seed) -> bool {
    if seed.found_by == FoundBy::Plt {
        let slot = stub_slot(image, seed.start, seed.end);
        return slot.is_some_and(|slot| Slots::is_never(image, slot));
    }
    image.symbols_at(seed.start).iter().any(|symbol| never::is_reserved(image.symbol_name(symbol)))
}

/// The slot that a PLT stub jumps through.
pub(super) fn stub_slot(image: &Image, start: Svma, end: Option<Svma>) -> Option<Svma> {
    let code = image.bytes(start, end? - start)?;
    let mut slot = None;
    // The rest of a stub may be padding that does not decode.
    let _ = image.isa().decode(code, start, &mut |insn| match insn.flow {
        lancet_isa::Flow::Jump(Target::Slot(at)) => {
            slot = Some(at);
            std::ops::ControlFlow::Break(())
        }
        _ => std::ops::ControlFlow::Continue(()),
    });
    slot
}

/// At the block's last instruction, is the stack as it was on entry? Without unwind information nobody knows; such code
/// is stubs and assembly, where a jump through a pointer is a tail call.
pub(super) fn frame_is_gone(image: &Image, block: &RegionBlock) -> bool {
    let Some(fde) = image.fde_at(block.start) else { return true };
    let on_entry = image.cie(fde).and_then(|cie| cie.entry);
    match image.cfa_at(last_insn(image, block)) {
        Some(Cfa::Register { dwarf, offset }) => on_entry == Some(Cfa::Register { dwarf, offset }),
        _ => false,
    }
}

/// The address of a block's last instruction.
pub(super) fn last_insn(image: &Image, block: &RegionBlock) -> Svma {
    let mut last = block.start;
    if let Some(code) = image.bytes(block.start, u64::from(block.len)) {
        // The block decoded before.
        let _ = image.isa().decode(code, block.start, &mut |insn| {
            last = insn.at;
            std::ops::ControlFlow::Continue(())
        });
    }
    last
}

/// Only padding, or zeros?
pub(super) fn is_padding(image: &Image, from: Svma, to: Svma) -> bool {
    let Some(code) = image.bytes(from, to - from) else { return false };
    if code.iter().all(|byte| *byte == 0) {
        return true;
    }
    image.isa().padding(code, from) == code.len()
}
