//! Counts against an independent count: the same number for every single instruction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lancet::program::FoundBy;
use lancet::tools::count::Counted;
use lancet::{Func, Program, Svma};

use crate::bench::Bench;
use crate::callgrind;

/// Functions of the test programs that a fault ends in the middle of a block have this in their names. Blocks are
/// counted as wholes.
const INTERRUPTED: &str = "interrupted_";

/// How often each instruction ran, as far as it was counted and `wanted`.
fn instruction_counts(counted: &Counted, wanted: impl Fn(&Program, &Func) -> bool) -> BTreeMap<Svma, u64> {
    let mut found = BTreeMap::new();
    for (id, counts) in counted.funcs() {
        let func = counted.program.func(id);
        // Callgrind gives the instructions of stubs to their callers.
        if func.found_by == FoundBy::Plt || !wanted(&counted.program, func) {
            continue;
        }
        for (block, count) in func.block_ids().zip(&counts.blocks) {
            for insn in counted.program.insns(func.block(block)) {
                if !is_repeated(&counted.program, insn.at) {
                    *found.entry(insn.at).or_default() += count;
                }
            }
        }
    }
    found
}

/// Is this a text instruction with a prefix that repeats it? Callgrind counts every repetition.
fn is_repeated(program: &Program, at: Svma) -> bool {
    let code = program.image().bytes_from(at).unwrap_or_default();
    let mut code = code.iter().skip_while(|byte| **byte == 0x66);
    let is_prefixed = matches!(code.next(), Some(0xf2 | 0xf3));
    let opcode = code.find(|byte| !matches!(byte, 0x40..=0x4f | 0x66));
    is_prefixed && matches!(opcode, Some(0xa4..=0xa7 | 0xaa..=0xaf))
}

/// Compares what the rewritten program or library `rewritten` has counted in one run with a run of the original under
/// callgrind. `only` names the functions to compare, if not all. Returns how many instructions were compared.
#[track_caller]
pub fn equals_callgrind(
    bench: &Bench,
    rewritten: &str,
    run: (&Path, &[&str]),
    object: &Path,
    only: Option<&BTreeSet<String>>,
) -> usize {
    counted_equals_callgrind(bench, &bench.counted(rewritten), run, object, only)
}

#[track_caller]
pub fn counted_equals_callgrind(
    bench: &Bench,
    counted: &Counted,
    run: (&Path, &[&str]),
    object: &Path,
    only: Option<&BTreeSet<String>>,
) -> usize {
    let is_wanted = |program: &Program, func: &Func| {
        let name = program.symbol_name(func).unwrap_or_default();
        !name.contains(INTERRUPTED) && only.is_none_or(|only| only.contains(&name)) && !is_unseen(program, func)
    };
    let ours = instruction_counts(counted, is_wanted);
    let theirs = callgrind::instruction_counts(run.0, run.1, object, &bench.path(""));
    assert!(!theirs.is_empty(), "callgrind saw nothing of {}", object.display());
    let mut differences = Vec::new();
    for (at, count) in &ours {
        let expected = theirs.get(at).copied().unwrap_or(0);
        if *count != expected {
            let id = counted.program.func_at(*at);
            let name = id.and_then(|id| counted.program.symbol_name(counted.program.func(id))).unwrap_or_default();
            differences.push(format!("{at} in {name}: {count}, callgrind has {expected}"));
        }
    }
    let total = differences.len();
    differences.truncate(20);
    assert!(differences.is_empty(), "{}: {total} instructions differ\n{}", object.display(), differences.join("\n"));
    ours.values().filter(|count| **count > 0).count()
}

/// Callgrind shows nothing of the sections `.init` and `.fini`.
fn is_unseen(program: &Program, func: &Func) -> bool {
    let sections = [".init", ".fini"].into_iter().filter_map(|name| program.image().section(name));
    sections.into_iter().any(|section| func.entry >= section.svma && func.entry < section.svma + section.size)
}

/// Rewrites a program, runs it beside the original, and compares the counts.
#[track_caller]
pub fn is_exact(bench: &Bench, original: &Path, arguments: &[&str]) -> usize {
    let rewritten = bench.behaves_the_same(original, arguments);
    let name = rewritten.file_name().expect("a name").to_string_lossy().into_owned();
    equals_callgrind(bench, &name, (original, arguments), original, None)
}

/// The names of all functions of a program.
pub fn function_names(path: &Path) -> BTreeSet<String> {
    let image = lancet::Image::open(path).unwrap_or_else(|error| panic!("{error}"));
    let program = Program::analyse(std::sync::Arc::new(image));
    program.funcs().iter().filter_map(|func| program.symbol_name(func)).collect()
}
