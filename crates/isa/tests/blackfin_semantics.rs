//! What Blackfin instructions do to control flow, registers and values.

use std::ops::ControlFlow;

use lancet_isa::blackfin::{
    Accs, Address, AllReg, Assembler, BfInsn, Compare, DPreg, Dreg, ImmPart, Load, Loop, LoopCount, Mreg, Op, Preg,
    RegRange, ReturnFrom, decode, encode, encode_insn,
};
use lancet_isa::value::{Expr, Place, Relation};
use lancet_isa::{Effects, Flow, Insn, Isa, Reg, RegSet, Svma, Syntax, Target, decode_one, for_elf_machine};

const AT: u32 = 0x1000;

fn isa() -> &'static dyn Isa {
    for_elf_machine(106).expect("Blackfin is known")
}

fn insn(op: Op) -> Insn {
    decode_one(isa(), &encode(&op, AT).unwrap(), Svma(AT.into())).unwrap()
}

fn flow(op: Op) -> Flow {
    insn(op).flow
}

/// Names, in the order of their numbers.
fn names(set: RegSet) -> String {
    set.iter().map(|reg| isa().facts().reg_name(reg)).collect::<Vec<_>>().join(" ")
}

fn reg(name: &str) -> Reg {
    let number = isa().facts().reg_names.iter().position(|known| *known == name);
    Reg(number.unwrap_or_else(|| panic!("no register {name}")) as u8)
}

/// Reads, kills, and what else is written.
fn effects(op: Op) -> (String, String, String) {
    shown(insn(op).effects)
}

fn shown(e: Effects) -> (String, String, String) {
    (names(e.reads), names(e.kills), names(e.writes.without(e.kills)))
}

fn is(op: Op, reads: &str, kills: &str, touches: &str) {
    assert_eq!(effects(op), (reads.into(), kills.into(), touches.into()), "{op:?}");
}

#[test]
fn every_register_has_a_name() {
    assert_eq!(isa().facts().reg_names.len(), 64);
    assert_eq!(names(isa().facts().flags), "CC AZ AN AQ RND_MOD AC0 AC1 AV0 AV0S AV1 AV1S V VS");
    assert_eq!(names(isa().facts().abi.preserved), "R4 R5 R6 R7 P3 P4 P5 SP FP L0 L1 L2 L3 RND_MOD");
}

#[test]
fn control_flow() {
    let to = Svma(0x1010);
    assert_eq!(flow(Op::Nop), Flow::Next);
    assert_eq!(flow(Op::Branch { cc: true, predicted: false, target: 0x1010 }), Flow::Branch(to));
    assert_eq!(flow(Op::JumpShort { target: 0x1010 }), Flow::Jump(Target::Direct(to)));
    assert_eq!(flow(Op::JumpReg(Preg::P2)), Flow::Jump(Target::Computed));
    assert_eq!(flow(Op::Call { target: 0x1010 }), Flow::Call(Target::Direct(to)));
    assert_eq!(flow(Op::CallPcReg(Preg::P2)), Flow::Call(Target::Computed));
    assert_eq!(flow(Op::Return(ReturnFrom::Interrupt)), Flow::Return);
    assert_eq!(flow(Op::Raise(14)), Flow::System);
    assert_eq!(flow(Op::Hlt), Flow::Stop);
    // The end is farther away than objdump's signed reading could say.
    let setup = Op::LoopSetup { which: Loop::Loop0, first: 0x101E, last: 0x17FE, count: LoopCount::Keep };
    assert_eq!(flow(setup), Flow::LoopSetup { first: Svma(0x101E), last: Svma(0x17FE) });
}

