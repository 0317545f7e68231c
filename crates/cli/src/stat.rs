//! `lancet stat`.

use std::io::Write;
use std::time::{Duration, Instant};

use lancet::collect::{Counting, EventName, Scope};
use lancet::report::stat::{Interval, counted};

use crate::output::Output;
use crate::profile::seconds;
use crate::sampling::{ScopeArgs, name_of};

/// Count events of a process, a CPU or the system
#[derive(clap::Args)]
#[command(override_usage = "lancet stat [OPTIONS] <--pid PID | --cpu N | --system>", after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Events to count, as `perf list` names them, or rNNN
    #[arg(
        long,
        value_name = "EVENT",
        value_delimiter = ',',
        default_value = "task-clock,context-switches,cpu-migrations,page-faults"
    )]
    event: Vec<String>,
    /// Count for so long
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    seconds: Duration,
    /// Tell the counts of each interval of so many seconds, instead of all at the end
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    interval: Option<Duration>,
    /// Write JSON, a line for each interval
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  lancet stat --pid 1234
  lancet stat --pid 1234 --event instructions,cycles --interval 1 --seconds 10
  lancet stat --system --event context-switches,page-faults --json";

pub fn run(args: Args, output: &mut Output) -> anyhow::Result<()> {
    let scope = args.scope.scope_or_misuse("stat")?;
    let events: Result<Vec<EventName>, _> = args.event.iter().map(|name| EventName::parse(name)).collect();
    let counting = Counting::start(scope, &events.map_err(lancet::Error::from)?).map_err(lancet::Error::from)?;
    let begin = Instant::now();
    let mut last = (begin, counting.read().map_err(lancet::Error::from)?);
    let interval = args.interval.unwrap_or(args.seconds).max(Duration::from_millis(1));
    loop {
        let left = args.seconds.saturating_sub(begin.elapsed());
        std::thread::sleep(interval.min(left));
        let now = (Instant::now(), counting.read().map_err(lancet::Error::from)?);
        let of_interval: Interval = counted(begin, (last.0, &last.1), (now.0, &now.1));
        match args.json {
            true => writeln!(output.out, "{}", of_interval.json(&name_of(scope))?)?,
            false => of_interval.write_text(&mut output.out, &output.text)?,
        }
        output.out.flush()?;
        let is_over = matches!(scope, Scope::Process(pid) if !std::path::Path::new(&format!("/proc/{pid}")).exists());
        if begin.elapsed() >= args.seconds || is_over {
            return Ok(());
        }
        last = now;
    }
}
