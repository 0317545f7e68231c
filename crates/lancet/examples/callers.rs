//! Who calls whom, and how often.
//!
//! cargo run --example callers -- /usr/bin/gzip -c README.md > /dev/null

use lancet::plan::CounterId;
use lancet::tool::{self, Counters, Site, Tool};
use std::collections::BTreeMap;
use std::io::{self, Write};

#[derive(Default)]
struct Callers(Vec<(String, String, CounterId)>);

impl Tool for Callers {
    fn instrument(&mut self, site: &mut Site<'_>) {
        for call in &site.func.calls {
            let count = site.counter();
            site.at_block(call.block, count);
            let callee = site.callee(call).unwrap_or_else(|| "(through a pointer)".to_owned());
            self.0.push((callee, site.name(), count));
        }
    }

    fn report(&self, counters: &Counters, out: &mut dyn Write) -> io::Result<()> {
        let mut calls: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for (callee, caller, count) in &self.0 {
            *calls.entry((callee, caller)).or_default() += counters.get(*count);
        }
        for ((callee, caller), count) in calls.iter().filter(|(_, count)| **count > 0) {
            writeln!(out, "{count:>12}  {callee} from {caller}")?;
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let program = args.next().ok_or("usage: callers PROGRAM [ARGS...]")?;
    let mut callers = Callers::default();
    let (_, counters) = tool::run(&mut callers, program.as_ref(), &args.collect::<Vec<_>>())?;
    Ok(callers.report(&counters, &mut io::stderr())?)
}
