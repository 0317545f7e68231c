//! One page that needs nothing else: tables, and the control-flow graph of each hot function, coloured by heat.

use std::io::{self, Write};

use lancet_isa::Syntax;

use super::super::Source;
use super::super::drawing::{self, drawing};
use super::super::layout::{self, Escaped};
use super::super::text::{count, grouped};
use super::summary::{HotFunction, Summary, biases, stopped_line};
use crate::names;
use crate::tools::count::Counted;

/// Instructions shown of a block.
const BLOCK_LINES: usize = 12;
/// Larger graphs are no help to anybody.
const MOST_BLOCKS: usize = 1000;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em}\
h1{font-size:1.5em;overflow-wrap:anywhere}h2{margin-top:2em}h3{overflow-wrap:anywhere}\
table{border-collapse:collapse}\
th{text-align:left;border-bottom:1px solid #8888}th,td{padding:.15em .9em .15em 0;vertical-align:top}\
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\
.f{overflow-wrap:anywhere}\
.share{display:inline-block;height:.75em;background:#e5484d;border-radius:2px;margin-left:.5em}\
.note{opacity:.7}\
.graph{overflow:auto;max-height:90vh;border:1px solid #8886;border-radius:6px}";

/// `top` rows of each table, and as many graphs.
pub fn write(objects: &[Counted], top: usize, out: &mut dyn Write) -> io::Result<()> {
    let summary = Summary::of(objects);
    let name = objects.first().map_or("", |counted| counted.name());
    let file = name.rsplit('/').next().unwrap_or(name);
    writeln!(out, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width\">")?;
    writeln!(out, "<title>{}: what ran</title>\n<style>{STYLE}</style>", Escaped(file))?;
    writeln!(out, "<h1>{}</h1>", Escaped(name))?;
    writeln!(out, "<p>{} instructions executed.</p>", grouped(summary.instructions))?;
    write_objects(objects, out)?;
    write_functions(&summary, top, out)?;
    write_loops(&summary, top, out)?;
    write_branches(&summary, top, out)?;
    writeln!(out, "<h2>Control flow</h2>")?;
    writeln!(
        out,
        "<p class=note>The redder a block, the more often it ran. Numbers on lines say how often control went there.</p>"
    )?;
    for (i, function) in summary.functions.iter().take(top).enumerate() {
        write_graph(i, function, out)?;
    }
    Ok(())
}

fn write_objects(objects: &[Counted], out: &mut dyn Write) -> io::Result<()> {
    for counted in objects {
        let left = counted.left_alone().count();
        if objects.len() > 1 {
            let instructions = grouped(counted.instructions());
            writeln!(out, "<p class=note>{}: {instructions} instructions.</p>", Escaped(counted.name()))?;
        }
        if left > 0 {
            let left = count(left as u64, "function");
            writeln!(out, "<p class=note>Not counted: {left} of {}.</p>", Escaped(counted.name()))?;
        }
        for (id, times) in counted.stopped() {
            writeln!(out, "<p class=note>{}.</p>", Escaped(&stopped_line(counted, id, times)))?;
        }
        for fault in &counted.faults {
            writeln!(out, "<p class=note>Left out: {}</p>", Escaped(&fault.to_string()))?;
        }
    }
    Ok(())
}

fn write_functions(summary: &Summary<'_>, top: usize, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<h2>Functions</h2>\n<table>\n<tr><th class=n>Share<th><th class=n>Instructions<th class=n>Calls<th>Function"
    )?;
    for (i, function) in summary.functions.iter().take(top).enumerate() {
        let share = share(function.instructions, summary.instructions);
        let counts = (grouped(function.instructions), grouped(function.calls));
        write!(out, "<tr><td class=n>{share:.1}%<td><span class=share style=\"width:{:.0}px\"></span>", share * 1.5)?;
        writeln!(
            out,
            "<td class=n>{}<td class=n>{}<td class=f><a href=\"#f{i}\">{}</a>",
            counts.0,
            counts.1,
            Escaped(&name_of(function))
        )?;
    }
    writeln!(out, "</table>")
}

fn write_loops(summary: &Summary<'_>, top: usize, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<h2>Loops</h2>\n<table>\n<tr><th class=n>Share<th class=n>Instructions<th class=n>Entered<th class=n>Trips per entry<th>Loop<th>Source"
    )?;
    for (counted, l) in summary.loops.iter().take(top) {
        let program = &counted.program;
        let name = names::of_function(program, program.func(l.func));
        let trips = l.trips_per_entry().map_or(String::new(), |trips| format!("{trips:.1}"));
        let (share, counts) =
            (share(l.instructions, summary.instructions), (grouped(l.instructions), grouped(l.entered)));
        write!(out, "<tr><td class=n>{share:.1}%<td class=n>{}<td class=n>{}<td class=n>{trips}", counts.0, counts.1)?;
        write!(out, "<td class=f>{} in {}, depth {}", l.header, Escaped(&name), l.depth)?;
        writeln!(out, "<td class=f>{}", source(counted, l.header))?;
    }
    writeln!(out, "</table>")
}

fn write_branches(summary: &Summary<'_>, top: usize, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<h2>Branches</h2>\n<table>\n<tr><th>Mostly one way<th class=n>Branches<th class=n>Executed<th class=n>Share"
    )?;
    let all: u64 = summary.branches.iter().map(|(_, branch)| branch.runs()).sum();
    for bias in biases(&summary.branches) {
        let counts = (grouped(bias.branches), grouped(bias.runs), share(bias.runs, all));
        writeln!(
            out,
            "<tr><td>{}<td class=n>{}<td class=n>{}<td class=n>{:.1}%",
            bias.name, counts.0, counts.1, counts.2
        )?;
    }
    writeln!(out, "</table>\n<p>Those that went both ways most often:</p>\n<table>")?;
    writeln!(out, "<tr><th class=n>Taken<th class=n>Not taken<th class=n>Bias<th>Branch<th>Source")?;
    for (counted, branch) in summary.branches.iter().filter(|(_, branch)| branch.rarer() > 0).take(top) {
        let program = &counted.program;
        let func = program.func(branch.func);
        let at = branch.at(program);
        let counts = (grouped(branch.taken), grouped(branch.not_taken), 100.0 * branch.bias());
        write!(out, "<tr><td class=n>{}<td class=n>{}<td class=n>{:.1}%", counts.0, counts.1, counts.2)?;
        let name = names::of_function(program, func);
        writeln!(out, "<td class=f>{at} in {}<td class=f>{}", Escaped(&name), source(counted, at))?;
    }
    writeln!(out, "</table>")
}

fn write_graph(i: usize, function: &HotFunction<'_>, out: &mut dyn Write) -> io::Result<()> {
    let program = &function.counted.program;
    let func = program.func(function.id);
    let calls = count(function.calls, "call");
    writeln!(out, "<h3 id=\"f{i}\">{}</h3>", Escaped(&name_of(function)))?;
    writeln!(out, "<p>{} at {}, {calls}</p>", Escaped(function.counted.name()), func.entry)?;
    if func.blocks.len() > MOST_BLOCKS {
        return writeln!(out, "<p class=note>{} blocks are too many to draw.</p>", grouped(func.blocks.len() as u64));
    }
    let counts = function.counted.counts(function.id);
    let options = drawing::Options { syntax: Syntax::default(), block_lines: BLOCK_LINES, counts };
    writeln!(out, "<div class=graph>\n{}</div>", layout::svg(&drawing(program, func, options)))
}

fn name_of(function: &HotFunction<'_>) -> String {
    let program = &function.counted.program;
    names::of_function(program, program.func(function.id))
}

fn source(counted: &Counted, at: lancet_isa::Svma) -> String {
    Source::of(&counted.program, at).map_or(String::new(), |source| Escaped(&source.to_string()).to_string())
}

fn share(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}
