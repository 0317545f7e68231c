//! Makes lines straight where there is room for it.
//!
//! The coordinates are a compromise between four layouts, so many lines miss being straight by a little. Three kinds
//! of moves repair that, and none of them bends a line that was straight: whole blocks of vertices that are tied by
//! straight lines move sideways; blocks that keep a bend move to where their lines are short; and lines move along the
//! border of the item at one of their ends.

use super::geometry::{Geometry, STRAIGHT};
use super::level::{Gaps, distance};
use super::ports::Ports;
use super::rows::{Grid, Vertex, VertexId};

/// The least room beside something that is moved.
const TIGHT: Gaps = Gaps { items: 22.0, item_and_line: 9.0, lines: 9.0 };
/// How often to look for something that can be moved to make a line straight.
const ROUNDS: usize = 4;
/// A line is moved along a border by at most this to make it straight.
const LONGEST_SLIDE: f64 = 80.0;
/// Between two lines on a border, and between a line and the corner, when one has been moved.
const CLOSEST: f64 = 8.0;

impl Geometry<'_> {
    /// Moves sideways, where there is room, whatever that makes a line straight; then, what still has bent lines, to
    /// where they are short. What is tied by straight lines moves as one, so nothing that was straight is lost.
    pub(super) fn move_blocks(&mut self) {
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
    pub(super) fn slide_ports(&mut self) {
        let mut borders = Borders::new(self.grid, &self.ports);
        let mut steps: Vec<(f64, usize)> = (0..self.grid.segments.len())
            .map(|id| ((self.up_x(id) - self.low_x(id)).abs(), id))
            .filter(|&(step, _)| (STRAIGHT..=LONGEST_SLIDE).contains(&step))
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
