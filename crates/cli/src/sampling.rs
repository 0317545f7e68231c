//! Whom to sample and how: the options that `profile`, `top` and `stat` share.

use std::num::NonZeroU64;

use clap::error::ErrorKind;
use lancet::collect::{EventName, Every, Options, Scope};

use crate::subject::misuse;

#[derive(clap::Args)]
pub struct ScopeArgs {
    /// A running process, with all its threads and what they start; it is not stopped
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Everything that runs on one CPU
    #[arg(long, value_name = "N", conflicts_with = "pid")]
    cpu: Option<u32>,
    /// Everything that runs
    #[arg(long, conflicts_with_all = ["pid", "cpu"])]
    system: bool,
}

impl ScopeArgs {
    pub fn scope(&self) -> Option<Scope> {
        match (self.pid, self.cpu, self.system) {
            (Some(pid), ..) => Some(Scope::Process(pid)),
            (_, Some(cpu), _) => Some(Scope::Cpu(cpu)),
            (.., true) => Some(Scope::System),
            _ => None,
        }
    }

    pub fn scope_or_misuse(&self, command: &str) -> Result<Scope, clap::Error> {
        let missing = "one of --pid, --cpu and --system is missing";
        self.scope().ok_or_else(|| misuse(command, ErrorKind::MissingRequiredArgument, missing))
    }
}

/// How reports name it.
pub fn name_of(scope: Scope) -> String {
    match scope {
        Scope::Process(pid) => format!("process {pid}"),
        Scope::Cpu(cpu) => format!("CPU {cpu}"),
        Scope::System => "the system".into(),
    }
}

#[derive(clap::Args)]
pub struct RateArgs {
    /// Samples per second
    #[arg(long, value_name = "N", default_value = "999")]
    freq: NonZeroU64,
    /// One sample for every N events, instead of a frequency
    #[arg(long, value_name = "N", conflicts_with = "freq")]
    every: Option<NonZeroU64>,
    /// What to sample: an event as `perf list` names it, or rNNN; by default cycles where the machine counts them,
    /// else cpu-clock
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
    /// Bytes of the stack in a sample; call chains that reach further are cut. By default 8192, or 2048 for more than 2000
    /// samples per second, where copying costs more than everything else
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(64..65528))]
    stack: Option<u32>,
}

const DEEP_STACK: u32 = 8192;
const SHALLOW_STACK: u32 = 2048;
const MANY_SAMPLES: u64 = 2000;

impl RateArgs {
    pub fn options(&self) -> anyhow::Result<Options> {
        let event = match &self.event {
            Some(name) => EventName::parse(name).map_err(lancet::Error::from)?,
            None => EventName::default_here(),
        };
        let every = self.every.map_or(Every::PerSecond(self.freq.get()), |events| Every::Events(events.get()));
        let is_often = matches!(every, Every::PerSecond(samples) if samples > MANY_SAMPLES);
        let stack_bytes = self.stack.unwrap_or(if is_often { SHALLOW_STACK } else { DEEP_STACK });
        Ok(Options { event, every, stack_bytes })
    }
}
