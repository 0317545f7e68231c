//! Where a program spends its time: functions, the loops and instructions in them, and call chains.

use std::io::{self, Write};

use lancet_engine::collect::Recording;
use lancet_isa::{Svma, Syntax, decode_one};
use serde::{Deserialize, Serialize};

use super::text::{Table, Text, cell, count, left, plain, right, styled};
use super::{Source, disasm};
use crate::Object;
use crate::profile::{HotFunction, Profile, Programs, Share, folded};

/// How much to say.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Functions below this share of all samples, in per cent, are left out.
    pub least_percent: f64,
    /// So many instructions of a function.
    pub instructions: usize,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProfileReport {
    /// What was sampled: `process 1234`, a command, `CPU 0`, `the system`.
    pub subject: String,
    /// The event that samples were taken of.
    pub event: String,
    pub seconds: f64,
    pub samples: u64,
    /// Samples that nobody read in time.
    pub lost: u64,
    /// Whether time in the kernel is included.
    pub kernel: bool,
    pub threads: Vec<ThreadShare>,
    /// Those with the most samples of their own first.
    pub functions: Vec<FunctionShare>,
    pub stacks: Vec<StackShare>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ThreadShare {
    pub pid: u32,
    pub tid: u32,
    pub name: String,
    pub samples: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FunctionShare {
    pub object: String,
    /// As stated in the file; `null` for the kernel and what is unknown.
    pub address: Option<String>,
    pub name: String,
    /// Samples in the function itself.
    pub own: u64,
    pub own_percent: f64,
    /// Also in what it called.
    pub total: u64,
    pub total_percent: f64,
    /// Outer ones before those in them.
    pub loops: Vec<LoopShare>,
    /// The hottest, by address.
    pub instructions: Vec<InsnShare>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LoopShare {
    pub header: String,
    pub depth: u32,
    /// Samples in it, nested loops included.
    pub samples: u64,
    pub percent: f64,
    pub source: Option<Source>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InsnShare {
    pub address: String,
    pub samples: u64,
    pub percent: f64,
    pub text: String,
    pub source: Option<Source>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StackShare {
    /// Outermost first, the thread's name before all.
    pub frames: Vec<String>,
    pub samples: u64,
}

pub fn profile(
    subject: String,
    recording: &Recording,
    profile: &Profile,
    programs: &Programs,
    options: Options,
) -> ProfileReport {
    let mut threads: Vec<ThreadShare> = recording
        .threads
        .iter()
        .map(|thread| ThreadShare { pid: thread.pid, tid: thread.tid, name: thread.name.clone(), samples: 0 })
        .collect();
    for sample in &recording.samples {
        threads[sample.thread as usize].samples += 1;
    }
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.samples));
    let shown = |function: &&HotFunction| {
        let most = function.own.percent(profile.all).max(function.total.percent(profile.all));
        most >= options.least_percent
    };
    ProfileReport {
        subject,
        event: recording.event.name.clone(),
        seconds: recording.elapsed.as_secs_f64(),
        samples: profile.all.samples,
        lost: recording.lost,
        kernel: recording.with_kernel,
        threads,
        functions: profile
            .functions
            .iter()
            .filter(shown)
            .map(|function| function_share(function, profile, programs, options))
            .collect(),
        stacks: folded(recording, profile)
            .into_iter()
            .map(|(line, samples)| StackShare { frames: line.split(';').map(str::to_owned).collect(), samples })
            .collect(),
    }
}

fn function_share(function: &HotFunction, profile: &Profile, programs: &Programs, options: Options) -> FunctionShare {
    let all = profile.all;
    let object = programs.function(&function.home);
    let loops = profile.loops(programs, function).into_iter().map(|l| LoopShare {
        header: l.header.to_string(),
        depth: l.depth,
        samples: l.share.samples,
        percent: l.share.percent(all),
        source: object.and_then(|(object, _)| Source::of(&object.program, l.header)),
    });
    let mut hottest: Vec<(u64, Share)> = function.at.iter().map(|(at, share)| (*at, *share)).collect();
    hottest.sort_by_key(|(at, share)| (std::cmp::Reverse(share.weight), *at));
    hottest.truncate(options.instructions);
    hottest.sort_by_key(|(at, _)| *at);
    let instructions = hottest.into_iter().map(|(at, share)| InsnShare {
        address: Svma(at).to_string(),
        samples: share.samples,
        percent: share.percent(all),
        text: object.map_or(String::new(), |(object, func)| text_at(object, func, Svma(at))),
        source: object.and_then(|(object, _)| Source::of(&object.program, Svma(at))),
    });
    FunctionShare {
        object: programs.object_name(&function.home).to_owned(),
        address: programs.start(&function.home).map(|at| at.to_string()),
        name: function.name.clone(),
        own: function.own.samples,
        own_percent: function.own.percent(all),
        total: function.total.samples,
        total_percent: function.total.percent(all),
        loops: loops.collect(),
        instructions: instructions.collect(),
    }
}

/// The instruction at an address where a processor was, as text. One begins there, also where control flow is not known.
fn text_at(object: &Object, func: lancet_engine::program::FuncId, at: Svma) -> String {
    let image = object.program.image();
    let insn = image.bytes_from(at).and_then(|code| decode_one(image.isa(), code, at).ok());
    let func = object.program.func(func);
    insn.map_or(String::new(), |insn| disasm::text_of(&object.program, func, &insn, Syntax::Gnu))
}

/// How many functions are shown in text, and of how many also the instructions.
const TEXT_FUNCTIONS: usize = 25;
const TEXT_DETAILED: usize = 5;

impl ProfileReport {
    /// The summary: how much was sampled, of what, and by which event.
    pub fn headline(&self) -> String {
        let clock = match self.event.as_str() {
            "cpu-clock" => " (a timer: this machine offers no hardware cycles, or none were asked for)",
            _ => "",
        };
        let kernel = if self.kernel { "" } else { ", user code only" };
        let lost = if self.lost > 0 { format!(", {} lost", self.lost) } else { String::new() };
        let threads = count(self.threads.len() as u64, "thread");
        format!(
            "{}: {} of {}{clock} in {:.1} s, {threads}{kernel}{lost}",
            self.subject,
            count(self.samples, "sample"),
            self.event,
            self.seconds
        )
    }

    pub fn write_text(&self, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let palette = text.palette;
        writeln!(out, "{}", styled(self.headline(), palette.heading))?;
        let mut table = Table::new(vec![right("OWN"), right("TOTAL"), right("SAMPLES"), left("FUNCTION")]);
        for (rank, function) in self.functions.iter().take(TEXT_FUNCTIONS).enumerate() {
            let file = function.object.rsplit('/').next().unwrap_or_default();
            table.row_with_note(
                vec![
                    plain(percent(function.own_percent)),
                    plain(percent(function.total_percent)),
                    plain(function.own),
                    cell(&function.name, palette.name),
                ],
                format!("  {}", styled(file, palette.aside)),
            );
            for l in function.loops.iter().filter(|l| l.percent >= 1.0) {
                let source = l.source.as_ref().map_or(String::new(), |source| format!("  {source}"));
                let indent = "  ".repeat(l.depth as usize);
                table.row_with_note(
                    vec![
                        plain(percent(l.percent)),
                        plain(""),
                        plain(l.samples),
                        cell(format_args!("{indent}loop {}", l.header), palette.loops),
                    ],
                    styled(source, palette.aside),
                );
            }
            if rank < TEXT_DETAILED {
                for insn in function.instructions.iter().filter(|insn| insn.percent >= 1.0) {
                    let line = format!("      {}  {}", styled(&insn.address, palette.address), insn.text);
                    let cells =
                        vec![cell(percent(insn.percent), palette.aside), plain(""), plain(insn.samples), plain("")];
                    table.row_with_note(cells, line);
                }
            }
        }
        table.write(out, text)?;
        match self.functions.len().checked_sub(TEXT_FUNCTIONS) {
            None | Some(0) => Ok(()),
            Some(more) => {
                writeln!(out, "{}", styled(format_args!("and {}", count(more as u64, "more function")), palette.aside))
            }
        }
    }

    /// One function and one stack per line.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let head = ProfileReport { functions: Vec::new(), stacks: Vec::new(), ..self.clone() };
        let head = serde_json::to_string(&head)?;
        let head = head.strip_suffix("\"functions\":[],\"stacks\":[]}").unwrap_or(&head);
        write!(out, "{head}")?;
        lines(out, "\"functions\":[", &self.functions)?;
        lines(out, ",\"stacks\":[", &self.stacks)?;
        writeln!(out, "}}")
    }
}

fn lines<T: Serialize>(out: &mut dyn Write, opening: &str, values: &[T]) -> io::Result<()> {
    write!(out, "{opening}")?;
    for (i, value) in values.iter().enumerate() {
        write!(out, "{}{}", if i == 0 { "\n" } else { ",\n" }, serde_json::to_string(value)?)?;
    }
    write!(out, "\n]")
}

pub(super) fn percent(percent: f64) -> String {
    format!("{percent:.1}%")
}
