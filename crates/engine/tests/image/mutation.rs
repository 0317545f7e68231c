//! Real files with some bytes changed at random, a few thousand times: opening and asking everything must end.
//!
//! Headers and tables are small parts of a file, so half of the changes go to its first kilobyte, to the section
//! headers and to the tables that the first undamaged look found.

use std::ops::Range;

use lancet_engine::image::Image;

use crate::support::{build, open, touch_everything};
use crate::tiny_elf::{X86_64, tiny_elf};

const ROUNDS: usize = 1500;

/// xorshift64*: the same changes in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit.max(1)
    }
}

fn mutate(whole: &[u8], seed: u64) -> (usize, usize) {
    let interesting = interesting_ranges(whole);
    let mut random = Random(seed);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..ROUNDS {
        let mut bytes = whole.to_vec();
        for _ in 0..1 + random.below(6) {
            let range = match random.below(2) {
                0 => interesting[random.below(interesting.len())].clone(),
                _ => 0..bytes.len(),
            };
            let at = range.start + random.below(range.len());
            bytes[at] = match random.below(4) {
                0 => 0xff,
                1 => 0,
                2 => bytes[at] ^ 1 << random.below(8),
                _ => random.below(256) as u8,
            };
        }
        match Image::from_bytes("mutated", bytes) {
            Ok(image) => {
                touch_everything(&image);
                accepted += 1;
            }
            Err(error) => {
                let error = error.to_string();
                assert!(error.starts_with("mutated: ") && !error.contains('\n'), "{error}");
                refused += 1;
            }
        }
    }
    (accepted, refused)
}

fn interesting_ranges(whole: &[u8]) -> Vec<Range<usize>> {
    let image = Image::from_bytes("whole", whole.to_vec()).unwrap_or_else(|error| panic!("{error}"));
    let in_file = |section: &lancet_engine::image::Section| {
        let start = section.offset?.0 as usize;
        (section.size != 0 && !section.is_executable()).then(|| start..start + section.size as usize)
    };
    let mut ranges: Vec<_> = image.sections().iter().filter_map(in_file).collect();
    ranges.push(0..1024.min(whole.len()));
    ranges.push(whole.len().saturating_sub(64 * image.sections().len())..whole.len());
    ranges
}

#[test]
fn of_the_tiny_file() {
    let (accepted, refused) = mutate(&tiny_elf(X86_64).bytes, 0x1234_5678_9abc_def1);
    assert!(accepted > 0 && refused > 0, "{accepted} accepted, {refused} refused");
}

#[test]
fn of_a_system_program() {
    let image = open("/usr/bin/true".as_ref());
    let (accepted, refused) = mutate(image.data(), 0x0f1e_2d3c_4b5a_6978);
    assert!(accepted > 0 && refused > 0, "{accepted} accepted, {refused} refused");
}

#[test]
fn of_a_program_with_exceptions_and_lines() {
    let built = build(&["-O2", "-g", "-Wl,-z,pack-relative-relocs"]);
    let (accepted, refused) = mutate(open(&built.path).data(), 0x7777_1111_3333_5555);
    assert!(accepted > 0 && refused > 0, "{accepted} accepted, {refused} refused");
}
