//! The text of Blackfin instructions equals GNU objdump's, word for word.
//!
//! `testdata/blackfin/decode` has a sample of what objdump (binutils 2.40) printed for raw words: address, bytes in
//! memory order, text; legal and illegal ones. `LANCET_BLACKFIN_DECODE` may name a folder with more such files.

mod blackfin_rows;

use blackfin_rows::{Row, rows_of_folder, sample_folder};
use lancet_isa::blackfin::{AllReg, Disassembler, ImmPart, Op, decode};

#[test]
fn sample_rows_print_as_objdump_does() {
    compare(&sample_folder());
}

#[test]
fn all_rows_of_a_folder_print_as_objdump_does() {
    match std::env::var_os("LANCET_BLACKFIN_DECODE") {
        Some(folder) => compare(folder.as_ref()),
        None => eprintln!("skipped: LANCET_BLACKFIN_DECODE names no folder"),
    }
}

fn compare(folder: &std::path::Path) {
    let mut different = Vec::new();
    for (file, rows) in rows_of_folder(folder) {
        let mut count = 0;
        for row in &rows {
            let text = print(row);
            if text != row.text {
                count += 1;
                different.push(format!("{:#x} {}: {text:?} is not {:?}", row.at, row.hex, row.text));
            }
        }
        println!("{file}: {} rows, {count} differ", rows.len());
    }
    let shown = different.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(different.is_empty(), "{} rows differ:\n{shown}", different.len());
}

fn print(row: &Row) -> String {
    let mut disassembler = Disassembler::new();
    if let Some((reg, value)) = earlier_constant(row) {
        disassembler.assume(reg, value);
    }
    disassembler.line(&row.padded_code(), row.at, &|_| None).expect("the code is long enough").text
}

/// A load of half a register shows what objdump remembered of the other half from rows before it, which may not be
/// among ours. So that half is taken from the row itself.
fn earlier_constant(row: &Row) -> Option<(AllReg, u32)> {
    let Op::LoadImm { dst, part: ImmPart::Lo | ImmPart::Hi, .. } = decode(&row.padded_code(), row.at).ok()?.op else {
        return None;
    };
    let (_, value) = row.text.split_once("=0x")?;
    let digits = value.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(value.len());
    Some((dst, u32::from_str_radix(&value[..digits], 16).ok()?))
}
