//! The horizontal lines between two rows.
//!
//! Every line that does not run straight down needs a horizontal piece, on a *track* of its own where others would
//! run on top of it. Three groups of tracks lie below each other: turns under the upper row, lines from row to row,
//! turns over the lower row. Within a group the order avoids needless crossings: of two lines that both go right,
//! the one that starts further right is the higher one, and the mirror image for lines that go left.
//!
//! Where one line comes down at the same x at which another goes on, the first must be the higher one, or they would
//! run on each other between their tracks. Two lines can ask that of each other. Then one of them comes down
//! a little beside its place, and makes a *jog* to it just above the lower row.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Between two tracks.
const TRACK_GAP: f64 = 9.0;
/// Between the upper row and the first track.
const ABOVE: f64 = 13.0;
/// Between the last track and the lower row: room for an arrow head.
const BELOW: f64 = 17.0;
/// From row to row where all lines run straight.
const STRAIGHT: f64 = 28.0;
/// Lines on one track keep this distance.
const APART: f64 = 6.0;
/// Vertical pieces that are nearer than this look like one.
const COINCIDE: f64 = 4.0;
/// How far beside its place a line with a jog may come down.
const JOGS: [f64; 6] = [5.0, -5.0, 4.0, -4.0, 3.0, -3.0];

/// A horizontal piece that has to go from `from` to `to`, or for a turn, between them. Pieces of one `net` may lie on
/// each other and share a track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub from: f64,
    pub to: f64,
    pub net: usize,
}

pub(super) struct Channel {
    pub under: Vec<Piece>,
    pub between: Vec<Piece>,
    pub over: Vec<Piece>,
    /// A label hangs below the upper row.
    pub labels: bool,
}

/// By piece: how far below the upper row.
pub(super) struct Tracks {
    pub under: Vec<f64>,
    pub between: Vec<f64>,
    pub over: Vec<f64>,
    pub jogs: Vec<Option<Jog>>,
    pub height: f64,
}

/// Come down at `x`, and go to the piece's own `to` at `y`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Jog {
    pub x: f64,
    pub y: f64,
}

