//! From a plan to bytes: clones of functions with what was added, and the ways that lead to them.
//!
//! ```text
//! Program ──> Survey ──────────────> lay_out ──> Patch, MovedPieces
//!             what can be edited     clones (clone.rs, piece.rs), jumps to them (redirect.rs), jump tables (tables.rs)
//!             survey.rs, conventions.rs
//! ```
//!
//! Every edited function is copied whole to new memory behind the image, in the order of the old text. The old text
//! stays, with jumps to the clones where control may still arrive, so all addresses that anybody holds stay true.

mod clone;
mod conventions;
mod fork;
pub mod inplace;
mod joins;
pub mod lists;
mod map;
mod patch;
mod payload;
mod piece;
mod places;
mod planned;
mod pointers;
mod redirect;
mod run_time;
mod survey;
mod tables;
mod unframed;
pub mod unwind;

use lancet_isa::Svma;
use lancet_isa::edit::{Edit, EncodeError, FieldKind, GateDest, GateKind, OutOfReach, Reach};
use lancet_isa::runtime::{self, SignalCode, StartUp};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

pub use clone::Counters;
pub use map::{Aside, MovedPiece, Span};
pub use patch::{Chunk, ChunkKind, NewSection, NewSymbol, Overwrite, Patch, Repoint};
pub use run_time::shard_len;
pub use survey::{Arrivals, Obstacle, Survey};

use crate::plan::{CounterId, Plan};
use crate::program::{EdgeId, FuncId, Part, Program};
use clone::{Around, FuncClone, Places, Seen, body_of};
use fork::Forks;
use payload::Payload;
use piece::{Label, Piece};
use places::OwnPlaces;
use redirect::Redirect;
use run_time::Made;
use tables::Change;

/// Memory pages are no smaller.
pub const PAGE: u64 = 4096;

#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    #[error("{0}: new code is too far from the old")]
    TooFar(#[from] OutOfReach),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    Unwind(#[from] unwind::UnwindError),
    #[error("{counters} counters are too many for a program with threads")]
    ManyCounters { counters: u32 },
    #[error(transparent)]
    Payload(#[from] crate::load::LoadError),
    #[error("the path of the counts file has {len} bytes: that is too long")]
    LongPath { len: usize },
    #[error("the function at {at}: counters of edges that arrive together are not in rows")]
    BadRows { at: Svma },
    #[error("the function at {at} cannot be edited: {why}")]
    NotEditable { at: Svma, why: Obstacle },
}

/// A plan as bytes.
#[derive(Debug, Default)]
pub struct Layout {
    pub patch: Patch,
    /// By new address.
    pub pieces: Vec<MovedPiece>,
}

/// What layout needs to know beside the program and the plan.
pub struct Frame<'a> {
    pub survey: &'a Survey,
    /// The first address for what is new: at the start of a page.
    pub at: Svma,
    pub keep: Option<Keep<'a>>,
    /// Where counters are if they are not kept in a file: in memory that somebody else has made, for all threads.
    pub counters: Option<Svma>,
    /// Calls of the clones return to the old text, from where a jump leads on: what is added to stated addresses in the
    /// process. The survey must know.
    pub old_returns: Option<u64>,
    /// Say of every piece where in it something was counted.
    pub traced: bool,
}

/// Which threads count where.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub enum Sharing {
    /// There is one thread.
    Alone,
    /// All threads have the same counters, and increment them in one step.
    Atomic,
    /// Every thread has its own counters.
    PerThread(Slot),
}

/// Where threads have their counters of an object, among those of all objects of a process, if nobody else is there. Then
/// the object goes elsewhere when it is loaded, which takes a moment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub struct Slot {
    pub index: u32,
    /// Bytes of others in front of it.
    pub at: u32,
}

