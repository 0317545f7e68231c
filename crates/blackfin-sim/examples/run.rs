//! Runs a Blackfin program: `run [--operating] [--timing] PROGRAM [ARGUMENTS]`. Says how fast on standard error.

use lancet_blackfin_sim::{Config, End, Environment, Files, Simulator, TimingConfig};
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let mut option = |name: &str| {
        let given = args.first().is_some_and(|arg| arg == name);
        if given {
            args.remove(0);
        }
        given
    };
    let environment = if option("--operating") { Environment::Operating } else { Environment::Virtual };
    let timing = option("--timing").then(TimingConfig::default);
    let Some(path) = args.first() else {
        eprintln!("usage: run [--operating] [--timing] PROGRAM [ARGUMENTS]");
        return ExitCode::from(64);
    };
    let file = match std::fs::read(path) {
        Ok(file) => file,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::from(66);
        }
    };
    let args = args.iter().map(|arg| arg.clone().into_bytes()).collect();
    let mut host = Files::new(std::io::stdin(), BufWriter::new(std::io::stdout()), std::io::stderr());
    let started = Instant::now();
    let outcome =
        Simulator::load(&file, Config { environment, timing, args, ..Config::default() }).and_then(|mut simulator| {
            let end = simulator.run(&mut host)?;
            Ok((end, simulator))
        });
    let _ = host.output.flush();
    match outcome {
        Ok((end, mut simulator)) => {
            let seconds = started.elapsed().as_secs_f64();
            let stats = simulator.stats();
            eprintln!("{stats:#?}");
            let rate = stats.instructions as f64 / seconds / 1e6;
            eprintln!("{} instructions in {seconds:.3} s: {rate:.1} million a second", stats.instructions);
            match end {
                End::Exited(status) => ExitCode::from(status as u8),
                End::Limit => ExitCode::from(124),
            }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(70)
        }
    }
}
