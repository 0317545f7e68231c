//! The words that all reports use for the engine's kinds, in JSON and in text.

use lancet_engine::program::{Bound, Edge, EdgeKind, ExitKind, FoundBy, Func};

pub fn found_by(found_by: FoundBy) -> &'static str {
    match found_by {
        FoundBy::Symbol => "symbol",
        FoundBy::Fde => "fde",
        FoundBy::Entry => "entry",
        FoundBy::Init => "init",
        FoundBy::Ifunc => "ifunc",
        FoundBy::Plt => "plt",
        FoundBy::Call => "call",
        FoundBy::Jump => "jump",
        FoundBy::Pointer => "pointer",
    }
}

pub fn edge(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Fall => "fall",
        EdgeKind::Jump => "jump",
        EdgeKind::Taken => "taken",
        EdgeKind::CallReturn => "call-return",
        EdgeKind::Table => "table",
        EdgeKind::Repeat => "repeat",
    }
}

pub fn exit(kind: ExitKind) -> &'static str {
    match kind {
        ExitKind::Return => "return",
        ExitKind::TailCall(_) => "tail-call",
        ExitKind::RunsInto(_) => "runs-into",
        ExitKind::NoReturn => "no-return",
        ExitKind::Stop => "stop",
        ExitKind::Unresolved => "unresolved",
        ExitKind::Bad(_) => "bad",
    }
}

pub fn bound(bound: Bound) -> &'static str {
    match bound {
        Bound::Checked => "checked",
        Bound::Masked => "masked",
        Bound::Cut { .. } => "cut",
        Bound::Content => "content",
    }
}

pub fn status(func: &Func) -> &'static str {
    if func.is_complete() { "complete" } else { "partial" }
}

/// Why a function is not complete.
pub fn reason(func: &Func) -> Option<String> {
    let reasons: Vec<String> = func.problems.iter().map(ToString::to_string).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Edges with the same kind together: `taken 0x10 (back), table 0x20 0x30`.
pub(super) fn joined<'a>(edges: impl Iterator<Item = (&'static str, bool, &'a str)>) -> Vec<String> {
    let mut groups: Vec<(&str, bool, String)> = Vec::new();
    for (kind, back, block) in edges {
        match groups.iter_mut().find(|group| (group.0, group.1) == (kind, back)) {
            Some((_, _, blocks)) => {
                blocks.push(' ');
                blocks.push_str(block);
            }
            None => groups.push((kind, back, block.to_owned())),
        }
    }
    let text = |(kind, back, blocks)| format!("{kind} {blocks}{}", if back { " (back)" } else { "" });
    groups.into_iter().map(text).collect()
}

/// Does the edge close a loop?
pub fn is_back_edge(func: &Func, edge: &Edge) -> bool {
    let header_of = |id| func.loops.get(id).header == edge.to.0 && func.loops.contains(id, edge.from.0);
    func.loops.innermost(edge.to.0).is_some_and(header_of)
}
