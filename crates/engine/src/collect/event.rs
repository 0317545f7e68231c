//! Names of events, as `perf list` has them.
//!
//! Four kinds: the kernel's own names for hardware and software events; cache events, put together from a cache, an
//! operation and a result (`L1-dcache-load-misses`); raw ones (`r01c2`: unit mask and event number in hexadecimal); and
//! those of a unit that the kernel lists under `/sys/bus/event_source/devices` (`msr/tsc/`).

use std::fmt;
use std::fs;

use lancet_sys::perf::{Event, EventCode, Watch};

use super::CollectError;

const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const CACHE: u32 = 3;
const RAW: u32 = 4;

/// Name, kind and number; aliases follow the name they stand for.
const NAMED: [(&str, u32, u64); 22] = [
    ("cycles", HARDWARE, 0),
    ("cpu-cycles", HARDWARE, 0),
    ("instructions", HARDWARE, 1),
    ("cache-references", HARDWARE, 2),
    ("cache-misses", HARDWARE, 3),
    ("branches", HARDWARE, 4),
    ("branch-instructions", HARDWARE, 4),
    ("branch-misses", HARDWARE, 5),
    ("bus-cycles", HARDWARE, 6),
    ("stalled-cycles-frontend", HARDWARE, 7),
    ("stalled-cycles-backend", HARDWARE, 8),
    ("ref-cycles", HARDWARE, 9),
    ("cpu-clock", SOFTWARE, 0),
    ("task-clock", SOFTWARE, 1),
    ("page-faults", SOFTWARE, 2),
    ("faults", SOFTWARE, 2),
    ("context-switches", SOFTWARE, 3),
    ("cpu-migrations", SOFTWARE, 4),
    ("minor-faults", SOFTWARE, 5),
    ("major-faults", SOFTWARE, 6),
    ("alignment-faults", SOFTWARE, 7),
    ("emulation-faults", SOFTWARE, 8),
];

const CACHES: [(&str, u64); 7] =
    [("L1-dcache", 0), ("L1-icache", 1), ("LLC", 2), ("dTLB", 3), ("iTLB", 4), ("branch", 5), ("node", 6)];

/// Operation and result, as they end a cache event's name.
const CACHE_ENDS: [(&str, u64, u64); 6] = [
    ("-loads", 0, 0),
    ("-load-misses", 0, 1),
    ("-stores", 1, 0),
    ("-store-misses", 1, 1),
    ("-prefetches", 2, 0),
    ("-prefetch-misses", 2, 1),
];

/// An event and what people call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventName {
    pub name: String,
    pub code: EventCode,
}

impl EventName {
    pub fn parse(name: &str) -> Result<EventName, CollectError> {
        let code = named(name).or_else(|| cache(name)).or_else(|| raw(name)).or_else(|| of_unit(name));
        let unknown = || CollectError::NoSuchEvent { event: name.to_owned(), known: known_events().join(", ") };
        Ok(EventName { name: name.to_owned(), code: code.ok_or_else(unknown)? })
    }

    /// Cycles where the machine counts them, else the CPU's clock.
    pub fn default_here() -> EventName {
        let cycles = EventName::parse("cycles").ok().filter(EventName::is_counted_here);
        let clock = EventName { name: "cpu-clock".into(), code: EventCode { kind: SOFTWARE, config: 0 } };
        cycles.unwrap_or(clock)
    }

    /// This machine, and whoever it belongs to, can count it.
    pub fn is_counted_here(&self) -> bool {
        let watch = Watch { thread: Some(0), cpu: None, inherit: false, kernel: false, from_exec: false };
        Event::counter(self.code, watch).is_ok()
    }

    /// What is counted are nanoseconds.
    pub fn is_time(&self) -> bool {
        self.code.kind == SOFTWARE && self.code.config <= 1
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The names that always have a meaning, for messages; any machine counts only some of them.
pub fn known_events() -> Vec<String> {
    let mut names: Vec<String> = NAMED.iter().map(|(name, ..)| (*name).to_owned()).collect();
    names.push("L1-dcache-load-misses and other cache events".into());
    names.push("rNNN".into());
    names.push("UNIT/EVENT/".into());
    names
}

fn named(name: &str) -> Option<EventCode> {
    let (_, kind, config) = NAMED.iter().find(|(known, ..)| *known == name)?;
    Some(EventCode { kind: *kind, config: *config })
}

fn cache(name: &str) -> Option<EventCode> {
    let (cache, id) = CACHES.iter().find(|(cache, _)| name.starts_with(cache))?;
    let (_, operation, result) = CACHE_ENDS.iter().find(|(end, ..)| name.get(cache.len()..) == Some(*end))?;
    Some(EventCode { kind: CACHE, config: id | operation << 8 | result << 16 })
}

fn raw(name: &str) -> Option<EventCode> {
    let config = u64::from_str_radix(name.strip_prefix('r')?, 16).ok()?;
    Some(EventCode { kind: RAW, config })
}

/// `unit/event/`. The kernel describes an event as `event=0x12,umask=0x3`, and each field as bits of `config`.
fn of_unit(name: &str) -> Option<EventCode> {
    let (unit, event) = name.strip_suffix('/')?.split_once('/')?;
    let is_name = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if !is_name(unit) || !is_name(event) {
        return None;
    }
    let folder = format!("/sys/bus/event_source/devices/{unit}");
    let kind = fs::read_to_string(format!("{folder}/type")).ok()?.trim().parse().ok()?;
    let terms = fs::read_to_string(format!("{folder}/events/{event}")).ok()?;
    let mut config = 0;
    for term in terms.trim().split(',') {
        let (field, value) = term.split_once('=').unwrap_or((term, "1"));
        let value =
            value.strip_prefix("0x").map_or_else(|| value.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())?;
        let format = fs::read_to_string(format!("{folder}/format/{field}")).ok()?;
        config |= spread(format.trim().strip_prefix("config:")?, value)?;
    }
    Some(EventCode { kind, config })
}

/// Puts the low bits of `value` where `bits` says: `0-7,32-35`.
fn spread(bits: &str, mut value: u64) -> Option<u64> {
    let mut config = 0;
    for range in bits.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        let width = last.checked_sub(first)? + 1;
        let mask = u64::MAX.checked_shr(64_u32.checked_sub(width)?)?;
        config |= (value & mask).checked_shl(first)?;
        value = value.checked_shr(width).unwrap_or(0);
    }
    Some(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(name: &str) -> Option<(u32, u64)> {
        EventName::parse(name).ok().map(|event| (event.code.kind, event.code.config))
    }

    #[test]
    fn names_of_all_kinds() {
        assert_eq!(code("cpu-clock"), Some((1, 0)));
        assert_eq!(code("branch-misses"), Some((0, 5)));
        assert_eq!(code("branch-load-misses"), Some((3, 5 | 1 << 16)));
        assert_eq!(code("L1-dcache-load-misses"), Some((3, 1 << 16)));
        assert_eq!(code("dTLB-store-misses"), Some((3, 3 | 1 << 8 | 1 << 16)));
        assert_eq!(code("r01c2"), Some((4, 0x1c2)));
        assert_eq!(code("cycle"), None);
        assert_eq!(code("../x/"), None);
    }

    #[test]
    fn fields_are_spread_over_their_bits() {
        assert_eq!(spread("0-7", 0x12), Some(0x12));
        assert_eq!(spread("0-7,32-35", 0x5cd), Some(0x5_0000_00cd));
        assert_eq!(spread("9-7", 1), None);
    }
}
