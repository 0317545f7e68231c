//! What the commands say of the sample program, compared with files. `BLESS=1` writes the files anew.

use std::fs;

use crate::{lancet_line, testdata};

/// File, and the command whose output it has.
const GOLDEN: &[(&str, &str)] = &[
    ("functions.txt", "functions sample.elf"),
    ("functions.json", "functions sample.elf --json"),
    ("functions-by-loops.txt", "functions sample.elf --sort loops --filter ^s"),
    ("functions-partial.txt", "functions sample.elf --partial"),
    ("summary.txt", "functions sample.elf --summary"),
    ("summary.json", "functions sample.elf --summary --json"),
    ("loops.txt", "loops sample.elf"),
    ("loops.json", "loops sample.elf --json"),
    ("loops-sort.txt", "loops sample.elf sort"),
    ("loops-spiral.txt", "loops sample.elf spiral"),
    ("cfg-calculate.txt", "cfg sample.elf calculate"),
    ("cfg-calculate.json", "cfg sample.elf calculate --format json"),
    ("cfg-sort.txt", "cfg sample.elf sort --format text"),
    ("cfg-sort.dot", "cfg sample.elf sort --format dot"),
    ("cfg-calculate.dot", "cfg sample.elf calculate --format dot --block-lines 4 --syntax intel"),
    ("cfg-all.txt", "cfg sample.elf --all"),
    ("cfg-all.json", "cfg sample.elf --all --json"),
    ("disasm-calculate.txt", "disasm sample.elf calculate"),
    ("disasm-main.txt", "disasm sample.elf main --syntax intel --bytes"),
    ("disasm-spiral.txt", "disasm sample.elf spiral --liveness"),
    ("disasm-spiral.json", "disasm sample.elf spiral --liveness --json"),
    ("disasm-leap.txt", "disasm sample.elf leap"),
];

#[test]
fn outputs_are_as_recorded() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut differ = Vec::new();
    for (file, line) in GOLDEN {
        let path = testdata().join("golden").join(file);
        let output = lancet_line(line).good();
        if bless {
            fs::write(&path, &output).expect("the golden file can be written");
        }
        let recorded = fs::read_to_string(&path).unwrap_or_default();
        if output != recorded {
            let first = output.lines().zip(recorded.lines()).position(|(a, b)| a != b);
            differ.push(format!("lancet {line}: differs from {file} in line {}", first.map_or(0, |line| line + 1)));
        }
    }
    assert!(differ.is_empty(), "{}\nBLESS=1 records the new output", differ.join("\n"));
}

#[test]
fn every_golden_file_belongs_to_a_command() {
    for entry in fs::read_dir(testdata().join("golden")).expect("the folder is there") {
        let name = entry.expect("an entry").file_name();
        assert!(GOLDEN.iter().any(|(file, _)| name == *file), "{name:?} is not used");
    }
}

#[test]
fn nothing_depends_on_the_number_of_threads() {
    for line in ["functions sample.elf --json", "cfg sample.elf --all --json"] {
        let one = lancet_line(&format!("{line} --threads 1")).good();
        assert_eq!(one, lancet_line(&format!("{line} --threads 4")).good());
    }
}
