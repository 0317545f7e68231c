//! Takes the drawing apart into levels, and puts the picture together from them.
//!
//! Level 0 is the function; every loop that has nodes is a level of its own. Inner levels are placed first, because
//! a loop's size and ports are needed where it is an item. A line from one loop to another is a chain of edges, one
//! in each level that it passes:
//!
//! ```text
//! inner loop: node -> bottom port | around it: port of the inner loop -> port of the other | other: top port -> node
//! ```
//!
//! Lines of one kind to the same node leave a loop through the same port, and enter one so too.

use std::collections::HashMap;

use super::level::{Edge, End, Item, Level, Placed};
use super::{
    CHAR_WIDTH, Drawing, LINE_HEIGHT, Line, LinkKind, NodeBox, Picture, Point, Rect, SMALL_CHAR_WIDTH, TEXT_PADDING_X,
    TEXT_PADDING_Y, text_width,
};

/// Between a loop's border and what is in it.
const LOOP_PADDING: f64 = 16.0;
/// The same at the top, where lines come in: they bring their own room, and the loop's label stands beside them.
const LOOP_TOP: f64 = 8.0;
const LOOP_TOP_WITHOUT_ENTRY: f64 = 24.0;
/// Labels of merged edges that are written out.
const MOST_LABELS: usize = 4;
/// Every line costs a piece for each border that it crosses. If that is too much, only outer loops get a box.
const MOST_PIECES: usize = 100_000;
const DEPTHS: [usize; 5] = [usize::MAX, 32, 8, 2, 0];

pub(super) fn place(drawing: &Drawing) -> Picture {
    let mut lines = merge(drawing);
    let tree = Tree::affordable(drawing, &lines);
    let mut plan = Plan::new(drawing, &tree);
    let chains: Vec<Vec<Piece>> = lines.iter().map(|line| plan.chain(&tree, line)).collect();
    let edges: usize = plan.levels.iter().map(|level| level.edges.len()).sum();
    for level in &mut plan.levels {
        level.share = level.edges.len() as f64 / edges.max(1) as f64;
    }

    let mut placed: Vec<Placed> = std::iter::repeat_with(Placed::default).take(tree.levels()).collect();
    for &level in tree.outermost_first.iter().rev() {
        let result = plan.levels[level].place();
        if let Some(parent) = tree.parent[level] {
            plan.levels[parent].items[plan.item_of_level[level]] = as_item(&result);
        }
        placed[level] = result;
    }

    let mut picture = Picture {
        width: placed[0].width,
        height: placed[0].height,
        nodes: vec![Rect::default(); drawing.nodes.len()],
        loops: vec![None; drawing.loops.len()],
        lines: Vec::new(),
    };
    let mut origin = vec![Point::default(); tree.levels()];
    for &level in &tree.outermost_first[1..] {
        let Some(parent) = tree.parent[level] else { continue };
        let item = moved(placed[parent].items[plan.item_of_level[level]], origin[parent]);
        picture.loops[level - 1] = Some(item);
        origin[level] = Point { x: item.x + LOOP_PADDING, y: item.y + top_padding(&placed[level]) };
    }
    for (node, rect) in picture.nodes.iter_mut().enumerate() {
        let level = tree.level_of_node[node];
        *rect = moved(placed[level].items[plan.item_of_node[node]], origin[level]);
    }
    for (line, chain) in lines.iter_mut().zip(&chains) {
        for (i, piece) in chain.iter().enumerate() {
            let route = &placed[piece.level].routes[piece.edge];
            let at = origin[piece.level];
            if i == 0 {
                line.label_left = route.label_left;
            }
            line.points.extend(route.points.iter().map(|p| Point { x: p.x + at.x, y: p.y + at.y }));
        }
        if chain.iter().any(|piece| placed[piece.level].routes[piece.edge].points.is_empty()) {
            line.points.clear();
        }
        drop_needless_points(&mut line.points);
    }
    picture.lines = lines;
    picture
}

/// Edges of one kind between the same nodes are one line. Edges to or from nowhere are left out.
fn merge(drawing: &Drawing) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut labels: Vec<Vec<&str>> = Vec::new();
    let mut seen = HashMap::new();
    for link in &drawing.edges {
        if link.from.max(link.to) >= drawing.nodes.len() {
            continue;
        }
        let id = *seen.entry((link.from, link.to, link.kind)).or_insert(lines.len());
        if id == lines.len() {
            let (from, to, kind) = (link.from, link.to, link.kind);
            lines.push(Line { from, to, kind, edges: 0, label: None, label_left: false, points: Vec::new() });
            labels.push(Vec::new());
        }
        lines[id].edges += 1;
        labels[id].extend(link.label.as_deref());
    }
    for (line, labels) in lines.iter_mut().zip(labels) {
        if !labels.is_empty() {
            let more = if labels.len() > MOST_LABELS { ", …" } else { "" };
            line.label = Some(labels[..labels.len().min(MOST_LABELS)].join(", ") + more);
        }
    }
    lines
}

