//! The instructions of a function, by block.

use std::io::{self, Write};

use lancet_engine::program::{BlockId, Func, Program};
use lancet_isa::{Facts, Flow, Insn, Reg, RegSet, Svma, Syntax, Target};
use serde::Serialize;

use super::cfg::{self, Call, Exit, JumpTableReport};
use super::text::{Text, count, parts, runs, styled};
use super::{Source, words};
use crate::{Object, names};

#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    pub syntax: Syntax,
    /// Also the registers and flags that are live before each instruction.
    pub liveness: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Listing {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    pub address: String,
    pub name: String,
    pub size: u64,
    pub found_by: &'static str,
    pub loops: usize,
    pub status: &'static str,
    pub reason: Option<String>,
    /// By address.
    pub blocks: Vec<ListedBlock>,
    pub jump_tables: Vec<JumpTableReport>,
    #[serde(skip)]
    parts: usize,
    /// The index of the entry.
    #[serde(skip)]
    main_block: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct ListedBlock {
    pub address: String,
    pub size: u32,
    /// Control can come here from outside the function.
    pub entry: bool,
    /// Innermost loop's depth; 0 outside all loops.
    pub loop_depth: u32,
    /// The header of the innermost loop.
    pub loop_header: Option<String>,
    /// Edges from other blocks.
    #[serde(rename = "in")]
    pub incoming: Vec<Link>,
    /// Edges to other blocks.
    #[serde(rename = "out")]
    pub outgoing: Vec<Link>,
    pub call: Option<Call>,
    pub exits: Vec<Exit>,
    pub instructions: Vec<ListedInsn>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Link {
    /// The block at the other end.
    pub block: String,
    pub kind: &'static str,
    /// Leads to the header of a loop from inside it.
    pub back: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct ListedInsn {
    pub address: String,
    /// In hexadecimal.
    pub bytes: String,
    pub text: String,
    pub source: Option<Source>,
    /// The registers and flags that are live before it, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<Vec<&'static str>>,
}

pub fn disasm(object: &Object, func: &Func, options: Options, shown: Option<String>) -> Listing {
    let program = &object.program;
    let graph = func.graph();
    let at = |id: BlockId| func.block(id).start.to_string();
    let block = |id: BlockId| {
        let link = |index: u32, other: u32| {
            let edge = &func.edges[index as usize];
            Link { block: at(BlockId(other)), kind: words::edge(edge.kind), back: words::is_back_edge(func, edge) }
        };
        ListedBlock {
            address: at(id),
            size: func.block(id).len,
            entry: func.entries.contains(&id),
            loop_depth: func.loops.depth(id.0),
            loop_header: cfg::loop_header(func, id),
            incoming: graph.in_edges(id.0).map(|e| link(e.index, e.from)).collect(),
            outgoing: graph.out_edges(id.0).map(|e| link(e.index, e.to)).collect(),
            call: cfg::call(program, func, id),
            exits: cfg::exits(program, func, func.exits_of(id)),
            instructions: instructions(program, func, id, options),
        }
    };
    Listing {
        object: shown,
        address: func.entry.to_string(),
        name: names::of_function(program, func),
        size: func.size(),
        found_by: words::found_by(func.found_by),
        loops: func.loops.len(),
        status: words::status(func),
        reason: words::reason(func),
        blocks: func.block_ids().map(block).collect(),
        jump_tables: func.tables.iter().map(cfg::jump_table).collect(),
        parts: func.parts.len(),
        main_block: func.entries.first().map_or(0, |entry| entry.0 as usize),
    }
}

fn instructions(program: &Program, func: &Func, id: BlockId, options: Options) -> Vec<ListedInsn> {
    let facts = program.image().isa().facts();
    let live = if options.liveness { program.live_before(func, id) } else { Vec::new() };
    let names_of = |set: &RegSet| set.iter().map(|reg| facts.reg_name(reg)).collect();
    let insns = program.insns(func.block(id));
    let listed = insns.iter().enumerate().map(|(i, insn)| ListedInsn {
        address: insn.at.to_string(),
        bytes: code(program, insn).iter().map(|byte| format!("{byte:02x}")).collect(),
        text: text_of(program, func, insn, options.syntax),
        source: Source::of(program, insn.at),
        live: live.get(i).map(names_of),
    });
    listed.collect()
}

fn code<'p>(program: &'p Program, insn: &Insn) -> &'p [u8] {
    program.image().bytes(insn.at, u64::from(insn.len)).unwrap_or_default()
}

/// The instruction as text. Addresses have names, apart from branches within the function: those lead to blocks.
pub(super) fn text_of(program: &Program, func: &Func, insn: &Insn, syntax: Syntax) -> String {
    let branches_to = |at: Svma| match insn.flow {
        Flow::Branch(to) | Flow::Jump(Target::Direct(to)) => to == at && func.block_starting_at(at).is_some(),
        _ => false,
    };
    let name = |at: Svma| if branches_to(at) { None } else { names::of_address(program, at) };
    let isa = program.image().isa();
    isa.text(code(program, insn), insn.at, syntax, &name).unwrap_or_else(|error| error.to_string())
}

/// What to leave out or add in text.
#[derive(Clone, Copy, Default, Debug)]
pub struct TextOptions {
    /// Also the bytes of each instruction.
    pub bytes: bool,
}

impl Listing {
    pub fn write_text(&self, facts: &Facts, options: TextOptions, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let palette = text.palette;
        let counts = [count(self.blocks.len() as u64, "block"), count(self.loops as u64, "loop")].join(", ");
        let size = format!("{}{}", count(self.size, "byte"), parts(self.parts));
        let head = (styled(&self.address, palette.address), styled(&self.name, palette.name));
        writeln!(out, "{} {}: {size}, {counts}, found by {}, {}", head.0, head.1, self.found_by, self.status)?;
        if let Some(reason) = &self.reason {
            writeln!(out, "{}", styled(format_args!("partial: {reason}"), palette.doubt))?;
        }
        let longest = self.blocks.iter().flat_map(|block| &block.instructions).map(|insn| insn.bytes.len()).max();
        let columns = Columns { bytes: options.bytes.then(|| longest.unwrap_or(0)), facts };
        // What is before the entry is a cold part.
        let (cold, main) = self.blocks.split_at(self.main_block);
        for block in main.iter().chain(cold) {
            writeln!(out)?;
            self.write_block(block, &columns, out, text)?;
        }
        Ok(())
    }

    fn write_block(
        &self,
        block: &ListedBlock,
        columns: &Columns<'_>,
        out: &mut dyn Write,
        text: &Text,
    ) -> io::Result<()> {
        let palette = text.palette;
        write!(out, "{}:", styled(&block.address, palette.heading))?;
        if block.entry {
            let what = if block.address == self.address { "entry" } else { "entered from outside" };
            write!(out, " {what}")?;
        }
        match &block.loop_header {
            Some(header) if *header == block.address => {
                write!(out, " {}", styled(format_args!("loop header, depth {}", block.loop_depth), palette.loops))?;
            }
            Some(header) => {
                write!(
                    out,
                    " {}",
                    styled(format_args!("in loop {header}, depth {}", block.loop_depth), palette.loops)
                )?;
            }
            None => {}
        }
        writeln!(out)?;
        if !block.incoming.is_empty() {
            writeln!(out, "  {}", styled(format_args!("<- {}", joined(&block.incoming).join(", ")), palette.aside))?;
        }
        let mut line = None;
        for insn in &block.instructions {
            if insn.source.is_some() && insn.source != line {
                line.clone_from(&insn.source);
                let source = line.iter().map(ToString::to_string).collect::<String>();
                writeln!(out, "  {}", styled(format_args!("; {source}"), palette.aside))?;
            }
            columns.write(insn, out, text)?;
        }
        let mut after = joined(&block.outgoing);
        after.extend(block.exits.iter().map(ToString::to_string));
        writeln!(out, "  {}", styled(format_args!("-> {}", after.join(", ")), palette.aside))?;
        let jump = block.instructions.last().map(|insn| &insn.address);
        for table in self.jump_tables.iter().filter(|table| Some(&table.jump) == jump) {
            write_jump_table(table, out, text)?;
        }
        Ok(())
    }
}

/// How instruction lines are laid out.
struct Columns<'f> {
    /// Width of the bytes, if they are shown.
    bytes: Option<usize>,
    facts: &'f Facts,
}

