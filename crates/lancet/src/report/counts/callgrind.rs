//! Counts in the format of callgrind, for KCachegrind and `callgrind_annotate`.
//!
//! Every instruction that ran is a line with its address, source line and count, as `valgrind --tool=callgrind
//! --dump-instr=yes` writes them. The format is described in Valgrind's manual ("Callgrind Format Specification"). Calls
//! by name have a line with what they cost with everything below, which is shared among callers ([`super::calls`]).

use std::io::{self, Write};

use lancet_engine::program::{Func, FuncId};

use super::calls::{self, CallCost};
use crate::names;
use crate::tools::count::{Counted, Counts, Slot};

pub fn write(objects: &[Counted], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# callgrind format\nversion: 1\ncreator: lancet {}", env!("CARGO_PKG_VERSION"))?;
    if let Some(program) = objects.first() {
        writeln!(out, "cmd: {}", program.name())?;
    }
    writeln!(out, "desc: Calls: the numbers of calls are exact; inclusive costs are shared among callers by calls")?;
    writeln!(out, "positions: instr line\nevent: Ir : Instructions\nevents: Ir")?;
    writeln!(out, "summary: {}", objects.iter().map(Counted::instructions).sum::<u64>())?;
    for counted in objects {
        writeln!(out, "\nob={}", counted.name())?;
        let calls = calls::of(counted);
        for (id, counts) in counted.funcs().filter(|(id, _)| counted.func_instructions(*id) > 0) {
            let first = calls.partition_point(|call| call.from < id);
            let end = calls.partition_point(|call| call.from <= id);
            write_function(counted, id, counts, &calls[first..end], out)?;
        }
    }
    Ok(())
}

/// Where the debug information names no file.
const UNKNOWN: &str = "???";

fn write_function(
    counted: &Counted,
    id: FuncId,
    counts: &Counts,
    calls: &[CallCost],
    out: &mut dyn Write,
) -> io::Result<()> {
    let (program, func): (_, &Func) = (&counted.program, counted.program.func(id));
    let image = program.image();
    let home_of = |func: &Func| image.source_line(func.entry).map_or(UNKNOWN, |source| source.file);
    let home = home_of(func);
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
            let (at, line) = (insn.at.0, source.map_or(0, |source| source.line));
            writeln!(out, "{at:#x} {line} {count}")?;
            let is_last = i + 1 == func.block(id).insns as usize;
            for call in calls.iter().filter(|call| is_last && call.block == id) {
                let callee = program.func(call.to);
                let start = image.source_line(callee.entry).map_or(0, |source| source.line);
                writeln!(out, "cfi={}\ncfn={}", home_of(callee), names::of_function(program, callee))?;
                writeln!(out, "calls={} {:#x} {start}\n{at:#x} {line} {}", call.calls, callee.entry.0, call.cost)?;
            }
        }
    }
    Ok(())
}
