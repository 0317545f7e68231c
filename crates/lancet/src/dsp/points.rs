//! The points file: which instructions get what.
//!
//! One line for each rule; `#` starts a comment.
//!
//! ```text
//! call NAME before|after WHERE      call a routine of the object, with the number of the point and its address
//! count before|after WHERE          count
//! on before|after WHERE             switch calls on from here on; they are off at first, if there is such a line
//! off before|after WHERE            switch calls off
//! ```
//!
//! WHERE is one or more of these; all must hold:
//!
//! ```text
//! address A                 the instruction at A
//! procedure NAME            instructions of a procedure
//! loop A                    instructions of the loop with the header A
//! kind KIND                 call, jump, branch, return, loop (LSETUP), load, store, bundle
//! entry                     the first instruction of a procedure
//! ```

use lancet_engine::program::{Func, Program};
use lancet_isa::Svma;
use lancet_isa::blackfin::{BfInsn, Op, ReturnFrom, decode};

use crate::names;

/// What a line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    Call(String),
    Count,
    On,
    Off,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// In the file, from 1.
    pub line: usize,
    pub wish: Wish,
    pub after: bool,
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Condition {
    Address(u32),
    Procedure(String),
    Loop(u32),
    Kind(Kind),
    Entry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Call,
    Jump,
    Branch,
    Return,
    Loop,
    Load,
    Store,
    Bundle,
}

const KINDS: [(&str, Kind); 8] = [
    ("call", Kind::Call),
    ("jump", Kind::Jump),
    ("branch", Kind::Branch),
    ("return", Kind::Return),
    ("loop", Kind::Loop),
    ("load", Kind::Load),
    ("store", Kind::Store),
    ("bundle", Kind::Bundle),
];

/// Reads a points file. An error names the line.
pub fn parse(text: &str) -> Result<Vec<Rule>, String> {
    let mut rules = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        if !words.is_empty() {
            rules.push(rule(i + 1, &words).map_err(|what| format!("line {}: {what}", i + 1))?);
        }
    }
    Ok(rules)
}

fn rule(line: usize, words: &[&str]) -> Result<Rule, String> {
    let (wish, rest) = match words {
        ["call", name, rest @ ..] => (Wish::Call((*name).to_owned()), rest),
        ["count", rest @ ..] => (Wish::Count, rest),
        ["on", rest @ ..] => (Wish::On, rest),
        ["off", rest @ ..] => (Wish::Off, rest),
        _ => return Err("a line starts with call NAME, count, on or off".to_owned()),
    };
    let (after, mut rest) = match rest {
        ["before", rest @ ..] => (false, rest),
        ["after", rest @ ..] => (true, rest),
        _ => return Err("before or after is missing".to_owned()),
    };
    let mut conditions = Vec::new();
    while !rest.is_empty() {
        let condition = match rest {
            ["entry", ..] => Condition::Entry,
            ["address", at, ..] => Condition::Address(number(at)?),
            ["loop", at, ..] => Condition::Loop(number(at)?),
            ["procedure", name, ..] => Condition::Procedure((*name).to_owned()),
            ["kind", kind, ..] => match KINDS.iter().find(|(name, _)| name == kind) {
                Some((_, kind)) => Condition::Kind(*kind),
                None => return Err(format!("{kind} is no kind of instruction")),
            },
            [word, ..] => return Err(format!("{word} is no place")),
            [] => break,
        };
        rest = &rest[if condition == Condition::Entry { 1 } else { 2 }..];
        conditions.push(condition);
    }
    if conditions.is_empty() {
        return Err("no place is given".to_owned());
    }
    Ok(Rule { line, wish, after, conditions })
}

fn number(word: &str) -> Result<u32, String> {
    let digits = word.strip_prefix("0x").ok_or_else(|| format!("{word} is no address (0x...)"))?;
    u32::from_str_radix(digits, 16).map_err(|_| format!("{word} is no address"))
}

impl Rule {
    /// The addresses of all instructions that it means, in order.
    pub fn places(&self, program: &Program) -> Vec<u32> {
        let mut places = Vec::new();
        for func in program.funcs() {
            let of_func = |condition: &Condition| match condition {
                Condition::Procedure(name) => {
                    names::of_function(program, func) == *name || program.symbol_name(func).as_ref() == Some(name)
                }
                _ => true,
            };
            if !self.conditions.iter().all(of_func) {
                continue;
            }
            for block in &func.blocks {
                for insn in program.insns(block) {
                    let bytes = program.image().bytes(insn.at, insn.len.into()).unwrap_or_default();
                    let Ok(insn) = decode(bytes, insn.at.0 as u32) else { continue };
                    if self.conditions.iter().all(|condition| holds(condition, func, &insn)) {
                        places.push(insn.at);
                    }
                }
            }
        }
        places.sort_unstable();
        places.dedup();
        places
    }
}

fn holds(condition: &Condition, func: &Func, insn: &BfInsn) -> bool {
    match condition {
        Condition::Address(at) => insn.at == *at,
        Condition::Procedure(_) => true,
        Condition::Loop(header) => func.block_at(Svma(insn.at.into())).is_some_and(|block| {
            func.loops.iter().any(|(id, l)| {
                func.blocks[l.header as usize].start == Svma((*header).into()) && func.loops.contains(id, block.0)
            })
        }),
        Condition::Kind(kind) => is_kind(*kind, insn),
        Condition::Entry => func.entry == Svma(insn.at.into()),
    }
}

fn is_kind(kind: Kind, insn: &BfInsn) -> bool {
    let any = |test: fn(&Op) -> bool| insn.ops().any(test);
    match kind {
        Kind::Call => any(|op| matches!(op, Op::Call { .. } | Op::CallReg(_) | Op::CallPcReg(_))),
        Kind::Jump => {
            any(|op| matches!(op, Op::JumpShort { .. } | Op::JumpLong { .. } | Op::JumpReg(_) | Op::JumpPcReg(_)))
        }
        Kind::Branch => any(|op| matches!(op, Op::Branch { .. })),
        Kind::Return => any(|op| matches!(op, Op::Return(ReturnFrom::Subroutine))),
        Kind::Loop => any(|op| matches!(op, Op::LoopSetup { .. })),
        Kind::Load => any(|op| matches!(op, Op::Load { .. } | Op::Pop(_) | Op::PopMultiple(_) | Op::Unlink)),
        Kind::Store => any(Op::stores),
        Kind::Bundle => insn.slots.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let rules =
            parse("# all loads of main\ncall _seen before procedure main kind load\n\non after address 0x1234\n");
        let rules = rules.unwrap();
        assert_eq!(rules.len(), 2);
        assert_eq!(rules[0].wish, Wish::Call("_seen".to_owned()));
        assert_eq!(rules[0].conditions, [Condition::Procedure("main".to_owned()), Condition::Kind(Kind::Load)]);
        assert_eq!((&rules[1].wish, rules[1].after), (&Wish::On, true));
        for (text, error) in [
            ("call", "line 1: a line starts with call NAME, count, on or off"),
            ("\ncount around entry", "line 2: before or after is missing"),
            ("count before", "line 1: no place is given"),
            ("count before kind nop", "line 1: nop is no kind of instruction"),
            ("count before address 12", "line 1: 12 is no address (0x...)"),
        ] {
            assert_eq!(parse(text).unwrap_err(), error);
        }
    }
}
