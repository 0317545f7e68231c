//! Which function a person means.
//!
//! A number with `0x` is an address anywhere in a function: as stated in the file, or in a process the actual one.
//! Anything else is a name, and the first of these that fits decides: a symbol as the linker has it; a demangled name;
//! a demangled name without parameters. Symbols of one address are names of one function, and a symbol inside a
//! function (its cold part) means the function. Spaces in C++ names do not matter.

use std::collections::BTreeSet;

use lancet_engine::image::{Symbol, SymbolKind, demangle, demangle_short};
use lancet_engine::program::{FoundBy, FuncId, Program};
use lancet_isa::Svma;
use rayon::prelude::*;

use crate::{Error, Object, Subject, names};

/// One way to read what the user calls a function.
type Way<'a> = &'a dyn Fn(&Program) -> BTreeSet<FuncId>;

/// How many names to suggest.
const SUGGESTIONS: usize = 3;

/// The object and the function that `query` means.
pub fn find<'s>(subject: &'s Subject, query: &str) -> Result<(&'s Object, FuncId), Error> {
    if let Some(at) = address(query) {
        return by_address(subject, query, at);
    }
    let wanted = squeezed(query);
    let by_symbol = |program: &Program| {
        let mut found = symbols_that(program, |name| name == query);
        found.extend(found_without_symbol(program, query));
        found
    };
    let by_demangled = |program: &Program| symbols_that(program, |name| squeezed(&demangle(name)) == wanted);
    let by_short = |program: &Program| symbols_that(program, |name| squeezed(&demangle_short(name)) == wanted);
    let ways: [Way<'_>; 3] = [&by_symbol, &by_demangled, &by_short];
    for way in ways {
        let found =
            subject.objects.iter().flat_map(|object| way(&object.program).into_iter().map(move |id| (object, id)));
        match found.collect::<Vec<_>>()[..] {
            [] => {}
            [one] => return Ok(one),
            ref several => return Err(ambiguous(subject, query, several)),
        }
    }
    Err(Error::NoSuchFunction { subject: subject.name(), query: query.to_owned(), near: near_names(subject, query) })
}

/// The address that a query states.
pub(crate) fn address(query: &str) -> Option<Svma> {
    let digits = query.strip_prefix("0x").or_else(|| query.strip_prefix("0X"))?;
    u64::from_str_radix(digits, 16).ok().map(Svma)
}

fn by_address<'s>(subject: &'s Subject, query: &str, at: Svma) -> Result<(&'s Object, FuncId), Error> {
    let in_objects = |stated: fn(&Object, Svma) -> Svma| -> Vec<(&'s Object, FuncId)> {
        let found = subject.objects.iter().map(|object| (object, object.program.func_at(stated(object, at))));
        found.filter_map(|(object, id)| Some((object, id?))).collect()
    };
    let mut found = in_objects(|object, at| Svma(at.0.wrapping_sub(object.bias)));
    if found.is_empty() {
        found = in_objects(|_, at| at);
    }
    match found[..] {
        [] => Err(Error::NoFunctionAt { subject: subject.name(), at }),
        [one] => Ok(one),
        ref several => Err(ambiguous(subject, query, several)),
    }
}

/// The functions that have a symbol of which `is_wanted` holds.
fn symbols_that(program: &Program, is_wanted: impl Fn(&str) -> bool + Sync) -> BTreeSet<FuncId> {
    let image = program.image();
    let names_code =
        |symbol: &&Symbol| !matches!(symbol.kind, SymbolKind::Object | SymbolKind::Section | SymbolKind::Tls);
    let symbols = image.symbols().par_iter().filter(names_code);
    symbols
        .filter(|symbol| is_wanted(image.symbol_name(symbol)))
        .filter_map(|symbol| program.func_at(symbol.svma))
        .collect()
}

/// Functions with names that Lancet gives: `sub_1234`, `name@plt`.
fn found_without_symbol(program: &Program, query: &str) -> BTreeSet<FuncId> {
    let unnamed = query.strip_prefix("sub_").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let unnamed = unnamed.and_then(|at| program.func_starting_at(Svma(at)));
    let unnamed = unnamed.filter(|&id| program.symbol_name(program.func(id)).is_none());
    let stubs = program.funcs().iter().filter(|func| query.ends_with("@plt") && func.found_by == FoundBy::Plt);
    let stubs = stubs
        .filter(|func| names::of_function(program, func) == query || names::short_of_function(program, func) == query);
    unnamed.into_iter().chain(stubs.filter_map(|func| program.func_starting_at(func.entry))).collect()
}

fn ambiguous(subject: &Subject, query: &str, found: &[(&Object, FuncId)]) -> Error {
    let candidate = |(object, id): &(&Object, FuncId)| {
        let func = object.program.func(*id);
        let name = names::of_function(&object.program, func);
        match subject.pid {
            Some(_) => format!("{:#x}  {name}  ({})", func.entry.0.wrapping_add(object.bias), object.name()),
            None => format!("{}  {name}", func.entry),
        }
    };
    let candidates = found.iter().map(candidate).collect();
    Error::Ambiguous { subject: subject.name(), query: query.to_owned(), candidates }
}

/// Names that contain the query, or differ from it by a few letters; case does not matter.
fn near_names(subject: &Subject, query: &str) -> Vec<String> {
    let query = query.to_lowercase();
    let mut near: Vec<(usize, String)> = Vec::new();
    for object in &subject.objects {
        let funcs = object.program.funcs().par_iter();
        near.par_extend(funcs.filter_map(|func| {
            let name = names::short_of_function(&object.program, func);
            distance(&query, &name.to_lowercase()).map(|distance| (distance, name))
        }));
    }
    near.sort();
    near.dedup();
    near.into_iter().take(SUGGESTIONS).map(|(_, name)| name).collect()
}

/// How far a name is from the query, if it is near at all. Its last component may stand for it.
fn distance(query: &str, name: &str) -> Option<usize> {
    let last = name.rsplit("::").next().unwrap_or(name);
    let letters = query.chars().count();
    let typos = [name, last].into_iter().filter(|part| part.chars().count().abs_diff(letters) <= letters / 3);
    let typos =
        typos.map(|part| strsim::osa_distance(query, part)).filter(|&distance| distance <= letters.div_ceil(3)).min();
    let longer = (letters >= 3 && name.contains(query)).then(|| letters.div_ceil(3) + name.len() - query.len());
    typos.or(longer)
}

fn squeezed(name: &str) -> String {
    name.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn typos_are_nearer_than_longer_names() {
        assert_eq!(distance("mian", "main"), Some(1));
        assert!(distance("main", "do_main") > distance("main", "mein"));
        assert_eq!(distance("sort", "spiral"), None);
        assert_eq!(distance("larges", "shapes::largest"), Some(1));
    }
}
