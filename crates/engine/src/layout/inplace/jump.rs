//! The tactic of jumps: straight code is copied with what is added, and a jump leads from its start to the copy.
//!
//! A block is cut into runs at instructions that must stay in place: the bottoms of hardware loops, because the hardware
//! compares their address, and instructions that cannot be moved. Control enters a run at its start only, so a jump may
//! overwrite its first 4 bytes, and all its bytes are dead from then on. A run of 2 bytes gets a short jump to an island:
//! dead bytes of another run, not further than 4 KB away, that hold the long one.

use std::collections::BTreeMap;

use lancet_isa::Svma;
use lancet_isa::blackfin::{Assembler, BfInsn, EncodeError, Op, encode};

use super::code::{Code, CodeBlock};
use super::reexpress::{self, Leave};
use super::{Deed, InPlaceError, Place, Placed, Refusal, Tactic, Work};

/// The bytes of `JUMP.L`.
const JUMP: u32 = 4;

/// Instructions that are copied together.
struct Run<'a> {
    insns: &'a [BfInsn],
    /// The instruction behind it stays in place; what is added before that one goes to the end of the run.
    kept: Option<&'a BfInsn>,
}

impl Run<'_> {
    fn start(&self) -> u32 {
        self.insns.first().map_or(0, |insn| insn.at)
    }

    fn end(&self) -> u32 {
        self.insns.last().map_or(0, BfInsn::end)
    }
}

type Points = BTreeMap<u32, Vec<(Place, Deed)>>;
/// Points that could not be served, and why.
pub type Rest = Vec<(u32, Vec<(Place, Deed)>, Refusal)>;

/// A run that has room for a short jump only.
struct Short {
    at: u32,
    copy: u32,
    places: Vec<Place>,
    points: Vec<(u32, Vec<(Place, Deed)>)>,
}

/// Serves all points that jumps can serve.
pub fn serve(work: &mut Work<'_>, mut points: Points) -> Result<Rest, InPlaceError> {
    let code = work.code;
    let mut rest: Rest = Vec::new();
    let mut shorts = Vec::new();
    let mut dead: Vec<(u32, u32)> = Vec::new();
    let mut by_block: BTreeMap<u32, Points> = BTreeMap::new();
    while let Some((at, list)) = points.pop_first() {
        match code.block_with(at) {
            None => rest.push((at, list, Refusal::NoInstruction)),
            Some(block) => {
                let checked = work.levels.check(block, at).and_then(|()| known(work, block));
                match checked {
                    Ok(()) => by_block.entry(block.start()).or_default().entry(at).or_insert(list),
                    Err(why) => {
                        rest.push((at, list, why));
                        continue;
                    }
                };
            }
        }
    }
    for (start, mut points) in by_block {
        let Some(block) = code.blocks.get(&start) else { continue };
        for run in runs(work, block) {
            serve_run(work, &run, &mut points, &mut rest, &mut shorts, &mut dead)?;
        }
        // What is left is at instructions that stay, with no run before them.
        for (at, list) in points {
            let why = code.insn(at).map_or(Refusal::NoInstruction, |insn| why_kept(work, insn));
            rest.push((at, list, why));
        }
    }
    for short in shorts {
        match island(&mut dead, short.at) {
            Some(island) if encode(&Op::JumpLong { target: short.copy }, island).is_ok() => {
                jump(work, island, Op::JumpLong { target: short.copy })?;
                jump(work, short.at, Op::JumpShort { target: island })?;
                work.edited.placed.extend(short.places.iter().map(|&place| Placed { place, tactic: Tactic::Jump }));
            }
            _ => rest.extend(short.points.into_iter().map(|(at, list)| (at, list, Refusal::NoRoom))),
        }
    }
    Ok(rest)
}

/// Are all ways into the block known?
fn known(work: &Work<'_>, block: &CodeBlock) -> Result<(), Refusal> {
    let complete = work.program.func(block.func).is_complete() && !work.code.overlapping.contains(&block.start());
    if complete && !work.code.entered.contains(&block.start()) { Ok(()) } else { Err(Refusal::UnknownEntries) }
}

fn why_kept(work: &Work<'_>, insn: &BfInsn) -> Refusal {
    if work.code.is_bottom(insn.at) {
        return Refusal::LoopBottom;
    }
    reexpress::check(insn, Leave::Jump, false).err().unwrap_or(Refusal::NoRoom)
}

