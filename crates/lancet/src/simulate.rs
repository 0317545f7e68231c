//! Running a Blackfin program on the simulator: files of this machine, a trace, and errors that name the program.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use lancet_blackfin_sim::{Config, End, Environment, Files, SimError, Simulator, Stats, Step, TimingConfig, Tracer};
use lancet_isa::blackfin::{Disassembler, encode_insn};

use crate::Error;

#[derive(Clone, Debug)]
pub struct Options {
    pub environment: Environment,
    /// Model caches, memory latency and clock.
    pub timing: bool,
    /// Write a line for every instruction to this file.
    pub trace: Option<PathBuf>,
    /// Stop after so many instructions.
    pub limit: Option<u64>,
    /// The arguments of the program, without its name.
    pub args: Vec<Vec<u8>>,
}

/// A run that came to its end.
pub struct Ran {
    /// The machine as the program left it.
    pub simulator: Simulator,
    /// The exit status that the program gave.
    pub status: i32,
    pub stats: Stats,
}

/// Runs `program`. What it writes goes to `output` and `errors`, what it reads comes from `input`.
pub fn run(
    program: &Path,
    options: &Options,
    input: impl Read,
    output: impl Write,
    errors: impl Write,
) -> Result<Ran, Error> {
    let name = || program.display().to_string();
    let file = std::fs::read(program).map_err(|cause| Error::File { path: name(), cause })?;
    let failed = |cause: SimError| Error::Simulation { program: name(), cause };
    let config = Config {
        environment: options.environment,
        timing: options.timing.then(TimingConfig::default),
        args: std::iter::once(name().into_bytes()).chain(options.args.iter().cloned()).collect(),
        limit: options.limit.unwrap_or(u64::MAX),
        ..Config::default()
    };
    let mut simulator = Simulator::load(&file, config).map_err(failed)?;
    let mut host = Files::new(input, BufWriter::new(output), errors);
    let end = match &options.trace {
        None => simulator.run(&mut host),
        Some(path) => {
            let untraced = |cause| Error::File { path: path.display().to_string(), cause };
            let mut trace = TraceFile::new(BufWriter::new(File::create(path).map_err(untraced)?));
            let end = simulator.run_traced(&mut host, &mut trace);
            trace.finish().map_err(untraced)?;
            end
        }
    };
    host.output.flush().map_err(|cause| Error::File { path: "standard output".to_owned(), cause })?;
    match end.map_err(failed)? {
        End::Exited(status) => {
            let stats = simulator.stats();
            Ok(Ran { simulator, status, stats })
        }
        End::Limit => Err(Error::SimulationLimit { program: name(), limit: options.limit.unwrap_or(u64::MAX) }),
    }
}

/// A line for every instruction: its address, its text, and the registers that it changed.
pub struct TraceFile<W> {
    out: W,
    /// Nothing is written behind an error.
    failed: io::Result<()>,
}

impl<W: Write> TraceFile<W> {
    pub fn new(out: W) -> TraceFile<W> {
        TraceFile { out, failed: Ok(()) }
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.failed?;
        self.out.flush()
    }

    fn line(&mut self, step: &Step<'_>) -> io::Result<()> {
        // Registers that were loaded earlier say nothing here: the run knows their values.
        let text = encode_insn(step.insn)
            .ok()
            .and_then(|code| Disassembler::new().line(&code, step.insn.at, &|_| None).ok().map(|line| line.text));
        write!(self.out, "{:08x}  {:<40}", step.insn.at, text.as_deref().unwrap_or("?"))?;
        for (name, value) in step.changes() {
            write!(self.out, " {name}={value:x}")?;
        }
        writeln!(self.out)
    }
}

impl<W: Write> Tracer for TraceFile<W> {
    fn step(&mut self, step: &Step<'_>) {
        if self.failed.is_ok() {
            self.failed = self.line(step);
        }
    }
}
