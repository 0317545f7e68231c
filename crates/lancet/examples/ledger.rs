//! Adds up what a function is given, by routines of one's own that are called in the program. The same tool edits
//! programs of both instruction sets.
//!
//! gcc -O2 -mgeneral-regs-only -fPIC -ffreestanding -c testdata/x86_64/rewrite/ledger.c
//! gcc -O2 testdata/x86_64/rewrite/paid.c -o paid
//! cargo run --example ledger -- ledger.o enter pay rdi tell ./paid
//! cargo run --example ledger -- testdata/blackfin/analysis/ledger.o _enter _fib R0 _tell testdata/blackfin/elf/fib.O2.elf

use lancet::load::Module;
use lancet::plan::{Argument, Point};
use lancet::tool::{self, Counters, Site, Tool};
use std::{io, sync::Arc};

/// OBJECT, and names: of the routine to enter a value, the function and the register it is in, and the routine to tell.
struct Ledger(Arc<Module>, [String; 4]);

impl Tool for Ledger {
    fn payload(&self) -> Option<Arc<Module>> {
        Some(Arc::clone(&self.0))
    }

    fn instrument(&mut self, site: &mut Site<'_>) {
        let [enter, function, register, tell] = &self.1;
        if site.name() == *function {
            let register = site.register(register).expect("a register of that name");
            let arguments = [Argument::Number(1), Argument::Register(register)];
            site.call(Point::Entry(0), enter, &arguments).expect("a routine of the object");
        }
        if site.name().trim_start_matches('_') == "main" {
            for exit in (0..).take(site.func.exits.len()) {
                site.call(Point::Exit(exit), tell, &[]).expect("a routine of the object");
            }
        }
    }

    fn report(&self, counters: &Counters, out: &mut dyn io::Write) -> io::Result<()> {
        counters.left_alone().iter().try_for_each(|(name, why)| writeln!(out, "{name} was left alone: {why}"))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let mut next = || args.next().ok_or("usage: ledger OBJECT ENTER FUNCTION REGISTER TELL PROGRAM [ARGS...]");
    let object = Arc::new(Module::open(next()?.as_ref())?);
    let names = [next()?, next()?, next()?, next()?].map(|name| name.to_string_lossy().into_owned());
    let (program, mut ledger) = (next()?, Ledger(object, names));
    let (_, counters) = tool::run(&mut ledger, program.as_ref(), &args.collect::<Vec<_>>())?;
    Ok(ledger.report(&counters, &mut io::stderr())?)
}
