//! Control-flow graphs.

use lancet_engine::program::{Bound, EdgeKind, ExitKind, Func, Program};
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Cfg {
    pub address: String,
    pub name: String,
    pub parts: Vec<Part>,
    pub blocks: Vec<Block>,
    pub edges: Vec<Edge>,
    pub jump_tables: Vec<JumpTable>,
}

#[derive(Debug, Serialize)]
pub struct Part {
    pub address: String,
    pub size: u64,
}

#[derive(Debug, Serialize)]
pub struct Block {
    pub address: String,
    pub size: u32,
    /// Offsets of its instructions from its address.
    pub instructions: Vec<u64>,
    /// Innermost loop's depth; 0 outside all loops.
    pub loop_depth: u32,
    pub exits: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
pub struct Edge {
    pub from: String,
    pub to: String,
    pub kind: &'static str,
}

#[derive(Debug, Serialize)]
pub struct JumpTable {
    pub jump: String,
    pub table: String,
    pub entry_bytes: u8,
    pub entries: usize,
    pub targets: Vec<String>,
    /// `checked`: conditions bound the index. `content`: the table ends where its content stops making sense.
    pub bound: &'static str,
}

pub fn cfg(program: &Program, func: &Func) -> Cfg {
    let block = |id| func.block(id).start.to_string();
    Cfg {
        address: func.entry.to_string(),
        name: program.symbol_name(func).unwrap_or_else(|| format!("sub_{:x}", func.entry.0)),
        parts: func.parts.iter().map(|part| Part { address: part.start.to_string(), size: part.size() }).collect(),
        blocks: func
            .block_ids()
            .map(|id| {
                let b = func.block(id);
                Block {
                    address: b.start.to_string(),
                    size: b.len,
                    instructions: program.insns(b).iter().map(|insn| insn.at - b.start).collect(),
                    loop_depth: func.loops.depth(id.0),
                    exits: func.exits_of(id).map(|exit| exit_name(exit.kind)).collect(),
                }
            })
            .collect(),
        edges: func
            .edges
            .iter()
            .map(|edge| Edge { from: block(edge.from), to: block(edge.to), kind: edge_name(edge.kind) })
            .collect(),
        jump_tables: func
            .tables
            .iter()
            .map(|table| JumpTable {
                jump: table.jump.to_string(),
                table: table.at.to_string(),
                entry_bytes: table.entry_bytes,
                entries: table.targets.len(),
                targets: table.targets.iter().map(ToString::to_string).collect(),
                bound: match table.bound {
                    Bound::Checked => "checked",
                    Bound::Content => "content",
                },
            })
            .collect(),
    }
}

pub fn edge_name(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Fall => "fall",
        EdgeKind::Jump => "jump",
        EdgeKind::Taken => "taken",
        EdgeKind::CallReturn => "call-return",
        EdgeKind::Table => "table",
        EdgeKind::Repeat => "repeat",
    }
}

pub fn exit_name(kind: ExitKind) -> &'static str {
    match kind {
        ExitKind::Return => "return",
        ExitKind::TailCall(_) => "tail-call",
        ExitKind::RunsInto(_) => "runs-into",
        ExitKind::NoReturn => "no-return",
        ExitKind::Stop => "stop",
        ExitKind::Unresolved => "unresolved",
        ExitKind::Bad(_) => "bad",
    }
}
