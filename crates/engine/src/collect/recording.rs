//! Samples, as they are kept: chains of addresses, stored once each.
//!
//! Chains are a tree: a [`Stack`] is a frame and the stack below it, so a program that is always in the same hundred
//! places costs a hundred nodes, however long it is watched.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lancet_isa::Svma;
use rustc_hash::FxHashMap;

use super::event::EventName;
use crate::image::Image;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectId(pub u32);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FrameId(pub u32);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StackId(pub u32);

/// Something that was mapped executable.
#[derive(Clone)]
pub struct Object {
    pub path: PathBuf,
    /// `None` if it is no ELF file, or could not be read.
    pub image: Option<Arc<Image>>,
}

/// Where an address belongs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    Object(ObjectId, Svma),
    Kernel(u64),
    Unknown(u64),
}

/// One step of a call chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    /// The innermost frame's instruction; in others, an address inside the call.
    pub place: Place,
}

/// A frame and what called it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stack {
    pub frame: FrameId,
    pub caller: Option<StackId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub pid: u32,
    pub tid: u32,
    pub name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Nanoseconds of the monotonic clock.
    pub time: u64,
    /// Index into [`Recording::threads`].
    pub thread: u32,
    /// The innermost frame.
    pub stack: StackId,
    /// Events since the sample before it.
    pub weight: u64,
}

/// All that was collected.
#[derive(Clone)]
pub struct Recording {
    pub event: EventName,
    pub objects: Vec<Object>,
    pub frames: Vec<Frame>,
    pub stacks: Vec<Stack>,
    pub threads: Vec<Thread>,
    pub samples: Vec<Sample>,
    /// Samples that the kernel had to drop because nobody read fast enough.
    pub lost: u64,
    pub elapsed: Duration,
    /// Whether time in the kernel was seen too.
    pub with_kernel: bool,
    known_frames: FxHashMap<Frame, FrameId>,
    known_stacks: FxHashMap<Stack, StackId>,
}

impl Recording {
    pub(super) fn new(event: EventName, with_kernel: bool) -> Recording {
        Recording {
            event,
            objects: Vec::new(),
            frames: Vec::new(),
            stacks: Vec::new(),
            threads: Vec::new(),
            samples: Vec::new(),
            lost: 0,
            elapsed: Duration::ZERO,
            with_kernel,
            known_frames: FxHashMap::default(),
            known_stacks: FxHashMap::default(),
        }
    }

    pub fn frame(&self, id: FrameId) -> Frame {
        self.frames[id.0 as usize]
    }

    pub fn stack(&self, id: StackId) -> Stack {
        self.stacks[id.0 as usize]
    }

    /// The frames of a stack, innermost first.
    pub fn chain(&self, innermost: StackId) -> impl Iterator<Item = FrameId> {
        let callers = std::iter::successors(Some(innermost), |id| self.stack(*id).caller);
        callers.map(|id| self.stack(id).frame)
    }

    /// The stack of these frames, given outermost first.
    pub(super) fn stack_of(&mut self, frames: impl Iterator<Item = Frame>) -> Option<StackId> {
        frames.fold(None, |caller, frame| {
            let new_frame = FrameId(self.frames.len() as u32);
            let frame = *self.known_frames.entry(frame).or_insert_with(|| {
                self.frames.push(frame);
                new_frame
            });
            let stack = Stack { frame, caller };
            let new_stack = StackId(self.stacks.len() as u32);
            Some(*self.known_stacks.entry(stack).or_insert_with(|| {
                self.stacks.push(stack);
                new_stack
            }))
        })
    }

    /// Starts over, and keeps what is known of objects and threads.
    pub fn clear_samples(&mut self) {
        self.samples.clear();
        self.lost = 0;
    }
}
