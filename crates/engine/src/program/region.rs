//! Control flow inside one region.
//!
//! A region is a piece of text that starts at a known entry and has a known or assumed end: what one FDE or one
//! symbol covers, or what lies up to the next known start. Regions are independent of each other, so they are
//! analysed in parallel; [`super::discover`] joins them to functions.
//!
//! Decoding follows control flow from the entries, never a linear sweep. Whether a call returns is not known
//! yet, so flow goes on behind every call; [`RegionCfg::reach`] leaves out later what stands behind calls that do not.
//! Streams of instructions may overlap (`lock` prefixes that are jumped over): where they come together, a block starts.

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::{ControlFlow, Range};

use lancet_isa::{Effects, Flow, Insn, Isa, Reader, Svma, Target};

use super::blocks::{End, NO_BLOCK, NOT_FOLLOWED, RegionBlock, RegionCfg, mentioned, note_mentions};
use super::bounds::Limit;
use super::exits::Exits;
use super::func::Part;
use super::jump_tables::{Depth, View};
use super::jumps::Jumps;
use super::scratch::{LEADER, NO_LEADER, Run, Scratch, clear_insns};
use super::table::{Bound, first_behind, is_nowhere};
use super::ways::{Blocks, Via};
use crate::image::{Image, LandingPad};

#[derive(Clone, Debug)]
pub(super) struct RegionSpec<'a> {
    /// What belongs to the region: its main part first, then parts that were found elsewhere.
    pub(super) parts: &'a [Part],
    /// Where control may enter besides the start: landing pads, jumps from elsewhere.
    pub(super) entries: &'a [Svma],
}

pub(super) struct Surroundings<'a> {
    pub(super) image: &'a Image,
    /// May a table of this region point there, though it is outside? (A cold part.)
    pub(super) outside_target: &'a (dyn Fn(Svma, Limit) -> bool + Sync),
    /// Does a call come back, as far as is known?
    pub(super) returns: &'a (dyn Fn(Target) -> bool + Sync),
    /// Calls that do not because of what they are given.
    pub(super) exits: &'a Exits,
    /// See [`View::stops`].
    pub(super) stops: &'a [Svma],
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Gives the buffers of all workers back.
pub(super) fn free_scratch() {
    rayon::broadcast(|_| drop(SCRATCH.take()));
}

pub(super) fn analyse(around: &Surroundings<'_>, spec: &RegionSpec<'_>) -> RegionCfg {
    SCRATCH.with_borrow_mut(|scratch| analyse_in(scratch, around, spec))
}

fn analyse_in(scratch: &mut Scratch, around: &Surroundings<'_>, spec: &RegionSpec<'_>) -> RegionCfg {
    let mut slices = Vec::with_capacity(spec.parts.len());
    let mut base = 0;
    for part in spec.parts {
        let code = around.image.bytes_from(part.start).unwrap_or(&[]);
        let len = usize::try_from(part.size()).unwrap_or(usize::MAX).min(code.len());
        if base + len + GAP > u32::MAX as usize {
            break;
        }
        slices.push(Slice { start: part.start, base: base as u32, code: &code[..len] });
        base += len + GAP;
    }
    scratch.begin(base);
    let isa = around.image.isa();
    let mut region = Builder {
        around,
        isa,
        parts: spec.parts,
        readers: slices.iter().map(|slice| isa.reader(slice.code, slice.start)).collect(),
        slices,
        data: RefCell::default(),
        likely: OnceCell::new(),
        read: Vec::new(),
        pads: OnceCell::new(),
        scratch,
    };
    let mut jumps = region.follow(spec);
    // Code behind one table may use the next, which shows how long the first is. What was read past its end is forgotten.
    for _ in 0..MAX_RESTARTS {
        if !region.has_read_past_an_end() {
            break;
        }
        region.clear();
        jumps = region.follow(spec);
    }
    let cfg = region.finish(jumps);
    region.clear();
    cfg
}

/// How often a region is read anew because a table turned out to be shorter: tables behind tables behind tables.
const MAX_RESTARTS: usize = 3;

/// In a part that is larger, no more than this is searched for what it is likely to mention: without a stated end, it may be
/// megabytes of other code.
const MAX_SEARCHED: usize = 1 << 20;

