//! Runs a Blackfin program: `run [--operating] [--timing] PROGRAM [ARGUMENTS]`. Says how fast on standard error.

use lancet_blackfin_sim::{Config, End, Environment, Files, Simulator, TimingConfig};
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let mut option = |name: &str| match args.first() {
        Some(arg) if arg == name => !args.remove(0).is_empty(),
        _ => false,
    };
    let environment = if option("--operating") { Environment::Operating } else { Environment::Virtual };
    let timing = option("--timing").then(TimingConfig::default);
    let path = args.first().ok_or("usage: run [--operating] [--timing] PROGRAM [ARGUMENTS]")?;
    let file = std::fs::read(path)?;
    let args = args.iter().map(|arg| arg.clone().into_bytes()).collect();
    let mut host = Files::new(std::io::stdin(), BufWriter::new(std::io::stdout()), std::io::stderr());
    let started = Instant::now();
    let mut simulator = Simulator::load(&file, Config { environment, timing, args, ..Config::default() })?;
    let end = simulator.run(&mut host);
    host.output.flush()?;
    let (stats, seconds) = (simulator.stats(), started.elapsed().as_secs_f64());
    let rate = stats.instructions as f64 / seconds / 1e6;
    eprintln!("{stats:#?}\n{} instructions in {seconds:.3} s: {rate:.1} million a second", stats.instructions);
    Ok(match end? {
        End::Exited(status) => ExitCode::from(status as u8),
        End::Limit => ExitCode::from(124),
    })
}
