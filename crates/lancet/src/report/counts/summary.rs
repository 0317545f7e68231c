//! What to look at first: the hottest functions and loops, and how predictable the branches were.

use std::cmp::Reverse;
use std::io::{self, Write};

use lancet_engine::program::FuncId;
use rayon::prelude::*;

use super::super::Source;
use super::super::text::{Table, Text, cell, count, grouped, left, plain, right, styled};
use super::hot::{self, BranchCount, LoopCount};
use crate::names;
use crate::tools::count::{Counted, Rounds};

/// Branches are put together by the share of the way that they took more often.
const BIASES: [(&str, f64); 5] =
    [("one way only", 1.0), ("99 % or more", 0.99), ("90 % to 99 %", 0.9), ("70 % to 90 %", 0.7), ("under 70 %", 0.0)];

/// Faults that are told in full.
const FAULTS_SHOWN: usize = 5;

pub struct Summary<'a> {
    objects: &'a [Counted],
    pub instructions: u64,
    /// Hottest first.
    pub functions: Vec<HotFunction<'a>>,
    /// Hottest first.
    pub loops: Vec<(&'a Counted, LoopCount)>,
    /// Those first that went the rarer way most often.
    pub branches: Vec<(&'a Counted, BranchCount)>,
}

/// Says that control ended in the middle of a function, and what that means for its counts.
pub(super) fn stopped_line(counted: &Counted, id: FuncId, times: u64) -> String {
    let name = names::of_function(&counted.program, counted.program.func(id));
    let off = match counted.rounds {
        Rounds::Memory => "its counts may be off by as many",
        _ => "its counts may be off by as many, and lack the rounds of the loop that it was in",
    };
    format!("stopped {} in the middle of {name}: {off}", count(times, "time"))
}

pub struct HotFunction<'a> {
    pub counted: &'a Counted,
    pub id: FuncId,
    pub calls: u64,
    /// Executed by the function itself.
    pub instructions: u64,
}

