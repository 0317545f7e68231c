//! Edges that arrive together.
//!
//! When several jumps share a jump table (computed goto in an interpreter), an entry of the table leads to one place
//! whichever jump was taken. To count the edges apart, each jump notes its row of counters, and the place where they
//! arrive adds one in its column of that row.

use rustc_hash::FxHashMap;

use crate::plan::{Action, CounterId, FuncPlan, Point};
use crate::program::{BlockId, EdgeId, Func};

#[derive(Debug, Default)]
pub(super) struct Joins {
    pub note: Option<CounterId>,
    /// In order.
    edges: Vec<EdgeId>,
    /// By source: its first counter.
    rows: FxHashMap<BlockId, CounterId>,
    /// By target: its place in a row, and its edges.
    columns: FxHashMap<BlockId, (u32, Vec<EdgeId>)>,
}

impl Joins {
    /// `None` if the counters that are planned for joined edges are not in rows.
    pub fn of(func: &Func, joined: &[EdgeId], plan: &FuncPlan) -> Option<Joins> {
        let mut joins = Joins { note: plan.note, ..Joins::default() };
        let mut counters: FxHashMap<EdgeId, CounterId> = FxHashMap::default();
        for insertion in &plan.insertions {
            if let (Point::Edge(edge), Action::Count(counter)) = (insertion.at, insertion.action)
                && joined.binary_search(&edge).is_ok()
                && counters.insert(edge, counter).is_some()
            {
                return None;
            }
        }
        if counters.is_empty() {
            return Some(joins);
        }
        joins.note?;
        joins.edges = joined.to_vec();
        for id in joined {
            let counter = *counters.get(id)?;
            let edge = func.edges[id.0 as usize];
            let row = *joins.rows.entry(edge.from).or_insert(counter);
            let place = counter.0.checked_sub(row.0)?;
            let (column, edges) = joins.columns.entry(edge.to).or_insert((place, Vec::new()));
            if *column != place {
                return None;
            }
            edges.push(*id);
        }
        Some(joins)
    }

    pub fn contains(&self, edge: EdgeId) -> bool {
        self.edges.binary_search(&edge).is_ok()
    }

    pub fn row(&self, source: BlockId) -> Option<CounterId> {
        self.rows.get(&source).copied()
    }

    pub fn column(&self, target: BlockId) -> Option<u32> {
        self.columns.get(&target).map(|(column, _)| *column)
    }

    pub fn edges_to(&self, target: BlockId) -> Vec<EdgeId> {
        self.columns.get(&target).map_or(Vec::new(), |(_, edges)| edges.clone())
    }
}
