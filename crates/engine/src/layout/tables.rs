//! Jump tables that lead to the clone.
//!
//! | entries | size known by | what happens |
//! | --- | --- | --- |
//! | pointers that the loader relocates | anything | each is repointed |
//! | addresses | anything | each is overwritten: it is the address of a block of the function |
//! | distances of four bytes | a check or a mask of the index | each is overwritten |
//! | other distances | | the table stays; jumps stand at the old targets |
//!
//! A table whose size was only guessed from its content may be shorter than it seems. Its entries, if they are
//! distances, look like any other number, so they are not touched.

use lancet_isa::{Endian, Svma};
use rustc_hash::FxHashMap;

use super::patch::{Overwrite, Repoint};
use super::survey::Obstacle;
use crate::image::{Image, RelocKind};
use crate::program::{BlockId, EdgeId, EdgeKind, Func, FuncId, JumpTable, Program};

/// A change of one entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TableEdit {
    /// Where the entry is.
    pub place: Svma,
    pub form: Form,
    pub block: BlockId,
    /// The edge that control takes when the jump uses the entry.
    pub edge: EdgeId,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Relocated,
    Address { bytes: u8 },
    Distance { from: Svma },
}

#[derive(Debug, Default)]
pub(super) struct TableSurvey {
    pub edits: Vec<TableEdit>,
    /// Old addresses to which tables and labels still lead.
    pub old_targets: Vec<Svma>,
    /// Edges that arrive at the same place as another: through the same entry, or by the same old address. In order.
    pub joined: Vec<EdgeId>,
}

/// Which function has the table entries in each [`GRANULE`] of the image.
pub(super) struct TableOwners(FxHashMap<u64, Owner>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    One(FuncId),
    Several,
}

impl TableOwners {
    pub fn of(program: &Program) -> TableOwners {
        let mut owners = FxHashMap::default();
        for (i, func) in program.funcs().iter().enumerate() {
            let id = FuncId(i as u32);
            for granule in func.tables.iter().flat_map(granules) {
                let owner = owners.entry(granule).or_insert(Owner::One(id));
                if *owner != Owner::One(id) {
                    *owner = Owner::Several;
                }
            }
        }
        TableOwners(owners)
    }
}

fn places(table: &JumpTable) -> impl Iterator<Item = Svma> {
    let (at, step) = (table.at, u64::from(table.stride));
    (0..table.targets.len() as u64).map(move |i| at + i * step)
}

/// Entries of tables that overlap may start at different addresses, so they are known by the units that they are in.
const GRANULE: u64 = 4;

fn granules(table: &JumpTable) -> impl Iterator<Item = u64> {
    let last_byte = u64::from(table.entry_bytes) - 1;
    places(table).flat_map(move |place| place.0 / GRANULE..=(place + last_byte).0 / GRANULE)
}

/// Where two tables of a function overlap, and an entry that is changed would not lead to the same place by both.
fn conflict<'t>(image: &Image, tables: &'t [JumpTable]) -> Option<&'t JumpTable> {
    let reading = |table: &JumpTable| {
        let offset = table.at.0 % GRANULE.max(u64::from(table.entry_bytes));
        (table.entry_bytes, table.base, offset, is_changed(image, table))
    };
    let readings: Vec<_> = tables.iter().map(reading).collect();
    let mut known: FxHashMap<u64, usize> = FxHashMap::default();
    let differs = |one: usize, other: usize| readings[one] != readings[other] && (readings[one].3 || readings[other].3);
    let conflicting = (0..tables.len()).find(|number| {
        granules(&tables[*number]).any(|granule| differs(*known.entry(granule).or_insert(*number), *number))
    });
    conflicting.map(|number| &tables[number])
}

