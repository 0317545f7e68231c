//! Left to right in each row, with few crossings.
//!
//! Rows are swept down and up; each vertex goes to the mean position of its neighbours in the row just ordered.
//! After each sweep, neighbours that would cross less the other way round change places. That finds a good order
//! near the one it starts from, so it is done again from other first orders. The best order seen is kept. The effort
//! is bounded: large graphs get fewer starts and fewer sweeps.

use super::rows::{Row, VertexId, Wire};

/// Roughly how many wire visits to spend on a whole drawing.
const EFFORT: f64 = 1_500_000.0;
const MOST_SWEEPS: usize = 16;
const FEWEST_SWEEPS: usize = 4;
const MOST_STARTS: usize = 12;
/// Give up a start when this many sweeps have not found a better order.
const PATIENCE: usize = 5;

/// `share` is the part of the effort to spend here, from 0 to 1.
pub(super) fn order(vertices: usize, rows: &mut [Row], wires: &[Wire], share: f64) {
    let mut search = Search::new(vertices, rows, wires);
    let affordable = (EFFORT * share) as usize / (wires.len() + 1);
    let sweeps = affordable.clamp(FEWEST_SWEEPS, MOST_SWEEPS);
    let starts = (affordable / sweeps).clamp(1, MOST_STARTS);
    let mut best: Vec<Vec<VertexId>> = Vec::new();
    let mut least = usize::MAX;
    for start in 0..starts {
        if least == 0 {
            break;
        }
        search.start(rows, start);
        let mut keep_if_better = |search: &Search, rows: &[Row]| {
            let crossings = search.crossings(rows);
            let better = crossings < least;
            if better {
                least = crossings;
                best = rows.iter().map(|r| r.vertices.clone()).collect();
            }
            (better, crossings)
        };
        keep_if_better(&search, rows);
        let mut since_better = 0;
        for sweep in 0..sweeps {
            if sweep % 2 == 0 {
                (1..rows.len()).for_each(|row| search.sort_by_neighbours(&mut rows[row].vertices, Side::Up));
            } else {
                let upwards = (0..rows.len()).rev().skip(1);
                upwards.for_each(|row| search.sort_by_neighbours(&mut rows[row].vertices, Side::Low));
            }
            search.exchange(rows);
            let (better, crossings) = keep_if_better(&search, rows);
            since_better = if better { 0 } else { since_better + 1 };
            if crossings == 0 || since_better == PATIENCE {
                break;
            }
        }
    }
    for (row, best) in rows.iter_mut().zip(best) {
        row.vertices = best;
    }
}

#[derive(Clone, Copy)]
enum Side {
    Up,
    Low,
}

/// A wire's other end: the vertex, where on it, and where on this one.
#[derive(Clone, Copy)]
struct Tie {
    vertex: VertexId,
    at: f64,
    own_at: f64,
}

struct Search {
    /// By vertex: ties to the row above.
    up: Vec<Vec<Tie>>,
    low: Vec<Vec<Tie>>,
    /// By vertex: its index in its row.
    position: Vec<f64>,
    mean: Vec<f64>,
}

impl Search {
    fn new(vertices: usize, rows: &[Row], wires: &[Wire]) -> Search {
        let (mut up, mut low) = (vec![Vec::new(); vertices], vec![Vec::new(); vertices]);
        for w in wires {
            low[w.up].push(Tie { vertex: w.low, at: w.low_at, own_at: w.up_at });
            up[w.low].push(Tie { vertex: w.up, at: w.up_at, own_at: w.low_at });
        }
        let mut search = Search { up, low, position: vec![0.0; vertices], mean: vec![0.0; vertices] };
        rows.iter().for_each(|row| search.number(&row.vertices));
        search
    }

    fn number(&mut self, row: &[VertexId]) {
        for (i, &v) in row.iter().enumerate() {
            self.position[v] = i as f64;
        }
    }

    /// A first order: as a search from the top comes by. Each number gives another: the search looks at successors
    /// from left to right, from right to left, then some of each.
    fn start(&mut self, rows: &mut [Row], variant: usize) {
        for row in rows.iter_mut() {
            row.vertices.sort_unstable();
        }
        let mut seen = vec![usize::MAX; self.position.len()];
        let mut count = 0;
        let mut stack = Vec::new();
        for v in rows.iter().flat_map(|row| row.vertices.iter().copied()) {
            stack.push(v);
            while let Some(v) = stack.pop() {
                if seen[v] != usize::MAX {
                    continue;
                }
                seen[v] = count;
                count += 1;
                let next = self.low[v].iter().map(|tie| tie.vertex);
                let leftmost_first = match variant {
                    0 => true,
                    1 => false,
                    // Any fixed mixture of the two numbers will do.
                    _ => (v + 1).wrapping_mul(0x9e37_79b1).wrapping_mul(variant) >> 7 & 1 == 0,
                };
                if leftmost_first { stack.extend(next.rev()) } else { stack.extend(next) }
            }
        }
        for row in rows {
            row.vertices.sort_by_key(|&v| seen[v]);
            self.number(&row.vertices);
        }
    }

