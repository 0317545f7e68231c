//! A contiguous piece of new code whose branches are as short as they can be.
//!
//! Code is recorded as a list of items ([`Piece`]). Bytes have a fixed length; branches inside the piece start near
//! and grow to far ones until all of them reach. Then labels have offsets, and the bytes are written but for what
//! depends on where the piece will stand ([`Piece::finish`]); that is filled in once it has an address
//! ([`Finished::fill`]). The recording, which is several times larger, serves the next piece.
//!
//! Invariant: a branch never shrinks again, so settling ends.

use lancet_isa::Svma;
use lancet_isa::edit::{Edit, Field, FieldKind, Marked, OutOfReach, Reach};

use super::map::{Aside, Span};
use crate::plan::CounterId;
use crate::program::FuncId;

/// A place in a piece, by the number its maker gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Label(pub u32);

/// Where code leads or refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dest {
    /// In the same piece.
    Here(Label),
    /// In another piece of the same function.
    There {
        piece: u32,
        label: Label,
    },
    /// The clone of a function, at its entry.
    Clone(FuncId),
    /// Where the input has it.
    Old(Svma),
    Counter(CounterId),
    /// The run-time code for new processes.
    Forked,
    /// At an offset in the payload's code.
    Payload(u64),
}

/// The addresses that emitting needs.
pub(super) trait Addresses {
    fn of(&self, dest: Dest) -> Svma;
}

#[derive(Clone, Copy, Debug)]
enum Item {
    /// So many of the bytes.
    Bytes(u32),
    Label(Label),
    /// A jump to somewhere in the piece.
    Jump {
        to: Label,
        far: bool,
    },
    /// The branch of the old code at this offset in `branches`, to somewhere in the piece.
    Branch {
        code: u32,
        to: Label,
        far: bool,
    },
    /// To a multiple of this.
    Align(u8),
    /// The copy of the instruction at this distance from the piece's old start begins here.
    Old {
        offset: u32,
        begin: Label,
    },
    /// Code aside begins here.
    Aside {
        like: u32,
    },
}

#[derive(Clone, Copy, Debug)]
struct Fixup {
    field: Field,
    to: Dest,
}

/// The bytes of a short branch, as far as its condition needs them.
type BranchCode = [u8; 8];

/// A recording.
#[derive(Debug, Default)]
pub(super) struct Piece {
    items: Vec<Item>,
    bytes: Vec<u8>,
    /// In the order of their offsets in `bytes`, which leave out the branches.
    fixups: Vec<Fixup>,
    branches: Vec<BranchCode>,
    /// Offsets in `bytes` behind instructions that count, in order.
    counted: Vec<(u32, CounterId)>,
    /// By label: its offset once settled.
    offsets: Vec<u32>,
}

/// Code that needs only an address.
#[derive(Debug)]
pub(super) struct Finished {
    pub bytes: Box<[u8]>,
    fixups: Box<[Fixup]>,
    /// By label.
    offsets: Box<[u32]>,
    spans: Box<[OffsetSpan]>,
    /// Offsets of code aside, and of the old instruction that leads there.
    asides: Box<[(u32, u32)]>,
    counted: Box<[(u32, CounterId)]>,
    /// How much of it are copied blocks.
    pub body_len: u32,
}

/// A [`Span`] as offsets in the old and in the new piece.
#[derive(Clone, Copy, Debug)]
struct OffsetSpan {
    old: u32,
    begin: u32,
    body: u32,
}

const UNPLACED: u32 = u32::MAX;

impl Piece {
    /// Forgets everything, and has labels of the numbers below `labels`.
    pub fn restart(&mut self, labels: usize) {
        self.items.clear();
        self.bytes.clear();
        self.fixups.clear();
        self.branches.clear();
        self.counted.clear();
        self.offsets.clear();
        self.offsets.resize(labels, UNPLACED);
    }

    /// A label of its own.
    pub fn new_label(&mut self) -> Label {
        self.offsets.push(UNPLACED);
        Label(self.offsets.len() as u32 - 1)
    }

    pub fn label(&mut self, label: Label) {
        self.items.push(Item::Label(label));
    }

    pub fn align(&mut self, to: u8) {
        self.items.push(Item::Align(to));
    }

    pub fn old(&mut self, offset: u32, begin: Label) {
        self.items.push(Item::Old { offset, begin });
    }

    pub fn aside(&mut self, like: u32) {
        self.items.push(Item::Aside { like });
    }

    /// Adds what `write` appends; the field that it returns, if any, leads to `to`.
    pub fn code(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Option<(Field, Dest)>) {
        let start = self.bytes.len();
        if let Some((field, to)) = write(&mut self.bytes) {
            self.fixups.push(Fixup { field, to });
        }
        self.grown(start);
    }

