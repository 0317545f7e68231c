//! Instrumented Blackfin programs measure what an independent trace of the original sees, and print what it prints.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lancet::blackfin_sim::{Captured, Config, End, Environment, Simulator, State, Step, TimingConfig};
use lancet::dsp::{self, Measured, Notes, Tool};
use lancet::dvfs::{Profiled, Thresholds};
use lancet::isa::blackfin::Op;
use lancet::layout::inplace::Tactics;
use lancet::load::Module;
use lancet::plan::{Argument, CounterId, Plan, Point};
use lancet::program::{EdgeId, FuncId};
use lancet::tool::{self, Counters, Site};
use lancet::{EdgeKind, Image, Program, names};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/blackfin")
}

fn path(name: &str) -> PathBuf {
    folder().join("elf").join(name)
}

fn config(name: &str, timing: bool) -> Config {
    let environment = if name.contains(".op.") { Environment::Operating } else { Environment::Virtual };
    let timing = timing.then(TimingConfig::default);
    Config { environment, timing, limit: 1_000_000_000, ..Config::default() }
}

/// Runs a file to its end: what it printed, and the machine.
fn run(name: &str, file: &[u8], timing: bool) -> (String, Simulator) {
    let mut simulator = Simulator::load(file, config(name, timing)).unwrap();
    let mut host = Captured::default();
    assert_eq!(simulator.run(&mut host).unwrap(), End::Exited(0), "{name}: {}", host.text());
    (host.text(), simulator)
}

/// How often each instruction ran, and how often one behind the other.
#[derive(Default)]
struct Traced {
    runs: BTreeMap<u32, u64>,
    pairs: BTreeMap<(u32, u32), u64>,
    loop_setups: u64,
}

fn trace(name: &str) -> Traced {
    let file = std::fs::read(path(name)).unwrap();
    let mut simulator = Simulator::load(&file, config(name, false)).unwrap();
    let mut traced = Traced::default();
    let mut last = 0;
    let mut see = |step: &Step<'_>| {
        let at = step.insn.at;
        *traced.runs.entry(at).or_default() += 1;
        *traced.pairs.entry((std::mem::replace(&mut last, at), at)).or_default() += 1;
        traced.loop_setups += u64::from(matches!(step.insn.op, Op::LoopSetup { .. }));
    };
    simulator.run_traced(&mut Captured::default(), &mut see).unwrap();
    traced
}

