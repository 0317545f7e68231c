//! Small programs made on the spot: hardware loops, bundles, code that changes, errors.

mod common;

use common::{Program, START};
use lancet_blackfin_sim::{Captured, Cause, Config, End, Environment, SimError, Simulator, Step, Stopped, Trouble};
use lancet_isa::blackfin::*;

fn machine(environment: Environment, write: impl FnOnce(&mut Program)) -> Simulator {
    common::machine(Config { environment, limit: 1_000_000, ..Config::default() }, write)
}

/// Runs a program that must end with `HLT`.
fn finish(mut simulator: Simulator) -> Simulator {
    assert_eq!(simulator.run(&mut Captured::default()).unwrap(), End::Exited(0));
    simulator
}

fn run(write: impl FnOnce(&mut Program)) -> Simulator {
    finish(machine(Environment::Virtual, write))
}

/// Runs a program that must not get to its end.
fn trouble(environment: Environment, write: impl FnOnce(&mut Program)) -> Stopped {
    match machine(environment, write).run(&mut Captured::default()) {
        Err(SimError::Stopped(stopped)) => *stopped,
        other => panic!("{other:?}"),
    }
}

fn add_imm(dst: DPreg, imm: i8) -> Op {
    Op::AddImm { dst, imm }
}

fn setup(which: Loop, first: u32, last: u32, count: Preg) -> Op {
    Op::LoopSetup { which, first, last, count: LoopCount::Reg(count) }
}

#[test]
fn nested_loops_with_one_bottom() {
    // The inner loop is loop 1; both end with the same instruction.
    let simulator = run(|a| {
        a.load(AllReg::P0, 3).load(AllReg::P1, 5);
        let outer = a.here();
        a.op(setup(Loop::Loop0, outer + 4, outer + 10, Preg::P0));
        a.op(add_imm(DPreg::R1, 1));
        a.op(setup(Loop::Loop1, outer + 10, outer + 10, Preg::P1));
        a.op(add_imm(DPreg::R0, 1));
    });
    assert_eq!(simulator.registers().r[..2], [15, 3]);
    assert_eq!(simulator.registers().lc, [0, 0]);
}

#[test]
fn a_loop_whose_bottom_is_set_after_its_body_ran() {
    // The body runs as straight code first, then LT0, LB0 and LC0 are written and it becomes a loop.
    let simulator = run(|a| {
        let top = a.here();
        a.op(add_imm(DPreg::R0, 1));
        a.op(add_imm(DPreg::R1, 2));
        a.op(add_imm(DPreg::R2, 1));
        // R7 is 0 the first time.
        a.op(Op::MoveToCc(Dreg::R7));
        let branch = a.here();
        a.op(Op::Branch { cc: true, predicted: false, target: branch + 32 });
        a.load(AllReg::R7, 1);
        for (reg, value) in [(AllReg::Lt0, top), (AllReg::Lb0, top + 2), (AllReg::Lc0, 10)] {
            a.op(Op::LoadImm { dst: AllReg::R6, part: ImmPart::ZeroExtended, value });
            a.op(Op::Move { dst: reg, src: AllReg::R6 });
        }
        a.op(Op::JumpShort { target: top });
        while a.here() < branch + 32 {
            a.op(Op::Nop);
        }
    });
    assert_eq!(simulator.registers().r[..3], [11, 22, 2]);
}

#[test]
fn a_call_at_the_bottom_returns_to_the_top() {
    let simulator = run(|a| {
        a.load(AllReg::P0, 4);
        let at = a.here();
        a.op(setup(Loop::Loop0, at + 4, at + 6, Preg::P0));
        a.op(add_imm(DPreg::R0, 1));
        a.op(Op::Call { target: at + 12 });
        a.op(Op::Hlt);
        a.op(add_imm(DPreg::R1, 1));
        a.op(Op::Return(ReturnFrom::Subroutine));
    });
    assert_eq!(simulator.registers().r[..2], [4, 4]);
}

