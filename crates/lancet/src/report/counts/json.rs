//! Counts for programs: one object, with a line for each function, block, edge, entry, exit and call.
//!
//! The lists are flat, so that each can be read without the others and a large program is never in memory as text.

use std::io::{self, Write};

use lancet_engine::program::{Func, FuncId};
use rayon::prelude::*;
use serde::Serialize;

use super::super::words;
use crate::names;
use crate::tools::count::{Counted, Counts, Cut};

/// Functions whose lines are made side by side before they are written.
const AT_ONCE: usize = 512;

#[derive(Debug, Serialize)]
struct Head<'a> {
    /// Executed by all objects together.
    instructions: u64,
    objects: Vec<ObjectCounts<'a>>,
}

#[derive(Debug, Serialize)]
struct ObjectCounts<'a> {
    object: &'a str,
    instructions: u64,
    /// Processes and threads that counted.
    shards: usize,
    /// Functions without counts, apart from stubs.
    left_alone: usize,
    faults: Vec<String>,
    stopped: Vec<StoppedIn>,
    /// How often control was taken away where nothing tells.
    cut_somewhere: u64,
}

/// Control ended in the middle of a function, whose counts may therefore be off by so many.
#[derive(Debug, Serialize)]
struct StoppedIn {
    function: String,
    times: u64,
}

#[derive(Debug, Serialize)]
struct FunctionLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a str>,
    address: String,
    name: String,
    calls: u64,
    /// Executed by the function itself.
    instructions: u64,
}

#[derive(Debug, Serialize)]
struct BlockLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a str>,
    function: String,
    address: String,
    count: u64,
    /// How many the block has.
    instructions: u32,
}

#[derive(Debug, Serialize)]
struct EdgeLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a str>,
    from: String,
    to: String,
    kind: &'static str,
    count: u64,
}

#[derive(Debug, Serialize)]
struct EntryLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a str>,
    to: String,
    count: u64,
}

#[derive(Debug, Serialize)]
struct ExitLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a str>,
    from: String,
    kind: &'static str,
    count: u64,
}

#[derive(Debug, Serialize)]
struct CallLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a str>,
    from: String,
    to: Option<String>,
    count: u64,
    /// Negative if it came back more often than it was made.
    not_returned: i64,
}

/// A signal's handler took control away inside a block and never gave it back.
#[derive(Debug, Serialize)]
struct CutLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a str>,
    block: String,
    /// How many instructions of the block ran.
    ran: u32,
    count: i64,
}

/// A function with its counts.
struct One<'a> {
    counted: &'a Counted,
    func: &'a Func,
    id: FuncId,
    counts: &'a Counts,
    /// Said only if there are several.
    object: Option<&'a str>,
}

/// Writes everything that was counted.
pub fn write(objects: &[Counted], out: &mut dyn Write) -> io::Result<()> {
    let several = objects.len() > 1;
    let mut all: Vec<One<'_>> = Vec::new();
    for counted in objects {
        let object = several.then(|| counted.name());
        let one = |(id, counts)| One { counted, func: counted.program.func(id), id, counts, object };
        all.extend(counted.funcs().map(one));
    }
    let head = serde_json::to_string(&head(objects))?;
    write!(out, "{}", head.strip_suffix('}').unwrap_or(&head))?;
    list(out, "functions", &all, functions)?;
    list(out, "blocks", &all, blocks)?;
    list(out, "edges", &all, edges)?;
    list(out, "entries", &all, entries)?;
    list(out, "exits", &all, exits)?;
    list(out, "calls", &all, calls)?;
    list(out, "cuts", &all, cuts)?;
    writeln!(out, "}}")
}

