//! `cargo xtask <command>`: the project's own chores, so that they need nothing but cargo.
//!
//! Each command is one module. What goes wrong becomes one line on stderr here; a command that has said enough by
//! itself only returns its exit status.
#![forbid(unsafe_code)]

mod accuracy;
mod bench;
mod callgrind;
mod exact;
mod fuzz;
mod measure;
mod packages;
mod shell;
mod sweep;
mod test;
mod tidy;
mod torture;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Lancet's own chores")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check the house rules; one line for each violation
    Tidy,
    /// Install what the tests need where it is missing, then check style and rules, build, and run all tests
    Test,
    /// Build the corpus, analyse it stripped, and judge the result by the unstripped twins
    Accuracy(accuracy::Options),
    /// Measure what analysis costs, against peers
    Bench(bench::Options),
    /// Change programs while they run, again and again, and see that nothing breaks
    Torture(torture::Options),
    /// Fuzz the image reader and the analysis
    Fuzz(fuzz::Options),
    /// Compare the counts of the benchmark's programs with callgrind's, instruction by instruction
    Exact(exact::Options),
    /// Rewrite every program of /usr/bin with full counting, and compare what it does with the original
    Sweep(sweep::Options),
    /// All of CI: the same as test
    Ci,
    /// Run one program and print its cost as JSON
    #[command(hide = true)]
    Measure(measure::Options),
}

fn main() -> ExitCode {
    let args = Args::parse();
    let result = match args.command {
        Command::Tidy => tidy::run().map(|()| ExitCode::SUCCESS),
        Command::Test => test::run(),
        Command::Accuracy(options) => accuracy::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Torture(options) => torture::run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Exact(options) => exact::run(&options),
        Command::Sweep(options) => sweep::run(&options),
        Command::Measure(options) => measure::run(&options),
        Command::Ci => test::run(),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
