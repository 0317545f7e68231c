//! The clone of one function: its blocks in their old order, with what was planned in between.
//!
//! ```text
//! begin of a block   what was planned for entries from elsewhere
//! body of a block    what was planned for the block, and for its only way in
//!                    its instructions
//!                    what was planned for the way on to the next block
//! ...
//! aside              what was planned for a way that has no place of its own, then a jump
//! ```
//!
//! Every way out of a block is written from the function's edges, not from what happens to stand behind it, so blocks
//! may overlap, and parts may lie anywhere.

use lancet_isa::edit::{Counter, Edit, Free, Marked, Movable, OutOfReach, Reach};
use lancet_isa::{Flow, Insn, RegSet, Svma, Target, decode_one};

use super::LayoutError;
use super::fork::Forks;
use super::joins::Joins;
use super::map::MovedPiece;
use super::piece::{Addresses, Dest, Finished, Label, Piece};
use super::planned::Planned;
use super::survey::Survey;
use crate::plan::{Action, CallId, CounterId, FuncPlan, Held, Plan, Point};
use crate::program::liveness;
use crate::program::{Block, BlockId, EdgeId, EdgeKind, ExitKind, Func, FuncId, Part, Program};

/// The least alignment of a clone, and of what the compiler aligned in it.
const ALIGN: u8 = 16;
const CACHE_LINE: u64 = 64;

/// Where counters are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counters {
    /// In the image, for the only thread.
    Shared { at: Svma },
    /// At an address, for all threads.
    Contended { at: Svma },
    /// At `base` in each thread's area, if the object has the place that was chosen for it.
    PerThread { base: u32 },
}

/// What all clones are made with.
pub(super) struct Around<'a> {
    pub program: &'a Program,
    pub edit: &'static dyn Edit,
    pub survey: &'a Survey,
    pub plan: &'a Plan,
    pub counters: Counters,
    /// Where calls lead that may return in a new process.
    pub forks: &'a Forks,
    /// Must a thread or process be noticed at the system call that makes it? Until then it has the counters of another.
    pub sees_system_calls: bool,
    /// Calls of the clone return to the old text: what is added to its stated addresses in the process.
    pub old_returns: Option<u64>,
    /// See [`Frame::traced`](super::Frame::traced).
    pub traced: bool,
}

impl Around<'_> {
    /// Where a direct jump or call to `at` shall go.
    fn direct(&self, at: Svma) -> Dest {
        match self.program.func_starting_at(at).filter(|id| self.plan.of(*id).is_some()) {
            Some(id) => Dest::Clone(id),
            None => Dest::Old(at),
        }
    }
}

/// A function's clone before it has an address.
#[derive(Debug)]
pub(super) struct FuncClone {
    pub id: FuncId,
    pub pieces: Vec<ClonePiece>,
    /// By edge: what the entry of a jump table leads to instead of the target's body.
    pub table_ways: Vec<(EdgeId, u32, Label)>,
    /// By old return address: where a call goes on that returns there.
    pub returns: Vec<(Svma, u32, Label)>,
}

#[derive(Debug)]
pub(super) struct ClonePiece {
    pub old: Part,
    pub code: Finished,
    /// Nothing was added.
    is_plain: bool,
}

impl ClonePiece {
    /// Where it may start, from `at` on. What nothing was added to stands in lines of the cache as it did.
    pub fn place(&self, at: Svma) -> Svma {
        let old = self.old.start.0;
        match self.is_plain {
            true => at + (old.wrapping_sub(at.0) % CACHE_LINE),
            false => {
                let most = CACHE_LINE.trailing_zeros();
                Svma(at.0.next_multiple_of(1 << old.trailing_zeros().clamp(u32::from(ALIGN).trailing_zeros(), most)))
            }
        }
    }
}

pub(super) fn begin_of(block: BlockId) -> Label {
    Label(2 * block.0)
}

pub(super) fn body_of(block: BlockId) -> Label {
    Label(2 * block.0 + 1)
}

impl FuncClone {
    /// The piece that a block is in.
    pub fn piece_of(&self, func: &Func, block: BlockId) -> Option<u32> {
        let start = func.block(block).start;
        self.pieces.iter().position(|piece| piece.old.contains(start)).map(|i| i as u32)
    }
}

/// Code for a way from one block to another that stands aside.
struct Aside {
    label: Label,
    way: Way,
    /// The instruction that leads here.
    from: u32,
}

