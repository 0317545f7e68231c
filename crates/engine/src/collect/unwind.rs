//! Call chains from the unwind tables.
//!
//! A sample has the registers and the top of the stack; framehop does the rest. One [`Unwinder`] knows one address
//! space.

use std::ops::{Deref, Range};
use std::sync::Arc;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};

use super::record::UserState;
use crate::image::Image;

/// Deeper stacks are cut: their outermost frames are missing.
const DEEPEST: usize = 1024;

/// A piece of an image's file; nothing by default.
#[derive(Default)]
struct Piece {
    image: Option<Arc<Image>>,
    range: Range<usize>,
}

impl Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.image.as_ref().and_then(|image| image.data().get(self.range.clone())).unwrap_or_default()
    }
}

pub(super) struct Unwinder {
    modules: UnwinderX86_64<Piece>,
    rules: CacheX86_64,
}

impl Unwinder {
    pub fn new() -> Unwinder {
        Unwinder { modules: UnwinderX86_64::new(), rules: CacheX86_64::new() }
    }

    pub fn add(&mut self, image: &Arc<Image>, range: Range<u64>, bias: u64) {
        let piece = |range: Range<usize>| Some(Piece { image: Some(Arc::clone(image)), range });
        let mut sections = ExplicitModuleSectionInfo::default();
        if let Some((at, range)) = image.unwind_table() {
            sections.eh_frame_svma = Some(at.0..at.0 + range.len() as u64);
            sections.eh_frame = piece(range);
        }
        if let Some((at, range)) = image.unwind_index() {
            sections.eh_frame_hdr_svma = Some(at.0..at.0 + range.len() as u64);
            sections.eh_frame_hdr = piece(range);
        }
        self.modules.add_module(Module::new(image.name().to_owned(), range, bias, sections));
    }

    /// Addresses, innermost first: the instruction, and then one inside each call.
    pub fn chain(&mut self, user: &UserState<'_>, chain: &mut Vec<u64>) {
        let mut read_stack = |at: u64| {
            let offset = usize::try_from(at.wrapping_sub(user.sp)).map_err(|_| ())?;
            let word = user.stack.get(offset..).and_then(|rest| rest.first_chunk::<8>());
            word.map(|word| u64::from_ne_bytes(*word)).ok_or(())
        };
        let registers = UnwindRegsX86_64::new(user.ip, user.sp, user.bp);
        let mut frames = self.modules.iter_frames(user.ip, registers, &mut self.rules, &mut read_stack);
        let mut seen = 0;
        // An error means that the chain is cut here: the stack was not copied that far, or has no rules.
        while let Ok(Some(frame)) = frames.next() {
            chain.push(match frame {
                FrameAddress::InstructionPointer(at) => at,
                FrameAddress::ReturnAddress(at) => at.get() - 1,
            });
            seen += 1;
            if seen == DEEPEST {
                break;
            }
        }
    }
}
