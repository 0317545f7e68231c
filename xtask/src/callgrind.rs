//! Callgrind's format. (The tests of the command read it with this module, too.)
//!
//! It names addresses as the file states them, one line per instruction or as a distance from the line before:
//!
//! ```text
//! ob=(2) /path/of/the/object     names are written once, then only their number is
//! fn=(7) main
//! 0x1139 12 100                  address, source line, count
//! +4 12 100                      4 behind the address before
//! calls=100 0x1120 0             the next line is a call's sum, not an instruction
//! * 13 4200
//! ```

use std::collections::{BTreeMap, HashMap};

/// How often each instruction of `object` ran.
pub fn parse(text: &str, object: &str) -> BTreeMap<u64, u64> {
    let mut objects: HashMap<&str, &str> = HashMap::new();
    let mut counts = BTreeMap::new();
    let (mut is_ours, mut is_call, mut at) = (false, false, 0u64);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("ob=") {
            is_ours = named(&mut objects, name) == object;
        } else if let Some(name) = line.strip_prefix("cob=") {
            named(&mut objects, name);
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if let Some((address, count)) = cost(line, at) {
            at = address;
            if !std::mem::take(&mut is_call) && is_ours {
                *counts.entry(at).or_default() += count;
            }
        }
    }
    counts
}

/// The name behind `(7) name`, or behind an earlier mention of `(7)`; names need not have numbers.
fn named<'a>(names: &mut HashMap<&'a str, &'a str>, text: &'a str) -> &'a str {
    match text.split_once(' ') {
        Some((number, name)) if number.starts_with('(') => {
            names.insert(number, name);
            name
        }
        _ => names.get(text).copied().unwrap_or(text),
    }
}

fn cost(line: &str, before: u64) -> Option<(u64, u64)> {
    let mut words = line.split(' ');
    let address = words.next()?;
    let at = match address.split_at_checked(1)? {
        ("*", _) => before,
        ("+", distance) => before.checked_add(distance.parse().ok()?)?,
        ("-", distance) => before.checked_sub(distance.parse().ok()?)?,
        _ => u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?,
    };
    Some((at, words.nth(1)?.parse().ok()?))
}
