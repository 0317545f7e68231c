//! `cargo xtask torture live`: change programs while they run, again and again, and see that nothing breaks.
//!
//! - replace and undo, and count and revert, on eight threads that call a function of a few nanoseconds, and on a process
//!   that forks, makes threads and takes signals all the time, and on one that is mostly in the handler of a signal and
//!   goes on in the function, whose jump covers several instructions;
//! - count and measure where exceptions pass through all the time;
//! - Lancet killed at random moments of a replace or an undo;
//! - redis-server under redis-benchmark, with every live command in turn.
//!
//! A target is harmed if it dies, says `wrong`, or does not end by itself when it is asked to.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::shell;

#[derive(clap::Args)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Programs that run
    Live {
        /// How many times to replace and undo, and to count and revert, on each program
        #[arg(long, default_value_t = 1000)]
        cycles: u32,
        /// How many times to kill Lancet
        #[arg(long, default_value_t = 200)]
        kills: u32,
        /// For how many seconds to bother redis-server; 0 leaves it out
        #[arg(long, default_value_t = 20)]
        redis: u64,
        /// Only these parts
        #[arg(long, value_enum, value_delimiter = ',', default_value = "replace,count,kill,throw,redis")]
        parts: Vec<Part>,
        /// Only this program, hot, churn or signals
        #[arg(long)]
        program: Option<String>,
        /// Use this lancet instead of building one
        #[arg(long)]
        lancet: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Replace,
    Count,
    Kill,
    Throw,
    Redis,
}

const SIGNALS: &str = "signals";