impl Slot {
    /// How many objects can have slots.
    pub const MOST: u32 = runtime::MOST_OBJECTS;
    /// The most bytes of all slots.
    pub const ROOM: u32 = runtime::WINDOW_LEN - runtime::WINDOW_HEAD;
    /// What every program has.
    pub const PROGRAM: Slot = Slot { index: 0, at: 0 };
    /// What every library has that was rewritten by itself; few programs need more room than is in front of it.
    pub const LIBRARY: Slot = Slot { index: 1, at: 32 << 20 };
}

/// How counters are kept in a file: see [`lancet_isa::runtime`].
#[derive(Clone, Copy, Debug)]
pub struct Keep<'a> {
    pub start_up: StartUp,
    /// At most a page: the header of the file.
    pub header: &'a [u8],
    /// The path of the file.
    pub path: &'a [u8],
    pub sharing: Sharing,
    /// The first number of the table of places where handlers took control away for good, if there shall be one.
    pub cuts: Option<CounterId>,
    /// Something to remember in the image, for whoever reads the file.
    pub notes: &'a [u8],
}

/// Lays out all functions of the plan.
///
/// ```text
/// data chunk   what the run-time code needs, counters
/// code chunk   run-time code | payload | clones | places of the threads' own | unwind tables | notes
/// data chunk   the payload's data
/// ```
pub fn lay_out(
    program: &Program,
    edit: &'static dyn Edit,
    plan: &Plan,
    frame: &Frame<'_>,
) -> Result<Layout, LayoutError> {
    let planned: Vec<FuncId> = plan.funcs().map(|(id, _)| id).collect();
    for id in &planned {
        if let Some(why) = frame.survey.obstacle(*id) {
            return Err(LayoutError::NotEditable { at: program.func(*id).entry, why: why.clone() });
        }
    }
    let forks = if frame.keep.is_some() { Forks::of(program) } else { Forks::default() };
    let mut layout = Layout::default();
    let mut code = CodeChunk { at: frame.at, bytes: Vec::new(), edit };
    let (mut counters, mut forked, mut gates, mut own_places) =
        (Counters::Contended { at: frame.counters.unwrap_or(frame.at) }, frame.at, None::<Gates>, None);
    let mut own = OwnPlaces::default();
    if let Some(keep) = &frame.keep {
        let made = run_time::make(edit, frame.at, keep, plan.counters())?;
        layout.patch.chunks.push(made.data);
        layout.patch.start_up = Some(made.start_up);
        (counters, forked) = (made.counters, made.forked);
        let kind = GateKind { threads: made.cell.is_some(), signals: made.signals.is_some() };
        let Made { state, cell, new_thread, signals, .. } = made;
        let made_gates = Gates { kind, state, cell: cell.unwrap_or_default(), new_thread, signals };
        gates = (kind.threads || kind.signals).then_some(made_gates);
        own_places = made.own_places;
        code = CodeChunk { at: made.code_at, bytes: made.code, edit };
    }
    let payload = plan.payload().map(|module| Payload::reserve(module, &mut code));
    let sees_system_calls = gates.as_ref().is_some_and(|gates| gates.kind.threads);
    let around = Around {
        program,
        edit,
        survey: frame.survey,
        plan,
        counters,
        forks: &forks,
        sees_system_calls,
        old_returns: frame.old_returns,
        traced: frame.traced,
    };

    let make = |piece: &mut Piece, id: &FuncId| plan.of(*id).map(|plan| clone::make(&around, *id, plan, piece));
    let clones: Result<Vec<Option<FuncClone>>, LayoutError> =
        planned.par_iter().map_init(Piece::default, |piece, id| make(piece, id).transpose()).collect();
    let clones: Vec<FuncClone> = clones?.into_iter().flatten().collect();
    let (order, addresses) = assign(&clones, code.end());
    let mut clone_of = vec![u32::MAX; program.funcs().len()];
    clones.iter().enumerate().for_each(|(i, clone)| clone_of[clone.id.0 as usize] = i as u32);
    let payload_at = payload.as_ref().map_or(frame.at, |payload| payload.at);
    let places = Places {
        clones: &clones,
        clone_of: &clone_of,
        addresses: &addresses,
        counters,
        forked,
        payload: payload_at,
        program,
    };
    for (i, j) in order {
        let (clone, at) = (&clones[i], addresses[i][j]);
        let piece = &clone.pieces[j];
        if piece.code.len() > 0 {
            let copy = code.put(at, &piece.code.bytes);
            piece.code.fill(edit, copy, at, &Seen { places: &places, clone: i })?;
            own.counters.extend(piece.code.own_fields(at));
            layout.pieces.push(clone.moved(piece, at));
        }
    }
    let mut arrivals = FxHashMap::default();
    for id in &planned {
        let found = (&mut layout.patch, &mut arrivals, &mut own.cells);
        redirect(&around, &places, gates.as_ref(), *id, &mut code, found)?;
        tables(&around, &places, *id, &mut layout.patch)?;
    }
    let signals = gates.and_then(|gates| gates.signals);
    if let Some(signals) = &signals {
        let (at, end) = (code.at, code.end());
        edit.fill(&mut code.bytes, at, signals.text_end, end)?;
    }
    let mut sections = vec![(".lancet.text", Part { start: code.at, end: code.end() })];
    if let Some(field) = own_places {
        let at = code.at;
        let (section, list) = lists::PLACES.put(&mut code, &own.to_bytes(at));
        edit.fill(&mut code.bytes, at, field, list)?;
        sections.push((lists::PLACES.section, section));
    }
    // What was rewritten before moves now, so its list is no longer true.
    if let Some((at, &[first, ..])) = lists::PLACES.find(program.image()) {
        layout.patch.overwrites.push(Overwrite { at, old: vec![first], new: vec![runtime::UNKNOWN_PLACES] });
    }
    // In a process, pointers are where nobody knows.
    if frame.counters.is_none() {
        let mark = |code: Option<&[u8]>| code.map(|code| edit.landing_mark(code));
        let keeps_mark = |old: Svma, new: Svma| {
            let new = (new - code.at) as usize;
            mark(program.image().bytes_from(old)) == mark(code.bytes.get(new..))
        };
        arrivals.retain(|old, new| keeps_mark(*old, *new));
        layout.patch.repoints.extend(pointers::repoints(program.image(), edit, arrivals));
    }
    let tables_at = code.aligned_end();
    // In a process nobody would find new tables: its unwinder was told long ago where they are.
    let is_file = frame.counters.is_none();
    if is_file && let Some(tables) = unwind::tables(program.image(), &layout.pieces, signals.as_ref(), tables_at)? {
        code.put(tables_at, &tables.bytes);
        sections.push((".gcc_except_table", tables.lsdas));
        sections.push((".eh_frame", tables.eh_frame));
        sections.push((".eh_frame_hdr", tables.eh_frame_hdr));
        layout.patch.eh_frame_hdr = Some(tables.eh_frame_hdr);
    }
    if let Some(keep) = frame.keep.as_ref().filter(|keep| !keep.notes.is_empty()) {
        let (section, _) = lists::NOTES.put(&mut code, keep.notes);
        sections.push((lists::NOTES.section, section));
    }
    let sections = sections.into_iter().filter(|(_, range)| range.size() > 0);
    layout.patch.sections.extend(sections.map(|(name, range)| NewSection { name, range }));
    let payload_data = payload.map(|payload| payload.place(program, edit, &mut code)).transpose()?.flatten();
    // Where nothing can be edited, nothing is added either.
    if !code.bytes.is_empty() {
        layout.patch.chunks.push(Chunk { at: code.at, bytes: code.bytes, kind: ChunkKind::Code });
    }
    layout.patch.chunks.extend(payload_data);
    layout.patch.symbols = symbols(program, &layout.pieces);
    Ok(layout)
}