    /// Adds what `write` appends; all fields that it gives lead to `to`.
    pub fn code_with_fields(&mut self, to: Dest, write: impl FnOnce(&mut Vec<u8>, &mut Vec<Field>)) {
        let start = self.bytes.len();
        let mut fields = Vec::new();
        write(&mut self.bytes, &mut fields);
        self.fixups.extend(fields.into_iter().map(|field| Fixup { field, to }));
        self.grown(start);
    }

    /// Adds what `write` appends, which counts; it returns the length behind the instruction that does.
    pub fn count(
        &mut self,
        counter: CounterId,
        traced: bool,
        write: impl FnOnce(&mut Vec<u8>, &mut Vec<Field>) -> usize,
    ) {
        let mut counted = 0;
        self.code_with_fields(Dest::Counter(counter), |out, fields| counted = write(out, fields));
        if traced {
            self.counted.push((counted as u32, counter));
        }
    }

    /// Adds what `write` appends; each field that it gives leads to the counter that `which` tells.
    pub fn code_with_marks(
        &mut self,
        which: impl Fn(Marked) -> CounterId,
        write: impl FnOnce(&mut Vec<u8>, &mut Vec<(Field, Marked)>),
    ) {
        let start = self.bytes.len();
        let mut fields = Vec::new();
        write(&mut self.bytes, &mut fields);
        let counter = |(field, marked)| Fixup { field, to: Dest::Counter(which(marked)) };
        self.fixups.extend(fields.into_iter().map(counter));
        self.grown(start);
    }

    fn grown(&mut self, start: usize) {
        let more = (self.bytes.len() - start) as u32;
        match self.items.last_mut() {
            Some(Item::Bytes(len)) => *len += more,
            _ => self.items.push(Item::Bytes(more)),
        }
    }

    pub fn jump(&mut self, edit: &dyn Edit, to: Dest) {
        match to {
            Dest::Here(label) => self.items.push(Item::Jump { to: label, far: false }),
            _ => self.code(|out| Some((edit.jump(Reach::Far, out), to))),
        }
    }

    /// The branch or call at the start of `code`, to another target.
    pub fn transfer(&mut self, edit: &dyn Edit, code: &[u8], to: Dest) {
        match to {
            Dest::Here(label) => {
                let mut kept = BranchCode::default();
                let len = code.len().min(kept.len());
                kept[..len].copy_from_slice(&code[..len]);
                self.branches.push(kept);
                self.items.push(Item::Branch { code: self.branches.len() as u32 - 1, to: label, far: false });
            }
            _ => self.code(|out| Some((edit.transfer(code, Reach::Far, out), to))),
        }
    }

    /// Makes branches long where they must be, which fixes all offsets, and writes everything down.
    pub fn finish(&mut self, edit: &dyn Edit) -> Result<Finished, OutOfReach> {
        let sizes = Sizes::new(edit, &self.branches);
        let mut len = self.place(&sizes);
        while self.lengthen(&sizes) {
            len = self.place(&sizes);
        }
        self.write(edit, len)
    }

    /// Gives labels their offsets, and returns the length of it all.
    fn place(&mut self, sizes: &Sizes) -> u32 {
        let mut at = 0;
        for item in &self.items {
            match item {
                Item::Label(label) => self.offsets[label.0 as usize] = at,
                _ => at += sizes.of(*item, at),
            }
        }
        at
    }

    /// Makes those branches far that do not reach. True if there were any.
    fn lengthen(&mut self, sizes: &Sizes) -> bool {
        let mut at = 0u32;
        let mut grew = false;
        for item in &mut self.items {
            at += sizes.of(*item, at);
            if let Item::Jump { to, far } | Item::Branch { to, far, .. } = item
                && !*far
                && i8::try_from(i64::from(self.offsets[to.0 as usize]) - i64::from(at)).is_err()
            {
                *far = true;
                grew = true;
            }
        }
        grew
    }