#[derive(Clone, Copy)]
enum Way {
    Edge(EdgeId),
    Exit { index: u32, to: Svma },
}

struct Maker<'a> {
    around: &'a Around<'a>,
    func: &'a Func,
    planned: Planned,
    /// By block: how many ways lead in, and the last of its edges among them.
    ways_in: Vec<(u32, EdgeId)>,
    /// By block: the piece it is in.
    piece_of: Vec<u32>,
    /// By block: registers that the plan uses there.
    held: Vec<RegSet>,
    /// Never to be changed by what is added.
    keep: RegSet,
    joins: Joins,
    piece: &'a mut Piece,
    piece_index: u32,
    old: Part,
    asides: Vec<Aside>,
    table_ways: Vec<(EdgeId, u32, Label)>,
    returns: Vec<(Svma, u32, Label)>,
}

/// `piece` is memory to work in.
pub(super) fn make(
    around: &Around<'_>,
    id: FuncId,
    plan: &FuncPlan,
    piece: &mut Piece,
) -> Result<FuncClone, LayoutError> {
    let func = around.program.func(id);
    let joins = Joins::of(func, around.survey.joined(id), plan).ok_or(LayoutError::BadRows { at: func.entry })?;
    let mut ways_in = vec![(0u32, EdgeId(0)); func.blocks.len()];
    for (i, edge) in func.edges.iter().enumerate() {
        let way = &mut ways_in[edge.to.0 as usize];
        *way = (way.0 + 1, EdgeId(i as u32));
    }
    func.entries.iter().for_each(|block| ways_in[block.0 as usize].0 += 2);
    let mut held = vec![RegSet::EMPTY; func.blocks.len()];
    for Held { reg, within } in &plan.held {
        func.loops.blocks(*within).iter().for_each(|block| held[*block as usize] |= RegSet::of(*reg));
    }
    let part_of = |block: &Block| func.parts.iter().position(|part| part.contains(block.start)).unwrap_or(0) as u32;
    let mut maker = Maker {
        around,
        func,
        planned: Planned::of(plan),
        ways_in,
        piece_of: func.blocks.iter().map(part_of).collect(),
        held,
        keep: around.survey.kept(id),
        joins,
        piece,
        piece_index: 0,
        old: Part { start: func.entry, end: func.entry },
        asides: Vec::new(),
        table_ways: Vec::new(),
        returns: Vec::new(),
    };
    let pieces = (0..func.parts.len()).map(|i| maker.piece(i)).collect::<Result<_, _>>()?;
    Ok(FuncClone { id, pieces, table_ways: maker.table_ways, returns: maker.returns })
}

