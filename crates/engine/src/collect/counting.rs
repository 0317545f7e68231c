//! Counting events without samples.

use std::io;

use lancet_sys::perf::{Event, Reading, Watch};

use super::sampler::{online_cpus, threads_of};
use super::{CollectError, EventName, Scope};
use crate::image::Process;

/// Events that are being counted.
pub struct Counting {
    events: Vec<(EventName, Vec<Event>)>,
}

/// How often an event has happened so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    pub event: EventName,
    /// Scaled up if the event had a counter only part of the time.
    pub value: u64,
    /// The part of the time in which it had one.
    pub share: f64,
}

impl Counting {
    pub fn start(scope: Scope, events: &[EventName]) -> Result<Counting, CollectError> {
        if let Scope::Process(pid) = scope {
            Process::open(pid)?;
        }
        let opened = events.iter().map(|event| Ok((event.clone(), open(scope, event)?)));
        let counting = Counting { events: opened.collect::<Result<_, CollectError>>()? };
        for event in counting.events.iter().flat_map(|(_, opened)| opened) {
            event.enable().map_err(CollectError::Lost)?;
        }
        Ok(counting)
    }

    pub fn read(&self) -> Result<Vec<Count>, CollectError> {
        let count = |(name, events): &(EventName, Vec<Event>)| {
            let mut sum = Reading::default();
            for event in events {
                let reading = event.read().map_err(CollectError::Lost)?;
                sum.value += reading.value;
                sum.enabled += reading.enabled;
                sum.running += reading.running;
            }
            let share = if sum.enabled == 0 { 1.0 } else { sum.running as f64 / sum.enabled as f64 };
            let value = if share > 0.0 { (sum.value as f64 / share) as u64 } else { 0 };
            Ok(Count { event: name.clone(), value, share })
        };
        self.events.iter().map(count).collect()
    }
}

fn open(scope: Scope, name: &EventName) -> Result<Vec<Event>, CollectError> {
    let whom = match scope {
        Scope::Process(pid) => threads_of(pid).into_iter().map(|thread| (Some(thread), None)).collect(),
        Scope::Cpu(cpu) => vec![(None, Some(cpu))],
        Scope::System => online_cpus().into_iter().map(|cpu| (None, Some(cpu))).collect::<Vec<_>>(),
    };
    let mut events = Vec::new();
    for (thread, cpu) in whom {
        let watch = |kernel| Watch { thread, cpu, inherit: thread.is_some(), kernel, from_exec: false };
        let event = Event::counter(name.code, watch(true)).or_else(|cause| match cause.kind() {
            io::ErrorKind::PermissionDenied => Event::counter(name.code, watch(false)),
            _ => Err(cause),
        });
        match event {
            Ok(event) => events.push(event),
            // A thread that ended meanwhile.
            Err(cause) if cause.raw_os_error() == Some(3) => {}
            Err(cause) => return Err(CollectError::NoCounter { event: name.name.clone(), cause }),
        }
    }
    Ok(events)
}
