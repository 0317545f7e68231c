//! Coverage in the format of `geninfo`, for `lcov` and `genhtml`.
//!
//! It covers the lines that counted functions were compiled from. How often a line ran is explained in
//! [`lines`](super::lines).

use std::collections::BTreeMap;
use std::io::{self, Write};

use lancet_engine::program::FuncId;
use rayon::prelude::*;

use super::lines::{self, LineCounts};
use crate::names;
use crate::tools::count::Counted;

#[derive(Default)]
struct Covered {
    /// Name: line, calls.
    functions: BTreeMap<String, (u32, u64)>,
    lines: LineCounts,
}

pub fn write(objects: &[Counted], out: &mut dyn Write) -> io::Result<()> {
    let mut files: BTreeMap<&str, Covered> = BTreeMap::new();
    for counted in objects {
        let program = &counted.program;
        let ids: Vec<FuncId> = counted.funcs().map(|(id, _)| id).collect();
        let covered: Vec<_> = ids.par_iter().map(|id| (*id, lines::of_function(counted, *id))).collect();
        for (id, of_function) in covered {
            let func = program.func(id);
            if let Some(source) = program.image().source_line(func.entry) {
                let functions = &mut files.entry(source.file).or_default().functions;
                let function = functions.entry(names::of_function(program, func)).or_insert((source.line, 0));
                function.1 += counted.calls(id);
            }
            for (file, lines) in of_function {
                let sums = &mut files.entry(file).or_default().lines;
                for (line, count) in lines {
                    *sums.entry(line).or_default() += count;
                }
            }
        }
    }
    for (file, covered) in &files {
        write_file(file, covered, out)?;
    }
    Ok(())
}

fn write_file(file: &str, covered: &Covered, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "TN:\nSF:{file}")?;
    for (name, (line, _)) in &covered.functions {
        writeln!(out, "FN:{line},{name}")?;
    }
    for (name, (_, calls)) in &covered.functions {
        writeln!(out, "FNDA:{calls},{name}")?;
    }
    let hit = covered.functions.values().filter(|(_, calls)| *calls > 0).count();
    writeln!(out, "FNF:{}\nFNH:{hit}", covered.functions.len())?;
    for (line, count) in &covered.lines {
        writeln!(out, "DA:{line},{count}")?;
    }
    let hit = covered.lines.values().filter(|count| **count > 0).count();
    writeln!(out, "LF:{}\nLH:{hit}\nend_of_record", covered.lines.len())
}
