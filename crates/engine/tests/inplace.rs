//! Editing Blackfin programs in place: what is added counts right, and the program does not notice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lancet_blackfin_sim::{Captured, Config, End, Simulator, Step};
use lancet_engine::image::Image;
use lancet_engine::layout::inplace::{
    Deed, Edited, Environment, Order, Payload, Place, PlacedPayload, Tactic, Tactics, edit,
};
use lancet_engine::program::{EdgeKind, Program};
use lancet_engine::sink::elf_writer;
use lancet_isa::blackfin::{Assembler, EncodeError, Op, ReturnFrom};
use rayon::prelude::*;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/blackfin")
}

fn program(name: &str) -> Program {
    Program::analyse(Arc::new(Image::open(&folder().join("elf").join(name)).unwrap()))
}

/// An analysis that does nothing.
struct Nothing;

impl Payload for Nothing {
    fn data_bytes(&self) -> u32 {
        0
    }

    fn place(&self, code_at: u32, _: u32) -> Result<PlacedPayload, EncodeError> {
        let mut out = Assembler::new(code_at);
        out.op(Op::Return(ReturnFrom::Subroutine))?;
        Ok(PlacedPayload { code: out.finish(), routines: vec![code_at], data: Vec::new() })
    }
}

/// All instructions that control reaches, by address.
fn instructions(program: &Program) -> Vec<u32> {
    let mut all: Vec<u32> = program
        .funcs()
        .iter()
        .flat_map(|func| func.blocks.iter().flat_map(|block| program.insns(block)))
        .map(|insn| insn.at.0 as u32)
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn environment(name: &str) -> Environment {
    if name.contains(".op.") { Environment::Operating } else { Environment::Virtual }
}

fn config(name: &str) -> Config {
    let environment = match environment(name) {
        Environment::Virtual => lancet_blackfin_sim::Environment::Virtual,
        Environment::Operating => lancet_blackfin_sim::Environment::Operating,
    };
    Config { environment, limit: 3_000_000_000, sdram: SDRAM_BYTES, ..Config::default() }
}

fn edited(program: &Program, name: &str, points: &[(Place, Deed)], tactics: Tactics) -> (Edited, Vec<u8>) {
    let counters = points.len() as u32;
    let order = Order { points, counters, environment: environment(name), tactics, ..Order::new(&Nothing) };
    let edited = edit(program, &order).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (file, _) =
        elf_writer::write_to_vec(program.image(), &edited.patch).unwrap_or_else(|error| panic!("{name}: {error}"));
    if let Some(keep) = std::env::var_os("LANCET_KEEP_EDITED") {
        std::fs::write(Path::new(&keep).join(name), &file).unwrap();
    }
    (edited, file)
}

/// What a run leaves: output, registers, and the memory of the program.
struct Ran {
    output: String,
    simulator: Simulator,
}

fn run(name: &str, file: &[u8]) -> Ran {
    let mut simulator = Simulator::load(file, config(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut host = Captured::default();
    match simulator.run(&mut host) {
        Ok(End::Exited(0)) => Ran { output: host.text(), simulator },
        Ok(end) => panic!("{name}: {end:?}\n{}", host.text()),
        Err(error) => panic!("{name}: {error}\n{}", host.text()),
    }
}

/// Little memory is compared fast. What is added stands below the stacks.
const SDRAM_BYTES: u32 = 32 << 20;
const STACKS: u32 = 16 << 20;

/// Compares everything but the text, which was edited, and the memory that was added.
fn assert_same(name: &str, program: &Program, edited: &Ran, original: &Ran) {
    assert_eq!(edited.output, original.output, "{name}");
    let (mut a, mut b) = (edited.simulator.registers().clone(), original.simulator.registers().clone());
    // The tactics' own registers, and where the last instruction stood.
    for state in [&mut a, &mut b] {
        (state.reti, state.rete, state.retx, state.pc) = (0, 0, 0, 0);
    }
    assert_eq!(a, b, "{name}: registers differ");
    let data = program.image().segments().iter().filter(|segment| segment.writable);
    let data = data.map(|segment| (segment.svma.0 as u32, segment.mem_size as usize));
    let stacks = [(STACKS, (SDRAM_BYTES - STACKS) as usize)];
    for (at, len) in data.chain(stacks) {
        let (a, b) = (edited.simulator.memory(at, len).unwrap(), original.simulator.memory(at, len).unwrap());
        if a != b {
            let offset = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(a.len());
            panic!("{name}: memory differs at {:#x}", at + offset as u32);
        }
    }
}

/// How often each instruction runs.
fn trace(name: &str, file: &[u8]) -> BTreeMap<u32, u64> {
    let mut simulator = Simulator::load(file, config(name)).unwrap();
    let mut counts = BTreeMap::new();
    let mut count = |step: &Step<'_>| *counts.entry(step.insn.at).or_insert(0) += 1;
    simulator.run_traced(&mut Captured::default(), &mut count).unwrap();
    counts
}

fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder().join("elf")).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn all_points(program: &Program, deed: impl Fn(u32) -> Deed) -> Vec<(Place, Deed)> {
    instructions(program).into_iter().enumerate().map(|(i, at)| (Place::Before(at), deed(i as u32))).collect()
}

/// Instruments every instruction with a call of nothing; returns how many were served by each tactic, and refused.
fn transparent(name: &str, tactics: Tactics, choose: impl Fn(u32) -> bool) -> [usize; 3] {
    let program = program(name);
    let original = std::fs::read(folder().join("elf").join(name)).unwrap();
    let mut points = all_points(&program, |_| Deed::Call { routine: 0, argument: 0 });
    points.retain(|(place, _)| choose(place.at()));
    let (edited, file) = edited(&program, name, &points, tactics);
    assert_eq!(edited.placed.len() + edited.refused.len(), points.len(), "{name}: every point has an answer");
    assert_same(name, &program, &run(name, &file), &run(name, &original));
    let by = |tactic| edited.placed.iter().filter(|placed| placed.tactic == tactic).count();
    [by(Tactic::Jump), by(Tactic::Trap), edited.refused.len()]
}

#[test]
fn no_fixture_notices_that_all_of_it_is_instrumented() {
    let done = names().into_par_iter().map(|name| {
        let done = transparent(&name, Tactics::Cheapest, |_| true);
        println!("{name}: {done:?}");
        done
    });
    let sum = done.reduce(|| [0; 3], |a, b| std::array::from_fn(|i| a[i] + b[i]));
    println!("jumps, traps, refused: {sum:?}");
    assert!(sum[0] + sum[1] > 20 * sum[2], "more than a twentieth is refused: {sum:?}");
}

#[test]
fn traps_alone_are_as_transparent() {
    names().into_par_iter().filter(|name| name.contains(".op.")).for_each(|name| {
        let done = transparent(&name, Tactics::TrapsOnly, |_| true);
        println!("{name}: {done:?}");
    });
}

#[test]
fn half_of_the_points_chosen_at_random() {
    for (seed, name) in ["crc.O2.elf", "jpeg.O3.elf", "qsort.op.elf", "dsp.op.elf", "vm.O0.elf"].into_iter().enumerate()
    {
        for tactics in [Tactics::Cheapest, Tactics::TrapsOnly] {
            let random = |at: u32| (at ^ seed as u32).wrapping_mul(0x9E37_79B9) >> 31 == 0;
            transparent(name, tactics, random);
        }
    }
}

#[test]
fn counts_are_those_of_a_trace() {
    for name in ["fib.O2.elf", "crc.op.elf", "dsp.asm.elf", "dsp.op.elf", "sjlj.O3.elf", "huffman.op.elf"] {
        for tactics in [Tactics::Cheapest, Tactics::TrapsOnly] {
            let program = program(name);
            let original = std::fs::read(folder().join("elf").join(name)).unwrap();
            let points = all_points(&program, Deed::Count);
            let (edited, file) = edited(&program, name, &points, tactics);
            let ran = run(name, &file);
            let traced = trace(name, &original);
            let mut compared = 0u64;
            for (i, (place, _)) in points.iter().enumerate() {
                if edited.refused.iter().any(|(refused, _)| refused == place) {
                    continue;
                }
                let at = edited.counters_at + 8 * i as u32;
                let bytes = ran.simulator.memory(at, 8).unwrap();
                let count = u64::from_le_bytes(bytes.try_into().unwrap());
                // The instruction that ends the program does not complete.
                let wanted = traced.get(&place.at()).copied().unwrap_or(0);
                let ends = count == wanted + 1
                    && program
                        .image()
                        .bytes(lancet_isa::Svma(place.at().into()), 2)
                        .is_some_and(|bytes| matches!(bytes, [0xa0, 0x00] | [0xc4, 0xf8] | [0xc3, 0xf8]));
                assert!(count == wanted || ends, "{name} {tactics:?} {:#x}: {count}, traced {wanted}", place.at());
                compared += count;
            }
            println!("{name} {tactics:?}: {compared} executions, {} refused", edited.refused.len());
        }
    }
}

#[test]
fn loops_are_counted_where_they_go_round_and_where_they_end() {
    for name in ["crc.op.elf", "dsp.op.elf", "fir.op.elf", "jpeg.O3.elf"] {
        let program = program(name);
        let original = std::fs::read(folder().join("elf").join(name)).unwrap();
        let mut pairs: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let mut last = 0;
        let mut see = |step: &Step<'_>| {
            *pairs.entry((std::mem::replace(&mut last, step.insn.at), step.insn.at)).or_default() += 1;
        };
        Simulator::load(&original, config(name)).unwrap().run_traced(&mut Captured::default(), &mut see).unwrap();
        let (mut points, mut ways) = (Vec::new(), Vec::new());
        for func in program.funcs() {
            for edge in &func.edges {
                let closes = func.successors(edge.from).iter().any(|edge| edge.kind == EdgeKind::Repeat);
                let Some(bottom) = program.insns(func.block(edge.from)).last().filter(|_| closes).copied() else {
                    continue;
                };
                let (bottom, to) = (bottom.at.0 as u32, func.block(edge.to).start.0 as u32);
                let place =
                    if edge.kind == EdgeKind::Repeat { Place::Again { bottom, top: to } } else { Place::Done(bottom) };
                points.push((place, Deed::Count(points.len() as u32)));
                ways.push((bottom, to));
            }
        }
        for tactics in [Tactics::Cheapest, Tactics::TrapsOnly, Tactics::JumpsOnly] {
            let (edited, file) = edited(&program, name, &points, tactics);
            let ran = run(name, &file);
            assert_same(name, &program, &ran, &run(name, &original));
            let mut compared = 0;
            for (i, ((place, _), way)) in points.iter().zip(&ways).enumerate() {
                if edited.placed.iter().any(|placed| placed.place == *place) {
                    let bytes = ran.simulator.memory(edited.counters_at + 8 * i as u32, 8).unwrap();
                    let count = u64::from_le_bytes(bytes.try_into().unwrap());
                    let wanted = pairs.get(way).copied().unwrap_or(0);
                    assert_eq!(count, wanted, "{name} {tactics:?} {place:?}");
                    compared += count;
                }
            }
            println!("{name} {tactics:?}: {compared} passages, {} refused: {:?}", edited.refused.len(), edited.refused);
            let none = tactics == Tactics::TrapsOnly && environment(name) == Environment::Virtual;
            assert!(none || compared > 100, "{name} {tactics:?}: {compared}");
        }
    }
}
