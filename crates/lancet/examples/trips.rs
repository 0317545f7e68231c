//! The average trip count of every loop of a program that runs.
//!
//! cargo run --example trips -- /usr/bin/gzip -c README.md > /dev/null

use lancet::plan::CounterId;
use lancet::tool::{self, Counters, Site, Tool};
use std::io::{self, Write};

#[derive(Default)]
struct Trips(Vec<(String, CounterId, CounterId)>);

impl Tool for Trips {
    fn instrument(&mut self, site: &mut Site<'_>) {
        for (id, l) in site.func.loops.iter() {
            let (enter, again) = (site.counter(), site.counter());
            let (entries, backs) = (site.entry_edges(id), site.back_edges(id));
            site.at_edges(&entries, enter);
            site.at_edges(&backs, again);
            let header = site.func.blocks[l.header as usize].start;
            self.0.push((format!("{header} in {}", site.name()), enter, again));
        }
    }

    fn report(&self, counters: &Counters, out: &mut dyn Write) -> io::Result<()> {
        for (name, enter, again) in &self.0 {
            let (enter, again) = (counters.get(*enter), counters.get(*again));
            if enter > 0 {
                writeln!(out, "{enter:>12} {:>12.1}  {name}", (enter + again) as f64 / enter as f64)?;
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let program = args.next().ok_or("usage: trips PROGRAM [ARGS...]")?;
    let mut trips = Trips::default();
    let (_, counters) = tool::run(&mut trips, program.as_ref(), &args.collect::<Vec<_>>())?;
    trips.report(&counters, &mut io::stderr())?;
    counters.left_alone().iter().for_each(|(name, why)| eprintln!("not counted: {name}: {why}"));
    Ok(())
}