/// New code that grows, with padding in between.
struct CodeChunk {
    at: Svma,
    bytes: Vec<u8>,
    edit: &'static dyn Edit,
}

impl CodeChunk {
    fn end(&self) -> Svma {
        self.at + self.bytes.len() as u64
    }

    fn aligned_end(&self) -> Svma {
        Svma(self.end().0.next_multiple_of(16))
    }

    /// Returns the copy of the bytes.
    fn put(&mut self, at: Svma, bytes: &[u8]) -> &mut [u8] {
        self.edit.pad((at - self.end()) as usize, &mut self.bytes);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        &mut self.bytes[start..]
    }
}

/// Names for the clones of functions that have names. What was stripped stays so.
fn symbols(program: &Program, pieces: &[MovedPiece]) -> Vec<NewSymbol> {
    if program.image().section(".symtab").is_none() {
        return Vec::new();
    }
    let name = |piece: &MovedPiece| {
        let func = program.func(piece.func);
        let name = program.symbol_name(func)?;
        let is_main = piece.old_start <= func.entry && func.entry < piece.old_end;
        let suffix = if is_main { "" } else { ".cold" };
        Some(NewSymbol {
            name: format!("{name}{suffix}.lancet"),
            at: piece.new_start,
            size: piece.new_end - piece.new_start,
        })
    };
    pieces.par_iter().filter_map(name).collect()
}

