//! Jump tables by the labels in the assembly.
//!
//! In the assembly a table is plain to see, with its exact number of entries:
//!
//! ```text
//!         .section .rodata
//! .L4:
//!         .long .L3-.L4
//!         .long .L5-.L4
//! ```
//!
//! A table is a label outside of debug and unwind sections, and behind it a run of words that each name a local label
//! in the text, alone or less another label. The objects were assembled with their local labels kept, so the twin's
//! symbols tell the addresses. Labels are unique within one source file only; a file symbol goes before its labels.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use object::{Object, ObjectSymbol, SymbolKind};

use super::Table;
use super::functions::Functions;

/// Tables of labels that the program copies before it jumps.
const COPIED: &str = "copied_labels";

/// One listing, as far as tables are concerned.
#[derive(Debug, Default)]
struct Listing {
    /// The name of the source, as the file symbol has it.
    source: String,
    tables: Vec<LabelledTable>,
    /// The functions that are defined here.
    functions: HashSet<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct LabelledTable {
    label: String,
    entry_bytes: u8,
    /// The labels that the entries lead to.
    targets: Vec<String>,
    /// The function that the first target is in.
    function: String,
}

/// All tables of all listings, with addresses; and which of them are copied first.
pub(super) fn tables(listings: &[PathBuf], elf: &object::File) -> Result<(BTreeMap<u64, Table>, Vec<u64>)> {
    let addresses = label_addresses(elf)?;
    let (mut tables, mut copied) = (BTreeMap::new(), Vec::new());
    for path in listings {
        let listing = read(path)?;
        let labels = addresses
            .get(&listing.source)
            .with_context(|| format!("no file symbol for {:?} of {}", listing.source, path.display()))?;
        let address = |label: &String| {
            labels.get(label).copied().with_context(|| format!("label {label} of {} is no symbol", listing.source))
        };
        for table in &listing.tables {
            let targets = table.targets.iter().map(address).collect::<Result<Vec<u64>>>()?;
            let start = address(&table.label)?;
            tables.insert(start, Table { entry_bytes: table.entry_bytes, targets, copied: false });
            if table.label.contains(COPIED) {
                copied.push(start);
            }
        }
    }
    Ok((tables, copied))
}

/// Makes sure that each function that the listings define has as many tables, of the same sizes, by relocation.
pub(super) fn check_counts(
    listings: &[PathBuf],
    functions: &Functions,
    by_relocation: &BTreeMap<u64, Table>,
) -> Result<()> {
    let mut expected: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut here: HashSet<String> = HashSet::new();
    for path in listings {
        let listing = read(path)?;
        here.extend(listing.functions);
        for table in listing.tables {
            expected.entry(table.function).or_default().push(table.targets.len());
        }
    }
    let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for table in by_relocation.values() {
        let owner = table.targets.first().and_then(|&target| functions.containing(target));
        if let Some(function) = owner.filter(|f| here.contains(&f.name)) {
            found.entry(function.name.clone()).or_default().push(table.targets.len());
        }
    }
    for counts in expected.values_mut().chain(found.values_mut()) {
        counts.sort_unstable();
    }
    for name in expected.keys().chain(found.keys()) {
        let (expected, found) = (expected.get(name), found.get(name));
        ensure!(expected == found, "{name}: jump tables {expected:?} in the assembly, {found:?} by relocations");
    }
    Ok(())
}

type Labels = HashMap<String, u64>;

/// The addresses of all local symbols, by source file.
fn label_addresses(elf: &object::File) -> Result<HashMap<String, Labels>> {
    let mut files: HashMap<String, Labels> = HashMap::new();
    let mut file = String::new();
    for symbol in elf.symbols() {
        let name = symbol.name().context("a symbol's name is not UTF-8")?;
        match symbol.kind() {
            SymbolKind::File => file = name.to_string(),
            _ if symbol.is_undefined() || symbol.is_global() => {}
            _ => {
                files.entry(file.clone()).or_default().insert(name.to_string(), symbol.address());
            }
        }
    }
    Ok(files)
}

fn read(path: &Path) -> Result<Listing> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(parse(&text))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Text,
    Data,
    /// Debug and unwind information.
    Other,
}

fn section_of(directive: &str, argument: &str) -> Option<Section> {
    let name = match directive {
        ".text" => return Some(Section::Text),
        ".data" | ".bss" => return Some(Section::Data),
        ".section" => argument.split(',').next().unwrap_or_default().trim_matches(['"', ' ']),
        _ => return None,
    };
    Some(match name {
        _ if name.starts_with(".text") => Section::Text,
        _ if [".rodata", ".data", ".bss", ".tdata"].iter().any(|data| name.starts_with(data)) => Section::Data,
        _ => Section::Other,
    })
}

/// A word of data in the listing.
struct Entry<'a> {
    bytes: u8,
    target: &'a str,
}

