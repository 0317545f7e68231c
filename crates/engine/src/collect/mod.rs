//! What the kernel can tell of programs that run: samples with their call chains, and counts of events.
//!
//! ```text
//! perf events ─> rings ─> records, by time ─> spaces (who has what mapped where) ─> call chains ─> Recording
//! sampler.rs              record.rs           space.rs                              unwind.rs      recording.rs
//! ```
//!
//! Nothing is stopped and nothing is changed: the kernel copies the instruction pointer, three registers and the top of
//! the stack, and everything else happens here. A [`Recording`] holds addresses, each with the object that it is in; it
//! knows no functions.

mod counting;
mod error;
mod event;
mod kernel;
mod record;
mod recording;
mod sampler;
mod space;
mod spawn;
mod unwind;

pub use counting::{Count, Counting};
pub use error::CollectError;
pub use event::{EventName, known_events};
pub use kernel::KernelSymbols;
pub use lancet_sys::perf::Every;
pub use recording::{Frame, FrameId, Object, ObjectId, Place, Recording, Sample, Stack, StackId, Thread};
pub use sampler::{Options, Sampler, Scope};
pub use spawn::Launch;
