//! Counts in the format of callgrind, for KCachegrind and `callgrind_annotate`.
//!
//! Every instruction that ran is a line with its address, source line and count, as `valgrind --tool=callgrind
//! --dump-instr=yes` writes them. The format is described in Valgrind's manual ("Callgrind Format Specification"). Calls
//! are left out: their lines must say what a call cost with everything below it, and that was not measured.

use std::io::{self, Write};

use lancet_engine::program::{Func, FuncId};

use crate::names;
use crate::tools::count::{Counted, Counts, Slot};

pub fn write(objects: &[Counted], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# callgrind format\nversion: 1\ncreator: lancet {}", env!("CARGO_PKG_VERSION"))?;
    if let Some(program) = objects.first() {
        writeln!(out, "cmd: {}", program.name())?;
    }
    writeln!(out, "positions: instr line\nevent: Ir : Instructions\nevents: Ir")?;
    writeln!(out, "summary: {}", objects.iter().map(Counted::instructions).sum::<u64>())?;
    for counted in objects {
        writeln!(out, "\nob={}", counted.name())?;
        for (id, counts) in counted.funcs().filter(|(id, _)| counted.func_instructions(*id) > 0) {
            write_function(counted, id, counts, out)?;
        }
    }
    Ok(())
}

/// Where the debug information names no file.
const UNKNOWN: &str = "???";

fn write_function(counted: &Counted, id: FuncId, counts: &Counts, out: &mut dyn Write) -> io::Result<()> {
    let (program, func): (_, &Func) = (&counted.program, counted.program.func(id));
    let image = program.image();
    let home = image.source_line(func.entry).map_or(UNKNOWN, |source| source.file);
    writeln!(out, "\nfl={home}\nfn={}", names::of_function(program, func))?;
    let mut file = home;
    for id in func.block_ids().filter(|id| counts.of(Slot::Block(*id)) > 0) {
        for (i, insn) in program.insns(func.block(id)).into_iter().enumerate() {
            let count = counts.runs(id, i as u32);
            let source = image.source_line(insn.at);
            // An instruction without a line stays with the one before it.
            let of_insn = source.map_or(file, |source| source.file);
            if of_insn != file {
                file = of_insn;
                writeln!(out, "{}={file}", if file == home { "fe" } else { "fi" })?;
            }
            writeln!(out, "{:#x} {} {count}", insn.at.0, source.map_or(0, |source| source.line))?;
        }
    }
    Ok(())
}
