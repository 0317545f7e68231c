//! How often the blocks of functions run, in a process.
//!
//! The functions are cloned with a counter on every block, calls are led to the clones, and after a while back again. A
//! counter per block needs no conservation of flow, which does not hold when counting begins and ends in the middle of
//! calls. Counters are shared by all threads, and incremented so that none is lost.

use std::time::{Duration, Instant};

use lancet_engine::plan::{Plan, Point};
use lancet_engine::program::{BlockId, Exit, ExitKind, Func};
use lancet_isa::Avma;

use super::{Found, Live};
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

    /// Every call that began has come to its end.
    pub fn all_left(&self, func: &Func) -> bool {
        self.calls() == self.returns(func)
    }

    /// Instructions that it executed itself.
    pub fn instructions(&self, func: &Func) -> u64 {
        self.blocks.iter().zip(&func.blocks).map(|(count, block)| count * u64::from(block.insns)).sum()
    }
}

/// Functions of one object, and where their counters are.
struct Group {
    functions: Vec<Found>,
    /// Calls of so many of them are led to the clones.
    led: usize,
    counters: Avma,
}

const POLL: Duration = Duration::from_millis(2);
/// So long calls that are under way when counting ends are waited for. Some may never return.
const LAST_CALLS: Duration = Duration::from_millis(200);

impl Live {
    /// Counts the blocks of functions for a time, or until the first was called so often.
    pub fn count(
        &mut self,
        functions: &[Found],
        time: Duration,
        calls: Option<u64>,
    ) -> Result<Vec<BlockCounts>, Error> {
        // Those of one object are cloned together.
        let mut groups: Vec<Group> = Vec::new();
        for object in functions.iter().map(|found| found.object) {
            if groups.iter().all(|group| group.functions[0].object != object) {
                let functions: Vec<Found> = functions.iter().filter(|found| found.object == object).copied().collect();
                groups.push(Group { led: functions.len(), functions, counters: Avma(0) });
            }
        }
        self.count_groups(groups, time, calls)
    }

    /// Counts the blocks of functions of one object while a call of the first runs them.
    pub(super) fn count_within(
        &mut self,
        functions: Vec<Found>,
        time: Duration,
        calls: u64,
    ) -> Result<Vec<BlockCounts>, Error> {
        self.count_groups(vec![Group { led: 1, functions, counters: Avma(0) }], time, Some(calls))
    }

    fn count_groups(
        &mut self,
        mut groups: Vec<Group>,
        time: Duration,
        calls: Option<u64>,
    ) -> Result<Vec<BlockCounts>, Error> {
        for found in groups.iter().flat_map(|group| &group.functions) {
            self.refuse_if_changed(*found)?;
        }
        let mut patches = Vec::new();
        let counted = groups
            .iter_mut()
            .try_for_each(|group| self.begin_to_count(group).map(|id| patches.push(id)))
            .and_then(|()| self.wait_for_counts(&groups, time, calls));
        for id in patches.iter().rev() {
            self.target.revert(*id)?;
        }
        counted?;
        // No call begins in the clones any more; those under way shall count whole.
        let until = Instant::now() + LAST_CALLS;
        loop {
            let counts = self.read_counts(&groups)?;
            let all_left = counts.iter().all(|count| count.all_left(self.func(count.function)));
            if all_left || Instant::now() >= until {
                return Ok(counts);
            }
            std::thread::sleep(POLL);
        }
    }

    fn begin_to_count(&mut self, group: &mut Group) -> Result<u64, Error> {
        let (plan, blocks) = self.plan(&group.functions);
        let room = self.clones_room(&group.functions, &plan, "counting", blocks * 8)?;
        group.counters = room.data;
        self.target.memory().write(room.data, &vec![0; blocks as usize * 8])?;
        Ok(self.lead_to_clones(&group.functions, group.led, &plan, room, "counting")?.id)
    }

    fn wait_for_counts(&self, groups: &[Group], time: Duration, calls: Option<u64>) -> Result<(), Error> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            std::thread::sleep(POLL.min(until.saturating_duration_since(Instant::now())));
            if let Some(calls) = calls
                && self.read_counts(groups)?.first().is_some_and(|first| first.calls() >= calls)
            {
                break;
            }
        }
        Ok(())
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

    fn read_counts(&self, groups: &[Group]) -> Result<Vec<BlockCounts>, Error> {
        let mut counts = Vec::new();
        for group in groups {
            counts.extend(self.read_group(group)?);
        }
        Ok(counts)
    }

    fn read_group(&self, group: &Group) -> Result<Vec<BlockCounts>, Error> {
        let mut at = group.counters;
        let mut counts = Vec::new();
        for found in &group.functions {
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
