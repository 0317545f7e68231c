//! One level of the drawing: the items of one loop, or of the function outside its loops.
//!
//! An item is a node, or a whole loop that has been laid out already. Coordinates start at the level's own top left
//! corner. Edges that cross the level's border end in ports at its top or bottom.

use super::channel::{Channel, Piece, Tracks};
use super::coords::{self, Problem};
use super::ports::{self, Ports};
use super::rows::{self, Grid, Path, Vertex, VertexId};
use super::{Point, Rect, order, rank};

/// Room between what stands beside each other in a row.
struct Gaps {
    items: f64,
    item_and_line: f64,
    lines: f64,
}

const USUAL: Gaps = Gaps { items: 28.0, item_and_line: 16.0, lines: 12.0 };
/// Where that makes a line straight.
const TIGHT: Gaps = Gaps { items: 22.0, item_and_line: 9.0, lines: 9.0 };
/// Less than this apart is straight.
const STRAIGHT: f64 = 0.01;
/// How often to look for something that can be moved to make a line straight.
const ROUNDS: usize = 4;
/// A line is moved along a border by at most this to make it straight.
const LONGEST_SLIDE: f64 = 80.0;
/// Between two lines on a border, and between a line and the corner, when one has been moved.
const CLOSEST: f64 = 8.0;

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
fn distance(grid: &Grid, ports: &Ports, gaps: &Gaps, a: VertexId, b: VertexId) -> f64 {
    let is_item = |v: VertexId| matches!(grid.vertices[v], Vertex::Item(_));
    let gap = match (is_item(a), is_item(b)) {
        (true, true) => gaps.items,
        (false, false) => gaps.lines,
        _ => gaps.item_and_line,
    };
    (ports.width[a] + ports.width[b]) / 2.0 + gap
}

struct Geometry<'a> {
    level: &'a Level,
    grid: &'a Grid,
    rows: &'a [Vec<VertexId>],
    row_of: Vec<usize>,
    /// By vertex: the index in its row.
    position: Vec<usize>,
    ports: Ports,
    /// The middle of each vertex.
    x: Vec<f64>,
}

