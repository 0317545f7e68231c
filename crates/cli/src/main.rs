//! The `lancet` command.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use lancet::{Image, Program, report};

#[derive(Parser)]
#[command(name = "lancet", version, about = "Measures and improves native programs after they were linked")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the functions of a file
    Functions {
        file: PathBuf,
        #[arg(long)]
        json: bool,
        /// Totals only
        #[arg(long)]
        summary: bool,
    },
    /// Show control-flow graphs
    Cfg {
        file: PathBuf,
        #[arg(long)]
        all: bool,
        #[arg(long)]
        json: bool,
    },
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lancet: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> Result<(), Box<dyn std::error::Error>> {
    let out = std::io::stdout();
    let mut out = std::io::BufWriter::new(out.lock());
    match args.command {
        Command::Functions { file, json, summary } => {
            let program = Program::analyse(Arc::new(Image::open(&file)?));
            if summary {
                let funcs = program.funcs();
                writeln!(out, "functions {}", funcs.len())?;
                writeln!(out, "complete {}", funcs.iter().filter(|f| f.is_complete()).count())?;
                writeln!(out, "blocks {}", funcs.iter().map(|f| f.blocks.len()).sum::<usize>())?;
                writeln!(out, "edges {}", funcs.iter().map(|f| f.edges.len()).sum::<usize>())?;
                writeln!(out, "loops {}", funcs.iter().map(|f| f.loops.len()).sum::<usize>())?;
                writeln!(out, "tables {}", funcs.iter().map(|f| f.tables.len()).sum::<usize>())?;
                writeln!(
                    out,
                    "instructions {}",
                    funcs.iter().flat_map(|f| f.blocks.iter()).map(|b| b.insns as usize).sum::<usize>()
                )?;
                return Ok(());
            }
            let list = report::functions::functions(&program);
            if json {
                serde_json::to_writer(&mut out, &list)?;
            } else {
                for f in &list.functions {
                    writeln!(
                        out,
                        "{:>10} {:>6} {:>5} {:>3} {:7} {:8} {} {}",
                        f.address,
                        f.size,
                        f.blocks,
                        f.loops,
                        f.found_by,
                        f.status,
                        f.name,
                        f.reason.as_deref().unwrap_or("")
                    )?;
                }
            }
        }
        Command::Cfg { file, json: _, all: _ } => {
            let program = Program::analyse(Arc::new(Image::open(&file)?));
            write!(out, "{{\"functions\":[")?;
            for (i, func) in program.funcs().iter().enumerate() {
                write!(out, "{}", if i == 0 { "\n" } else { ",\n" })?;
                serde_json::to_writer(&mut out, &report::cfg::cfg(&program, func))?;
            }
            writeln!(out, "\n]}}")?;
        }
    }
    Ok(())
}
