//! Caches, memory latency, performance counters, clock and energy.

mod common;

use common::{Program, machine};
use lancet_blackfin_sim::{Captured, Config, DataCaches, End, Environment, Simulator, Stats, TimingConfig};
use lancet_isa::blackfin::*;

const PLL_DIV: u32 = 0xFFC0_0004;
const VR_CTL: u32 = 0xFFC0_0008;
const PFCTL: u32 = 0xFFE0_8000;
const PFCNTR0: u32 = 0xFFE0_8100;

fn timed(timing: TimingConfig, write: impl FnOnce(&mut Program)) -> (Stats, Simulator) {
    let config = Config { environment: Environment::Operating, timing: Some(timing), ..Config::default() };
    let mut simulator = machine(config, write);
    assert_eq!(simulator.run(&mut Captured::default()).unwrap(), End::Exited(0));
    (simulator.stats(), simulator)
}

/// Reads `words` words from `base` on, `stride` bytes apart.
fn walk(p: &mut Program, base: u32, stride: i32, words: u32) {
    p.load(AllReg::P0, base).load(AllReg::P1, words).load(AllReg::P2, stride as u32);
    let at = p.here();
    p.op(Op::LoopSetup { which: Loop::Loop0, first: at + 4, last: at + 4, count: LoopCount::Reg(Preg::P1) });
    p.op(Op::Load { what: Load::Word, reg: DPreg::R0, addr: Address::PostAdd { base: Preg::P0, index: Preg::P2 } });
}

fn store(p: &mut Program, register: u32, value: u32) {
    p.load(AllReg::P5, register).load(AllReg::R5, value);
    p.op(Op::Store { what: Store::Word, reg: DPreg::R5, addr: Address::At(Preg::P5) });
}

fn misses(stats: &Stats) -> u64 {
    stats.data_cache_misses.iter().sum()
}

#[test]
fn what_fits_misses_once() {
    let (stats, _) = timed(TimingConfig::default(), |p| {
        walk(p, 0x10_0000, 32, 1024);
        walk(p, 0x10_0000, 32, 1024);
    });
    assert_eq!(stats.data_cache_misses, [512, 512]);
    assert_eq!(stats.data_cache_evictions, [0, 0]);
    assert!(stats.instruction_cache_misses <= 3, "{stats:?}");
}

#[test]
fn what_does_not_fit_misses_again() {
    let (stats, _) = timed(TimingConfig::default(), |p| {
        walk(p, 0x10_0000, 32, 2048);
        walk(p, 0x10_0000, 32, 2048);
    });
    assert_eq!(misses(&stats), 4096);
    assert_eq!(stats.data_cache_evictions.iter().sum::<u64>(), 4096 - 1024);
}

#[test]
fn half_a_cache_holds_half_as_much() {
    let config = TimingConfig { data_caches: DataCaches::BankA, ..TimingConfig::default() };
    let (stats, _) = timed(config, |p| {
        walk(p, 0x10_0000, 32, 512);
        walk(p, 0x10_0000, 32, 512);
    });
    assert_eq!(stats.data_cache_misses, [512, 0]);
}

#[test]
fn l1_memory_never_misses() {
    let (stats, _) = timed(TimingConfig::default(), |p| walk(p, 0xFF80_0000, 4, 4096));
    assert_eq!(misses(&stats), 0);
    assert_eq!(stats.stalls.read, 0);
}

#[test]
fn programs_may_switch_the_caches_off() {
    let (stats, _) = timed(TimingConfig::default(), |p| {
        store(p, 0xFFE0_0004, 1);
        walk(p, 0x10_0000, 4, 1000);
    });
    assert_eq!(misses(&stats), 0);
    // Every read goes to the SDRAM: at least 16 system cycles at a quarter of the clock.
    assert!(stats.stalls.read >= 64_000, "{stats:?}");
}

