//! All functions of an image.
//!
//! [Seeds](super::seeds) make the first [regions](super::region). Then, in rounds until nothing is new:
//!
//! 1. regions that are new or have changed are analysed, in parallel;
//! 2. which of them never return is settled as a fixpoint: at first every function is taken to return, and one is
//!    found not to when no return, no tail call and no unknown jump is reached without passing a call that does not;
//! 3. what the code that can run calls and jumps to makes new regions, or new entries into known ones.
//!
//! Code behind calls that do not return contributes nothing, so stray bytes there make no functions.
//! Last, pieces that are only jumped to from one function become its parts ([`Discovery::adopt_parts`]).

use lancet_isa::{Svma, Target};
use rayon::prelude::*;

use super::FoundBy;
use super::noreturn::is_noreturn_name;
use super::region::{self, End, RegionCfg, RegionSpec, Scratch, Surroundings};
use super::seeds::{self, Seed};
use crate::image::{Image, RelocKind};

pub(super) const NONE: u32 = u32::MAX;

/// A region with what is known of its place in the whole.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) start: Svma,
    pub(super) end: Svma,
    /// Something states the end; otherwise it is just where the next region starts.
    pub(super) exact: bool,
    pub(super) found_by: FoundBy,
    pub(super) part: bool,
    referenced: bool,
    pub(super) entries: Vec<Svma>,
    pub(super) cfg: RegionCfg,
    /// For each block that ends in a direct call: the region called.
    callees: Vec<u32>,
    /// For each block: can it run?
    pub(super) reached: Vec<bool>,
    /// For each block: does the call that it ends in return?
    pub(super) returning: Vec<bool>,
    pub(super) noreturn: bool,
    /// Callers were told that it does not return, before it was analysed again.
    was_noreturn: bool,
    /// Never returns by what its name says, whatever its code looks like.
    named_noreturn: bool,
    /// Must be analysed (again).
    dirty: bool,
    /// What can run of it has changed since its outflows were followed.
    fresh: bool,
    /// The region it is a part of; itself if it is a function.
    pub(super) owner: u32,
    pub(super) is_part: bool,
}

impl Region {
    fn contains(&self, at: Svma) -> bool {
        at >= self.start && at < self.end
    }

    /// Where its code ends, which is before `end` if that is only a guess.
    pub(super) fn code_end(&self) -> Svma {
        if self.exact {
            return self.end;
        }
        let reached = self.cfg.blocks.iter().zip(&self.reached).filter(|(_, reached)| **reached);
        reached.map(|(block, _)| block.end_address()).max().unwrap_or(self.start)
    }
}

pub(super) struct Discovery<'a> {
    pub(super) image: &'a Image,
    pub(super) regions: Vec<Region>,
}

/// What happens when a region runs.
struct Run {
    reached: Vec<bool>,
    returning: Vec<bool>,
    /// Can it return to its caller?
    returns: bool,
}

/// Control that leaves a region.
#[derive(Clone, Copy, Debug)]
struct Outflow {
    from: u32,
    to: Svma,
    kind: OutflowKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutflowKind {
    Call,
    Jump,
    Branch,
    /// Through a jump table, or by running on past the end.
    Other,
}

pub(super) fn discover(image: &Image) -> Discovery<'_> {
    let mut found = Discovery { image, regions: Vec::new() };
    found.plant(seeds::collect(image));
    found.enter_landing_pads();
    found.rounds();
    let hidden = found.pointed_to_in_gaps();
    if !hidden.is_empty() {
        found.plant(hidden);
        found.rounds();
    }
    found.close_open_tables();
    found.adopt_parts();
    found
}

