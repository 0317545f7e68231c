//! How often source lines ran.
//!
//! A line is often compiled to several blocks, of which one runs as often as the line does and the others more rarely:
//! of a function's instructions for a line, the most frequent counts. Functions that share a line, because it was
//! inlined into them or comes from a template, add up.

use std::collections::BTreeMap;

use lancet_engine::program::FuncId;

use crate::tools::count::Counted;

/// By line of one file.
pub type LineCounts = BTreeMap<u32, u64>;

/// The lines of one function, by file. Empty without debug information.
pub fn of_function(counted: &Counted, id: FuncId) -> BTreeMap<&str, LineCounts> {
    let mut files: BTreeMap<&str, LineCounts> = BTreeMap::new();
    let Some(counts) = counted.counts(id) else { return files };
    let program = &counted.program;
    let func = program.func(id);
    for block in func.block_ids() {
        for (i, insn) in program.insns(func.block(block)).into_iter().enumerate() {
            if let Some(source) = program.image().source_line(insn.at) {
                let most = files.entry(source.file).or_default().entry(source.line).or_default();
                *most = (*most).max(counts.runs(block, i as u32));
            }
        }
    }
    files
}
