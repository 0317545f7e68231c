//! `lancet count --pid`.

use std::io::Write;

use lancet::live::{Found, Live};
use lancet::report::measure::live_counts;

use crate::count::LiveArgs;
use crate::output::Output;

pub fn run(args: &LiveArgs, output: &mut Output) -> anyhow::Result<()> {
    let mut live = Live::attach(args.pid)?;
    let functions: Result<Vec<Found>, _> = args.functions.iter().map(|function| live.function(function)).collect();
    for counts in live.count(&functions?, args.seconds, None)? {
        let report = live_counts(&live, &counts);
        match args.json {
            true => writeln!(output.out, "{}", serde_json::to_string(&report)?)?,
            false => report.write_text(&mut output.out, &output.text)?,
        }
    }
    Ok(())
}