impl Maker<'_> {
    fn piece(&mut self, index: usize) -> Result<ClonePiece, OutOfReach> {
        self.old = self.func.parts[index];
        self.piece_index = index as u32;
        let first = self.func.blocks.partition_point(|block| block.start < self.old.start);
        let end = self.func.blocks.partition_point(|block| block.start < self.old.end);
        self.piece.restart(2 * self.func.blocks.len());
        for i in first..end {
            let next = (i + 1 < end).then(|| BlockId(i as u32 + 1));
            self.block(BlockId(i as u32), next);
        }
        for aside in std::mem::take(&mut self.asides) {
            self.piece.aside(aside.from);
            self.piece.label(aside.label);
            self.way(aside.way);
        }
        let code = self.piece.finish(self.around.edit)?;
        Ok(ClonePiece { old: self.old, code, is_plain: self.planned.is_empty() })
    }

    fn block(&mut self, id: BlockId, next: Option<BlockId>) {
        let block = *self.func.block(id);
        if self.is_aligned_loop(id) || self.is_aligned_target(id) {
            self.piece.align(ALIGN);
        }
        let live = self.live_in(id);
        let first = self.joined_arrival(id, live);
        self.piece.label(begin_of(id));
        for (i, _) in self.func.entries.iter().enumerate().filter(|(_, entry)| **entry == id) {
            self.add(Point::Entry(i as u32), live);
        }
        self.piece.label(body_of(id));
        let (ways, edge) = self.ways_in[id.0 as usize];
        if ways == 1 && self.is_at_target(edge) {
            self.add(Point::Edge(edge), live);
        }
        self.add(Point::Block(id), live);
        self.piece.old((block.start - self.old.start) as u32, first.unwrap_or(begin_of(id)));
        self.instructions(id, &block, next);
    }

    /// Where the edges arrive that arrive together at a block: each is counted by the jump that was taken.
    fn joined_arrival(&mut self, id: BlockId, live: RegSet) -> Option<Label> {
        let column = self.joins.column(id)?;
        let note = self.joins.note?;
        let label = self.piece.new_label();
        self.piece.label(label);
        let (edit, free) = (self.around.edit, self.free(live));
        let place = self.place(note);
        let which = |marked| if marked == Marked::Note { note } else { CounterId(column) };
        self.piece.code_with_marks(which, |out, fields| edit.count_marked(place, column, free, out, fields));
        if self.has_entry_code(id) {
            self.piece.jump(edit, Dest::Here(body_of(id)));
        }
        for edge in self.joins.edges_to(id) {
            self.table_ways.push((edge, self.piece_index, label));
        }
        Some(label)
    }

    fn instructions(&mut self, id: BlockId, block: &Block, next: Option<BlockId>) {
        let image = self.around.program.image();
        let Some(code) = image.bytes(block.start, u64::from(block.len)) else { return };
        let padding =
            next.filter(|next| self.is_aligned_loop(*next)).map_or(code.len(), |_| padding_at_end(self, block, code));
        let single = self.has_points_at_instructions(block).then(|| self.around.program.live_before(self.func, id));
        let system_calls = self.system_calls(block);
        let mut offset = 0;
        // What goes over as it is goes over at once.
        let mut waiting = 0..0;
        let mut index = 0;
        self.around.edit.walk(code, block.start, &mut |len, movable| {
            let (begin, end) = (offset, offset + len);
            let at = block.start + begin as u64;
            let is_last = end == code.len();
            if let Some(live) = &single {
                self.copy_plain(&code[std::mem::take(&mut waiting)]);
                self.at_instruction(Point::Before(at), live.get(index).copied().unwrap_or(RegSet::ALL), at);
            }
            let is_system_call = system_calls.contains(&at);
            if !is_last && begin < padding && movable == Movable::AsIs && !is_system_call {
                waiting = if waiting.is_empty() { begin..end } else { waiting.start..end };
            } else {
                self.copy_plain(&code[std::mem::take(&mut waiting)]);
                match (is_last, begin < padding) {
                    (true, true) if is_system_call => {
                        self.copy_plain(&code[begin..end]);
                        self.after_system_call(at + len as u64);
                        self.go_on(id, next, at);
                    }
                    (true, true) => self.last(id, block, &code[begin..end], movable, next),
                    (true, false) => self.go_on(id, next, at),
                    (false, true) => self.copy(&code[begin..end], movable),
                    (false, false) => {}
                }
                if is_system_call && !is_last && begin < padding {
                    self.after_system_call(at + len as u64);
                }
            }
            if let Some(live) = single.as_ref().filter(|_| !is_last && begin < padding) {
                self.copy_plain(&code[std::mem::take(&mut waiting)]);
                let live = live.get(index + 1).copied().unwrap_or(RegSet::ALL);
                self.at_instruction(Point::After(at), live, at + len as u64);
            }
            offset = end;
            index += 1;
        });
    }

    fn copy_plain(&mut self, code: &[u8]) {
        if !code.is_empty() {
            self.copy(code, Movable::AsIs);
        }
    }

    /// What was planned around single instructions; the code behind it stands at other distances.
    fn at_instruction(&mut self, point: Point, live: RegSet, next: Svma) {
        if self.planned.at(point).is_empty() {
            return;
        }
        let begin = self.piece.new_label();
        self.piece.label(begin);
        self.add(point, live);
        self.piece.old((next - self.old.start) as u32, begin);
    }

    /// The system calls in a block that may go on in a new thread or process.
    fn system_calls(&self, block: &Block) -> Vec<Svma> {
        let image = self.around.program.image();
        let may = |code| image.isa().may_call_system(code);
        if !self.around.sees_system_calls || !image.bytes(block.start, u64::from(block.len)).is_none_or(may) {
            return Vec::new();
        }
        let start = block.start;
        let may_fork = |insn: &Insn| {
            let code = image.bytes(start, insn.end() - start);
            insn.flow == Flow::System && code.is_none_or(|code| self.around.edit.may_fork(code))
        };
        self.around.program.insns(block).into_iter().filter(may_fork).map(|insn| insn.at).collect()
    }

    fn after_system_call(&mut self, next: Svma) {
        let edit = self.around.edit;
        let begin = self.piece.new_label();
        self.piece.label(begin);
        self.piece.code(|out| Some((edit.call(&[], out), Dest::Forked)));
        self.piece.old((next - self.old.start) as u32, begin);
    }

    /// An instruction that control passes or leaves by, but not to a target in itself.
    fn copy(&mut self, code: &[u8], movable: Movable) {
        self.piece.code(|out| {
            let start = out.len() as u32;
            out.extend_from_slice(code);
            match movable {
                Movable::Refers { field, target } => Some((field.shifted(start), Dest::Old(target))),
                _ => None,
            }
        });
    }

    fn last(&mut self, id: BlockId, block: &Block, code: &[u8], movable: Movable, next: Option<BlockId>) {
        let at = block.end().0 - code.len() as u64;
        let offset = (at - self.old.start.0) as u32;
        if let (Some(call), Some(bias)) = (self.func.call_of(id).copied(), self.around.old_returns) {
            self.call_from_old(code, movable, call.to, block.end().0.wrapping_add(bias));
            if call.returns {
                let label = self.piece.new_label();
                self.piece.label(label);
                self.returns.push((block.end(), self.piece_index, label));
                self.go_on(id, next, Svma(at));
            }
            return;
        }
        if let Some(call) = self.func.call_of(id).copied() {
            match (movable, call.to) {
                (Movable::Transfers, Target::Direct(to)) => {
                    let to = self.around.direct(to);
                    self.piece.transfer(self.around.edit, code, to);
                }
                _ => self.copy(code, movable),
            }
            if self.around.forks.contains(call.to) {
                let edit = self.around.edit;
                self.piece.code(|out| Some((edit.check_fork(out), Dest::Forked)));
            }
            match call.returns {
                true => self.go_on(id, next, Svma(at)),
                // Should it come back all the same, it finds what it always found.
                false => self.piece.jump(self.around.edit, Dest::Old(block.end())),
            }
            return;
        }
        let falls = self.func.successors(id).iter().any(|edge| edge.kind == EdgeKind::Fall)
            || self.func.exits_of(id).any(|exit| matches!(exit.kind, ExitKind::RunsInto(_)));
        match movable {
            Movable::Transfers if falls => {
                let to = self.taken(id, offset);
                self.piece.transfer(self.around.edit, code, to);
                self.go_on(id, next, Svma(at));
            }
            Movable::Transfers => match self.edge_of(id, |kind| kind == EdgeKind::Jump) {
                Some(edge) => self.way(Way::Edge(edge)),
                None => {
                    if let Some((index, to)) = self.exit_taken(id) {
                        self.way(Way::Exit { index, to });
                    }
                }
            },
            _ if falls => {
                self.copy(code, movable);
                self.go_on(id, next, Svma(at));
            }
            _ => {
                self.leave(id, code, Svma(at));
                self.table_edges(id, offset);
                self.copy(code, movable);
            }
        }
    }

    /// A call that returns where the original one does, so that nobody who looks at the stack sees a difference.
    fn call_from_old(&mut self, code: &[u8], movable: Movable, to: Target, back: u64) {
        let edit = self.around.edit;
        let direct = if let Target::Direct(to) = to { Some(self.around.direct(to)) } else { None };
        self.piece.code(|out| {
            edit.call_from(back, out);
            match (movable, direct) {
                (Movable::Transfers, Some(to)) => Some((edit.jump(Reach::Far, out), to)),
                (Movable::Refers { field, target }, _) => {
                    let start = out.len() as u32;
                    edit.jump_as_call(code, out).then(|| (field.shifted(start), Dest::Old(target)))
                }
                _ => {
                    edit.jump_as_call(code, out);
                    None
                }
            }
        });
    }

    /// What was planned for leaving by a return or through a pointer.
    fn leave(&mut self, id: BlockId, code: &[u8], at: Svma) {
        let isa = self.around.program.image().isa();
        let first = self.func.exits.partition_point(|exit| exit.from < id);
        for (i, exit) in self.func.exits_of(id).enumerate() {
            let kind = match exit.kind {
                ExitKind::Return => liveness::Exit::Return,
                ExitKind::TailCall(_) => liveness::Exit::TailCall,
                ExitKind::Stop => liveness::Exit::Never,
                _ => liveness::Exit::Unknown,
            };
            let reads = decode_one(isa, code, at).map_or(RegSet::ALL, |insn| insn.effects.reads);
            self.add(Point::Exit((first + i) as u32), kind.live(isa.facts()) | reads);
        }
    }

    /// Ways through a jump table that something is planned for.
    fn table_edges(&mut self, id: BlockId, offset: u32) {
        if let (Some(row), Some(note)) = (self.joins.row(id), self.joins.note) {
            let live = self.live_out(id) | self.reads_of_last(id);
            let (edit, free) = (self.around.edit, self.free(live));
            let (row_place, note_place) = (self.place(row), self.place(note));
            let which = |marked| if marked == Marked::Note { note } else { row };
            self.piece.code_with_marks(which, |out, fields| edit.mark(row_place, note_place, free, out, fields));
        }
        let first = self.func.block(id).first_edge();
        for (i, edge) in self.func.successors(id).iter().enumerate() {
            let edge_id = EdgeId(first + i as u32);
            let is_alone = !self.is_at_target(edge_id) && !self.joins.contains(edge_id);
            if edge.kind == EdgeKind::Table && is_alone && !self.planned.at(Point::Edge(edge_id)).is_empty() {
                let label = self.piece.new_label();
                self.asides.push(Aside { label, way: Way::Edge(edge_id), from: offset });
                self.table_ways.push((edge_id, self.piece_index, label));
            }
        }
    }

    /// Where a conditional branch goes when it is taken.
    fn taken(&mut self, id: BlockId, offset: u32) -> Dest {
        let way = match self.edge_of(id, |kind| kind == EdgeKind::Taken) {
            Some(edge) if self.is_at_target(edge) || self.planned.at(Point::Edge(edge)).is_empty() => {
                return self.body(self.func.edges[edge.0 as usize].to);
            }
            Some(edge) => Way::Edge(edge),
            None => match self.exit_taken(id) {
                Some((index, to)) if self.planned.at(Point::Exit(index)).is_empty() => return self.around.direct(to),
                Some((index, to)) => Way::Exit { index, to },
                None => return Dest::Old(self.func.block(id).end()),
            },
        };
        let label = self.piece.new_label();
        self.asides.push(Aside { label, way, from: offset });
        Dest::Here(label)
    }

    /// From the end of a block, whose last instruction is at `last`, to where control goes without a jump.
    fn go_on(&mut self, id: BlockId, next: Option<BlockId>, last: Svma) {
        self.add(Point::After(last), self.live_out(id));
        if let Some(edge) = self.edge_of(id, |kind| matches!(kind, EdgeKind::Fall | EdgeKind::CallReturn)) {
            let to = self.func.edges[edge.0 as usize].to;
            if next == Some(to) && !self.has_code_in_front(to) {
                self.add_unless_at_target(edge);
            } else {
                self.way(Way::Edge(edge));
            }
            return;
        }
        let first = self.func.exits.partition_point(|exit| exit.from < id);
        let mut exits = self.func.exits_of(id).enumerate();
        let runs = exits.find_map(|(i, exit)| match exit.kind {
            ExitKind::RunsInto(to) => Some(Way::Exit { index: (first + i) as u32, to }),
            _ => None,
        });
        if let Some(way) = runs {
            self.way(way);
        }
    }

    /// What was planned for a way, and a jump to its end.
    fn way(&mut self, way: Way) {
        let to = match way {
            Way::Edge(edge) => {
                self.add_unless_at_target(edge);
                self.body(self.func.edges[edge.0 as usize].to)
            }
            Way::Exit { index, to } => {
                self.add(Point::Exit(index), self.live_at(to));
                self.around.direct(to)
            }
        };
        self.piece.jump(self.around.edit, to);
    }

    fn body(&self, block: BlockId) -> Dest {
        match self.piece_of[block.0 as usize] {
            piece if piece == self.piece_index => Dest::Here(body_of(block)),
            piece => Dest::There { piece, label: body_of(block) },
        }
    }

    /// What may be read at the start of a block of another function.
    fn live_at(&self, at: Svma) -> RegSet {
        let program = self.around.program;
        let facts = program.image().isa().facts();
        let known = program.func_at(at).map(|id| program.func(id));
        let block = known.and_then(|func| Some((func, func.block_starting_at(at)?)));
        block.map_or(RegSet::ALL, |(func, block)| func.live_in(block) | liveness::Exit::TailCall.live(facts))
    }

    fn exit_taken(&self, id: BlockId) -> Option<(u32, Svma)> {
        let first = self.func.exits.partition_point(|exit| exit.from < id);
        self.func.exits_of(id).enumerate().find_map(|(i, exit)| match exit.kind {
            ExitKind::TailCall(Target::Direct(to)) => Some(((first + i) as u32, to)),
            _ => None,
        })
    }

    fn edge_of(&self, id: BlockId, is_wanted: impl Fn(EdgeKind) -> bool) -> Option<EdgeId> {
        let i = self.func.successors(id).iter().position(|edge| is_wanted(edge.kind))?;
        Some(EdgeId(self.func.block(id).first_edge() + i as u32))
    }

    /// Is there no other way to the edge's target, so that what is planned for it stands there?
    fn is_at_target(&self, edge: EdgeId) -> bool {
        let edge = &self.func.edges[edge.0 as usize];
        self.ways_in[edge.to.0 as usize].0 == 1 && matches!(edge.kind, EdgeKind::Taken | EdgeKind::Table)
    }

    fn add_unless_at_target(&mut self, edge: EdgeId) {
        if !self.is_at_target(edge) {
            let to = self.func.edges[edge.0 as usize].to;
            self.add(Point::Edge(edge), self.live_in(to));
        }
    }

    /// Must control that falls into a block jump over what stands in front of it?
    fn has_code_in_front(&self, block: BlockId) -> bool {
        self.has_entry_code(block) || self.joins.column(block).is_some()
    }

    fn reads_of_last(&self, id: BlockId) -> RegSet {
        let insns = self.around.program.insns(self.func.block(id));
        insns.last().map_or(RegSet::ALL, |insn| insn.effects.reads)
    }

    fn has_entry_code(&self, block: BlockId) -> bool {
        let mut entries = self.func.entries.iter().enumerate().filter(|(_, entry)| **entry == block);
        entries.any(|(i, _)| !self.planned.at(Point::Entry(i as u32)).is_empty())
    }

    fn has_points_at_instructions(&self, block: &Block) -> bool {
        let range = block.start..block.end();
        self.planned.at_instructions().iter().any(|insertion| match insertion.at {
            Point::Before(at) | Point::After(at) => range.contains(&at),
            _ => false,
        })
    }

    /// Writes what was planned for a point where `live` is needed afterwards.
    fn add(&mut self, point: Point, live: RegSet) {
        let (edit, range) = (self.around.edit, self.planned.range(point));
        let read = self.planned.registers_read(range.clone());
        for i in range {
            match self.planned.action(i) {
                Action::Count(counter) => self.count(counter, self.free(live)),
                Action::Call(call) => self.call(call),
                Action::Set { reg, from } => self.piece.code(|out| {
                    edit.set(reg, from, out);
                    None
                }),
                Action::CountIn(reg) => self.piece.code(|out| {
                    edit.count_in(reg, out);
                    None
                }),
                Action::Add { counter, reg, since } => {
                    // What comes behind it here may need others of these.
                    let free = Free { regs: self.free(live).regs.without(read) };
                    let place = self.place(counter);
                    self.piece.code_with_fields(Dest::Counter(counter), |out, fields| {
                        edit.add(place, reg, since, free, out, fields);
                    });
                }
            }
        }
    }

    /// What may be read at the start of a block, by the program or by what was planned.
    fn live_in(&self, id: BlockId) -> RegSet {
        self.func.live_in(id) | self.held[id.0 as usize]
    }

    fn live_out(&self, id: BlockId) -> RegSet {
        self.func.live_out(id) | self.held[id.0 as usize]
    }

    /// What may be overwritten where `live` is needed afterwards.
    fn free(&self, live: RegSet) -> Free {
        let facts = self.around.program.image().isa().facts();
        // Registers that the function leaves alone may hold what a caller knows it leaves alone.
        Free { regs: (self.func.changes | facts.flags).without(live | self.keep) }
    }

    fn call(&mut self, call: CallId) {
        let Some(call) = self.around.plan.payload_call(call) else { return };
        let edit = self.around.edit;
        self.piece.code(|out| Some((edit.call(&call.arguments, out), Dest::Payload(call.offset))));
    }

    fn place(&self, counter: CounterId) -> Counter {
        match self.around.counters {
            Counters::Shared { .. } => Counter::Shared,
            Counters::Contended { .. } => Counter::Contended,
            Counters::PerThread { .. } => Counter::PerThread(8 * counter.0),
        }
    }

    fn count(&mut self, counter: CounterId, free: Free) {
        let place = self.place(counter);
        let edit = self.around.edit;
        self.piece.count(counter, self.around.traced, |out, fields| edit.count(place, free, out, fields));
    }

    /// A loop that the compiler aligned.
    fn is_aligned_loop(&self, id: BlockId) -> bool {
        let loops = &self.func.loops;
        self.func.block(id).start.0.is_multiple_of(u64::from(ALIGN))
            && loops.innermost(id.0).is_some_and(|inner| loops.get(inner).header == id.0)
    }

    /// A block behind padding that nothing runs through. Among counters the padding costs more than it gains.
    fn is_aligned_target(&self, id: BlockId) -> bool {
        if !self.planned.is_empty() {
            return false;
        }
        let start = self.func.block(id).start;
        let before = id.0.checked_sub(1).map(|before| self.func.block(BlockId(before)).end());
        start.0.is_multiple_of(u64::from(ALIGN)) && before.is_some_and(|end| end < start && end > self.old.start)
    }
}

