//! What a rewritten program measured, read out of the machine that ran it.

use std::io::{self, Write};

use lancet_blackfin_sim::Simulator;
use serde::Serialize;

use super::count;
use super::notes::Notes;
use super::phases::Profile;

/// Addresses are those of the program.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Measured {
    pub blocks: Vec<BlockCount>,
    pub edges: Vec<EdgeCount>,
    pub points: Vec<PointCount>,
    pub phases: Vec<PhaseRow>,
}

#[derive(Clone, Debug, Serialize)]
pub struct BlockCount {
    pub address: String,
    pub function: String,
    pub count: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct EdgeCount {
    pub from: String,
    pub to: String,
    pub kind: String,
    pub count: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct PointCount {
    pub address: String,
    pub after: bool,
    pub function: String,
    pub count: u64,
}

/// From one LSETUP to the next.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseRow {
    /// `None` for the start or the end of the program.
    pub start: Option<String>,
    pub end: Option<String>,
    pub function: Option<String>,
    pub executions: u64,
    pub cycles: u64,
    pub misses: u64,
}

impl Measured {
    pub fn read(notes: &Notes, simulator: &Simulator) -> Measured {
        let count = |at: u32| {
            let bytes = simulator.memory(at, 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u64::from_le_bytes)
        };
        let hex = |at: u32| format!("{at:#x}");
        let blocks = notes.blocks.iter().filter_map(|block| {
            let count = count(block.counter?);
            Some(BlockCount { address: hex(block.at), function: block.function.clone(), count })
        });
        let edges =
            notes.edges.iter().zip(count::edges(&notes.blocks, &notes.edges, count)).filter_map(|(edge, count)| {
                Some(EdgeCount { from: hex(edge.from), to: hex(edge.to), kind: edge.kind.clone(), count: count? })
            });
        let points = notes.points.iter().map(|point| PointCount {
            address: hex(point.at),
            after: point.after,
            function: point.function.clone(),
            count: count(point.counter),
        });
        let phases = notes.phases.as_ref().map(|phases| {
            let profile = Profile::read(phases, simulator);
            let row = |phase: &super::phases::Phase| PhaseRow {
                start: phases.points.get(phase.start).copied().map(hex),
                end: phases.points.get(phase.end).copied().map(hex),
                function: phases.functions.get(phase.start).cloned(),
                executions: phase.executions,
                cycles: phase.cycles,
                misses: phase.misses,
            };
            let mut rows: Vec<PhaseRow> = profile.phases.iter().map(row).collect();
            rows.sort_by_key(|row| std::cmp::Reverse(row.cycles));
            rows
        });
        Measured {
            blocks: blocks.collect(),
            edges: edges.collect(),
            points: points.collect(),
            phases: phases.unwrap_or_default(),
        }
    }

    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        for BlockCount { address, function, count } in &self.blocks {
            writeln!(out, "{count:>14}  block {address:>10}  {function}")?;
        }
        for EdgeCount { from, to, kind, count } in &self.edges {
            writeln!(out, "{count:>14}  edge  {from:>10} -> {to} ({kind})")?;
        }
        for PointCount { address, after, function, count } in &self.points {
            let side = if *after { "after" } else { "before" };
            writeln!(out, "{count:>14}  {side} {address:>10}  {function}")?;
        }
        if !self.phases.is_empty() {
            writeln!(
                out,
                "{:>14} {:>12} {:>12}  {:>10}  {:>10}  start in",
                "cycles", "misses", "executions", "start", "end"
            )?;
        }
        for PhaseRow { start, end, function, executions, cycles, misses } in &self.phases {
            let [start, end, function] = [start, end, function].map(|text| text.as_deref().unwrap_or("-"));
            writeln!(out, "{cycles:>14} {misses:>12} {executions:>12}  {start:>10}  {end:>10}  {function}")?;
        }
        Ok(())
    }
}
