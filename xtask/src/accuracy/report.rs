//! The table of results, and the bars they are held against.

use std::collections::BTreeMap;

use super::Outcome;
use super::corpus::{COMPILERS, Job, Variant};
use super::judge::Score;

/// A number that must be reached: its name, the share in percent that is demanded, and how to get part and whole.
struct Bar {
    name: &'static str,
    percent: f64,
    of: fn(&Score) -> (usize, usize),
}

const BARS: &[Bar] = &[
    Bar { name: "function starts, recall", percent: 99.9, of: |s| (s.found_starts, s.true_starts) },
    Bar {
        name: "function starts, precision",
        percent: 99.9,
        of: |s| (s.listed_starts - s.false_starts, s.listed_starts),
    },
    Bar { name: "function extents", percent: 99.0, of: |s| (s.right_extents, s.extents) },
    Bar { name: "jump tables, exact", percent: 99.0, of: |s| (s.exact_tables, s.tables) },
];

/// A number that must be zero: its name, and how to get it.
type Zero = (&'static str, fn(&Score) -> usize);

const ZEROES: &[Zero] =
    &[("wrong targets of jump tables", |s| s.wrong_targets), ("wrong instruction boundaries", |s| s.wrong_boundaries)];

#[derive(Default)]
pub(super) struct Report {
    rows: BTreeMap<Variant, Score>,
    truth: BTreeMap<&'static str, TruthSums>,
    failures: usize,
}

/// What the truth amounts to for one compiler.
#[derive(Clone, Copy, Default)]
struct TruthSums {
    files: usize,
    functions: usize,
    dwarf_functions: usize,
    tables: usize,
    confirmed_tables: usize,
    label_only_tables: usize,
}

impl Report {
    pub(super) fn add(&mut self, job: &Job, outcome: Outcome, verbose: usize) {
        let sums = self.truth.entry(job.variant.compiler.command()).or_default();
        sums.files += 1;
        sums.functions += outcome.true_functions;
        sums.dwarf_functions += outcome.checks.dwarf_functions;
        sums.tables += outcome.true_tables;
        sums.confirmed_tables += outcome.checks.confirmed_tables;
        sums.label_only_tables += outcome.checks.label_only_tables;
        let Some(verdict) = outcome.verdict else { return };
        *self.rows.entry(job.variant).or_default() += verdict.score;
        for mistake in verdict.mistakes.iter().take(verbose) {
            println!("{}: {mistake}", job.name());
        }
        if verbose > 0 && verdict.mistakes.len() > verbose {
            println!("{}: and {} more", job.name(), verdict.mistakes.len() - verbose);
        }
    }

    pub(super) fn failed(&mut self, error: &anyhow::Error) {
        eprintln!("{error:#}");
        self.failures += 1;
    }

    pub(super) fn print(&self, judged: bool) {
        self.print_truth();
        if judged {
            self.print_rows();
            self.print_bars();
        }
        if self.failures > 0 {
            println!("{} programs could not be judged", self.failures);
        }
    }

    fn print_truth(&self) {
        println!("\nThe truth, and how much of it a second source confirms:");
        println!(
            "{:<8} {:>6} {:>10} {:>10} {:>8} {:>12} {:>12}",
            "", "files", "functions", "by DWARF", "tables", "confirmed", "labels only"
        );
        for compiler in COMPILERS {
            if let Some(sums) = self.truth.get(compiler.command()) {
                println!(
                    "{:<8} {:>6} {:>10} {:>10} {:>8} {:>12} {:>12}",
                    compiler.command(),
                    sums.files,
                    sums.functions,
                    sums.dwarf_functions,
                    sums.tables,
                    sums.confirmed_tables,
                    sums.label_only_tables
                );
            }
        }
    }

    fn print_rows(&self) {
        println!("\nStripped files, judged by their twins:");
        println!(
            "{:<22} {:>5} {:>9} {:>8} {:>8} {:>8} {:>7} {:>8} {:>7} {:>10}",
            "", "files", "functions", "recall%", "prec.%", "extent%", "tables", "exact%", "wrong", "bad bounds"
        );
        for (variant, score) in &self.rows {
            print_row(&variant.to_string(), score);
        }
        print_row("all", &self.total());
    }

    fn total(&self) -> Score {
        let mut total = Score::default();
        for score in self.rows.values() {
            total += *score;
        }
        total
    }

    fn print_bars(&self) {
        let total = self.total();
        println!("\nAgainst the bars:");
        for bar in BARS {
            let (part, whole) = (bar.of)(&total);
            let verdict = if reaches(bar, &total) { "ok" } else { "MISSED" };
            println!(
                "{:<30} {:>8} of {:<8} {:>8} %  bar {} %  {verdict}",
                bar.name,
                part,
                whole,
                share(part, whole),
                bar.percent
            );
        }
        for (name, of) in ZEROES {
            let verdict = if of(&total) == 0 { "ok" } else { "MISSED" };
            println!("{name:<30} {:>8} {:>21} bar 0    {verdict}", of(&total), "");
        }
    }

    /// Whether all was judged and all bars are reached. Without a verdict only the truth was asked for.
    pub(super) fn is_good(&self) -> bool {
        let total = self.total();
        let judged = total.files > 0;
        let bars = BARS.iter().all(|bar| reaches(bar, &total)) && ZEROES.iter().all(|(_, of)| of(&total) == 0);
        self.failures == 0 && (bars || !judged)
    }
}

fn reaches(bar: &Bar, total: &Score) -> bool {
    let (part, whole) = (bar.of)(total);
    part as f64 * 100.0 >= bar.percent * whole as f64
}

fn print_row(name: &str, s: &Score) {
    println!(
        "{name:<22} {:>5} {:>9} {:>8} {:>8} {:>8} {:>7} {:>8} {:>7} {:>10}",
        s.files,
        s.true_starts,
        share(s.found_starts, s.true_starts),
        share(s.listed_starts - s.false_starts, s.listed_starts),
        share(s.right_extents, s.extents),
        s.tables,
        share(s.exact_tables, s.tables),
        s.wrong_targets,
        s.wrong_boundaries
    );
}

/// Percent, cut off rather than rounded: 100.00 means all.
pub(super) fn share(part: usize, whole: usize) -> String {
    if whole == 0 {
        return "-".to_string();
    }
    let hundredths = part as u128 * 10_000 / whole as u128;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_cut_off_not_rounded() {
        assert_eq!(share(99_999, 100_000), "99.99");
        assert_eq!(share(3, 3), "100.00");
        assert_eq!(share(0, 0), "-");
    }

    #[test]
    fn each_bar_can_be_missed() {
        let good = Score {
            files: 1,
            true_starts: 1000,
            found_starts: 999,
            listed_starts: 1000,
            false_starts: 1,
            extents: 100,
            right_extents: 99,
            tables: 100,
            exact_tables: 99,
            ..Score::default()
        };
        let is_good = |score: Score| {
            let variant = Variant { compiler: COMPILERS[0], level: "0", pie: true };
            Report { rows: BTreeMap::from([(variant, score)]), ..Report::default() }.is_good()
        };
        assert!(is_good(good));
        assert!(!is_good(Score { found_starts: 998, ..good }));
        assert!(!is_good(Score { false_starts: 2, ..good }));
        assert!(!is_good(Score { right_extents: 98, ..good }));
        assert!(!is_good(Score { exact_tables: 98, ..good }));
        assert!(!is_good(Score { wrong_targets: 1, ..good }));
        assert!(!is_good(Score { wrong_boundaries: 1, ..good }));
    }
}