#[test]
fn registers_read_and_written() {
    is(
        Op::Alu3 { op: lancet_isa::blackfin::Alu3::Add, dst: Dreg::R0, src0: Dreg::R1, src1: Dreg::R2 },
        "R1 R2",
        "R0 AZ AN AC0 V",
        "VS",
    );
    is(Op::AddImm { dst: DPreg::P1, imm: 4 }, "P1", "P1", "");
    is(Op::LoadImm { dst: AllReg::P1, part: ImmPart::Lo, value: 1 }, "", "", "P1");
    is(Op::LoadImm { dst: AllReg::P1, part: ImmPart::ZeroExtended, value: 1 }, "", "P1", "");
    is(Op::MoveIf { cc: true, dst: DPreg::R0, src: DPreg::P1 }, "P1 CC", "", "R0");
    let compare = |left, right| Op::Compare { relation: Compare::Less, left, right };
    is(compare(DPreg::R0, DPreg::R1), "R0 R1", "CC AZ AN AC0", "");
    is(compare(DPreg::P0, DPreg::P1), "P0 P1", "CC", "");
    is(Op::Push(AllReg::Astat), "SP CC AZ AN AQ RND_MOD AC0 AC1 AV0 AV0S AV1 AV1S V VS", "SP", "");
    is(Op::Pop(AllReg::A0X), "SP", "SP", "A0");
    is(Op::PopMultiple(RegRange { dregs: Some(Dreg::R6), pregs: Some(Preg::P4) }), "SP", "R6 R7 P4 P5 SP", "");
    is(Op::Call { target: 0x2000 }, "", "RETS", "");
    is(Op::Return(ReturnFrom::Subroutine), "RETS", "", "");
    is(Op::Link { frame: 8 }, "SP FP RETS", "SP FP", "");
    let load = |what, addr| Op::Load { what, reg: DPreg::R3, addr };
    is(load(Load::Word, Address::PostIncrement(Preg::P2)), "P2", "R3 P2", "");
    is(load(Load::Hi, Address::PostAdd { base: Preg::P2, index: Preg::P2 }), "P2", "", "R3");
    let base = lancet_isa::blackfin::Ireg::I1;
    is(load(Load::Word, Address::DagPostAdd { base, by: Mreg::M2 }), "I1 M2 B1 L1", "R3 I1", "");
    is(
        Op::LoopSetup { which: Loop::Loop1, first: AT + 4, last: AT + 8, count: LoopCount::Reg(Preg::P5) },
        "P5",
        "LC1 LT1 LB1",
        "",
    );
    is(Op::AccClear(Accs::Both), "", "A0 A1", "");
    is(
        Op::Bitmux { src0: Dreg::R0, src1: Dreg::R1, dir: lancet_isa::blackfin::ShiftDir::Left },
        "R0 R1 A0",
        "R0 R1 A0",
        "",
    );
}

#[test]
fn multipliers() {
    // R1.H = (A1 += R2.L * R3.H), A0 = R2.L * R3.L
    let one_half = decode_one(isa(), &[0x05, 0xC0, 0x53, 0x40], Svma(0)).unwrap();
    assert_eq!(shown(one_half.effects).0, "R2 R3 A1 RND_MOD");
    assert_eq!(shown(one_half.effects).1, "A0 A1");
    assert_eq!(shown(one_half.effects).2, "R1 AZ AN AV0 AV0S AV1 AV1S V VS");
    // R3 = R0.L * R1.L, R2 = R0.L * R1.L
    let pair = decode_one(isa(), &[0x0C, 0xC2, 0x81, 0x20], Svma(0)).unwrap();
    assert_eq!(shown(pair.effects), ("R0 R1 RND_MOD".into(), "R2 R3".into(), "V VS".into()));
}

#[test]
fn slots_of_a_bundle_see_the_old_registers() {
    let load = |reg, base| Op::Load { what: Load::Word, reg, addr: Address::PostIncrement(base) };
    let slots = Some([load(DPreg::R1, Preg::P0), load(DPreg::R2, Preg::P1)]);
    let bundle = BfInsn { at: 0, len: 8, op: Op::Abs { vector: false, dst: Dreg::R0, src: Dreg::R1 }, slots };
    let code = encode_insn(&bundle).unwrap();
    assert_eq!(decode(&code, 0), Ok(bundle));
    let insn = decode_one(isa(), &code, Svma(0)).unwrap();
    assert_eq!(names(insn.effects.reads), "R1 P0 P1");
    assert_eq!(names(insn.effects.kills), "R0 R1 R2 P0 P1 AZ AN V");
}

