//! Matches of every shape, closures and iterators.
#![allow(dead_code)]

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::hint::black_box;

#[derive(Clone, Debug)]
enum Op {
    Push(i64),
    Add,
    Sub,
    Mul,
    Div,
    Neg,
    Dup,
    Swap,
    Drop,
    Jump(usize),
    JumpIfZero(usize),
    Store(String),
    Load(String),
    Call(fn(i64) -> i64),
    Halt,
}

#[derive(Debug)]
enum Fault {
    Empty(usize),
    DivisionByZero { at: usize },
    Unknown(String),
    NoProgress,
}

fn run(code: &[Op], budget: usize) -> Result<Vec<i64>, Fault> {
    let mut stack = Vec::new();
    let mut names: HashMap<String, i64> = HashMap::new();
    let mut pc = 0;
    for _ in 0..budget {
        let Some(op) = code.get(pc) else { return Ok(stack) };
        let at = pc;
        pc += 1;
        let mut pop = || stack.pop().ok_or(Fault::Empty(at));
        match op {
            Op::Push(n) => stack.push(*n),
            Op::Add => {
                let (b, a) = (pop()?, pop()?);
                stack.push(a.wrapping_add(b))
            }
            Op::Sub => {
                let (b, a) = (pop()?, pop()?);
                stack.push(a.wrapping_sub(b))
            }
            Op::Mul => {
                let (b, a) = (pop()?, pop()?);
                stack.push(a.wrapping_mul(b))
            }
            Op::Div => {
                let (b, a) = (pop()?, pop()?);
                stack.push(a.checked_div(b).ok_or(Fault::DivisionByZero { at })?)
            }
            Op::Neg => {
                let a = pop()?;
                stack.push(-a)
            }
            Op::Dup => {
                let a = pop()?;
                stack.extend([a, a])
            }
            Op::Swap => {
                let (b, a) = (pop()?, pop()?);
                stack.extend([b, a])
            }
            Op::Drop => {
                pop()?;
            }
            Op::Jump(to) => pc = *to,
            Op::JumpIfZero(to) => {
                if pop()? == 0 {
                    pc = *to
                }
            }
            Op::Store(name) => {
                let a = pop()?;
                names.insert(name.clone(), a);
            }
            Op::Load(name) => stack.push(*names.get(name).ok_or_else(|| Fault::Unknown(name.clone()))?),
            Op::Call(f) => {
                let a = pop()?;
                stack.push(f(a))
            }
            Op::Halt => return Ok(stack),
        }
    }
    Err(Fault::NoProgress)
}

fn parse(text: &str) -> Option<Op> {
    let mut words = text.split_whitespace();
    Some(match words.next()? {
        "push" => Op::Push(words.next()?.parse().ok()?),
        "add" => Op::Add,
        "sub" => Op::Sub,
        "mul" => Op::Mul,
        "div" => Op::Div,
        "neg" => Op::Neg,
        "dup" => Op::Dup,
        "swap" => Op::Swap,
        "drop" => Op::Drop,
        "jump" => Op::Jump(words.next()?.parse().ok()?),
        "jz" => Op::JumpIfZero(words.next()?.parse().ok()?),
        "store" => Op::Store(words.next()?.to_string()),
        "load" => Op::Load(words.next()?.to_string()),
        "square" => Op::Call(|n| n.wrapping_mul(n)),
        "halt" => Op::Halt,
        _ => return None,
    })
}

#[inline(never)]
fn classify(c: char) -> u32 {
    match c {
        'a' | 'e' | 'i' | 'o' | 'u' => black_box(1),
        'b'..='d' => black_box(2),
        'f'..='h' => black_box(3) + 1,
        '0' => black_box(10),
        '1' => black_box(21),
        '2' => black_box(32),
        '3' => black_box(43),
        '4' => black_box(54),
        '5'..='9' => c as u32,
        '\u{400}'..='\u{4ff}' => black_box(60),
        _ if c.is_whitespace() => 70,
        _ => black_box(0),
    }
}

#[inline(never)]
fn dense(n: u8, out: &mut String) -> std::fmt::Result {
    match n {
        0 => write!(out, "zero"),
        1 => write!(out, "{n:?}"),
        2 => write!(out, "{n:x}"),
        3 => write!(out, "{n:>4}"),
        4 => write!(out, "{:?}", Some(n)),
        5 => write!(out, "{:?}", (n, n + 1)),
        6 => write!(out, "{:.2}", n as f32),
        7 => out.write_char('7'),
        8 => out.write_str("eight"),
        250 => write!(out, "{n:b}"),
        251 => write!(out, "{n:o}"),
        252 => write!(out, "{n:e}"),
        253 => write!(out, "{n:#x}"),
        254 => write!(out, "{n:08}"),
        _ => Ok(()),
    }
}

#[inline(never)]
fn negative(n: i64) -> i64 {
    match n {
        -9 => black_box(1),
        -8 => black_box(12),
        -7 => black_box(23),
        -6 => black_box(34),
        -5 => black_box(45),
        -4..=-1 => black_box(n),
        0 => black_box(56),
        i64::MIN..=-10 => black_box(67),
        1.. => black_box(78),
    }
}

fn main() {
    let text =
        ["push 5", "store x", "load x", "jz 11", "load x", "dup", "square", "swap", "drop", "push 1", "sub", "halt"];
    let code: Vec<Op> = text.iter().filter_map(|line| parse(line)).collect();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for budget in 0..30 {
        let result = run(black_box(&code), budget);
        *seen.entry(format!("{result:?}")).or_default() += budget;
    }
    for bad in [vec![Op::Add], vec![Op::Push(1), Op::Push(0), Op::Div], vec![Op::Load("y".into())], vec![Op::Jump(0)]] {
        *seen.entry(format!("{:?}", run(&bad, 9))).or_default() += 1;
    }
    let classes: u32 = "hello, w0rld 123456789 буквы".chars().map(classify).sum();
    let mut out = String::new();
    (0..=255).for_each(|n| dense(n, &mut out).expect("a String takes everything"));
    let sum: i64 = (-20..20).map(negative).sum();
    println!("matches {} {classes} {} {sum}", seen.len(), out.len());
}
