//! What changed between two profiles.
//!
//! Functions are compared by object and name, by their own share of all samples: profiles of different lengths and
//! rates can be compared, and a function that moved is still the same.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::profile::ProfileReport;
use super::text::{Table, Text, cell, left, plain, right, styled};

#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    pub before: Side,
    pub after: Side,
    /// The largest change first.
    pub functions: Vec<Change>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Side {
    pub subject: String,
    pub event: String,
    pub seconds: f64,
    pub samples: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    pub object: String,
    pub name: String,
    /// Own share in per cent; 0 where it did not run.
    pub before: f64,
    pub after: f64,
    pub change: f64,
}

pub fn diff(before: &ProfileReport, after: &ProfileReport) -> Diff {
    let side = |report: &ProfileReport| Side {
        subject: report.subject.clone(),
        event: report.event.clone(),
        seconds: report.seconds,
        samples: report.samples,
    };
    let mut shares: BTreeMap<(&str, &str), [f64; 2]> = BTreeMap::new();
    for (side, report) in [before, after].into_iter().enumerate() {
        for function in &report.functions {
            let file = function.object.rsplit('/').next().unwrap_or_default();
            shares.entry((file, &function.name)).or_default()[side] += function.own_percent;
        }
    }
    let change = |((object, name), [before, after]): ((&str, &str), [f64; 2])| Change {
        object: object.to_owned(),
        name: name.to_owned(),
        before,
        after,
        change: after - before,
    };
    let mut functions: Vec<Change> = shares.into_iter().map(change).collect();
    functions.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
    Diff { before: side(before), after: side(after), functions }
}

/// Changes smaller than this, in per cent of all samples, are left out of text.
const WORTH_TELLING: f64 = 0.1;

impl Diff {
    pub fn write_text(&self, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let palette = text.palette;
        for (what, side) in [("before", &self.before), ("after ", &self.after)] {
            let line = format!(
                "{what}  {}: {} samples of {} in {:.1} s",
                side.subject, side.samples, side.event, side.seconds
            );
            writeln!(out, "{}", styled(line, palette.heading))?;
        }
        let mut table = Table::new(vec![right("BEFORE"), right("AFTER"), right("CHANGE"), left("FUNCTION")]);
        for f in self.functions.iter().filter(|f| f.change.abs() >= WORTH_TELLING) {
            table.row_with_note(
                vec![
                    plain(super::profile::percent(f.before)),
                    plain(super::profile::percent(f.after)),
                    cell(format_args!("{:+.1}%", f.change), palette.doubt),
                    cell(&f.name, palette.name),
                ],
                format!("  {}", styled(&f.object, palette.aside)),
            );
        }
        table.write(out, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::profile::FunctionShare;

    fn report(shares: &[(&str, f64)]) -> ProfileReport {
        let function = |(name, own): &(&str, f64)| FunctionShare {
            object: "/x/a.out".into(),
            name: (*name).into(),
            own_percent: *own,
            ..FunctionShare::default()
        };
        ProfileReport { functions: shares.iter().map(function).collect(), ..ProfileReport::default() }
    }

    #[test]
    fn largest_changes_first_and_functions_that_came_or_went() {
        let diff = diff(&report(&[("a", 50.0), ("b", 30.0), ("c", 20.0)]), &report(&[("a", 55.0), ("d", 45.0)]));
        let changes: Vec<(&str, f64)> = diff.functions.iter().map(|f| (f.name.as_str(), f.change)).collect();
        assert_eq!(changes, [("d", 45.0), ("b", -30.0), ("c", -20.0), ("a", 5.0)]);
    }
}
