//! What was done to a process, and what is in force.

use std::io::{self, Write};

use lancet_engine::sink::live::{Entry, Receipt, Region, State};
use serde::Serialize;

use super::text::{Table, Text, cell, count, left, plain, right, styled};
use crate::live::Replaced;

/// What `replace` did.
#[derive(Clone, Debug, Serialize)]
pub struct ReplaceReport {
    pub pid: u32,
    pub id: u64,
    pub function: String,
    /// Actual addresses: of the function, and of the code that stands in for it.
    pub at: String,
    pub code: String,
    pub how: &'static str,
    pub places: usize,
    pub pause_microseconds: f64,
    pub threads: usize,
    pub moved: usize,
}

impl ReplaceReport {
    pub fn new(pid: u32, how: &'static str, replaced: &Replaced) -> ReplaceReport {
        ReplaceReport {
            pid,
            id: replaced.receipt.id,
            function: replaced.function.clone(),
            at: replaced.at.to_string(),
            code: replaced.code.to_string(),
            how,
            places: replaced.places,
            pause_microseconds: microseconds(&replaced.receipt),
            threads: replaced.receipt.threads,
            moved: replaced.receipt.moved,
        }
    }

    pub fn write_text(&self, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let palette = text.palette;
        writeln!(
            out,
            "{} at {} now leads to {}: {} changed, {} stood still for {:.0} µs, {} moved",
            styled(&self.function, palette.name),
            styled(&self.at, palette.address),
            styled(&self.code, palette.address),
            count(self.places as u64, "place"),
            count(self.threads as u64, "thread"),
            self.pause_microseconds,
            self.moved,
        )?;
        writeln!(out, "patch {}; lancet undo --pid {} {} takes it back", self.id, self.pid, self.id)
    }
}

fn microseconds(receipt: &Receipt) -> f64 {
    receipt.pause.as_secs_f64() * 1e6
}

/// What `undo` did with one patch.
#[derive(Clone, Debug, Serialize)]
pub struct UndoReport {
    pub id: u64,
    pub function: String,
    pub pause_microseconds: f64,
    pub threads: usize,
}

impl UndoReport {
    pub fn new(function: String, receipt: &Receipt) -> UndoReport {
        UndoReport { id: receipt.id, function, pause_microseconds: microseconds(receipt), threads: receipt.threads }
    }

    pub fn write_text(&self, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let function = styled(&self.function, text.palette.name);
        let threads = count(self.threads as u64, "thread");
        writeln!(
            out,
            "patch {} of {function} taken back; {threads} stood still for {:.0} µs",
            self.id, self.pause_microseconds
        )
    }
}

/// What is in force.
#[derive(Clone, Debug, Serialize)]
pub struct StatusReport {
    pub pid: u32,
    pub patches: Vec<PatchStatus>,
    pub regions: Vec<RegionStatus>,
}

#[derive(Clone, Debug, Serialize)]
pub struct PatchStatus {
    pub id: u64,
    pub function: String,
    pub how: String,
    /// `applied`; or `writing` if Lancet was killed while it made the change.
    pub state: &'static str,
    /// Seconds since 1970.
    pub time: u64,
    pub command: String,
    pub places: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct RegionStatus {
    pub address: String,
    pub code: u64,
    pub code_used: u64,
    pub data: u64,
    pub data_used: u64,
}

impl StatusReport {
    pub fn new(pid: u32, regions: &[Region], patches: &[Entry]) -> StatusReport {
        let patch = |entry: &Entry| PatchStatus {
            id: entry.id,
            function: entry.subject.clone(),
            how: entry.how.clone(),
            state: match entry.state {
                State::Writing => "writing",
                State::Applied => "applied",
            },
            time: entry.time,
            command: entry.command.clone(),
            places: entry.writes.iter().map(|write| format!("{:#x}", write.at)).collect(),
        };
        let region = |region: &Region| RegionStatus {
            address: format!("{:#x}", region.start),
            code: region.code,
            code_used: region.code_used,
            data: region.data,
            data_used: region.data_used,
        };
        StatusReport {
            pid,
            patches: patches.iter().map(patch).collect(),
            regions: regions.iter().map(region).collect(),
        }
    }

    pub fn write_text(&self, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let palette = text.palette;
        if self.patches.is_empty() {
            writeln!(out, "process {}: nothing is changed", self.pid)?;
        } else {
            let mut table = Table::new(vec![
                right("ID"),
                left("HOW"),
                left("STATE"),
                right("PLACES"),
                left("FUNCTION"),
                left("COMMAND"),
            ]);
            for patch in &self.patches {
                table.row(vec![
                    plain(patch.id),
                    plain(&patch.how),
                    cell(patch.state, if patch.state == "applied" { palette.aside } else { palette.doubt }),
                    plain(patch.places.len()),
                    cell(&patch.function, palette.name),
                    cell(&patch.command, palette.aside),
                ]);
            }
            table.write(out, text)?;
        }
        for region in &self.regions {
            let line = format!(
                "new memory at {}: {} of {} bytes of code, {} of {} bytes of data",
                region.address, region.code_used, region.code, region.data_used, region.data
            );
            writeln!(out, "{}", styled(line, palette.aside))?;
        }
        Ok(())
    }
}