/// Which level is in which. Level `l + 1` is loop `l`.
struct Tree {
    parent: Vec<Option<usize>>,
    depth: Vec<usize>,
    level_of_node: Vec<usize>,
    /// The levels that have nodes, and level 0.
    outermost_first: Vec<usize>,
}

impl Tree {
    /// As deep as can be afforded.
    fn affordable(drawing: &Drawing, lines: &[Line]) -> Tree {
        let mut tree = Tree::new(drawing, 0);
        for depth in DEPTHS {
            tree = Tree::new(drawing, depth);
            let borders =
                |line: &Line| tree.depth[tree.level_of_node[line.from]] + tree.depth[tree.level_of_node[line.to]];
            if lines.iter().map(borders).sum::<usize>() <= MOST_PIECES {
                break;
            }
        }
        tree
    }

    fn new(drawing: &Drawing, deepest: usize) -> Tree {
        let levels = drawing.loops.len() + 1;
        let mut parent: Vec<Option<usize>> = vec![None; levels];
        for (l, stated) in drawing.loops.iter().enumerate() {
            let inside = stated.parent.filter(|&p| p < drawing.loops.len()).map_or(0, |p| p + 1);
            parent[l + 1] = Some(inside);
        }
        let depth = break_cycles(&mut parent);
        let mut by_depth: Vec<usize> = (0..levels).collect();
        by_depth.sort_by_key(|&l| depth[l]);
        // The innermost box around what is in a level.
        let mut boxed: Vec<usize> = (0..levels).collect();
        for &level in by_depth.iter().filter(|&&l| depth[l] > deepest) {
            boxed[level] = boxed[parent[level].unwrap_or(0)];
        }
        let innermost = |n: &NodeBox| n.in_loop.filter(|&l| l < drawing.loops.len()).map_or(0, |l| boxed[l + 1]);
        let level_of_node: Vec<usize> = drawing.nodes.iter().map(innermost).collect();
        let mut used = vec![false; levels];
        used[0] = true;
        for &innermost in &level_of_node {
            let mut level = innermost;
            while !used[level] {
                used[level] = true;
                level = parent[level].unwrap_or(0);
            }
        }
        let outermost_first: Vec<usize> = by_depth.into_iter().filter(|&l| used[l]).collect();
        Tree { parent, depth, level_of_node, outermost_first }
    }

    fn levels(&self) -> usize {
        self.parent.len()
    }
}

/// Makes level 0 the parent wherever following the parents would never end, and returns the depths.
fn break_cycles(parent: &mut [Option<usize>]) -> Vec<usize> {
    let mut depth = vec![usize::MAX; parent.len()];
    depth[0] = 0;
    let mut on_path = vec![false; parent.len()];
    let mut path = Vec::new();
    for start in 0..parent.len() {
        let mut level = start;
        while depth[level] == usize::MAX {
            path.push(level);
            on_path[level] = true;
            let above = parent[level].unwrap_or(0);
            if on_path[above] {
                parent[level] = Some(0);
            }
            level = parent[level].unwrap_or(0);
        }
        let mut reached = depth[level];
        while let Some(level) = path.pop() {
            reached += 1;
            depth[level] = reached;
            on_path[level] = false;
        }
    }
    depth
}

/// One edge of one level.
struct Piece {
    level: usize,
    edge: usize,
}

/// The levels as they are being filled.
struct Plan {
    levels: Vec<Level>,
    item_of_node: Vec<usize>,
    /// In its parent.
    item_of_level: Vec<usize>,
    edges: HashMap<(usize, End, End, usize), usize>,
    /// Ports of a level by what they lead to.
    exits: HashMap<(usize, usize, usize), usize>,
    entries: HashMap<(usize, usize, usize), usize>,
}

impl Plan {
    fn new(drawing: &Drawing, tree: &Tree) -> Plan {
        #[derive(Clone, Copy)]
        enum Member {
            Node(usize),
            Level(usize),
        }
        // Members in the order of their first node.
        let mut members: Vec<Vec<Member>> = vec![Vec::new(); tree.levels()];
        let mut known = vec![false; tree.levels()];
        known[0] = true;
        for (node, &innermost) in tree.level_of_node.iter().enumerate() {
            members[innermost].push(Member::Node(node));
            let mut level = innermost;
            while !std::mem::replace(&mut known[level], true) {
                let parent = tree.parent[level].unwrap_or(0);
                members[parent].push(Member::Level(level));
                level = parent;
            }
        }
        let mut plan = Plan {
            levels: std::iter::repeat_with(Level::default).take(tree.levels()).collect(),
            item_of_node: vec![0; drawing.nodes.len()],
            item_of_level: vec![0; tree.levels()],
            edges: HashMap::new(),
            exits: HashMap::new(),
            entries: HashMap::new(),
        };
        for (level, members) in members.iter().enumerate() {
            for (item, &member) in members.iter().enumerate() {
                let size = match member {
                    Member::Node(node) => {
                        plan.item_of_node[node] = item;
                        measure(&drawing.nodes[node])
                    }
                    Member::Level(inner) => {
                        plan.item_of_level[inner] = item;
                        // Its size is known once it has been placed.
                        Item { width: 0.0, height: 0.0, top: Vec::new(), bottom: Vec::new() }
                    }
                };
                plan.levels[level].items.push(size);
            }
        }
        if !drawing.nodes.is_empty() {
            // The first node is the first member of its level, and so is each level around it.
            plan.levels[0].first.push(0);
        }
        plan
    }

