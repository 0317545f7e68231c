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
mod map;
mod patch;
mod piece;
mod redirect;
mod survey;
mod tables;

use lancet_isa::Svma;
use lancet_isa::edit::{Edit, OutOfReach, Reach};
use rayon::prelude::*;

pub use clone::Counters;
pub use map::{Aside, MovedPiece, Span};
pub use patch::{Chunk, ChunkKind, NewSection, NewSymbol, Overwrite, Patch, Repoint};
pub use survey::{Obstacle, Survey};

use crate::plan::Plan;
use crate::program::{FuncId, Part, Program};
use clone::{Around, FuncClone, Places, body_of};
use redirect::Redirect;
use tables::Change;

/// Memory pages are no smaller.
pub const PAGE: u64 = 4096;

#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    #[error("{0}: new code is too far from the old")]
    TooFar(#[from] OutOfReach),
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
    /// The first address for new code.
    pub code_at: Svma,
    /// Where counters are, given where the new code ends.
    pub counters: Counters,
}

/// Lays out all functions of the plan. Shared counters stand from `counters_at` of the end of the code on.
pub fn lay_out(
    program: &Program,
    edit: &'static dyn Edit,
    plan: &Plan,
    frame: &Frame<'_>,
    counters_at: &dyn Fn(Svma) -> Svma,
) -> Result<Layout, LayoutError> {
    let around = Around { program, edit, survey: frame.survey, plan, counters: frame.counters };
    let planned: Vec<FuncId> = plan.funcs().map(|(id, _)| id).collect();
    for id in &planned {
        if let Some(why) = frame.survey.obstacle(*id) {
            return Err(LayoutError::NotEditable { at: program.func(*id).entry, why: why.clone() });
        }
    }
    let clones: Vec<FuncClone> =
        planned.par_iter().filter_map(|id| plan.of(*id).map(|plan| clone::make(&around, *id, plan))).collect();
    let (addresses, end) = assign(&clones, frame.code_at);
    let mut clone_of = vec![u32::MAX; program.funcs().len()];
    clones.iter().enumerate().for_each(|(i, clone)| clone_of[clone.id.0 as usize] = i as u32);
    let places =
        Places { clones: &clones, clone_of: &clone_of, addresses: &addresses, counters: counters_at(end), program };
    let emitted: Result<Vec<_>, OutOfReach> =
        (0..clones.len()).into_par_iter().map(|i| clone::emit(&around, &places, i)).collect();
    let mut pieces: Vec<(MovedPiece, Vec<u8>)> = emitted?.into_iter().flatten().collect();
    pieces.sort_by_key(|(piece, _)| piece.new_start);
    let mut code = Vec::with_capacity((end - frame.code_at) as usize);
    for (piece, bytes) in &pieces {
        edit.pad((piece.new_start - frame.code_at) as usize - code.len(), &mut code);
        code.extend_from_slice(bytes);
    }
    let mut layout = Layout::default();
    layout.pieces = pieces.into_iter().map(|(piece, _)| piece).collect();
    layout.patch.chunks.push(Chunk { at: frame.code_at, bytes: code, kind: ChunkKind::Code });
    for id in &planned {
        redirect(&around, &places, *id, &mut layout.patch)?;
        tables(&around, &places, *id, &mut layout.patch)?;
    }
    Ok(layout)
}

/// Addresses of all pieces by clone, in the order of the old code, and where they end.
fn assign(clones: &[FuncClone], start: Svma) -> (Vec<Vec<Svma>>, Svma) {
    let mut order: Vec<(Svma, usize, usize)> = Vec::new();
    for (i, clone) in clones.iter().enumerate() {
        order.extend(clone.pieces.iter().enumerate().map(|(j, piece)| (piece.old.start, i, j)));
    }
    order.sort_unstable();
    let mut addresses: Vec<Vec<Svma>> = clones.iter().map(|clone| vec![start; clone.pieces.len()]).collect();
    let mut at = start;
    for (_, i, j) in order {
        let piece = &clones[i].pieces[j];
        at = Svma(at.0.next_multiple_of(piece.alignment()));
        addresses[i][j] = at;
        at = at + u64::from(piece.code.len());
    }
    (addresses, at)
}

/// Jumps in the old text to the clone of a function.
fn redirect(around: &Around<'_>, places: &Places<'_>, id: FuncId, patch: &mut Patch) -> Result<(), LayoutError> {
    let Some(editable) = around.survey.editable(id) else { return Ok(()) };
    for redirect in &editable.redirects {
        let Some(to) = arrival(around, places, redirect) else { continue };
        let (at, by) = (redirect.at, redirect.by);
        if let Some(hole) = by {
            patch.overwrites.push(jump(around, at, hole, Reach::Near)?);
        }
        patch.overwrites.push(jump(around, by.unwrap_or(at), to, Reach::Far)?);
    }
    Ok(())
}

/// Where control goes that arrives at an old address.
fn arrival(around: &Around<'_>, places: &Places<'_>, redirect: &Redirect) -> Option<Svma> {
    let func = around.program.func(redirect.func);
    let block = func.block_starting_at(redirect.point)?;
    if func.entries.contains(&block) {
        return places.begin(redirect.func, block);
    }
    let clone = places.clone_of[redirect.func.0 as usize] as usize;
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
    for entry in &editable.tables {
        let way = cloned.table_ways.iter().find(|(edge, _, _)| *edge == entry.edge);
        let to = match way {
            Some((_, piece, label)) => places.label(clone, *piece, *label),
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

/// The bytes that a code chunk takes, as a part.
pub fn extent(chunk: &Chunk) -> Part {
    Part { start: chunk.at, end: chunk.at + chunk.bytes.len() as u64 }
}
