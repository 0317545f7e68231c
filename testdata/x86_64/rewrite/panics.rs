// Panics that unwind through frames of all sorts, and iterators, strings and collections for the optimizer.
use std::collections::{BTreeMap, HashMap};
use std::panic::{self, AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Guard(&'static str);
impl Drop for Guard {
    fn drop(&mut self) {
        DROPPED.fetch_add(self.0.len(), Ordering::Relaxed);
    }
}

trait Shape {
    fn area(&self, scale: u64) -> u64;
}
struct Square(u64);
struct Disc(u64);
impl Shape for Square {
    fn area(&self, scale: u64) -> u64 {
        let _guard = Guard("square");
        (self.0 * self.0).checked_mul(scale).expect("too large")
    }
}
impl Shape for Disc {
    fn area(&self, scale: u64) -> u64 {
        let _guard = Guard("disc");
        if self.0 == 3 { panic!("no disc of {}", self.0) }
        3 * self.0 * self.0 * scale
    }
}

#[inline(never)]
fn deep(depth: u32, values: &[u32]) -> u32 {
    let _guard = Guard("deep");
    match depth {
        0 => values[values.len()],
        n if n % 4 == 3 => match catch_unwind(|| deep(n - 1, values)) {
            Ok(value) => value,
            Err(cause) => resume_unwind(cause),
        },
        n => deep(n - 1, values) + 1,
    }
}

#[inline(never)]
fn classify(byte: u8) -> &'static str {
    match byte {
        b'0'..=b'9' => "digit",
        b'a' | b'e' | b'i' | b'o' | b'u' => "vowel",
        b'a'..=b'z' => "letter",
        b' ' | b'\t' => "space",
        b'+' => "plus",
        b'-' => "minus",
        _ => "other",
    }
}

fn main() {
    panic::set_hook(Box::new(|info| println!("panic at line {}", info.location().map_or(0, |place| place.line()))));
    let shapes: Vec<Box<dyn Shape>> = (0..8).map(|i| -> Box<dyn Shape> {
        if i % 2 == 0 { Box::new(Square(i)) } else { Box::new(Disc(i)) }
    }).collect();
    let mut total = 0u64;
    for scale in [1, 5, u64::MAX / 2] {
        for shape in &shapes {
            match catch_unwind(AssertUnwindSafe(|| shape.area(scale))) {
                Ok(area) => total = total.wrapping_add(area),
                Err(_) => total += 1,
            }
        }
    }
    println!("areas {total}");
    println!("deep {}", catch_unwind(|| deep(17, &[1, 2, 3])).is_err());
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    "a bit of text, 12+34-5".bytes().for_each(|byte| *kinds.entry(classify(byte)).or_default() += 1);
    println!("{kinds:?}");
    let squares: HashMap<u32, u32> = (0..50).map(|i| (i, i * i)).collect();
    let mut odd: Vec<u32> = squares.values().copied().filter(|square| square % 2 == 1).collect();
    odd.sort_unstable();
    println!("{} {:?}", odd.len(), odd.iter().rev().take(3).collect::<Vec<_>>());
    println!("dropped {}", DROPPED.load(Ordering::Relaxed));
    if std::env::args().count() > 1 {
        panic!("nobody catches this");
    }
    std::process::exit((total % 50) as i32);
}