/// Where the padding at the end of a block begins, if control falls through it.
fn padding_at_end(maker: &Maker<'_>, block: &Block, code: &[u8]) -> usize {
    let isa = maker.around.program.image().isa();
    let mut starts = Vec::with_capacity(block.insns as usize);
    let mut offset = 0;
    maker.around.edit.walk(code, block.start, &mut |len, _| {
        starts.push(offset);
        offset += len;
    });
    let mut end = code.len();
    while let Some(start) = starts.pop().filter(|start| isa.is_padding(&code[*start..end], block.start + *start as u64))
    {
        end = start;
    }
    end
}

/// Where everything is.
pub(super) struct Places<'a> {
    pub clones: &'a [FuncClone],
    /// By function: its index in `clones`.
    pub clone_of: &'a [u32],
    /// By clone and piece.
    pub addresses: &'a [Vec<Svma>],
    pub counters: Counters,
    pub forked: Svma,
    /// Where the payload's code begins.
    pub payload: Svma,
    pub program: &'a Program,
}

impl Places<'_> {
    pub fn label(&self, clone: usize, piece: u32, label: Label) -> Option<Svma> {
        let offset = self.clones[clone].pieces[piece as usize].code.offset(label)?;
        Some(self.addresses[clone][piece as usize] + u64::from(offset))
    }

    /// Where control that comes from elsewhere to a block of a cloned function shall go.
    pub fn begin(&self, id: FuncId, block: BlockId) -> Option<Svma> {
        let clone = self.clone_of[id.0 as usize] as usize;
        let piece = self.clones.get(clone)?.piece_of(self.program.func(id), block)?;
        self.label(clone, piece, begin_of(block))
    }
}

