//! Branches for `llvm-bolt -data`.
//!
//! A record is a line: `1 FROM OFFSET 1 TO OFFSET MISPREDICTED COUNT`, with symbols and hexadecimal offsets from them.
//! BOLT wants the branches that were taken, and takes the ways on behind conditional branches too; other ways on it
//! infers. What enters a function at its start makes its execution count: direct calls come from where they are, and
//! the rest from `0 [unknown] 0`. A local symbol is followed by `/` and its number among those of that name, as BOLT
//! itself tells them apart. Pieces of functions without a symbol cannot be named and are left out.

use std::collections::HashMap;
use std::io::{self, Write};

use lancet_engine::image::{Binding, Image, SymbolKind};
use lancet_engine::program::{BlockId, Edge, EdgeKind, ExitKind, Func, FuncId};
use lancet_isa::{Flow, Svma, Target};

use crate::tools::count::{Counted, Counts};

/// BOLT reads the profile of one object.
pub fn write(counted: &Counted, out: &mut dyn Write) -> io::Result<()> {
    let names = Names::of(counted);
    // By function: entries that no direct call explains.
    let mut unexplained: Vec<u64> = vec![0; counted.program.funcs().len()];
    for (id, _) in counted.funcs() {
        unexplained[id.0 as usize] = counted.calls(id);
    }
    for (id, counts) in counted.funcs() {
        let writer = FuncWriter { counted, names: &names, func: counted.program.func(id), counts };
        writer.write(&mut unexplained, out)?;
    }
    for (id, calls) in (0..).map(FuncId).zip(unexplained).filter(|(_, calls)| *calls > 0) {
        if let Some((name, offset)) = names.place(counted.program.func(id).entry) {
            writeln!(out, "0 [unknown] 0 1 {name} {offset:x} 0 {calls}")?;
        }
    }
    Ok(())
}

/// What BOLT calls the pieces of functions.
struct Names {
    /// By address.
    starts: Vec<(Svma, Option<String>)>,
}

impl Names {
    fn of(counted: &Counted) -> Names {
        let image = counted.program.image();
        let locals = local_names(image);
        let parts = counted.program.funcs().iter().flat_map(|func| func.parts.iter());
        let mut starts: Vec<_> = parts.map(|part| (part.start, name_at(image, part.start, &locals))).collect();
        starts.sort_by_key(|(start, _)| *start);
        Names { starts }
    }

    /// The symbol of the piece that an address is in, and the offset from it.
    fn place(&self, at: Svma) -> Option<(&str, u64)> {
        let i = self.starts.partition_point(|(start, _)| *start <= at).checked_sub(1)?;
        let (start, name) = &self.starts[i];
        Some((name.as_deref()?, at - *start))
    }
}

/// Local functions with the number that tells them from others of that name.
fn local_names(image: &Image) -> HashMap<(Svma, &str), u32> {
    let mut seen: HashMap<&str, u32> = HashMap::new();
    let mut locals = HashMap::new();
    for symbol in image.symbols().iter().filter(|symbol| symbol.binding == Binding::Local) {
        let name = image.symbol_name(symbol);
        locals.entry((symbol.svma, name)).or_insert_with(|| {
            let number = seen.entry(name).or_default();
            *number += 1;
            *number
        });
    }
    locals
}

fn name_at(image: &Image, at: Svma, locals: &HashMap<(Svma, &str), u32>) -> Option<String> {
    let functions = image.symbols_at(at).iter().filter(|symbol| {
        matches!(symbol.kind, SymbolKind::Function | SymbolKind::IFunc) && !image.symbol_name(symbol).is_empty()
    });
    let symbol = functions.min_by_key(|symbol| symbol.binding == Binding::Local)?;
    let name = image.symbol_name(symbol);
    Some(match symbol.binding {
        Binding::Local => format!("{name}/{}", locals.get(&(at, name)).copied().unwrap_or(1)),
        _ => name.to_owned(),
    })
}

struct FuncWriter<'a> {
    counted: &'a Counted,
    names: &'a Names,
    func: &'a Func,
    counts: &'a Counts,
}

impl FuncWriter<'_> {
    fn write(&self, unexplained: &mut [u64], out: &mut dyn Write) -> io::Result<()> {
        let (func, counts) = (self.func, self.counts);
        for (edge, count) in func.edges.iter().zip(&counts.edges).filter(|(_, count)| **count > 0) {
            if let Some(from) = self.branch(edge) {
                self.record(from, func.block(edge.to).start, *count, out)?;
            }
        }
        for call in &func.calls {
            let count = counts.calls_in(func, call.block);
            self.leave(call.block, call.to, count, unexplained, out)?;
        }
        for (exit, count) in func.exits.iter().zip(&counts.exits) {
            if let ExitKind::TailCall(to) = exit.kind {
                self.leave(exit.from, to, *count, unexplained, out)?;
            }
        }
        Ok(())
    }

    /// The instruction that the edge belongs to, if BOLT wants to know of it.
    fn branch(&self, edge: &Edge) -> Option<Svma> {
        let last = *self.counted.program.insns(self.func.block(edge.from)).last()?;
        let wanted = match edge.kind {
            EdgeKind::Taken | EdgeKind::Jump | EdgeKind::Table => true,
            EdgeKind::Fall => matches!(last.flow, Flow::Branch(_)),
            EdgeKind::CallReturn | EdgeKind::Repeat => false,
        };
        wanted.then_some(last.at)
    }

    fn leave(
        &self,
        from: BlockId,
        to: Target,
        count: u64,
        unexplained: &mut [u64],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let program = &self.counted.program;
        let (Target::Direct(to), 1..) = (to, count) else { return Ok(()) };
        let (Some(callee), Some(last)) =
            (program.func_starting_at(to), program.insns(self.func.block(from)).last().copied())
        else {
            return Ok(());
        };
        if self.names.place(last.at).is_some() {
            let rest = &mut unexplained[callee.0 as usize];
            *rest = rest.saturating_sub(count);
        }
        self.record(last.at, to, count, out)
    }

    fn record(&self, from: Svma, to: Svma, count: u64, out: &mut dyn Write) -> io::Result<()> {
        match (self.names.place(from), self.names.place(to)) {
            (Some((from, from_offset)), Some((to, to_offset))) => {
                writeln!(out, "1 {from} {from_offset:x} 1 {to} {to_offset:x} 0 {count}")
            }
            _ => Ok(()),
        }
    }
}
