//! The loop forest.

use std::io::{self, Write};

use lancet_engine::program::graph;
use lancet_engine::program::{BlockId, Func, Loop, LoopId, Program};
use lancet_isa::Svma;
use serde::Serialize;

use super::text::{Table, Text, cell, count, left, plain, right, styled};
use super::{Source, object_heading, words};
use crate::{Object, Subject, names};

#[derive(Clone, Debug, Serialize)]
pub struct FunctionLoops {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    pub address: String,
    pub name: String,
    /// Parents before their children.
    pub loops: Vec<LoopReport>,
}

#[derive(Clone, Debug, Serialize)]
pub struct LoopReport {
    /// The address of the block that stands for the loop: control enters there.
    pub header: String,
    /// The loop around it, as an index into the function's `loops`.
    pub parent: Option<u32>,
    /// 1 for an outermost loop.
    pub depth: u32,
    /// Control can enter elsewhere than at the header.
    pub irreducible: bool,
    /// Where else, if so.
    pub other_entries: Vec<String>,
    /// Addresses, those of nested loops included; the header is the first.
    pub blocks: Vec<String>,
    pub instructions: u64,
    /// Blocks that end in a call.
    pub calls: usize,
    pub entry_edges: Vec<LoopEdge>,
    pub back_edges: Vec<LoopEdge>,
    pub exits: Vec<LoopEdge>,
    /// Where the header is in the source.
    pub source: Option<Source>,
    #[serde(skip)]
    header_at: Svma,
}

#[derive(Clone, Debug, Serialize)]
pub struct LoopEdge {
    pub from: String,
    /// `null` where control leaves the function.
    pub to: Option<String>,
    pub kind: &'static str,
}

pub fn loops(object: &Object, func: &Func, shown: Option<String>) -> FunctionLoops {
    let program = &object.program;
    let graph = func.graph();
    FunctionLoops {
        object: shown,
        address: func.entry.to_string(),
        name: names::of_function(program, func),
        loops: func.loops.iter().map(|(id, l)| report(program, func, &graph, id, l)).collect(),
    }
}

fn report(program: &Program, func: &Func, graph: &graph::Graph, id: LoopId, l: &Loop) -> LoopReport {
    let at = |node: u32| func.block(BlockId(node)).start.to_string();
    let edge = |e: graph::Edge| {
        let kind = func.edges.get(e.index as usize).map_or("", |edge| words::edge(edge.kind));
        LoopEdge { from: at(e.from), to: Some(at(e.to)), kind }
    };
    let forest = &func.loops;
    let blocks = || forest.blocks(id).iter().map(|&node| BlockId(node));
    let mut exits: Vec<LoopEdge> = forest.exit_edges(graph, id).map(edge).collect();
    exits.extend(blocks().flat_map(|block| func.exits_of(block)).map(|exit| LoopEdge {
        from: at(exit.from.0),
        to: None,
        kind: words::exit(exit.kind),
    }));
    LoopReport {
        header: at(l.header),
        parent: l.parent.map(|parent| parent.0),
        depth: l.depth,
        irreducible: l.irreducible,
        other_entries: forest.other_entries(graph, id).map(at).collect(),
        blocks: blocks().map(|block| func.block(block).start.to_string()).collect(),
        instructions: blocks().map(|block| u64::from(func.block(block).insns)).sum(),
        calls: blocks().filter(|&block| func.call_of(block).is_some()).count(),
        entry_edges: forest.entry_edges(graph, id).map(edge).collect(),
        back_edges: forest.back_edges(graph, id).map(edge).collect(),
        exits,
        source: Source::of(program, func.block(BlockId(l.header)).start),
        header_at: func.block(BlockId(l.header)).start,
    }
}

/// All loops as a table; with the blocks and edges of each if `details`.
pub fn write_text(
    subject: &Subject,
    functions: &[FunctionLoops],
    details: bool,
    out: &mut dyn Write,
    text: &Text,
) -> io::Result<()> {
    let palette = text.palette;
    let mut table = Table::new(vec![
        left("LOOP"),
        right("DEPTH"),
        right("BLOCKS"),
        right("INSNS"),
        right("CALLS"),
        right("EXITS"),
        left("NOTES"),
    ]);
    for of_object in functions.chunk_by(|a, b| a.object == b.object) {
        if let Some(object) = of_object.first().and_then(|f| f.object.as_deref()) {
            table.text(styled(object_heading(subject, object), palette.heading));
        }
        for f in of_object {
            let heading = (styled(&f.address, palette.address), styled(&f.name, palette.name));
            table.text(format!("{} {}: {}", heading.0, heading.1, count(f.loops.len() as u64, "loop")));
            for l in in_tree_order(&f.loops) {
                let indent = "  ".repeat(l.depth as usize);
                let irreducible =
                    l.irreducible.then(|| format!("irreducible, also entered at {}", l.other_entries.join(", ")));
                let source = l.source.as_ref().map(ToString::to_string);
                let notes: Vec<String> = source.into_iter().chain(irreducible).collect();
                table.row(vec![
                    cell(format_args!("{indent}{}", l.header), palette.loops),
                    plain(l.depth),
                    plain(l.blocks.len()),
                    plain(l.instructions),
                    plain(l.calls),
                    plain(l.exits.len()),
                    cell(notes.join("; "), if l.irreducible { palette.doubt } else { palette.aside }),
                ]);
                if details {
                    for line in details_of(l) {
                        table.text(styled(format_args!("{indent}    {line}"), palette.aside));
                    }
                }
            }
        }
    }
    table.write(out, text)
}

/// Each loop directly followed by those in it; side by side, by address.
fn in_tree_order(loops: &[LoopReport]) -> Vec<&LoopReport> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); loops.len()];
    let mut waiting: Vec<usize> = Vec::new();
    for (i, l) in loops.iter().enumerate() {
        match l.parent.and_then(|parent| children.get_mut(parent as usize)) {
            Some(siblings) => siblings.push(i),
            None => waiting.push(i),
        }
    }
    let backwards = |indices: &mut Vec<usize>| indices.sort_by_key(|&i| std::cmp::Reverse(loops[i].header_at));
    backwards(&mut waiting);
    let mut order = Vec::with_capacity(loops.len());
    while let Some(i) = waiting.pop() {
        order.push(&loops[i]);
        backwards(&mut children[i]);
        waiting.append(&mut children[i]);
    }
    order
}

fn details_of(l: &LoopReport) -> Vec<String> {
    let edges = |edges: &[LoopEdge]| edges.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut lines = vec![format!("blocks   {}", l.blocks.join(" "))];
    for (what, of) in [("entered ", &l.entry_edges), ("repeats ", &l.back_edges), ("exits   ", &l.exits)] {
        if !of.is_empty() {
            lines.push(format!("{what} {}", edges(of)));
        }
    }
    lines
}

impl std::fmt::Display for LoopEdge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.to {
            Some(to) => write!(f, "{} -> {to} ({})", self.from, self.kind),
            None => write!(f, "{} ({})", self.from, self.kind),
        }
    }
}
