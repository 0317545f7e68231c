//! The x coordinate of every vertex.
//!
//! The method is Brandes and Köpf's (GD 2001): vertices are aligned with the median of their neighbours, long edges
//! before others, into vertical *blocks* that stay one line. Blocks are then packed. That is done four times, from the
//! top and from the bottom, to the left and to the right, and each vertex takes the mean of its two middle results,
//! which keeps the distances that all four keep. A vertex in a block is shifted so that it is the ports, not the
//! middles, that are in line.

use super::rows::VertexId;

/// One line between neighbouring rows: vertices, and offsets from their middles.
#[derive(Clone, Copy)]
pub(super) struct Tie {
    pub up: VertexId,
    pub low: VertexId,
    pub up_offset: f64,
    pub low_offset: f64,
}

pub(super) struct Problem<'a> {
    pub rows: &'a [Vec<VertexId>],
    /// By vertex: the index in its row.
    pub position: &'a [usize],
    pub ties: &'a [Tie],
    /// By vertex.
    pub is_pass: &'a [bool],
    /// How far apart the middles of two neighbours in a row must be, at least.
    pub distance: &'a dyn Fn(VertexId, VertexId) -> f64,
}

#[derive(Clone, Copy)]
struct Direction {
    /// Align with the row above, or with the row below.
    from_top: bool,
    to_left: bool,
}

/// The middles, by vertex.
pub(super) fn coordinates(problem: &Problem<'_>, width: &[f64]) -> Vec<f64> {
    let ties = TiesByVertex::new(problem);
    let conflicts = problem.conflicts(&ties);
    let mut results = Vec::new();
    for from_top in [true, false] {
        for to_left in [true, false] {
            let direction = Direction { from_top, to_left };
            let blocks = problem.align(&ties, &conflicts, direction);
            results.push((to_left, problem.pack(&blocks, to_left)));
        }
    }
    balance(&mut results, width)
}

/// Indices of ties, sorted from left to right at the other end.
struct TiesByVertex {
    up: Vec<Vec<usize>>,
    low: Vec<Vec<usize>>,
}

impl TiesByVertex {
    fn new(problem: &Problem<'_>) -> TiesByVertex {
        let vertices = problem.position.len();
        let (mut up, mut low) = (vec![Vec::new(); vertices], vec![Vec::new(); vertices]);
        for (id, tie) in problem.ties.iter().enumerate() {
            up[tie.low].push(id);
            low[tie.up].push(id);
        }
        let above = |id: &usize| (problem.position[problem.ties[*id].up], problem.ties[*id].up_offset);
        let below = |id: &usize| (problem.position[problem.ties[*id].low], problem.ties[*id].low_offset);
        let by = |a: (usize, f64), b: (usize, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
        up.iter_mut().for_each(|ids| ids.sort_by(|a, b| by(above(a), above(b))));
        low.iter_mut().for_each(|ids| ids.sort_by(|a, b| by(below(a), below(b))));
        TiesByVertex { up, low }
    }
}

struct Blocks {
    /// By vertex: the block's first vertex stands for it.
    root: Vec<VertexId>,
    /// By vertex: from the root's middle.
    shift: Vec<f64>,
}

impl Problem<'_> {
    fn is_inner(&self, tie: usize) -> bool {
        self.is_pass[self.ties[tie].up] && self.is_pass[self.ties[tie].low]
    }

    /// By tie: crosses a piece of a long edge, which is to stay straight.
    fn conflicts(&self, ties: &TiesByVertex) -> Vec<bool> {
        let mut conflicts = vec![false; self.ties.len()];
        for row in self.rows {
            let (mut checked, mut left) = (0, 0);
            for (i, &v) in row.iter().enumerate() {
                let inner = ties.up[v].iter().find(|&&tie| self.is_inner(tie));
                if inner.is_none() && i + 1 < row.len() {
                    continue;
                }
                let right = inner.map_or(usize::MAX, |&tie| self.position[self.ties[tie].up]);
                for &w in &row[checked..=i] {
                    for &tie in &ties.up[w] {
                        let at = self.position[self.ties[tie].up];
                        if (at < left || at > right) && !self.is_inner(tie) {
                            conflicts[tie] = true;
                        }
                    }
                }
                (checked, left) = (i + 1, right);
            }
        }
        conflicts
    }