#[test]
fn code_that_changes_is_decoded_again() {
    // R0 += 1 becomes R0 += 3 in the second round.
    let simulator = run(|a| {
        let at = a.here();
        let new = u16::from_le_bytes(encode(&add_imm(DPreg::R0, 3), at).unwrap()[..2].try_into().unwrap());
        a.op(add_imm(DPreg::R0, 1));
        a.load(AllReg::P0, at);
        a.op(Op::LoadImm { dst: AllReg::R1, part: ImmPart::ZeroExtended, value: new.into() });
        a.op(Op::Store { what: Store::Half, reg: DPreg::R1, addr: Address::At(Preg::P0) });
        a.op(add_imm(DPreg::R7, 1));
        a.op(Op::CompareImm { relation: Compare::Less, left: DPreg::R7, right: 3 });
        a.op(Op::Branch { cc: true, predicted: true, target: at });
    });
    assert_eq!(simulator.registers().r[0], 1 + 3 + 3);
}

#[test]
fn a_bundle_sees_the_registers_from_before_it() {
    let simulator = run(|a| {
        a.load(AllReg::I0, 0x2000).load(AllReg::I1, 0x2100);
        a.load(AllReg::R0, 7).load(AllReg::R1, 5);
        // R0 = R0 + R1 (NS) || R1 = [I0++] || [I1++] = R0: the store writes the old R0, the sum uses the old R1.
        let (src0, src1) = (Dreg::R0, Dreg::R1);
        a.bundle(
            Op::Add { sub: false, dst: Dreg::R0, src0, src1, overflow: Overflow::Wrap },
            [
                Op::Load { what: Load::Word, reg: DPreg::R1, addr: Address::DagPostIncrement(Ireg::I0) },
                Op::Store { what: Store::Word, reg: DPreg::R0, addr: Address::DagPostIncrement(Ireg::I1) },
            ],
        );
    });
    assert_eq!(simulator.registers().r[..2], [12, 0]);
    assert_eq!(simulator.memory(0x2100, 4), Some(&7u32.to_le_bytes()[..]));
    assert_eq!(simulator.registers().r[16..18], [0x2004, 0x2104]);
}

#[test]
fn tracing_changes_nothing() {
    let program = |a: &mut Program| {
        a.load(AllReg::P0, 100);
        let at = a.here();
        a.op(setup(Loop::Loop0, at + 4, at + 8, Preg::P0));
        a.op(add_imm(DPreg::R0, 3));
        a.op(Op::Alu2 { op: Alu2::Multiply, dst: Dreg::R1, src: Dreg::R0 });
        a.op(Op::Alu3 { op: Alu3::Xor, dst: Dreg::R1, src0: Dreg::R1, src1: Dreg::R0 });
    };
    let mut plain = run(program);
    let mut traced = machine(Environment::Virtual, program);
    let (mut steps, mut writes) = (0, 0);
    let end = traced.run_traced(&mut Captured::default(), &mut |step: &Step<'_>| {
        steps += 1;
        writes += step.written().count();
    });
    assert_eq!(end.unwrap(), End::Exited(0));
    assert_eq!(traced.registers(), plain.registers());
    assert_eq!(traced.stats().instructions, plain.stats().instructions);
    // The last instruction ends the program and is not shown.
    assert_eq!(steps, traced.stats().instructions - 1);
    assert!(writes > 200, "{writes}");
}

#[test]
fn illegal_instructions_are_reported_with_address_and_registers() {
    let stopped = trouble(Environment::Virtual, |a| {
        a.load(AllReg::R3, 0x1234);
        a.word(0x0001);
    });
    assert_eq!(stopped.why, Trouble::Exception { cause: Cause::Undefined, address: None });
    assert_eq!(stopped.at, START + 4);
    assert_eq!(stopped.instruction, "ILLEGAL;");
    assert_eq!(stopped.registers.r[3], 0x1234);
    let text = SimError::Stopped(Box::new(stopped)).to_string();
    assert!(text.starts_with("undefined instruction at 0x00001004: ILLEGAL;\n"), "{text}");
    assert!(text.contains("R3      00001234"), "{text}");
}

