//! A drawing in the language of Graphviz: loops are clusters, one inside the other.

use std::fmt::Write;

use super::layout::{Drawing, Link, LinkKind, NodeBox, NodeClass};

/// One `digraph`.
pub fn dot(drawing: &Drawing) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "digraph {} {{", quoted(&drawing.title));
    out.push_str("  graph [fontname=\"monospace\"];\n");
    out.push_str("  node [shape=box, fontname=\"monospace\", fontsize=10];\n");
    out.push_str("  edge [fontname=\"monospace\", fontsize=9];\n");
    write_level(&mut out, drawing, None, 1);
    for edge in &drawing.edges {
        write_edge(&mut out, edge);
    }
    out.push_str("}\n");
    out
}

/// The nodes and loops directly inside a loop, or outside all.
fn write_level(out: &mut String, drawing: &Drawing, inside: Option<usize>, depth: usize) {
    let indent = "  ".repeat(depth);
    for (i, node) in drawing.nodes.iter().enumerate().filter(|(_, node)| node.in_loop == inside) {
        let _ = writeln!(out, "{indent}n{i} [label={}{}];", label(node), class(node.class));
    }
    for (i, inner) in drawing.loops.iter().enumerate().filter(|(_, inner)| inner.parent == inside) {
        let color = if inner.irreducible { "orange" } else { "seagreen" };
        let _ = writeln!(out, "{indent}subgraph cluster_loop{i} {{");
        let _ = writeln!(out, "{indent}  label={}; color={color}; style=rounded;", quoted(&inner.label));
        write_level(out, drawing, Some(i), depth + 1);
        let _ = writeln!(out, "{indent}}}");
    }
}

fn write_edge(out: &mut String, edge: &Link) {
    let style = match edge.kind {
        LinkKind::Taken => "color=\"steelblue\"",
        LinkKind::FallThrough => "color=\"gray30\"",
        LinkKind::AfterCall => "color=\"gray30\", style=dashed",
        LinkKind::Indirect => "color=\"purple\", style=dotted",
        LinkKind::Back => "color=\"seagreen\", penwidth=2",
    };
    let label = edge.label.as_ref().map_or(String::new(), |label| format!(", label={}", quoted(label)));
    let _ = writeln!(out, "  n{} -> n{} [{style}{label}];", edge.from, edge.to);
}

/// Lines end in `\l`: to the left.
fn label(node: &NodeBox) -> String {
    let mut text = String::from("\"");
    for line in std::iter::once(&node.heading).chain(&node.lines).filter(|line| !line.is_empty()) {
        text.push_str(&escaped(line));
        text.push_str("\\l");
    }
    text.push('"');
    text
}

fn class(class: NodeClass) -> &'static str {
    match class {
        NodeClass::Plain => "",
        NodeClass::Entry => ", penwidth=2",
        NodeClass::Exit => ", color=\"firebrick\"",
        NodeClass::Unknown => ", color=\"orange\", style=dashed",
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ")
}