impl Geometry<'_> {
    fn up_x(&self, segment: usize) -> f64 {
        self.x[self.grid.segments[segment].up] + self.ports.segment_up[segment]
    }

    fn low_x(&self, segment: usize) -> f64 {
        self.x[self.grid.segments[segment].low] + self.ports.segment_low[segment]
    }

    fn turn_x(&self, turn: usize) -> f64 {
        self.x[self.grid.turns[turn].item] + self.ports.turn[turn]
    }

    /// Moves sideways, where there is room, whatever that makes a line straight; then, what still has bent lines, to
    /// where they are short. What is tied by straight lines moves as one, so nothing that was straight is lost.
    fn move_blocks(&mut self) {
        for _ in 0..ROUNDS {
            let straightened = self.move_each(|steps, (left, right)| {
                let fitting = steps.iter().copied().filter(|s| left <= *s && *s <= right);
                fitting.min_by(|a, b| a.abs().total_cmp(&b.abs()))
            });
            let shortened = self.move_each(|steps, (left, right)| {
                steps.sort_by(f64::total_cmp);
                let median = (steps[(steps.len() - 1) / 2] + steps[steps.len() / 2]) / 2.0;
                (left <= right).then(|| median.clamp(left, right))
            });
            if !straightened && !shortened {
                break;
            }
        }
    }

    /// `choose` sees how far each bent line of a block would have to move to be straight, and how far the block can
    /// move to the left and to the right.
    fn move_each(&mut self, choose: impl Fn(&mut [f64], (f64, f64)) -> Option<f64>) -> bool {
        let mut moved = false;
        for (block, ties) in self.blocks() {
            let in_block = |v: VertexId| block.binary_search(&v).is_ok();
            let mut steps: Vec<f64> = ties
                .iter()
                .filter_map(|&id| {
                    let (s, step) = (&self.grid.segments[id], self.up_x(id) - self.low_x(id));
                    match (in_block(s.up), in_block(s.low)) {
                        (true, true) => None,
                        (true, false) => Some(-step),
                        _ => Some(step),
                    }
                })
                .collect();
            // Another block may have moved and made a line straight: then the two belong together.
            if steps.is_empty() || steps.iter().any(|s| s.abs() < STRAIGHT) {
                continue;
            }
            let room = self.room(&block, in_block);
            if let Some(by) = choose(&mut steps, room).filter(|by| by.abs() >= STRAIGHT) {
                block.iter().for_each(|&v| self.x[v] += by);
                moved = true;
            }
        }
        moved
    }

    /// Vertices that straight lines tie together, sorted, with the lines that leave each block.
    fn blocks(&self) -> Vec<(Vec<VertexId>, Vec<usize>)> {
        let mut ties = vec![Vec::new(); self.x.len()];
        for (id, s) in self.grid.segments.iter().enumerate() {
            ties[s.up].push(id);
            ties[s.low].push(id);
        }
        let mut seen = vec![false; self.x.len()];
        let mut blocks = Vec::new();
        for &start in self.rows.iter().flatten() {
            if std::mem::replace(&mut seen[start], true) {
                continue;
            }
            let (mut block, mut leaving) = (vec![start], Vec::new());
            let mut next = 0;
            while let Some(&v) = block.get(next) {
                next += 1;
                for &id in &ties[v] {
                    let s = &self.grid.segments[id];
                    if (self.up_x(id) - self.low_x(id)).abs() >= STRAIGHT {
                        leaving.push(id);
                        continue;
                    }
                    for w in [s.up, s.low] {
                        if !std::mem::replace(&mut seen[w], true) {
                            block.push(w);
                        }
                    }
                }
            }
            block.sort_unstable();
            blocks.push((block, leaving));
        }
        blocks
    }

    /// How far the block can move to the left (not above 0) and to the right.
    fn room(&self, block: &[VertexId], in_block: impl Fn(VertexId) -> bool) -> (f64, f64) {
        block.iter().fold((f64::NEG_INFINITY, f64::INFINITY), |(left, right), &v| {
            let row = &self.rows[self.row_of[v]];
            let before = self.position[v].checked_sub(1).map(|i| row[i]).filter(|&w| !in_block(w));
            let after = row.get(self.position[v] + 1).copied().filter(|&w| !in_block(w));
            let apart = |a, b| distance(self.grid, &self.ports, &TIGHT, a, b);
            (
                before.map_or(left, |w| left.max(self.x[w] + apart(w, v) - self.x[v])),
                after.map_or(right, |w| right.min(self.x[w] - apart(v, w) - self.x[v])),
            )
        })
    }

    /// Removes small steps by moving the line along the border of the item at one of its ends.
    fn slide_ports(&mut self) {
        let mut borders = Borders::new(self.grid, &self.ports);
        let mut steps: Vec<(f64, usize)> = (0..self.grid.segments.len())
            .map(|id| ((self.up_x(id) - self.low_x(id)).abs(), id))
            .filter(|&(step, _)| step >= STRAIGHT && step <= LONGEST_SLIDE)
            .collect();
        steps.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (_, id) in steps {
            let (s, by) = (&self.grid.segments[id], self.up_x(id) - self.low_x(id));
            let half = |v: VertexId| self.ports.width[v] / 2.0;
            let is_free = |v: VertexId, port: Option<usize>| port.is_none() && self.is_item(v);
            let (up, low) = (self.ports.segment_up[id], self.ports.segment_low[id]);
            if is_free(s.low, s.low_port) && borders.slide(s.low, true, low, low + by, half(s.low)) {
                self.ports.segment_low[id] += by;
            } else if is_free(s.up, s.up_port) && !s.fan && borders.slide(s.up, false, up, up - by, half(s.up)) {
                self.ports.segment_up[id] -= by;
            }
        }
    }

    fn is_item(&self, v: VertexId) -> bool {
        matches!(self.grid.vertices[v], Vertex::Item(_))
    }

    fn finish(self) -> Placed {
        let (channels, piece_of) = self.channels(self.rows.len());
        let tracks: Vec<Tracks> = channels.iter().map(Channel::tracks).collect();
        let last = tracks.len() - 1;
        let height_of = |k: usize| {
            let c: &Channel = &channels[k];
            let outermost = k == 0 || k == last;
            let empty = c.under.is_empty() && c.between.is_empty() && c.over.is_empty() && !c.labels;
            if outermost && empty { 0.0 } else { tracks[k].height }
        };
        let item_height = |v: &VertexId| match self.grid.vertices[*v] {
            Vertex::Item(i) => self.level.items[i].height,
            _ => 0.0,
        };
        let mut y = height_of(0);
        // The top and the bottom of every row; channel k lies above row k.
        let (mut top_of, mut bottom_of) = (Vec::new(), vec![0.0]);
        for (k, row) in self.rows.iter().enumerate() {
            top_of.push(y);
            y += row.iter().map(item_height).fold(0.0, f64::max);
            bottom_of.push(y);
            y += height_of(k + 1);
        }
        let left = (0..self.x.len())
            .filter(|&v| self.grid.vertices[v] != Vertex::Turn)
            .map(|v| self.x[v] - self.ports.width[v] / 2.0)
            .fold(f64::INFINITY, f64::min);
        let left = if left.is_finite() { left } else { 0.0 };
        let right = (0..self.x.len())
            .filter(|&v| self.grid.vertices[v] != Vertex::Turn)
            .map(|v| self.x[v] + self.ports.width[v] / 2.0)
            .fold(left, f64::max);

        let rect = |v: VertexId, item: &Item| Rect {
            x: self.x[v] - self.ports.width[v] / 2.0 - left,
            y: top_of[self.row_of[v]],
            width: self.ports.width[v],
            height: item.height,
        };
        let mut items = vec![Rect::default(); self.level.items.len()];
        for (v, vertex) in self.grid.vertices.iter().enumerate() {
            if let Vertex::Item(i) = *vertex {
                items[i] = rect(v, &self.level.items[i]);
            }
        }
        let writer =
            Writer { geometry: &self, tracks: &tracks, top_of: &top_of, bottom_of: &bottom_of, piece_of, left };
        let routes = self.grid.paths.iter().map(|path| writer.route(path, &items)).collect();
        let port_x = |ids: &[VertexId]| ids.iter().map(|&v| self.x[v] - left).collect();
        Placed {
            width: right - left,
            height: y,
            items,
            routes,
            top: port_x(&self.grid.top_ports),
            bottom: port_x(&self.grid.bottom_ports),
        }
    }

    /// What has to be fitted between the rows, and where each segment and turn went.
    fn channels(&self, rows: usize) -> (Vec<Channel>, PieceOf) {
        let empty = || Channel { under: Vec::new(), between: Vec::new(), over: Vec::new(), labels: false };
        let mut channels: Vec<Channel> = std::iter::repeat_with(empty).take(rows + 1).collect();
        let mut piece_of = PieceOf { segment: Vec::new(), turn: Vec::new() };
        let key = |x: f64, v: VertexId| (v, x.to_bits());
        let mut ends_at = std::collections::HashMap::new();
        for (id, s) in self.grid.segments.iter().enumerate() {
            ends_at.entry(key(self.low_x(id), s.low)).or_insert_with(|| (id, 0)).1 += 1;
        }
        let mut starts_at = std::collections::HashMap::new();
        for (id, s) in self.grid.segments.iter().enumerate() {
            let channel = &mut channels[self.row_of[s.low]];
            channel.labels |= s.label_width > 0.0;
            let (from, to) = (self.up_x(id), self.low_x(id));
            if (from - to).abs() < STRAIGHT {
                piece_of.segment.push(None);
                continue;
            }
            // Lines that join below are one net, and so are lines that part above.
            let net = match ends_at[&key(to, s.low)] {
                (first, count) if count > 1 => first,
                _ => *starts_at.entry(key(from, s.up)).or_insert(id),
            };
            piece_of.segment.push(Some(channel.between.len()));
            channel.between.push(Piece { from, to, net });
        }
        for (id, t) in self.grid.turns.iter().enumerate() {
            let piece = Piece { from: self.turn_x(id), to: self.x[t.pass], net: id };
            let row = self.row_of[t.item];
            channels[row + 1].labels |= t.label_width > 0.0;
            let group = if t.above { &mut channels[row].over } else { &mut channels[row + 1].under };
            piece_of.turn.push(group.len());
            group.push(piece);
        }
        (channels, piece_of)
    }
}

