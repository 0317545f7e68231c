//! Functions from regions: parts joined, blocks and edges numbered, loops and liveness computed.

use lancet_isa::{Effects, Isa, RegSet, Svma, Target};
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::blocks::{End, NO_BLOCK, RegionBlock, RegionCfg};
use super::dfs::Dfs;
use super::discover::{Discovery, Region, frame_is_gone, last_insn};
use super::func::{Block, BlockId, Call, Edge, EdgeKind, Exit, ExitKind, Func, Part, Problem};
use super::graph::Graph;
use super::growth::tables_that_may_go_on;
use super::index::Index;
use super::liveness::{self, Liveness};
use super::loops::LoopForest;
use super::table::is_nowhere;
use crate::image::Image;

/// Turns regions into functions, giving the regions' memory back on the way.
pub(super) fn functions(found: Discovery<'_>) -> Vec<Func> {
    let open = tables_that_may_go_on(&found);
    let around = Around { image: found.image, index: found.index };
    let build = |space: &mut Workspace, (number, region): (usize, Box<Region>)| {
        Builder::build(&around, *region, open.get(&number).cloned().unwrap_or_default(), space)
    };
    found.regions.into_par_iter().enumerate().map_init(Workspace::default, build).collect()
}

/// The effects of a callee that keeps to the calling convention. It kills nothing: a compiler that sees both sides
/// may keep a value in any register that the callee happens to leave alone.
pub(super) fn call_effects(isa: &dyn Isa) -> Effects {
    let abi = &isa.facts().abi;
    Effects { reads: abi.arguments, kills: RegSet::EMPTY, writes: !abi.preserved }
}

struct Around<'a> {
    image: &'a Image,
    index: Index,
}

#[derive(Default)]
struct Workspace {
    graph: Graph,
    dfs: Dfs,
    loops: LoopForest,
    liveness: Liveness,
    pairs: Vec<(u32, u32)>,
    effects: Vec<Effects>,
    boundary: Vec<RegSet>,
    flow: Flow,
}

/// What is found of a function block by block, in buffers that are used again.
#[derive(Default)]
struct Flow {
    /// Of the blocks, in order.
    starts: Vec<Svma>,
    ends: Vec<Svma>,
    edges: Vec<Edge>,
    exits: Vec<Exit>,
    calls: Vec<Call>,
}

impl Flow {
    fn begin(&mut self, blocks: &[RegionBlock]) {
        self.starts.clear();
        self.starts.extend(blocks.iter().map(|block| block.start));
        self.ends.clear();
        self.ends.extend(blocks.iter().map(RegionBlock::end_address));
        self.edges.clear();
        self.exits.clear();
        self.calls.clear();
    }
}

/// Leaves out the blocks that cannot run, and gives the others new numbers.
fn keep_reached(blocks: &mut Vec<RegionBlock>, returning: &mut Vec<bool>, reached: &[bool]) {
    if reached.iter().all(|reached| *reached) {
        return;
    }
    let mut numbers = 0..;
    let number = |reached: &bool| if *reached { numbers.next().unwrap_or(NO_BLOCK) } else { NO_BLOCK };
    let renumbered: Vec<u32> = reached.iter().map(number).collect();
    let mut is_reached = reached.iter();
    blocks.retain(|_| is_reached.next() == Some(&true));
    let mut is_reached = reached.iter();
    returning.retain(|_| is_reached.next() == Some(&true));
    for block in blocks {
        block.to = renumbered.get(block.to as usize).copied().unwrap_or(NO_BLOCK);
    }
}

struct Builder<'a> {
    around: &'a Around<'a>,
    parts: Vec<Part>,
    flow: Flow,
    problems: Vec<Problem>,
}

