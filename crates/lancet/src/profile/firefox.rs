//! For the Firefox Profiler (profiler.firefox.com), which shows a profile over time, by thread.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::SystemTime;

use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Profile as Written, SamplingInterval, StackHandle,
    ThreadHandle, Timestamp,
};
use lancet_engine::collect::{Recording, StackId};

use super::Profile;

pub fn write_firefox(recording: &Recording, profile: &Profile, title: &str, out: &mut dyn Write) -> io::Result<()> {
    let first = recording.samples.first().map_or(0, |sample| sample.time);
    let typical = recording.elapsed.as_nanos() as u64 / (recording.samples.len() as u64).max(1);
    let begin = SystemTime::now().checked_sub(recording.elapsed).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut written = Written::new(title, begin.into(), SamplingInterval::from_nanos(typical.max(1)));
    written.set_symbolicated(true);
    let zero = Timestamp::from_nanos_since_reference(0);

    let mut processes = HashMap::new();
    let mut threads: Vec<ThreadHandle> = Vec::new();
    for thread in &recording.threads {
        let process =
            *processes.entry(thread.pid).or_insert_with(|| written.add_process(&thread.name, thread.pid, zero));
        let handle = written.add_thread(process, thread.tid, zero, thread.pid == thread.tid);
        written.set_thread_name(handle, &thread.name);
        threads.push(handle);
    }

    // Stacks belong to a thread, so each is made once per thread that was in it.
    let mut known: HashMap<(u32, StackId), Option<StackHandle>> = HashMap::new();
    for sample in &recording.samples {
        let thread = threads[sample.thread as usize];
        let stack = *known.entry((sample.thread, sample.stack)).or_insert_with(|| {
            let mut chain: Vec<_> = recording.chain(sample.stack).collect();
            chain.reverse();
            let frames: Vec<FrameInfo> = chain
                .into_iter()
                .map(|frame| FrameInfo {
                    frame: Frame::Label(written.intern_string(&profile.function_of(frame).name)),
                    category_pair: CategoryHandle::OTHER.into(),
                    flags: FrameFlags::empty(),
                })
                .collect();
            written.intern_stack_frames(thread, frames.into_iter())
        });
        let time = Timestamp::from_nanos_since_reference(sample.time.saturating_sub(first));
        let spent = if recording.event.is_time() { CpuDelta::from_nanos(sample.weight) } else { CpuDelta::ZERO };
        written.add_sample(thread, time, stack, spent, 1);
    }
    serde_json::to_writer(out, &written).map_err(io::Error::from)
}
