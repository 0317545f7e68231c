//! The list of functions, and totals.

use std::io::{self, Write};

use anstyle::Style;
use lancet_engine::program::Func;
use rayon::prelude::*;
use serde::Serialize;

use super::text::{Table, Text, cell, left, plain, right, styled};
use super::{object_heading, words};
use crate::{Object, Subject, names};

#[derive(Clone, Debug, Serialize)]
pub struct Function {
    /// The object's path, if this is about a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// As stated in the file, in hexadecimal.
    pub address: String,
    /// Bytes of all its parts.
    pub size: u64,
    /// Demangled; `sub_<address>` where no symbol names it.
    pub name: String,
    /// The name as the linker has it; `null` where no symbol names it.
    pub symbol: Option<String>,
    pub found_by: &'static str,
    pub blocks: usize,
    pub loops: usize,
    /// `complete`, or `partial` with a reason.
    pub status: &'static str,
    pub reason: Option<String>,
    #[serde(skip)]
    pub entry: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SortBy {
    Address,
    /// The largest first, as in the others that count.
    Size,
    Name,
    Blocks,
    Loops,
}

/// All functions, by object and address.
pub fn functions(subject: &Subject) -> Vec<Function> {
    let of_object = |object: &Object| -> Vec<Function> {
        let shown = subject.pid.map(|_| object.name().to_owned());
        object.program.funcs().par_iter().map(|func| function(object, func, shown.clone())).collect()
    };
    subject.objects.iter().flat_map(of_object).collect()
}

fn function(object: &Object, func: &Func, shown: Option<String>) -> Function {
    Function {
        object: shown,
        address: func.entry.to_string(),
        size: func.size(),
        name: names::of_function(&object.program, func),
        symbol: object.program.symbol_name(func),
        found_by: words::found_by(func.found_by),
        blocks: func.blocks.len(),
        loops: func.loops.len(),
        status: words::status(func),
        reason: words::reason(func),
        entry: func.entry.0,
    }
}

/// Sorts within each object. Equal ones stay in order of address.
pub fn sort(functions: &mut [Function], by: SortBy) {
    for of_object in functions.chunk_by_mut(|a, b| a.object == b.object) {
        match by {
            SortBy::Address => of_object.sort_by_key(|f| f.entry),
            SortBy::Size => of_object.sort_by_key(|f| std::cmp::Reverse(f.size)),
            SortBy::Name => of_object.sort_by(|a, b| a.name.cmp(&b.name)),
            SortBy::Blocks => of_object.sort_by_key(|f| std::cmp::Reverse(f.blocks)),
            SortBy::Loops => of_object.sort_by_key(|f| std::cmp::Reverse(f.loops)),
        }
    }
}

pub fn write_text(subject: &Subject, functions: &[Function], out: &mut dyn Write, text: &Text) -> io::Result<()> {
    let palette = text.palette;
    let mut table = Table::new(vec![
        right("ADDRESS"),
        right("SIZE"),
        right("BLOCKS"),
        right("LOOPS"),
        left("FOUND BY"),
        left("STATUS"),
        left("NAME"),
    ]);
    for of_object in functions.chunk_by(|a, b| a.object == b.object) {
        if let Some(object) = of_object.first().and_then(|f| f.object.as_deref()) {
            table.text(styled(object_heading(subject, object), palette.heading));
        }
        for f in of_object {
            let loops = if f.loops > 0 { palette.loops } else { palette.aside };
            let status = if f.reason.is_some() { palette.doubt } else { Style::new() };
            let cells = vec![
                cell(&f.address, palette.address),
                plain(f.size),
                plain(f.blocks),
                cell(f.loops, loops),
                cell(f.found_by, palette.aside),
                cell(f.status, status),
                plain(&f.name),
            ];
            let note = f.reason.as_ref().map(|reason| styled(format_args!(": {reason}"), palette.doubt));
            table.row_with_note(cells, note.unwrap_or_default());
        }
    }
    table.write(out, text)
}

/// Totals over all functions.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub struct Summary {
    pub functions: usize,
    pub complete: usize,
    /// Bytes of all functions.
    pub bytes: u64,
    pub instructions: u64,
    pub blocks: usize,
    pub edges: usize,
    pub loops: usize,
    pub jump_tables: usize,
}

pub fn summary(subject: &Subject) -> Summary {
    let mut sum = Summary::default();
    for func in subject.objects.iter().flat_map(|object| object.program.funcs()) {
        sum.functions += 1;
        sum.complete += usize::from(func.is_complete());
        sum.bytes += func.size();
        sum.instructions += func.blocks.iter().map(|block| u64::from(block.insns)).sum::<u64>();
        sum.blocks += func.blocks.len();
        sum.edges += func.edges.len();
        sum.loops += func.loops.len();
        sum.jump_tables += func.tables.len();
    }
    sum
}

impl Summary {
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let lines = [
            ("functions", self.functions as u64),
            ("complete", self.complete as u64),
            ("bytes", self.bytes),
            ("instructions", self.instructions),
            ("blocks", self.blocks as u64),
            ("edges", self.edges as u64),
            ("loops", self.loops as u64),
            ("jump tables", self.jump_tables as u64),
        ];
        lines.iter().try_for_each(|(what, number)| writeln!(out, "{what:12}  {number:>10}"))
    }
}