pub fn run(options: &Options) -> Result<ExitCode> {
    let What::Live { cycles, kills, redis, parts, program, lancet } = &options.what;
    let lancet = lancet.clone().map_or_else(shell::build_lancet, Ok)?;
    let shop = Shop::new(lancet)?;
    for arguments in [&["hot", "8"][..], &["churn"], &[SIGNALS]] {
        if program.as_deref().is_some_and(|program| program != arguments[0]) {
            continue;
        }
        if parts.contains(&Part::Replace) {
            shop.replace_cycles(arguments, *cycles)?;
        }
        if parts.contains(&Part::Count) {
            shop.count_cycles(arguments, *cycles)?;
        }
        if parts.contains(&Part::Kill) {
            shop.kills(arguments, *kills)?;
        }
    }
    if parts.contains(&Part::Throw) {
        shop.throw_cycles(*cycles / 10)?;
    }
    if *redis > 0 && parts.contains(&Part::Redis) {
        shop.redis(Duration::from_secs(*redis))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the programs are built.
pub struct Shop {
    pub lancet: PathBuf,
    folder: PathBuf,
}

impl Shop {
    pub fn new(lancet: PathBuf) -> Result<Shop> {
        let folder = shell::target_dir()?.join("live");
        std::fs::create_dir_all(&folder)?;
        Ok(Shop { lancet, folder })
    }

    /// Compiles a source of `testdata/x86_64/live`.
    pub fn compile(&self, source: &str, name: &str, flags: &[&str]) -> Result<PathBuf> {
        let (source, out) = (shell::root()?.join("testdata/x86_64/live").join(source), self.folder.join(name));
        shell::run(Command::new("gcc").arg(source).arg("-o").arg(&out).args(flags))?;
        Ok(out)
    }

    /// Runs the command; what it printed.
    pub fn lancet(&self, arguments: &[&str]) -> Result<String> {
        let output = shell::output(Command::new(&self.lancet).args(arguments))?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }

    fn target(&self, arguments: &[&str]) -> Result<(Target, PathBuf)> {
        // Without optimization functions begin with several short instructions.
        let (name, level) = if arguments == [SIGNALS] { ("framed", "-O0") } else { ("torture", "-O2") };
        let program = self.compile("torture.c", name, &[level, "-pthread"])?;
        let object = self.compile("small.c", "small.o", &["-O2", "-c"])?;
        Ok((Target::nice(&program, arguments)?, object))
    }

    fn replace_cycles(&self, arguments: &[&str], cycles: u32) -> Result<()> {
        let (mut target, object) = self.target(arguments)?;
        let (pid, object) = (target.pid(), object.display().to_string());
        let mut pauses = Vec::new();
        for cycle in 0..cycles {
            let how = if cycle % 2 == 0 { "entry" } else { "call-sites" };
            let done = self.lancet(&["replace", "--pid", &pid, "small", "--with", &object, "--how", how, "--json"])?;
            let done: serde_json::Value = serde_json::from_str(&done)?;
            pauses.push(done["pause_microseconds"].as_f64().unwrap_or(0.0));
            self.lancet(&["undo", "--pid", &pid])?;
            target.check()?;
        }
        let regions = self.leaks(&pid)?;
        pauses.sort_by(f64::total_cmp);
        let calls = target.finish()?;
        println!(
            "{}: {cycles} replace/undo, {calls} calls right, {regions} mappings, pauses {:.0} µs median, {:.0} most",
            arguments.join(" "),
            pauses.get(pauses.len() / 2).copied().unwrap_or(0.0),
            pauses.last().copied().unwrap_or(0.0)
        );
        Ok(())
    }

    fn count_cycles(&self, arguments: &[&str], cycles: u32) -> Result<()> {
        let (mut target, _) = self.target(arguments)?;
        let pid = target.pid();
        for _ in 0..cycles {
            self.lancet(&["count", "--pid", &pid, "small", "--seconds", "0.005", "--json"])?;
            target.check()?;
        }
        let regions = self.leaks(&pid)?;
        let calls = target.finish()?;
        println!("{}: {cycles} count/revert, {calls} calls right, {regions} mappings", arguments.join(" "));
        Ok(())
    }

    /// Each cycle counts and measures every function that exceptions come from, pass through, or end in.
    fn throw_cycles(&self, cycles: u32) -> Result<()> {
        let program = self.compile("throws.cpp", "throws", &["-O2", "-pthread", "-lstdc++"])?;
        let mut target = Target::nice(&program, &["8"])?;
        let pid = target.pid();
        for _ in 0..cycles {
            for function in ["outer", "middle", "indirect", "leaf"] {
                self.lancet(&["count", "--pid", &pid, function, "--seconds", "0.005", "--json"])?;
                self.lancet(&["measure", "--pid", &pid, function, "--calls", "20", "--seconds", "0.1"])
                    .or_else(not_called)?;
                target.check()?;
            }
        }
        let calls = target.finish()?;
        println!("throws 8: {cycles} times every function counted and measured, {calls} calls right");
        Ok(())
    }

    fn kills(&self, arguments: &[&str], kills: u32) -> Result<()> {
        let (mut target, object) = self.target(arguments)?;
        let (pid, object) = (target.pid(), object.display().to_string());
        let replace = ["replace", "--pid", &pid, "small", "--with", &object];
        // How long a whole run takes, so that kills fall everywhere in it.
        let begin = Instant::now();
        self.lancet(&replace)?;
        let whole = begin.elapsed();
        self.lancet(&["undo", "--pid", &pid])?;
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..kills {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let moment = whole.mul_f64(1.2 * (random >> 40) as f64 / (1 << 24) as f64);
            let mut lancet =
                Command::new(&self.lancet).args(replace).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
            std::thread::sleep(moment);
            let _ = lancet.kill();
            lancet.wait()?;
            target.check()?;
            self.lancet(&["undo", "--pid", &pid]).context("after a kill")?;
            let status: serde_json::Value = serde_json::from_str(&self.lancet(&["status", "--pid", &pid, "--json"])?)?;
            ensure!(status["patches"].as_array().is_some_and(Vec::is_empty), "undo left something behind");
            let known = status["regions"].as_array().map_or(0, Vec::len);
            let regions = self.leaks(&pid)?;
            ensure!(regions <= 2 * known, "{regions} mappings, but status knows of {known}");
        }
        let regions = self.regions(&pid)?;
        let calls = target.finish()?;
        println!(
            "{}: lancet killed {kills} times, {calls} calls right, {regions} mappings, all changes taken back",
            arguments.join(" ")
        );
        Ok(())
    }

    /// How many mappings are Lancet's; fails if there are more than the cache has, or open files.
    fn leaks(&self, pid: &str) -> Result<usize> {
        let regions = self.regions(pid)?;
        ensure!(regions <= 2, "mappings leak: {regions}");
        for file in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
            let leads_to = std::fs::read_link(file?.path()).unwrap_or_default();
            ensure!(!leads_to.to_string_lossy().contains("lancet"), "an open file leaks");
        }
        Ok(regions)
    }

    /// Lines of the maps that are Lancet's.
    fn regions(&self, pid: &str) -> Result<usize> {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
        Ok(maps.lines().filter(|line| line.contains("memfd:lancet")).count())
    }

    fn redis(&self, time: Duration) -> Result<()> {
        for program in ["redis-server", "redis-benchmark"] {
            ensure!(shell::find_program(program).is_some(), "{program} is missing: install Debian's redis");
        }
        // Its callers know which registers it leaves alone, and Lancet refuses code that does not.
        let kept = ["rcx", "rsi", "rdi", "r8", "r9", "r10", "r11"].map(|register| format!("-fcall-saved-{register}"));
        let flags: Vec<&str> = ["-O2", "-c"].into_iter().chain(kept.iter().map(String::as_str)).collect();
        let object = self.compile("digits10.c", "digits10.o", &flags)?.display().to_string();
        let port = (20000 + std::process::id() % 20000).to_string();
        let mut server = Command::new("redis-server");
        server.args(["--port", &port, "--save", "", "--appendonly", "no"]).current_dir(&self.folder);
        let mut server = Target::start(&mut server)?;
        std::thread::sleep(Duration::from_millis(500));
        let pid = server.pid();
        let until = Instant::now() + time;
        let (mut rounds, mut benchmarks) = (0, 0);
        while Instant::now() < until {
            let mut benchmark = Command::new("redis-benchmark")
                .args(["-p", &port, "-t", "set,get,incr", "-n", "100000", "-c", "20", "-q"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()?;
            while benchmark.try_wait()?.is_none() {
                self.lancet(&["profile", "--pid", &pid, "--seconds", "0.2"])?;
                self.lancet(&["measure", "--pid", &pid, "digits10", "--calls", "10", "--seconds", "0.2"])
                    .or_else(not_called)?;
                self.lancet(&["count", "--pid", &pid, "digits10", "--seconds", "0.1"])?;
                self.lancet(&["replace", "--pid", &pid, "digits10", "--with", &object])?;
                self.lancet(&["undo", "--pid", &pid])?;
                rounds += 1;
            }
            let output = benchmark.wait_with_output()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            let answered = text.matches("requests per second").count();
            let failed = !output.status.success() || answered < 3 || text.contains("Error");
            ensure!(!failed, "redis-benchmark failed: {text}");
            server.check()?;
            benchmarks += 1;
        }
        println!(
            "redis-server: {benchmarks} benchmarks of 300000 requests, {rounds} rounds of every command, 0 failed"
        );
        Ok(())
    }
}

/// A function that is not called in a moment is no harm.
fn not_called(error: anyhow::Error) -> Result<String> {
    if error.to_string().contains("was not called") { Ok(String::new()) } else { Err(error) }
}

/// A program that runs; it is killed if it does not end by itself.
pub struct Target {
    child: Child,
}

impl Target {
    /// Threads without end leave Lancet a core when it wants one, and take all others.
    fn nice(program: &Path, arguments: &[&str]) -> Result<Target> {
        Target::start(Command::new("nice").args(["-n", "19"]).arg(program).args(arguments))
    }

    pub fn start(command: &mut Command) -> Result<Target> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        std::thread::sleep(Duration::from_millis(200));
        Ok(Target { child })
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("the target has ended: {status}"),
            None => Ok(()),
        }
    }

    /// Asks it to end, and returns how many calls were right.
    fn finish(mut self) -> Result<u64> {
        self.check()?;
        shell::run(Command::new("kill").arg(self.pid()))?;
        let mut text = String::new();
        if let Some(mut out) = self.child.stdout.take() {
            out.read_to_string(&mut text)?;
        }
        let status = self.child.wait()?;
        let calls = text.trim().strip_prefix("right ").and_then(|calls| calls.parse().ok());
        calls.filter(|_| status.success()).with_context(|| format!("the target was harmed: {status}, {text}"))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
