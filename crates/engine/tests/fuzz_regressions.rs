//! Replays every input that a fuzzer once found trouble with.

use std::path::Path;

#[path = "../../../fuzz/src/exercise.rs"]
mod exercise;
#[path = "../../../fuzz/src/exercise_blackfin.rs"]
mod exercise_blackfin;

fn replay(target: &str, exercise: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fuzz-regressions").join(target);
    let mut inputs = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        exercise(&std::fs::read(&path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "no inputs in {}", folder.display());
}

#[test]
fn image_findings_stay_fixed() {
    replay("image", exercise::image);
}

#[test]
fn program_findings_stay_fixed() {
    replay("program", exercise::program);
}

#[test]
fn blackfin_decoder_findings_stay_fixed() {
    replay("blackfin", exercise_blackfin::decoder);
}

#[test]
fn simulator_findings_stay_fixed() {
    replay("simulator", exercise_blackfin::simulator);
}
