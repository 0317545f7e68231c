//! Runs a Blackfin program: `run [--operating] PROGRAM [ARGUMENTS]`. Says how fast on standard error.

use lancet_blackfin_sim::{Config, End, Environment, Files, Simulator};
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let operating = args.first().is_some_and(|arg| arg == "--operating");
    if operating {
        args.remove(0);
    }
    let environment = if operating { Environment::Operating } else { Environment::Virtual };
    let Some(path) = args.first() else {
        eprintln!("usage: run [--operating] PROGRAM [ARGUMENTS]");
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
        Simulator::load(&file, Config { environment, args, ..Config::default() }).and_then(|mut simulator| {
            let end = simulator.run(&mut host)?;
            Ok((end, simulator))
        });
    let _ = host.output.flush();
    match outcome {
        Ok((end, simulator)) => {
            let seconds = started.elapsed().as_secs_f64();
            let instructions = simulator.instructions();
            eprintln!(
                "{instructions} instructions, {} cycles in {seconds:.3} s: {:.1} million instructions a second",
                simulator.cycles(),
                instructions as f64 / seconds / 1e6
            );
            if std::env::var_os("DUMP").is_some() {
                eprintln!("{}", simulator.registers());
            }
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