impl Columns<'_> {
    fn write(&self, insn: &ListedInsn, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let palette = text.palette;
        write!(out, "    {}  ", styled(&insn.address, palette.address))?;
        if let Some(width) = self.bytes {
            write!(out, "{}  ", styled(format_args!("{:width$}", insn.bytes), palette.aside))?;
        }
        match &insn.live {
            Some(live) => {
                let live = ranges(live, self.facts);
                writeln!(out, "{:42} {}", insn.text, styled(format_args!("; live {live}"), palette.aside))
            }
            None => writeln!(out, "{}", insn.text),
        }
    }
}

/// Neighbours by number as one: `zmm0-zmm7`.
fn ranges(live: &[&'static str], facts: &Facts) -> String {
    let number = |name: &str| facts.reg_names.iter().position(|known| *known == name).map_or(0, |n| n as u8);
    let numbers: Vec<u8> = live.iter().map(|name| number(name)).collect();
    // Only the registers of a numbered series: `rax-rbx` would say nothing.
    let series = |n: u8| facts.reg_name(Reg(n)).trim_end_matches(|c: char| c.is_ascii_digit());
    let next = |a: &u8, b: &u8| a + 1 == *b && series(*a) == series(*b) && series(*a) != facts.reg_name(Reg(*a));
    let texts = numbers.chunk_by(next).map(|run| match run {
        [first, _, .., last] => format!("{}-{}", facts.reg_name(Reg(*first)), facts.reg_name(Reg(*last))),
        run => run.iter().map(|&n| facts.reg_name(Reg(n))).collect::<Vec<_>>().join(" "),
    });
    let text = texts.collect::<Vec<_>>().join(" ");
    if text.is_empty() { "nothing".to_owned() } else { text }
}

fn write_jump_table(table: &JumpTableReport, out: &mut dyn Write, text: &Text) -> io::Result<()> {
    let base = table.base.as_ref().map_or(String::new(), |base| format!(", relative to {base}"));
    let bound = match table.bound {
        "checked" => "index checked",
        "masked" => "index masked",
        "cut" => "index checked, but not all entries lead into the function",
        _ => "size by content",
    };
    let mut shape = format!(
        "{} of {}",
        count(table.entries as u64, "entry").replace("entrys", "entries"),
        count(table.entry_bytes, "byte")
    );
    if table.stride != table.entry_bytes {
        shape += &format!(", {} apart", table.stride);
    }
    let line = format!("jump table {}: {shape}{base}, {bound}", table.table);
    writeln!(out, "  {}", styled(line, text.palette.doubt))?;
    // Cases that share a target stand together.
    let mut targets: Vec<(&str, Vec<usize>)> = Vec::new();
    for (case, target) in table.targets.iter().enumerate() {
        match targets.iter_mut().find(|(known, _)| known == target) {
            Some((_, cases)) => cases.push(case),
            None => targets.push((target, vec![case])),
        }
    }
    for (target, cases) in targets {
        writeln!(out, "    [{}] {target}", runs(&cases))?;
    }
    Ok(())
}

fn joined(links: &[Link]) -> Vec<String> {
    words::joined(links.iter().map(|link| (link.kind, link.back, &*link.block)))
}
