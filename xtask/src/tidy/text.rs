//! Rules about files of any kind.
//!
//! - No path of somebody's machine, in text or in binary test data (debug information tells where it was compiled).
//! - No package registry but the one everybody has.
//! - No source file past 800 lines. Test data may be as long as it needs.

use super::{File, Findings};

const MAX_LINES: usize = 800;
const SOURCE_EXTENSIONS: &[&str] = &["rs", "c", "cc", "h", "S", "s", "sh", "toml", "md"];

// Written in halves: this file is checked too.
const LOCAL_FOLDERS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
const REGISTRY_MARKS: &[&str] =
    &[concat!("regis", "try+"), concat!("spar", "se+"), concat!("replace", "-with"), concat!("[regis", "tries")];
const PUBLIC_REGISTRY: &str = concat!("regis", "try+https://github.com/rust-lang/crates.io-index\"");

pub(super) fn check(file: &File, findings: &mut Findings) {
    for (number, line) in file.content.split(|&b| b == b'\n').enumerate() {
        for folder in LOCAL_FOLDERS {
            if names_folder(line, folder.as_bytes()) {
                findings.add(number + 1, format!("a path of somebody's machine ({folder})"));
            }
        }
        if names_registry(&String::from_utf8_lossy(line)) {
            findings.add(number + 1, "a package registry of somebody's machine");
        }
    }
    let is_source = !file.path.starts_with("testdata/")
        && file.path.rsplit_once('.').is_some_and(|(_, extension)| SOURCE_EXTENSIONS.contains(&extension));
    let lines = file.content.iter().filter(|&&b| b == b'\n').count();
    // Test data is not written by hand: a picture as a C array is as long as it is.
    let is_data = file.path.starts_with("testdata/");
    if is_source && !is_data && lines > MAX_LINES {
        findings.add(MAX_LINES + 1, format!("the file has {lines} lines; {MAX_LINES} is the limit"));
    }
}

/// Whether an absolute path into `folder` is in the line; the same words inside a longer path are none.
fn names_folder(line: &[u8], folder: &[u8]) -> bool {
    line.windows(folder.len()).enumerate().any(|(at, window)| {
        let inside_path = at.checked_sub(1).and_then(|before| line.get(before)).is_some_and(|&b| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'~' | b'*' | b'}' | b')' | b'>')
        });
        window == folder && !inside_path
    })
}

fn names_registry(line: &str) -> bool {
    let without_public = line.replace(PUBLIC_REGISTRY, "");
    REGISTRY_MARKS.iter().any(|mark| without_public.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::super::rules_broken;
    use super::*;

    #[test]
    fn local_paths_are_found_in_text_and_binary() {
        for folder in LOCAL_FOLDERS {
            let rule = format!("a path of somebody's machine ({folder})");
            assert_eq!(rules_broken("README.md", &format!("fine\nsee {folder}x\n")), [format!("2: {rule}")]);
            assert_eq!(rules_broken("testdata/a.elf", &format!("\0\0{folder}x\0")), [format!("1: {rule}")]);
            assert_eq!(rules_broken("README.md", &format!("frame{folder}x ../a{folder}\n")), [""; 0]);
        }
    }

    #[test]
    fn only_the_public_registry_may_be_named() {
        let lock = format!("source = \"{PUBLIC_REGISTRY}\n");
        assert_eq!(rules_broken("Cargo.lock", &lock), [""; 0]);
        let rule = "1: a package registry of somebody's machine";
        for mark in REGISTRY_MARKS {
            assert_eq!(rules_broken("Cargo.lock", &format!("\"{mark}https://example.org/index\"")), [rule]);
        }
    }

    #[test]
    fn long_files_are_found() {
        let long = "//! Long.\n".repeat(MAX_LINES);
        assert_eq!(rules_broken("crates/isa/src/a.rs", &long), [""; 0]);
        assert_eq!(
            rules_broken("crates/isa/src/a.rs", &(long + "//!\n")),
            ["801: the file has 801 lines; 800 is the limit"]
        );
        assert_eq!(rules_broken("Cargo.lock", &"\n".repeat(5000)), [""; 0]);
        assert_eq!(rules_broken("testdata/x86_64/table.h", &"\n".repeat(5000)), [""; 0]);
    }
}
