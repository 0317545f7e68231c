//! Writes the picture down as SVG.
//!
//! Colours are in one style sheet, once for light and once for dark backgrounds. Heat is a translucent layer over a
//! node, so it works on both. Text is stretched to the width that the layout reckoned with, whatever font is there.

use std::fmt::{self, Write};

use super::{
    CHAR_WIDTH, Drawing, LINE_HEIGHT, Line, LinkKind, NodeBox, NodeClass, Picture, Point, Rect, SMALL_CHAR_WIDTH,
    TEXT_PADDING_X, TEXT_PADDING_Y, text_width,
};

const MARGIN: f64 = 20.0;
const TITLE_HEIGHT: f64 = 30.0;
const LEGEND_HEIGHT: f64 = 28.0;
/// Radius of the lines' corners.
const CORNER: f64 = 5.0;
/// From a line of text's top to its baseline.
const BASELINE: f64 = 11.5;

const STYLE: &str = "\
svg{background:#fff}\
text{font-family:ui-monospace,'DejaVu Sans Mono','Liberation Mono',Menlo,Consolas,monospace;font-size:12px;white-space:pre;fill:#1f2328}\
.title{font-weight:bold;font-size:14px}\
.head{font-weight:bold}\
.small{font-size:10px;fill:#57606a;paint-order:stroke;stroke:#fff;stroke-width:3px}\
.box{fill:#fff;stroke:#57606a;stroke-width:1.2}\
.entry .box{stroke:#1a7f37;stroke-width:2.4}\
.exit .box{stroke:#8250df;stroke-width:2.4}\
.unknown .box{stroke:#bc4c00;stroke-width:2.4;stroke-dasharray:5 3}\
.heat{fill:#e5484d}\
.loop rect{fill:#0969da;fill-opacity:.06;stroke:#0969da;stroke-opacity:.45}\
.irreducible rect{fill:#bc4c00;stroke:#bc4c00;stroke-opacity:.8;stroke-dasharray:6 4}\
.line path{fill:none;stroke-width:1.4}\
.line:hover path{stroke-width:3}\
.taken path,.taken polygon{stroke:#1a7f37}.taken polygon{fill:#1a7f37}\
.fall path,.fall polygon{stroke:#57606a}.fall polygon{fill:#57606a}\
.call path,.call polygon{stroke:#57606a}.call path{stroke-dasharray:5 3}.call polygon{fill:#57606a}\
.indirect path,.indirect polygon{stroke:#8250df}.indirect path{stroke-dasharray:2 2}.indirect polygon{fill:#8250df}\
.back path,.back polygon{stroke:#0969da}.back path{stroke-width:2.2}.back polygon{fill:#0969da}\
@media (prefers-color-scheme:dark){\
svg{background:#0d1117}\
text{fill:#e6edf3}\
.small{fill:#9198a1;stroke:#0d1117}\
.box{fill:#161b22;stroke:#9198a1}\
.entry .box{stroke:#3fb950}\
.exit .box{stroke:#ab7df8}\
.unknown .box{stroke:#db6d28}\
.loop rect{fill:#4493f8;fill-opacity:.1;stroke:#4493f8}\
.irreducible rect{fill:#db6d28;stroke:#db6d28}\
.taken path,.taken polygon{stroke:#3fb950}.taken polygon{fill:#3fb950}\
.fall path,.fall polygon,.call path,.call polygon{stroke:#9198a1}.fall polygon,.call polygon{fill:#9198a1}\
.indirect path,.indirect polygon{stroke:#ab7df8}.indirect polygon{fill:#ab7df8}\
.back path,.back polygon{stroke:#4493f8}.back polygon{fill:#4493f8}\
}";

/// How each kind of line is called, in the style sheet and for people.
const KINDS: [(LinkKind, &str, &str); 5] = [
    (LinkKind::Taken, "taken", "jump or branch taken"),
    (LinkKind::FallThrough, "fall", "falls through"),
    (LinkKind::AfterCall, "call", "after a call"),
    (LinkKind::Indirect, "indirect", "indirect jump"),
    (LinkKind::Back, "back", "back edge"),
];

pub(super) fn write(drawing: &Drawing, picture: &Picture) -> String {
    let mut out = String::new();
    document(&mut out, drawing, picture).expect("writing to a string does not fail");
    out
}