    fn write(&self, edit: &dyn Edit, len: u32) -> Result<Finished, OutOfReach> {
        let mut out = Vec::with_capacity(len as usize);
        let mut outside = Vec::with_capacity(self.fixups.len());
        let (mut spans, mut asides) = (Vec::new(), Vec::new());
        let mut taken = 0usize;
        let mut fixups = self.fixups.iter().peekable();
        let (mut marks, mut counted) = (self.counted.iter().peekable(), Vec::with_capacity(self.counted.len()));
        // Distances inside the piece are the same wherever it stands.
        let start = Svma(0);
        let place = |label: Label| start + u64::from(self.offsets[label.0 as usize]);
        for item in &self.items {
            let here = out.len() as u32;
            match *item {
                Item::Bytes(len) => {
                    let end = taken + len as usize;
                    out.extend_from_slice(&self.bytes[taken..end]);
                    while let Some(fixup) = fixups.next_if(|fixup| (fixup.field.offset as usize) < end) {
                        let Field { offset, origin, kind } = fixup.field;
                        let field =
                            Field { offset: offset - taken as u32 + here, origin: origin - taken as u32 + here, kind };
                        match fixup.to {
                            Dest::Here(label) => edit.fill(&mut out, start, field, place(label))?,
                            to => outside.push(Fixup { field, to }),
                        }
                    }
                    while let Some((at, counter)) = marks.next_if(|(at, _)| (*at as usize) <= end) {
                        counted.push((at - taken as u32 + here, *counter));
                    }
                    taken = end;
                }
                Item::Jump { to, far } => {
                    let field = edit.jump(if far { Reach::Far } else { Reach::Near }, &mut out);
                    edit.fill(&mut out, start, field, place(to))?;
                }
                Item::Branch { code, to, far } => {
                    let reach = if far { Reach::Far } else { Reach::Near };
                    let field = edit.transfer(&self.branches[code as usize], reach, &mut out);
                    edit.fill(&mut out, start, field, place(to))?;
                }
                Item::Align(to) => edit.pad((here.next_multiple_of(u32::from(to)) - here) as usize, &mut out),
                Item::Label(_) => {}
                Item::Old { offset, begin } => {
                    spans.push(OffsetSpan { old: offset, begin: self.offsets[begin.0 as usize], body: here });
                }
                Item::Aside { like } => asides.push((here, like)),
            }
        }
        Ok(Finished {
            body_len: asides.first().map_or(out.len() as u32, |(at, _)| *at),
            bytes: out.into(),
            fixups: outside.into(),
            offsets: self.offsets.as_slice().into(),
            spans: spans.into(),
            asides: asides.into(),
            counted: counted.into(),
        })
    }
}

impl Finished {
    pub fn len(&self) -> u32 {
        self.bytes.len() as u32
    }

    pub fn offset(&self, label: Label) -> Option<u32> {
        self.offsets.get(label.0 as usize).copied().filter(|offset| *offset != UNPLACED)
    }

    /// Fills in what its copy `code` at address `at` refers to.
    pub fn fill(
        &self,
        edit: &dyn Edit,
        code: &mut [u8],
        at: Svma,
        addresses: &dyn Addresses,
    ) -> Result<(), OutOfReach> {
        self.fixups.iter().try_for_each(|fixup| edit.fill(code, at, fixup.field, addresses.of(fixup.to)))
    }

    /// The fields of its copy at `at` that say where something is in each thread's area.
    pub fn own_fields(&self, at: Svma) -> impl Iterator<Item = Svma> {
        let is_own = |fixup: &&Fixup| fixup.field.kind == FieldKind::Own;
        self.fixups.iter().filter(is_own).map(move |fixup| at + u64::from(fixup.field.offset))
    }

    /// What stands where, if it stands at `at` and the old code began at `old_start`.
    pub fn spans(&self, at: Svma, old_start: Svma) -> Vec<Span> {
        let (at, old) = (|offset: u32| at + u64::from(offset), |offset: u32| old_start + u64::from(offset));
        let spans = self.spans.iter();
        spans.map(|span| Span { old: old(span.old), begin: at(span.begin), body: at(span.body) }).collect()
    }

    pub fn counted(&self, at: Svma) -> Vec<(Svma, CounterId)> {
        self.counted.iter().map(|(offset, counter)| (at + u64::from(*offset), *counter)).collect()
    }

    pub fn asides(&self, at: Svma, old_start: Svma) -> Vec<Aside> {
        let aside =
            |(offset, like): &(u32, u32)| Aside { at: at + u64::from(*offset), like: old_start + u64::from(*like) };
        self.asides.iter().map(aside).collect()
    }
}

/// How long branches are.
struct Sizes {
    jump: [u32; 2],
    /// By branch.
    branches: Vec<[u8; 2]>,
}

impl Sizes {
    fn new(edit: &dyn Edit, branches: &[BranchCode]) -> Sizes {
        let mut out = Vec::new();
        let mut size = |write: &dyn Fn(&mut Vec<u8>)| {
            out.clear();
            write(&mut out);
            out.len()
        };
        let reaches = [Reach::Near, Reach::Far];
        let jump = reaches.map(|reach| size(&|out| _ = edit.jump(reach, out)) as u32);
        let branch = |code: &BranchCode| reaches.map(|reach| size(&|out| _ = edit.transfer(code, reach, out)) as u8);
        let branches = branches.iter().map(branch).collect();
        Sizes { jump, branches }
    }

    fn of(&self, item: Item, at: u32) -> u32 {
        match item {
            Item::Bytes(len) => len,
            Item::Jump { far, .. } => self.jump[usize::from(far)],
            Item::Branch { code, far, .. } => u32::from(self.branches[code as usize][usize::from(far)]),
            Item::Align(to) => at.next_multiple_of(u32::from(to)) - at,
            Item::Label(_) | Item::Old { .. } | Item::Aside { .. } => 0,
        }
    }
}
