//! Where functions may start, before any code was read.
//!
//! In order of trust: FDEs and symbols (they also tell the end), then the entry, the initializers and finalizers,
//! IFUNC resolvers and PLT stubs. Calls, jumps and pointers add to them later, in [`super::discover`].

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use lancet_isa::{Svma, Target, decode_one};
use rayon::prelude::*;

use super::FoundBy;
use crate::image::{CodeRange, Image, RelocKind, SymbolKind};

#[derive(Clone, Debug)]
pub(super) struct Seed {
    pub(super) start: Svma,
    /// The first address behind it, where something states it.
    pub(super) end: Option<Svma>,
    pub(super) found_by: FoundBy,
    /// Says of itself that it is not a function but a piece of one: its unwind table starts in mid-function, or
    /// its symbol is named `….cold` or `….warm`.
    pub(super) part: bool,
    /// Something refers to it as to a function: a symbol, an initializer table.
    pub(super) referenced: bool,
}

pub(super) fn collect(image: &Image) -> Vec<Seed> {
    let in_plt = |at: Svma| image.code_ranges().iter().any(|range| is_plt(range) && range.contains(at));
    let by_fde = image.fdes().par_iter().filter_map(|fde| {
        // The frame of a signal trampoline is described from one byte before it, for unwinders that subtract one.
        let start = if fde.signal_frame { fde.start + 1 } else { fde.start };
        if !image.is_code(start) || in_plt(start) {
            return None;
        }
        let end = Some(fde.start + fde.len);
        let part = !fde.entry_state && !fde.signal_frame;
        Some(Seed { start, end, found_by: FoundBy::Fde, part, referenced: false })
    });
    // Made of all at once, which are in order: many times faster than one by one.
    let stated = plt_stubs(image).into_iter().chain(by_fde.collect::<Vec<_>>());
    let mut seeds: BTreeMap<Svma, Seed> = stated.map(|seed| (seed.start, seed)).collect();
    let by_symbol = image.symbols().par_iter().filter_map(|symbol| {
        let is_function = matches!(symbol.kind, SymbolKind::Function | SymbolKind::IFunc);
        if !is_function || !image.is_code(symbol.svma) || in_plt(symbol.svma) {
            return None;
        }
        let part = is_cold_name(image.symbol_name(symbol));
        let end = (symbol.size > 0).then(|| symbol.svma + symbol.size);
        Some(Seed { start: symbol.svma, end, found_by: FoundBy::Symbol, part, referenced: !part })
    });
    for named in by_symbol.collect::<Vec<_>>() {
        match seeds.entry(named.start) {
            Entry::Vacant(place) => {
                place.insert(named);
            }
            Entry::Occupied(mut known) => {
                let seed = known.get_mut();
                (seed.found_by, seed.part) = (named.found_by, named.part);
                seed.referenced |= named.referenced;
            }
        }
    }
    let mut add = |at: Svma, found_by: FoundBy| {
        if !image.is_code(at) {
            return;
        }
        let seed = seeds.entry(at).or_insert(Seed { start: at, end: None, found_by, part: false, referenced: true });
        seed.referenced = true;
        seed.part = false;
    };
    if let Some(entry) = image.entry() {
        add(entry, FoundBy::Entry);
    }
    for at in image.init_functions() {
        add(at, FoundBy::Init);
    }
    for reloc in image.relocations() {
        if let RelocKind::Irelative(resolver) = reloc.kind {
            add(resolver, FoundBy::Ifunc);
        }
    }
    seeds.into_values().collect()
}

/// Symbols that compilers and post-link optimizers give to the less likely parts of a function.
pub(super) fn is_cold_name(name: &str) -> bool {
    let unnumbered = name.trim_end_matches(|c: char| c == '.' || c.is_ascii_digit());
    unnumbered.ends_with(".cold") || unnumbered.ends_with(".warm")
}

/// Named as linkers name the sections of their stubs. (Without section headers the stubs are found as call targets.)
fn is_plt(range: &CodeRange) -> bool {
    range.name.starts_with(".plt") || range.name == ".iplt"
}

/// One stub for each jump through a slot in a PLT section, from the entry boundary before it to the next.
pub(super) fn plt_stubs(image: &Image) -> Vec<Seed> {
    let mut stubs = Vec::new();
    for range in image.code_ranges().iter().filter(|range| is_plt(range)) {
        let Some(code) = image.bytes(range.start, range.len) else { continue };
        let jumps = slot_jumps(image, range.start, code);
        // Entries are of one size; two jumps 8 apart show that it is 8 (`.plt.got` without IBT).
        let size = if jumps.windows(2).any(|pair| pair[1] - pair[0] == 8) { 8 } else { 16 };
        for at in (0..code.len() as u64).step_by(size) {
            let start = range.start + at;
            let end = (start + size as u64).min(range.end());
            if jumps.iter().any(|jump| (start..end).contains(jump)) || range.name == ".plt" {
                stubs.push(Seed { start, end: Some(end), found_by: FoundBy::Plt, part: false, referenced: true });
            }
        }
    }
    stubs
}

fn slot_jumps(image: &Image, start: Svma, code: &[u8]) -> Vec<Svma> {
    let mut jumps = Vec::new();
    let mut at = 0;
    while let Some(rest) = code.get(at..).filter(|rest| !rest.is_empty()) {
        let Ok(insn) = decode_one(image.isa(), rest, start + at as u64) else {
            at += 1;
            continue;
        };
        if matches!(insn.flow, lancet_isa::Flow::Jump(Target::Slot(_))) {
            jumps.push(insn.at);
        }
        at += usize::from(insn.len);
    }
    jumps
}

#[cfg(test)]
mod tests {
    use super::is_cold_name;

    #[test]
    fn cold_parts_by_name() {
        assert!(is_cold_name("main.cold") && is_cold_name("f.part.0.cold.12") && is_cold_name("f.warm"));
        assert!(!is_cold_name("f.coldness") && !is_cold_name("cold"));
    }
}
