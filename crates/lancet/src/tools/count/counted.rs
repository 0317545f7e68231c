//! A program with how often everything in it ran.

use std::path::Path;
use std::sync::Arc;

use lancet_engine::image::Image;
use lancet_engine::layout::lists;
use lancet_engine::program::{BlockId, FoundBy, FuncId, Program};
use rayon::prelude::*;

use super::cuts::{self, Located, Taken};
use super::file::{CountsFile, fingerprint};
use super::notes::{NotedFunc, Notes};
use super::{Counts, Cut, FlowError, Rounds, Slot, Solver, callers};
use crate::Error;
use crate::counting::Ends;
use crate::rewrite::Editor;

/// Exact counts of the edited functions of a program.
pub struct Counted {
    pub program: Program,
    /// By function; none for those that were left alone.
    counts: Vec<Option<Counts>>,
    /// Functions whose counters contradict their control flow.
    pub faults: Vec<FlowError>,
    /// How many processes and threads counted.
    pub shards: usize,
    /// How often control was taken away where nothing tells: see [`Counts::stopped`].
    pub unlocated: u64,
    /// Where the rounds of loops were counted.
    pub rounds: Rounds,
}

impl Counted {
    /// Reads the counts that a rewritten program left in a file. `program` says where the rewritten program is now, if
    /// not where it was written to; `original` the same of the program that it was made from.
    pub fn open(counts: &Path, program: Option<&Path>, original: Option<&Path>) -> Result<Counted, Error> {
        Counted::read(CountsFile::read(counts)?, counts, program, original, &Ends::default())
    }

    /// As [`open`](Counted::open), for several files. Those of the same rewritten program are added up; each program has
    /// one result, in the order of the files.
    pub fn open_all(
        counts: &[impl AsRef<Path>],
        program: Option<&Path>,
        original: Option<&Path>,
    ) -> Result<Vec<Counted>, Error> {
        Counted::open_all_ended(counts, program, original, &Ends::default())
    }

    /// The same where it is known where threads ended.
    pub fn open_all_ended(
        counts: &[impl AsRef<Path>],
        program: Option<&Path>,
        original: Option<&Path>,
        ends: &Ends,
    ) -> Result<Vec<Counted>, Error> {
        let mut files: Vec<(CountsFile, &Path)> = Vec::new();
        for path in counts.iter().map(AsRef::as_ref) {
            let file = CountsFile::read_part(path)?;
            match files.iter_mut().find(|(known, _)| known.fingerprint == file.fingerprint) {
                Some((known, _)) => known.add(&file),
                None => files.push((file, path)),
            }
        }
        let read =
            |(file, path): (CountsFile, &Path)| Counted::read(file.checked(path)?, path, program, original, ends);
        files.into_iter().map(read).collect()
    }

    fn read(
        file: CountsFile,
        from: &Path,
        program: Option<&Path>,
        original: Option<&Path>,
        ends: &Ends,
    ) -> Result<Counted, Error> {
        let rewritten = Image::open(program.unwrap_or(&file.program))?;
        let bytes = lists::NOTES.find(&rewritten).map_or(&[][..], |(_, notes)| notes);
        let notes = Notes::from_bytes(bytes).ok_or_else(|| Error::NoNotes { name: rewritten.name().to_owned() })?;
        if fingerprint(bytes) != file.fingerprint {
            let counts = from.display().to_string();
            return Err(Error::OtherCounts { counts, program: rewritten.name().to_owned() });
        }
        let original = original.unwrap_or(Path::new(&notes.original.path));
        let image = Image::open(original)?;
        if !notes.original.is(&image) {
            return Err(Error::Changed { path: image.name().to_owned() });
        }
        let mut program = Program::analyse(Arc::new(image));
        let mut cuts = Located::default();
        let ends = ends.within(&rewritten);
        if file.cuts.values().any(|times| *times != 0) || !ends.is_empty() {
            let editor = Editor::of_notes(program, &notes)?;
            let traced = editor.trace(&notes);
            let taken = Taken { by_handlers: &file.cuts, by_ends: &ends };
            cuts = cuts::locate(&editor.program, &rewritten, &notes, traced.as_ref().ok(), &taken);
            program = editor.program;
        }
        Ok(Counted::solve(program, &notes, &file, &cuts))
    }

