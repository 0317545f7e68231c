//! JSON for programs: one shape around what each command has to say.
//!
//! ```json
//! {"file":"/bin/true","functions":[
//! {"address":"0x1000", ...},
//! {"address":"0x2000", ...}
//! ]}
//! ```
//!
//! One line per function, written as they come: the whole of a large program is never in memory. A process has `pid` and
//! `objects` in place of `file`, and each function names its `object`.

use std::io::{self, Write};

use rayon::prelude::*;
use serde::Serialize;

use crate::Subject;

/// Functions that are rendered side by side before they are written.
const AT_ONCE: usize = 512;

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Head<'a> {
    File { file: &'a str },
    Process { pid: u32, objects: Vec<MappedObject<'a>> },
}

#[derive(Debug, Serialize)]
struct MappedObject<'a> {
    object: &'a str,
    /// What to add to the addresses of its functions to get those in the process.
    bias: String,
}

fn head(subject: &Subject) -> Head<'_> {
    match (subject.pid, &subject.objects[..]) {
        (Some(pid), objects) => {
            let mapped = |object: &'_ crate::Object| format!("{:#x}", object.bias);
            let objects = objects.iter().map(|object| MappedObject { object: object.name(), bias: mapped(object) });
            Head::Process { pid, objects: objects.collect() }
        }
        (None, objects) => Head::File { file: objects.first().map_or("", |object| object.name()) },
    }
}

/// Writes the head, and `functions` as `render` makes them.
pub fn write<'a, T: Sync, R: Serialize>(
    out: &mut dyn Write,
    subject: &Subject,
    functions: &'a [T],
    render: impl Fn(&'a T) -> R + Sync,
) -> io::Result<()> {
    let head = serde_json::to_string(&head(subject))?;
    write!(out, "{},\"functions\":[", head.strip_suffix('}').unwrap_or(&head))?;
    let mut separator = "\n";
    for some in functions.chunks(AT_ONCE) {
        let lines: Vec<serde_json::Result<Vec<u8>>> =
            some.par_iter().map(|function| serde_json::to_vec(&render(function))).collect();
        for line in lines {
            out.write_all(separator.as_bytes())?;
            out.write_all(&line?)?;
            separator = ",\n";
        }
    }
    writeln!(out, "\n]}}")
}

/// Writes the head and one value.
pub fn write_value(out: &mut dyn Write, subject: &Subject, key: &str, value: &impl Serialize) -> io::Result<()> {
    let head = serde_json::to_string(&head(subject))?;
    let value = serde_json::to_string(value)?;
    writeln!(out, "{},\"{key}\":{value}}}", head.strip_suffix('}').unwrap_or(&head))
}
