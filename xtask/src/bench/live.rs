//! `cargo xtask bench live`: what looking at and changing a running program costs, against peers.
//!
//! | what | bar |
//! | --- | --- |
//! | sampling at 999 and 10,000 a second, beside `perf record -g` | not above perf, and at most 2 % at 999 |
//! | longest stop for a replace with 1, 8 and 64 threads, of one instruction and of several, beside gdb | 1/500 of gdb's |
//! | calls through a replaced entry | 1.05 of native |
//! | a timed call (code at entry and exit), beside a uprobe | 1/20 of the uprobe |
//! | vecadd swapped from SSE2 to AVX2 | 1.8 times faster |
//! | calibrated IPC of kernels with a known one | within 3 % |
//! | attach, sample a second, report, on a large program, beside perf | not above perf, 300 MB |
//!
//! Costs of a sampled program are its own CPU time, minimum over rounds that run everything once. A busy machine makes
//! all of this worse than it is.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::measure;
use crate::shell;
use crate::torture::Shop;

#[derive(clap::Args)]
pub struct Options {
    /// How often to run everything; the minimum counts
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// For how many seconds to sample, as in the paper
    #[arg(long, value_delimiter = ',', default_value = "1,10,30")]
    seconds: Vec<u64>,
    /// Samples per second
    #[arg(long, value_delimiter = ',', default_value = "999,10000")]
    rates: Vec<u64>,
    /// Only these parts
    #[arg(long, value_enum, value_delimiter = ',', default_value = "ipc,vecadd,pauses,calls,report,sampling")]
    parts: Vec<Part>,
    /// Use this lancet instead of building one
    #[arg(long)]
    lancet: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Ipc,
    Vecadd,
    Pauses,
    Calls,
    Report,
    Sampling,
}

const MAX_OVERHEAD_AT_999: f64 = 0.02;
const MIN_GDB_OVER_PAUSE: f64 = 500.0;
const MAX_CALL_OVER_NATIVE: f64 = 1.05;
const MIN_UPROBE_OVER_TIMED: f64 = 20.0;
const MIN_VECADD_SPEED_UP: f64 = 1.8;
const MAX_IPC_ERROR: f64 = 0.03;
/// Runs of less than so many seconds are repeated more often.
const SHORT: u64 = 5;
const MAX_REPORT_MEMORY: u64 = 300 << 20;

/// Prints a line with a verdict, and remembers it.
struct Verdicts(bool);

impl Verdicts {
    fn tell(&mut self, good: bool, line: &str) {
        println!("{}  {line}", if good { "good" } else { "BAD " });
        self.0 &= good;
    }
}

/// Whether all bars were met.
pub fn run(options: &Options) -> Result<bool> {
    ensure!(options.rounds > 0, "--rounds must be at least 1");
    let lancet = options.lancet.clone().map_or_else(shell::build_lancet, Ok)?;
    let shop = Shop::new(lancet)?;
    let mut verdicts = Verdicts(true);
    for part in &options.parts {
        match part {
            Part::Ipc => ipc(&shop, options.rounds, &mut verdicts)?,
            Part::Vecadd => vecadd(&shop, &mut verdicts)?,
            Part::Pauses => pauses(&shop, &mut verdicts)?,
            Part::Calls => calls(&shop, options.rounds, &mut verdicts)?,
            Part::Report => first_report(&shop, options.rounds, &mut verdicts)?,
            Part::Sampling => {
                for seconds in &options.seconds {
                    sampling(&shop, options.rounds, *seconds, &options.rates, &mut verdicts)?;
                }
            }
        }
    }
    Ok(verdicts.0)
}

struct Running(Child);