impl Channel {
    pub(super) fn tracks(&self) -> Tracks {
        // The shortest turn is nearest to its row.
        let shortest = |net: &Net| (net.right - net.left, 0.0);
        let (under, under_count) = assign(&self.under, shortest, false);
        let (over, over_count) = assign(&self.over, shortest, false);
        let order = |net: &Net| match net.way {
            Way::Right => (0.0, -net.from),
            Way::Left => (1.0, net.from),
            Way::Both => (2.0, net.from),
        };
        let (between, between_count) = assign(&self.between, order, true);
        let jog_x = jogs(&self.between, &between);
        let jog_count = usize::from(jog_x.iter().any(Option::is_some));

        let count = under_count + between_count + jog_count + over_count;
        let above = if self.labels { ABOVE + 8.0 } else { ABOVE };
        let height = match count {
            0 if self.labels => STRAIGHT + 8.0,
            0 => STRAIGHT,
            _ => above + (count - 1) as f64 * TRACK_GAP + BELOW,
        };
        let y = |track: usize| above + track as f64 * TRACK_GAP;
        Tracks {
            under: under.iter().map(|t| y(*t)).collect(),
            between: between.iter().map(|t| y(under_count + t)).collect(),
            over: over.iter().map(|t| y(count - 1 - t)).collect(),
            jogs: jog_x.iter().map(|x| x.map(|x| Jog { x, y: y(under_count + between_count) })).collect(),
            height,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Left,
    Right,
    Both,
}

struct Net {
    left: f64,
    right: f64,
    from: f64,
    way: Way,
}

/// Gives every net the first track that is free, and below those of the nets that must be above it. Returns the track
/// of each piece, and how many there are.
fn assign(pieces: &[Piece], key: impl Fn(&Net) -> (f64, f64), vertical: bool) -> (Vec<usize>, usize) {
    let mut nets: Vec<Net> = Vec::new();
    let mut net_of: HashMap<usize, usize> = HashMap::new();
    let net_of_piece: Vec<usize> = pieces
        .iter()
        .map(|p| {
            let (left, right) = (p.from.min(p.to), p.from.max(p.to));
            let way = if p.from < p.to { Way::Right } else { Way::Left };
            let id = *net_of.entry(p.net).or_insert(nets.len());
            match nets.get_mut(id) {
                None => nets.push(Net { left, right, from: p.from, way }),
                Some(net) => {
                    net.left = net.left.min(left);
                    net.right = net.right.max(right);
                    net.from = if way == Way::Right { net.from.max(p.from) } else { net.from.min(p.from) };
                    net.way = if net.way == way { way } else { Way::Both };
                }
            }
            id
        })
        .collect();
    let mut by_key: Vec<usize> = (0..nets.len()).collect();
    by_key.sort_by(|&a, &b| {
        let (a, b) = (key(&nets[a]), key(&nets[b]));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let must_be_above = if vertical {
        let pairs = coincidences(pieces).map(|(upper, lower)| (net_of_piece[upper], net_of_piece[lower]));
        pairs.filter(|(a, b)| a != b).collect()
    } else {
        Vec::new()
    };

    let mut track_of: Vec<Option<usize>> = vec![None; nets.len()];
    let mut on_track: Vec<Vec<usize>> = Vec::new();
    for id in topological(&by_key, &must_be_above) {
        let net = &nets[id];
        let meets = |other: &usize| {
            let other = &nets[*other];
            other.left < net.right + APART && net.left < other.right + APART
        };
        let same_way = |other: &usize| nets[*other].way == net.way && meets(other);
        let below_same_way = on_track.iter().rposition(|track| track.iter().any(same_way)).map_or(0, |t| t + 1);
        let above = must_be_above.iter().filter(|pair| pair.1 == id).filter_map(|pair| track_of[pair.0]);
        let lowest = above.map(|t| t + 1).fold(below_same_way, usize::max);
        let free = (lowest..on_track.len()).find(|&t| !on_track[t].iter().any(meets)).unwrap_or(on_track.len());
        if free == on_track.len() {
            on_track.push(Vec::new());
        }
        on_track[free].push(id);
        track_of[id] = Some(free);
    }
    (net_of_piece.iter().map(|&id| track_of[id].unwrap_or(0)).collect(), on_track.len())
}

/// Pairs of pieces of different nets where the first starts at the x at which the second ends.
fn coincidences(pieces: &[Piece]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut starts: Vec<usize> = (0..pieces.len()).collect();
    starts.sort_by(|&a, &b| pieces[a].from.total_cmp(&pieces[b].from));
    pieces.iter().enumerate().flat_map(move |(lower, end)| {
        let first = starts.partition_point(|&s| pieces[s].from <= end.to - COINCIDE);
        let near = starts[first..].iter().copied().take_while(|&s| pieces[s].from < end.to + COINCIDE);
        let near: Vec<usize> = near.filter(|&s| pieces[s].net != end.net).collect();
        near.into_iter().map(move |upper| (upper, lower))
    })
}

/// The nets in the given order, but each behind those that must be above it, unless they ask that of each other.
fn topological(order: &[usize], must_be_above: &[(usize, usize)]) -> Vec<usize> {
    let mut rank = vec![0; order.len()];
    order.iter().enumerate().for_each(|(r, &net)| rank[net] = r);
    let mut waits_for = vec![0usize; order.len()];
    must_be_above.iter().for_each(|pair| waits_for[pair.1] += 1);
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..order.len()).filter(|&net| waits_for[net] == 0).map(|net| Reverse(rank[net])).collect();
    let mut done = vec![false; order.len()];
    let mut result = Vec::with_capacity(order.len());
    let mut oldest = 0;
    while result.len() < order.len() {
        while oldest < order.len() && done[order[oldest]] {
            oldest += 1;
        }
        let net = order[ready.pop().map_or(oldest, |r| r.0)];
        if std::mem::replace(&mut done[net], true) {
            continue;
        }
        result.push(net);
        for pair in must_be_above.iter().filter(|pair| pair.0 == net) {
            waits_for[pair.1] = waits_for[pair.1].saturating_sub(1);
            if waits_for[pair.1] == 0 {
                ready.push(Reverse(rank[pair.1]));
            }
        }
    }
    result
}

/// By piece: where it comes down instead of at its end, if it would run on another.
fn jogs(pieces: &[Piece], track: &[usize]) -> Vec<Option<f64>> {
    let mut jogs: Vec<Option<f64>> = vec![None; pieces.len()];
    for (upper, lower) in coincidences(pieces) {
        if track[upper] < track[lower] || jogs[lower].is_some() {
            continue;
        }
        let (net, end) = (pieces[lower].net, pieces[lower].to);
        let clear =
            |x: f64| pieces.iter().filter(|p| p.net != net).all(|p| (p.from - x).abs() > 1.5 && (p.to - x).abs() > 1.5);
        let x = JOGS.iter().map(|by| end + by).find(|&x| clear(x));
        for (p, jog) in pieces.iter().zip(&mut jogs) {
            if p.net == net && p.to == end {
                *jog = x;
            }
        }
    }
    jogs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(pieces: &[(f64, f64)]) -> Vec<f64> {
        let piece = |(net, &(from, to)): (usize, &(f64, f64))| Piece { from, to, net };
        let between = pieces.iter().enumerate().map(piece).collect();
        Channel { under: Vec::new(), between, over: Vec::new(), labels: false }.tracks().between
    }

    #[test]
    fn of_two_lines_to_the_right_the_right_one_is_higher() {
        let y = between(&[(0.0, 100.0), (50.0, 150.0)]);
        assert!(y[1] < y[0]);
        let y = between(&[(100.0, 0.0), (150.0, 50.0)]);
        assert!(y[0] < y[1]);
    }

    #[test]
    fn a_line_that_starts_where_another_ends_is_the_higher_one() {
        let y = between(&[(100.0, 0.0), (50.0, 100.0)]);
        assert!(y[0] < y[1]);
    }

    #[test]
    fn two_lines_that_change_places_need_a_jog() {
        let piece = |net, from, to| Piece { from, to, net };
        let between = vec![piece(0, 0.0, 100.0), piece(1, 100.0, 0.0)];
        let tracks = Channel { under: Vec::new(), between, over: Vec::new(), labels: false }.tracks();
        let lower = usize::from(tracks.between[0] < tracks.between[1]);
        assert!(tracks.jogs[lower].is_none());
        let jog = tracks.jogs[1 - lower].expect("a jog");
        assert!(jog.y > tracks.between[lower] && (jog.x - [100.0, 0.0][1 - lower]).abs() <= 5.0);
    }

    #[test]
    fn lines_that_do_not_meet_share_a_track() {
        let y = between(&[(0.0, 40.0), (90.0, 50.0)]);
        assert_eq!(y[0], y[1]);
    }
}
