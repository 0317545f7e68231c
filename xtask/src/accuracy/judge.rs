//! Compares what Lancet says with what is true.
//!
//! - A function start is right if a function of the truth starts there. Starts inside the linker's stubs do not count.
//!   Where two functions of the truth share one body, it is as good to list the inner one as an entry of the outer one.
//! - An extent is right if Lancet's parts hold exactly the instructions of the function, padding aside.
//! - A jump table is exact if Lancet has its address, entries and targets, at every jump that it says uses the table.
//!   A target that the true table does not have is wrong; so is any target of a table that does not exist.
//! - A boundary is wrong if Lancet sees an instruction where none starts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{AddAssign, Range};

use super::analysis::{FunctionGraph, JumpTable};
use super::truth::Truth;

/// Numbers that add up over files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Score {
    pub(super) files: usize,
    pub(super) true_starts: usize,
    pub(super) found_starts: usize,
    pub(super) listed_starts: usize,
    pub(super) false_starts: usize,
    pub(super) extents: usize,
    pub(super) right_extents: usize,
    pub(super) tables: usize,
    pub(super) exact_tables: usize,
    pub(super) wrong_targets: usize,
    pub(super) instructions: usize,
    pub(super) wrong_boundaries: usize,
}

impl AddAssign for Score {
    fn add_assign(&mut self, other: Score) {
        self.files += other.files;
        self.true_starts += other.true_starts;
        self.found_starts += other.found_starts;
        self.listed_starts += other.listed_starts;
        self.false_starts += other.false_starts;
        self.extents += other.extents;
        self.right_extents += other.right_extents;
        self.tables += other.tables;
        self.exact_tables += other.exact_tables;
        self.wrong_targets += other.wrong_targets;
        self.instructions += other.instructions;
        self.wrong_boundaries += other.wrong_boundaries;
    }
}

pub(super) struct Verdict {
    pub(super) score: Score,
    /// One line for each mistake.
    pub(super) mistakes: Vec<String>,
}

