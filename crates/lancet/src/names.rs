//! What people call a function or an address.

use lancet_engine::image::{Symbol, SymbolKind, demangle, demangle_short};
use lancet_engine::program::{Func, Program};
use lancet_isa::{Svma, Target};

/// The function's name, demangled; `sub_` and its address if no symbol names it.
pub fn of_function(program: &Program, func: &Func) -> String {
    program.symbol_name(func).map_or_else(|| unnamed(func.entry), |symbol| readable(&symbol, demangle))
}

/// As [`of_function`], without parameters.
pub fn short_of_function(program: &Program, func: &Func) -> String {
    program.symbol_name(func).map_or_else(|| unnamed(func.entry), |symbol| readable(&symbol, demangle_short))
}

pub(crate) fn unnamed(at: Svma) -> String {
    format!("sub_{:x}", at.0)
}

/// What an instruction that mentions the address refers to: a function's start, a variable, or a slot that the loader
/// fills (`name@got`).
pub fn of_address(program: &Program, at: Svma) -> Option<String> {
    if let Some(id) = program.func_starting_at(at) {
        return Some(of_function(program, program.func(id)));
    }
    let image = program.image();
    if let Some(slot) = image.slot_name(at) {
        return Some(format!("{}@got", demangle(slot)));
    }
    let names_memory = |symbol: &&Symbol| !matches!(symbol.kind, SymbolKind::Section | SymbolKind::Tls);
    let names = image.symbols_at(at).iter().filter(names_memory).map(|symbol| image.symbol_name(symbol));
    names.filter(|name| !name.is_empty()).map(|name| demangle(name).into_owned()).next()
}

/// Where a call or a jump goes, as far as it is known before the program runs.
pub fn of_target(program: &Program, to: Target) -> Option<String> {
    match to {
        Target::Direct(at) => Some(of_address(program, at).unwrap_or_else(|| at.to_string())),
        Target::Slot(at) => {
            Some(program.image().slot_name(at).map_or_else(|| format!("*{at}"), |name| demangle(name).into_owned()))
        }
        Target::Computed => None,
    }
}

/// Stubs are named `symbol@plt`: the mangled part is in front.
fn readable(symbol: &str, demangle: fn(&str) -> std::borrow::Cow<'_, str>) -> String {
    match symbol.strip_suffix("@plt") {
        Some(name) => format!("{}@plt", demangle(name)),
        None => demangle(symbol).into_owned(),
    }
}
