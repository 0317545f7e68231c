//! The places that edges take in the rows they pass.
//!
//! An edge that spans several rows gets a *pass* in every row between, so that ordering and coordinates keep a lane
//! free for it. Edges of one kind to the same end share their passes: they join on the way, and a function whose
//! fifty checks all lead to one error exit shows one line into it, not fifty.
//!
//! An edge that goes back up runs around the side: out of the bottom of its source, up a lane of passes beside source
//! and target and everything between, and over into the top of the target.
//!
//! ```text
//!      turn row      +--<--+        The two *turns* are corners in the channel above the target and below the
//!      target        v     |        source. Nothing but their lane ties them to a row, so while the order is being
//!      ...          ...  passes     searched there is a row just for turns, which pulls the lane to its ends. It
//!      source        |     |        is dropped afterwards.
//!      turn row      +-->--+
//! ```

use std::collections::HashMap;

use super::level::{Edge, End, Item};
use super::rank::Ranks;

pub(super) type VertexId = usize;

/// A graph with thousands of edges over thousands of rows would take memory without bound, for a picture that nobody
/// can read. The longest edges are left out once this many passes are needed.
const MOST_PASSES: usize = 120_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Vertex {
    Item(usize),
    /// Where an edge crosses the border of the level, at the top or the bottom.
    Port,
    Pass,
    /// Only in turn rows.
    Turn,
}

/// Ties two vertices of neighbouring rows, turn rows included, while the order is being searched. `up_at` and
/// `low_at` tell where on the vertex it is attached, from 0 (left) to 1 (right).
pub(super) struct Wire {
    pub up: VertexId,
    pub low: VertexId,
    pub up_at: f64,
    pub low_at: f64,
}

/// A piece of line from one row to the next, without turn rows.
pub(super) struct Segment {
    pub up: VertexId,
    pub low: VertexId,
    /// The port, where the vertex is an item with fixed ones.
    pub up_port: Option<usize>,
    pub low_port: Option<usize>,
    /// Leaves its item through the same port as the item's other fans.
    pub fan: bool,
    pub label_width: f64,
}

/// From an item into the lane beside it.
pub(super) struct Turn {
    pub item: VertexId,
    pub port: Option<usize>,
    pub pass: VertexId,
    /// Over the top of the item, or below its bottom.
    pub above: bool,
    /// Of the edge that starts with this turn.
    pub label_width: f64,
}

/// The segments and turns of one edge, from its source to its target.
pub(super) enum Path {
    /// Too long to be drawn: see [`MOST_PASSES`].
    Omitted,
    Down(Vec<usize>),
    Around {
        below: usize,
        up: Vec<usize>,
        above: usize,
    },
}

pub(super) struct Grid {
    pub vertices: Vec<Vertex>,
    /// Top to bottom.
    pub rows: Vec<Row>,
    pub wires: Vec<Wire>,
    pub segments: Vec<Segment>,
    pub turns: Vec<Turn>,
    /// By edge.
    pub paths: Vec<Path>,
    /// By index of the level's ports.
    pub top_ports: Vec<VertexId>,
    pub bottom_ports: Vec<VertexId>,
}

#[derive(Default)]
pub(super) struct Row {
    /// Left to right.
    pub vertices: Vec<VertexId>,
    /// Only there while the order is being searched.
    pub turns: bool,
}

pub(super) fn grid(items: &[Item], edges: &[Edge], ranks: &Ranks, top_ports: usize, bottom_ports: usize) -> Grid {
    let mut b = Builder::new(items, edges, ranks, top_ports, bottom_ports);
    let (mut lanes, longest) = b.affordable_lanes(edges);
    for edge in edges {
        let path = if b.length(edge) > longest {
            Path::Omitted
        } else if b.goes_back(edge) {
            b.around(edge)
        } else {
            let lane = lanes.entry((edge.to, edge.kind)).or_default();
            b.down(edge, lane)
        };
        b.grid.paths.push(path);
    }
    b.grid
}

/// The passes of all edges of one kind to one end.
#[derive(Default)]
struct Lane {
    /// Its first row, and the row behind its last.
    first: usize,
    last: usize,
    built: bool,
    /// From `first` on, by row.
    passes: Vec<VertexId>,
    /// The segment below each pass; `None` in turn rows.
    segments: Vec<Option<usize>>,
}

struct Builder<'a> {
    items: &'a [Item],
    /// By item.
    item_row: Vec<usize>,
    item_vertex: Vec<VertexId>,
    grid: Grid,
}