/// Takes in the functions that Lancet lists and the graphs it draws, then gives the verdict.
pub(super) struct Judge<'a> {
    truth: &'a Truth,
    listed: BTreeSet<u64>,
    /// Entries into the middle of functions.
    entries: BTreeSet<u64>,
    parts: BTreeMap<u64, Vec<Range<u64>>>,
    tables: Vec<JumpTable>,
    score: Score,
    mistakes: Vec<String>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(truth: &'a Truth) -> Judge<'a> {
        let score = Score { files: 1, ..Score::default() };
        Judge {
            truth,
            listed: BTreeSet::new(),
            entries: BTreeSet::new(),
            parts: BTreeMap::new(),
            tables: Vec::new(),
            score,
            mistakes: Vec::new(),
        }
    }

    pub(super) fn listed(&mut self, start: u64) {
        self.listed.insert(start);
    }

    pub(super) fn graph(&mut self, graph: FunctionGraph) {
        if self.is_stub(graph.address.0) {
            return;
        }
        for block in &graph.blocks {
            for offset in &block.instructions {
                let at = block.address.0.wrapping_add(*offset);
                self.score.instructions += 1;
                if !self.truth.boundaries.contains(at) {
                    self.score.wrong_boundaries += 1;
                    self.mistakes.push(format!("no instruction starts at {at:#x} ({})", self.place(at)));
                }
            }
        }
        let parts = graph.parts.iter().map(|part| part.address.0..part.address.0.saturating_add(part.size));
        self.parts.insert(graph.address.0, parts.collect());
        self.entries.extend(graph.entries.iter().map(|entry| entry.0));
        self.tables.extend(graph.jump_tables);
    }

    pub(super) fn verdict(mut self) -> Verdict {
        self.starts();
        self.extents();
        self.jump_tables();
        Verdict { score: self.score, mistakes: self.mistakes }
    }

    fn starts(&mut self) {
        let true_starts: BTreeSet<u64> = self.truth.functions.by_start.keys().copied().collect();
        self.score.true_starts = true_starts.len();
        for &start in &true_starts {
            let is_inner = self.truth.functions.is_inside_another(start);
            if self.listed.contains(&start) || is_inner && self.entries.contains(&start) {
                self.score.found_starts += 1;
            } else {
                self.mistakes.push(format!("function not found: {start:#x} ({})", self.place(start)));
            }
        }
        let listed: Vec<u64> = self.listed.iter().copied().filter(|&start| !self.is_stub(start)).collect();
        self.score.listed_starts = listed.len();
        for extra in listed.into_iter().filter(|start| !true_starts.contains(start)) {
            self.score.false_starts += 1;
            self.mistakes.push(format!("no function starts at {extra:#x} ({})", self.place(extra)));
        }
    }

    fn extents(&mut self) {
        let truth = self.truth;
        for (start, function) in &truth.functions.by_start {
            let is_an_entry = !self.listed.contains(start) && truth.functions.is_inside_another(*start);
            if function.parts.is_empty() || function.holds_entries || is_an_entry {
                continue;
            }
            self.score.extents += 1;
            let Some(parts) = self.parts.get(start) else { continue };
            let (expected, found) = (self.instructions(&function.parts), self.instructions(parts));
            if expected == found {
                self.score.right_extents += 1;
            } else {
                let (name, missing) = (&function.name, expected.difference(&found).next());
                let extra = found.difference(&expected).next();
                let example = match (missing, extra) {
                    (Some(at), _) => format!("{at:#x} is missing"),
                    (None, Some(at)) => format!("{at:#x} is not of it ({})", self.place(*at)),
                    (None, None) => String::new(),
                };
                let found = format!("{:x?}, found {parts:x?}", function.parts);
                self.mistakes.push(format!("extent of {name}: {found}: {example}"));
            }
        }
    }

    /// The instructions of some parts, without padding and data.
    fn instructions(&self, parts: &[Range<u64>]) -> BTreeSet<u64> {
        parts.iter().flat_map(|part| self.truth.boundaries.working(part)).collect()
    }

    fn jump_tables(&mut self) {
        let truth = self.truth;
        let counts = |address: &u64| truth.tables.get(address).is_none_or(|table| !table.copied);
        self.score.tables = truth.tables.keys().filter(|address| counts(address)).count();
        // By table: whether every jump through it has it exactly.
        let mut seen: BTreeMap<u64, bool> = BTreeMap::new();
        for found in std::mem::take(&mut self.tables) {
            let address = found.table.0;
            let targets: Vec<u64> = found.targets.iter().map(|target| target.0).collect();
            let true_targets = truth.tables.get(&address).map_or(&[][..], |table| &table.targets);
            let true_set: BTreeSet<u64> = true_targets.iter().copied().collect();
            let wrong: BTreeSet<u64> = targets.iter().copied().filter(|t| !true_set.contains(t)).collect();
            self.score.wrong_targets += wrong.len();
            if let Some(first) = wrong.first() {
                let (jump, place) = (found.jump.0, self.place(found.jump.0));
                let text = format!("table {address:#x} of the jump at {jump:#x} ({place}): wrong target {first:#x}");
                self.mistakes.push(format!("{text}, {} in all", wrong.len()));
            }
            let is_exact = truth
                .tables
                .get(&address)
                .is_some_and(|table| table.targets == targets && table.entry_bytes == found.entry_bytes);
            *seen.entry(address).or_insert(true) &= is_exact;
            if !is_exact && !true_targets.is_empty() {
                let (jump, n, m) = (found.jump.0, targets.len(), true_targets.len());
                self.mistakes.push(format!("table {address:#x} of the jump at {jump:#x}: {n} entries, true are {m}"));
            }
        }
        self.score.exact_tables = seen.iter().filter(|(address, exact)| **exact && counts(address)).count();
        let missing = |address: &u64| counts(address) && !seen.contains_key(address);
        for (address, table) in truth.tables.iter().filter(|(address, _)| missing(address)) {
            let place = table.targets.first().map_or_else(String::new, |&target| self.place(target));
            self.mistakes.push(format!("table not found: {address:#x} ({place}), {} entries", table.targets.len()));
        }
    }

    fn is_stub(&self, address: u64) -> bool {
        self.truth.stubs.iter().any(|range| range.contains(&address))
    }

    /// Where an address is, for a person.
    fn place(&self, address: u64) -> String {
        let functions = &self.truth.functions;
        match functions.by_start.get(&address).or_else(|| functions.containing(address)) {
            Some(function) => match functions.start_of(address) {
                Some(start) if start != address => format!("{}+{:#x}", function.name, address.wrapping_sub(start)),
                _ => function.name.clone(),
            },
            None => "outside of all functions".to_string(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)] // one part is meant, not a list of addresses
mod tests {
    use super::super::analysis::{Address, Block, Part};
    use super::super::truth::{Boundaries, Checks, Functions, Table};
    use super::*;

    /// `f` at 0x10 with a cold part at 0x40, `g` at 0x20 with padding behind it, a stub at 0x80, a table at 0x100.
    fn truth() -> Truth {
        let code = [0x10, 0x12, 0x14, 0x20, 0x22, 0x40, 0x42, 0x80].map(|at| (at, false));
        let mut instructions: Vec<(u64, bool)> = code.into_iter().chain([(0x24, true)]).collect();
        instructions.sort_unstable();
        let table = Table { entry_bytes: 4, targets: vec![0x12, 0x14, 0x12], copied: false };
        Truth {
            functions: Functions::of(&[("f", &[0x10..0x16, 0x40..0x44]), ("g", &[0x20..0x24])]),
            tables: BTreeMap::from([(0x100, table)]),
            boundaries: Boundaries::at(&instructions),
            stubs: vec![0x80..0x90],
            checks: Checks::default(),
        }
    }

    fn graph(start: u64, parts: &[Range<u64>], instructions: &[u64], tables: &[(u64, &[u64])]) -> FunctionGraph {
        let part = |range: &Range<u64>| Part { address: Address(range.start), size: range.end - range.start };
        let block = |at: &u64| Block { address: Address(*at), instructions: vec![0] };
        let table = |(at, targets): &(u64, &[u64])| JumpTable {
            jump: Address(start),
            table: Address(*at),
            entry_bytes: 4,
            targets: targets.iter().copied().map(Address).collect(),
        };
        FunctionGraph {
            address: Address(start),
            parts: parts.iter().map(part).collect(),
            entries: vec![Address(start)],
            blocks: instructions.iter().map(block).collect(),
            jump_tables: tables.iter().map(table).collect(),
        }
    }

    fn score(listed: &[u64], graphs: Vec<FunctionGraph>) -> Score {
        let truth = truth();
        let mut judge = Judge::new(&truth);
        listed.iter().for_each(|start| judge.listed(*start));
        graphs.into_iter().for_each(|g| judge.graph(g));
        judge.verdict().score
    }

    const RIGHT_TABLE: (u64, &[u64]) = (0x100, &[0x12, 0x14, 0x12]);

    fn right_f() -> FunctionGraph {
        graph(0x10, &[0x10..0x16, 0x40..0x44], &[0x10, 0x12, 0x40], &[RIGHT_TABLE])
    }

    #[test]
    fn all_right() {
        // Padding inside a part and a stub in the list are no mistakes.
        let g = graph(0x20, &[0x20..0x30], &[0x20, 0x22], &[]);
        let score = score(&[0x10, 0x20, 0x80], vec![right_f(), g]);
        assert_eq!((score.found_starts, score.true_starts, score.false_starts, score.listed_starts), (2, 2, 0, 2));
        assert_eq!((score.right_extents, score.extents), (2, 2));
        assert_eq!((score.exact_tables, score.tables, score.wrong_targets), (1, 1, 0));
        assert_eq!((score.instructions, score.wrong_boundaries), (5, 0));
    }

    #[test]
    fn starts() {
        let score = score(&[0x10, 0x40], vec![]);
        assert_eq!((score.found_starts, score.true_starts, score.false_starts, score.listed_starts), (1, 2, 1, 2));
    }

    #[test]
    fn extents() {
        let without_cold = graph(0x10, &[0x10..0x16], &[], &[]);
        let too_long = graph(0x20, &[0x20..0x24, 0x40..0x44], &[], &[]);
        let score = score(&[0x10, 0x20], vec![without_cold, too_long]);
        assert_eq!((score.right_extents, score.extents), (0, 2));
    }

    #[test]
    fn tables() {
        let with = |tables: &[(u64, &[u64])]| score(&[], vec![graph(0x10, &[], &[], tables)]);
        let outcome = |score: Score| (score.exact_tables, score.tables, score.wrong_targets);
        assert_eq!(outcome(with(&[])), (0, 1, 0));
        assert_eq!(outcome(with(&[(0x100, &[0x12, 0x14])])), (0, 1, 0));
        assert_eq!(outcome(with(&[(0x100, &[0x12, 0x14, 0x12, 0x22])])), (0, 1, 1));
        assert_eq!(outcome(with(&[(0x200, &[0x12])])), (0, 1, 1));
        assert_eq!(outcome(with(&[RIGHT_TABLE, (0x100, &[0x12])])), (0, 1, 0));
    }

    #[test]
    fn boundaries() {
        let score = score(&[], vec![graph(0x10, &[], &[0x10, 0x11, 0x50], &[])]);
        assert_eq!((score.instructions, score.wrong_boundaries), (3, 2));
    }
}
