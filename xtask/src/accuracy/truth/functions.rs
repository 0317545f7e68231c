//! Functions by their symbols.
//!
//! A function is an address with at least one function symbol; aliases are one function. A `.cold` symbol is no
//! function but a part of the one it is named after. Data that hand-written assembly keeps in the text (an object
//! symbol there) belongs to no function.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use anyhow::{Context, Result, bail};
use object::{Object, ObjectSymbol, SymbolKind};

use super::Layout;

#[derive(Clone, Debug)]
pub(in super::super) struct Function {
    pub(in super::super) name: String,
    /// The function's main part first. Empty where symbols do not tell the size.
    pub(in super::super) parts: Vec<Range<u64>>,
    /// Another function starts inside: two entries into one body. Where the first one ends is a matter of taste.
    pub(in super::super) holds_entries: bool,
}

#[derive(Debug, Default)]
pub(in super::super) struct Functions {
    pub(in super::super) by_start: BTreeMap<u64, Function>,
    /// Data in the text.
    pub(in super::super) data: Vec<Range<u64>>,
    /// Start of a part to start of its function.
    part_owner: BTreeMap<u64, u64>,
}

struct ColdPart {
    parent_name: String,
    file: usize,
    range: Range<u64>,
}

impl Functions {
    pub(super) fn from_symbols(elf: &object::File, layout: &Layout) -> Result<Functions> {
        let mut functions = Functions::default();
        let mut cold_parts = Vec::new();
        // Local names are unique only within the source file whose symbol goes before them.
        let mut local: HashMap<(usize, String), u64> = HashMap::new();
        let mut global: HashMap<String, u64> = HashMap::new();
        let mut file = 0;
        for symbol in elf.symbols() {
            if symbol.kind() == SymbolKind::File {
                file += 1;
            }
            let range = symbol.address()..symbol.address().saturating_add(symbol.size());
            if symbol.is_undefined() || !layout.is_code(range.start) {
                continue;
            }
            let name = symbol.name().context("a symbol's name is not UTF-8")?.to_string();
            match symbol.kind() {
                SymbolKind::Data => functions.data.push(range),
                SymbolKind::Text => match cold_parent(&name) {
                    Some(parent) => cold_parts.push(ColdPart { parent_name: parent.to_string(), file, range }),
                    None => {
                        if symbol.is_global() {
                            global.insert(name.clone(), range.start);
                        } else {
                            local.insert((file, name.clone()), range.start);
                        }
                        functions.add(name, range);
                    }
                },
                _ => {}
            }
        }
        for part in cold_parts {
            let key = (part.file, part.parent_name);
            let Some(&parent) = local.get(&key).or_else(|| global.get(&key.1)) else {
                bail!("the cold part at {:#x} has no function named {}", part.range.start, key.1);
            };
            if let Some(function) = functions.by_start.get_mut(&parent) {
                function.parts.push(part.range);
            }
        }
        functions.finish();
        Ok(functions)
    }

    /// Functions of given names and parts.
    #[cfg(test)]
    pub(in super::super) fn of(functions: &[(&str, &[Range<u64>])]) -> Functions {
        let mut made = Functions::default();
        for (name, parts) in functions {
            let function = Function { name: name.to_string(), parts: parts.to_vec(), holds_entries: false };
            made.by_start.insert(parts[0].start, function);
        }
        made.finish();
        made
    }

    fn add(&mut self, name: String, range: Range<u64>) {
        let function = self.by_start.entry(range.start).or_insert_with(|| Function {
            name,
            parts: Vec::new(),
            holds_entries: false,
        });
        // Of aliases, the one that knows its size counts.
        if !range.is_empty() && function.parts.is_empty() {
            function.parts.push(range);
        }
    }

    fn finish(&mut self) {
        let starts: Vec<u64> = self.by_start.keys().copied().collect();
        for (&start, function) in &mut self.by_start {
            if let Some(main) = function.parts.first() {
                let next = starts.partition_point(|&s| s <= start);
                function.holds_entries = starts.get(next).is_some_and(|s| main.contains(s));
            }
            for part in &function.parts {
                self.part_owner.insert(part.start, start);
            }
        }
    }

    /// Whether the function that starts here lies inside the body of another.
    pub(in super::super) fn is_inside_another(&self, start: u64) -> bool {
        let before = self.by_start.range(..start).next_back();
        before.is_some_and(|(_, function)| function.parts.first().is_some_and(|main| main.contains(&start)))
    }

    /// The function that owns the code at an address.
    pub(in super::super) fn containing(&self, address: u64) -> Option<&Function> {
        self.start_of(address).and_then(|start| self.by_start.get(&start))
    }

    /// The start of the function that owns the code at an address.
    pub(in super::super) fn start_of(&self, address: u64) -> Option<u64> {
        // Two entries may share a body, so the nearest part before the address need not be the one that holds it.
        self.part_owner
            .range(..=address)
            .rev()
            .take(4)
            .map(|(_, owner)| *owner)
            .find(|owner| self.by_start.get(owner).is_some_and(|f| f.parts.iter().any(|part| part.contains(&address))))
    }
}

/// The name of the function that a `.cold` symbol belongs to: `name.cold`, or `name.cold.3`.
fn cold_parent(name: &str) -> Option<&str> {
    let (parent, rest) = name.rsplit_once(".cold")?;
    let is_number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    (rest.is_empty() || rest.strip_prefix('.').is_some_and(is_number)).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::cold_parent;

    #[test]
    fn cold_symbols_name_their_function() {
        assert_eq!(cold_parent("f.cold"), Some("f"));
        assert_eq!(cold_parent("f.constprop.0.cold.12"), Some("f.constprop.0"));
        assert_eq!(cold_parent("f.colder"), None);
        assert_eq!(cold_parent("f.cold.x"), None);
        assert_eq!(cold_parent("f"), None);
    }
}
