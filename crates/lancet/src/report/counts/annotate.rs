//! The instructions and the source lines of a function, with how often they ran.

use std::io::{self, Write};

use lancet_engine::program::{BlockId, FuncId, Program};
use lancet_isa::Syntax;
use serde::Serialize;

use super::super::text::{Text, count, grouped, styled};
use super::super::{Source, disasm, words};
use super::lines;
use crate::names;
use crate::tools::count::{Counted, Counts};

#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    pub syntax: Syntax,
    /// Source lines in place of instructions.
    pub source: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Annotated {
    pub address: String,
    pub name: String,
    pub calls: u64,
    /// Executed by the function itself.
    pub instructions: u64,
    /// Of all that was executed.
    pub percent: f64,
    /// By address.
    pub blocks: Vec<AnnotatedBlock>,
    /// The source lines that it was compiled from, if asked for.
    pub files: Vec<AnnotatedFile>,
    /// The index of the entry.
    #[serde(skip)]
    main_block: usize,
    #[serde(skip)]
    source: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct AnnotatedBlock {
    pub address: String,
    pub count: u64,
    /// Innermost loop's depth; 0 outside all loops.
    pub loop_depth: u32,
    /// Where control went from here.
    pub out: Vec<Way>,
    pub instructions: Vec<AnnotatedInsn>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Way {
    /// `null` where control leaves the function.
    pub block: Option<String>,
    pub kind: &'static str,
    pub count: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct AnnotatedInsn {
    pub address: String,
    pub text: String,
    pub source: Option<Source>,
}

#[derive(Clone, Debug, Serialize)]
pub struct AnnotatedFile {
    pub file: String,
    pub lines: Vec<AnnotatedLine>,
}

#[derive(Clone, Debug, Serialize)]
pub struct AnnotatedLine {
    pub line: u32,
    /// `null` if no code was made from it.
    pub count: Option<u64>,
    /// `null` if the file is not there.
    pub text: Option<String>,
}

/// None if the function was not counted. `all` is what the whole program executed.
pub fn annotate(counted: &Counted, id: FuncId, all: u64, options: Options) -> Option<Annotated> {
    let program = &counted.program;
    let func = program.func(id);
    let counts = counted.counts(id)?;
    let instructions = counted.func_instructions(id);
    Some(Annotated {
        address: func.entry.to_string(),
        name: names::of_function(program, func),
        calls: counted.calls(id),
        instructions,
        percent: 100.0 * instructions as f64 / all.max(1) as f64,
        blocks: func.block_ids().map(|block| annotated_block(program, id, counts, block, options)).collect(),
        files: if options.source { files(counted, id) } else { Vec::new() },
        main_block: func.entries.first().map_or(0, |entry| entry.0 as usize),
        source: options.source,
    })
}

fn annotated_block(program: &Program, id: FuncId, counts: &Counts, block: BlockId, options: Options) -> AnnotatedBlock {
    let func = program.func(id);
    let b = func.block(block);
    let edges = func.successors(block).iter().zip(counts.edges.iter().skip(b.first_edge() as usize));
    let edges = edges.map(|(edge, count)| Way {
        block: Some(func.block(edge.to).start.to_string()),
        kind: words::edge(edge.kind),
        count: *count,
    });
    let first_exit = func.exits.partition_point(|exit| exit.from < block);
    let exits = func.exits.iter().zip(&counts.exits).skip(first_exit).take_while(|(exit, _)| exit.from == block);
    let exits = exits.map(|(exit, count)| Way { block: None, kind: words::exit(exit.kind), count: *count });
    let insns = program.insns(b);
    let insns = insns.iter().map(|insn| AnnotatedInsn {
        address: insn.at.to_string(),
        text: disasm::text_of(program, func, insn, options.syntax),
        source: Source::of(program, insn.at),
    });
    AnnotatedBlock {
        address: b.start.to_string(),
        count: counts.blocks.get(block.0 as usize).copied().unwrap_or(0),
        loop_depth: func.loops.depth(block.0),
        out: edges.chain(exits).collect(),
        instructions: insns.collect(),
    }
}

/// Of the function's own file everything from its first to its last line, of others only what it uses.
fn files(counted: &Counted, id: FuncId) -> Vec<AnnotatedFile> {
    let program = &counted.program;
    let home = program.image().source_line(program.func(id).entry).map(|source| source.file);
    let mut files = Vec::new();
    for (file, counts) in lines::of_function(counted, id) {
        // Sources may have any encoding, or be gone.
        let source = std::fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).ok();
        let source: Option<Vec<&str>> = source.as_deref().map(|source| source.lines().collect());
        let text = |line: u32| source.as_ref()?.get((line as usize).checked_sub(1)?).map(|text| (*text).to_owned());
        let (Some((first, _)), Some((last, _))) = (counts.first_key_value(), counts.last_key_value()) else { continue };
        let wanted: Vec<u32> = match source.is_some() && home == Some(file) {
            true => (*first..=*last).collect(),
            false => counts.keys().copied().collect(),
        };
        let line = |line: u32| AnnotatedLine { line, count: counts.get(&line).copied(), text: text(line) };
        files.push(AnnotatedFile { file: file.to_owned(), lines: wanted.into_iter().map(line).collect() });
    }
    files.sort_by_key(|file| home != Some(file.file.as_str()));
    files
}

impl Annotated {
    pub fn write_text(&self, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let palette = text.palette;
        let head = (styled(&self.address, palette.address), styled(&self.name, palette.name));
        let counts = (count(self.calls, "call"), grouped(self.instructions));
        writeln!(out, "{} {}: {}, {} instructions, {:.1}%", head.0, head.1, counts.0, counts.1, self.percent)?;
        if self.source {
            return self.write_source(out, text);
        }
        let most = self.blocks.iter().map(|block| block.count).max().unwrap_or(0);
        let width = grouped(most).len();
        // What is before the entry is a cold part.
        let (cold, main) = self.blocks.split_at(self.main_block);
        for block in main.iter().chain(cold) {
            writeln!(out)?;
            let depth = match block.loop_depth {
                0 => String::new(),
                depth => styled(format_args!(" in a loop, depth {depth}"), palette.loops),
            };
            writeln!(out, "{:width$}  {}{depth}", "", styled(format_args!("{}:", block.address), palette.heading))?;
            let mut line = None;
            for insn in &block.instructions {
                if insn.source.is_some() && insn.source != line {
                    line.clone_from(&insn.source);
                    let source = line.iter().map(ToString::to_string).collect::<String>();
                    writeln!(out, "{:width$}  {}", "", styled(format_args!("; {source}"), palette.aside))?;
                }
                let address = styled(&insn.address, palette.address);
                writeln!(out, "{:>width$}    {address}  {}", grouped(block.count), insn.text)?;
            }
            let ways: Vec<String> = block.out.iter().map(ToString::to_string).collect();
            writeln!(out, "{:width$}  {}", "", styled(format_args!("-> {}", ways.join(", ")), palette.aside))?;
        }
        Ok(())
    }

    fn write_source(&self, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let palette = text.palette;
        if self.files.is_empty() {
            return writeln!(out, "{}", styled("there is no debug information for its source", palette.doubt));
        }
        for file in &self.files {
            writeln!(out, "\n{}", styled(&file.file, palette.heading))?;
            let most = file.lines.iter().filter_map(|line| line.count).max().unwrap_or(0);
            let width = grouped(most).len();
            for line in &file.lines {
                let count = line.count.map_or(String::new(), grouped);
                let source = line.text.as_deref().unwrap_or_default();
                writeln!(
                    out,
                    "{}",
                    format_args!("{count:>width$}  {:>5}  {source}", line.line).to_string().trim_end()
                )?;
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.block {
            Some(block) => write!(f, "{} {block} × {}", self.kind, grouped(self.count)),
            None => write!(f, "{} × {}", self.kind, grouped(self.count)),
        }
    }
}
