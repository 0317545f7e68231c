//! Panics that unwind through cleanups and are caught; trait objects, generics and threads.
use std::cell::RefCell;
use std::fmt::{Debug, Display};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::{Arc, Mutex, mpsc};

thread_local! {
    static DROPPED: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

struct Guard(u32);

impl Drop for Guard {
    fn drop(&mut self) {
        DROPPED.with_borrow_mut(|dropped| dropped.push(self.0));
    }
}

trait Animal: Debug {
    fn name(&self) -> String;
    fn legs(&self) -> u32 {
        4
    }
    fn speak(&self, times: usize) -> String {
        self.name().repeat(times)
    }
}

#[derive(Debug)]
struct Dog;
#[derive(Debug)]
struct Bird {
    wings: u32,
}
#[derive(Debug)]
struct Snake(Vec<u8>);

impl Animal for Dog {
    fn name(&self) -> String {
        "dog".into()
    }
}
impl Animal for Bird {
    fn name(&self) -> String {
        format!("bird with {} wings", self.wings)
    }
    fn legs(&self) -> u32 {
        self.wings.checked_sub(1).map_or(0, |n| n + 1)
    }
}
impl Animal for Snake {
    fn name(&self) -> String {
        self.0.iter().map(|&b| (b'a' + b) as char).collect()
    }
    fn legs(&self) -> u32 {
        0
    }
    fn speak(&self, times: usize) -> String {
        "s".repeat(self.0[times] as usize)
    }
}

fn describe(animals: &[Box<dyn Animal>]) -> usize {
    animals.iter().map(|a| a.speak(a.legs() as usize).len() + format!("{a:?}").len()).sum()
}

#[inline(never)]
fn fails(n: usize, values: &[usize]) -> usize {
    let _guard = Guard(n as u32);
    match n % 8 {
        0 => values[n],
        1 => values[n % values.len()] / (n - 1),
        2 => panic!("two: {n}"),
        3 => values.iter().find(|&&v| v == n).copied().expect("no such value"),
        4 => {
            let _second = Guard(100);
            u8::try_from(n * 100).unwrap() as usize
        }
        5 => resume_unwind(Box::new(n)),
        6 => {
            let cell = RefCell::new(n);
            let _held = cell.borrow_mut();
            *cell.borrow()
        }
        _ => n.checked_add(values[0]).unwrap(),
    }
}

#[inline(never)]
fn caught(n: usize, values: &[usize]) -> String {
    let outer = Guard(1000);
    let result = catch_unwind(AssertUnwindSafe(|| {
        let _inner = Guard(2000);
        fails(n, values) + fails(n + 7, values)
    }));
    drop(outer);
    match result {
        Ok(value) => format!("value {value}"),
        Err(payload) => match payload.downcast::<String>() {
            Ok(text) => format!("text {}", text.len()),
            Err(other) => match other.downcast::<usize>() {
                Ok(number) => format!("number {number}"),
                Err(_) => "something".to_string(),
            },
        },
    }
}

#[inline(never)]
fn largest<T: PartialOrd + Copy + Display>(items: &[T]) -> String {
    let mut best = items[0];
    for &item in items {
        if item > best {
            best = item
        }
    }
    best.to_string()
}

fn threads() -> u64 {
    let total = Arc::new(Mutex::new(0u64));
    let (send, receive) = mpsc::channel();
    let workers: Vec<_> = (0..3u64)
        .map(|id| {
            let (total, send) = (Arc::clone(&total), send.clone());
            std::thread::spawn(move || {
                *total.lock().unwrap() += id;
                send.send(id * 10).unwrap();
            })
        })
        .collect();
    drop(send);
    let sum: u64 = receive.iter().sum();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    sum + *total.lock().unwrap()
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let animals: Vec<Box<dyn Animal>> =
        vec![Box::new(Dog), Box::new(Bird { wings: 2 }), Box::new(Snake(vec![3, 1, 4]))];
    let values: Vec<usize> = (0..9).collect();
    let shared = Rc::new(RefCell::new(Vec::new()));
    for n in 0..40 {
        shared.borrow_mut().push(caught(n, &values));
    }
    let texts = shared.borrow().concat().len();
    let best = largest(&[3, 1, 2]) + &largest(&[0.5, 2.5]) + &largest(&['x', 'y']);
    let dropped = DROPPED.with_borrow(|dropped| dropped.iter().map(|&n| n as u64).sum::<u64>());
    println!("panics {} {texts} {best} {dropped} {}", describe(&animals), threads());
}
