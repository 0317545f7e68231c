//! The SVG: well formed whatever the text, the same every time, and one kept to look at.

use std::path::Path;

use lancet::report::layout::{Drawing, Link, LinkKind, NodeClass, svg};

use super::{link, loop_box, node, random_drawing};

/// A search in a table, with a switch behind it: every kind of line, a nest of two loops, heat and labels.
fn example() -> Drawing {
    let mut nodes = vec![
        node("0x1000", &["test %edi,%edi", "jle 0x1060"], None),
        node("0x1010", &["xor %eax,%eax"], Some(0)),
        node("0x1020", &["add $1,%eax", "cmp (%rsi),%eax", "jne 0x1020"], Some(1)),
        node("0x1030", &["call next <&table[1]>"], Some(0)),
        node("0x1038", &["dec %edi", "jne 0x1010"], Some(0)),
        node("0x1040", &["jmp *%rax"], None),
        node("0x1050", &["mov $1,%eax", "ret"], None),
        node("0x1060", &["mov $2,%eax", "ret"], None),
    ];
    nodes[0].class = NodeClass::Entry;
    nodes[5].class = NodeClass::Unknown;
    nodes[6].class = NodeClass::Exit;
    nodes[7].class = NodeClass::Exit;
    nodes[2].heat = Some(1.0);
    nodes[2].tooltip = "1,000,000 times".into();
    let labelled = |from, to, kind, label: &str| Link { from, to, kind, label: Some(label.into()) };
    let edges = vec![
        labelled(0, 1, LinkKind::FallThrough, "10"),
        labelled(0, 7, LinkKind::Taken, "1"),
        link(1, 2, LinkKind::FallThrough),
        labelled(2, 2, LinkKind::Back, "999,990"),
        link(2, 3, LinkKind::FallThrough),
        link(3, 4, LinkKind::AfterCall),
        link(4, 1, LinkKind::Back),
        link(4, 5, LinkKind::FallThrough),
        labelled(5, 6, LinkKind::Indirect, "case 0"),
        labelled(5, 7, LinkKind::Indirect, "case 1"),
        labelled(5, 7, LinkKind::Indirect, "case 2"),
    ];
    let loops = vec![loop_box("loop 0x1010", None), loop_box("loop 0x1020", Some(0))];
    Drawing { title: "search<T> & switch".into(), nodes, edges, loops }
}

#[test]
fn the_golden_picture() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/layout/golden.svg");
    let drawn = svg(&example());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &drawn).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden file can be read");
    assert!(drawn == golden, "the picture has changed: look at it, and run with BLESS=1 if it is right");
}

#[test]
fn the_same_drawing_gives_the_same_picture() {
    for seed in 0..100 {
        let drawing = random_drawing(seed);
        assert_eq!(svg(&drawing), svg(&drawing.clone()), "seed {seed}");
    }
}

/// A minimal reader: every tag is closed in order, every entity is known, no character is forbidden.
fn assert_well_formed(xml: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = xml;
    while let Some(at) = rest.find('<') {
        let text = &rest[..at];
        assert!(!text.contains('>'), "stray > in {text:?}");
        for entity in text.split('&').skip(1) {
            assert!(["amp;", "lt;", "gt;", "quot;"].iter().any(|e| entity.starts_with(e)), "bad entity in {text:?}");
        }
        let end = rest[at..].find('>').expect("a tag ends") + at;
        let tag = &rest[at + 1..end];
        assert!(!tag.contains('<') && tag.matches('"').count().is_multiple_of(2), "bad tag {tag:?}");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        match (tag.starts_with('/'), tag.ends_with('/')) {
            (true, _) => assert_eq!(open.pop(), Some(name), "closed in the wrong order"),
            (false, false) => open.push(name),
            (false, true) => {}
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} left open");
    assert!(!xml.chars().any(|c| c.is_control() && c != '\n'), "a control character");
}

#[test]
fn text_cannot_break_out_of_the_document() {
    let hostile = "</text><script>alert(\"1\")</script>&\u{0}\u{1b}\u{ffff}";
    let mut drawing = example();
    drawing.title = hostile.into();
    drawing.loops[0].label = hostile.into();
    drawing.edges[0].label = Some(hostile.into());
    drawing.nodes[0] = node(hostile, &[hostile, "", "   "], None);
    drawing.nodes[0].tooltip = hostile.into();
    drawing.nodes[0].heat = Some(f64::NAN);
    drawing.nodes[1].heat = Some(f64::INFINITY);
    let drawn = svg(&drawing);
    assert!(!drawn.contains("<script"));
    assert_well_formed(&drawn);
}

#[test]
fn every_drawing_is_well_formed() {
    assert_well_formed(&svg(&Drawing::default()));
    assert_well_formed(&svg(&example()));
    (0..100).for_each(|seed| assert_well_formed(&svg(&random_drawing(seed))));
}