/// Between the offsets of two parts; no instruction of any kind is longer.
const GAP: usize = 16;

/// How to look at indirect jumps.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Look {
    /// At all of them, or only at those that were not resolved.
    again: bool,
    depth: Depth,
}

/// What a look at the indirect jumps has changed, and how far to read tables from then on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Nothing,
    NewWays(Depth),
    NewCode(Depth),
}

/// The code of one part, and the offset of its first byte.
#[derive(Clone, Copy)]
pub(super) struct Slice<'a> {
    pub(super) start: Svma,
    pub(super) base: u32,
    pub(super) code: &'a [u8],
}

/// Data that the region's own code mentions: where other things than a table begin.
#[derive(Default)]
struct Data {
    /// Sorted.
    found: Vec<Svma>,
    /// How many of the instructions were asked.
    of: usize,
}

struct Builder<'a, 's> {
    around: &'a Surroundings<'a>,
    isa: &'static dyn Isa,
    parts: &'a [Part],
    slices: Vec<Slice<'a>>,
    /// Of the slices.
    readers: Vec<Box<dyn Reader + 'a>>,
    data: RefCell<Data>,
    likely: OnceCell<Vec<Svma>>,
    /// The tables whose size no check tells, as far as they were read.
    read: Vec<Range<Svma>>,
    /// Which instructions may throw to which landing pads.
    pads: OnceCell<Vec<(u32, LandingPad)>>,
    scratch: &'s mut Scratch,
}

