//! Virtual calls that go straight to clones.
//!
//! A call through a pointer passes the old text, and a jump there: virtual calls can feel that. But a function must have one
//! address for all who compare addresses, as compilers do before they guess what a virtual call will call. So the tables
//! of C++ classes lead to the clone only if nobody can have the function's address otherwise: the image is
//! position-independent, so that all pointers in data are known, and all that lead to it are in such tables; the function
//! is no dynamic symbol; and nothing in the code looks like an operand that refers to it. What looks like one by accident
//! only costs the jump.
//!
//! A table is told by what stands in front of its pointers to functions: a pointer to a description of a type, which has a
//! name that says so, or begins with a pointer to a class of such descriptions.

use lancet_isa::Svma;
use lancet_isa::edit::Edit;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::patch::Repoint;
use crate::image::{Image, RelocKind};

const POINTER: u64 = 8;
/// How the names of descriptions of types begin, and those of the tables of their classes.
const TYPE: &str = "_ZTI";
const TABLE_OF_TYPES: &str = "_ZTVN10__cxxabiv1";
/// Code is searched in stretches of so many bytes.
const STRETCH: usize = 1 << 20;

/// Where pointers are, and what they shall hold: `arrivals` say where control goes that arrives at an entry.
pub(super) fn repoints(image: &Image, edit: &dyn Edit, mut arrivals: FxHashMap<Svma, Svma>) -> Vec<Repoint> {
    if !image.kind().is_position_independent() {
        return Vec::new();
    }
    let mut pointers: Vec<(Svma, Svma)> = Vec::new();
    let mut elsewhere = Vec::new();
    // Behind this there may be a pointer to a function.
    let mut table_up_to = None;
    for reloc in image.relocations() {
        let continues = table_up_to == Some(reloc.place);
        let is_method = match reloc.kind {
            RelocKind::Relative(to) if arrivals.contains_key(&to) => {
                if continues {
                    pointers.push((reloc.place, to))
                } else {
                    elsewhere.push(to)
                }
                true
            }
            RelocKind::Relative(to) => image.is_code(to),
            RelocKind::Symbol { index, .. } => !is_named(image, index, TYPE),
            _ => false,
        };
        let goes_on = continues && is_method || describes_a_type(image, reloc.kind);
        table_up_to = goes_on.then(|| reloc.place + POINTER);
    }
    if pointers.is_empty() {
        return Vec::new();
    }
    let mut wanted: Vec<Svma> = pointers.iter().map(|(_, to)| *to).collect();
    wanted.sort_unstable();
    wanted.dedup();
    for at in image.exports().chain(elsewhere).chain(mentioned(image, edit, &wanted)) {
        arrivals.remove(&at);
    }
    pointers.iter().filter_map(|(place, to)| Some(Repoint { place: *place, to: *arrivals.get(to)? })).collect()
}

fn is_named(image: &Image, index: u32, start: &str) -> bool {
    image.dynamic_symbol(index).is_some_and(|symbol| symbol.name.starts_with(start))
}

fn describes_a_type(image: &Image, kind: RelocKind) -> bool {
    match kind {
        RelocKind::Symbol { index, .. } => is_named(image, index, TYPE),
        RelocKind::Relative(to) => match image.relocation_at(to).map(|reloc| reloc.kind) {
            Some(RelocKind::Symbol { index, .. }) => is_named(image, index, TABLE_OF_TYPES),
            _ => false,
        },
        _ => false,
    }
}

/// Those of the addresses, which are sorted, that code may refer to.
fn mentioned(image: &Image, edit: &dyn Edit, wanted: &[Svma]) -> Vec<Svma> {
    let is_wanted = |at: Svma| wanted.binary_search(&at).is_ok();
    let in_range = |range: &crate::image::CodeRange| {
        let code = image.bytes(range.start, range.len).unwrap_or_default();
        let starts: Vec<usize> = (0..code.len()).step_by(STRETCH).collect();
        let found = starts.into_par_iter().flat_map_iter(|start| {
            let end = (start + STRETCH + edit.longest_mention()).min(code.len());
            let mut found = Vec::new();
            edit.mentions(
                &code[start..end],
                range.start + start as u64,
                (wanted[0], wanted[wanted.len() - 1]),
                &mut |at| {
                    found.extend(Some(at).filter(|at| is_wanted(*at)));
                },
            );
            found
        });
        found.collect::<Vec<Svma>>()
    };
    image.code_ranges().iter().flat_map(in_range).collect()
}