/// Indices into the pieces of a channel.
struct PieceOf {
    /// `None` for a straight segment.
    segment: Vec<Option<usize>>,
    turn: Vec<usize>,
}

struct Writer<'a> {
    geometry: &'a Geometry<'a>,
    tracks: &'a [Tracks],
    top_of: &'a [f64],
    /// Of the row above a channel.
    bottom_of: &'a [f64],
    piece_of: PieceOf,
    left: f64,
}

impl Writer<'_> {
    fn route(&self, path: &Path, items: &[Rect]) -> Route {
        let g = self.geometry;
        let mut points = Vec::new();
        let mut to = |x: f64, y: f64| points.push(Point { x: x - self.left, y });
        let label_left = match path {
            Path::Omitted => false,
            Path::Down(segments) => {
                let (first, last) = (segments[0], segments[segments.len() - 1]);
                to(g.up_x(first), self.bottom(g.grid.segments[first].up, items));
                segments.iter().flat_map(|&id| self.corners(id)).for_each(|(x, y)| to(x, y));
                to(g.low_x(last), self.top_of[g.row_of[g.grid.segments[last].low]]);
                g.ports.segment_label_left[first]
            }
            Path::Around { below, up, above } => {
                let (start, end) = (&g.grid.turns[*below], &g.grid.turns[*above]);
                to(g.turn_x(*below), self.bottom(start.item, items));
                to(g.turn_x(*below), self.turn_y(*below));
                to(g.x[start.pass], self.turn_y(*below));
                up.iter().flat_map(|&id| self.corners(id).into_iter().rev()).for_each(|(x, y)| to(x, y));
                to(g.x[end.pass], self.turn_y(*above));
                to(g.turn_x(*above), self.turn_y(*above));
                to(g.turn_x(*above), self.top_of[g.row_of[end.item]]);
                g.ports.turn_label_left[*below]
            }
        };
        Route { points, label_left }
    }

    fn bottom(&self, v: VertexId, items: &[Rect]) -> f64 {
        match self.geometry.grid.vertices[v] {
            Vertex::Item(i) => items[i].y + items[i].height,
            _ => self.bottom_of[self.geometry.row_of[v] + 1],
        }
    }

    /// Of a segment, from top to bottom; none if it is straight.
    fn corners(&self, id: usize) -> Vec<(f64, f64)> {
        let g = self.geometry;
        let channel = g.row_of[g.grid.segments[id].low];
        let Some(piece) = self.piece_of.segment[id] else { return Vec::new() };
        let (tracks, bottom) = (&self.tracks[channel], self.bottom_of[channel]);
        let y = bottom + tracks.between[piece];
        match tracks.jogs[piece] {
            None => vec![(g.up_x(id), y), (g.low_x(id), y)],
            Some(jog) => vec![(g.up_x(id), y), (jog.x, y), (jog.x, bottom + jog.y), (g.low_x(id), bottom + jog.y)],
        }
    }

    fn turn_y(&self, id: usize) -> f64 {
        let turn = &self.geometry.grid.turns[id];
        let (row, piece) = (self.geometry.row_of[turn.item], self.piece_of.turn[id]);
        if turn.above {
            self.bottom_of[row] + self.tracks[row].over[piece]
        } else {
            self.bottom_of[row + 1] + self.tracks[row + 1].under[piece]
        }
    }
}

