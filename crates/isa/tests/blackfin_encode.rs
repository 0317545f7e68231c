//! What was decoded can be encoded again.

mod blackfin_rows;

use std::path::Path;

use blackfin_rows::{rows_of_folder, sample_folder};
use lancet_isa::blackfin::{AllReg, Assembler, Disassembler, EncodeError, Loop, LoopCount, Op, Preg};
use lancet_isa::blackfin::{BfInsn, decode, encode, encode_insn};

/// Operations whose word has bits that mean nothing, and those bits (first half on top). The encoder has one value for
/// them, the GNU assembler's, so only such words come back the same. `Rotate` has two codes, of which it uses one.
const UNUSED_BITS: &[(&str, u32)] = &[
    ("Abort", 0x0038_0000),
    ("Abs", 0x0020_31C7),
    ("AccAbs", 0x0000_3FFF),
    ("AccAbsBoth", 0x0000_3FFF),
    ("AccAccumulate", 0x0020_1FFF),
    ("AccAccumulateTo", 0x0020_31FF),
    ("AccAccumulateToHalf", 0x0000_31FF),
    ("AccAddHalves", 0x0020_303F),
    ("AccAddSub", 0x0020_003F),
    ("AccClear", 0x0020_1FFF),
    ("AccCopy", 0x0020_1FFF),
    ("AccGetExt", 0x0020_31FF),
    ("AccNeg", 0x0000_3FFF),
    ("AccNegBoth", 0x0000_3FFF),
    ("AccSaturate", 0x0020_1FFF),
    ("AccSet", 0x0020_1FC7),
    ("AccSetExt", 0x0020_1FC7),
    ("AccSetHalf", 0x0000_1FC7),
    ("Add", 0x0020_01C0),
    ("AddHalf", 0x0000_01C0),
    ("AddRound", 0x0000_21C0),
    ("AddSub", 0x0020_0000),
    ("Align", 0x0060_3000),
    ("Bitmux", 0x0060_3E00),
    ("Bxor", 0x0060_3007),
    ("BxorAcc", 0x0060_303F),
    ("BxorShift", 0x0060_3007),
    ("BxorShiftAcc", 0x0060_3E3F),
    ("ByteAdd", 0x0020_1000),
    ("ByteAddClip", 0x0000_11C0),
    ("ByteAverage", 0x0020_11C0),
    ("ByteAverage4", 0x0000_11C0),
    ("BytePack", 0x0020_31C0),
    ("ByteUnpack", 0x0020_1007),
    ("Dbg", 0x0038_0000),
    ("DbgAcc", 0x0038_0000),
    ("DbgHalt", 0x0038_0000),
    ("Deposit", 0x0060_3000),
    ("Disalgnexcpt", 0x0020_3FFF),
    ("Expadj", 0x0060_3000),
    ("ExpadjHalf", 0x0060_3000),
    ("Extract", 0x0060_3000),
    ("Hlt", 0x0038_0000),
    ("LoopSetup", 0x0000_7000),
    ("Max", 0x0020_31C0),
    ("Min", 0x0020_31C0),
    ("Mult", 0x0003_1800),
    ("Neg", 0x0000_11C7),
    ("Ones", 0x0060_3038),
    ("Pack", 0x0060_3000),
    ("Rotate", 0x0061_3000),
    ("RotateImm", 0x0060_3000),
    ("Round", 0x0000_31C7),
    ("Saa", 0x0020_1FC0),
    ("Search", 0x0020_3007),
    ("Shift", 0x0060_3000),
    ("ShiftAcc", 0x0060_2E07),
    ("ShiftAccImm", 0x0060_0E07),
    ("ShiftHalf", 0x0060_0000),
    ("ShiftHalfImm", 0x0060_0000),
    ("ShiftImm", 0x0060_3000),
    ("ShiftVec", 0x0060_3000),
    ("ShiftVecImm", 0x0060_3000),
    ("SignMultiply", 0x0020_31C0),
    ("Signbits", 0x0060_3038),
    ("SignbitsAcc", 0x0060_303F),
    ("SignbitsHalf", 0x0060_3038),
    ("Unlink", 0x0000_FFFF),
    ("VecAdd", 0x0020_01C0),
    ("VecNeg", 0x0000_31C7),
    ("VitMax", 0x0060_3038),
    ("VitMax2", 0x0060_3000),
];

fn unused_bits(op: &Op) -> u32 {
    let all = format!("{op:?}");
    let name = all.split([' ', '(']).next().unwrap_or_default();
    UNUSED_BITS.iter().find(|(known, _)| *known == name).map_or(0, |(_, bits)| *bits)
}

/// The first four bytes as one word, first half on top.
fn head(code: &[u8]) -> u32 {
    let half = |at: usize| code.get(at..at + 2).map_or(0, |b| u32::from(u16::from_le_bytes([b[0], b[1]])));
    half(0) << 16 | half(2)
}

