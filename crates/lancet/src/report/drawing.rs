//! A function as a drawing: what [`layout`](super::layout) places and [`dot`](super::dot) writes for Graphviz.

use lancet_engine::program::{Block, BlockId, Edge, EdgeId, EdgeKind, ExitKind, Func, LoopId, Program};
use lancet_isa::Syntax;

use super::layout::{Drawing, Link, LinkKind, LoopBox, NodeBox, NodeClass};
use super::text::{count, cut, grouped, runs};
use super::{Source, disasm, words};
use crate::names;
use crate::tools::count::{Counts, Slot};

/// Longer lines are cut: a C++ name can fill a screen.
const LONGEST_LINE: usize = 72;

#[derive(Clone, Copy)]
pub struct Options<'a> {
    pub syntax: Syntax,
    /// Instructions shown of a block; 0 shows all.
    pub block_lines: usize,
    /// How often everything in the function ran.
    pub counts: Option<&'a Counts>,
}

pub fn drawing(program: &Program, func: &Func, options: Options<'_>) -> Drawing {
    // The entry stands first, whatever the addresses: a cold part may lie before it.
    let entry = func.entries.first().copied();
    let order: Vec<BlockId> = entry.into_iter().chain(func.block_ids().filter(|id| Some(*id) != entry)).collect();
    let mut place = vec![0; func.blocks.len()];
    for (i, id) in order.iter().enumerate() {
        place[id.0 as usize] = i;
    }
    let edges = func.edges.iter().enumerate().map(|(i, edge)| Link {
        from: place[edge.from.0 as usize],
        to: place[edge.to.0 as usize],
        kind: kind(func, edge),
        label: options.counts.map(|counts| grouped(counts.of(Slot::Edge(EdgeId(i as u32))))),
    });
    let loops = func.loops.iter().map(|(id, l)| {
        let header = func.block(BlockId(l.header)).start;
        let blocks = count(func.loops.blocks(id).len() as u64, "block");
        LoopBox {
            label: format!("loop {header}{}", if l.irreducible { ", irreducible" } else { "" }),
            tooltip: format!("loop {header}: depth {}, {blocks}", l.depth),
            parent: l.parent.map(|parent| parent.0 as usize),
            irreducible: l.irreducible,
        }
    });
    Drawing {
        title: names::of_function(program, func),
        nodes: order.iter().map(|&id| node(program, func, id, options)).collect(),
        edges: edges.collect(),
        loops: loops.collect(),
    }
}

fn node(program: &Program, func: &Func, id: BlockId, options: Options<'_>) -> NodeBox {
    let block = func.block(id);
    let runs = options.counts.map(|counts| counts.of(Slot::Block(id)));
    let runs_text = runs.map_or(String::new(), |runs| format!("  × {}", grouped(runs)));
    NodeBox {
        heading: heading(func, id) + &runs_text,
        lines: lines(program, func, block, options),
        tooltip: tooltip(program, func, id),
        heat: options.counts.map(|counts| heat(counts, id)),
        class: class(func, id),
        in_loop: func.loops.innermost(id.0).map(|LoopId(index)| index as usize),
    }
}

/// From 0 to 1. The root shows differences among what is not the hottest, too.
fn heat(counts: &Counts, id: BlockId) -> f64 {
    let most = counts.blocks.iter().copied().max().unwrap_or(0).max(1);
    (counts.of(Slot::Block(id)) as f64 / most as f64).sqrt()
}

fn lines(program: &Program, func: &Func, block: &Block, options: Options<'_>) -> Vec<String> {
    let insns = program.insns(block);
    // The last instruction decides where control goes, so the middle gives way.
    let left_out = match options.block_lines {
        0 => 0,
        most => insns.len().saturating_sub(most.max(3)),
    };
    let cut_at = if left_out > 0 { insns.len() - left_out - 2 } else { insns.len() };
    let text = |insn| cut(&disasm::text_of(program, func, insn, options.syntax), LONGEST_LINE).into_owned();
    let mut lines: Vec<String> = insns[..cut_at].iter().map(text).collect();
    if left_out > 0 {
        lines.push(format!("… {} more", left_out + 1));
        lines.extend(insns.last().map(text));
    }
    lines
}

fn tooltip(program: &Program, func: &Func, id: BlockId) -> String {
    let block = func.block(id);
    let size = format!("{} to {}, {}", block.start, block.end(), count(block.insns, "instruction"));
    let depth = func.loops.depth(id.0);
    let nesting = (depth > 0).then(|| format!("loop depth {depth}"));
    let source = Source::of(program, block.start).map(|source| source.to_string());
    [Some(size), nesting, source].into_iter().flatten().collect::<Vec<_>>().join("\n")
}

fn class(func: &Func, id: BlockId) -> NodeClass {
    let unknown = |kind| matches!(kind, ExitKind::Unresolved | ExitKind::Bad(_));
    if func.exits_of(id).any(|exit| unknown(exit.kind)) {
        NodeClass::Unknown
    } else if func.entries.contains(&id) {
        NodeClass::Entry
    } else if func.exits_of(id).next().is_some() {
        NodeClass::Exit
    } else {
        NodeClass::Plain
    }
}

fn kind(func: &Func, edge: &Edge) -> LinkKind {
    match edge.kind {
        _ if words::is_back_edge(func, edge) => LinkKind::Back,
        EdgeKind::Repeat => LinkKind::Back,
        EdgeKind::Fall => LinkKind::FallThrough,
        EdgeKind::Jump | EdgeKind::Taken => LinkKind::Taken,
        EdgeKind::CallReturn => LinkKind::AfterCall,
        EdgeKind::Table => LinkKind::Indirect,
    }
}

/// The block's address, and which entries of jump tables lead to it.
fn heading(func: &Func, id: BlockId) -> String {
    let at = func.block(id).start;
    let mut heading = at.to_string();
    for table in &func.tables {
        let entries = table.targets.iter().enumerate().filter(|(_, target)| **target == at).map(|(i, _)| i);
        let entries = runs(&entries.collect::<Vec<_>>());
        if !entries.is_empty() {
            heading.push_str(&format!("  [{}]", cut(&entries, LONGEST_LINE / 2)));
        }
    }
    heading
}