#[test]
fn bad_accesses_are_reported_with_their_address() {
    let load = |addr: u32| {
        trouble(Environment::Virtual, move |a| {
            a.load(AllReg::P1, addr);
            a.op(Op::Load { what: Load::Word, reg: DPreg::R0, addr: Address::At(Preg::P1) });
        })
    };
    for (address, cause) in [
        (0x2002, Cause::DataMisaligned),
        (0x0800_0000, Cause::DataMiss),
        (0x8000_0000, Cause::DataMiss),
        (0xFFA0_0000, Cause::DataMiss),
        (0xFFC0_F000, Cause::SupervisorOnly),
    ] {
        let stopped = load(address);
        assert_eq!(stopped.why, Trouble::Exception { cause, address: Some(address) });
        assert_eq!(stopped.instruction, "R0 = [P1];");
    }
}

#[test]
fn unknown_system_calls_are_reported() {
    let stopped = trouble(Environment::Virtual, |a| {
        a.load(AllReg::R0, 0x2000).load(AllReg::P0, 99);
        a.op(Op::Excpt(0));
    });
    assert_eq!(stopped.why, Trouble::UnknownSystemCall { number: 99 });
}

#[test]
fn jumps_to_nowhere_are_reported() {
    let stopped = trouble(Environment::Virtual, |a| {
        a.load(AllReg::P0, 0x4000_0000);
        a.op(Op::JumpReg(Preg::P0));
    });
    assert_eq!(stopped.why, Trouble::Exception { cause: Cause::FetchMiss, address: Some(0x4000_0000) });
    assert_eq!(stopped.instruction, "no memory");
}

#[test]
fn an_exception_in_the_reset_handler_is_a_double_fault() {
    let stopped = trouble(Environment::Operating, |a| {
        a.op(Op::Excpt(3));
    });
    assert_eq!(stopped.why, Trouble::DoubleFault { cause: 3 });
}

#[test]
fn idle_that_nothing_ends_is_reported() {
    let stopped = trouble(Environment::Operating, |a| {
        a.op(Op::Idle);
    });
    assert_eq!(stopped.why, Trouble::IdleForever);
}

#[test]
fn a_limit_ends_endless_loops() {
    let mut simulator = machine(Environment::Virtual, |a| {
        let here = a.here();
        a.op(Op::JumpShort { target: here });
    });
    assert_eq!(simulator.run(&mut Captured::default()).unwrap(), End::Limit);
    assert_eq!(simulator.stats().instructions, 1_000_000);
}

#[test]
fn files_that_are_no_blackfin_programs_are_refused() {
    let program =
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/blackfin/elf/fib.O2.elf")).unwrap();
    let load = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut file = program.clone();
        change(&mut file);
        Simulator::load(&file, Config::default()).err()
    };
    assert!(load(&|_| {}).is_none());
    assert!(matches!(load(&|file| file[18] = 62), Some(SimError::OtherMachine { machine: 62 })));
    assert!(matches!(load(&|file| file[16] = 3), Some(SimError::NotExecutable { kind: 3 })));
    assert!(matches!(load(&|file| file[0] = 0), Some(SimError::NotElf(_))));
    assert!(matches!(load(&|file| file.truncate(40)), Some(SimError::NotElf(_))));
    let headers = |file: &Vec<u8>| u32::from_le_bytes(file[28..32].try_into().unwrap()) as usize;
    // The physical address of the first segment.
    assert!(matches!(
        load(&|file| {
            let at = headers(file) + 12;
            file[at..at + 4].copy_from_slice(&0x7000_0000u32.to_le_bytes());
        }),
        Some(SimError::SegmentOutsideMemory { at: 0x7000_0000, .. })
    ));
    let small = Config { sdram: 12345, ..Config::default() };
    assert!(matches!(Simulator::load(&program, small), Err(SimError::SdramSize(12345))));
}