/// All pieces (by clone and piece) in the order of the old code, and their addresses by clone.
fn assign(clones: &[FuncClone], start: Svma) -> (Vec<(usize, usize)>, Vec<Vec<Svma>>) {
    let mut order: Vec<(Svma, usize, usize)> = Vec::new();
    for (i, clone) in clones.iter().enumerate() {
        order.extend(clone.pieces.iter().enumerate().map(|(j, piece)| (piece.old.start, i, j)));
    }
    order.sort_unstable();
    let mut addresses: Vec<Vec<Svma>> = clones.iter().map(|clone| vec![start; clone.pieces.len()]).collect();
    let mut at = start;
    for &(_, i, j) in &order {
        let piece = &clones[i].pieces[j];
        at = piece.place(at);
        addresses[i][j] = at;
        at = at + u64::from(piece.code.len());
    }
    (order.into_iter().map(|(_, i, j)| (i, j)).collect(), addresses)
}

/// What gates need: see [`lancet_isa::runtime`].
struct Gates {
    kind: GateKind,
    state: Svma,
    cell: Svma,
    new_thread: Svma,
    signals: Option<SignalCode>,
}

/// Jumps in the old text to the clone of a function. The second part of the last argument gets where those lead that
/// stand at entries, the third the fields of gates that lead to a thread's cell.
fn redirect(
    around: &Around<'_>,
    places: &Places<'_>,
    gates: Option<&Gates>,
    id: FuncId,
    code: &mut CodeChunk,
    (patch, arrivals, cells): (&mut Patch, &mut FxHashMap<Svma, Svma>, &mut Vec<Svma>),
) -> Result<(), LayoutError> {
    let Some(editable) = around.survey.editable(id) else { return Ok(()) };
    for redirect in &editable.redirects {
        let Some(mut to) = arrival(around, places, redirect) else { continue };
        if let Some(gates) = gates.filter(|_| may_have_gate(around, redirect)) {
            to = gate(around, gates, to, code, cells)?;
        }
        if redirect.point == around.program.func(id).entry {
            arrivals.insert(redirect.point, to);
        }
        let (at, by) = (redirect.at, redirect.by);
        if let Some(hole) = by {
            patch.overwrites.push(jump(around, at, hole, Reach::Near)?);
        }
        patch.overwrites.push(jump(around, by.unwrap_or(at), to, Reach::Far)?);
    }
    Ok(())
}