/// The addresses as one clone sees them.
pub(super) struct Seen<'a> {
    pub places: &'a Places<'a>,
    pub clone: usize,
}

impl Addresses for Seen<'_> {
    fn of(&self, dest: Dest) -> Svma {
        let known = match dest {
            Dest::Old(at) => Some(at),
            Dest::Forked => Some(self.places.forked),
            Dest::Payload(offset) => Some(self.places.payload + offset),
            Dest::Counter(CounterId(i)) => match self.places.counters {
                Counters::Shared { at } | Counters::Contended { at } => Some(at + 8 * u64::from(i)),
                Counters::PerThread { base } => Some(Svma(u64::from(base) + 8 * u64::from(i))),
            },
            Dest::There { piece, label } => self.places.label(self.clone, piece, label),
            Dest::Clone(id) => {
                let func = self.places.program.func(id);
                func.entries.first().and_then(|entry| self.places.begin(id, *entry))
            }
            Dest::Here(_) => None,
        };
        // The survey lets only functions through whose ways all end at blocks of theirs.
        known.unwrap_or_default()
    }
}

impl FuncClone {
    /// Where everything of a piece is that stands at `at`.
    pub fn moved(&self, piece: &ClonePiece, at: Svma) -> MovedPiece {
        MovedPiece {
            func: self.id,
            old_start: piece.old.start,
            old_end: piece.old.end,
            new_start: at,
            body_end: at + u64::from(piece.code.body_len),
            new_end: at + u64::from(piece.code.len()),
            spans: piece.code.spans(at, piece.old.start),
            asides: piece.code.asides(at, piece.old.start),
            counted: piece.code.counted(at),
        }
    }
}