impl Running {
    fn start(program: &Path, arguments: &[&str]) -> Result<Running> {
        let child = Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        std::thread::sleep(Duration::from_millis(300));
        Ok(Running(child))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Ends it, and returns what it printed.
    fn told(mut self) -> Result<String> {
        shell::run(Command::new("kill").arg(self.pid()))?;
        let mut text = String::new();
        self.0.stdout.take().context("a pipe")?.read_to_string(&mut text)?;
        self.0.wait()?;
        Ok(text)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn json(text: &str) -> Result<Value> {
    Ok(serde_json::from_str(text)?)
}

fn ipc(shop: &Shop, rounds: u32, verdicts: &mut Verdicts) -> Result<()> {
    let program = shop.compile("known.c", "known", &["-O2"])?;
    let running = Running::start(&program, &[])?;
    // By construction: instructions and cycles of a round of the loop.
    for (function, known) in [("known_low", 44.0 / 30.0), ("known_high", 72.0 / 30.0)] {
        for _ in 0..rounds {
            let measured = json(&shop.lancet(&["measure", "--pid", &running.pid(), function, "--json"])?)?;
            let ipc = measured["ipc"].as_f64().context("no IPC")?;
            let error = 100.0 * (ipc / known - 1.0);
            let by = measured["ipc_by"].as_str().unwrap_or_default();
            let line = format!("ipc ({by}) of {function}: {ipc:.3}, known {known:.3} ({error:+.1} %; bar 3 %)");
            verdicts.tell((ipc / known - 1.0).abs() <= MAX_IPC_ERROR, &line);
        }
    }
    Ok(())
}

fn vecadd(shop: &Shop, verdicts: &mut Verdicts) -> Result<()> {
    let program = shop.compile("vecadd-sse.c", "vecadd-sse", &["-O3", "-pthread"])?;
    let object = shop.compile("vecadd-avx.c", "vecadd-avx.o", &["-O3", "-mavx2", "-c"])?.display().to_string();
    let mut running = Running::start(&program, &["0"])?;
    let mut lines = BufReader::new(running.0.stdout.take().context("a pipe")?).lines();
    let mut fastest = |steps: usize| -> Result<f64> {
        let mut least = f64::MAX;
        for _ in 0..steps {
            let line = lines.next().context("it ended")??;
            let time = line.split(' ').nth(4).and_then(|time| time.parse().ok());
            least = least.min(time.with_context(|| line.clone())?);
        }
        Ok(least)
    };
    let before = fastest(30)?;
    shop.lancet(&["replace", "--pid", &running.pid(), "vecadd", "--with", &object])?;
    // Lines that were printed before the swap are still in the pipe.
    fastest(10)?;
    let after = fastest(60)?;
    let line = format!(
        "vecadd: {before:.1} ns a call before, {after:.1} after the swap ({:.2} times faster; bar 1.8)",
        before / after
    );
    verdicts.tell(before / after >= MIN_VECADD_SPEED_UP, &line);
    Ok(())
}

/// What a program tells after `change` was done to it.
struct Gaps {
    /// Microseconds.
    longest: f64,
    /// Nanoseconds of a call, at best and for some time at worst.
    call: f64,
    slowest_call: f64,
}

fn gaps(program: &Path, change: impl FnOnce(&str) -> Result<()>) -> Result<Gaps> {
    let running = Running::start(program, &[])?;
    change(&running.pid())?;
    std::thread::sleep(Duration::from_millis(200));
    let told = running.told()?;
    let numbers: Vec<f64> = told.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    let [longest, call, slowest_call] = numbers[..] else { bail!("it told {told}") };
    Ok(Gaps { longest, call, slowest_call })
}

fn pauses(shop: &Shop, verdicts: &mut Verdicts) -> Result<()> {
    let program = shop.compile("gaps.c", "gaps", &["-O2"])?;
    let native = gaps(&program, |_| Ok(()))?;
    let gdb = gaps(&program, |pid| attach_with_gdb(pid)?.wait().map(|_| ()).map_err(Into::into))?.longest;
    let object = shop.compile("small.c", "small.o", &["-O2", "-c"])?.display().to_string();
    let own = gaps(&program, |pid| shop.lancet(&["replace", "--pid", pid, "small", "--with", &object]).map(|_| ()))?;
    println!(
        "      longest gaps that a program sees: alone {:.0} µs, gdb (attach, call mmap, detach) {gdb:.0}, replace {:.0}",
        native.longest, own.longest
    );
    for tool in ["frida"].into_iter().filter(|tool| shell::find_program(tool).is_none()) {
        println!("      {tool}: not installed, not measured");
    }
    // A jump over one instruction, and over those that make a frame, as most functions begin.
    let kinds = [("one instruction", "torture", "-O2"), ("several", "framed", "-O0")];
    for threads in ["1", "8", "64"] {
        for (kind, name, flag) in kinds {
            let program = shop.compile("torture.c", name, &[flag, "-pthread"])?;
            let running = Running::start(&program, &["hot", threads])?;
            let pid = running.pid();
            // In turns: what slows one down for a while slows the other down, too.
            let (mut own, mut gdb) = (Vec::new(), Vec::new());
            for _ in 0..TURNS {
                gdb.push(stopped_by_gdb(&pid)?);
                for _ in 0..REPLACEMENTS_IN_TURN {
                    own.push(stopped_by_replace(shop, &pid, &object)?);
                }
            }
            let (own, gdb) = (Spread::of(own), Spread::of(gdb));
            let ratio = gdb.median / own.median;
            let line = format!(
                "replace with {threads} threads, jump over {kind}: stop of {own} µs, 1/{ratio:.0} of gdb's {gdb} µs (bar 1/500)"
            );
            verdicts.tell(ratio >= MIN_GDB_OVER_PAUSE, &line);
        }
    }
    Ok(())
}

/// So often gdb stops a process, and after each time Lancet does so often.
const TURNS: usize = 5;
const REPLACEMENTS_IN_TURN: usize = 5;

/// Of several measurements.
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        Spread { median: values[values.len() / 2], least: values[0], most: values[values.len() - 1] }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:.0} ({:.0} to {:.0})", self.median, self.least, self.most)
    }
}