/// Control that arrives here comes from elsewhere, and needs nothing that a gate changes.
fn may_have_gate(around: &Around<'_>, redirect: &Redirect) -> bool {
    let func = around.program.func(redirect.func);
    let entry = func.block_starting_at(redirect.point).filter(|block| func.entries.contains(block));
    entry.is_some_and(|block| !func.live_in(block).intersects(around.edit.gate_changes()))
}

/// A gate to `to`.
fn gate(
    around: &Around<'_>,
    gates: &Gates,
    to: Svma,
    code: &mut CodeChunk,
    cells: &mut Vec<Svma>,
) -> Result<Svma, OutOfReach> {
    let mut bytes = Vec::new();
    let fields = around.edit.gate(gates.kind, &mut bytes);
    let at = code.end();
    for (field, dest) in fields {
        let target = match dest {
            GateDest::Target => to,
            GateDest::State => gates.state,
            GateDest::Cell => gates.cell,
            GateDest::NewThread => gates.new_thread,
            GateDest::Signal => gates.signals.map_or(to, |signals| signals.entry),
        };
        around.edit.fill(&mut bytes, at, field, target)?;
        if field.kind == FieldKind::Own {
            cells.push(at + u64::from(field.offset));
        }
    }
    code.put(at, &bytes);
    Ok(at)
}

/// Where control goes that arrives at an old address.
fn arrival(around: &Around<'_>, places: &Places<'_>, redirect: &Redirect) -> Option<Svma> {
    let func = around.program.func(redirect.func);
    let block = func.block_starting_at(redirect.point)?;
    let clone = places.clone_of[redirect.func.0 as usize] as usize;
    let mut returns = places.clones[clone].returns.iter();
    if let Some((_, piece, label)) = returns.find(|(at, _, _)| *at == redirect.point) {
        return places.label(clone, *piece, *label);
    }
    if func.entries.contains(&block) {
        return places.begin(redirect.func, block);
    }
    let ways = &places.clones[clone].table_ways;
    match ways.iter().find(|(edge, _, _)| func.edges[edge.0 as usize].to == block) {
        Some((_, piece, label)) => places.label(clone, *piece, *label),
        None => places.label(clone, places.clones[clone].piece_of(func, block)?, body_of(block)),
    }
}

fn jump(around: &Around<'_>, at: Svma, to: Svma, reach: Reach) -> Result<Overwrite, OutOfReach> {
    let mut new = Vec::new();
    let field = around.edit.jump(reach, &mut new);
    around.edit.fill(&mut new, at, field, to)?;
    let old = around.program.image().bytes(at, new.len() as u64).unwrap_or_default().to_vec();
    Ok(Overwrite { at, old, new })
}

/// Entries of jump tables that lead to the clone of a function.
fn tables(around: &Around<'_>, places: &Places<'_>, id: FuncId, patch: &mut Patch) -> Result<(), LayoutError> {
    let Some(editable) = around.survey.editable(id) else { return Ok(()) };
    let clone = places.clone_of[id.0 as usize] as usize;
    let func = around.program.func(id);
    let cloned = &places.clones[clone];
    let ways: FxHashMap<EdgeId, (u32, Label)> =
        cloned.table_ways.iter().map(|(edge, piece, label)| (*edge, (*piece, *label))).collect();
    for entry in &editable.tables {
        let to = match ways.get(&entry.edge) {
            Some((piece, label)) => places.label(clone, *piece, *label),
            None => {
                cloned.piece_of(func, entry.block).and_then(|piece| places.label(clone, piece, body_of(entry.block)))
            }
        };
        let Some(to) = to else { continue };
        let refused = |why| LayoutError::NotEditable { at: func.entry, why };
        match tables::change(around.program.image(), entry, to).map_err(refused)? {
            Change::Overwrite(overwrite) => patch.overwrites.push(overwrite),
            Change::Repoint(repoint) => patch.repoints.push(repoint),
        }
    }
    Ok(())
}