fn round_trip(folder: &Path) {
    let mut legal = 0;
    for (file, rows) in rows_of_folder(folder) {
        for row in rows {
            let Ok(insn) = decode(&row.padded_code(), row.at) else { continue };
            legal += 1;
            let place = format!("{file}: {} {}", row.hex, row.text);
            let again = encode_insn(&insn).unwrap_or_else(|e| panic!("{place}: {e}"));
            assert_eq!(decode(&again, row.at).as_ref(), Ok(&insn), "{place}");
            assert_eq!(again.len(), usize::from(insn.len), "{place}");
            let changed = head(&again) ^ head(&row.code[..again.len()]);
            assert_eq!(changed & !unused_bits(&insn.op), 0, "{place}: changed {changed:08x}");
            assert_eq!(again.get(4..), row.code.get(4..again.len()), "{place}: slots");
        }
    }
    assert!(legal > 1000, "only {legal} legal rows");
}

#[test]
fn sample_rows_survive_decoding_and_encoding() {
    round_trip(&sample_folder());
}

#[test]
fn all_rows_of_a_folder_survive_decoding_and_encoding() {
    match std::env::var_os("LANCET_BLACKFIN_DECODE") {
        Some(folder) => round_trip(folder.as_ref()),
        None => eprintln!("skipped: LANCET_BLACKFIN_DECODE names no folder"),
    }
}

fn listing(code: &[u8], start: u32) -> Vec<String> {
    let mut disassembler = Disassembler::new();
    let (mut offset, mut lines) = (0, Vec::new());
    while offset < code.len() {
        let line = disassembler.line(&code[offset..], start + offset as u32, &|_| None).unwrap();
        offset += usize::from(line.len);
        lines.push(line.text.split(';').next().unwrap().to_owned());
    }
    lines
}

#[test]
fn assembler_takes_the_short_form_that_reaches() {
    let mut code = Assembler::new(0x1000);
    code.raise(14).unwrap();
    code.jump(0x1800).unwrap().jump(0x9000).unwrap().call(0x2_0000).unwrap();
    code.push(AllReg::Rets).unwrap().push(AllReg::R3).unwrap();
    code.pop(AllReg::R3).unwrap().pop(AllReg::Rets).unwrap();
    code.load(AllReg::P1, 63).unwrap();
    code.load(AllReg::L0, 0).unwrap();
    code.load(AllReg::R0, 0xFFFF_8000).unwrap();
    code.load(AllReg::R0, 0xFFFF).unwrap();
    code.load(AllReg::P0, 0xFFE0_2000).unwrap();
    code.loop_setup(Loop::Loop1, code.here() + 4, code.here() + 8, LoopCount::HalfReg(Preg::P2)).unwrap();
    assert_eq!(
        listing(&code.finish(), 0x1000),
        [
            "RAISE 0xe",
            "JUMP.S 0x1800",
            "JUMP.L 0x9000",
            "CALL 0x20000",
            "[--SP] = RETS",
            "[--SP] = R3",
            "R3 = [SP++]",
            "RETS = [SP++]",
            "P1 = 0x3f (X)",
            "L0 = 0x0 (X)",
            "R0 = -0x8000 (X)",
            "R0 = 0xffff (Z)",
            "P0.L = 0x2000",
            "P0.H = 0xffe0",
            "LSETUP(0x102e, 0x1032) LC1 = P2 >> 0x1",
        ]
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let far = Op::JumpShort { target: 0x2000 };
    assert_eq!(encode(&far, 0x1000), Err(EncodeError::OutOfReach { at: 0x1000, target: 0x2000 }));
    assert!(encode(&Op::JumpShort { target: 0x1FFE }, 0x1000).is_ok());
    assert!(encode(&Op::JumpShort { target: 0x1801 }, 0x1000).is_err(), "odd");
    let backwards = Op::LoopSetup { which: Loop::Loop0, first: 0xFF0, last: 0x1010, count: LoopCount::Keep };
    assert!(encode(&backwards, 0x1000).is_err());
    assert!(encode(&Op::Raise(16), 0).is_err());
    assert!(encode(&Op::Push(AllReg::Sp), 0).is_err());
    assert!(encode(&Op::Move { dst: AllReg::Lc0, src: AllReg::Reti }, 0).is_err());
    let bundle = BfInsn { at: 0, len: 8, op: Op::Mnop, slots: Some([Op::Nop, Op::Raise(1)]) };
    assert!(encode_insn(&bundle).is_err());
    let bundle = BfInsn { slots: Some([Op::Nop, Op::Nop]), ..bundle };
    assert_eq!(&*encode_insn(&bundle).unwrap(), [0x03, 0xC8, 0x00, 0x18, 0, 0, 0, 0]);
}