impl<'a> Builder<'a, '_> {
    /// Decodes all that control reaches, and resolves the indirect jumps on the way.
    fn follow(&mut self, spec: &RegionSpec<'_>) -> Jumps {
        spec.parts.iter().take(1).for_each(|part| self.add_leader(part.start));
        spec.entries.iter().for_each(|at| self.add_leader(*at));
        let mut jumps = Jumps::default();
        // Code behind a table may lead to another way into its jump: once nothing is new, all are looked at again.
        let mut look = Look { again: true, depth: Depth::Sure };
        loop {
            self.decode_all();
            if self.scratch.jumps.is_empty() {
                return jumps;
            }
            look = match self.resolve_indirect(&mut jumps, look) {
                Progress::Nothing => return jumps,
                Progress::NewWays(depth) => Look { again: true, depth },
                Progress::NewCode(depth) => Look { again: false, depth },
            };
        }
    }

    /// Was a table whose size no check tells read into something that the code mentions?
    fn has_read_past_an_end(&self) -> bool {
        self.read.iter().any(|table| self.data_behind(table.start).is_some_and(|stop| stop < table.end))
    }

    /// The first data behind an address that the code mentions which was decoded so far. Only tables of unchecked size ask
    /// for it.
    fn data_behind(&self, at: Svma) -> Option<Svma> {
        let mut data = self.data.borrow_mut();
        let insns = &self.scratch.insns;
        if data.of < insns.len() {
            let mentioning = insns[data.of..].iter().filter(|insn| !insn.mentions.is_empty());
            let mentioned = mentioning.flat_map(|insn| mentioned(self.around.image, insn));
            data.found.extend(mentioned.filter(|at| self.is_data(*at)));
            data.found.sort();
            data.found.dedup();
            data.of = insns.len();
        }
        first_behind(&data.found, at)
    }

    /// Data that the region seems to mention, code that was not decoded yet included; sorted.
    fn likely_data(&self) -> &[Svma] {
        self.likely.get_or_init(|| {
            let mut found = Vec::new();
            for slice in &self.slices {
                let code = &slice.code[..slice.code.len().min(MAX_SEARCHED)];
                self.isa.likely_addresses(code, slice.start, &mut |at| {
                    if self.is_data(at) {
                        found.push(at);
                    }
                });
            }
            found.sort_unstable();
            found
        })
    }

    /// Outside the region, but in the file?
    fn is_data(&self, at: Svma) -> bool {
        self.offset(at).is_none() && self.around.image.bytes(at, 1).is_some()
    }

    /// Leaves the large buffers zeroed, at a cost in proportion to what was used of them.
    fn clear(&mut self) {
        let scratch = &mut *self.scratch;
        clear_insns(&self.slices, &mut scratch.insns, &mut scratch.at_offset);
        self.scratch.computed.clear();
        self.data.get_mut().of = 0;
        self.read.clear();
        self.scratch.runs.clear();
        self.scratch.run_of.clear();
        for leader in self.scratch.leaders.drain(..) {
            self.scratch.leader_at[leader as usize] = NO_LEADER;
            self.scratch.source_at[leader as usize] = 0;
        }
        self.scratch.sources.clear();
        self.scratch.jumps.clear();
        self.scratch.work.clear();
        self.scratch.last_calls.clear();
        self.scratch.hardware_loops.clear();
        self.scratch.followed.clear();
    }

    fn offset(&self, at: Svma) -> Option<u32> {
        self.slices.iter().find_map(|slice| {
            let offset = at - slice.start;
            (offset < slice.code.len() as u64).then(|| slice.base + offset as u32)
        })
    }

    /// The place in `slices` of the one that an offset is in.
    fn slice(&self, offset: u32) -> usize {
        self.slices.partition_point(|slice| slice.base <= offset).saturating_sub(1)
    }

    fn address(&self, offset: u32) -> Svma {
        let slice = self.slices[self.slice(offset)];
        slice.start + u64::from(offset - slice.base)
    }

    fn add_leader(&mut self, at: Svma) {
        if let Some(offset) = self.offset(at) {
            self.scratch.lead(offset);
        }
    }

    fn add_way(&mut self, at: Svma, insn: usize, via: Via) {
        if let Some(offset) = self.offset(at) {
            self.scratch.lead(offset);
            self.scratch.add_source(offset, insn, via);
        }
    }

    /// The place in `insns` of the instruction at an offset.
    fn index_at(&self, offset: u32) -> Option<usize> {
        (*self.scratch.at_offset.get(offset as usize)? as usize).checked_sub(1)
    }

    fn insn_at(&self, offset: u32) -> Option<&Insn> {
        self.scratch.insns.get(self.index_at(offset)?)
    }

    fn decode_all(&mut self) {
        loop {
            while let Some(offset) = self.scratch.work.pop() {
                if self.scratch.at_offset[offset as usize] == 0 {
                    self.decode_from(offset);
                }
            }
            // Behind the last instruction of a hardware loop a block starts: where that is, is known once it is decoded.
            for i in 0..self.scratch.hardware_loops.len() {
                let last = self.offset(self.scratch.hardware_loops[i].1).and_then(|offset| self.insn_at(offset));
                if let Some(next) = last.map(Insn::end) {
                    self.add_leader(next);
                }
            }
            // Control may have been found to come in between the call and what it is given.
            for call in std::mem::take(&mut self.scratch.last_calls) {
                match self.is_last_call(call) {
                    true => self.scratch.last_calls.push(call),
                    false => self.add_way(self.scratch.insns[call].end(), call, Via::AfterCall),
                }
            }
            if self.scratch.work.is_empty() {
                break;
            }
        }
    }

    /// Decodes up to where control leaves for good, or to something decoded before.
    fn decode_from(&mut self, from: u32) {
        let slice = self.slice(from);
        let Slice { start, base, code } = self.slices[slice];
        let end = base + code.len() as u32;
        let first = self.scratch.insns.len();
        let mut readers = std::mem::take(&mut self.readers);
        // What fails to decode is found again, as a gap behind the last instruction, when blocks are built.
        let _ = readers[slice]
            .decode_from((from - base) as usize, &mut |insn| self.take(insn, base + (insn.at - start) as u32, end));
        self.readers = readers;
        let scratch = &mut *self.scratch;
        if scratch.insns.len() > first {
            let (number, end) = (scratch.runs.len() as u32, scratch.insns.len());
            scratch.run_of.resize(end, number);
            scratch.runs.push(Run { offset: from, insns: first..end });
        }
    }

    /// Adds the instruction at an offset of a part, which ends at another, and tells whether control runs on behind it to
    /// something that was not decoded yet.
    fn take(&mut self, insn: &Insn, offset: u32, end: u32) -> ControlFlow<()> {
        let scratch = &mut *self.scratch;
        let slot = &mut scratch.at_offset[offset as usize];
        if *slot != 0 {
            scratch.lead(offset);
            let last = scratch.insns.len() - 1;
            scratch.add_source(offset, last, via_behind(scratch.insns[last].flow));
            return ControlFlow::Break(());
        }
        let this = scratch.insns.len();
        scratch.insns.push(*insn);
        *slot = this as u32 + 1;
        match insn.flow {
            Flow::Next | Flow::System => return ControlFlow::Continue(()),
            Flow::Jump(Target::Direct(to)) => self.add_way(to, this, Via::Other),
            Flow::Branch(to) => self.add_way(to, this, Via::Taken),
            Flow::LoopSetup { first, last } => {
                scratch.hardware_loops.push((first, last));
                self.add_leader(first);
            }
            Flow::Jump(Target::Computed) => {
                scratch.jumps.push(this);
                scratch.followed.is_stale = true;
            }
            Flow::Call(_) => scratch.followed.is_stale |= scratch.followed.has_pad,
            Flow::Jump(_) | Flow::Return | Flow::Stop => {}
        }
        let goes_on = match insn.flow {
            Flow::Call(to) => (self.around.returns)(to) && !self.ends_with_last_call(),
            flow => flow.falls_through(),
        };
        if !goes_on {
            return ControlFlow::Break(());
        }
        let next = offset + u32::from(insn.len);
        if next < end {
            self.scratch.lead(next);
        }
        ControlFlow::Continue(())
    }

    /// Does the instruction that was decoded last end the process?
    fn ends_with_last_call(&mut self) -> bool {
        let call = self.scratch.insns.len() - 1;
        let is_one = self.is_last_call(call);
        if is_one {
            self.scratch.last_calls.push(call);
        }
        is_one
    }

    /// Does this call end the process, by what its block tells?
    fn is_last_call(&self, call: usize) -> bool {
        let insns = &self.scratch.insns;
        if !self.around.exits.may_be(&insns[call]) {
            return false;
        }
        let is_leader =
            |i: usize| self.offset(insns[i].at).is_none_or(|at| self.scratch.leader_at[at as usize] != NO_LEADER);
        let runs_on = |i: usize| !insns[i - 1].flow.ends_block() && insns[i - 1].end() == insns[i].at;
        let mut first = call;
        while first > 0 && !is_leader(first) && runs_on(first) {
            first -= 1;
        }
        self.around.exits.ends(self.around.image, &insns[first..=call])
    }

    /// Forgets what was found of blocks before there were others. `jumps`: the tables that are known now.
    fn renew_ways(&mut self, jumps: &Jumps) {
        let mut from_tables = std::mem::take(&mut self.scratch.from_tables);
        from_tables.clear();
        let index = |at: Svma| self.index_at(self.offset(at)?);
        for table in &jumps.tables {
            let Some(jump) = index(table.jump) else { continue };
            from_tables.extend(table.targets.iter().filter_map(|to| Some((self.offset(*to)?, jump))));
        }
        from_tables.extend(jumps.labels.iter().filter_map(|(jump, to)| Some((self.offset(*to)?, index(*jump)?))));
        from_tables.sort_unstable();
        from_tables.dedup();
        self.scratch.from_tables = from_tables;
        self.scratch.ways.clear();
        self.scratch.calls.take();
    }

    /// Notes through which code the jumps were followed.
    fn note_followed(&mut self, jumps: &Jumps) {
        let mut has_pad = false;
        for (leader, insns) in jumps.seen_blocks() {
            has_pad |= !self.sites_of(leader).is_empty();
            let mut at = leader;
            for _ in 0..insns {
                let Some(i) = self.index_at(at) else { break };
                self.scratch.followed.add(at);
                at += u32::from(self.scratch.insns[i].len);
            }
        }
        self.scratch.followed.has_pad = has_pad;
    }

    /// The leader of the block that an instruction is in.
    fn leader_of(&self, mut insn: usize) -> u32 {
        let scratch = &*self.scratch;
        let Some(mut offset) = self.offset(scratch.insns[insn].at) else { return 0 };
        let first = scratch.runs[scratch.run_of[insn] as usize].insns.start;
        while insn > first && scratch.leader_at[offset as usize] == NO_LEADER {
            insn -= 1;
            offset -= u32::from(scratch.insns[insn].len);
        }
        offset
    }

    /// The landing pads at a leader, with what throws to them.
    fn sites_of(&self, leader: u32) -> &[(u32, LandingPad)] {
        let image = self.around.image;
        let sites = self.pads.get_or_init(|| {
            let fdes = self.slices.iter().filter_map(|slice| image.fde_at(slice.start));
            let sites = fdes.filter(|fde| fde.lsda.is_some()).flat_map(|fde| image.landing_pads(fde));
            let mut sites: Vec<(u32, LandingPad)> =
                sites.filter_map(|site| Some((self.offset(site.pad)?, site))).collect();
            sites.sort_by_key(|(pad, _)| *pad);
            sites
        });
        let first = sites.partition_point(|(pad, _)| *pad < leader);
        let count = sites[first..].partition_point(|(pad, _)| *pad == leader);
        &sites[first..first + count]
    }

    /// All calls, by address.
    fn calls(&self) -> &[(Svma, usize)] {
        self.scratch.calls.get_or_init(|| {
            let insns = self.scratch.insns.iter().enumerate();
            let calls = insns.filter(|(_, insn)| matches!(insn.flow, Flow::Call(_))).map(|(i, insn)| (insn.at, i));
            let mut calls: Vec<(Svma, usize)> = calls.collect();
            calls.sort_unstable();
            calls
        })
    }

    /// The tops of the hardware loops that the instruction closes.
    fn closed_by(&self, at: Svma) -> impl Iterator<Item = Svma> {
        self.scratch.hardware_loops.iter().filter(move |(_, last)| *last == at).map(|(first, _)| *first)
    }

    fn closes_loop(&self, at: Svma) -> bool {
        self.closed_by(at).next().is_some()
    }

    /// Resolves indirect jumps with what is decoded so far.
    fn resolve_indirect(&mut self, jumps: &mut Jumps, look: Look) -> Progress {
        let to_follow = std::mem::replace(&mut self.scratch.followed.is_stale, false);
        if to_follow {
            self.renew_ways(jumps);
        }
        let mut view = View {
            isa: self.isa,
            image: self.around.image,
            insns: &self.scratch.insns,
            blocks: self,
            ways: &self.scratch.ways,
            stops: self.around.stops,
            data_behind: &|at| self.data_behind(at),
            likely_behind: &|at| first_behind(self.likely_data(), at),
            depth: look.depth,
            has_more: Cell::new(false),
            computed: &self.scratch.computed,
        };
        let is_target = |at: Svma, by: Limit| match self.offset(at) {
            Some(offset) => !self.is_inside_insn(offset),
            None => (self.around.outside_target)(at, by) || is_nowhere(self.around.image, self.parts, at),
        };
        let is_new = |to: Svma| self.offset(to).is_some_and(|to| self.scratch.leader_at[to as usize] == NO_LEADER);
        let mut leaders: Vec<u32> = self.scratch.jumps.iter().map(|jump| self.leader_of(*jump)).collect();
        leaders.sort_unstable();
        let mut all = look.again;
        let mut all_followed = !to_follow;
        let progress = loop {
            let known = jumps.ways();
            if all {
                jumps.forget();
            }
            view.has_more.set(false);
            leaders.iter().for_each(|leader| jumps.resolve(&view, view.block_at(*leader), to_follow, &is_target));
            all_followed |= all;
            let has_more_ways = jumps.ways() > known;
            if jumps.targets().any(is_new) {
                break Progress::NewCode(view.depth);
            }
            if has_more_ways && (!all || view.depth > look.depth) {
                break Progress::NewWays(view.depth);
            }
            // Nothing has changed, so more can be looked at as it is.
            if !all {
                all = true;
            } else if let Some(next) = view.depth.next().filter(|_| view.has_more.get()) {
                view.depth = next;
            } else {
                break Progress::Nothing;
            }
        };
        if progress == Progress::Nothing {
            return progress;
        }
        if to_follow {
            self.note_followed(jumps);
            self.scratch.followed.is_stale = !all_followed;
        }
        if matches!(progress, Progress::NewCode(_)) {
            let open = jumps.tables.iter().filter(|table| table.bound != Bound::Checked);
            self.read.extend(open.map(|table| table.at..table.end()));
        }
        // Those that are known are other ways, too.
        jumps.targets().for_each(|to| self.add_leader(to));
        progress
    }

    /// The way from an instruction, by the leader of its block. Some calls end the process.
    fn way_from(&self, insn: usize, via: Via) -> Option<(u32, Via)> {
        let leader = self.leader_of(insn);
        let ends = via == Via::AfterCall
            && self.around.exits.may_be(&self.scratch.insns[insn])
            && self.around.exits.ends(self.around.image, &self.scratch.insns[self.insns(leader)]);
        (!ends).then_some((leader, via))
    }

    /// Is the byte inside an instruction, and no instruction starts there?
    fn is_inside_insn(&self, offset: u32) -> bool {
        let longest = u32::from(self.isa.facts().longest_insn);
        self.insn_at(offset).is_none()
            && (offset.saturating_sub(longest - 1)..offset)
                .any(|before| self.insn_at(before).is_some_and(|insn| before + u32::from(insn.len) > offset))
    }

    fn finish(&mut self, jumps: Jumps) -> RegionCfg {
        let mut mentions = std::mem::take(&mut self.scratch.mentions);
        let mut blocks = Vec::with_capacity(self.scratch.leaders.len());
        // They were found in the order of jumps.
        self.scratch.runs.sort_unstable_by_key(|run| run.offset);
        for run in &self.scratch.runs {
            let insns = &self.scratch.insns[run.insns.clone()];
            let mut offset = run.offset;
            let mut first = 0;
            let mut effects = Effects::default();
            for (i, insn) in insns.iter().enumerate() {
                offset += u32::from(insn.len);
                effects = effects.then(insn.effects);
                note_mentions(self.around.image, insn, &mut mentions);
                if i + 1 == insns.len() || self.scratch.leader_at[offset as usize] != NO_LEADER {
                    blocks.push(self.build(&insns[first..=i], std::mem::take(&mut effects), offset, &jumps));
                    first = i + 1;
                }
            }
        }
        // Offsets follow the order of the parts, which is not that of addresses; and some runs may overlap.
        if !blocks.is_sorted_by_key(|block| block.start) {
            blocks.sort_unstable_by_key(|block| block.start);
        }
        let overlaps = blocks.windows(2).any(|pair| pair[0].end_address() > pair[1].start);
        mentions.sort_unstable();
        mentions.dedup();
        let kept = mentions.as_slice().to_vec();
        mentions.clear();
        self.scratch.mentions = mentions;
        let mut repeats: Vec<(Svma, Svma)> =
            self.scratch.hardware_loops.iter().map(|(first, last)| (*last, *first)).collect();
        repeats.sort_unstable();
        repeats.dedup();
        let mut followed: Vec<Svma> = jumps.seen_blocks().map(|(leader, _)| self.address(leader)).collect();
        followed.sort_unstable();
        followed.dedup();
        self.link(&mut blocks);
        let (tables, labels) = (jumps.tables, jumps.labels);
        RegionCfg { blocks, overlaps, tables, labels, repeats, followed, mentions: kept }
    }

    /// Tells jumps the numbers of the blocks that they lead to.
    fn link(&mut self, blocks: &mut [RegionBlock]) {
        for (block, number) in blocks.iter().zip(LEADER + 1..) {
            if let Some(offset) = self.offset(block.start) {
                self.scratch.leader_at[offset as usize] = number;
            }
        }
        for block in blocks {
            let (End::Jump(to) | End::Branch(to)) = block.end else { continue };
            let leader = self.offset(to).map_or(NO_LEADER, |offset| self.scratch.leader_at[offset as usize]);
            block.to = leader.checked_sub(LEADER + 1).unwrap_or(NO_BLOCK);
        }
    }

    /// A block of these instructions, which ends at an offset.
    fn build(&self, insns: &[Insn], effects: Effects, end: u32, jumps: &Jumps) -> RegionBlock {
        let (first, last) = (&insns[0], &insns[insns.len() - 1]);
        let end = if self.closes_loop(last.at) {
            End::Repeat
        } else if last.flow.ends_block() {
            self.end_of(last, jumps)
        } else if self.scratch.leader_at[end as usize] == NO_LEADER && self.offset(last.end()).is_some() {
            End::Bad(last.end())
        } else {
            End::Fall
        };
        let to = match last.flow {
            Flow::Call(to) if !(self.around.returns)(to) || self.scratch.is_last_call(last) => NOT_FOLLOWED,
            _ => NO_BLOCK,
        };
        let len = (last.end() - first.at) as u32;
        RegionBlock { start: first.at, len, insns: insns.len() as u32, effects, end, to }
    }

    fn end_of(&self, insn: &Insn, jumps: &Jumps) -> End {
        match insn.flow {
            Flow::Next | Flow::System | Flow::LoopSetup { .. } => End::Fall,
            Flow::Jump(Target::Direct(to)) => End::Jump(to),
            Flow::Jump(Target::Slot(at)) => End::Slot(at),
            Flow::Jump(Target::Computed) if jumps.is_resolved(insn.at) => End::Tables,
            Flow::Jump(Target::Computed) if jumps.is_pointer(insn.at) => End::Pointer,
            Flow::Jump(Target::Computed) => End::Unresolved,
            Flow::Branch(taken) => End::Branch(taken),
            Flow::Call(to) => End::Call(to),
            Flow::Return => End::Return,
            Flow::Stop => End::Stop,
        }
    }
}

