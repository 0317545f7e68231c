//! `lancet rewrite`.

use std::io::Write;
use std::path::PathBuf;

use lancet::Image;
use lancet::names;
use lancet::program::{FuncId, Program};
use lancet::rewrite::{self, CountOptions, Editor, Sharing};
use lancet::tools::count::{Counted, Rounds};
use lancet_sys::allocator;
use regex::Regex;

use crate::output::Output;

/// Write an edited program that runs by itself
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// An ELF file: a program or a shared library
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The file to write
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// What to add
    #[arg(long, value_name = "TOOL", value_enum, default_value_t)]
    tool: Tool,
    /// Where the program shall leave its counts; %p in it is the process id, %n a number of this OUT
    #[arg(long, value_name = "PATH")]
    counts: Option<String>,
    /// Edit only functions whose name matches this regular expression
    #[arg(long, value_name = "PATTERN")]
    functions: Option<Regex>,
    /// Counts of an earlier run of the same program: what ran often is then counted at less cost
    #[arg(long, value_name = "COUNTS")]
    profile: Option<PathBuf>,
    /// Who counts; by default each thread by itself if the program or its libraries may start one, and `atomic` in a
    /// library, where that cannot be known
    #[arg(long = "counters", value_name = "WHO", value_enum)]
    counters: Option<Threads>,
    /// Where the rounds of a loop without calls are counted
    #[arg(long, value_name = "WHERE", value_enum, default_value_t)]
    rounds: Where,
    /// List the functions or points that are left alone, each with the reason; on Blackfin also how the others were served
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    in_place: crate::in_place::Args,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
pub enum Tool {
    /// Count every edge, exactly
    #[default]
    Count,
    /// Move every function and add nothing; on Blackfin, call a routine that does nothing at every instruction
    Null,
    /// Blackfin: cycles and data cache misses from one zero-overhead loop setup to the next
    Phases,
    /// Blackfin: do what a points file says
    Points,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Threads {
    /// Each thread by itself: exact with threads
    Each,
    /// All threads together, every increment in one step: exact with threads too, and slow
    Atomic,
    /// All threads together: exact only with one
    Together,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Where {
    /// In memory, each as it happens: nothing is lost when the process is killed
    #[default]
    Memory,
    /// Only at the end of the loop, where a register tells how many there were: lost if a signal ends the loop for good
    Induction,
    /// In free registers too, until the end of the loop
    Registers,
}

impl Where {
    pub fn rounds(self) -> Rounds {
        match self {
            Where::Memory => Rounds::Memory,
            Where::Induction => Rounds::Induction,
            Where::Registers => Rounds::Registers,
        }
    }
}

impl Threads {
    fn sharing(self, image: &Image) -> Sharing {
        match self {
            Threads::Each => rewrite::by_thread(image),
            Threads::Atomic => Sharing::Atomic,
            Threads::Together => Sharing::Alone,
        }
    }
}

const EXAMPLES: &str = "\
The output leaves its counts in OUT.counts in the directory it is started in, or where
--counts or the environment variable LANCET_COUNTS says. Counts of several runs
add up. The input is never changed.

Examples:
  lancet rewrite /usr/bin/gzip -o gzip.counting
  ./gzip.counting -9 < data > data.gz && lancet report gzip.counting.counts
  lancet rewrite --counts '/tmp/gzip.%p.counts' /usr/bin/gzip -o gzip.counting
  lancet rewrite --explain /usr/bin/python3 -o /tmp/python3
  lancet rewrite decoder.elf -o counting.elf && lancet sim --notes counting.elf.notes counting.elf
  lancet rewrite --tool points --points loads.txt --object analysis.o decoder.elf -o out.elf";

pub fn run(args: Args, output: &mut Output) -> anyhow::Result<()> {
    if crate::in_place::is_for(&args.file)? {
        let of_others = args.counts.is_some() || args.functions.is_some() || args.profile.is_some();
        if of_others || args.counters.is_some() || args.rounds != Where::default() {
            anyhow::bail!("--counts, --functions, --profile, --counters and --rounds are not for Blackfin programs");
        }
        return crate::in_place::run(&args.file, &args.output, args.tool, &args.in_place, args.explain, output);
    }
    allocator::give_back_late();
    let editor = open(&args.file, args.functions.as_ref())?;
    match args.tool {
        Tool::Null => editor.write_null(&args.output)?,
        Tool::Points | Tool::Phases => {
            anyhow::bail!("{}: this tool is for Blackfin programs", args.file.display())
        }
        Tool::Count => {
            let profile = args.profile.as_deref().map(|path| Counted::open(path, None, None)).transpose()?;
            let sharing = args.counters.map(|threads| threads.sharing(editor.program.image()));
            let options = CountOptions {
                notes_handlers: false,
                counts: args.counts.as_deref(),
                sharing,
                profile: profile.as_ref(),
                rounds: args.rounds.rounds(),
            };
            editor.write_counting(&args.output, &options)?;
        }
    }
    if args.explain {
        explain(&editor, &mut output.out)?;
    }
    // The process ends here, which frees everything at once.
    std::mem::forget(editor);
    Ok(())
}

/// Analyses a program for editing.
pub fn open(file: &std::path::Path, functions: Option<&Regex>) -> anyhow::Result<Editor> {
    Ok(Editor::open(file, &wanted(functions))?)
}

/// Is a function's name one that was asked for?
pub fn wanted(functions: Option<&Regex>) -> impl Fn(&Program, FuncId) -> bool + Sync {
    move |program, id| {
        functions.is_none_or(|functions| functions.is_match(&names::of_function(program, program.func(id))))
    }
}

/// Which functions are left alone, and what share of the text that is.
pub fn explain(editor: &Editor, out: &mut impl Write) -> std::io::Result<()> {
    for (i, func) in editor.program.funcs().iter().enumerate() {
        if let Some(why) = editor.survey.obstacle(FuncId(i as u32)) {
            let name = names::of_function(&editor.program, func);
            writeln!(out, "{} {:>6} {name}: {why}", func.entry, func.size())?;
        }
    }
    let share = editor.share();
    let percent = 100.0 * share.edited as f64 / share.text.max(1) as f64;
    writeln!(out, "edited: {} of {} bytes of code ({percent:.2} %)", share.edited, share.text)
}