/// What the code leaves in a register or a side of the comparison, as an expression over the values before it.
fn after(code: &[u8], dst: Reg) -> Expr {
    let mut known: Vec<(Reg, Expr)> = Vec::new();
    let mut offset = 0;
    while offset < code.len() {
        let at = Svma(u64::from(AT) + offset as u64);
        let insn = decode_one(isa(), &code[offset..], at).unwrap();
        let old = known.clone();
        for set in isa().values(&code[offset..], at).sets {
            let Place::Reg(reg) = set.dst else { continue };
            known.retain(|(known, _)| *known != reg);
            known.push((reg, put(&set.value, &old)));
        }
        offset += usize::from(insn.len);
    }
    known.into_iter().find(|(reg, _)| *reg == dst).map_or(Expr::Reg(dst), |(_, value)| value)
}

fn put(expr: &Expr, known: &[(Reg, Expr)]) -> Expr {
    let go = |e: &Expr| Box::new(put(e, known));
    match expr {
        Expr::Reg(reg) => known.iter().find(|(r, _)| r == reg).map_or(Expr::Reg(*reg), |(_, value)| value.clone()),
        Expr::Const(_) | Expr::Opaque => expr.clone(),
        Expr::Load { addr, bits } => Expr::Load { addr: go(addr), bits: *bits },
        Expr::Extend { value, bits, signed } => Expr::Extend { value: go(value), bits: *bits, signed: *signed },
        Expr::Add(a, b) => Expr::Add(go(a), go(b)),
        Expr::Sub(a, b) => Expr::Sub(go(a), go(b)),
        Expr::Mul(a, by) => Expr::Mul(go(a), *by),
        Expr::And(a, mask) => Expr::And(go(a), *mask),
        Expr::Shr(a, by) => Expr::Shr(go(a), *by),
    }
}

/// The value of an expression, given registers.
fn value(expr: &Expr, regs: &dyn Fn(Reg) -> u64) -> u64 {
    let of = |e: &Expr| value(e, regs);
    match expr {
        Expr::Const(c) => *c,
        Expr::Reg(reg) => regs(*reg),
        Expr::Opaque | Expr::Load { .. } => panic!("no value: {expr:?}"),
        Expr::Extend { value, bits, signed } => {
            let up = 64 - u32::from(*bits);
            let top = of(value) << up;
            if *signed { (top as i64 >> up) as u64 } else { top >> up }
        }
        Expr::Add(a, b) => of(a).wrapping_add(of(b)),
        Expr::Sub(a, b) => of(a).wrapping_sub(of(b)),
        Expr::Mul(a, by) => of(a).wrapping_mul(*by),
        Expr::And(a, mask) => of(a) & mask,
        Expr::Shr(a, by) => of(a) >> by,
    }
}

#[test]
fn every_comparison_has_one_normal_form() {
    let interesting = [0u32, 1, 2, 3, 7, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFC, 0xFFFF_FFFF];
    let truth = |relation, l: u32, r: u32| match relation {
        Compare::Equal => l == r,
        Compare::Less => (l as i32) < r as i32,
        Compare::LessOrEqual => l as i32 <= r as i32,
        Compare::LessUnsigned => l < r,
        Compare::LessOrEqualUnsigned => l <= r,
    };
    let holds = |code: &[u8], l: u32, r: u32| {
        let regs = |reg: Reg| u64::from(if reg == Reg(0) { l } else { r });
        value(&after(code, Reg::COMPARED), &regs) < value(&after(code, Reg::COMPARED_TO), &regs)
    };
    for relation in
        [Compare::Equal, Compare::Less, Compare::LessOrEqual, Compare::LessUnsigned, Compare::LessOrEqualUnsigned]
    {
        let mut code = encode(&Op::Compare { relation, left: DPreg::R0, right: DPreg::R1 }, AT).unwrap().to_vec();
        let mut negated = code.clone();
        negated.extend_from_slice(&encode(&Op::NegateCc, AT).unwrap());
        // Arithmetic between a comparison and its branch does not matter.
        code.extend_from_slice(&encode(&Op::AddImm { dst: DPreg::R2, imm: 1 }, AT).unwrap());
        for l in interesting {
            for r in interesting {
                assert_eq!(holds(&code, l, r), truth(relation, l, r), "{l:#x} {relation:?} {r:#x}");
                assert_eq!(holds(&negated, l, r), !truth(relation, l, r), "not {l:#x} {relation:?} {r:#x}");
            }
        }
    }
    let jump = encode(&Op::Branch { cc: false, predicted: false, target: AT }, AT).unwrap();
    let guard = isa().guard(&jump, Svma(AT.into())).unwrap();
    assert_eq!(guard.relation, Relation::AboveOrEqual);
    assert_eq!((guard.left, guard.right), (Expr::Reg(Reg::COMPARED), Expr::Reg(Reg::COMPARED_TO)));
}