/// Where lines touch each border, to move them without letting them meet.
struct Borders {
    /// By vertex, sorted offsets from the middle.
    top: Vec<Vec<f64>>,
    bottom: Vec<Vec<f64>>,
}

impl Borders {
    fn new(grid: &Grid, ports: &Ports) -> Borders {
        let mut borders =
            Borders { top: vec![Vec::new(); grid.vertices.len()], bottom: vec![Vec::new(); grid.vertices.len()] };
        for (id, s) in grid.segments.iter().enumerate() {
            borders.bottom[s.up].push(ports.segment_up[id]);
            borders.top[s.low].push(ports.segment_low[id]);
        }
        for (id, t) in grid.turns.iter().enumerate() {
            let border = if t.above { &mut borders.top } else { &mut borders.bottom };
            border[t.item].push(ports.turn[id]);
        }
        borders.top.iter_mut().chain(&mut borders.bottom).for_each(|offsets| offsets.sort_by(f64::total_cmp));
        borders
    }

    /// Moves a line from one place to another, unless it would leave the border or come too near to another line.
    fn slide(&mut self, v: VertexId, at_top: bool, from: f64, to: f64, half_width: f64) -> bool {
        let offsets = if at_top { &mut self.top[v] } else { &mut self.bottom[v] };
        let Some(i) = offsets.iter().position(|&o| o == from) else { return false };
        let left = if i == 0 { -half_width } else { offsets[i - 1] };
        let right = offsets.get(i + 1).copied().unwrap_or(half_width);
        let fits = left + CLOSEST <= to && to <= right - CLOSEST;
        if fits {
            offsets[i] = to;
        }
        fits
    }
}