fn document(out: &mut String, drawing: &Drawing, picture: &Picture) -> fmt::Result {
    let used: Vec<_> = KINDS.iter().filter(|kind| picture.lines.iter().any(|line| line.kind == kind.0)).collect();
    let legend_width: f64 = used.iter().map(|kind| legend_entry_width(kind.2)).sum();
    let content = picture.width.max(text_width(&drawing.title, 8.6)).max(legend_width);
    let width = content + 2.0 * MARGIN;
    let height = picture.height + TITLE_HEIGHT + LEGEND_HEIGHT + 2.0 * MARGIN;
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" xml:space="preserve">"#,
        Px(width),
        Px(height)
    )?;
    writeln!(out, "<title>{}</title>", Escaped(&drawing.title))?;
    writeln!(out, "<style>{STYLE}</style>")?;
    let title_y = MARGIN + 14.0;
    writeln!(out, r#"<text class="title" x="{}" y="{}">{}</text>"#, Px(MARGIN), Px(title_y), Escaped(&drawing.title))?;
    let left = MARGIN + (content - picture.width) / 2.0;
    writeln!(out, r#"<g transform="translate({} {})">"#, Px(left), Px(MARGIN + TITLE_HEIGHT))?;
    loops(out, drawing, picture)?;
    for line in &picture.lines {
        edge(out, drawing, line)?;
    }
    for (node, rect) in drawing.nodes.iter().zip(&picture.nodes) {
        block(out, node, *rect)?;
    }
    for line in &picture.lines {
        label(out, line, picture.nodes[line.to])?;
    }
    writeln!(out, "</g>")?;
    let mut x = MARGIN;
    for (_, class, name) in used {
        let y = height - MARGIN - 4.0;
        writeln!(
            out,
            r#"<g class="line {class}"><path d="M{} {}h24"/></g><text class="small" x="{}" y="{}">{name}</text>"#,
            Px(x),
            Px(y - 3.5),
            Px(x + 30.0),
            Px(y)
        )?;
        x += legend_entry_width(name);
    }
    let omitted = picture.lines.iter().filter(|line| line.points.is_empty()).count();
    if omitted > 0 {
        let y = Px(height - MARGIN - 4.0);
        writeln!(out, r#"<text class="small" x="{}" y="{y}">{omitted} long edges are not drawn</text>"#, Px(x))?;
    }
    writeln!(out, "</svg>")
}

fn legend_entry_width(name: &str) -> f64 {
    30.0 + text_width(name, SMALL_CHAR_WIDTH) + 20.0
}

/// Outer loops first, so that inner ones are on top of them.
fn loops(out: &mut String, drawing: &Drawing, picture: &Picture) -> fmt::Result {
    let mut boxes: Vec<(usize, Rect)> =
        picture.loops.iter().enumerate().filter_map(|(l, r)| Some((l, (*r)?))).collect();
    boxes.sort_by(|a, b| (b.1.width * b.1.height).total_cmp(&(a.1.width * a.1.height)).then(a.0.cmp(&b.0)));
    for (l, r) in boxes {
        let drawn = &drawing.loops[l];
        let class = if drawn.irreducible { "loop irreducible" } else { "loop" };
        write!(
            out,
            r#"<g class="{class}"><rect x="{}" y="{}" width="{}" height="{}" rx="8"/>"#,
            Px(r.x),
            Px(r.y),
            Px(r.width),
            Px(r.height)
        )?;
        if !drawn.label.is_empty() {
            let (x, y) = (Px(r.x + 7.0), Px(r.y + 13.0));
            write!(out, r#"<text class="small" x="{x}" y="{y}">{}</text>"#, Escaped(&drawn.label))?;
        }
        tooltip(out, &drawn.tooltip)?;
        writeln!(out, "</g>")?;
    }
    Ok(())
}

fn edge(out: &mut String, drawing: &Drawing, line: &Line) -> fmt::Result {
    let Some(end) = line.points.last() else { return Ok(()) };
    let (class, kind) = KINDS.iter().find(|k| k.0 == line.kind).map_or(("", ""), |k| (k.1, k.2));
    write!(out, r#"<g class="line {class}"><path d=""#)?;
    path(out, &line.points)?;
    let (x, y) = (end.x, end.y);
    write!(
        out,
        r#""/><polygon points="{},{} {},{} {},{}"/>"#,
        Px(x),
        Px(y - 1.0),
        Px(x - 3.5),
        Px(y - 8.0),
        Px(x + 3.5),
        Px(y - 8.0)
    )?;
    let name = |node: usize| if drawing.nodes[node].heading.is_empty() { "?" } else { &drawing.nodes[node].heading };
    let mut text = format!("{} → {}: {kind}", name(line.from), name(line.to));
    if line.edges > 1 {
        write!(text, " ×{}", line.edges)?;
    }
    if let Some(label) = &line.label {
        write!(text, " ({label})")?;
    }
    tooltip(out, &text)?;
    writeln!(out, "</g>")
}

/// The line with its corners rounded.
fn path(out: &mut String, points: &[Point]) -> fmt::Result {
    let mut last = points[0];
    write!(out, "M{} {}", Px(last.x), Px(last.y))?;
    for (i, &p) in points.iter().enumerate().skip(1) {
        let Some(&next) = points.get(i + 1) else {
            return write!(out, "L{} {}", Px(p.x), Px(p.y));
        };
        let radius = CORNER.min(distance(last, p) / 2.0).min(distance(p, next) / 2.0);
        let (a, b) = (towards(p, last, radius), towards(p, next, radius));
        write!(out, "L{} {}Q{} {} {} {}", Px(a.x), Px(a.y), Px(p.x), Px(p.y), Px(b.x), Px(b.y))?;
        last = p;
    }
    Ok(())
}

fn distance(a: Point, b: Point) -> f64 {
    (a.x - b.x).hypot(a.y - b.y)
}

fn towards(from: Point, to: Point, by: f64) -> Point {
    let length = distance(from, to).max(f64::MIN_POSITIVE);
    Point { x: from.x + (to.x - from.x) / length * by, y: from.y + (to.y - from.y) / length * by }
}

/// Beside the start of the line; the cases of an indirect jump start at one point, so theirs are beside the end, on
/// the side where no other line comes in.
fn label(out: &mut String, line: &Line, target: Rect) -> fmt::Result {
    let (Some(text), [start, .., end]) = (&line.label, &line.points[..]) else { return Ok(()) };
    let (x, y, anchor) = match (line.kind, line.label_left) {
        (LinkKind::Indirect, _) if end.x < target.x + target.width / 2.0 - 1.0 => (end.x - 5.0, end.y - 4.0, "end"),
        (LinkKind::Indirect, _) => (end.x + 5.0, end.y - 4.0, "start"),
        (_, true) => (start.x - 4.0, start.y + 11.0, "end"),
        (_, false) => (start.x + 4.0, start.y + 11.0, "start"),
    };
    let (x, y) = (Px(x), Px(y));
    writeln!(out, r#"<text class="small" x="{x}" y="{y}" text-anchor="{anchor}">{}</text>"#, Escaped(text))
}

fn block(out: &mut String, node: &NodeBox, r: Rect) -> fmt::Result {
    let class = match node.class {
        NodeClass::Plain => "node",
        NodeClass::Entry => "node entry",
        NodeClass::Exit => "node exit",
        NodeClass::Unknown => "node unknown",
    };
    let (x, y, width, height) = (Px(r.x), Px(r.y), Px(r.width), Px(r.height));
    write!(out, r#"<g class="{class}"><rect class="box" x="{x}" y="{y}" width="{width}" height="{height}" rx="3"/>"#)?;
    if let Some(heat) = node.heat.filter(|h| *h > 0.0) {
        let opacity = heat.min(1.0) * 0.6;
        write!(
            out,
            r#"<rect class="heat" x="{x}" y="{y}" width="{width}" height="{height}" rx="3" fill-opacity="{opacity:.2}"/>"#
        )?;
    }
    let heading = std::iter::once((&node.heading, r#" class="head""#)).filter(|(text, _)| !text.is_empty());
    let rows = heading.chain(node.lines.iter().map(|text| (text, "")));
    for (i, (text, class)) in rows.enumerate() {
        if text.trim().is_empty() {
            continue;
        }
        let (x, y) = (Px(r.x + TEXT_PADDING_X), Px(r.y + TEXT_PADDING_Y + i as f64 * LINE_HEIGHT + BASELINE));
        let length = Px(text_width(text, CHAR_WIDTH));
        write!(out, r#"<text{class} x="{x}" y="{y}" textLength="{length}">{}</text>"#, Escaped(text))?;
    }
    tooltip(out, &node.tooltip)?;
    writeln!(out, "</g>")
}

fn tooltip(out: &mut String, text: &str) -> fmt::Result {
    if text.is_empty() { Ok(()) } else { write!(out, "<title>{}</title>", Escaped(text)) }
}

/// A length with at most one digit behind the point.
struct Px(f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        // Never "-0".
        write!(f, "{}", if tenths == 0.0 { 0.0 } else { tenths / 10.0 })
    }
}

/// Text that is safe between tags: no markup, and no character that XML does not allow.
pub(in crate::report) struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\t' | '\n' => f.write_char(c)?,
                '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => f.write_char('\u{fffd}')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
