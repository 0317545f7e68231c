//! Liveness against a search for paths, one register and one instruction at a time.

use lancet_engine::program::dfs::Dfs;
use lancet_engine::program::liveness::{Exit, Liveness, block_effects, steps_back};
use lancet_isa::{Effects, Reg, RegSet};

use super::random::{Case, Random, case};

const REGISTERS: u8 = 5;

struct Program {
    case: Case,
    blocks: Vec<Vec<Effects>>,
    boundary: Vec<RegSet>,
}

fn program(seed: u64) -> Program {
    let case = case(seed);
    let mut r = Random::new(!seed);
    let mut set =
        |percent| (0..REGISTERS).filter(|_| r.chance(percent)).fold(RegSet::EMPTY, |s, n| s | RegSet::of(Reg(n)));
    let mut insn = || {
        let (reads, kills) = (set(12), set(15));
        Effects { reads, kills, writes: kills | set(10) }
    };
    let blocks = (0..case.nodes).map(|n| (0..(n * 7 + seed as usize) % 4).map(|_| insn()).collect()).collect();
    let boundary = (0..case.nodes).map(|n| if (n + seed as usize).is_multiple_of(4) { set(25) } else { RegSet::EMPTY });
    let boundary = boundary.collect();
    Program { case, blocks, boundary }
}

/// Searches for a path from just before instruction `at` of `block` to a read, with no kill on the way.
fn live_by_path(program: &Program, block: usize, at: usize, reg: Reg) -> bool {
    let mut seen = vec![false; program.case.nodes];
    let mut work = vec![(block, at)];
    while let Some((block, at)) = work.pop() {
        let rest = &program.blocks[block][at..];
        match rest.iter().find(|e| e.reads.contains(reg) || e.kills.contains(reg)) {
            Some(e) if e.reads.contains(reg) => return true,
            Some(_) => continue,
            None if program.boundary[block].contains(reg) => return true,
            None => {}
        }
        for &next in program.case.graph.successors(block as u32) {
            if !std::mem::replace(&mut seen[next as usize], true) {
                work.push((next as usize, 0));
            }
        }
    }
    false
}

fn all_by_path(program: &Program, block: usize, at: usize) -> RegSet {
    let live = (0..REGISTERS).map(Reg).filter(|&reg| live_by_path(program, block, at, reg));
    live.fold(RegSet::EMPTY, |set, reg| set | RegSet::of(reg))
}

#[test]
fn agrees_with_the_search_for_paths_on_random_programs() {
    let (mut dfs, mut liveness) = (Dfs::default(), Liveness::default());
    let (mut live, mut dead) = (0, 0);
    for seed in 0..4_000 {
        let program = program(seed);
        let graph = &program.case.graph;
        dfs.compute(graph.forward(), &program.case.entries);
        let effects: Vec<Effects> = program.blocks.iter().map(|insns| block_effects(insns.iter().copied())).collect();
        liveness.compute(graph, &dfs, &effects, &program.boundary);
        for (block, insns) in program.blocks.iter().enumerate() {
            let (live_in, live_out) = (liveness.live_in(block as u32), liveness.live_out(block as u32));
            assert_eq!(live_in, all_by_path(&program, block, 0), "seed {seed}: into {block}");
            assert_eq!(live_out, all_by_path(&program, block, insns.len()), "seed {seed}: out of {block}");
            let mut after = live_out;
            for (back, step) in steps_back(live_out, insns.iter().copied()).enumerate() {
                let at = insns.len() - 1 - back;
                assert_eq!(step.after, after, "seed {seed}: after {block}.{at}");
                assert_eq!(step.before, all_by_path(&program, block, at), "seed {seed}: before {block}.{at}");
                after = step.before;
            }
            live += live_in.iter().count();
            dead += usize::from(REGISTERS) - live_in.iter().count();
        }
    }
    assert!(live > 10_000 && dead > 10_000, "the random programs are too poor: {live} {dead}");
}

#[test]
fn the_system_v_boundaries() {
    let facts = lancet_isa::for_elf_machine(62).expect("x86-64").facts();
    let named = |name| Reg(facts.reg_names.iter().position(|n| *n == name).expect("a register") as u8);
    let (ret, tail) = (Exit::Return.live(facts), Exit::TailCall.live(facts));
    for callee_saved in ["rbx", "rbp", "rsp", "r12", "r13", "r14", "r15"] {
        assert!(ret.contains(named(callee_saved)) && tail.contains(named(callee_saved)), "{callee_saved}");
    }
    assert!(ret.contains(named("rax")) && ret.contains(named("rdx")) && !ret.contains(named("rdi")));
    assert!(tail.contains(named("rdi")) && !tail.contains(named("r11")));
    assert!(!ret.intersects(facts.flags.without(RegSet::of(named("df")))), "no condition flag outlives a return");
    assert_eq!(Exit::Unknown.live(facts), RegSet::ALL);
    assert_eq!(Exit::Never.live(facts), RegSet::EMPTY);
}
