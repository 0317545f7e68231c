//! Drawings of control-flow graphs: what must hold in every picture, on random graphs and on hostile ones; and one
//! picture kept as a golden file.

mod geometry;
mod output;

use lancet::report::layout::{Drawing, Link, LinkKind, LoopBox, NodeBox};

const KINDS: [LinkKind; 5] =
    [LinkKind::Taken, LinkKind::FallThrough, LinkKind::AfterCall, LinkKind::Indirect, LinkKind::Back];

fn node(heading: &str, lines: &[&str], in_loop: Option<usize>) -> NodeBox {
    let lines = lines.iter().map(|l| l.to_string()).collect();
    NodeBox { heading: heading.into(), lines, in_loop, ..NodeBox::default() }
}

fn link(from: usize, to: usize, kind: LinkKind) -> Link {
    Link { from, to, kind, label: None }
}

fn loop_box(label: &str, parent: Option<usize>) -> LoopBox {
    LoopBox { label: label.into(), parent, ..LoopBox::default() }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

/// Any graph with any nesting of boxes, whether the boxes are loops of the graph or not. Some edges, boxes and
/// parents do not exist, and some boxes are in each other.
fn random_drawing(seed: u64) -> Drawing {
    let mut r = Random(seed);
    let (nodes, loops) = (r.below(24), r.below(5));
    let mut drawing = Drawing { title: format!("seed {seed}"), ..Drawing::default() };
    for n in 0..nodes {
        let text = "mov %rax,%rbx ".repeat(1 + r.below(3));
        let lines = vec![text.as_str(); r.below(5)];
        let in_loop = (r.below(3) > 0).then(|| r.below(loops + 1));
        drawing.nodes.push(node(&format!("b{n}"), &lines, in_loop));
    }
    for l in 0..loops {
        drawing.loops.push(loop_box(&format!("loop {l}"), (r.below(2) > 0).then(|| r.below(loops + 1))));
    }
    for n in 1..nodes {
        if r.below(5) > 0 {
            drawing.edges.push(link(n - 1, n, LinkKind::FallThrough));
        }
    }
    for _ in 0..r.below(nodes + 1) {
        let label = (r.below(4) == 0).then(|| r.below(100_000).to_string());
        let (from, to, kind) = (r.below(nodes + 1), r.below(nodes + 1), KINDS[r.below(KINDS.len())]);
        drawing.edges.push(Link { from, to, kind, label });
    }
    drawing
}