fn rewrite(name: &str, tool: &Tool<'_>, tactics: Tactics) -> (Vec<u8>, Notes) {
    dsp::rewrite(&path(name), tool, tactics).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn address(text: &str) -> u32 {
    u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// Rewrites and runs; the output must be that of the original.
fn measure(name: &str, tool: &Tool<'_>, tactics: Tactics) -> (Notes, Simulator, Measured) {
    let (file, notes) = rewrite(name, tool, tactics);
    let timing = notes.phases.is_some();
    let (output, simulator) = run(name, &file, timing);
    let original = std::fs::read(path(name)).unwrap();
    assert_eq!(output, run(name, &original, timing).0, "{name}");
    let measured = Measured::read(&notes, &simulator);
    (notes, simulator, measured)
}

#[test]
fn blocks_and_edges_are_those_of_a_trace() {
    let cases = [
        ("fib.O2.elf", Tactics::Cheapest),
        ("crc.op.elf", Tactics::Cheapest),
        ("crc.op.elf", Tactics::TrapsOnly),
        ("huffman.O3.elf", Tactics::JumpsOnly),
        ("vm.O2.elf", Tactics::Cheapest),
    ];
    for (name, tactics) in cases {
        let (_, _, measured) = measure(name, &Tool::Count, tactics);
        let traced = trace(name);
        let program = Program::analyse(Arc::new(Image::open(&path(name)).unwrap()));
        let all = program.funcs().iter().flat_map(|func| func.blocks.iter());
        let last: BTreeMap<u32, u32> =
            all.filter_map(|block| Some((block.start.0 as u32, program.insns(block).last()?.at.0 as u32))).collect();
        for block in &measured.blocks {
            let wanted = traced.runs.get(&address(&block.address)).copied().unwrap_or(0);
            // The instruction that ends the program does not complete, so it is not in the trace.
            let ends = block.count == 1 && wanted == 0;
            assert!(
                block.count == wanted || ends,
                "{name} {tactics:?} {}: {}, traced {wanted}",
                block.address,
                block.count
            );
        }
        let mut edges = 0;
        // Where a call returns to, its instructions stand between.
        for edge in measured.edges.iter().filter(|edge| edge.kind != "return") {
            let (from, to) = (address(&edge.from), address(&edge.to));
            let wanted = traced.pairs.get(&(last[&from], to)).copied().unwrap_or(0);
            assert_eq!(edge.count, wanted, "{name} {tactics:?} {} -> {} ({})", edge.from, edge.to, edge.kind);
            edges += u64::from(wanted > 0);
        }
        assert!(edges > 50, "{name}: only {edges} edges ran");
        assert!(measured.edges.iter().any(|edge| edge.kind == "repeat" && edge.count > 0), "{name}: no hardware loop");
    }
}

#[test]
fn the_analysis_that_does_nothing_is_not_noticed() {
    for (name, tactics) in [("sha256.O2.elf", Tactics::Cheapest), ("dsp.op.elf", Tactics::TrapsOnly)] {
        let (notes, ..) = measure(name, &Tool::Null, tactics);
        assert!(notes.totals.jumps + notes.totals.traps > 5 * notes.totals.refused, "{name}: {:?}", notes.totals);
    }
}

/// Words of the data of an analysis: behind the four that the editor uses.
fn analysis_word(notes: &Notes, simulator: &Simulator, i: u32) -> u32 {
    word(simulator, notes.analysis_data.unwrap() + 16 + 4 * i)
}

fn word(simulator: &Simulator, at: u32) -> u32 {
    u32::from_le_bytes(simulator.memory(at, 4).unwrap().try_into().unwrap())
}

fn points(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn routines_of_an_object_are_called_at_the_chosen_points() {
    let object = folder().join("analysis/seen.o");
    for name in ["crc.O2.elf", "crc.op.elf"] {
        for tactics in [Tactics::Cheapest, Tactics::TrapsOnly] {
            if name == "crc.O2.elf" && tactics == Tactics::TrapsOnly {
                continue;
            }
            let file = points(
                "call _seen before procedure _main kind load   # and nothing else\ncall _other after procedure _main kind store\ncount before procedure _main kind load\n",
            );
            let tool = Tool::Points { file: file.path(), object: Some(&object) };
            let (notes, simulator, measured) = measure(name, &tool, tactics);
            let traced = trace(name);
            let at: Vec<u32> = measured.points.iter().map(|point| address(&point.address)).collect();
            assert!(at.len() > 5 && at.len() > notes.totals.refused, "{name}: {:?}", notes.refused);
            let runs: Vec<u64> = at.iter().map(|at| traced.runs.get(at).copied().unwrap_or(0)).collect();
            let counts: Vec<u64> = measured.points.iter().map(|point| point.count).collect();
            assert_eq!(counts, runs, "{name} {tactics:?}");
            let calls: u64 = runs.iter().sum();
            let words: Vec<u64> = (0..3).map(|i| analysis_word(&notes, &simulator, i).into()).collect();
            assert_eq!((words[0], words[2]), (calls, 6 * calls), "{name} {tactics:?}");
            if notes.totals.refused == 0 {
                // The loads were the first rule, so their points have the first numbers.
                let numbers: u64 = runs.iter().zip(0..).map(|(runs, i)| runs * i).sum();
                assert_eq!(words[1], numbers, "{name} {tactics:?}");
            }
        }
    }
}

#[test]
fn instrumentation_is_switched_on_and_off() {
    let name = "crc.op.elf";
    let object = folder().join("analysis/seen.o");
    let program = Program::analyse(Arc::new(Image::open(&path(name)).unwrap()));
    let main = program.funcs().iter().find(|func| names::of_function(&program, func) == "_main").unwrap();
    let calls: Vec<u32> = main
        .calls
        .iter()
        .map(|call| call.block)
        .filter_map(|block| program.insns(main.block(block)).last().map(|insn| insn.at.0 as u32))
        .collect();
    // Between the first and the second call of main.
    let text = format!(
        "call _seen before kind store\non before address {:#x}\noff before address {:#x}\n",
        calls[0], calls[1]
    );
    let file = points(&text);
    let tool = Tool::Points { file: file.path(), object: Some(&object) };
    let (notes, simulator, _) = measure(name, &tool, Tactics::Cheapest);
    let seen = analysis_word(&notes, &simulator, 0);
    let all = points("call _seen before kind store\n");
    let tool = Tool::Points { file: all.path(), object: Some(&object) };
    let (notes, simulator, _) = measure(name, &tool, Tactics::Cheapest);
    let always = analysis_word(&notes, &simulator, 0);
    assert!(0 < seen && seen < always, "{seen} of {always}");
}

#[test]
fn phases_lie_between_loop_setups() {
    for name in ["matmul.op.elf", "jpeg.op.elf"] {
        let (notes, simulator, measured) = measure(name, &Tool::Phases, Tactics::Cheapest);
        let mut simulator = simulator;
        let original = std::fs::read(path(name)).unwrap();
        let wanted = run(name, &original, true).1.stats();
        let traced = trace(name);
        let known: BTreeSet<u32> = notes.phases.as_ref().unwrap().points.iter().copied().collect();
        let executed: u64 = known.iter().map(|at| traced.runs.get(at).copied().unwrap_or(0)).sum();
        assert_eq!(measured.phases.iter().map(|phase| phase.executions).sum::<u64>(), executed, "{name}");
        assert!(executed > 100 && executed <= traced.loop_setups, "{name}: {executed}");
        // The counters stand still in the analysis, and what it needs is not in the caches' way.
        let cycles: u64 = measured.phases.iter().map(|phase| phase.cycles).sum();
        let misses: u64 = measured.phases.iter().map(|phase| phase.misses).sum();
        let all_misses: u64 = wanted.data_cache_misses.iter().sum();
        // The way to the analysis and back is counted.
        assert!(cycles <= wanted.cycles + 60 * executed, "{name}: {cycles} of {} cycles", wanted.cycles);
        assert!(misses <= all_misses + all_misses / 20 + 20, "{name}: {misses} of {all_misses} misses");
        assert!(simulator.stats().cycles > wanted.cycles, "{name}: the analysis costs nothing");
    }
}

/// How often is each function called?
struct Calls(Vec<(FuncId, CounterId)>);

impl tool::Tool for Calls {
    fn instrument(&mut self, site: &mut Site<'_>) {
        let calls = site.counter();
        site.at_entry(calls);
        let id = site.program.func_starting_at(site.func.entry).unwrap();
        self.0.push((id, calls));
    }

    fn report(&self, _: &Counters, _: &mut dyn std::io::Write) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_tool_of_ones_own_works_here_too() {
    // Functions of the program itself: how often those of the C library run depends on where the output goes.
    let cases = [
        ("fib.O2.elf", ["_main", "_queens", "_perm.constprop.0", "_fib"]),
        ("qsort.op.elf", ["_main", "_isort", "_cmp", "_sum"]),
    ];
    for (name, functions) in cases {
        let program = Program::analyse(Arc::new(Image::open(&path(name)).unwrap()));
        let traced = trace(name);
        let mut calls = Calls(Vec::new());
        let (status, counters) = tool::run(&mut calls, &path(name), &[]).unwrap();
        assert!(status.success());
        for (id, counter) in &calls.0 {
            let func = program.func(*id);
            let function = names::of_function(&program, func);
            if functions.contains(&function.as_str()) {
                assert_eq!(
                    Some(&counters.get(*counter)),
                    traced.runs.get(&(func.entry.0 as u32)),
                    "{name}: {function}"
                );
            }
        }
    }
}

/// Calls of a routine that adds up arguments, and of one that prints the sum.
struct Ledger {
    payload: Arc<Module>,
    function: &'static str,
    keeps: &'static [&'static str],
}

impl tool::Tool for Ledger {
    fn payload(&self) -> Option<Arc<Module>> {
        Some(Arc::clone(&self.payload))
    }

    fn instrument(&mut self, site: &mut Site<'_>) {
        let argument = |name: &&str| Argument::Register(site.register(name).expect("a register"));
        if site.name() == self.function {
            let keeps: Vec<Argument> = self.keeps.iter().map(argument).collect();
            let first = argument(&"R0");
            site.call(Point::Entry(0), "_enter", &[Argument::Number(3), first]).unwrap();
            if !keeps.is_empty() {
                site.call(Point::Entry(0), "_keep", &keeps).unwrap();
            }
        }
        if site.name() == "_main" {
            for exit in (0..).take(site.func.exits.len()) {
                site.call(Point::Exit(exit), "_tell", &[]).unwrap();
            }
        }
    }

    fn report(&self, _: &Counters, _: &mut dyn std::io::Write) -> std::io::Result<()> {
        Ok(())
    }
}

/// Registers that a routine is given: three in registers, the others on the stack.
const KEPT: [[&str; 9]; 2] = [
    ["R0", "R1", "P0", "SP", "FP", "RETS", "L1", "LC0", "R7"],
    ["RETS", "P5", "R0", "LB1", "I2", "M0", "B3", "SP", "R2"],
];

#[test]
fn a_tool_of_ones_own_calls_routines_of_its_payload() {
    let payload = Arc::new(Module::open(&folder().join("analysis/ledger.o")).unwrap());
    for (name, function) in [("fib.O2.elf", "_fib"), ("fib.op.elf", "_fib"), ("qsort.op.elf", "_isort")] {
        for keeps in &KEPT {
            let program = Program::analyse(Arc::new(Image::open(&path(name)).unwrap()));
            let mut ledger = Ledger { payload: Arc::clone(&payload), function, keeps };
            let plan = tool::plan_in_place(&mut ledger, &program);
            let planned = dsp::edit_plan(&program, &path(name), &plan).unwrap();
            assert!(planned.left_alone.is_empty(), "{name}: {:?}", planned.left_alone);
            let (output, simulator) = run(name, &planned.file, false);
            // What the registers hold where the function starts, by a trace of the original.
            let func = program.funcs().iter().find(|func| names::of_function(&program, func) == function).unwrap();
            let mut sum = 0u32;
            let mut last = Vec::new();
            let original = std::fs::read(path(name)).unwrap();
            let mut host = Captured::default();
            let mut see = |step: &Step<'_>| {
                if step.insn.at == func.entry.0 as u32 {
                    sum = sum.wrapping_add(step.before.r[0].wrapping_mul(3));
                    last = keeps.iter().map(|reg| value(step.before, reg)).collect();
                }
            };
            Simulator::load(&original, config(name, false)).unwrap().run_traced(&mut host, &mut see).unwrap();
            // Behind the constants, which are data here.
            let kept: Vec<u32> = (0..9).map(|i| word(&simulator, planned.payload_data_at + 40 + 4 * i)).collect();
            assert_eq!(kept, last, "{name} {keeps:?}");
            let line = format!("{sum}\n");
            assert!(sum > 0 && output.contains(&line), "{name}: {sum} is not in {output}");
            assert_eq!(output.replacen(&line, "", 1), host.text(), "{name}");
        }
    }
}

/// What a register holds, by its name.
fn value(state: &State, name: &str) -> u32 {
    let names = lancet::isa::for_elf_machine(106).unwrap().facts().reg_names;
    match names.iter().position(|known| *known == name).unwrap() {
        number @ 0..=31 => state.r[number],
        47 => state.rets,
        48 => state.lc[0],
        53 => state.lb[1],
        other => panic!("{other} is not used here"),
    }
}

#[test]
fn hardware_loops_are_counted_where_they_go_round_and_where_they_end() {
    for name in ["crc.O2.elf", "crc.op.elf", "fir.op.elf", "dsp.op.elf"] {
        let program = Program::analyse(Arc::new(Image::open(&path(name)).unwrap()));
        let traced = trace(name);
        let mut plan = Plan::new();
        let mut wanted = Vec::new();
        for (id, func) in (0..).map(FuncId).zip(program.funcs()) {
            for (i, edge) in (0..).zip(&func.edges) {
                let closes = func.successors(edge.from).iter().any(|edge| edge.kind == EdgeKind::Repeat);
                if let Some(last) = program.insns(func.block(edge.from)).last().filter(|_| closes) {
                    let counter = plan.counter();
                    plan.edit(id).count(Point::Edge(EdgeId(i)), counter);
                    wanted.push((id, counter, (last.at.0 as u32, func.block(edge.to).start.0 as u32)));
                }
            }
        }
        let (ran, counters, left_alone) = dsp::run_plan(&program, &path(name), &plan, Vec::new()).unwrap();
        assert_eq!(ran.status, 0);
        assert!(left_alone.values().all(|why| why.starts_with("0x")), "{name}: {left_alone:?}");
        let mut passed = 0;
        for (id, counter, pair) in wanted {
            let (count, traced) = (counters[counter.0 as usize], traced.pairs.get(&pair).copied().unwrap_or(0));
            if left_alone.contains_key(&id) {
                assert_eq!(count, 0);
            } else {
                assert_eq!(count, traced, "{name}: {:#x} to {:#x}", pair.0, pair.1);
                passed += u64::from(traced > 0);
            }
        }
        assert!(passed > 5, "{name}: {passed} edges, left alone: {left_alone:?}");
    }
}

#[test]
fn slowing_the_clock_saves_energy_and_changes_no_output() {
    let djpeg = folder().join("consumer/elf/djpeg.op.elf");
    let profiled = Profiled::new(&djpeg).unwrap();
    let study = profiled.scale(Thresholds::default()).unwrap();
    let [region_energy, region_time, energy, time] = study.changes();
    assert!(!study.chosen.is_empty() && study.clock_changes > 0);
    assert!(region_energy < energy && energy < 0.0, "{region_energy} {energy}");
    assert!(region_time > time && time >= 0.0, "{region_time} {time}");
    // With thresholds that nothing reaches, nothing is changed.
    let none = profiled.scale(Thresholds { misses_per_cycle: 1.0, ..Thresholds::default() }).unwrap();
    assert_eq!((none.chosen.len(), none.clock_changes, none.scaled), (0, 0, none.original));
}