    /// Adds the edges that the line needs, and returns them from its start to its end.
    fn chain(&mut self, tree: &Tree, line: &Line) -> Vec<Piece> {
        let (mut from_level, mut to_level) = (tree.level_of_node[line.from], tree.level_of_node[line.to]);
        let mut from = End::Item(self.item_of_node[line.from]);
        let mut to = End::Item(self.item_of_node[line.to]);
        let (mut pieces, mut entering) = (Vec::new(), Vec::new());
        while from_level != to_level {
            if tree.depth[from_level] >= tree.depth[to_level] {
                let level = &mut self.levels[from_level];
                let port = *self.exits.entry((from_level, line.to, line.kind as usize)).or_insert_with(|| {
                    level.bottom_ports += 1;
                    level.bottom_ports - 1
                });
                pieces.push(self.piece(from_level, from, End::Outside(port), line));
                from = End::Port(self.item_of_level[from_level], port);
                from_level = tree.parent[from_level].unwrap_or(0);
            } else {
                let level = &mut self.levels[to_level];
                if let Some(item) = to.item()
                    && !level.first.contains(&item)
                {
                    level.first.push(item);
                }
                let port = *self.entries.entry((to_level, line.to, line.kind as usize)).or_insert_with(|| {
                    level.top_ports += 1;
                    level.top_ports - 1
                });
                entering.push(self.piece(to_level, End::Outside(port), to, line));
                to = End::Port(self.item_of_level[to_level], port);
                to_level = tree.parent[to_level].unwrap_or(0);
            }
        }
        pieces.push(self.piece(from_level, from, to, line));
        pieces.extend(entering.into_iter().rev());
        pieces
    }

    fn piece(&mut self, level: usize, from: End, to: End, line: &Line) -> Piece {
        let kind = line.kind as usize;
        let edges = &mut self.levels[level].edges;
        let edge = *self.edges.entry((level, from, to, kind)).or_insert(edges.len());
        if edge == edges.len() {
            let at_start = matches!(from, End::Item(_));
            let fan = at_start && line.kind == LinkKind::Indirect;
            let label = line.label.as_deref().filter(|_| at_start && !fan);
            edges.push(Edge {
                from,
                to,
                kind,
                fan,
                label_width: label.map_or(0.0, |l| text_width(l, SMALL_CHAR_WIDTH)),
            });
        }
        Piece { level, edge }
    }
}

fn measure(node: &NodeBox) -> Item {
    let texts = node.lines.iter().chain(std::iter::once(&node.heading));
    let widest = texts.map(|t| text_width(t, CHAR_WIDTH)).fold(0.0, f64::max);
    let count = node.lines.len() + usize::from(!node.heading.is_empty());
    // An even number of pixels, so that the middle is on one.
    let width = ((widest + 2.0 * TEXT_PADDING_X).max(40.0) / 2.0).ceil() * 2.0;
    Item {
        width,
        height: count.max(1) as f64 * LINE_HEIGHT + 2.0 * TEXT_PADDING_Y,
        top: Vec::new(),
        bottom: Vec::new(),
    }
}

/// A placed loop as an item of the level around it.
fn as_item(placed: &Placed) -> Item {
    let from_middle = |ports: &[f64]| ports.iter().map(|x| x - placed.width / 2.0).collect();
    Item {
        width: placed.width + 2.0 * LOOP_PADDING,
        height: placed.height + top_padding(placed) + LOOP_PADDING,
        top: from_middle(&placed.top),
        bottom: from_middle(&placed.bottom),
    }
}

fn top_padding(placed: &Placed) -> f64 {
    if placed.top.is_empty() { LOOP_TOP_WITHOUT_ENTRY } else { LOOP_TOP }
}

fn moved(rect: Rect, by: Point) -> Rect {
    Rect { x: rect.x + by.x, y: rect.y + by.y, ..rect }
}

/// Leaves only the ends and the corners.
fn drop_needless_points(points: &mut Vec<Point>) {
    let mut kept: Vec<Point> = Vec::with_capacity(points.len());
    let same = |a: f64, b: f64| (a - b).abs() < 0.01;
    for &p in points.iter() {
        if kept.last().is_some_and(|last| same(last.x, p.x) && same(last.y, p.y)) {
            continue;
        }
        if let [.., a, b] = kept[..]
            && (same(a.x, b.x) && same(b.x, p.x) || same(a.y, b.y) && same(b.y, p.y))
        {
            kept.pop();
        }
        kept.push(p);
    }
    *points = kept;
}
