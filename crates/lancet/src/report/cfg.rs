//! Control-flow graphs.

use std::io::{self, Write};

use lancet_engine::program::{BlockId, Func, JumpTable, Program};
use lancet_isa::Target;
use serde::Serialize;

use super::text::{Table, Text, cell, count, left, parts, plain, right, styled};
use super::words;
use crate::{Object, names};

#[derive(Clone, Debug, Serialize)]
pub struct Cfg {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    pub address: String,
    pub name: String,
    /// Contiguous pieces, by address.
    pub parts: Vec<Part>,
    /// Where control enters: the function's entry first, then landing pads and entries from other functions.
    pub entries: Vec<String>,
    /// By address.
    pub blocks: Vec<Block>,
    pub edges: Vec<Edge>,
    /// Where control leaves the function.
    pub exits: Vec<Exit>,
    pub jump_tables: Vec<JumpTableReport>,
    pub status: &'static str,
    pub reason: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Part {
    pub address: String,
    pub size: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Block {
    pub address: String,
    pub size: u32,
    /// Offsets of its instructions from its address.
    pub instructions: Vec<u64>,
    /// Innermost loop's depth; 0 outside all loops.
    pub loop_depth: u32,
    /// The header of the innermost loop.
    pub loop_header: Option<String>,
    /// The call that ends the block.
    pub call: Option<Call>,
    /// Kinds of its ways out of the function.
    pub exits: Vec<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Call {
    /// `null` if only the run knows.
    pub to: Option<String>,
    pub returns: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Edge {
    pub from: String,
    pub to: String,
    pub kind: &'static str,
    /// Leads to the header of a loop from inside it.
    pub back: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Exit {
    pub from: String,
    pub kind: &'static str,
    /// The function or address that control goes to, where that is known.
    pub to: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct JumpTableReport {
    /// The jump instruction.
    pub jump: String,
    pub table: String,
    pub entry_bytes: u8,
    /// Bytes from one entry to the next.
    pub stride: u8,
    /// What relative entries are added to; `null` if entries are addresses.
    pub base: Option<String>,
    pub entries: usize,
    /// One for each entry, in order.
    pub targets: Vec<String>,
    /// `checked`: conditions bound the index. `content`: the table ends where its content stops making sense.
    pub bound: &'static str,
}

pub fn cfg(object: &Object, func: &Func, shown: Option<String>) -> Cfg {
    let program = &object.program;
    let at = |id: BlockId| func.block(id).start.to_string();
    let edge = |edge: &lancet_engine::program::Edge| Edge {
        from: at(edge.from),
        to: at(edge.to),
        kind: words::edge(edge.kind),
        back: words::is_back_edge(func, edge),
    };
    Cfg {
        object: shown,
        address: func.entry.to_string(),
        name: names::of_function(program, func),
        parts: func.parts.iter().map(|part| Part { address: part.start.to_string(), size: part.size() }).collect(),
        entries: func.entries.iter().map(|&id| at(id)).collect(),
        blocks: func.block_ids().map(|id| block(program, func, id)).collect(),
        edges: func.edges.iter().map(edge).collect(),
        exits: exits(program, func, func.exits.iter()),
        jump_tables: func.tables.iter().map(jump_table).collect(),
        status: words::status(func),
        reason: words::reason(func),
    }
}

fn block(program: &Program, func: &Func, id: BlockId) -> Block {
    let b = func.block(id);
    Block {
        address: b.start.to_string(),
        size: b.len,
        instructions: program.insns(b).iter().map(|insn| insn.at - b.start).collect(),
        loop_depth: func.loops.depth(id.0),
        loop_header: loop_header(func, id),
        call: call(program, func, id),
        exits: func.exits_of(id).map(|exit| words::exit(exit.kind)).collect(),
    }
}

/// The header of the innermost loop around a block.
pub(super) fn loop_header(func: &Func, block: BlockId) -> Option<String> {
    let header = func.loops.get(func.loops.innermost(block.0)?).header;
    Some(func.block(BlockId(header)).start.to_string())
}

pub(super) fn call(program: &Program, func: &Func, block: BlockId) -> Option<Call> {
    func.call_of(block).map(|call| Call { to: names::of_target(program, call.to), returns: call.returns })
}

pub(super) fn exits<'a>(
    program: &Program,
    func: &Func,
    exits: impl Iterator<Item = &'a lancet_engine::program::Exit>,
) -> Vec<Exit> {
    use lancet_engine::program::ExitKind;
    let to = |kind: ExitKind| match kind {
        ExitKind::TailCall(to) => names::of_target(program, to),
        ExitKind::RunsInto(at) => names::of_target(program, Target::Direct(at)),
        ExitKind::Bad(at) => Some(at.to_string()),
        ExitKind::Return | ExitKind::NoReturn | ExitKind::Stop | ExitKind::Unresolved => None,
    };
    let exit = |exit: &lancet_engine::program::Exit| Exit {
        from: func.block(exit.from).start.to_string(),
        kind: words::exit(exit.kind),
        to: to(exit.kind),
    };
    exits.map(exit).collect()
}

pub(super) fn jump_table(table: &JumpTable) -> JumpTableReport {
    JumpTableReport {
        jump: table.jump.to_string(),
        table: table.at.to_string(),
        entry_bytes: table.entry_bytes,
        stride: table.stride,
        base: table.base.map(|base| base.to_string()),
        entries: table.targets.len(),
        targets: table.targets.iter().map(ToString::to_string).collect(),
        bound: words::bound(table.bound),
    }
}

impl Cfg {
    /// A line for each block: its size, the loops around it (`*` marks a header), and what follows it.
    pub fn write_text(&self, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let palette = text.palette;
        let loops = self.blocks.iter().filter(|block| is_header(block)).count();
        write!(out, "{} {}: ", styled(&self.address, palette.address), styled(&self.name, palette.name))?;
        let size: u64 = self.parts.iter().map(|part| part.size).sum();
        let counts = [
            count(self.blocks.len() as u64, "block"),
            count(self.edges.len() as u64, "edge"),
            count(loops as u64, "loop"),
        ];
        writeln!(out, "{}{}, {}", count(size, "byte"), parts(self.parts.len()), counts.join(", "))?;
        if let Some(reason) = &self.reason {
            writeln!(out, "{}", styled(format_args!("partial: {reason}"), palette.doubt))?;
        }
        let mut table = Table::new(vec![left("BLOCK"), right("BYTES"), right("INSNS"), left("LOOP"), left("NEXT")]);
        let (mut edges, mut exits) = (&self.edges[..], &self.exits[..]);
        let mut blocks: Vec<_> = self
            .blocks
            .iter()
            .map(|block| {
                let leaving = take_while(&mut edges, |edge| edge.from == block.address);
                let ways_out = take_while(&mut exits, |exit| exit.from == block.address);
                (block, next(block, leaving, ways_out))
            })
            .collect();
        // What is before the entry is a cold part.
        blocks.rotate_left(self.blocks.iter().position(|block| block.address == self.address).unwrap_or(0));
        for (block, next) in blocks {
            let bars = "| ".repeat(block.loop_depth as usize);
            let bars =
                if is_header(block) { format!("{}*", &bars[..bars.len() - 2]) } else { bars.trim_end().to_owned() };
            table.row(vec![
                cell(&block.address, palette.address),
                plain(block.size),
                plain(block.instructions.len()),
                cell(bars, palette.loops),
                plain(next),
            ]);
        }
        table.write(out, text)
    }
}

fn is_header(block: &Block) -> bool {
    block.loop_header.as_ref() == Some(&block.address)
}

fn next(block: &Block, edges: &[Edge], exits: &[Exit]) -> String {
    let call = block.call.iter().map(|call| format!("calls {}", call.to.as_deref().unwrap_or("a computed address")));
    let edges = words::joined(edges.iter().map(|edge| (edge.kind, edge.back, &*edge.to)));
    call.chain(edges).chain(exits.iter().map(ToString::to_string)).collect::<Vec<_>>().join(", ")
}

/// Splits off the beginning of a list.
fn take_while<'a, T>(list: &mut &'a [T], belongs: impl Fn(&T) -> bool) -> &'a [T] {
    let end = list.iter().position(|item| !belongs(item)).unwrap_or(list.len());
    let (front, rest) = list.split_at(end);
    *list = rest;
    front
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.kind, &self.to) {
            ("tail-call", Some(to)) => write!(f, "tail call to {to}"),
            ("tail-call", None) => write!(f, "tail call to a computed address"),
            ("runs-into", Some(to)) => write!(f, "runs into {to}"),
            ("no-return", _) => write!(f, "does not return"),
            ("stop", _) => write!(f, "traps"),
            ("unresolved", _) => write!(f, "unresolved jump"),
            ("bad", Some(to)) => write!(f, "runs into bytes that are no instruction at {to}"),
            (kind, _) => write!(f, "{kind}s"),
        }
    }
}