/// The entries that a data directive makes, if each of them is a label, or a label less a label.
fn entries<'a>(directive: &str, argument: &'a str) -> Option<Vec<Entry<'a>>> {
    let bytes = match directive {
        ".long" | ".4byte" => 4,
        ".quad" | ".8byte" => 8,
        _ => return None,
    };
    let label = |expression: &'a str| {
        let target = expression.split('-').next().unwrap_or_default().trim();
        target.starts_with(".L").then_some(Entry { bytes, target })
    };
    argument.split(',').map(label).collect()
}

fn parse(text: &str) -> Listing {
    let mut parser = Parser { sections: vec![Section::Text], ..Parser::default() };
    for line in text.lines() {
        let mut rest = line.split('#').next().unwrap_or_default().trim();
        while let Some((label, behind)) = split_label(rest) {
            parser.label(label);
            rest = behind;
        }
        if !rest.is_empty() {
            let (directive, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            parser.directive(directive, argument.trim());
        }
    }
    parser.finish()
}

fn split_label(line: &str) -> Option<(&str, &str)> {
    let (label, behind) = line.split_once(':')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '@');
    (!label.is_empty() && label.chars().all(is_name)).then_some((label, behind.trim_start()))
}

#[derive(Default)]
struct Parser<'a> {
    source: Option<&'a str>,
    /// A stack, for `.pushsection`.
    sections: Vec<Section>,
    functions: HashSet<&'a str>,
    function: &'a str,
    /// Each label in the text, with its function.
    in_text: HashMap<&'a str, &'a str>,
    last_label: Option<&'a str>,
    run_is_open: bool,
    runs: Vec<(&'a str, Vec<Entry<'a>>)>,
}

impl<'a> Parser<'a> {
    fn section(&self) -> Section {
        self.sections.last().copied().unwrap_or(Section::Other)
    }

    fn label(&mut self, label: &'a str) {
        if self.section() == Section::Text {
            if self.functions.contains(label) {
                self.function = label;
            }
            self.in_text.insert(label, self.function);
        }
        self.last_label = Some(label);
        self.run_is_open = false;
    }

    fn directive(&mut self, directive: &str, argument: &'a str) {
        if self.section() != Section::Other
            && let Some(found) = entries(directive, argument)
        {
            match (self.last_label.take(), self.runs.last_mut()) {
                (Some(label), _) => self.runs.push((label, found)),
                (None, Some((_, entries))) if self.run_is_open => entries.extend(found),
                _ => return,
            }
            self.run_is_open = true;
            return;
        }
        self.last_label = None;
        self.run_is_open = false;
        match directive {
            ".file" if self.source.is_none() => self.source = Some(argument.trim_matches('"')),
            ".type" => {
                if let Some((name, "@function")) = argument.split_once(',').map(|(n, kind)| (n.trim(), kind.trim())) {
                    self.functions.insert(name);
                }
            }
            ".pushsection" => self.sections.push(section_of(".section", argument).unwrap_or(Section::Other)),
            ".popsection" => drop(self.sections.pop()),
            _ => {
                if let (Some(section), Some(top)) = (section_of(directive, argument), self.sections.last_mut()) {
                    *top = section;
                }
            }
        }
    }

    fn finish(self) -> Listing {
        let mut tables = Vec::new();
        for (label, entries) in self.runs {
            let size = entries.first().map_or(0, |entry| entry.bytes);
            let is_code = |entry: &&Entry| self.in_text.contains_key(entry.target) && entry.bytes == size;
            let targets: Vec<String> = entries.iter().take_while(is_code).map(|e| e.target.to_string()).collect();
            let Some(first) = targets.first() else { continue };
            let function = self.in_text.get(first.as_str()).copied().unwrap_or_default().to_string();
            tables.push(LabelledTable { label: label.to_string(), entry_bytes: size, targets, function });
        }
        let functions = self.functions.iter().map(ToString::to_string).collect();
        Listing { source: self.source.unwrap_or_default().to_string(), tables, functions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
        .file \"a.c\"
        .text
        .type f, @function
f:
        jmp *%rax
        .section .rodata
        .align 4
.L4:
        .long .L3-.L4
        .long .L2-.L4   # a comment
        .text
.L3:    ret
.L2:
        ret
        .section .rodata
.LC0:
        .string \"text\"
.L9:
        .quad .L2
        .quad .LC0
.L8:
        .quad f
        .section .debug_info,\"\",@progbits
.Ldebug:
        .long .L2
";

    #[test]
    fn tables_are_runs_of_code_labels_behind_a_label() {
        let listing = parse(SAMPLE);
        assert_eq!(listing.source, "a.c");
        let table = |label: &str, entry_bytes, targets: &[&str]| LabelledTable {
            label: label.to_string(),
            entry_bytes,
            targets: targets.iter().map(|t| t.to_string()).collect(),
            function: "f".to_string(),
        };
        assert_eq!(listing.tables, [table(".L4", 4, &[".L3", ".L2"]), table(".L9", 8, &[".L2"])]);
        assert!(listing.functions.contains("f"));
    }
}