#[test]
fn waiting_for_memory_takes_fewer_cycles_at_half_the_clock() {
    let walk_at = |slow: bool| {
        timed(TimingConfig::default(), |p| {
            if slow {
                // The core at half the PLL's frequency, 1.00 V; IDLE waits until the voltage has settled.
                store(p, PLL_DIV, 0x0014);
                store(p, VR_CTL, 0x409B);
                p.op(Op::Idle);
            }
            walk(p, 0x10_0000, 32, 10_000);
        })
    };
    let ((fast, _), (slow, machine)) = (walk_at(false), walk_at(true));
    assert_eq!(misses(&fast), misses(&slow));
    // One cycle of each wait is the load's own, whatever the clock.
    let ratio = fast.stalls.read as f64 / slow.stalls.read as f64;
    assert!((ratio - 2.0).abs() < 0.03, "{ratio}");
    assert_eq!((slow.clock_changes, fast.clock_changes), (2, 0));
    let point = machine.operating_point();
    assert!((point.megahertz - 250.0).abs() < 1e-9 && (point.volts - 1.0).abs() < 1e-9, "{point:?}");
    // Almost the same time, for much less energy: the bus is as fast as before.
    assert!(slow.seconds < fast.seconds * 1.05, "{} {}", slow.seconds, fast.seconds);
    assert!(slow.energy < fast.energy * 0.40, "{} {}", slow.energy, fast.energy);
}

#[test]
fn settling_takes_a_thousand_cycles() {
    let cycles = |change: bool| {
        let (stats, _) = timed(TimingConfig::default(), |p| {
            store(p, VR_CTL, 0x409B);
            p.op(if change { Op::Idle } else { Op::Nop });
        });
        stats.cycles
    };
    assert_eq!(cycles(true) - cycles(false), 1000);
}

#[test]
fn the_performance_monitor_counts_what_the_program_asks_for() {
    // Counter 0: fills of data bank A; counter 1: instructions; both in supervisor mode.
    let control = 1 | 2 << 3 | 0x9A << 5 | 2 << 14 | 0x0D << 16 | 3 << 24;
    let (stats, machine) = timed(TimingConfig::default(), |p| {
        walk(p, 0x20_0000, 32, 100);
        store(p, PFCTL, control);
        walk(p, 0x10_0000, 32, 1000);
        store(p, PFCTL, 0);
        walk(p, 0x30_0000, 32, 100);
        p.load(AllReg::P5, PFCNTR0);
        p.op(Op::Load { what: Load::Word, reg: DPreg::R6, addr: Address::PostIncrement(Preg::P5) });
        p.op(Op::Load { what: Load::Word, reg: DPreg::R7, addr: Address::At(Preg::P5) });
    });
    // 16 KB in bank A, then 15,616 bytes in bank B.
    assert_eq!(machine.registers().r[6], 512);
    assert!((1000..1020).contains(&machine.registers().r[7]), "{}", machine.registers().r[7]);
    assert!(stats.data_cache_misses[0] > 512, "{stats:?}");
}

#[test]
fn the_cycle_counter_runs_while_enabled() {
    let (stats, machine) = timed(TimingConfig::default(), |p| {
        // SYSCFG with CCEN.
        p.load(AllReg::R0, 0x32).op(Op::Move { dst: AllReg::Syscfg, src: AllReg::R0 });
        walk(p, 0xFF80_0000, 4, 1000);
        p.op(Op::Move { dst: AllReg::R6, src: AllReg::Cycles });
        p.op(Op::Move { dst: AllReg::R7, src: AllReg::Cycles2 });
    });
    let counted = u64::from(machine.registers().r[6]);
    assert!(counted >= 1000 && counted < stats.cycles, "{counted} of {}", stats.cycles);
    assert_eq!(machine.registers().r[7], 0);
}

#[test]
fn timing_changes_no_result() {
    for name in ["crc.O2", "jpeg.O2", "stride.O3"] {
        let file = std::fs::read(common::testdata().join(format!("elf/{name}.elf"))).unwrap();
        let run = |timing: Option<TimingConfig>| {
            let mut host = Captured::default();
            let mut simulator = Simulator::load(&file, Config { timing, ..Config::default() }).unwrap();
            assert_eq!(simulator.run(&mut host).unwrap(), End::Exited(0));
            (host.text(), simulator.registers().clone(), simulator.stats())
        };
        let (plain, timed) = (run(None), run(Some(TimingConfig::default())));
        assert_eq!((plain.0, plain.1), (timed.0, timed.1), "{name}");
        assert_eq!(plain.2.instructions, timed.2.instructions, "{name}");
        assert!(timed.2.cycles > plain.2.cycles, "{name}");
    }
}
