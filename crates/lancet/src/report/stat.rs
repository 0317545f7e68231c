//! Events counted in an interval.

use std::io::{self, Write};
use std::time::Instant;

use lancet_engine::collect::Count;
use serde::Serialize;

use super::text::{Table, Text, cell, left, plain, right};

#[derive(Clone, Debug, Serialize)]
pub struct Interval {
    /// Seconds since counting began, at its end.
    pub at: f64,
    pub seconds: f64,
    pub events: Vec<Counted>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Counted {
    pub event: String,
    pub count: u64,
    pub per_second: f64,
    /// The part of the time in which the event had a counter; counts are scaled up where it is less than 1.
    pub share: f64,
}

/// What was counted between two readings.
pub fn counted(begin: Instant, before: (Instant, &[Count]), after: (Instant, &[Count])) -> Interval {
    let seconds = (after.0 - before.0).as_secs_f64();
    let event = |(old, new): (&Count, &Count)| {
        let count = new.value.saturating_sub(old.value);
        Counted { event: new.event.name.clone(), count, per_second: count as f64 / seconds, share: new.share }
    };
    let events = before.1.iter().zip(after.1).map(event).collect();
    Interval { at: (after.0 - begin).as_secs_f64(), seconds, events }
}

impl Interval {
    /// One line, with the subject's name.
    pub fn json(&self, subject: &str) -> serde_json::Result<String> {
        let mut value = serde_json::to_value(self)?;
        if let Some(object) = value.as_object_mut() {
            object.insert("subject".into(), subject.into());
        }
        serde_json::to_string(&value)
    }

    pub fn write_text(&self, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let mut table = Table::new(vec![right("TIME"), right("COUNT"), right("PER SECOND"), left("EVENT")]);
        for counted in &self.events {
            let scaled = if counted.share < 0.999 {
                format!(" (counted {:.0}% of the time)", 100.0 * counted.share)
            } else {
                String::new()
            };
            table.row_with_note(
                vec![
                    cell(format_args!("{:.2}", self.at), text.palette.aside),
                    plain(counted.count),
                    plain(format_args!("{:.0}", counted.per_second)),
                    cell(&counted.event, text.palette.name),
                ],
                scaled,
            );
        }
        table.write(out, text)
    }
}