#[test]
fn what_is_not_a_comparison_hides_the_last_one() {
    let shift = encode(&Op::RotateImm { dst: Dreg::R0, src: Dreg::R0, by: 1 }, AT).unwrap();
    assert_eq!(after(&shift, Reg::COMPARED), Expr::Opaque);
}

#[test]
fn addresses_and_tables() {
    let mut code = Assembler::new(AT);
    code.load_address(AllReg::P1, 0x1234_5678).unwrap();
    code.op(Op::Ptr3 { op: lancet_isa::blackfin::Ptr3::AddQuadruple, dst: Preg::P2, src0: Preg::P1, src1: Preg::P2 })
        .unwrap();
    let code = code.finish();
    let regs = |_| 3;
    assert_eq!(value(&after(&code, reg("P2")), &regs), 0x1234_5678 + 12);

    let mut constants = Vec::new();
    let seen = isa().decode(&code, Svma(AT.into()), &mut |insn| {
        constants.extend(insn.mentions.iter().map(|at| at.0));
        ControlFlow::Continue(())
    });
    assert_eq!(seen, Ok(()));
    assert_eq!(constants, [0x1234_5678]);

    let frame = encode(&Op::Link { frame: 16 }, AT).unwrap();
    assert_eq!(value(&after(&frame, reg("SP")), &|_| 0x1000), 0x1000 - 24);
    assert_eq!(value(&after(&frame, reg("FP")), &|_| 0x1000), 0x1000 - 8);

    let jump = encode(&Op::JumpPcReg(Preg::P2), AT).unwrap();
    assert_eq!(value(&isa().jump_target(&jump, Svma(AT.into())).unwrap(), &|_| 6), 0x1006);
}

#[test]
fn padding() {
    assert!(isa().is_padding(&[0, 0], Svma(0)));
    assert!(isa().is_padding(&[0x03, 0xC8, 0x00, 0x18, 0, 0, 0, 0], Svma(0)));
    assert!(!isa().is_padding(&[0x10, 0], Svma(0)));
}

#[test]
fn a_listing_remembers_halves_and_goes_on_after_illegal_words() {
    let mut code = Assembler::new(AT);
    code.load_address(AllReg::P0, 0x0001_2000).unwrap();
    let mut code = code.finish();
    code.extend([0xFF, 0xFF, 0x10, 0x00, 0x00]);
    let mut lines = Vec::new();
    let name = |at: Svma| (at == Svma(0x1_2000)).then(|| "_start".to_owned());
    isa().listing(&code, Svma(AT.into()), Syntax::Gnu, &name, &mut |line| {
        lines.push(format!("{} {}", line.at, line.text));
    });
    assert_eq!(
        lines,
        [
            "0x1000 P0.L = 0x2000;\t\t/* (8192)\tP0=0x2000 */",
            "0x1004 P0.H = 0x1;\t\t/* (  1)\tP0=0x12000 <_start> */",
            "0x1008 ILLEGAL;",
            "0x100a RTS;",
            "0x100c ILLEGAL;",
        ]
    );
}