fn head(objects: &[Counted]) -> Head<'_> {
    fn object(counted: &Counted) -> ObjectCounts<'_> {
        ObjectCounts {
            object: counted.name(),
            instructions: counted.instructions(),
            shards: counted.shards,
            left_alone: counted.left_alone().count(),
            faults: counted.faults.iter().map(ToString::to_string).collect(),
            stopped: counted
                .stopped()
                .map(|(id, times)| StoppedIn { function: entry_of(counted, id), times })
                .collect(),
            cut_somewhere: counted.unlocated,
        }
    }
    fn entry_of(counted: &Counted, id: FuncId) -> String {
        counted.program.func(id).entry.to_string()
    }
    Head {
        instructions: objects.iter().map(Counted::instructions).sum(),
        objects: objects.iter().map(object).collect(),
    }
}

/// One list of the object, with the lines that `render` makes of each function.
fn list<'a, R: Serialize + Send>(
    out: &mut dyn Write,
    key: &str,
    all: &[One<'a>],
    render: impl Fn(&One<'a>) -> Vec<R> + Sync,
) -> io::Result<()> {
    write!(out, ",\"{key}\":[")?;
    let mut separator = "\n";
    for some in all.chunks(AT_ONCE) {
        let lines = |one: &One<'a>| render(one).iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
        let lines: Vec<serde_json::Result<Vec<String>>> = some.par_iter().map(lines).collect();
        for line in lines.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
            write!(out, "{separator}{line}")?;
            separator = ",\n";
        }
    }
    write!(out, "\n]")
}

fn functions<'a>(one: &One<'a>) -> Vec<FunctionLine<'a>> {
    vec![FunctionLine {
        object: one.object,
        address: one.func.entry.to_string(),
        name: names::of_function(&one.counted.program, one.func),
        calls: one.counted.calls(one.id),
        instructions: one.counted.func_instructions(one.id),
    }]
}

fn blocks<'a>(one: &One<'a>) -> Vec<BlockLine<'a>> {
    let block = |(block, count): (&lancet_engine::program::Block, &u64)| BlockLine {
        object: one.object,
        function: one.func.entry.to_string(),
        address: block.start.to_string(),
        count: *count,
        instructions: block.insns,
    };
    one.func.blocks.iter().zip(&one.counts.blocks).map(block).collect()
}

fn edges<'a>(one: &One<'a>) -> Vec<EdgeLine<'a>> {
    let edge = |(edge, count): (&lancet_engine::program::Edge, &u64)| EdgeLine {
        object: one.object,
        from: one.func.block(edge.from).start.to_string(),
        to: one.func.block(edge.to).start.to_string(),
        kind: words::edge(edge.kind),
        count: *count,
    };
    one.func.edges.iter().zip(&one.counts.edges).map(edge).collect()
}

fn entries<'a>(one: &One<'a>) -> Vec<EntryLine<'a>> {
    let entry = |(block, count): (&lancet_engine::program::BlockId, &u64)| EntryLine {
        object: one.object,
        to: one.func.block(*block).start.to_string(),
        count: *count,
    };
    one.func.entries.iter().zip(&one.counts.entries).map(entry).collect()
}

fn exits<'a>(one: &One<'a>) -> Vec<ExitLine<'a>> {
    let exit = |(exit, count): (&lancet_engine::program::Exit, &u64)| ExitLine {
        object: one.object,
        from: one.func.block(exit.from).start.to_string(),
        kind: words::exit(exit.kind),
        count: *count,
    };
    one.func.exits.iter().zip(&one.counts.exits).map(exit).collect()
}

fn calls<'a>(one: &One<'a>) -> Vec<CallLine<'a>> {
    let call = |(call, not_returned): (&lancet_engine::program::Call, &i64)| CallLine {
        object: one.object,
        from: one.func.block(call.block).start.to_string(),
        to: names::of_target(&one.counted.program, call.to),
        count: one.counts.calls_in(one.func, call.block),
        not_returned: *not_returned,
    };
    one.func.calls.iter().zip(&one.counts.calls_not_returned).map(call).collect()
}

fn cuts<'a>(one: &One<'a>) -> Vec<CutLine<'a>> {
    let cut = |cut: &Cut| CutLine {
        object: one.object,
        block: one.func.block(cut.block).start.to_string(),
        ran: cut.ran,
        count: cut.times,
    };
    one.counts.cuts.iter().map(cut).collect()
}
