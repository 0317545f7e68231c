//! What the `lancet` command shows, as data and as text.
//!
//! Each report is made from a [`Subject`](crate::Subject) as plain values that serialize to JSON ([`json`] puts the same
//! shape around all of them), and writes itself as text. Nothing here prints: text goes to any [`std::io::Write`].
//!
//! | module | what |
//! | --- | --- |
//! | [`functions`] | the list of functions, totals |
//! | [`loops`] | the loop forest of a function |
//! | [`cfg`] | blocks, edges, exits and jump tables of a function |
//! | [`disasm`] | a function's instructions by block |
//! | [`raw`] | the instructions of a memory dump |
//! | [`profile`], [`diff`] | where time is spent, and what changed |
//! | [`counts`] | how often everything ran |
//! | [`live`], [`measure`] | what was done to a process, and one function of it call by call |
//! | [`drawing`], [`layout`], [`dot`] | pictures of a control-flow graph |
//! | [`sim`] | what a simulated run came to |
//! | [`words`], [`text`], [`json`] | what they share |

pub mod cfg;
pub mod counts;
pub mod diff;
pub mod disasm;
pub mod dot;
pub mod drawing;
pub mod functions;
pub mod json;
pub mod layout;
pub mod live;
pub mod loops;
pub mod measure;
pub mod profile;
pub mod raw;
pub mod sim;
pub mod stat;
pub mod text;
pub mod words;

use lancet_engine::program::Program;
use lancet_isa::Svma;
use serde::{Deserialize, Serialize};

use crate::Subject;

/// The line above what is said of an object of a process.
fn object_heading(subject: &Subject, object: &str) -> String {
    let bias = subject.objects.iter().find(|known| known.name() == object).map_or(0, |known| known.bias);
    format!("{object} (loaded at {bias:#x})")
}

/// A line of the source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Source {
    pub file: String,
    pub line: u32,
}

impl Source {
    pub fn of(program: &Program, at: Svma) -> Option<Source> {
        program.image().source_line(at).map(|source| Source { file: source.file.to_owned(), line: source.line })
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
