//! One level of the drawing: the items of one loop, or of the function outside its loops.
//!
//! An item is a node, or a whole loop that has been laid out already. Coordinates start at the level's own top left
//! corner. Edges that cross the level's border end in ports at its top or bottom.

use super::coords::{self, Problem};
use super::geometry::Geometry;
use super::ports::{self, Ports};
use super::rows::{self, Grid, Vertex, VertexId};
use super::{Point, Rect, order, rank};

/// Room between what stands beside each other in a row.
pub(super) struct Gaps {
    pub items: f64,
    pub item_and_line: f64,
    pub lines: f64,
}

const USUAL: Gaps = Gaps { items: 28.0, item_and_line: 16.0, lines: 12.0 };

pub(super) struct Item {
    pub width: f64,
    pub height: f64,
    /// Fixed ports at the top, from the middle. Only loops have them.
    pub top: Vec<f64>,
    pub bottom: Vec<f64>,
}

impl Item {
    /// The offset from the middle as a fraction of the width, from 0 (left) to 1 (right).
    pub(super) fn fraction(&self, offset: f64) -> f64 {
        if self.width > 0.0 { offset / self.width + 0.5 } else { 0.5 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum End {
    Item(usize),
    /// A fixed port of an item: at its bottom where an edge starts, at its top where one ends.
    Port(usize, usize),
    /// A port of the level: at its top where an edge starts, at its bottom where one ends.
    Outside(usize),
}

impl End {
    pub(super) fn item(self) -> Option<usize> {
        match self {
            End::Item(item) | End::Port(item, _) => Some(item),
            End::Outside(_) => None,
        }
    }

    pub(super) fn port(self) -> Option<usize> {
        match self {
            End::Port(_, port) => Some(port),
            End::Item(_) | End::Outside(_) => None,
        }
    }
}

pub(super) struct Edge {
    pub from: End,
    pub to: End,
    /// Edges of different kinds do not share lines.
    pub kind: usize,
    /// Leaves its item through the same port as the item's other fans.
    pub fan: bool,
    /// 0 without a label.
    pub label_width: f64,
}

#[derive(Default)]
pub(super) struct Level {
    pub items: Vec<Item>,
    pub edges: Vec<Edge>,
    pub top_ports: usize,
    pub bottom_ports: usize,
    /// The items to start with, the topmost first.
    pub first: Vec<usize>,
    /// Its part of the drawing, from 0 to 1, and so of the time that may be spent.
    pub share: f64,
}

#[derive(Default)]
pub(super) struct Placed {
    pub width: f64,
    pub height: f64,
    pub items: Vec<Rect>,
    pub routes: Vec<Route>,
    /// x of the level's ports.
    pub top: Vec<f64>,
    pub bottom: Vec<f64>,
}

#[derive(Clone, Default)]
pub(super) struct Route {
    pub points: Vec<Point>,
    pub label_left: bool,
}

impl Level {
    pub(super) fn place(&self) -> Placed {
        let inside: Vec<(usize, usize)> =
            self.edges.iter().filter_map(|e| Some((e.from.item()?, e.to.item()?))).collect();
        let ranks = rank::ranks(self.items.len(), &inside, &self.first);
        let mut grid = rows::grid(&self.items, &self.edges, &ranks, self.top_ports, self.bottom_ports);
        order::order(grid.vertices.len(), &mut grid.rows, &grid.wires, self.share);
        let rows = grid.real_rows();
        let (mut row_of, mut position) = (vec![0; grid.vertices.len()], vec![0; grid.vertices.len()]);
        for (row, vertices) in rows.iter().enumerate() {
            for (i, &v) in vertices.iter().enumerate() {
                (row_of[v], position[v]) = (row, i);
            }
        }
        let ports = ports::ports(&self.items, &grid, &position);
        let x = coordinates(&grid, &rows, &position, &ports);
        let mut geometry = Geometry { level: self, grid: &grid, rows: &rows, row_of, position, ports, x };
        geometry.move_blocks();
        geometry.slide_ports();
        geometry.finish()
    }
}

fn coordinates(grid: &Grid, rows: &[Vec<VertexId>], position: &[usize], ports: &Ports) -> Vec<f64> {
    let is_pass: Vec<bool> = grid.vertices.iter().map(|v| *v == Vertex::Pass).collect();
    let distance = |a: VertexId, b: VertexId| distance(grid, ports, &USUAL, a, b);
    let tie = |(id, s): (usize, &rows::Segment)| coords::Tie {
        up: s.up,
        low: s.low,
        up_offset: ports.segment_up[id],
        low_offset: ports.segment_low[id],
    };
    let ties: Vec<coords::Tie> = grid.segments.iter().enumerate().map(tie).collect();
    let problem = Problem { rows, position, ties: &ties, is_pass: &is_pass, distance: &distance };
    coords::coordinates(&problem, &ports.width)
}

/// How far apart the middles of two neighbours in a row must be, at least.
pub(super) fn distance(grid: &Grid, ports: &Ports, gaps: &Gaps, a: VertexId, b: VertexId) -> f64 {
    let is_item = |v: VertexId| matches!(grid.vertices[v], Vertex::Item(_));
    let gap = match (is_item(a), is_item(b)) {
        (true, true) => gaps.items,
        (false, false) => gaps.lines,
        _ => gaps.item_and_line,
    };
    (ports.width[a] + ports.width[b]) / 2.0 + gap
}