impl Builder<'_> {
    fn build(around: &Around<'_>, mut region: Region, problems: Vec<Problem>, space: &mut Workspace) -> Func {
        let entry = region.start();
        region.parts[0].end = region.code_end().max(entry + 1);
        let mut blocks = std::mem::take(&mut region.cfg.blocks);
        let mut returning = std::mem::take(&mut region.returning);
        keep_reached(&mut blocks, &mut returning, &region.reached);
        region.cfg.tables.retain(|table| {
            let next = blocks.partition_point(|block| block.start <= table.jump);
            next > 0 && blocks[next - 1].end_address() > table.jump
        });
        let mut flow = std::mem::take(&mut space.flow);
        flow.begin(&blocks);
        let mut builder = Builder { around, parts: region.parts.clone(), flow, problems };
        let mut numbered = Vec::with_capacity(blocks.len());
        for (i, (block, returning)) in blocks.iter().zip(&returning).enumerate() {
            let first_edge = builder.flow.edges.len() as u32;
            numbered.push(Block { start: block.start, len: block.len, insns: block.insns, first_edge });
            builder.end_block(BlockId(i as u32), block, *returning, &region.cfg);
        }
        let mut entries: Vec<BlockId> = builder.find(entry).into_iter().collect();
        let others = region.pads.iter().chain(&region.entries).filter_map(|at| builder.find(*at));
        entries.extend(others.filter(|id| builder.flow.starts[id.0 as usize] != entry));
        let is_entry = |to: Svma| builder.find(to).is_some_and(|block| entries.contains(&block));
        let calls_middle = |call: &Call| match call.to {
            Target::Direct(to) if region.calls_middle(to, builder.flow.ends[call.block.0 as usize]) => {
                Some(Problem::CallsMiddle { to }).filter(|_| !is_entry(to))
            }
            _ => None,
        };
        let problems: Vec<Problem> = builder.flow.calls.iter().filter_map(calls_middle).collect();
        builder.problems.extend(problems);
        let thrown = builder.exceptions(&region);
        let (loops, live_in, live_out) = builder.solve(&blocks, &entries, &thrown, space);
        let Builder { flow, problems, .. } = builder;
        let func = Func {
            entry,
            found_by: region.found_by,
            parts: region.parts.into(),
            changes: blocks.iter().fold(RegSet::EMPTY, |set, block| set | block.effects.writes),
            blocks: numbered.into(),
            edges: flow.edges.as_slice().into(),
            exits: flow.exits.as_slice().into(),
            calls: flow.calls.as_slice().into(),
            entries: entries.into(),
            tables: region.cfg.tables.into(),
            loops,
            problems: problems.into(),
            never_returns: region.noreturn,
            live_in,
            live_out,
        };
        space.flow = flow;
        func
    }

    fn find(&self, at: Svma) -> Option<BlockId> {
        self.flow.starts.binary_search(&at).ok().map(|i| BlockId(i as u32))
    }

    fn end_block(&mut self, from: BlockId, block: &RegionBlock, returns: bool, jumps: &RegionCfg) {
        let next = block.end_address();
        match block.end {
            End::Fall => self.lead(from, next, EdgeKind::Fall),
            End::Jump(to) => self.jump(from, block.to, to, EdgeKind::Jump),
            End::Branch(taken) => {
                self.jump(from, block.to, taken, EdgeKind::Taken);
                self.lead(from, next, EdgeKind::Fall);
            }
            End::Repeat => {
                jumps.tops_of(block).for_each(|first| self.lead(from, first, EdgeKind::Repeat));
                self.lead(from, next, EdgeKind::Fall);
            }
            End::Call(to) => {
                self.flow.calls.push(Call { block: from, to, returns });
                if returns {
                    self.lead(from, next, EdgeKind::CallReturn);
                } else {
                    self.flow.exits.push(Exit { from, kind: ExitKind::NoReturn });
                }
            }
            End::Tables => {
                let range = block.start..block.end_address();
                let mut targets: Vec<Svma> = Vec::new();
                for table in jumps.tables.iter().filter(|table| range.contains(&table.jump)) {
                    targets.extend(table.targets.iter());
                }
                targets.extend(jumps.labels.iter().filter(|(jump, _)| range.contains(jump)).map(|(_, to)| *to));
                targets.sort_unstable();
                targets.dedup();
                targets.into_iter().for_each(|to| self.lead(from, to, EdgeKind::Table));
            }
            End::Return => self.flow.exits.push(Exit { from, kind: ExitKind::Return }),
            End::Stop => self.flow.exits.push(Exit { from, kind: ExitKind::Stop }),
            End::Slot(slot) => self.flow.exits.push(Exit { from, kind: ExitKind::TailCall(Target::Slot(slot)) }),
            End::Pointer if frame_is_gone(self.around.image, block) => {
                self.flow.exits.push(Exit { from, kind: ExitKind::TailCall(Target::Computed) });
            }
            End::Pointer | End::Unresolved => {
                self.flow.exits.push(Exit { from, kind: ExitKind::Unresolved });
                self.problems.push(Problem::UnresolvedJump { at: last_insn(self.around.image, block) });
            }
            End::Bad(at) => {
                self.flow.exits.push(Exit { from, kind: ExitKind::Bad(at) });
                self.problems.push(Problem::BadInstruction { at });
            }
        }
    }

    /// As [`Builder::lead`], where it is known which block is at the address, or that none is.
    fn jump(&mut self, from: BlockId, to: u32, at: Svma, kind: EdgeKind) {
        match to {
            NO_BLOCK => self.leave(from, at, kind),
            to => self.flow.edges.push(Edge { from, to: BlockId(to), kind }),
        }
    }

    fn lead(&mut self, from: BlockId, at: Svma, kind: EdgeKind) {
        let next = BlockId(from.0 + 1);
        let follows = self.flow.starts.get(next.0 as usize) == Some(&at);
        match if follows { Some(next) } else { self.find(at) } {
            Some(to) => self.flow.edges.push(Edge { from, to, kind }),
            None => self.leave(from, at, kind),
        }
    }

    /// To no block of the function.
    fn leave(&mut self, from: BlockId, at: Svma, kind: EdgeKind) {
        if kind == EdgeKind::Table && is_nowhere(self.around.image, &self.parts, at) {
            return;
        }
        let kind = match kind {
            EdgeKind::Fall | EdgeKind::CallReturn | EdgeKind::Repeat => ExitKind::RunsInto(at),
            EdgeKind::Jump | EdgeKind::Taken | EdgeKind::Table => ExitKind::TailCall(Target::Direct(at)),
        };
        if self.around.index.containing(at).is_none() {
            self.problems.push(Problem::RunsOut { at });
        }
        self.flow.exits.push(Exit { from, kind });
    }

    /// Does control also come from elsewhere to the block behind this one?
    fn is_entered_behind(&self, block: BlockId, entries: &[BlockId]) -> bool {
        self.find(self.flow.ends[block.0 as usize]).is_some_and(|behind| entries.contains(&behind))
    }

    /// From each call that a landing pad is for, to the pad.
    fn exceptions(&self, region: &Region) -> Vec<(u32, u32)> {
        let image = self.around.image;
        let mut thrown = Vec::new();
        if region.pads.is_empty() {
            return thrown;
        }
        for part in &region.parts {
            let Some(fde) = image.fde_at(part.start).filter(|fde| fde.lsda.is_some()) else { continue };
            for site in image.landing_pads(fde) {
                let Some(pad) = self.find(site.pad) else { continue };
                let first = self.flow.calls.partition_point(|call| self.flow.ends[call.block.0 as usize] <= site.start);
                let inside = |call: &&Call| self.flow.ends[call.block.0 as usize] - site.start <= site.len;
                let calls = self.flow.calls[first..].iter().take_while(inside).map(|call| (call.block.0, pad.0));
                thrown.extend(calls.filter(|(call, pad)| call != pad));
            }
        }
        thrown
    }

    fn solve(
        &self,
        blocks: &[RegionBlock],
        entries: &[BlockId],
        thrown: &[(u32, u32)],
        space: &mut Workspace,
    ) -> (LoopForest, Box<[RegSet]>, Box<[RegSet]>) {
        let isa = self.around.image.isa();
        let facts = isa.facts();
        space.pairs.clear();
        space.pairs.extend(self.flow.edges.iter().map(|edge| (edge.from.0, edge.to.0)));
        space.pairs.extend(thrown);
        space.graph.rebuild(blocks.len(), &space.pairs);
        // A landing pad inside a loop is not another way into the loop: control comes from the loop's own calls.
        let pads: FxHashSet<u32> = thrown.iter().map(|(_, pad)| *pad).collect();
        let from_a_call = |id: &BlockId| pads.contains(&id.0);
        let roots: Vec<u32> = entries.iter().filter(|id| !from_a_call(id)).map(|id| id.0).collect();
        space.dfs.compute(space.graph.forward(), &roots);
        space.loops.compute(&space.graph, &space.dfs);
        space.effects.clear();
        space.effects.extend(blocks.iter().map(|block| block.effects));
        space.boundary.clear();
        space.boundary.resize(blocks.len(), RegSet::EMPTY);
        let callee = call_effects(isa);
        for call in &self.flow.calls {
            let i = call.block.0 as usize;
            space.effects[i] = space.effects[i].then(callee);
            // An exception may take the preserved registers to a landing pad.
            if entries.len() > 1 {
                space.boundary[i] |= facts.abi.preserved;
            }
        }
        for exit in &self.flow.exits {
            let kind = match exit.kind {
                ExitKind::Return => liveness::Exit::Return,
                ExitKind::TailCall(_) => liveness::Exit::TailCall,
                ExitKind::Stop if self.is_entered_behind(exit.from, entries) => liveness::Exit::Unknown,
                ExitKind::NoReturn | ExitKind::Stop => liveness::Exit::Never,
                ExitKind::RunsInto(_) | ExitKind::Unresolved | ExitKind::Bad(_) => liveness::Exit::Unknown,
            };
            space.boundary[exit.from.0 as usize] |= kind.live(facts);
        }
        space.liveness.compute(&space.graph, &space.dfs, &space.effects, &space.boundary);
        (space.loops.compact(), space.liveness.live_ins().into(), space.liveness.live_outs().into())
    }
}
