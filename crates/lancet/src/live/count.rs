//! How often the blocks of functions run, in a process.
//!
//! The functions are cloned with a counter on every block, calls are led to the clones, and after a while back again. A
//! counter per block needs no conservation of flow, which does not hold when counting begins and ends in the middle of
//! calls. Counters are shared by all threads, and incremented so that none is lost.

use std::time::{Duration, Instant};

use lancet_engine::layout::{self, Frame, Layout, Survey};
use lancet_engine::plan::{Plan, Point};
use lancet_engine::program::{BlockId, Exit, ExitKind, Func, FuncId};
use lancet_isa::{Avma, Svma};

use super::{Change, Found, Live, Overwrite};
use crate::Error;

/// How often the blocks of a function ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockCounts {
    pub function: Found,
    /// By block.
    pub blocks: Vec<u64>,
    entry: usize,
}

impl BlockCounts {
    /// How often it was entered at its beginning.
    pub fn calls(&self) -> u64 {
        self.blocks.get(self.entry).copied().unwrap_or(0)
    }

    /// How often it was left for its caller, or for another function in its place.
    pub fn returns(&self, func: &Func) -> u64 {
        let leaves = |exit: &&Exit| matches!(exit.kind, ExitKind::Return | ExitKind::TailCall(_));
        let counts = func.exits.iter().filter(leaves).filter_map(|exit| self.blocks.get(exit.from.0 as usize));
        counts.sum()
    }

    /// Instructions that it executed itself.
    pub fn instructions(&self, func: &Func) -> u64 {
        self.blocks.iter().zip(&func.blocks).map(|(count, block)| count * u64::from(block.insns)).sum()
    }
}

/// Bytes of new code.
fn clones_size(layout: &Layout) -> u64 {
    layout.patch.chunks.iter().map(|chunk| chunk.bytes.len() as u64).sum()
}

const POLL: Duration = Duration::from_millis(2);
/// So long calls that are under way when counting ends are waited for. Some may never return.
const LAST_CALLS: Duration = Duration::from_millis(200);

impl Live {
    /// Counts the blocks of functions of one object for a time, or until the first was called so often.
    pub fn count(
        &mut self,
        functions: &[Found],
        time: Duration,
        calls: Option<u64>,
    ) -> Result<Vec<BlockCounts>, Error> {
        let Some(first) = functions.first().copied() else { return Ok(Vec::new()) };
        for found in functions {
            self.refuse_if_changed(*found)?;
            self.refuse_exceptions(*found)?;
        }
        let (plan, blocks) = self.plan(functions);
        let (near, bias) = (self.entry(first), self.object(first).bias);
        // How long the clones are depends little on where they are: lay out twice, the second time for good.
        let draft = self.lay_out(first, functions, &plan, near, near)?;
        let (code, counters) = self.counting_room(functions, near, clones_size(&draft), blocks)?;
        let layout = self.lay_out(first, functions, &plan, code, counters)?;
        for chunk in &layout.patch.chunks {
            self.target.memory().write(Avma(chunk.at.0.wrapping_add(bias)), &chunk.bytes)?;
        }
        self.target.memory().write(counters, &vec![0; blocks as usize * 8])?;
        let subject = functions.iter().map(|found| self.name(*found)).collect::<Vec<_>>().join(", ");
        let overwrites = self.overwrites(&layout, bias)?;
        let moves = self.moves(first, &layout, &overwrites);
        let change = Change { command: self.command.clone(), subject, how: "counting".into(), overwrites, moves };
        let receipt = self.target.commit(change)?;
        let until = Instant::now() + time;
        while Instant::now() < until {
            std::thread::sleep(POLL.min(until.saturating_duration_since(Instant::now())));
            if let Some(calls) = calls
                && self.read_counts(functions, counters)?[0].calls() >= calls
            {
                break;
            }
        }
        self.target.revert(receipt.id)?;
        // No call begins in the clones any more; those under way shall count whole.
        let until = Instant::now() + LAST_CALLS;
        loop {
            let counts = self.read_counts(functions, counters)?;
            let all_left = counts.iter().all(|count| count.calls() == count.returns(self.func(count.function)));
            if all_left || Instant::now() >= until {
                return Ok(counts);
            }
            std::thread::sleep(POLL);
        }
    }

