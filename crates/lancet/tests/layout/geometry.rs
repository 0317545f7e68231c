//! Nothing overlaps that should not, and every line goes from border to border.

use lancet::report::layout::{Drawing, Line, LinkKind, Picture, Point, Rect, place};

use super::{link, loop_box, node, random_drawing};

fn overlap(a: &Rect, b: &Rect) -> bool {
    a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
}

fn inside(inner: &Rect, outer: &Rect) -> bool {
    outer.x <= inner.x
        && outer.y <= inner.y
        && inner.x + inner.width <= outer.x + outer.width
        && inner.y + inner.height <= outer.y + outer.height
}

/// The loops around a node, innermost first, as far as they make sense.
fn loops_around(drawing: &Drawing, node: usize) -> Vec<usize> {
    let mut around: Vec<usize> = Vec::new();
    let mut next = drawing.nodes[node].in_loop;
    while let Some(l) = next.filter(|&l| l < drawing.loops.len() && !around.contains(&l)) {
        around.push(l);
        next = drawing.loops[l].parent;
    }
    around
}

fn check(drawing: &Drawing, picture: &Picture, context: &str) {
    for (i, a) in picture.nodes.iter().enumerate() {
        let all = Rect { x: -0.01, y: -0.01, width: picture.width + 0.02, height: picture.height + 0.02 };
        assert!(inside(a, &all), "{context}: node {i} is outside the picture");
        for (j, b) in picture.nodes.iter().enumerate().skip(i + 1) {
            assert!(!overlap(a, b), "{context}: nodes {i} and {j} overlap");
        }
        let around = loops_around(drawing, i);
        for (l, r) in picture.loops.iter().enumerate() {
            let Some(r) = r else { continue };
            // Of boxes that are in each other in a circle, any one may be the outer one.
            let circle = around.iter().any(|&o| drawing.loops[o].parent.is_some_and(|p| around.contains(&p) && p >= o));
            match drawing.nodes[i].in_loop {
                Some(own) if own == l => assert!(inside(a, r), "{context}: node {i} is not in its loop {l}"),
                _ if !around.contains(&l) => assert!(!overlap(a, r), "{context}: node {i} is in foreign loop {l}"),
                _ if !circle => assert!(inside(a, r), "{context}: node {i} is not in outer loop {l}"),
                _ => {}
            }
        }
    }
    for line in &picture.lines {
        check_line(picture, line, context);
    }
}

fn check_line(picture: &Picture, line: &Line, context: &str) {
    let context = format!("{context}: line {} to {} ({:?})", line.from, line.to, line.kind);
    let (from, to) = (&picture.nodes[line.from], &picture.nodes[line.to]);
    let (start, end) = (line.points[0], line.points[line.points.len() - 1]);
    assert!((start.y - from.y - from.height).abs() < 0.01, "{context}: does not start at the bottom");
    assert!(from.x < start.x && start.x < from.x + from.width, "{context}: does not start at its node");
    assert!((end.y - to.y).abs() < 0.01, "{context}: does not end at the top");
    assert!(to.x < end.x && end.x < to.x + to.width, "{context}: does not end at its node");
    let last = line.points.len() - 1;
    assert!(line.points[1].y > start.y && line.points[last - 1].y < end.y, "{context}: not downwards at its ends");
    for (a, b) in line.points.iter().zip(&line.points[1..]) {
        assert!((a.x - b.x).abs() < 0.01 || (a.y - b.y).abs() < 0.01, "{context}: slanted at {a:?}");
        let piece = Rect { x: a.x.min(b.x), y: a.y.min(b.y), width: (a.x - b.x).abs(), height: (a.y - b.y).abs() };
        for (n, r) in picture.nodes.iter().enumerate() {
            let within = Rect { x: r.x + 0.1, y: r.y + 0.1, width: r.width - 0.2, height: r.height - 0.2 };
            assert!(!overlap(&piece, &within), "{context}: runs through node {n}");
        }
    }
}

/// Lines that run on top of each other although neither what they come from nor what they lead to is the same.
fn false_joins(picture: &Picture) -> Vec<String> {
    let pieces = |line: &Line| line.points.iter().copied().zip(line.points[1..].to_vec()).collect::<Vec<_>>();
    let mut found = Vec::new();
    for (i, a) in picture.lines.iter().enumerate() {
        for b in &picture.lines[i + 1..] {
            let may_join = a.to == b.to && a.kind == b.kind;
            let may_part = a.from == b.from && a.kind == LinkKind::Indirect && b.kind == LinkKind::Indirect;
            if may_join || may_part {
                continue;
            }
            for p in pieces(a) {
                found.extend(
                    pieces(b)
                        .iter()
                        .filter(|q| on_each_other(p, **q))
                        .map(|q| format!("{} to {} and {} to {}: {p:?} {q:?}", a.from, a.to, b.from, b.to)),
                );
            }
        }
    }
    found
}

