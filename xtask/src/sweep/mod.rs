//! `cargo xtask sweep`: does every program of the machine still do the same after it was edited?
//!
//! First each ELF executable of /usr/bin is rewritten with full counting, and must say the same to `--version` and
//! `--help` as the original. Then some edited programs do real work (`work`), beside the originals. The same means
//! stdout, stderr and exit status, byte for byte. The edited program gets the argv[0] of the original, since many
//! print it. A difference is checked again, to rule out programs whose own output varies from run to run.

mod run;
mod work;

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::shell;
use run::Outcome;

#[derive(clap::Args)]
#[command(after_help = "\
Programs are those of /usr/bin; set-uid ones are listed as refused. The edited
copy is made by `lancet rewrite`. Then edited programs do real work beside the
originals: compressors, sqlite3, python3, perl, bash, g++ with an edited
cc1plus, gdb, git, rustc with an edited driver library, Lancet itself; what they need of Debian's packages is installed. Every
difference is printed; the exit status is 1 if there is one.

Examples:
  cargo xtask sweep
  cargo xtask sweep --only programs gzip tar
  cargo xtask sweep --only work git gdb")]
pub struct Options {
    /// How many programs to look at at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Seconds that --version and --help may take each
    #[arg(long, default_value_t = 10)]
    limit: u64,
    /// Do only one half
    #[arg(long, value_enum)]
    only: Option<Half>,
    /// This lancet, instead of the one that is built for release
    #[arg(long)]
    lancet: Option<PathBuf>,
    /// Names of the programs or of the work, instead of all
    names: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Half {
    /// --version and --help of every program
    Programs,
    /// The real work
    Work,
}

const PROGRAMS: &str = "/usr/bin";
const QUESTIONS: [&str; 2] = ["--version", "--help"];
const SET_ID: u32 = 0o6000;
/// How often a program is run again that said something else than its edited version.
const MORE_RUNS: usize = 20;

/// What became of one program.
enum Verdict {
    Same,
    /// The original's own output differs from run to run: nothing can be said.
    Varies,
    /// Neither answers within the limit.
    Silent,
    Refused(&'static str),
    Different(String),
}

pub fn run(options: &Options) -> Result<ExitCode> {
    if options.only != Some(Half::Programs) {
        work::install()?;
    }
    let lancet = shell::lancet_or_build(options.lancet.as_deref())?;
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let wanted = |name: &str| options.names.is_empty() || options.names.iter().any(|n| n == name);
    let mut differences = 0;
    if options.only != Some(Half::Work) {
        let programs: Vec<PathBuf> = executables()?.into_iter().filter(|path| wanted(&name_of(path))).collect();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(options.jobs).build().context("threads")?;
        let limit = Duration::from_secs(options.limit);
        let verdicts: Vec<Verdict> = pool.install(|| {
            let judged = programs.par_iter().map(|program| {
                let verdict = judge(&lancet, program, scratch.path(), limit)
                    .unwrap_or_else(|error| Verdict::Different(format!("{error:#}")));
                tell(program, &verdict);
                verdict
            });
            judged.collect()
        });
        differences += summarize(&verdicts);
    }
    if options.only != Some(Half::Programs) {
        differences += work::run(&lancet, scratch.path(), &wanted)?;
    }
    println!("{differences} differences");
    Ok(if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The ELF files of /usr/bin that are no symbolic links, by name.
fn executables() -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(PROGRAMS).with_context(|| format!("cannot list {PROGRAMS}"))?;
    let is_elf = |path: &PathBuf| {
        let mut magic = [0; 4];
        let is_file = path.symlink_metadata().is_ok_and(|meta| meta.is_file());
        is_file && File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"\x7fELF"
    };
    let mut programs: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_elf).collect();
    programs.sort();
    Ok(programs)
}

fn judge(lancet: &Path, program: &Path, scratch: &Path, limit: Duration) -> Result<Verdict> {
    let folder = scratch.join(name_of(program));
    std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let edited = folder.join("edited");
    let mode = program.metadata().context("cannot look at it")?.mode();
    let rewritten = rewrite(lancet, program, &edited);
    let verdict = if mode & SET_ID != 0 {
        ensure!(rewritten.is_err(), "a set-uid program was rewritten");
        Verdict::Refused("set-uid or set-gid")
    } else {
        rewritten?;
        compare(program, &edited, &folder, limit)?
    };
    std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    Ok(verdict)
}

/// Rewrites with full counting.
fn rewrite(lancet: &Path, program: &Path, edited: &Path) -> Result<()> {
    let mut command = Command::new(lancet);
    command.arg("rewrite").arg(program).arg("-o").arg(edited).stdin(Stdio::null());
    shell::output(&mut command).map(drop)
}

fn compare(program: &Path, edited: &Path, folder: &Path, limit: Duration) -> Result<Verdict> {
    let answer = |executable: &Path, question: &str, limit| -> Result<Outcome> {
        // The working folder, which is the home as well, has the same name and the same content each time: none.
        let working = folder.join("working");
        std::fs::create_dir(&working).context("cannot make a folder")?;
        let mut command = Command::new(executable);
        command.arg0(program).arg(question).current_dir(&working).env("HOME", &working);
        command.env("LANCET_COUNTS", folder.join("counts.%p"));
        let outcome = run::run(&mut command, folder, limit);
        std::fs::remove_dir_all(&working).context("cannot remove a folder")?;
        outcome
    };
    let mut verdict = Verdict::Same;
    for question in QUESTIONS {
        let (mut original, mut changed) = (answer(program, question, limit)?, answer(edited, question, limit)?);
        if original == changed {
            if original == Outcome::TimedOut {
                verdict = Verdict::Silent;
            }
            continue;
        }
        let again = answer(program, question, limit * 3)?;
        if original == Outcome::TimedOut || changed == Outcome::TimedOut {
            // A busy machine is slow: only a second, longer run tells.
            (original, changed) = (again, answer(edited, question, limit * 3)?);
        } else if again != original {
            // Times and numbers of processes vary; the rest may not.
            (original, changed) = (original.without_numbers(), changed.without_numbers());
            if again.without_numbers() != original {
                verdict = Verdict::Varies;
                continue;
            }
        }
        if let Some(difference) = original.difference(&changed) {
            // Two processes that write at the same time take turns as it happens. What the original says too is right.
            if says_too(&changed, || answer(program, question, limit))? {
                verdict = Verdict::Varies;
                continue;
            }
            return Ok(Verdict::Different(format!("{question}: {difference}")));
        }
    }
    Ok(verdict)
}

/// Does the original ever say what the edited program said?
fn says_too(changed: &Outcome, original: impl Fn() -> Result<Outcome>) -> Result<bool> {
    for _ in 0..MORE_RUNS {
        if original()? == *changed {
            return Ok(true);
        }
    }
    Ok(false)
}

fn tell(program: &Path, verdict: &Verdict) {
    let program = program.display();
    match verdict {
        Verdict::Same => {}
        Verdict::Varies => println!("{program}: its own output varies"),
        Verdict::Silent => println!("{program}: does not answer within the limit, edited or not"),
        Verdict::Refused(why) => println!("{program}: refused, {why}"),
        Verdict::Different(what) => println!("{program}: DIFFERENT: {what}"),
    }
}

/// Prints the table, and returns the number of differences.
fn summarize(verdicts: &[Verdict]) -> usize {
    let count = |which: fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| which(verdict)).count();
    let different = count(|v| matches!(v, Verdict::Different(_)));
    println!("\nprograms of {PROGRAMS}, {}: edited and original", QUESTIONS.join(" and "));
    let rows = [
        ("programs", verdicts.len()),
        ("same", count(|v| matches!(v, Verdict::Same))),
        ("output varies by itself", count(|v| matches!(v, Verdict::Varies))),
        ("no answer within the limit", count(|v| matches!(v, Verdict::Silent))),
        ("refused", count(|v| matches!(v, Verdict::Refused(_)))),
        ("different", different),
    ];
    for (what, number) in rows {
        println!("{what:<28} {number:>4}");
    }
    println!();
    different
}
