//! A simulator of the ADSP-BF548, an Analog Devices Blackfin processor.
//!
//! [`Simulator::load`] puts an executable into a machine, [`Simulator::run`] runs it. The program talks to a [`Host`].
//!
//! ```no_run
//! use lancet_blackfin_sim::{Captured, Config, End, Simulator};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let file = std::fs::read("program.elf")?;
//! let mut host = Captured::default();
//! let mut simulator = Simulator::load(&file, Config::default())?;
//! assert_eq!(simulator.run(&mut host)?, End::Exited(0));
//! println!("{} after {} instructions", host.text(), simulator.stats().instructions);
//! # Ok(())
//! # }
//! ```
//!
//! From the outside in: [`sim`] runs blocks of decoded instructions ([`code`], [`lower`], [`uop`]) on the fast path
//! ([`exec`]) and the rest one by one ([`system`]) on a [`core`] of registers ([`state`]), memory ([`memory`], [`mmu`],
//! [`mmr`]) and events ([`events`], [`timer`]). [`timing`] adds caches, performance counters, clock and energy. The arithmetic is in [`alu`], [`dsp`], [`mac`], [`shift`] and [`video`]:
//! functions of the registers alone.
#![forbid(unsafe_code)]

mod alu;
mod astat;
mod branch_log;
mod code;
mod core;
mod cost;
mod dsp;
mod elf;
mod error;
mod events;
mod exception;
mod exec;
mod host;
mod legality;
mod lower;
mod mac;
mod memory;
mod mmr;
mod mmu;
mod shift;
mod sim;
mod state;
mod stats;
mod syscall;
mod system;
mod timer;
mod timing;
mod trace;
mod uop;
mod video;

pub use error::{SimError, Stopped, Trouble};
pub use exception::Cause;
pub use host::{Captured, Errno, FileStatus, Files, Host, OpenFlags};
pub use sim::{Config, End, Environment, Simulator};
pub use state::State;
pub use stats::{Stalls, Stats};
pub use timing::clock::OperatingPoint;
pub use timing::{DataCaches, TimingConfig};
pub use trace::{Step, Tracer};