    fn align(&self, ties: &TiesByVertex, conflicts: &[bool], direction: Direction) -> Blocks {
        let vertices = self.position.len();
        let mut root: Vec<VertexId> = (0..vertices).collect();
        let mut shift = vec![0.0; vertices];
        let each_row = |row: &Vec<VertexId>| {
            // How far to the right (or left) the row before is taken.
            let mut taken: Option<usize> = None;
            let mut each = |&v: &VertexId| {
                let ids = if direction.from_top { &ties.up[v] } else { &ties.low[v] };
                let middle = if ids.is_empty() { 0..0 } else { (ids.len() - 1) / 2..ids.len() / 2 + 1 };
                let mut choose = |id: &usize| {
                    let tie = self.ties[*id];
                    let (other, by) = if direction.from_top {
                        (tie.up, tie.up_offset - tie.low_offset)
                    } else {
                        (tie.low, tie.low_offset - tie.up_offset)
                    };
                    let at = self.position[other];
                    let free = taken.is_none_or(|t| if direction.to_left { t < at } else { t > at });
                    if free && !conflicts[*id] {
                        (root[v], shift[v]) = (root[other], shift[other] + by);
                        taken = Some(at);
                    }
                    free && !conflicts[*id]
                };
                if direction.to_left {
                    ids[middle].iter().any(&mut choose);
                } else {
                    ids[middle].iter().rev().any(&mut choose);
                }
            };
            if direction.to_left { row.iter().for_each(&mut each) } else { row.iter().rev().for_each(&mut each) }
        };
        if direction.from_top {
            self.rows.iter().for_each(each_row);
        } else {
            self.rows.iter().rev().for_each(each_row);
        }
        Blocks { root, shift }
    }

    /// Places the blocks as far to one side as they go, then moves each back as near to its neighbours as it can.
    /// To the right is to the left in the mirror.
    fn pack(&self, blocks: &Blocks, to_left: bool) -> Vec<f64> {
        let vertices = self.position.len();
        // Which block must be how far beyond which.
        let mut beyond = vec![Vec::new(); vertices];
        let mut waits_for = vec![0usize; vertices];
        for pair in self.rows.iter().flat_map(|row| row.windows(2)) {
            let (a, b) = (pair[0], pair[1]);
            let apart = (self.distance)(a, b) + blocks.shift[a] - blocks.shift[b];
            let (a, b) = if to_left { (a, b) } else { (b, a) };
            beyond[blocks.root[a]].push((blocks.root[b], apart));
            waits_for[blocks.root[b]] += 1;
        }
        let mut order: Vec<VertexId> = (0..vertices).filter(|&v| blocks.root[v] == v && waits_for[v] == 0).collect();
        let mut x = vec![0.0f64; vertices];
        let mut next = 0;
        while let Some(&block) = order.get(next) {
            next += 1;
            for &(to, apart) in &beyond[block] {
                x[to] = x[to].max(x[block] + apart);
                waits_for[to] -= 1;
                if waits_for[to] == 0 {
                    order.push(to);
                }
            }
        }
        for &block in order.iter().rev() {
            let room = beyond[block].iter().map(|&(to, apart)| x[to] - apart).fold(f64::INFINITY, f64::min);
            if room.is_finite() {
                x[block] = x[block].max(room);
            }
        }
        let side = if to_left { 1.0 } else { -1.0 };
        (0..vertices).map(|v| side * x[blocks.root[v]] + blocks.shift[v]).collect()
    }
}

fn balance(results: &mut [(bool, Vec<f64>)], width: &[f64]) -> Vec<f64> {
    let extent = |x: &[f64]| {
        let left = x.iter().zip(width).map(|(x, w)| x - w / 2.0).fold(f64::INFINITY, f64::min);
        let right = x.iter().zip(width).map(|(x, w)| x + w / 2.0).fold(f64::NEG_INFINITY, f64::max);
        (left, right)
    };
    let narrowest = results.iter().map(|(_, x)| extent(x)).min_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)));
    let Some((left, right)) = narrowest else { return Vec::new() };
    for (to_left, x) in results.iter_mut() {
        let own = extent(x);
        let by = if *to_left { left - own.0 } else { right - own.1 };
        x.iter_mut().for_each(|x| *x += by);
    }
    let middle = |v: usize| {
        let mut all: Vec<f64> = results.iter().map(|(_, x)| x[v]).collect();
        all.sort_by(f64::total_cmp);
        (all[1] + all[2]) / 2.0
    };
    (0..width.len()).map(middle).collect()
}
