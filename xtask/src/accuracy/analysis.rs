//! What Lancet says about a file: its JSON, read piece by piece.
//!
//! The shape of the JSON is known here and nowhere else in xtask. Functions are handed on one at a time, so that a
//! file of any size can be read.

use std::fmt;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};

use crate::shell;

/// An entry of `lancet functions FILE --json`, as far as the corpus needs it.
#[derive(Debug, Deserialize)]
pub(super) struct ListedFunction {
    pub(super) address: Address,
}

/// An entry of `lancet cfg FILE --all --json`, as far as the corpus needs it.
#[derive(Debug, Deserialize)]
pub(super) struct FunctionGraph {
    pub(super) address: Address,
    pub(super) parts: Vec<Part>,
    /// Where control enters: the address first, then entries from elsewhere.
    pub(super) entries: Vec<Address>,
    pub(super) blocks: Vec<Block>,
    pub(super) jump_tables: Vec<JumpTable>,
}

/// The same entry, as far as very large files need it.
#[derive(Debug, Deserialize)]
pub(super) struct FunctionOutline {
    pub(super) address: Address,
    pub(super) parts: Vec<Part>,
    pub(super) exits: Vec<Exit>,
    pub(super) jump_tables: Vec<IgnoredAny>,
    pub(super) status: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Exit {
    kind: String,
}

impl Exit {
    /// By an indirect jump to nobody knows where.
    pub(super) fn is_unresolved(&self) -> bool {
        self.kind == "unresolved"
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Part {
    pub(super) address: Address,
    pub(super) size: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Block {
    pub(super) address: Address,
    /// Where instructions start, from the start of the block.
    pub(super) instructions: Vec<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct JumpTable {
    pub(super) jump: Address,
    pub(super) table: Address,
    pub(super) entry_bytes: u8,
    pub(super) targets: Vec<Address>,
}

/// An address, written as a string of hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address(pub(super) u64);

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
        struct Hex;
        impl Visitor<'_> for Hex {
            type Value = Address;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an address like \"0x401000\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Address, E> {
                let digits = text.strip_prefix("0x").ok_or_else(|| E::custom(format!("bad address {text:?}")))?;
                u64::from_str_radix(digits, 16).map(Address).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Hex)
    }
}

/// The command-line program, built for release.
pub(super) struct Lancet {
    program: PathBuf,
}

impl Lancet {
    pub(super) fn build() -> Result<Lancet> {
        Ok(Lancet { program: shell::build_lancet()? })
    }

    /// Lists all functions.
    pub(super) fn functions(&self, file: &Path, each: impl FnMut(ListedFunction)) -> Result<()> {
        self.read(&["functions", "--json"], file, each)
    }

    /// The control-flow graphs of all functions, in full or in outline.
    pub(super) fn graphs<T: for<'de> Deserialize<'de>>(&self, file: &Path, each: impl FnMut(T)) -> Result<()> {
        self.read(&["cfg", "--all", "--json"], file, each)
    }

    fn read<T: for<'de> Deserialize<'de>>(&self, arguments: &[&str], file: &Path, each: impl FnMut(T)) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.args(arguments).arg(file).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let words = shell::words(&command);
        let mut child = command.spawn().with_context(|| format!("cannot run `{words}`"))?;
        let stdout = child.stdout.take().context("no output")?;
        let parsed = each_function(BufReader::new(stdout), each);
        // Wait first: when the program failed, its own message tells more than the JSON that is missing.
        let done = child.wait_with_output().with_context(|| format!("waiting for `{words}`"))?;
        let stderr = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "`{words}` failed ({}): {}", done.status, stderr.trim_end());
        parsed.with_context(|| format!("the output of `{words}`"))
    }
}

/// Reads an object, and shows the elements of its `functions` array one by one.
fn each_function<T: for<'de> Deserialize<'de>>(reader: impl std::io::Read, each: impl FnMut(T)) -> Result<()> {
    struct Object<F, T>(F, std::marker::PhantomData<T>);
    struct Array<'f, F, T>(&'f mut F, std::marker::PhantomData<T>);

    impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for Object<F, T> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("an object with an array `functions`")
        }
        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            let mut seen = false;
            while let Some(key) = map.next_key::<String>()? {
                if key == "functions" {
                    seen = true;
                    map.next_value_seed(Array(&mut self.0, std::marker::PhantomData))?;
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            if seen { Ok(()) } else { Err(de::Error::missing_field("functions")) }
        }
    }
    impl<'de, T: Deserialize<'de>, F: FnMut(T)> DeserializeSeed<'de> for Array<'_, F, T> {
        type Value = ();
        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_seq(self)
        }
    }
    impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for Array<'_, F, T> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("an array of functions")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
            while let Some(function) = seq.next_element()? {
                (self.0)(function);
            }
            Ok(())
        }
    }

    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    deserializer.deserialize_map(Object(each, std::marker::PhantomData))?;
    deserializer.end()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_shown_one_by_one() {
        let json = r#"{"file": "x", "functions": [
            {"address": "0x10", "name": "f", "status": "complete", "reason": null},
            {"address": "0x20", "status": "partial", "reason": "why"}], "more": [1]}"#;
        let mut seen = Vec::new();
        each_function(json.as_bytes(), |f: ListedFunction| seen.push(f.address.0)).unwrap();
        assert_eq!(seen, [0x10, 0x20]);
    }

    #[test]
    fn bad_json_is_an_error() {
        let ignore = |_: ListedFunction| {};
        for bad in ["{}", "[]", "{\"functions\": [{\"address\": 5}]}", "{\"functions\": []} x", ""] {
            assert!(each_function(bad.as_bytes(), ignore).is_err(), "{bad}");
        }
    }
}