    fn ties(&self, v: VertexId, side: Side) -> &[Tie] {
        match side {
            Side::Up => &self.up[v],
            Side::Low => &self.low[v],
        }
    }

    fn sort_by_neighbours(&mut self, row: &mut [VertexId], side: Side) {
        for &v in row.iter() {
            let ties = self.ties(v, side);
            // Without neighbours it stays about where it is.
            self.mean[v] = if ties.is_empty() {
                self.position[v]
            } else {
                ties.iter().map(|t| self.position[t.vertex] + t.at - 0.5).sum::<f64>() / ties.len() as f64
            };
        }
        row.sort_by(|&a, &b| self.mean[a].total_cmp(&self.mean[b]));
        self.number(row);
    }

    /// Changes places with the right neighbour wherever that saves crossings.
    fn exchange(&mut self, rows: &mut [Row]) {
        for _ in 0..4 {
            let mut saved = false;
            for row in rows.iter_mut() {
                for i in 1..row.vertices.len() {
                    let (left, right) = (row.vertices[i - 1], row.vertices[i]);
                    if self.is_wide(left) || self.is_wide(right) {
                        continue;
                    }
                    if self.crossings_of_two(right, left) < self.crossings_of_two(left, right) {
                        row.vertices.swap(i - 1, i);
                        (self.position[left], self.position[right]) = (i as f64, (i - 1) as f64);
                        saved = true;
                    }
                }
            }
            if !saved {
                break;
            }
        }
    }

    /// How many wires of the two cross if they stand in this order.
    fn crossings_of_two(&self, left: VertexId, right: VertexId) -> usize {
        let one_side = |side| {
            let place = |tie: &Tie| self.position[tie.vertex] + tie.at;
            let rights = self.ties(right, side);
            let crossed = |l: &Tie| rights.iter().filter(|r| place(r) < place(l)).count();
            self.ties(left, side).iter().map(crossed).sum::<usize>()
        };
        one_side(Side::Up) + one_side(Side::Low)
    }

    /// Comparing a switch of a thousand cases with its neighbours wire by wire costs too much.
    fn is_wide(&self, v: VertexId) -> bool {
        self.up[v].len().max(self.low[v].len()) > 64
    }

    fn crossings(&self, rows: &[Row]) -> usize {
        let mut ends: Vec<(f64, f64)> = Vec::new();
        let mut sum = 0;
        for row in rows {
            ends.clear();
            for &v in &row.vertices {
                let place = |tie: &Tie| (self.position[v] + tie.own_at, self.position[tie.vertex] + tie.at);
                ends.extend(self.low[v].iter().map(place));
            }
            sum += inversions(&mut ends);
        }
        sum
    }
}

/// How many pairs cross: one further left above, and further right below.
fn inversions(ends: &mut [(f64, f64)]) -> usize {
    ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut below: Vec<f64> = ends.iter().map(|e| e.1).collect();
    below.sort_by(f64::total_cmp);
    below.dedup();
    // A Fenwick tree of how many ends lie at or left of a place.
    let mut tree = vec![0usize; below.len() + 1];
    let mut crossings = 0;
    for (seen, end) in ends.iter().enumerate() {
        let place = below.partition_point(|&b| b < end.1) + 1;
        let mut left_or_same = 0;
        let mut i = place;
        while i > 0 {
            left_or_same += tree[i];
            i &= i - 1;
        }
        crossings += seen - left_or_same;
        i = place;
        while i < tree.len() {
            tree[i] += 1;
            i += i & i.wrapping_neg();
        }
    }
    crossings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inversions_agree_with_counting_pairs() {
        let mut state = 7u32;
        for round in 0..200 {
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                f64::from(state >> 24 & 7)
            };
            let mut ends: Vec<(f64, f64)> = (0..round % 12).map(|_| (next(), next())).collect();
            let crosses = |a: &(f64, f64), b: &(f64, f64)| a.0 < b.0 && a.1 > b.1;
            let pairs: usize = ends.iter().map(|a| ends.iter().filter(|b| crosses(a, b)).count()).sum();
            assert_eq!(inversions(&mut ends), pairs, "{ends:?}");
        }
    }

    #[test]
    fn two_crossed_wires_are_uncrossed() {
        let mut rows = vec![Row { vertices: vec![0, 1], turns: false }, Row { vertices: vec![2, 3], turns: false }];
        let wire = |up, low| Wire { up, low, up_at: 0.5, low_at: 0.5 };
        order(4, &mut rows, &[wire(0, 3), wire(1, 2)], 1.0);
        assert_eq!((rows[0].vertices.as_slice(), rows[1].vertices.as_slice()), (&[0, 1][..], &[3, 2][..]));
    }
}
