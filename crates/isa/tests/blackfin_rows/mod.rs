//! Reads files of raw words and their text.
//!
//! Shared by several tests, none of which uses all of it.
#![allow(dead_code)]

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

pub struct Row {
    pub at: u32,
    pub hex: String,
    pub code: Vec<u8>,
    pub text: String,
}

impl Row {
    /// The bytes, and NOPs behind them.
    pub fn padded_code(&self) -> Vec<u8> {
        let mut code = self.code.clone();
        code.extend([0; 8]);
        code
    }
}

/// The golden files of the project.
pub fn sample_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/blackfin/decode")
}

/// The rows of every `.tsv.gz` in a folder, by file name.
pub fn rows_of_folder(folder: &Path) -> Vec<(String, Vec<Row>)> {
    let listing = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = listing.map(|entry| entry.expect("a readable folder").path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".tsv.gz"));
    files.sort();
    assert!(!files.is_empty(), "{} has no .tsv.gz", folder.display());
    files.iter().map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), rows_of_file(path))).collect()
}

fn rows_of_file(path: &Path) -> Vec<Row> {
    let file = std::fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut all = String::new();
    GzDecoder::new(file).read_to_string(&mut all).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    all.lines().map(|line| row(line).unwrap_or_else(|| panic!("{}: not a row: {line}", path.display()))).collect()
}

/// The text may itself have tabs.
fn row(line: &str) -> Option<Row> {
    let mut columns = line.splitn(3, '\t');
    let at = u32::from_str_radix(columns.next()?.strip_prefix("0x")?, 16).ok()?;
    let hex = columns.next()?.to_owned();
    let code =
        (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(hex.get(i..i + 2)?, 16).ok()).collect::<Option<_>>()?;
    Some(Row { at, hex, code, text: columns.next()?.to_owned() })
}
