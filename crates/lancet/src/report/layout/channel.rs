//! The horizontal lines between two rows.
//!
//! Every line that does not run straight down needs a horizontal piece, on a *track* of its own where others would
//! run on top of it. Three groups of tracks lie below each other: turns under the upper row, lines from row to row,
//! turns over the lower row. Within a group the order avoids needless crossings: of two lines that both go right,
//! the one that starts further right is the higher one, and the mirror image for lines that go left.

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
    pub height: f64,
}

impl Channel {
    pub(super) fn tracks(&self) -> Tracks {
        // The shortest turn is nearest to its row.
        let (under, under_count) = assign(&self.under, |net| (net.right - net.left, 0.0));
        let (over, over_count) = assign(&self.over, |net| (net.right - net.left, 0.0));
        let (between, between_count) = assign(&self.between, |net| match net.way {
            Way::Right => (0.0, -net.from),
            Way::Left => (1.0, net.from),
            Way::Both => (2.0, net.from),
        });
        let count = under_count + between_count + over_count;
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
    track: usize,
}

/// Gives every net the first track that is free and below those of the nets before it that it must not cross.
/// Returns the track of each piece, and how many there are.
fn assign(pieces: &[Piece], key: impl Fn(&Net) -> (f64, f64)) -> (Vec<usize>, usize) {
    let mut nets: Vec<Net> = Vec::new();
    let mut net_of: std::collections::HashMap<usize, usize> = std::collections::HashMap::new();
    let net_of_piece: Vec<usize> = pieces
        .iter()
        .map(|p| {
            let (left, right) = (p.from.min(p.to), p.from.max(p.to));
            let way = if p.from < p.to { Way::Right } else { Way::Left };
            let id = *net_of.entry(p.net).or_insert(nets.len());
            match nets.get_mut(id) {
                None => nets.push(Net { left, right, from: p.from, way, track: 0 }),
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
    let mut order: Vec<usize> = (0..nets.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (key(&nets[a]), key(&nets[b]));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let mut on_track: Vec<Vec<usize>> = Vec::new();
    for id in order {
        let net = &nets[id];
        let meets = |other: &usize| {
            let other = &nets[*other];
            other.left < net.right + APART && net.left < other.right + APART
        };
        let same_way = |other: &usize| nets[*other].way == net.way && meets(other);
        let lowest = on_track.iter().rposition(|track| track.iter().any(same_way)).map_or(0, |t| t + 1);
        let free = (lowest..on_track.len()).find(|&t| !on_track[t].iter().any(meets)).unwrap_or(on_track.len());
        if free == on_track.len() {
            on_track.push(Vec::new());
        }
        on_track[free].push(id);
        nets[id].track = free;
    }
    (net_of_piece.iter().map(|&id| nets[id].track).collect(), on_track.len())
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
    fn lines_that_do_not_meet_share_a_track() {
        let y = between(&[(0.0, 40.0), (90.0, 50.0)]);
        assert_eq!(y[0], y[1]);
    }
}
