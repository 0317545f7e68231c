//! Where on a border each line is attached.
//!
//! Loops have fixed ports, which the layout of their inside has chosen. The lines of any other item are spread evenly
//! around the middle of its border, in the order of what they lead to, so that they do not cross right away. A lane
//! beside the item is reached from the outermost ports.

use super::level::Item;
use super::rows::{Grid, Vertex, VertexId};

/// Between two lines on one border.
const GAP: f64 = 14.0;
/// Between the outermost line and the corner.
const CORNER: f64 = 10.0;
/// Further away than any position in a row.
const BESIDE: f64 = 1e9;

pub(super) struct Ports {
    /// By segment and by turn: from the middle of the vertex.
    pub segment_up: Vec<f64>,
    pub segment_low: Vec<f64>,
    pub turn: Vec<f64>,
    /// By segment and by turn: a label at the start goes left of the line.
    pub segment_label_left: Vec<bool>,
    pub turn_label_left: Vec<bool>,
    /// By vertex: wide enough for all its ports.
    pub width: Vec<f64>,
}

/// One line on a border. Several segments, if it is a fan.
struct Attached {
    key: f64,
    ends: Vec<EndOf>,
    label_width: f64,
}

#[derive(Clone, Copy)]
enum EndOf {
    SegmentUp(usize),
    SegmentLow(usize),
    Turn(usize),
}

/// `position` is by vertex: the index in its row.
pub(super) fn ports(items: &[Item], grid: &Grid, position: &[usize]) -> Ports {
    let mut ports = Ports {
        segment_up: vec![0.0; grid.segments.len()],
        segment_low: vec![0.0; grid.segments.len()],
        turn: vec![0.0; grid.turns.len()],
        segment_label_left: vec![false; grid.segments.len()],
        turn_label_left: vec![false; grid.turns.len()],
        width: grid.vertices.iter().map(|v| if let Vertex::Item(i) = v { items[*i].width } else { 0.0 }).collect(),
    };
    let (mut top, mut bottom) = (borders(grid.vertices.len()), borders(grid.vertices.len()));
    let item = |v: VertexId| if let Vertex::Item(i) = grid.vertices[v] { Some(&items[i]) } else { None };
    let at = |v: VertexId, offset: Option<f64>| {
        position[v] as f64 + offset.zip(item(v)).map_or(0.0, |(offset, item)| item.fraction(offset) - 0.5)
    };
    for (id, s) in grid.segments.iter().enumerate() {
        let fixed_up = s.up_port.and_then(|p| Some(item(s.up)?.bottom[p]));
        let fixed_low = s.low_port.and_then(|p| Some(item(s.low)?.top[p]));
        match fixed_up {
            Some(offset) => ports.segment_up[id] = offset,
            None if item(s.up).is_some() => {
                let fan = bottom[s.up].iter_mut().find(|a| s.fan && is_fan(grid, a));
                let (key, end) = (at(s.low, fixed_low), EndOf::SegmentUp(id));
                match fan {
                    Some(fan) => {
                        fan.key += (key - fan.key) / (fan.ends.len() + 1) as f64;
                        fan.ends.push(end);
                    }
                    None => bottom[s.up].push(Attached { key, ends: vec![end], label_width: s.label_width }),
                }
            }
            None => {}
        }
        match fixed_low {
            Some(offset) => ports.segment_low[id] = offset,
            None if item(s.low).is_some() => {
                let ends = vec![EndOf::SegmentLow(id)];
                top[s.low].push(Attached { key: at(s.up, fixed_up), ends, label_width: 0.0 });
            }
            None => {}
        }
    }
    for (id, t) in grid.turns.iter().enumerate() {
        let fixed = t.port.and_then(|p| Some(if t.above { item(t.item)?.top[p] } else { item(t.item)?.bottom[p] }));
        if let Some(offset) = fixed {
            ports.turn[id] = offset;
            continue;
        }
        let side = if position[t.pass] < position[t.item] { -BESIDE } else { BESIDE };
        // Of two turns on one side, the one to the nearer lane is the inner one.
        let border = if t.above { &mut top } else { &mut bottom };
        border[t.item].push(Attached {
            key: side - position[t.pass] as f64,
            ends: vec![EndOf::Turn(id)],
            label_width: t.label_width,
        });
    }
    for border in [top, bottom] {
        for (vertex, attached) in border.into_iter().enumerate() {
            ports.spread(vertex, attached);
        }
    }
    ports
}

fn borders(vertices: usize) -> Vec<Vec<Attached>> {
    std::iter::repeat_with(Vec::new).take(vertices).collect()
}

fn is_fan(grid: &Grid, attached: &Attached) -> bool {
    matches!(attached.ends[0], EndOf::SegmentUp(id) if grid.segments[id].fan)
}

impl Ports {
    fn spread(&mut self, vertex: VertexId, mut attached: Vec<Attached>) {
        if attached.is_empty() {
            return;
        }
        attached.sort_by(|a, b| a.key.total_cmp(&b.key));
        let count = attached.len();
        // Two labels stand left and right of their lines; more than two need the room between the lines.
        let widest = attached.iter().map(|a| a.label_width).fold(0.0, f64::max);
        let gap = if count > 2 && widest > 0.0 { GAP.max((widest / 2.0).ceil() * 2.0 + 10.0) } else { GAP };
        self.width[vertex] = self.width[vertex].max((count - 1) as f64 * gap + 2.0 * CORNER);
        for (i, line) in attached.iter().enumerate() {
            let offset = (i as f64 - (count - 1) as f64 / 2.0) * gap;
            let left = count == 2 && i == 0;
            for &end in &line.ends {
                match end {
                    EndOf::SegmentUp(id) => (self.segment_up[id], self.segment_label_left[id]) = (offset, left),
                    EndOf::SegmentLow(id) => self.segment_low[id] = offset,
                    EndOf::Turn(id) => (self.turn[id], self.turn_label_left[id]) = (offset, left),
                }
            }
        }
    }
}
