//! Where a process spends its time, as addresses in it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use lancet_engine::collect::{EventName, Every, Options, Place, Recording, Sampler, Scope};
use lancet_isa::Avma;

use super::Live;
use crate::Error;

const STACK_BYTES: u32 = 8192;

impl Live {
    /// Samples the process for a time.
    pub fn profile(&self, time: Duration, per_second: u64) -> Result<Recording, Error> {
        self.sample(time, EventName::default_here(), Every::PerSecond(per_second))
    }

    /// Samples an event.
    pub(super) fn sample(&self, time: Duration, event: EventName, every: Every) -> Result<Recording, Error> {
        let options = Options { event, every, stack_bytes: STACK_BYTES };
        let mut sampler = Sampler::start(Scope::Process(self.pid()), &options)?;
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            sampler.take_within(left.min(Duration::from_millis(100)))?;
        }
        Ok(sampler.finish()?)
    }

    /// The instruction with the most samples.
    pub fn most_frequent(&self, recording: &Recording) -> Option<Avma> {
        let mut counts: HashMap<Avma, u64> = HashMap::new();
        self.addresses(recording).for_each(|at| *counts.entry(at).or_default() += 1);
        counts.into_iter().max_by_key(|(at, count)| (*count, *at)).map(|(at, _)| at)
    }

    /// Where the process was, sample by sample; samples outside of its objects are left out.
    pub(super) fn addresses<'r>(&'r self, recording: &'r Recording) -> impl Iterator<Item = Avma> + 'r {
        recording.samples.iter().filter_map(|sample| {
            let Place::Object(id, at) = recording.frame(recording.stack(sample.stack).frame).place else { return None };
            let path = &recording.objects[id.0 as usize].path;
            let mapped = self.mapped.iter().find(|mapped| path.as_os_str() == mapped.image.name())?;
            Some(Avma(at.0.wrapping_add(mapped.bias)))
        })
    }
}
