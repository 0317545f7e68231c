//! What was planned for one function, by point.

use std::ops::Range;

use lancet_isa::{RegSet, Svma};

use crate::plan::{Action, FuncPlan, Insertion, Point};

/// Insertions in the order of their points; those at one point in the order of the plan.
pub(super) struct Planned {
    insertions: Vec<Insertion>,
    /// By kind of point: where its insertions begin. Most functions have them for one or two kinds only, and every
    /// block asks about all.
    first: [u32; KINDS + 1],
}

const KINDS: usize = 6;

/// In the order of the points themselves.
fn kind(point: Point) -> usize {
    match point {
        Point::Entry(_) => 0,
        Point::Exit(_) => 1,
        Point::Edge(_) => 2,
        Point::Block(_) => 3,
        Point::Before(_) => 4,
        Point::After(_) => 5,
    }
}

impl Planned {
    pub fn of(plan: &FuncPlan) -> Planned {
        let mut insertions = plan.insertions.clone();
        insertions.sort_by_key(|insertion| insertion.at);
        let mut first = [0; KINDS + 1];
        insertions.iter().for_each(|insertion| first[kind(insertion.at) + 1] += 1);
        (0..KINDS).for_each(|i| first[i + 1] += first[i]);
        Planned { insertions, first }
    }

    pub fn is_empty(&self) -> bool {
        self.insertions.is_empty()
    }

    pub fn at(&self, point: Point) -> &[Insertion] {
        &self.insertions[self.range(point)]
    }

    /// Where those at a point are.
    pub fn range(&self, point: Point) -> Range<usize> {
        let kind = kind(point);
        let alike = self.first[kind] as usize..self.first[kind + 1] as usize;
        let first = alike.start + self.insertions[alike.clone()].partition_point(|insertion| insertion.at < point);
        let count = self.insertions[first..alike.end].iter().take_while(|insertion| insertion.at == point).count();
        first..first + count
    }

    pub fn action(&self, index: usize) -> Action {
        self.insertions[index].action
    }

    /// Registers whose value those in the range add to counters.
    pub fn registers_read(&self, range: Range<usize>) -> RegSet {
        self.insertions[range].iter().fold(RegSet::EMPTY, |set, insertion| match insertion.action {
            Action::Add { reg, since, .. } => set | RegSet::of(reg) | since.map_or(RegSet::EMPTY, RegSet::of),
            _ => set,
        })
    }

    /// Those around single instructions.
    pub fn at_instructions(&self) -> &[Insertion] {
        &self.insertions[self.first[kind(Point::Before(Svma(0)))] as usize..]
    }
}
