//! The cost of one program run: CPU time, wall time, peak memory.
//!
//! The kernel keeps the peak memory of all children together, not of each, and a child starts out with the memory of
//! the process that started it. So each measured program gets a small process of its own to start it: this program
//! again, with the hidden command `measure`, which prints what its only child cost.

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};

use crate::shell;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Cost {
    cpu_seconds: f64,
    wall_seconds: f64,
    pub peak_bytes: u64,
}

impl Cost {
    /// User and system time, of all threads.
    pub fn cpu(&self) -> Duration {
        Duration::from_secs_f64(self.cpu_seconds.max(0.0))
    }

    pub fn wall(&self) -> Duration {
        Duration::from_secs_f64(self.wall_seconds.max(0.0))
    }
}

#[derive(clap::Args)]
pub struct Options {
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// The hidden command: runs a program with its output thrown away, and prints its cost as JSON.
pub fn run(options: &Options) -> Result<ExitCode> {
    let [program, arguments @ ..] = options.words.as_slice() else { bail!("nothing to measure") };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    shell::run(&mut command)?;
    let wall_seconds = start.elapsed().as_secs_f64();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("getrusage")?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 * 1e-6;
    let cost = Cost {
        cpu_seconds: seconds(usage.user_time()) + seconds(usage.system_time()),
        wall_seconds,
        peak_bytes: u64::try_from(usage.max_rss()).unwrap_or(0) * 1024,
    };
    println!("{}", serde_json::to_string(&cost)?);
    Ok(ExitCode::SUCCESS)
}

/// Runs a program in a process of its own and returns its cost.
pub fn cost_of(command: &Command) -> Result<Cost> {
    let mut helper = Command::new(std::env::current_exe().context("our own path")?);
    helper.arg("measure").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => helper.env(name, value),
            None => helper.env_remove(name),
        };
    }
    let json = shell::output(&mut helper)?;
    let cost: Cost = serde_json::from_slice(&json).context("the output of the measuring process")?;
    ensure!(cost.cpu_seconds > 0.0, "`{}` took no time at all", shell::words(command));
    Ok(cost)
}