impl Discovery<'_> {
    /// The region whose range an address is in.
    pub(super) fn containing(&self, at: Svma) -> Option<usize> {
        let i = self.regions.partition_point(|region| region.start <= at).checked_sub(1)?;
        self.regions[i].contains(at).then_some(i)
    }

    /// Adds regions for seeds; regions that one falls into end before it.
    fn plant(&mut self, seeds: Vec<Seed>) {
        for seed in seeds {
            let Some(range) = self.image.code_range_at(seed.start) else { continue };
            self.regions.push(Region {
                start: seed.start,
                end: seed.end.unwrap_or(range.end()).min(range.end()).max(seed.start + 1),
                exact: seed.end.is_some(),
                found_by: seed.found_by,
                part: seed.part,
                referenced: seed.referenced,
                entries: Vec::new(),
                cfg: RegionCfg::default(),
                callees: Vec::new(),
                reached: Vec::new(),
                returning: Vec::new(),
                noreturn: false,
                was_noreturn: false,
                named_noreturn: named_noreturn(self.image, &seed),
                dirty: true,
                fresh: true,
                owner: NONE,
                is_part: false,
            });
        }
        self.regions.sort_by_key(|region| region.start);
        self.regions.dedup_by_key(|region| region.start);
        for i in 1..self.regions.len() {
            let next = self.regions[i].start;
            let before = &mut self.regions[i - 1];
            if before.end > next {
                before.end = next;
                before.dirty = true;
            }
        }
    }

    /// Exceptions enter a function, or the part of it where its landing pads were put.
    fn enter_landing_pads(&mut self) {
        let image = self.image;
        let with_pads: Vec<_> = image.fdes().iter().filter(|fde| fde.lsda.is_some()).collect();
        let pads: Vec<Vec<Svma>> = with_pads
            .par_iter()
            .map(|fde| {
                let mut pads: Vec<Svma> = image.landing_pads(fde).iter().map(|site| site.pad).collect();
                pads.sort_unstable();
                pads.dedup();
                pads
            })
            .collect();
        for pad in pads.into_iter().flatten() {
            if let Some(i) = self.containing(pad) {
                self.regions[i].entries.push(pad);
            }
        }
        for region in &mut self.regions {
            region.entries.sort_unstable();
            region.entries.dedup();
        }
    }

    fn rounds(&mut self) {
        loop {
            self.analyse_dirty(&[]);
            self.settle_noreturn();
            let flows = self.outflows(|region| region.fresh);
            self.regions.iter_mut().for_each(|region| region.fresh = false);
            if !self.follow(&flows) {
                return;
            }
        }
    }

    fn analyse_dirty(&mut self, stops: &[Svma]) {
        let parts: Vec<(Svma, Svma)> =
            self.regions.iter().filter(|region| region.part).map(|region| (region.start, region.end)).collect();
        let outside_target = |at: Svma| {
            let i = parts.partition_point(|(start, _)| *start <= at);
            i > 0 && at < parts[i - 1].1
        };
        let around = Surroundings { image: self.image, outside_target: &outside_target, stops };
        let mut dirty: Vec<&mut Region> = self.regions.iter_mut().filter(|region| region.dirty).collect();
        dirty.par_iter_mut().for_each_init(Scratch::default, |scratch, region| {
            let spec = RegionSpec { start: region.start, end: region.end, entries: region.entries.clone() };
            region.cfg = region::analyse(&around, &spec, scratch);
            region.dirty = false;
            region.fresh = true;
            region.was_noreturn = region.noreturn;
            region.noreturn = region.named_noreturn;
        });
    }

    fn settle_noreturn(&mut self) {
        let starts: Vec<Svma> = self.regions.iter().map(|region| region.start).collect();
        let index = |at: Svma| starts.binary_search(&at).map_or(NONE, |i| i as u32);
        self.regions.par_iter_mut().for_each(|region| {
            region.callees.clear();
            region.callees.extend(region.cfg.blocks.iter().map(|block| match block.end {
                End::Call { to: Target::Direct(to), .. } => index(to),
                _ => NONE,
            }));
        });
        let mut noreturn: Vec<bool> = self.regions.iter().map(|region| region.noreturn).collect();
        let mut pending: Vec<u32> = (0..starts.len() as u32).filter(|i| self.regions[*i as usize].fresh).collect();
        while !pending.is_empty() {
            let this = &*self;
            let results: Vec<Run> =
                pending.par_iter().map(|&i| this.run(&this.regions[i as usize], &noreturn)).collect();
            let mut changed = vec![false; self.regions.len()];
            for (i, run) in pending.iter().zip(results) {
                let i = *i as usize;
                let region = &mut self.regions[i];
                region.fresh |= region.reached != run.reached;
                region.reached = run.reached;
                region.returning = run.returning;
                noreturn[i] = !run.returns;
                changed[i] = std::mem::replace(&mut region.was_noreturn, noreturn[i]) != noreturn[i];
            }
            if !changed.contains(&true) {
                break;
            }
            let this = &*self;
            pending = (0..self.regions.len() as u32)
                .into_par_iter()
                .filter(|&i| this.depends_on(&this.regions[i as usize], &changed))
                .collect();
        }
        for (region, noreturn) in self.regions.iter_mut().zip(noreturn) {
            region.noreturn = noreturn;
        }
    }

    /// What of the region can run, and whether it can return.
    fn run(&self, region: &Region, noreturn: &[bool]) -> Run {
        let cfg = &region.cfg;
        let returning = (0..cfg.blocks.len()).map(|i| self.call_returns(region, i, noreturn)).collect::<Vec<_>>();
        let mut entries = region.entries.clone();
        entries.push(region.start);
        let reached = cfg.reachable(&entries, &returning);
        let mut returns = cfg.blocks.is_empty();
        for (block, _) in cfg.blocks.iter().zip(&reached).filter(|(_, reached)| **reached) {
            returns |= match block.end {
                End::Return | End::Pointer | End::Unresolved => true,
                End::Slot(slot) => !self.image.slot_name(slot).is_some_and(is_noreturn_name),
                End::Call { .. } | End::Stop | End::Bad(_) => false,
                End::Fall(_) | End::Jump(_) | End::Branch { .. } | End::Repeat { .. } | End::Tables => {
                    let mut leaves = false;
                    cfg.successors(block, &mut |to| {
                        leaves |= !region.contains(to) && self.containing(to).is_none_or(|q| !noreturn[q]);
                    });
                    leaves
                }
            };
        }
        Run { reached, returning, returns: returns && !region.named_noreturn }
    }

    fn call_returns(&self, region: &Region, block: usize, noreturn: &[bool]) -> bool {
        let End::Call { to, next } = region.cfg.blocks[block].end else { return true };
        let callee_returns = match to {
            Target::Direct(_) => match region.callees[block] {
                NONE => true,
                callee => !noreturn[callee as usize],
            },
            Target::Slot(slot) => !self.image.slot_name(slot).is_some_and(is_noreturn_name),
            Target::Computed => true,
        };
        callee_returns && !self.is_end(region, next)
    }

    /// Is there nothing but padding from here to the end of the region? A call before it cannot come back.
    fn is_end(&self, region: &Region, at: Svma) -> bool {
        if at >= region.end {
            return true;
        }
        let Some(i) = region.cfg.block_at(at) else { return true };
        let block = &region.cfg.blocks[i];
        block.end == End::Fall(region.end) && is_padding(self.image, block.start, block.end_address())
    }

    fn depends_on(&self, region: &Region, changed: &[bool]) -> bool {
        if region.callees.iter().any(|&callee| callee != NONE && changed[callee as usize]) {
            return true;
        }
        let mut found = false;
        for block in &region.cfg.blocks {
            if !matches!(block.end, End::Call { .. }) {
                region.cfg.successors(block, &mut |to| {
                    found |= !region.contains(to) && self.containing(to).is_some_and(|q| changed[q]);
                });
            }
        }
        found
    }

    /// Everything that the code that can run calls or jumps to outside its region.
    fn outflows(&self, wanted: impl Fn(&Region) -> bool + Sync) -> Vec<Outflow> {
        let of_region = |(i, region): (usize, &Region)| {
            let mut flows = Vec::new();
            for (block, _) in region.cfg.blocks.iter().zip(&region.reached).filter(|(_, reached)| **reached) {
                let mut add = |to: Svma, kind| {
                    let inside = region.contains(to) && to != region.start;
                    if kind == OutflowKind::Call || !inside {
                        flows.push(Outflow { from: i as u32, to, kind });
                    }
                };
                match block.end {
                    // `call .+5` asks for the program counter.
                    End::Call { to: Target::Direct(to), next } if to != next => add(to, OutflowKind::Call),
                    End::Jump(to) => add(to, OutflowKind::Jump),
                    End::Branch { taken, next } => {
                        add(taken, OutflowKind::Branch);
                        add(next, OutflowKind::Other);
                    }
                    End::Fall(to) => add(to, OutflowKind::Other),
                    End::Tables => region.cfg.successors(block, &mut |to| add(to, OutflowKind::Other)),
                    _ => {}
                }
            }
            flows.sort_by_key(|flow| (flow.to, flow.kind as u8));
            flows.dedup_by_key(|flow| (flow.to, flow.kind as u8));
            flows
        };
        self.regions.par_iter().enumerate().filter(|(_, region)| wanted(region)).flat_map_iter(of_region).collect()
    }

    /// Makes regions and entries from outflows; `false` if there was nothing new.
    fn follow(&mut self, flows: &[Outflow]) -> bool {
        let mut planted: Vec<Seed> = Vec::new();
        let mut changed = false;
        let mut plant = |at: Svma, found_by| {
            planted.push(Seed { start: at, end: None, found_by, part: false, referenced: false });
        };
        for flow in flows {
            if !self.image.is_code(flow.to) {
                continue;
            }
            let found_by = if flow.kind == OutflowKind::Call { FoundBy::Call } else { FoundBy::Jump };
            let Some(i) = self.containing(flow.to) else {
                // Running on into nothing known is a call that does not return, not a function.
                if flow.kind != OutflowKind::Other {
                    plant(flow.to, found_by);
                }
                continue;
            };
            if self.regions[i].start == flow.to {
                continue;
            }
            let region = &self.regions[i];
            // A region without a stated end may cover what is a function of its own.
            if !region.exact && (flow.kind == OutflowKind::Call || flow.to >= region.code_end()) {
                plant(flow.to, found_by);
            } else if region.cfg.block_at(flow.to).is_none_or(|block| !region.reached[block])
                && region.entries.binary_search(&flow.to).is_err()
            {
                let region = &mut self.regions[i];
                let place = region.entries.partition_point(|at| *at < flow.to);
                region.entries.insert(place, flow.to);
                region.dirty = true;
                changed = true;
            }
        }
        changed |= !planted.is_empty();
        self.plant(planted);
        changed
    }

    /// Tables whose index nothing bounds end where another begins: analyse their functions again, knowing all.
    fn close_open_tables(&mut self) {
        let mut stops: Vec<Svma> =
            self.regions.par_iter().flat_map_iter(|region| region.cfg.tables.iter().map(|table| table.at)).collect();
        stops.par_sort_unstable();
        stops.dedup();
        let open = |region: &Region| {
            region.cfg.tables.iter().any(|table| {
                let next = stops.partition_point(|stop| *stop <= table.at);
                let end = table.at + table.targets.len() as u64 * u64::from(table.entry_bytes);
                table.bound == super::Bound::Content && stops.get(next).is_some_and(|stop| *stop < end)
            })
        };
        let again: Vec<usize> = (0..self.regions.len()).filter(|i| open(&self.regions[*i])).collect();
        if again.is_empty() {
            return;
        }
        for i in again {
            self.regions[i].dirty = true;
        }
        self.analyse_dirty(&stops);
        self.settle_noreturn();
    }

    /// Code that nothing covers, and that a pointer in data leads to.
    fn pointed_to_in_gaps(&self) -> Vec<Seed> {
        let gaps = self.gaps();
        if gaps.is_empty() {
            return Vec::new();
        }
        let in_gap = |at: Svma| {
            let i = gaps.partition_point(|(start, _)| *start <= at);
            i > 0 && at < gaps[i - 1].1
        };
        let mut found: Vec<Svma> = Vec::new();
        for reloc in self.image.relocations() {
            if let RelocKind::Relative(to) = reloc.kind {
                found.push(to);
            }
        }
        if !self.image.kind().is_position_independent() {
            found.extend(self.words_in_data());
        }
        found.extend(self.constants_in_code(&in_gap));
        found.retain(|at| in_gap(*at));
        found.sort_unstable();
        found.dedup();
        let seed = |start| Seed { start, end: None, found_by: FoundBy::Pointer, part: false, referenced: true };
        found.into_iter().map(seed).collect()
    }

    /// Ranges of code, padding aside, that no region's code covers.
    fn gaps(&self) -> Vec<(Svma, Svma)> {
        let mut gaps = Vec::new();
        for range in self.image.code_ranges() {
            let mut at = range.start;
            let first = self.regions.partition_point(|region| region.start < range.start);
            let inside = self.regions[first..].iter().take_while(|region| region.start < range.end());
            for (start, end) in
                inside.map(|region| (region.start, region.code_end())).chain([(range.end(), range.end())])
            {
                if start > at && !is_padding(self.image, at, start) {
                    gaps.push((at, start));
                }
                at = at.max(end);
            }
        }
        gaps
    }

    /// Pointer-sized words of the data of a program at a fixed address.
    fn words_in_data(&self) -> Vec<Svma> {
        let mut words = Vec::new();
        let size = u64::from(self.image.isa().facts().pointer_bytes);
        for segment in self.image.segments().iter().filter(|segment| !segment.executable) {
            let aligned = Svma(segment.svma.0.next_multiple_of(size));
            for i in 0..segment.file_size.saturating_sub(aligned - segment.svma) / size {
                words.extend(self.image.pointer_at(aligned + i * size));
            }
        }
        words
    }

    /// Addresses that instructions mention.
    fn constants_in_code(&self, wanted: &(dyn Fn(Svma) -> bool + Sync)) -> Vec<Svma> {
        let isa = self.image.isa();
        let of_region = |region: &Region| {
            let mut found = Vec::new();
            for (block, _) in region.cfg.blocks.iter().zip(&region.reached).filter(|(_, reached)| **reached) {
                let Some(code) = self.image.bytes(block.start, u64::from(block.len)) else { continue };
                // Blocks are made of instructions that decoded.
                let _ = isa.decode(code, block.start, &mut |insn| {
                    let offset = (insn.at - block.start) as usize;
                    isa.address_constants(&code[offset..], insn.at, &mut |at| {
                        if wanted(at) {
                            found.push(at);
                        }
                    });
                    std::ops::ControlFlow::Continue(())
                });
            }
            found
        };
        self.regions.par_iter().flat_map_iter(of_region).collect()
    }

    /// Finds the regions that are parts of others.
    ///
    /// GCC moves the unlikely blocks of a function elsewhere, with an FDE of their own. Most of these say so by
    /// starting with a frame. One that starts without is told from a function by how it is reached: never called,
    /// pointed to or named, jumped to from one function only, and either it jumps back into the middle of that
    /// function, or it is reached by a conditional jump and is not aligned as functions are.
    fn adopt_parts(&mut self) {
        let flows = self.outflows(|_| true);
        let count = self.regions.len();
        let mut called = vec![false; count];
        let mut source = vec![NONE; count];
        let mut several = vec![false; count];
        let mut branched = vec![false; count];
        let mut back_to: Vec<Vec<u32>> = vec![Vec::new(); count];
        for flow in &flows {
            let Some(to) = self.containing(flow.to) else { continue };
            if flow.kind == OutflowKind::Call {
                called[to] |= self.regions[to].start == flow.to;
                continue;
            }
            if flow.from as usize == to {
                continue;
            }
            if self.regions[to].start != flow.to {
                back_to[flow.from as usize].push(to as u32);
                if !self.regions[to].part {
                    continue;
                }
            }
            several[to] |= source[to] != NONE && source[to] != flow.from;
            source[to] = if source[to] == NONE { flow.from } else { source[to] };
            branched[to] |= flow.kind == OutflowKind::Branch;
        }
        for i in 0..count {
            let region = &self.regions[i];
            let from = source[i];
            let part = !called[i]
                && !region.referenced
                && from != NONE
                && (region.part
                    || region.found_by == FoundBy::Fde
                        && !several[i]
                        && (back_to[i].contains(&from) || branched[i] && region.start.0 % 16 != 0));
            self.regions[i].owner = if part { from } else { i as u32 };
        }
        // A part of a part belongs to the function; a ring of parts is no function's.
        for i in 0..count {
            let mut owner = self.regions[i].owner;
            for _ in 0..16 {
                owner = self.regions[owner as usize].owner;
            }
            let is_function = self.regions[owner as usize].owner == owner;
            self.regions[i].owner = if is_function { owner } else { i as u32 };
            self.regions[i].is_part = self.regions[i].owner != i as u32;
        }
    }
}

fn named_noreturn(image: &Image, seed: &Seed) -> bool {
    if seed.found_by == FoundBy::Plt {
        return stub_slot(image, seed.start, seed.end)
            .and_then(|slot| image.slot_name(slot))
            .is_some_and(is_noreturn_name);
    }
    image.symbols_at(seed.start).iter().any(|symbol| is_noreturn_name(image.symbol_name(symbol)))
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

/// Only padding, or zeros?
fn is_padding(image: &Image, from: Svma, to: Svma) -> bool {
    let Some(code) = image.bytes(from, to - from) else { return false };
    if code.iter().all(|byte| *byte == 0) {
        return true;
    }
    let isa = image.isa();
    let mut at = 0;
    while at < code.len() {
        let here = from + at as u64;
        match lancet_isa::decode_one(isa, &code[at..], here) {
            Ok(insn) if isa.is_padding(&code[at..], here) => at += usize::from(insn.len),
            _ => return false,
        }
    }
    true
}