    /// A counter on every block, in order.
    fn plan(&self, functions: &[Found]) -> (Plan, u64) {
        let mut plan = Plan::new();
        let mut blocks = 0;
        for found in functions {
            for block in self.func(*found).block_ids() {
                let counter = plan.counter();
                plan.edit(found.id).count(Point::Block(block), counter);
                blocks += 1;
            }
        }
        (plan, blocks)
    }

    /// Pages for the clones, and for the counters behind them; the same for the same functions.
    fn counting_room(
        &mut self,
        functions: &[Found],
        near: Avma,
        size: u64,
        blocks: u64,
    ) -> Result<(Avma, Avma), Error> {
        let entries: Vec<String> = functions.iter().map(|found| self.entry(*found).to_string()).collect();
        let key = format!("counting {}", entries.join(" "));
        if let Some((code, len)) = self.target.placed(&key) {
            return Ok((code, code + len));
        }
        let room = self.target.reserve_apart(near, size + layout::PAGE, blocks * 8)?;
        self.target.remember(key, room.code, room.data - room.code)?;
        Ok((room.code, room.data))
    }

    fn lay_out(
        &self,
        first: Found,
        functions: &[Found],
        plan: &Plan,
        code: Avma,
        counters: Avma,
    ) -> Result<Layout, Error> {
        let object = self.object(first);
        let name = || object.name().to_owned();
        let isa = object.program.image().isa();
        let edit = isa.editor().ok_or_else(|| Error::NoEditor { name: name(), isa: isa.facts().name })?;
        let is_wanted = |id: FuncId| functions.iter().any(|found| found.id == id);
        let survey = Survey::of(&object.program, edit, &is_wanted);
        let stated = |at: Avma| Svma(at.0.wrapping_sub(object.bias));
        let frame = Frame { survey: &survey, at: stated(code), keep: None, counters: Some(stated(counters)) };
        layout::lay_out(&object.program, edit, plan, &frame).map_err(|cause| Error::Layout { name: name(), cause })
    }

    /// The patch's changes, at actual addresses.
    fn overwrites(&self, layout: &Layout, bias: u64) -> Result<Vec<Overwrite>, Error> {
        let actual = |at: Svma| Avma(at.0.wrapping_add(bias));
        let of_code = layout.patch.overwrites.iter();
        let mut writes: Vec<Overwrite> =
            of_code.map(|o| Overwrite { at: actual(o.at), old: o.old.clone(), new: o.new.clone() }).collect();
        for repoint in &layout.patch.repoints {
            let at = actual(repoint.place);
            let old = self.target.memory().read(at, 8)?;
            writes.push(Overwrite { at, old, new: actual(repoint.to).0.to_le_bytes().to_vec() });
        }
        Ok(writes)
    }

    /// Where threads go on that stand at an instruction under a jump: in the clone.
    fn moves(&self, first: Found, layout: &Layout, overwrites: &[Overwrite]) -> Vec<(Avma, Avma)> {
        let object = self.object(first);
        let actual = |at: Svma| Avma(at.0.wrapping_add(object.bias));
        let mut moves = Vec::new();
        for piece in &layout.pieces {
            let func = object.program.func(piece.func);
            for insn in func.blocks.iter().flat_map(|block| object.program.insns(block)) {
                let is_under = |o: &&Overwrite| {
                    let at = actual(insn.at);
                    at > o.at && at < o.at + o.new.len() as u64
                };
                if overwrites.iter().any(|o| is_under(&o)) && insn.at >= piece.old_start && insn.at < piece.old_end {
                    moves.extend(piece.to_new(insn.at).map(|new| (actual(insn.at), actual(new))));
                }
            }
        }
        moves
    }

    fn read_counts(&self, functions: &[Found], counters: Avma) -> Result<Vec<BlockCounts>, Error> {
        let mut at = counters;
        let mut counts = Vec::new();
        for found in functions {
            let func = self.func(*found);
            let len = func.blocks.len() as u64 * 8;
            let bytes = self.target.memory().read(at, len)?;
            let blocks = bytes.as_chunks::<8>().0.iter().map(|count| u64::from_le_bytes(*count)).collect();
            let entry = func.block_starting_at(func.entry).unwrap_or(BlockId(0)).0 as usize;
            counts.push(BlockCounts { function: *found, blocks, entry });
            at = at + len;
        }
        Ok(counts)
    }
}
