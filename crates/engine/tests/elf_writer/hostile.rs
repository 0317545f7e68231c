//! Files with broken headers: an error or an output, never a panic.

use lancet_engine::image::Image;
use lancet_engine::sink::elf_writer::{first_free, hook, write_to_vec};

use crate::patches::{announce, idle};
use crate::support::Bench;

/// A fixed sequence of numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

#[test]
fn broken_headers_never_panic() {
    let source = "#include <cstdio>\nint main() { puts(\"x\"); }";
    let bench = Bench::new();
    let (mut tried, mut written) = (0, 0);
    for (name, flags) in [("pie", &["-pie"][..]), ("fixed", &["-no-pie"]), ("library", &["-shared", "-fPIC"])] {
        let sound = std::fs::read(bench.compile("g++", source, name, flags)).expect("the program");
        let image = Image::from_bytes(name, sound.clone()).expect("a sound file");
        let dynamic =
            image.section(".dynamic").and_then(|section| section.offset).expect("a dynamic section").0 as usize;
        let headers = sound.len() - 64 * image.sections().len();
        let places = [(0, 0x400), (dynamic, 0x1f0), (headers, sound.len() - headers)];
        let mut numbers = Numbers(7);
        for _ in 0..2000 {
            let mut bytes = sound.clone();
            for _ in 0..1 + numbers.below(3) {
                let (start, len) = places[numbers.below(places.len())];
                let at = start + numbers.below(len);
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1, bytes[at] ^ 0x10][numbers.below(7)];
            }
            let Ok(image) = Image::from_bytes(name, bytes) else { continue };
            if first_free(&image).is_err() {
                continue;
            }
            tried += 1;
            let patch = if hook(&image).is_ok() { announce(&image, "x") } else { idle(&image) };
            written += usize::from(write_to_vec(&image, &patch).is_ok());
        }
    }
    assert!(tried > 1000 && written > 500 && written < tried, "{tried} tried, {written} written");
}
