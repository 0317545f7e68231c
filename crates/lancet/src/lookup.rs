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
    let places = subject.objects.iter().map(|object| Place { program: &object.program, bias: object.bias }).collect();
    let (i, id) = Places { places, name: subject.name(), is_process: subject.pid.is_some() }.find(query)?;
    Ok((&subject.objects[i], id))
}

/// As [`find`], in programs that are no process: the index of one of them, and the function.
pub fn find_in(programs: &[&Program], query: &str) -> Result<(usize, FuncId), Error> {
    let name = programs.first().map_or(String::new(), |program| program.image().name().to_owned());
    let places = programs.iter().map(|program| Place { program, bias: 0 }).collect();
    Places { places, name, is_process: false }.find(query)
}

/// Where to look.
struct Places<'a> {
    places: Vec<Place<'a>>,
    name: String,
    is_process: bool,
}

#[derive(Clone, Copy)]
struct Place<'a> {
    program: &'a Program,
    bias: u64,
}

impl Places<'_> {
    fn find(&self, query: &str) -> Result<(usize, FuncId), Error> {
        if let Some(at) = address(query) {
            return self.by_address(query, at);
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
            let places = self.places.iter().enumerate();
            let found = places.flat_map(|(i, place)| way(place.program).into_iter().map(move |id| (i, id)));
            match found.collect::<Vec<_>>()[..] {
                [] => {}
                [one] => return Ok(one),
                ref several => return Err(self.ambiguous(query, several)),
            }
        }
        Err(Error::NoSuchFunction { subject: self.name.clone(), query: query.to_owned(), near: self.near_names(query) })
    }

    fn by_address(&self, query: &str, at: Svma) -> Result<(usize, FuncId), Error> {
        let stated_as = |stated: fn(&Place<'_>, Svma) -> Svma| -> Vec<(usize, FuncId)> {
            let found = self.places.iter().map(|place| place.program.func_at(stated(place, at)));
            found.enumerate().filter_map(|(i, id)| Some((i, id?))).collect()
        };
        let mut found = stated_as(|place, at| Svma(at.0.wrapping_sub(place.bias)));
        if found.is_empty() {
            found = stated_as(|_, at| at);
        }
        match found[..] {
            [] => Err(Error::NoFunctionAt { subject: self.name.clone(), at }),
            [one] => Ok(one),
            ref several => Err(self.ambiguous(query, several)),
        }
    }

    fn ambiguous(&self, query: &str, found: &[(usize, FuncId)]) -> Error {
        let candidate = |(i, id): &(usize, FuncId)| {
            let Place { program, bias } = self.places[*i];
            let func = program.func(*id);
            let name = names::of_function(program, func);
            match self.places.len() {
                1 if !self.is_process => format!("{}  {name}", func.entry),
                _ => format!("{:#x}  {name}  ({})", func.entry.0.wrapping_add(bias), program.image().name()),
            }
        };
        let candidates = found.iter().map(candidate).collect();
        Error::Ambiguous { subject: self.name.clone(), query: query.to_owned(), candidates }
    }

    /// Names that contain the query, or differ from it by a few letters; case does not matter.
    fn near_names(&self, query: &str) -> Vec<String> {
        let query = query.to_lowercase();
        let mut near: Vec<(usize, String)> = Vec::new();
        for place in &self.places {
            let funcs = place.program.funcs().par_iter();
            near.par_extend(funcs.filter_map(|func| {
                let name = names::short_of_function(place.program, func);
                distance(&query, &name.to_lowercase()).map(|distance| (distance, name))
            }));
        }
        near.sort();
        near.dedup();
        near.into_iter().take(SUGGESTIONS).map(|(_, name)| name).collect()
    }
}

/// The address that a query states.
pub(crate) fn address(query: &str) -> Option<Svma> {
    let digits = query.strip_prefix("0x").or_else(|| query.strip_prefix("0X"))?;
    u64::from_str_radix(digits, 16).ok().map(Svma)
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