impl Blocks for Builder<'_, '_> {
    fn insns(&self, leader: u32) -> Range<usize> {
        let scratch = &*self.scratch;
        let Some(first) = self.index_at(leader) else { return 0..0 };
        let end = scratch.runs[scratch.run_of[first] as usize].insns.end;
        let mut offset = leader;
        let starts_another = |i: &usize| {
            offset += u32::from(scratch.insns[*i - 1].len);
            scratch.leader_at[offset as usize] != NO_LEADER
        };
        first..(first + 1..end).find(starts_another).unwrap_or(end)
    }

    fn before(&self, leader: u32) -> Vec<(u32, Via)> {
        let scratch = &*self.scratch;
        let mut found: Vec<(u32, Via)> = Vec::new();
        let mut next = scratch.source_at[leader as usize];
        while let Some(source) = (next as usize).checked_sub(1).map(|i| scratch.sources[i]) {
            found.extend(self.way_from(source.insn as usize, source.via));
            next = source.before;
        }
        let index = self.index_at(leader);
        // What was decoded just before.
        if let Some(before) = index.filter(|i| *i > scratch.runs[scratch.run_of[*i] as usize].insns.start) {
            found.extend(self.way_from(before - 1, via_behind(scratch.insns[before - 1].flow)));
        }
        let first = scratch.from_tables.partition_point(|(to, _)| *to < leader);
        let here = scratch.from_tables[first..].iter().take_while(|(to, _)| *to == leader);
        found.extend(here.map(|(_, jump)| (self.leader_of(*jump), Via::Other)));
        if let Some(insn) = index.map(|i| scratch.insns[i].at) {
            let closing = scratch.hardware_loops.iter().filter(|(first, _)| *first == insn);
            let closing = closing.filter_map(|(_, last)| self.index_at(self.offset(*last)?));
            found.extend(closing.map(|last| (self.leader_of(last), Via::Other)));
        }
        found.sort_unstable();
        found.dedup();
        // An exception comes from the calls that the landing pad is for, with the registers that calls preserve.
        for (_, site) in self.sites_of(leader) {
            let calls = self.calls();
            let first = calls.partition_point(|(at, _)| *at < site.start);
            let inside = calls[first..].iter().take_while(|(at, _)| *at - site.start < site.len);
            found.extend(inside.map(|(_, call)| (self.leader_of(*call), Via::AfterCall)));
        }
        found
    }
}

/// How control comes from an instruction to the one behind it.
fn via_behind(flow: Flow) -> Via {
    match flow {
        Flow::Branch(_) => Via::NotTaken,
        Flow::Call(_) => Via::AfterCall,
        _ => Via::Other,
    }
}
