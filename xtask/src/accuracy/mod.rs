//! `cargo xtask accuracy`: how right the analysis is, on files that tell nothing, judged by twins that tell all.
//!
//! ```text
//! corpus ─> twin ──────> truth ───┐
//!             └─> stripped ─> lancet ─> judge ─> report
//! ```
//!
//! - `corpus` builds our test programs with every compiler (`generate` writes some of them);
//! - `truth` reads functions, tables and boundaries from the twin, each from two sources where there are two;
//! - `analysis` runs Lancet on the stripped file and reads its JSON;
//! - `judge` compares, `report` prints the table and holds the bars;
//! - `debian` looks at the large programs of the machine, of which only the unwind information tells the truth.

mod analysis;
mod corpus;
mod debian;
mod generate;
mod judge;
mod report;
mod truth;

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use rayon::prelude::*;

use analysis::Lancet;
use corpus::{Compiler, Folders, Job};
use judge::{Judge, Verdict};
use report::Report;
use truth::Checks;

#[derive(clap::Args)]
pub struct Options {
    /// Build and judge the small corpus, which CI uses
    #[arg(long)]
    small: bool,
    /// List the first N mistakes of each file
    #[arg(long, value_name = "N", num_args = 0..=1, default_value_t = 0, default_missing_value = "10")]
    verbose: usize,
    /// Only programs whose name and variant contain this text, such as "switches gcc -O2 pie"
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Only build the corpus and check the truth against its second sources
    #[arg(long)]
    truth_only: bool,
}

/// What was learned from one program.
struct Outcome {
    checks: Checks,
    true_functions: usize,
    true_tables: usize,
    verdict: Option<Verdict>,
}

pub fn run(options: &Options) -> Result<ExitCode> {
    Ok(if judge_corpus(options)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The small corpus, as a check that passes or fails.
pub fn check_small() -> Result<()> {
    let options = Options { small: true, verbose: 3, only: None, truth_only: false };
    ensure!(judge_corpus(&options)?, "a bar is missed");
    Ok(())
}

/// Builds, analyses, judges and prints. True if all bars are reached.
fn judge_corpus(options: &Options) -> Result<bool> {
    let folders = Folders::prepare()?;
    let lancet = if options.truth_only { None } else { Some(Lancet::build()?) };
    let wanted = |job: &Job| options.only.as_deref().is_none_or(|text| job.name().contains(text));
    let jobs: Vec<Job> = corpus::jobs(options.small).into_iter().filter(wanted).collect();
    println!("building and judging {} programs", jobs.len());
    let outcomes: Vec<Result<Outcome>> =
        jobs.par_iter().map(|job| one(job, &folders, lancet.as_ref()).with_context(|| job.name())).collect();
    let mut report = Report::default();
    for (job, outcome) in jobs.iter().zip(outcomes) {
        match outcome {
            Ok(outcome) => report.add(job, outcome, options.verbose),
            Err(error) => report.failed(&error),
        }
    }
    report.print(lancet.is_some());
    if let Some(lancet) = lancet.filter(|_| !options.small && options.only.is_none()) {
        debian::report(&lancet)?;
    }
    Ok(report.is_good())
}

fn one(job: &Job, folders: &Folders, lancet: Option<&Lancet>) -> Result<Outcome> {
    let built = corpus::build(job, folders)?;
    let truth = truth::extract(&built, job.variant.compiler == Compiler::Rustc)?;
    let verdict = match lancet {
        None => None,
        Some(lancet) => {
            let mut judge = Judge::new(&truth);
            lancet.functions(&built.stripped, |function| judge.listed(function.address.0))?;
            lancet.graphs(&built.stripped, |graph| judge.graph(graph))?;
            Some(judge.verdict())
        }
    };
    let (true_functions, true_tables) = (truth.functions.by_start.len(), truth.tables.len());
    Ok(Outcome { checks: truth.checks, true_functions, true_tables, verdict })
}