    /// Solves the counters of all functions.
    fn solve(program: Program, notes: &Notes, file: &CountsFile, (cuts, unlocated): &Located) -> Counted {
        let cuts_of = |id: &FuncId| cuts.get(id).map_or(&[][..], Vec::as_slice);
        let solved: Vec<(FuncId, Result<Counts, FlowError>)> = notes
            .funcs
            .par_iter()
            .filter_map(|noted| Some((program.func_starting_at(noted.entry)?, noted)))
            .map_init(Solver::default, |solver, (id, noted)| {
                (id, solve(solver, &program, id, noted, &file.counters, cuts_of(&id)))
            })
            .collect();
        let mut counts = vec![None; program.funcs().len()];
        let mut faults = Vec::new();
        for (id, result) in solved {
            match result {
                Ok(result) => counts[id.0 as usize] = Some(result),
                Err(fault) => faults.push(fault),
            }
        }
        callers::tell(&program, &mut counts, cuts);
        Counted { program, counts, faults, shards: file.shards, unlocated: *unlocated, rounds: notes.manner.rounds }
    }

    /// The counts of a function, if it was counted.
    pub fn counts(&self, id: FuncId) -> Option<&Counts> {
        self.counts.get(id.0 as usize)?.as_ref()
    }

    /// All functions that were counted, in order.
    pub fn funcs(&self) -> impl Iterator<Item = (FuncId, &Counts)> {
        let counts = (0..).map(FuncId).zip(&self.counts);
        counts.filter_map(|(id, counts)| Some((id, counts.as_ref()?)))
    }

    /// Functions that control seems to have ended in the middle of, and how often: see [`Counts::stopped`].
    pub fn stopped(&self) -> impl Iterator<Item = (FuncId, u64)> {
        let times = |counts: &Counts| counts.stopped.iter().map(|(_, times)| *times).fold(0, u64::saturating_add);
        self.funcs().map(move |(id, counts)| (id, times(counts))).filter(|(_, times)| *times > 0)
    }

    /// The file that was counted, before it was rewritten.
    pub fn name(&self) -> &str {
        self.program.image().name()
    }

    /// Functions whose code is there and has no counts. Stubs to other objects are never counted.
    pub fn left_alone(&self) -> impl Iterator<Item = FuncId> {
        let uncounted = (0..).map(FuncId).zip(&self.counts).filter(|(_, counts)| counts.is_none());
        uncounted.map(|(id, _)| id).filter(|id| self.program.func(*id).found_by != FoundBy::Plt)
    }

    /// Instructions that a block executed.
    pub fn block_instructions(&self, id: FuncId, block: BlockId) -> u64 {
        let (Some(counts), insns) = (self.counts(id), self.program.func(id).block(block).insns) else { return 0 };
        let all = counts.blocks.get(block.0 as usize).copied().unwrap_or(0).saturating_mul(u64::from(insns));
        let cuts = counts.cuts.iter().filter(|cut| cut.block == block);
        let missing: i64 = cuts.map(|cut| cut.times.saturating_mul(i64::from(insns.saturating_sub(cut.ran)))).sum();
        all.saturating_add_signed(-missing)
    }

    /// Instructions that a function itself executed.
    pub fn func_instructions(&self, id: FuncId) -> u64 {
        self.program.func(id).block_ids().map(|block| self.block_instructions(id, block)).sum()
    }

    /// How often a function was entered at its beginning.
    pub fn calls(&self, id: FuncId) -> u64 {
        self.counts(id).map_or(0, |counts| counts.of(Slot::Entry(0)))
    }

    /// Instructions that all counted functions executed.
    pub fn instructions(&self) -> u64 {
        self.funcs().map(|(id, _)| self.func_instructions(id)).sum()
    }
}

fn solve(
    solver: &mut Solver,
    program: &Program,
    id: FuncId,
    noted: &NotedFunc,
    counters: &[u64],
    cuts: &[Cut],
) -> Result<Counts, FlowError> {
    let first = noted.first as usize;
    let counters = counters.get(first..first + noted.placement.counters.len()).unwrap_or_default();
    solver.solve_cut(program.func(id), &noted.placement, counters, cuts)
}
