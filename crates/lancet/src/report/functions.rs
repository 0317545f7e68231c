//! The list of functions.

use lancet_engine::program::{FoundBy, Func, Program};
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Functions {
    pub file: String,
    pub functions: Vec<Function>,
}

#[derive(Debug, Serialize)]
pub struct Function {
    /// As stated in the file, in hexadecimal.
    pub address: String,
    pub size: u64,
    /// As the symbol has it; `sub_<address>` where there is none.
    pub name: String,
    pub found_by: &'static str,
    pub blocks: usize,
    pub loops: usize,
    /// `complete`, or `partial` with a reason.
    pub status: &'static str,
    pub reason: Option<String>,
}

pub fn functions(program: &Program) -> Functions {
    let functions = program.funcs().iter().map(|func| function(program, func)).collect();
    Functions { file: program.image().name().to_owned(), functions }
}

fn function(program: &Program, func: &Func) -> Function {
    let reasons: Vec<String> = func.problems.iter().map(ToString::to_string).collect();
    Function {
        address: func.entry.to_string(),
        size: func.size(),
        name: program.symbol_name(func).unwrap_or_else(|| format!("sub_{:x}", func.entry.0)),
        found_by: found_by(func.found_by),
        blocks: func.blocks.len(),
        loops: func.loops.len(),
        status: if func.is_complete() { "complete" } else { "partial" },
        reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
    }
}

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