fn runs<'a>(work: &Work<'_>, block: &'a CodeBlock) -> Vec<Run<'a>> {
    let stays = |insn: &BfInsn| {
        work.code.is_bottom(insn.at)
            || reexpress::check(insn, Leave::Jump, false).is_err()
            // At the root the start-up code is hooked in: it is a run of its own.
            || work.levels.root == Some(insn.at)
    };
    let mut runs = Vec::new();
    let mut first = 0;
    for (i, insn) in block.insns.iter().enumerate() {
        if stays(insn) {
            runs.push(Run { insns: &block.insns[first..i], kept: Some(insn) });
            first = i + 1;
        }
    }
    runs.push(Run { insns: &block.insns[first..], kept: None });
    runs.retain(|run| !run.insns.is_empty());
    runs
}

fn serve_run(
    work: &mut Work<'_>,
    run: &Run<'_>,
    points: &mut Points,
    rest: &mut Rest,
    shorts: &mut Vec<Short>,
    dead: &mut Vec<(u32, u32)>,
) -> Result<(), InPlaceError> {
    let mut wanted: Points = BTreeMap::new();
    for insn in run.insns {
        let Some(list) = points.remove(&insn.at) else { continue };
        let (good, bad): (Vec<_>, Vec<_>) = list.into_iter().partition(|(place, _)| fits(work.code, *place, insn));
        if !bad.is_empty() {
            rest.push((insn.at, bad, Refusal::NoSuchExit));
        }
        if !good.is_empty() {
            wanted.insert(insn.at, good);
        }
    }
    // Before the instruction that stays: at the end of the run.
    if let Some(kept) = run.kept.filter(|kept| run.end() == kept.at)
        && let Some(list) = points.remove(&kept.at)
    {
        let (good, bad): (Vec<_>, Vec<_>) = list.into_iter().partition(|(place, _)| match place {
            Place::Before(_) => true,
            Place::Again { .. } | Place::Done(_) => fits(work.code, *place, kept),
            Place::After(_) | Place::Taken(_) => false,
        });
        if !bad.is_empty() {
            let why = why_kept(work, kept);
            rest.push((kept.at, bad, why));
        }
        if !good.is_empty() {
            wanted.insert(kept.at, good);
        }
    }
    if wanted.is_empty() || moved(work, run) {
        rest.extend(wanted.into_iter().map(|(at, list)| (at, list, Refusal::InStartUp)));
        return Ok(());
    }
    let copied = copy(work, run, &wanted);
    let copy = match copied {
        Ok(copy) => copy,
        Err(InPlaceError::Encode(_)) => {
            rest.extend(wanted.into_iter().map(|(at, list)| (at, list, Refusal::OutOfReach)));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let places: Vec<Place> = wanted.values().flatten().map(|(place, _)| *place).collect();
    let (start, end) = (run.start(), run.end());
    if end - start < JUMP {
        shorts.push(Short { at: start, copy, places, points: wanted.into_iter().collect() });
        return Ok(());
    }
    jump(work, start, Op::JumpLong { target: copy })?;
    dead.push((start + JUMP, end));
    work.edited.placed.extend(places.into_iter().map(|place| Placed { place, tactic: Tactic::Jump }));
    Ok(())
}

/// Did the hook of the start-up code overwrite the run's first bytes?
fn moved(work: &Work<'_>, run: &Run<'_>) -> bool {
    let overlaps = |at: u64, len: usize| at < u64::from(run.end()) && at + len as u64 > u64::from(run.start());
    work.edited.patch.overwrites.iter().any(|over| overlaps(over.at.0, over.new.len()))
}

/// Is there such a place at the instruction?
pub fn fits(code: &Code, place: Place, insn: &BfInsn) -> bool {
    // Where a loop goes is known if its last instruction does not change that.
    let closes = |is_top: &dyn Fn(u32) -> bool| {
        code.bottoms.get(&insn.at).is_some_and(|tops| tops.iter().any(|top| is_top(*top)))
            && reexpress::check(insn, Leave::Jump, true).is_ok()
    };
    match place {
        Place::Before(_) => true,
        Place::After(_) => reexpress::goes_on(&insn.op),
        Place::Taken(_) => reexpress::has_target(&insn.op),
        Place::Again { top, .. } => closes(&|found| found == top),
        Place::Done(_) => closes(&|_| true),
    }
}

/// Writes the copy of a run with what is added.
fn copy(work: &mut Work<'_>, run: &Run<'_>, wanted: &Points) -> Result<u32, InPlaceError> {
    let (runtime, image) = (work.runtime, work.program.image());
    let deeds = |out: &mut Assembler, place: Place| -> Result<(), EncodeError> {
        let here = wanted.get(&place.at()).into_iter().flatten();
        here.filter(|(at, _)| *at == place).try_for_each(|(_, deed)| runtime.deed(out, *deed, place.at()))
    };
    work.room.code(|at| {
        let mut out = Assembler::new(at);
        for insn in run.insns {
            deeds(&mut out, Place::Before(insn.at))?;
            let bytes = image.bytes(Svma(insn.at.into()), insn.len.into()).unwrap_or_default();
            reexpress::write(&mut out, insn, bytes, Leave::Jump, &mut |out| deeds(out, Place::Taken(insn.at)))?;
            deeds(&mut out, Place::After(insn.at))?;
        }
        let goes_on = run.insns.last().is_none_or(|last| reexpress::goes_on(&last.op));
        if goes_on {
            deeds(&mut out, Place::Before(run.end()))?;
            for (place, deed) in wanted.get(&run.end()).into_iter().flatten() {
                match (*place, run.kept) {
                    (Place::Again { top, .. }, Some(kept)) => {
                        runtime.deed_where_loop_goes(&mut out, *deed, kept, top)?;
                    }
                    (Place::Done(_), Some(kept)) => {
                        runtime.deed_where_loop_goes(&mut out, *deed, kept, kept.end())?;
                    }
                    _ => {}
                }
            }
            out.op(Op::JumpLong { target: run.end() })?;
        }
        Ok(out.finish())
    })
}

/// Four dead bytes that a short jump reaches.
fn island(dead: &mut [(u32, u32)], from: u32) -> Option<u32> {
    let found = dead.iter_mut().find(|(start, end)| {
        end.saturating_sub(*start) >= JUMP && encode(&Op::JumpShort { target: *start }, from).is_ok()
    })?;
    found.0 += JUMP;
    Some(found.0 - JUMP)
}

fn jump(work: &mut Work<'_>, at: u32, op: Op) -> Result<(), InPlaceError> {
    let new = encode(&op, at)?.to_vec();
    work.overwrite(at, new);
    Ok(())
}

/// Hooks the start-up routine in, where the main level starts or else at the entry of the program.
pub fn hook_start(work: &mut Work<'_>) -> Result<Result<(), Refusal>, InPlaceError> {
    let entry = work.program.image().entry().map(|entry| entry.0 as u32);
    let Some(at) = work.levels.root.or(entry) else { return Ok(Err(Refusal::NoInstruction)) };
    let Some(block) = work.code.block_with(at) else { return Ok(Err(Refusal::NoInstruction)) };
    let from = block.insns.iter().position(|insn| insn.at == at).unwrap_or(0);
    // As few instructions as make room for the jump.
    let mut insns = &block.insns[from..from];
    for i in from..block.insns.len() {
        if insns.last().map_or(0, |last| last.end() - at) >= JUMP || i > from && work.code.is_bottom(block.insns[i].at)
        {
            break;
        }
        insns = &block.insns[from..=i];
    }
    let movable = |insn: &BfInsn| insn.at == at || reexpress::check(insn, Leave::Jump, false).is_ok();
    let run = Run { insns, kept: None };
    if run.end() - run.start() < JUMP || !insns.iter().all(movable) {
        return Ok(Err(Refusal::NoRoom));
    }
    let (runtime, image) = (work.runtime, work.program.image());
    let copy = work.room.code(|here| {
        let mut out = Assembler::new(here);
        runtime.call_start(&mut out)?;
        for insn in insns {
            let bytes = image.bytes(Svma(insn.at.into()), insn.len.into()).unwrap_or_default();
            reexpress::write(&mut out, insn, bytes, Leave::Jump, &mut |_| Ok(()))?;
        }
        out.op(Op::JumpLong { target: run.end() })?;
        Ok(out.finish())
    })?;
    jump(work, at, Op::JumpLong { target: copy })?;
    Ok(Ok(()))
}
