//! From the middles of the vertices to the picture of one level: the heights of rows and channels, and the corners
//! of the lines.

use std::collections::HashMap;

use super::channel::{Channel, Piece, Tracks};
use super::level::{Item, Level, Placed, Route};
use super::ports::Ports;
use super::rows::{Grid, Path, Vertex, VertexId};
use super::{Point, Rect};

/// Less than this apart is straight.
pub(super) const STRAIGHT: f64 = 0.01;

pub(super) struct Geometry<'a> {
    pub level: &'a Level,
    pub grid: &'a Grid,
    pub rows: &'a [Vec<VertexId>],
    pub row_of: Vec<usize>,
    /// By vertex: the index in its row.
    pub position: Vec<usize>,
    pub ports: Ports,
    /// The middle of each vertex.
    pub x: Vec<f64>,
}

impl Geometry<'_> {
    pub(super) fn up_x(&self, segment: usize) -> f64 {
        self.x[self.grid.segments[segment].up] + self.ports.segment_up[segment]
    }

    pub(super) fn low_x(&self, segment: usize) -> f64 {
        self.x[self.grid.segments[segment].low] + self.ports.segment_low[segment]
    }

    pub(super) fn turn_x(&self, turn: usize) -> f64 {
        self.x[self.grid.turns[turn].item] + self.ports.turn[turn]
    }

    pub(super) fn finish(self) -> Placed {
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
        let mut ends_at = HashMap::new();
        for (id, s) in self.grid.segments.iter().enumerate() {
            ends_at.entry(key(self.low_x(id), s.low)).or_insert_with(|| (id, 0)).1 += 1;
        }
        let mut starts_at = HashMap::new();
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