impl<'a> Builder<'a> {
    fn new(items: &'a [Item], edges: &[Edge], ranks: &Ranks, top_ports: usize, bottom_ports: usize) -> Builder<'a> {
        let shift = usize::from(top_ports > 0);
        let last = ranks.count + shift + usize::from(bottom_ports > 0);
        // A turn row before each of these.
        let mut turn_before = vec![false; last + 1];
        for edge in edges {
            if let (Some(from), Some(to)) = (edge.from.item(), edge.to.item())
                && ranks.rank[from] >= ranks.rank[to]
            {
                turn_before[ranks.rank[to] + shift] = true;
                turn_before[ranks.rank[from] + shift + 1] = true;
            }
        }
        let (mut rows, mut row_of_rank) = (Vec::new(), Vec::new());
        for (rank, &turn) in turn_before.iter().enumerate() {
            if turn {
                rows.push(Row { turns: true, ..Row::default() });
            }
            if rank < last {
                row_of_rank.push(rows.len());
                rows.push(Row::default());
            }
        }
        let grid = Grid {
            vertices: Vec::new(),
            rows,
            wires: Vec::new(),
            segments: Vec::new(),
            turns: Vec::new(),
            paths: Vec::with_capacity(edges.len()),
            top_ports: Vec::new(),
            bottom_ports: Vec::new(),
        };
        let item_row = ranks.rank.iter().map(|r| row_of_rank[r + shift]).collect();
        let mut b = Builder { items, item_row, item_vertex: Vec::new(), grid };
        b.item_vertex = (0..items.len()).map(|i| b.add(Vertex::Item(i), b.item_row[i])).collect();
        if let (Some(&top), Some(&bottom)) = (row_of_rank.first(), row_of_rank.last()) {
            b.grid.top_ports = (0..top_ports).map(|_| b.add(Vertex::Port, top)).collect();
            b.grid.bottom_ports = (0..bottom_ports).map(|_| b.add(Vertex::Port, bottom)).collect();
        }
        b
    }

    fn add(&mut self, vertex: Vertex, row: usize) -> VertexId {
        self.grid.vertices.push(vertex);
        let id = self.grid.vertices.len() - 1;
        self.grid.rows[row].vertices.push(id);
        id
    }

    fn goes_back(&self, edge: &Edge) -> bool {
        match (edge.from.item(), edge.to.item()) {
            (Some(from), Some(to)) => self.item_row[from] >= self.item_row[to],
            _ => false,
        }
    }

    fn row_of_source(&self, edge: &Edge) -> usize {
        // The top ports are in the first row that is none of turns.
        edge.from.item().map_or_else(|| self.grid.rows.iter().position(|r| !r.turns).unwrap_or(0), |i| self.item_row[i])
    }

    fn row_of_target(&self, edge: &Edge) -> usize {
        let last = || self.grid.rows.iter().rposition(|r| !r.turns).unwrap_or(0);
        edge.to.item().map_or_else(last, |i| self.item_row[i])
    }

    /// How many rows the edge passes.
    fn length(&self, edge: &Edge) -> usize {
        let (from, to) = (self.row_of_source(edge), self.row_of_target(edge));
        if self.goes_back(edge) { from - to + 1 } else { to.saturating_sub(from + 1) }
    }

    /// The lanes of the edges that can be drawn, and the length of the longest of those.
    fn affordable_lanes(&self, edges: &[Edge]) -> (HashMap<(End, usize), Lane>, usize) {
        let mut longest = usize::MAX;
        loop {
            let mut lanes: HashMap<(End, usize), Lane> = HashMap::new();
            let mut lengths: Vec<usize> = Vec::new();
            for edge in edges.iter().filter(|e| self.length(e) <= longest) {
                if self.goes_back(edge) {
                    lengths.push(self.length(edge));
                    continue;
                }
                let (first, last) = (self.row_of_source(edge) + 1, self.row_of_target(edge));
                let lane = lanes.entry((edge.to, edge.kind)).or_insert_with(|| Lane { first, last, ..Lane::default() });
                lane.first = lane.first.min(first);
            }
            lengths.extend(lanes.values().map(|lane| lane.last.saturating_sub(lane.first)));
            if lengths.iter().sum::<usize>() <= MOST_PASSES {
                return (lanes, longest);
            }
            // Without its longest edge a lane may still have others, so this is only nearer to the goal.
            lengths.sort_unstable();
            let mut passes = 0;
            let affordable = lengths.iter().take_while(|&&length| {
                passes += length;
                passes <= MOST_PASSES
            });
            let next = affordable.last().copied().unwrap_or(0);
            longest = next.min(longest.saturating_sub(1)).min(lengths.last().map_or(0, |l| l.saturating_sub(1)));
        }
    }

    /// The vertex an edge starts from, and where on it.
    fn source(&self, edge: &Edge) -> (VertexId, f64) {
        match edge.from {
            End::Item(i) => (self.item_vertex[i], 0.5),
            End::Port(i, port) => (self.item_vertex[i], self.items[i].fraction(self.items[i].bottom[port])),
            End::Outside(port) => (self.grid.top_ports[port], 0.5),
        }
    }

    fn target(&self, edge: &Edge) -> (VertexId, f64) {
        match edge.to {
            End::Item(i) => (self.item_vertex[i], 0.5),
            End::Port(i, port) => (self.item_vertex[i], self.items[i].fraction(self.items[i].top[port])),
            End::Outside(port) => (self.grid.bottom_ports[port], 0.5),
        }
    }

    fn wire(&mut self, (up, up_at): (VertexId, f64), (low, low_at): (VertexId, f64)) {
        self.grid.wires.push(Wire { up, low, up_at, low_at });
    }

    fn segment(&mut self, up: VertexId, low: VertexId) -> usize {
        let segment = Segment { up, low, up_port: None, low_port: None, fan: false, label_width: 0.0 };
        self.grid.segments.push(segment);
        self.grid.segments.len() - 1
    }

    fn turn(&mut self, item: VertexId, port: Option<usize>, pass: VertexId, above: bool) -> usize {
        self.grid.turns.push(Turn { item, port, pass, above, label_width: 0.0 });
        self.grid.turns.len() - 1
    }

    /// Adds passes in `rows`, wired to each other, and the segments between them.
    fn passes(&mut self, rows: std::ops::Range<usize>) -> (Vec<VertexId>, Vec<Option<usize>>) {
        let passes: Vec<VertexId> = rows.clone().map(|row| self.add(Vertex::Pass, row)).collect();
        for pair in passes.windows(2) {
            self.wire((pair[0], 0.5), (pair[1], 0.5));
        }
        let mut segments = vec![None; passes.len()];
        let mut above: Option<usize> = None;
        for (i, row) in rows.enumerate() {
            if !self.grid.rows[row].turns {
                if let Some(above) = above {
                    segments[above] = Some(self.segment(passes[above], passes[i]));
                }
                above = Some(i);
            }
        }
        (passes, segments)
    }

    fn down(&mut self, edge: &Edge, lane: &mut Lane) -> Path {
        let (from_row, to_row) = (self.row_of_source(edge), self.row_of_target(edge));
        let (source, target) = (self.source(edge), self.target(edge));
        if !lane.built {
            lane.built = true;
            (lane.passes, lane.segments) = self.passes(lane.first..to_row);
            if let Some(&last) = lane.passes.last() {
                self.wire((last, 0.5), target);
            }
            let last_real = (lane.first..to_row).rposition(|row| !self.grid.rows[row].turns);
            if let Some(i) = last_real {
                let segment = self.segment(lane.passes[i], target.0);
                self.grid.segments[segment].low_port = edge.to.port();
                lane.segments[i] = Some(segment);
            }
        }
        let joined = from_row + 1 - lane.first;
        let next = lane.passes.get(joined).map_or(target, |&pass| (pass, 0.5));
        self.wire(source, next);

        let real = (from_row + 1..to_row).position(|row| !self.grid.rows[row].turns).map(|skip| joined + skip);
        let segment = self.segment(source.0, real.map_or(target.0, |i| lane.passes[i]));
        let s = &mut self.grid.segments[segment];
        (s.up_port, s.fan, s.label_width) = (edge.from.port(), edge.fan, edge.label_width);
        s.low_port = if real.is_none() { edge.to.port() } else { None };
        let rest = real.map_or(&[][..], |i| &lane.segments[i..]);
        Path::Down(std::iter::once(segment).chain(rest.iter().copied().flatten()).collect())
    }

    fn around(&mut self, edge: &Edge) -> Path {
        let (from_row, to_row) = (self.row_of_source(edge), self.row_of_target(edge));
        let (source, target) = (self.source(edge), self.target(edge));
        let (passes, segments) = self.passes(to_row..from_row + 1);
        let (first, last) = (passes[0], passes[passes.len() - 1]);
        let (over, under) = (self.add(Vertex::Turn, to_row - 1), self.add(Vertex::Turn, from_row + 1));
        self.wire((over, 0.5), target);
        self.wire((over, 0.5), (first, 0.5));
        self.wire(source, (under, 0.5));
        self.wire((last, 0.5), (under, 0.5));
        let above = self.turn(target.0, edge.to.port(), first, true);
        let below = self.turn(source.0, edge.from.port(), last, false);
        self.grid.turns[below].label_width = edge.label_width;
        Path::Around { below, up: segments.into_iter().rev().flatten().collect(), above }
    }
}

impl Grid {
    /// Drops the turn rows, which have done their work.
    pub(super) fn real_rows(&self) -> Vec<Vec<VertexId>> {
        self.rows.iter().filter(|row| !row.turns).map(|row| row.vertices.clone()).collect()
    }
}
