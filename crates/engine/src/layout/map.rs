//! Where moved code went.
//!
//! A clone keeps the order and, inside a block, the distances of the original: only what was added and the last
//! instruction of a block change them. So a [`Span`] for each block, and one behind each addition inside a block,
//! says it all.

use lancet_isa::Svma;

use crate::plan::CounterId;
use crate::program::FuncId;

/// A stretch of old code whose instructions stand in the clone at the same distances from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub old: Svma,
    /// Where control arrives that comes from elsewhere: what was added in front is here.
    pub begin: Svma,
    /// Where the copy of the instruction at `old` is.
    pub body: Svma,
}

/// Code that was made outside of the order of the original: it leads from a block to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aside {
    pub at: Svma,
    /// The frame there is as it is before this old instruction.
    pub like: Svma,
}

/// One contiguous piece of old code, and its clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedPiece {
    pub func: FuncId,
    pub old_start: Svma,
    pub old_end: Svma,
    pub new_start: Svma,
    /// The end of the copied blocks.
    pub body_end: Svma,
    /// Up to here, code aside.
    pub new_end: Svma,
    /// By `old`, and so by `begin`.
    pub spans: Vec<Span>,
    /// By `at`, from `body_end` on. Each goes up to the next.
    pub asides: Vec<Aside>,
    /// The addresses behind instructions that count, and their counters, in order: of a layout that is
    /// [traced](super::Frame::traced).
    pub counted: Vec<(Svma, CounterId)>,
}

impl MovedPiece {
    /// Where the code went that stood at an instruction boundary of the piece, or where its end went.
    pub fn to_new(&self, old: Svma) -> Option<Svma> {
        if old < self.old_start || old > self.old_end {
            return None;
        }
        let after = self.spans.partition_point(|span| span.old <= old);
        let Some(span) = after.checked_sub(1).map(|i| &self.spans[i]) else { return Some(self.new_start) };
        // The last instruction of a block may have another length, and code may be left out: what is behind it begins
        // where the next span does.
        let limit = self.spans.get(after).map_or(self.body_end, |next| next.begin);
        let new = if span.old == old { span.begin } else { span.body + (old - span.old) };
        Some(if old == self.old_end { self.body_end } else { new.min(limit) })
    }
}
