//! pprof's `profile.proto`, gzipped, for `go tool pprof` and what reads the same.
//!
//! The format needs few kinds of fields, so they are written here directly: numbers as varints, and messages and
//! strings with their length. Field numbers are those of `profile.proto` in google/pprof.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use lancet_engine::collect::{Recording, StackId};

use super::{Profile, address};

/// A message as it grows.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Repeated numbers, packed.
    fn numbers(&mut self, field: u64, values: impl Iterator<Item = u64>) {
        let mut packed = Message::default();
        values.for_each(|value| packed.varint(value));
        self.bytes(field, &packed.0);
    }
}

/// Strings are stored once and referred to by number; number 0 is the empty one.
struct Strings<'a> {
    list: Vec<&'a str>,
    known: HashMap<&'a str, u64>,
}

impl<'a> Strings<'a> {
    fn id(&mut self, text: &'a str) -> u64 {
        *self.known.entry(text).or_insert_with(|| {
            self.list.push(text);
            self.list.len() as u64 - 1
        })
    }
}

pub fn write_pprof(recording: &Recording, profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let mut strings = Strings { list: vec![""], known: HashMap::from([("", 0)]) };
    let mut message = Message::default();
    let unit = if recording.event.is_time() { "nanoseconds" } else { "count" };
    for (kind, unit) in [("samples", "count"), (recording.event.name.as_str(), unit)] {
        let mut value_type = Message::default();
        value_type.number(1, strings.id(kind));
        value_type.number(2, strings.id(unit));
        message.bytes(1, &value_type.0);
    }

    let mut by_stack: HashMap<StackId, (u64, u64)> = HashMap::new();
    for sample in &recording.samples {
        let sum = by_stack.entry(sample.stack).or_default();
        *sum = (sum.0 + 1, sum.1 + sample.weight);
    }
    let mut stacks: Vec<_> = by_stack.into_iter().collect();
    stacks.sort_unstable();
    for (stack, (samples, weight)) in stacks {
        let mut sample = Message::default();
        // Numbers of locations and functions begin at 1.
        sample.numbers(1, recording.chain(stack).map(|frame| u64::from(frame.0) + 1));
        sample.numbers(2, [samples, weight].into_iter());
        message.bytes(2, &sample.0);
    }
    let mut functions: HashMap<&str, u64> = HashMap::new();
    for (index, frame) in recording.frames.iter().enumerate() {
        let name = profile.function_of(lancet_engine::collect::FrameId(index as u32)).name.as_str();
        let next = functions.len() as u64 + 1;
        let function = *functions.entry(name).or_insert(next);
        let mut line = Message::default();
        line.number(1, function);
        let mut location = Message::default();
        location.number(1, index as u64 + 1);
        location.number(3, address(frame.place));
        location.bytes(4, &line.0);
        message.bytes(4, &location.0);
    }
    let mut functions: Vec<(&str, u64)> = functions.into_iter().collect();
    functions.sort_by_key(|(_, id)| *id);
    for (name, id) in functions {
        let mut function = Message::default();
        function.number(1, id);
        function.number(2, strings.id(name));
        function.number(3, strings.id(name));
        message.bytes(5, &function.0);
    }
    for text in strings.list {
        message.bytes(6, text.as_bytes());
    }
    message.number(10, recording.elapsed.as_nanos() as u64);
    let mut compressed = GzEncoder::new(out, Compression::default());
    compressed.write_all(&message.0)?;
    compressed.finish().map(|_| ())
}