fn on_each_other(p: (Point, Point), q: (Point, Point)) -> bool {
    let span = |a: f64, b: f64| (a.min(b), a.max(b));
    let shared = |p: (f64, f64), q: (f64, f64)| p.1.min(q.1) - p.0.max(q.0);
    let is_level = |l: (Point, Point)| (l.0.y - l.1.y).abs() < 0.01;
    match (is_level(p), is_level(q)) {
        (true, true) => (p.0.y - q.0.y).abs() < 1.0 && shared(span(p.0.x, p.1.x), span(q.0.x, q.1.x)) > 1.0,
        (false, false) => (p.0.x - q.0.x).abs() < 1.0 && shared(span(p.0.y, p.1.y), span(q.0.y, q.1.y)) > 1.0,
        _ => false,
    }
}

#[test]
fn nothing_overlaps_on_random_drawings() {
    let (mut lines, mut boxes) = (0, 0);
    for seed in 0..1_500 {
        let drawing = random_drawing(seed);
        let picture = place(&drawing);
        check(&drawing, &picture, &drawing.title);
        let joins = false_joins(&picture);
        assert!(joins.is_empty(), "{}: {joins:#?}", drawing.title);
        lines += picture.lines.len();
        boxes += picture.loops.iter().flatten().count();
    }
    assert!(lines > 10_000 && boxes > 2_000, "the random drawings are too poor: {lines} {boxes}");
}

#[test]
fn the_smallest_drawings() {
    let empty = place(&Drawing::default());
    assert_eq!((empty.nodes.len(), empty.lines.len()), (0, 0));
    let no_nodes =
        Drawing { edges: vec![link(0, 0, LinkKind::Back)], loops: vec![loop_box("", None)], ..Drawing::default() };
    assert_eq!(place(&no_nodes).loops, [None]);
    let alone = Drawing {
        nodes: vec![node("", &[], Some(0))],
        edges: vec![link(0, 0, LinkKind::Back), link(0, 0, LinkKind::Back)],
        loops: vec![loop_box("", Some(0))],
        ..Drawing::default()
    };
    let picture = place(&alone);
    check(&alone, &picture, "one node");
    assert_eq!(picture.lines.len(), 1);
    assert_eq!(picture.lines[0].edges, 2);
}

#[test]
fn a_straight_line_of_blocks_is_drawn_as_one() {
    let nodes = (0..6).map(|n| node(&format!("b{n}"), &["text"], None)).collect();
    let edges = (1..6).map(|n| link(n - 1, n, LinkKind::FallThrough)).collect();
    let picture = place(&Drawing { nodes, edges, ..Drawing::default() });
    assert!(picture.lines.iter().all(|line| line.points.len() == 2), "{:?}", picture.lines);
}

#[test]
fn a_loop_is_entered_from_above_and_left_below() {
    // 0 -> [ 1 -> 2 -> 1 ] -> 3
    let nodes = [None, Some(0), Some(0), None].map(|l| node("block", &["text"], l)).to_vec();
    let edges = [(0, 1), (1, 2), (2, 1), (2, 3)].map(|(a, b)| link(a, b, LinkKind::Taken)).to_vec();
    let drawing = Drawing { nodes, edges, loops: vec![loop_box("loop", None)], ..Drawing::default() };
    let picture = place(&drawing);
    let r = picture.loops[0].expect("the loop has a box");
    assert!(picture.nodes[0].y + picture.nodes[0].height < r.y);
    assert!(picture.nodes[3].y > r.y + r.height);
    // Only the back edge needs corners: two at the bottom, two at the top.
    let corners: Vec<usize> = picture.lines.iter().map(|line| line.points.len() - 2).collect();
    assert_eq!(corners, [0, 0, 4, 0]);
}

/// Far more lanes than can be drawn: the longest lines are left out, and everything else is there.
#[test]
fn a_graph_with_too_many_long_lines_is_drawn_without_the_longest() {
    let n = 600;
    let nodes = (0..n).map(|_| node("b", &[], None)).collect();
    let down = (1..n).map(|i| link(i - 1, i, LinkKind::FallThrough));
    let up = (0..n).map(|i| link(n - 1, i, LinkKind::Back));
    let drawing = Drawing { nodes, edges: down.chain(up).collect(), ..Drawing::default() };
    let picture = place(&drawing);
    let omitted: Vec<&Line> = picture.lines.iter().filter(|line| line.points.is_empty()).collect();
    assert!(!omitted.is_empty() && omitted.len() < n / 2, "{}", omitted.len());
    assert!(omitted.iter().all(|line| line.kind == LinkKind::Back));
}
