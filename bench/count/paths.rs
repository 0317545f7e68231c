//! A workload in Rust: shortest paths on a generated grid, words counted in a map, trait objects, a caught panic.
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

const SIDE: usize = 160;

struct Generator(u64);

impl Generator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }
}

trait Cost {
    fn of(&self, from: usize, to: usize) -> u64;
}

struct Terrain(Vec<u64>);
struct Flat;

impl Cost for Terrain {
    fn of(&self, from: usize, to: usize) -> u64 {
        1 + self.0[from].abs_diff(self.0[to])
    }
}

impl Cost for Flat {
    fn of(&self, _: usize, _: usize) -> u64 {
        1
    }
}

fn neighbours(at: usize) -> impl Iterator<Item = usize> {
    let (x, y) = (at % SIDE, at / SIDE);
    let left = (x > 0).then(|| at - 1);
    let right = (x + 1 < SIDE).then(|| at + 1);
    let up = (y > 0).then(|| at - SIDE);
    let down = (y + 1 < SIDE).then(|| at + SIDE);
    [left, right, up, down].into_iter().flatten()
}

fn farthest(cost: &dyn Cost) -> u64 {
    let mut best = vec![u64::MAX; SIDE * SIDE];
    let mut queue = BinaryHeap::from([Reverse((0, 0))]);
    best[0] = 0;
    while let Some(Reverse((so_far, at))) = queue.pop() {
        if so_far > best[at] {
            continue;
        }
        for to in neighbours(at) {
            let length = so_far + cost.of(at, to);
            if length < best[to] {
                best[to] = length;
                queue.push(Reverse((length, to)));
            }
        }
    }
    best.into_iter().max().unwrap_or(0)
}

fn main() {
    let rounds: u64 = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1);
    std::panic::set_hook(Box::new(|_| {}));
    let mut lengths: BTreeMap<String, u64> = BTreeMap::new();
    let mut panics = 0;
    for round in 0..rounds {
        let mut generator = Generator(round);
        let heights = (0..SIDE * SIDE).map(|_| generator.next() % 50).collect();
        let costs: [Box<dyn Cost>; 2] = [Box::new(Terrain(heights)), Box::new(Flat)];
        for cost in &costs {
            *lengths.entry(format!("length {}", farthest(cost.as_ref()) % 64)).or_default() += 1;
        }
        let none: Vec<u64> = Vec::new();
        panics += u64::from(std::panic::catch_unwind(|| none[std::hint::black_box(3)]).is_err());
    }
    println!("{} {} {panics}", lengths.len(), lengths.values().sum::<u64>());
}
