//! What is where in a rewritten program, and what became of the points.

use std::collections::BTreeMap;
use std::io::{self, Write};

use lancet_engine::layout::inplace::{Edited, Place, Placed, Tactic};
use lancet_engine::program::{EdgeKind, Program};
use serde::{Deserialize, Serialize};

use super::{Wanted, function_at};

/// Addresses are those of the program; counters are 64 bits in its memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Notes {
    pub program: String,
    pub blocks: Vec<BlockNote>,
    pub edges: Vec<EdgeNote>,
    pub points: Vec<PointNote>,
    pub phases: Option<PhasesNote>,
    /// Where the analysis routines keep their data.
    pub analysis_data: Option<u32>,
    pub totals: Totals,
    /// Places, and how something was added there.
    pub placed: Vec<PlacedNote>,
    /// Places, and why nothing was added there.
    pub refused: Vec<(u32, String)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockNote {
    pub at: u32,
    pub function: String,
    pub counter: Option<u32>,
    /// Control may come over no edge, or leave over none.
    pub entered_from_elsewhere: bool,
    pub leaves_for_elsewhere: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EdgeNote {
    /// The starts of blocks.
    pub from: u32,
    pub to: u32,
    pub kind: String,
    pub counter: Option<u32>,
}

/// A place that a points file counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PointNote {
    pub at: u32,
    pub after: bool,
    pub function: String,
    pub counter: u32,
}

/// A place that was served: before or after an instruction, where a branch is taken, or where a hardware loop goes round
/// again or is done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlacedNote {
    pub at: u32,
    pub side: String,
    pub tactic: String,
    /// What it costs to count there, about.
    pub cycles: u32,
}

/// The phase profile.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PhasesNote {
    /// The LSETUPs that bound phases.
    pub points: Vec<u32>,
    /// Their functions.
    pub functions: Vec<String>,
    pub data: u32,
    /// The cycles of a slice of time, as a power of two.
    pub slice: u32,
}

/// How many points were served how, and the bytes that were added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub jumps: usize,
    pub traps: usize,
    pub refused: usize,
    pub bytes: u32,
    pub bytes_on_chip: u32,
}

impl Totals {
    pub fn of(edited: &Edited) -> Totals {
        let by = |tactic| edited.placed.iter().filter(|placed| placed.tactic == tactic).count();
        Totals {
            jumps: by(Tactic::Jump),
            traps: by(Tactic::Trap),
            refused: edited.refused.len(),
            bytes: edited.bytes,
            bytes_on_chip: edited.bytes_on_chip,
        }
    }
}

pub(super) fn of(program: &Program, name: String, wanted: &Wanted, edited: &Edited, has_data: bool) -> Notes {
    let refused: BTreeMap<Place, String> =
        edited.refused.iter().map(|(place, why)| (*place, why.to_string())).collect();
    let served = |place: Place, counter: u32| (!refused.contains_key(&place)).then(|| edited.counters_at + 8 * counter);
    let blocks = wanted.blocks.iter().map(|block| BlockNote {
        at: block.at,
        function: function_at(program, block.at),
        counter: served(Place::Before(block.at), block.counter),
        entered_from_elsewhere: block.entered,
        leaves_for_elsewhere: block.leaks,
    });
    let edges = wanted.edges.iter().map(|edge| EdgeNote {
        from: edge.from,
        to: edge.to,
        kind: kind(edge.kind).to_owned(),
        counter: edge.counter.and_then(|(branch, counter)| served(Place::Taken(branch), counter)),
    });
    let points = wanted.counted.iter().filter_map(|(place, counter)| {
        Some(PointNote {
            at: place.at(),
            after: matches!(place, Place::After(_)),
            function: function_at(program, place.at()),
            counter: served(*place, *counter)?,
        })
    });
    Notes {
        program: name,
        blocks: blocks.collect(),
        edges: edges.collect(),
        points: points.collect(),
        phases: None,
        analysis_data: has_data.then_some(edited.payload_data_at),
        totals: Totals::of(edited),
        placed: placed(edited),
        refused: refused.iter().map(|(place, why)| (place.at(), why.clone())).collect(),
    }
}

/// How every point was served, by address.
pub(super) fn placed(edited: &Edited) -> Vec<PlacedNote> {
    let note = |placed: &Placed| PlacedNote {
        at: placed.place.at(),
        side: placed.place.to_string(),
        tactic: placed.tactic.to_string(),
        cycles: placed.tactic.cycles_of_a_count(),
    };
    let mut notes: Vec<PlacedNote> = edited.placed.iter().map(note).collect();
    notes.sort_by_key(|note| note.at);
    notes
}

fn kind(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Fall => "fall",
        EdgeKind::Jump => "jump",
        EdgeKind::Taken => "taken",
        EdgeKind::CallReturn => "return",
        EdgeKind::Table => "table",
        EdgeKind::Repeat => "repeat",
    }
}

impl Notes {
    /// What was done, in a few lines; with `explain`, point by point.
    pub fn write_text(&self, explain: bool, out: &mut dyn Write) -> io::Result<()> {
        let Totals { jumps, traps, refused, bytes, bytes_on_chip } = self.totals;
        for (count, tactic) in [(jumps, Tactic::Jump), (traps, Tactic::Trap)] {
            let cycles = tactic.cycles_of_a_count();
            writeln!(out, "{count:>8} points by {tactic}s (about {cycles} cycles a count)")?;
        }
        writeln!(out, "{refused:>8} points refused")?;
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        self.refused.iter().for_each(|(_, why)| *reasons.entry(why).or_default() += 1);
        for (why, count) in reasons {
            writeln!(out, "{count:>16}  {why}")?;
        }
        writeln!(out, "{bytes:>8} bytes added, {bytes_on_chip} of them in on-chip memory")?;
        if explain {
            for PlacedNote { at, side, tactic, cycles } in &self.placed {
                writeln!(out, "{at:#010x}: {side}, by a {tactic}, about {cycles} cycles a count")?;
            }
            for (at, why) in &self.refused {
                writeln!(out, "{at:#010x}: {why}")?;
            }
        }
        Ok(())
    }
}