pub(super) fn survey(program: &Program, owners: &TableOwners, id: FuncId) -> Result<TableSurvey, Obstacle> {
    let func = program.func(id);
    let image = program.image();
    let mut survey = TableSurvey::default();
    // What no table leads to is a label whose address the code takes.
    let reached = func.edges.iter().filter(|edge| edge.kind == EdgeKind::Table);
    let mut labels: Vec<Svma> = reached.map(|edge| func.block(edge.to).start).collect();
    labels.sort_unstable();
    labels.dedup();
    if let Some(table) = conflict(image, &func.tables) {
        return Err(Obstacle::OverlappingTables { at: table.at });
    }
    let mut kept: Vec<Svma> = Vec::new();
    for table in &func.tables {
        if granules(table).any(|granule| owners.0.get(&granule) == Some(&Owner::Several)) {
            return Err(Obstacle::SharedTable { at: table.at });
        }
        if is_changed(image, table) {
            edits_of(image, func, table, &mut survey.edits);
        } else {
            kept.extend(table.targets.iter());
        }
        let mut targets = table.targets.to_vec();
        targets.sort_unstable();
        labels.retain(|label| targets.binary_search(label).is_err());
    }
    survey.edits.sort_by_key(|edit| (edit.place, edit.edge.0));
    kept.extend(labels);
    // Targets outside of the function are others' business.
    kept.retain(|target| func.block_starting_at(*target).is_some());
    kept.sort_unstable();
    kept.dedup();
    survey.joined = joined(func, &survey.edits, &kept);
    survey.edits.dedup_by_key(|edit| edit.place);
    survey.old_targets = kept;
    Ok(survey)
}

fn joined(func: &Func, edits: &[TableEdit], old_targets: &[Svma]) -> Vec<EdgeId> {
    let mut joined = Vec::new();
    for users in edits.chunk_by(|a, b| a.place == b.place) {
        if users.iter().any(|edit| edit.edge != users[0].edge) {
            joined.extend(users.iter().map(|edit| edit.edge));
        }
    }
    let is_old = |edge: &&(BlockId, EdgeId)| old_targets.binary_search(&func.block(edge.0).start).is_ok();
    let through_tables = func.edges.iter().enumerate().filter(|(_, edge)| edge.kind == EdgeKind::Table);
    let mut arrivals: Vec<(BlockId, EdgeId)> = through_tables.map(|(i, edge)| (edge.to, EdgeId(i as u32))).collect();
    arrivals.sort_unstable();
    let arrivals: Vec<(BlockId, EdgeId)> = arrivals.iter().filter(is_old).copied().collect();
    for ways in arrivals.chunk_by(|a, b| a.0 == b.0) {
        // An entry by the same address is another way to it.
        if ways.len() > 1 || func.entries.contains(&ways[0].0) {
            joined.extend(ways.iter().map(|(_, edge)| *edge));
        }
    }
    joined.sort_unstable();
    joined.dedup();
    joined
}

fn is_changed(image: &Image, table: &JumpTable) -> bool {
    match table.base {
        None => {
            !image.kind().is_position_independent()
                || places(table).all(|place| {
                    matches!(image.relocation_at(place).map(|reloc| reloc.kind), Some(RelocKind::Relative(_)))
                })
        }
        Some(_) => table.entry_bytes == 4 && !table.may_go_on(),
    }
}

fn edits_of(image: &Image, func: &Func, table: &JumpTable, edits: &mut Vec<TableEdit>) {
    let Some(jump) = func.block_at(table.jump) else { return };
    let first = func.block(jump).first_edge();
    let form = match table.base {
        Some(from) => Form::Distance { from },
        None if image.kind().is_position_independent() => Form::Relocated,
        None => Form::Address { bytes: table.entry_bytes },
    };
    for (place, target) in places(table).zip(&table.targets) {
        let Some(block) = func.block_starting_at(*target) else { continue };
        let edge = func.successors(jump).iter().position(|edge| edge.to == block && edge.kind == EdgeKind::Table);
        let Some(edge) = edge.map(|i| EdgeId(first + i as u32)) else { continue };
        edits.push(TableEdit { place, form, block, edge });
    }
}

/// What changes when the entry leads to `to`.
pub(super) enum Change {
    Overwrite(Overwrite),
    Repoint(Repoint),
}

pub(super) fn change(image: &Image, edit: &TableEdit, to: Svma) -> Result<Change, Obstacle> {
    let (value, bytes) = match edit.form {
        Form::Relocated => return Ok(Change::Repoint(Repoint { place: edit.place, to })),
        Form::Address { bytes } => (to.0, bytes),
        Form::Distance { from } => (to - from, 4),
    };
    let len = usize::from(bytes);
    let old = image.bytes(edit.place, len as u64).ok_or(Obstacle::NoRoom { at: edit.place })?.to_vec();
    let new = match image.isa().facts().endian {
        Endian::Little => value.to_le_bytes()[..len].to_vec(),
        Endian::Big => value.to_be_bytes()[8 - len..].to_vec(),
    };
    Ok(Change::Overwrite(Overwrite { at: edit.place, old, new }))
}
