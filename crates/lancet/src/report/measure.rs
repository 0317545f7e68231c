//! One function, call by call; and blocks, counted in a process.

use std::io::{self, Write};

use serde::Serialize;

use super::text::{Table, Text, cell, count, left, plain, right, styled};
use crate::live::{BlockCounts, Counters, Live, Measured};

#[derive(Clone, Debug, Serialize)]
pub struct MeasureReport {
    pub pid: u32,
    pub function: String,
    /// Calls that were timed.
    pub calls: usize,
    /// Nanoseconds of a call, what it called included.
    pub nanoseconds: Distribution,
    /// Calls that took much longer than others.
    pub outliers: Vec<Outlier>,
    /// Of a call, with those of what it calls, counted over other calls; `null` if they could not be counted.
    pub instructions: Option<f64>,
    pub instructions_unknown: Option<String>,
    /// Of a call, those of the function itself.
    pub own_instructions: Option<f64>,
    pub own_instructions_unknown: Option<String>,
    /// Whether only whole calls were counted, so that the numbers are exact.
    pub instructions_exact: bool,
    /// Core cycles of a typical call.
    pub cycles: Option<f64>,
    pub ipc: Option<f64>,
    /// `pmu`: by the machine's counters, of the function itself; `calibrated`: by exact counts and a calibrated clock.
    pub ipc_by: &'static str,
    /// Why there is none.
    pub ipc_unknown: Option<String>,
    /// Gigahertz of the core while it was measured.
    pub clock: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Distribution {
    pub least: f64,
    pub median: f64,
    pub mean: f64,
    pub p90: f64,
    pub p99: f64,
    pub most: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Outlier {
    /// Which call it was.
    pub call: usize,
    pub nanoseconds: f64,
}

/// So many outliers are named, and what one is: so many times the distance from the median to the 90th of a hundred.
const MOST_OUTLIERS: usize = 5;
const FAR: f64 = 5.0;

pub fn measure(pid: u32, measured: &Measured) -> MeasureReport {
    let mut sorted = measured.times.clone();
    sorted.sort_by(f64::total_cmp);
    let at = |part: f64| sorted.get(((sorted.len() as f64 - 1.0) * part).round() as usize).copied().unwrap_or(0.0);
    let nanoseconds = Distribution {
        least: at(0.0),
        median: at(0.5),
        mean: sorted.iter().sum::<f64>() / sorted.len().max(1) as f64,
        p90: at(0.9),
        p99: at(0.99),
        most: at(1.0),
    };
    let limit = nanoseconds.median + FAR * (nanoseconds.p90 - nanoseconds.median).max(0.05 * nanoseconds.median);
    let mut outliers: Vec<Outlier> = measured
        .times
        .iter()
        .enumerate()
        .filter(|(_, time)| **time > limit)
        .map(|(call, time)| Outlier { call, nanoseconds: *time })
        .collect();
    outliers.sort_by(|a, b| b.nanoseconds.total_cmp(&a.nanoseconds));
    outliers.truncate(MOST_OUTLIERS);
    let [all, own] = [&measured.instructions, &measured.own_instructions]
        .map(|counted| counted.clone().and_then(|counted| counted.per_call()));
    let by_counters = measured.counters.and_then(Counters::ipc);
    let calibrated = measured.ipc();
    MeasureReport {
        pid,
        function: measured.function.clone(),
        calls: measured.times.len(),
        nanoseconds,
        outliers,
        instructions: all.as_ref().ok().copied(),
        instructions_unknown: all.err(),
        own_instructions: own.as_ref().ok().copied(),
        own_instructions_unknown: own.err(),
        instructions_exact: measured.own_instructions.as_ref().is_ok_and(|counted| counted.whole),
        cycles: measured.cycles(),
        ipc: by_counters.or(calibrated.as_ref().ok().copied()),
        ipc_by: if by_counters.is_some() { "pmu" } else { "calibrated" },
        ipc_unknown: if by_counters.is_some() { None } else { calibrated.err() },
        clock: measured.clock,
    }
}

impl MeasureReport {
    pub fn write_text(&self, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let palette = text.palette;
        writeln!(out, "{}: {} timed", styled(&self.function, palette.name), count(self.calls as u64, "call"))?;
        let ns = &self.nanoseconds;
        let mut table = Table::new(vec![
            left("OF A CALL"),
            right("LEAST"),
            right("MEDIAN"),
            right("MEAN"),
            right("90 %"),
            right("99 %"),
            right("MOST"),
        ]);
        let times = [ns.least, ns.median, ns.mean, ns.p90, ns.p99, ns.most];
        let row = |what: &str, factor: f64| {
            let numbers = times.iter().map(|time| plain(format!("{:.1}", time * factor)));
            std::iter::once(cell(what, palette.heading)).chain(numbers).collect()
        };
        table.row(row("nanoseconds", 1.0));
        table.row(row("cycles", self.clock));
        table.write(out, text)?;
        self.write_instructions(out)?;
        if let Some(ipc) = self.ipc {
            writeln!(out, "{:<18}{ipc:.3}, at {:.2} GHz", format!("ipc ({})", self.ipc_by), self.clock)?;
        }
        if let Some(why) = &self.ipc_unknown {
            writeln!(out, "ipc               not known: {why}")?;
        }
        for outlier in &self.outliers {
            let line = format!("call {} took {:.1} ns", outlier.call, outlier.nanoseconds);
            writeln!(out, "{}", styled(line, palette.doubt))?;
        }
        Ok(())
    }
}

impl MeasureReport {
    fn write_instructions(&self, out: &mut dyn Write) -> io::Result<()> {
        let doubt = match self.instructions_exact {
            true => "exact",
            false => "about: calls under way are among them, or calls that did not return",
        };
        match (self.instructions, self.own_instructions) {
            (Some(all), Some(own)) if all > own => {
                writeln!(out, "instructions      {all:.1} of a call, {doubt}")?;
                writeln!(out, "                  {own:.1} its own")?;
            }
            (Some(all), _) => writeln!(out, "instructions      {all:.1} of a call, {doubt}")?,
            (None, Some(own)) => writeln!(out, "instructions      {own:.1} of a call, its own, {doubt}")?,
            (None, None) => {}
        }
        if let Some(why) = self.own_instructions_unknown.as_ref().or(self.instructions_unknown.as_ref()) {
            let what = if self.own_instructions.is_some() { "those of what it calls: " } else { "" };
            writeln!(out, "                  {what}not counted: {why}")?;
        }
        Ok(())
    }
}

/// Blocks of one function, counted in a process.
#[derive(Clone, Debug, Serialize)]
pub struct LiveCounts {
    pub object: String,
    pub address: String,
    pub name: String,
    /// How often it was entered at its beginning.
    pub calls: u64,
    /// Instructions that it executed itself.
    pub instructions: u64,
    pub blocks: Vec<BlockCount>,
}

#[derive(Clone, Debug, Serialize)]
pub struct BlockCount {
    pub address: String,
    pub count: u64,
    pub instructions: u32,
}

pub fn live_counts(live: &Live, counts: &BlockCounts) -> LiveCounts {
    let func = live.func(counts.function);
    let blocks = func.blocks.iter().zip(&counts.blocks);
    LiveCounts {
        object: live.object(counts.function).name().to_owned(),
        address: func.entry.to_string(),
        name: live.name(counts.function),
        calls: counts.calls(),
        instructions: counts.instructions(func),
        blocks: blocks
            .map(|(block, count)| BlockCount {
                address: block.start.to_string(),
                count: *count,
                instructions: block.insns,
            })
            .collect(),
    }
}

impl LiveCounts {
    pub fn write_text(&self, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let palette = text.palette;
        let name = styled(&self.name, palette.name);
        writeln!(
            out,
            "{} {name}: {} calls, {} instructions",
            styled(&self.address, palette.address),
            self.calls,
            self.instructions
        )?;
        let mut table = Table::new(vec![right("BLOCK"), right("COUNT"), right("INSNS")]);
        for block in &self.blocks {
            table.row(vec![cell(&block.address, palette.address), plain(block.count), plain(block.instructions)]);
        }
        table.write(out, text)
    }
}
