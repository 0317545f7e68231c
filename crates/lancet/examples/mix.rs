//! How often each kind of instruction ran.
//!
//! cargo run --example mix -- /usr/bin/gzip -c README.md > /dev/null

use lancet::plan::CounterId;
use lancet::tool::{self, Counters, Site, Tool};
use std::collections::BTreeMap;
use std::io::{self, Write};

#[derive(Default)]
struct Mix(Vec<(Vec<String>, CounterId)>);

impl Tool for Mix {
    fn instrument(&mut self, site: &mut Site<'_>) {
        for block in site.func.block_ids() {
            let runs = site.counter();
            site.at_block(block, runs);
            let kind = |text: String| text.split_whitespace().next().unwrap_or("?").to_owned();
            self.0.push((site.insns(block).iter().map(|insn| kind(site.text(insn))).collect(), runs));
        }
    }

    fn report(&self, counters: &Counters, out: &mut dyn Write) -> io::Result<()> {
        let mut mix: BTreeMap<&str, u64> = BTreeMap::new();
        for (kinds, runs) in &self.0 {
            kinds.iter().for_each(|kind| *mix.entry(kind).or_default() += counters.get(*runs));
        }
        let mut mix: Vec<(u64, &str)> = mix.into_iter().map(|(kind, count)| (count, kind)).collect();
        mix.sort_unstable_by(|a, b| b.cmp(a));
        mix.iter().filter(|(count, _)| *count > 0).try_for_each(|(count, kind)| writeln!(out, "{count:>14}  {kind}"))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let program = args.next().ok_or("usage: mix PROGRAM [ARGS...]")?;
    let mut mix = Mix::default();
    let (_, counters) = tool::run(&mut mix, program.as_ref(), &args.collect::<Vec<_>>())?;
    Ok(mix.report(&counters, &mut io::stderr())?)
}