/// Microseconds for which a replacement stopped a process. It is taken back.
fn stopped_by_replace(shop: &Shop, pid: &str, object: &str) -> Result<f64> {
    let done = json(&shop.lancet(&["replace", "--pid", pid, "small", "--with", object, "--json"])?)?;
    shop.lancet(&["undo", "--pid", pid])?;
    done["pause_microseconds"].as_f64().context("no pause")
}

fn attach_with_gdb(pid: &str) -> Result<Child> {
    let call = "call (void*)mmap(0, 4096, 3, 34, -1, 0)";
    let mut gdb = Command::new("gdb");
    gdb.args(["-p", pid, "-batch", "-nx", "-ex", call, "-ex", "detach"]).stdin(Stdio::null());
    Ok(gdb.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

/// Microseconds for which gdb has the first thread of a process stopped, seen from outside.
fn stopped_by_gdb(pid: &str) -> Result<f64> {
    let mut gdb = attach_with_gdb(pid)?;
    let (mut first, mut last) = (None, None);
    while gdb.try_wait()?.is_none() {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        if stat.contains(") t ") {
            last = Some(Instant::now());
            first = first.or(last);
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    let (first, last) = first.zip(last).context("gdb did not stop it")?;
    Ok((last - first).as_secs_f64() * 1e6)
}

fn calls(shop: &Shop, rounds: u32, verdicts: &mut Verdicts) -> Result<()> {
    let program = shop.compile("gaps.c", "gaps", &["-O2"])?;
    // The same instructions in another place, so that only the way there differs.
    let object = shop.compile("gaps.c", "gaps.o", &["-O2", "-c"])?.display().to_string() + ":small";
    let probes = shop.compile("uprobe.c", "uprobe", &["-O2"])?;
    let (mut native, mut replaced, mut timed, mut uprobe) = (f64::MAX, f64::MAX, f64::MAX, f64::MAX);
    for _ in 0..rounds {
        native = native.min(gaps(&program, |_| Ok(()))?.call);
        replaced = replaced.min(after_change(shop, &program, &["replace", "small", "--with", &object])?);
        let measure = |pid: &str| shop.lancet(&["measure", "--pid", pid, "small", "--calls", "65536"]).map(|_| ());
        timed = timed.min(gaps(&program, measure)?.slowest_call);
        let told = String::from_utf8(shell::output(&mut Command::new(&probes))?)?;
        let times: Vec<f64> = told.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let [alone, skipped, _] = times[..] else { bail!("uprobe told {told}") };
        ensure!(skipped > 0.0, "the kernel refuses a uprobe");
        uprobe = uprobe.min(skipped - alone);
    }
    let line = format!(
        "a call: {native:.3} ns native, {replaced:.3} through a replaced entry ({:.3}; bar 1.05)",
        replaced / native
    );
    verdicts.tell(replaced / native <= MAX_CALL_OVER_NATIVE, &line);
    let cost = timed - native;
    let line = format!("a timed call costs {cost:.1} ns, a uprobe {uprobe:.0} ns (1/{:.0}; bar 1/20)", uprobe / cost);
    verdicts.tell(uprobe / cost >= MIN_UPROBE_OVER_TIMED, &line);
    Ok(())
}

/// Nanoseconds of a call once the change is made.
fn after_change(shop: &Shop, program: &Path, words: &[&str]) -> Result<f64> {
    let told = gaps(program, |pid| {
        let mut arguments = vec![words[0], "--pid", pid];
        arguments.extend(&words[1..]);
        shop.lancet(&arguments)?;
        // What was before does not count.
        shell::run(Command::new("kill").args(["-USR1", pid]))
    })?;
    Ok(told.call)
}

fn first_report(shop: &Shop, rounds: u32, verdicts: &mut Verdicts) -> Result<()> {
    let script = "while True:\n for i in range(1000): str(i) * 3";
    let python = shell::find_program("python3").context("python3 is missing")?;
    let running = Running::start(&python, &["-c", script])?;
    let pid = running.pid();
    let (mut own, mut perf, mut memory) = (Duration::MAX, Duration::MAX, 0);
    for _ in 0..rounds {
        let cost = measure::cost_of(Command::new(&shop.lancet).args(["profile", "--pid", &pid, "--seconds", "1"]))?;
        own = own.min(cost.wall());
        memory = cost.peak_bytes.max(memory);
        let line =
            format!("cd $(mktemp -d) && perf record -q -g -p {pid} -o p.data sleep 1 && perf report --stdio -i p.data");
        perf = perf.min(measure::cost_of(Command::new("sh").args(["-c", &line]))?.wall());
    }
    let line =
        format!("first report of python3: {own:.2?} and {} MB, perf {perf:.2?} (bar: perf's, 300 MB)", memory >> 20);
    verdicts.tell(own <= perf && memory <= MAX_REPORT_MEMORY, &line);
    Ok(())
}

fn sampling(shop: &Shop, rounds: u32, seconds: u64, rates: &[u64], verdicts: &mut Verdicts) -> Result<()> {
    let program = shop.compile("chain.c", "chain", &["-O2"])?;
    // About half a second longer than it is sampled.
    let begin = Instant::now();
    shell::run(Command::new(&program).arg("2000"))?;
    let each = begin.elapsed().as_secs_f64() / 2000.0;
    let count = (((seconds as f64 + 0.5) / each) as u64).to_string();
    let time = seconds.to_string();
    for rate in rates {
        let rate = rate.to_string();
        let (mut native, mut own, mut perf) = (f64::MAX, f64::MAX, f64::MAX);
        // Short runs are the noisiest, and cost least.
        for _ in 0..rounds * if seconds < SHORT { 3 } else { 1 } {
            native = native.min(cpu_of(&program, &count, None)?);
            let mut lancet = Command::new(&shop.lancet);
            lancet.args(["profile", "--seconds", &time, "--freq", &rate, "--format", "folded", "--pid"]);
            own = own.min(cpu_of(&program, &count, Some(lancet))?);
            let mut record = Command::new("sh");
            let line = format!("exec perf record -q -g -F {rate} -o /dev/null -p $0 sleep {time}");
            record.args(["-c", &line]);
            perf = perf.min(cpu_of(&program, &count, Some(record))?);
        }
        let over = |cost: f64| cost / native - 1.0;
        let line = format!(
            "sampling {seconds} s at {rate}: {:+.2} % CPU time, perf record -g {:+.2} % (bar: perf's, and 2 % at 999)",
            100.0 * over(own),
            100.0 * over(perf)
        );
        // A part in two hundred is noise.
        let below_perf = own <= perf * 1.005;
        verdicts.tell(below_perf && (rate != "999" || over(own) <= MAX_OVERHEAD_AT_999), &line);
    }
    Ok(())
}

/// CPU seconds of the program itself, while `watcher` (given its number as the last argument) watches it.
fn cpu_of(program: &Path, count: &str, watcher: Option<Command>) -> Result<f64> {
    let mut child = Command::new(program).arg(count).spawn()?;
    let watching = match watcher {
        Some(mut watcher) => {
            Some(watcher.arg(child.id().to_string()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
        }
        None => None,
    };
    // Read while it is a zombie: the kernel still knows what it used.
    let stat = loop {
        let stat = std::fs::read_to_string(format!("/proc/{}/schedstat", child.id())).unwrap_or_default();
        let state = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
        if state.contains(") Z ") {
            break stat;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    child.wait()?;
    if let Some(mut watching) = watching {
        watching.wait()?;
    }
    let nanoseconds: f64 = stat.split(' ').next().and_then(|text| text.parse().ok()).context("no CPU time")?;
    Ok(nanoseconds * 1e-9)
}