impl Summary<'_> {
    /// Everything that ran.
    pub fn of(objects: &[Counted]) -> Summary<'_> {
        let mut summary = Summary {
            objects,
            instructions: objects.iter().map(Counted::instructions).sum(),
            functions: Vec::new(),
            loops: Vec::new(),
            branches: Vec::new(),
        };
        for counted in objects {
            let ids: Vec<FuncId> = counted.funcs().map(|(id, _)| id).collect();
            let function = |id: &FuncId| HotFunction {
                counted,
                id: *id,
                calls: counted.calls(*id),
                instructions: counted.func_instructions(*id),
            };
            summary.functions.par_extend(ids.par_iter().map(function).filter(|function| function.instructions > 0));
            let loops = ids.par_iter().flat_map_iter(|id| hot::loops(counted, *id)).filter(|l| l.instructions > 0);
            summary.loops.par_extend(loops.map(|l| (counted, l)));
            let branches = ids.par_iter().flat_map_iter(|id| hot::branches(counted, *id));
            summary.branches.par_extend(branches.map(|branch| (counted, branch)));
        }
        // Stable sorts: what is alike stays in the order of addresses.
        summary.functions.sort_by_key(|function| Reverse(function.instructions));
        summary.loops.sort_by_key(|(_, l)| Reverse(l.instructions));
        summary.branches.sort_by_key(|(_, branch)| Reverse(branch.rarer()));
        summary
    }

    /// `top` rows of each table.
    pub fn write_text(&self, top: usize, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        self.write_head(out, text)?;
        if self.functions.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        self.write_functions(top, out, text)?;
        if !self.loops.is_empty() {
            writeln!(out)?;
            self.write_loops(top, out, text)?;
        }
        if !self.branches.is_empty() {
            writeln!(out)?;
            self.write_biases(out, text)?;
            writeln!(out)?;
            self.write_branches(top, out, text)?;
        }
        Ok(())
    }

    fn write_head(&self, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let palette = text.palette;
        for counted in self.objects {
            let shards = count(counted.shards as u64, "shard");
            let line = format!("{}: {} instructions, {shards}", counted.name(), grouped(counted.instructions()));
            writeln!(out, "{}", styled(line, palette.heading))?;
            let left = counted.left_alone().map(|id| counted.program.func(id).size()).collect::<Vec<_>>();
            if !left.is_empty() {
                let code: u64 = counted.program.funcs().iter().map(|func| func.size()).sum();
                let share = percent(left.iter().sum(), code);
                let is_go = counted.program.image().go_code().is_some();
                let why = if is_go { " (Go's run-time system knows its functions by their addresses)" } else { "" };
                let line = format!("not counted: {}, {share} of the code{why}", count(left.len() as u64, "function"));
                writeln!(out, "  {}", styled(line, palette.doubt))?;
            }
            for (id, times) in counted.stopped().take(FAULTS_SHOWN) {
                let line = stopped_line(counted, id, times);
                writeln!(out, "  {}", styled(line, palette.doubt))?;
            }
            if counted.unlocated > 0 {
                let times = count(counted.unlocated, "time");
                let line = format!("control was taken away {times} at unknown places: counts may be off by as many");
                writeln!(out, "  {}", styled(line, palette.doubt))?;
            }
            for fault in counted.faults.iter().take(FAULTS_SHOWN) {
                writeln!(
                    out,
                    "  {}",
                    styled(format_args!("left out, because it makes no sense: {fault}"), palette.doubt)
                )?;
            }
            if let Some(more @ 1..) = counted.faults.len().checked_sub(FAULTS_SHOWN) {
                writeln!(out, "  {}", styled(format_args!("and {}", count(more as u64, "more fault")), palette.doubt))?;
            }
        }
        if let [_, _, ..] = self.objects {
            writeln!(
                out,
                "{}",
                styled(format_args!("together: {} instructions", grouped(self.instructions)), palette.heading)
            )?;
        }
        Ok(())
    }

    fn write_functions(&self, top: usize, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let mut table = Table::new(vec![right("SHARE"), right("INSTRUCTIONS"), right("CALLS"), left("FUNCTION")]);
        for function in self.functions.iter().take(top) {
            let program = &function.counted.program;
            table.row_with_note(
                vec![
                    plain(percent(function.instructions, self.instructions)),
                    plain(grouped(function.instructions)),
                    plain(grouped(function.calls)),
                    cell(names::of_function(program, program.func(function.id)), text.palette.name),
                ],
                self.object_note(function.counted, text),
            );
        }
        table.write(out, text)?;
        more(self.functions.len(), top, "more function", out, text)
    }

    fn write_loops(&self, top: usize, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let columns =
            vec![right("SHARE"), right("INSTRUCTIONS"), right("ENTERED"), right("TRIPS PER ENTRY"), left("LOOP")];
        let mut table = Table::new(columns);
        for (counted, l) in self.loops.iter().take(top) {
            let program = &counted.program;
            let name = names::of_function(program, program.func(l.func));
            table.row_with_note(
                vec![
                    plain(percent(l.instructions, self.instructions)),
                    plain(grouped(l.instructions)),
                    plain(grouped(l.entered)),
                    plain(l.trips_per_entry().map_or(String::new(), |trips| format!("{trips:.1}"))),
                    cell(format_args!("{} in {name}, depth {}", l.header, l.depth), text.palette.loops),
                ],
                self.source_note(counted, l.header, text),
            );
        }
        table.write(out, text)?;
        more(self.loops.len(), top, "more loop", out, text)
    }

    fn write_biases(&self, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let all: u64 = self.branches.iter().map(|(_, branch)| branch.runs()).sum();
        let mut table = Table::new(vec![right("SHARE"), right("EXECUTED"), right("BRANCHES"), left("MOSTLY ONE WAY")]);
        for bias in biases(&self.branches) {
            let (share, runs) = (percent(bias.runs, all), grouped(bias.runs));
            table.row(vec![plain(share), plain(runs), plain(grouped(bias.branches)), plain(bias.name)]);
        }
        table.write(out, text)
    }

    fn write_branches(&self, top: usize, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let mut table = Table::new(vec![right("TAKEN"), right("NOT TAKEN"), right("BIAS"), left("BRANCH")]);
        let both_ways = self.branches.iter().filter(|(_, branch)| branch.rarer() > 0);
        for (counted, branch) in both_ways.clone().take(top) {
            let program = &counted.program;
            let func = program.func(branch.func);
            let at = branch.at(program);
            table.row_with_note(
                vec![
                    plain(grouped(branch.taken)),
                    plain(grouped(branch.not_taken)),
                    plain(format!("{:.1}%", 100.0 * branch.bias())),
                    cell(format_args!("{at} in {}", names::of_function(program, func)), text.palette.name),
                ],
                self.source_note(counted, at, text),
            );
        }
        table.write(out, text)?;
        more(both_ways.count(), top, "more branch", out, text)
    }

    fn object_note(&self, counted: &Counted, text: &Text) -> String {
        match self.objects {
            [] | [_] => String::new(),
            _ => {
                let file = counted.name().rsplit('/').next().unwrap_or_default();
                format!("  {}", styled(file, text.palette.aside))
            }
        }
    }

    fn source_note(&self, counted: &Counted, at: lancet_isa::Svma, text: &Text) -> String {
        let source = Source::of(&counted.program, at);
        let source = source.map_or(String::new(), |source| format!("  {}", styled(source, text.palette.aside)));
        source + &self.object_note(counted, text)
    }
}

/// Branches that are about equally predictable.
pub struct Bias {
    pub name: &'static str,
    pub branches: u64,
    /// How often they ran together.
    pub runs: u64,
}

/// From the most to the least biased.
pub fn biases(branches: &[(&Counted, BranchCount)]) -> [Bias; BIASES.len()] {
    let mut biases = BIASES.map(|(name, _)| Bias { name, branches: 0, runs: 0 });
    for (_, branch) in branches {
        if let Some(class) = BIASES.iter().position(|(_, least)| branch.bias() >= *least) {
            biases[class].branches += 1;
            biases[class].runs += branch.runs();
        }
    }
    biases
}

fn more(all: usize, shown: usize, what: &str, out: &mut dyn Write, text: &Text) -> io::Result<()> {
    match all.saturating_sub(shown) {
        0 => Ok(()),
        left => {
            let left = count(left as u64, what).replace("branchs", "branches");
            writeln!(out, "{}", styled(format_args!("and {left}"), text.palette.aside))
        }
    }
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1}%", 100.0 * part as f64 / whole.max(1) as f64)
}
