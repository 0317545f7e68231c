//! The instructions of a memory dump: bytes without headers, symbols or functions, shown from first to last.

use std::io::{self, Write};
use std::path::Path;

use lancet_isa::{Isa, Svma, Syntax};
use serde::Serialize;

use super::text::{Text, styled};
use crate::Error;

/// A dump that was read.
pub struct Dump {
    name: String,
    code: Vec<u8>,
    isa: &'static dyn Isa,
    at: Svma,
    syntax: Syntax,
}

#[derive(Serialize)]
struct Line<'a> {
    address: String,
    bytes: String,
    text: &'a str,
}

#[derive(Serialize)]
struct Head<'a> {
    file: &'a str,
    isa: &'static str,
}

impl Dump {
    /// Reads the dump, whose first byte was at `at`.
    pub fn read(path: &Path, isa: &'static dyn Isa, at: Svma, syntax: Syntax) -> Result<Dump, Error> {
        let name = path.display().to_string();
        let code = std::fs::read(path).map_err(|cause| Error::File { path: name.clone(), cause })?;
        Ok(Dump { name, code, isa, at, syntax })
    }

    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let head = serde_json::to_string(&Head { file: &self.name, isa: self.isa.facts().name })?;
        write!(out, "{},\"instructions\":[", head.strip_suffix('}').unwrap_or(&head))?;
        let mut separator = "\n";
        self.lines(|line| {
            out.write_all(separator.as_bytes())?;
            separator = ",\n";
            Ok(serde_json::to_writer(&mut *out, line)?)
        })?;
        writeln!(out, "\n]}}")
    }

    pub fn write_text(&self, bytes: bool, out: &mut dyn Write, text: &Text) -> io::Result<()> {
        let width = 2 * usize::from(self.isa.facts().longest_insn);
        self.lines(|line| {
            write!(out, "{}  ", styled(&line.address, text.palette.address))?;
            if bytes {
                write!(out, "{}  ", styled(format_args!("{:width$}", line.bytes), text.palette.aside))?;
            }
            writeln!(out, "{}", line.text)
        })
    }

    fn lines(&self, mut write: impl FnMut(&Line<'_>) -> io::Result<()>) -> io::Result<()> {
        let mut written = Ok(());
        self.isa.listing(&self.code, self.at, self.syntax, &|_| None, &mut |line| {
            if written.is_ok() {
                let bytes = line.code.iter().map(|byte| format!("{byte:02x}")).collect();
                written = write(&Line { address: line.at.to_string(), bytes, text: line.text });
            }
        });
        written
    }
}
