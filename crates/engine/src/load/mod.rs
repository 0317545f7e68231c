//! Code from a file, to be placed in a process: a relocatable object, a shared library, or raw bytes.
//!
//! ```text
//! file ──> Module: bytes to place, symbols, what to fill in ──> link at an address ──> bytes
//!          relocatable.rs, shared.rs                            relocate.rs
//! ```
//!
//! A module is laid out before its address is known: read-only parts and code first, then, from a page of its own,
//! what can be written. Where code may stand in memory that loads do not reach, constants go with what can be written.
//! References to symbols that it does not define are resolved by whoever places it. Those that are too far away for a
//! 32-bit distance go through a veneer or a slot behind the code.

mod relocatable;
mod relocate;
mod shared;

use std::path::Path;

use lancet_isa::{Avma, Isa};
use object::read::elf::{ElfFile, FileHeader};
use object::{Endianness, Object, ObjectKind};

pub use relocate::Linked;
use relocate::{Fixup, Layout};

fn names(there: &[String]) -> String {
    match there {
        [] => "there are none".into(),
        [unnamed] if unnamed.is_empty() => "it is raw bytes, which have no names".into(),
        _ => format!("there are {}", there.join(", ")),
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{name}: {action}: {cause}")]
    Io { name: String, action: &'static str, cause: std::io::Error },
    #[error("{name}: {what}")]
    Unusable { name: String, what: String },
    #[error("{name}: no function {symbol} in it; {}", names(.there))]
    NoSymbol { name: String, symbol: String, there: Vec<String> },
    #[error("{name}: it refers to what the process does not have: {}", .symbols.join(", "))]
    Unresolved { name: String, symbols: Vec<String> },
    #[error("{name}: {symbol} at {to} cannot be reached from {from}")]
    TooFar { name: String, symbol: String, from: Avma, to: Avma },
}

/// A function that a module defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    pub name: String,
    /// From the beginning of the module.
    pub offset: u64,
    pub size: u64,
}

/// Code and data that can be placed anywhere.
#[derive(Debug, PartialEq, Eq)]
pub struct Module {
    name: String,
    /// The name of the instruction set that the file states.
    isa: Option<&'static str>,
    layout: Layout,
    fixups: Vec<Fixup>,
    /// Functions, by offset.
    pub exports: Vec<Export>,
}

const ELF: [u8; 4] = [0x7f, b'E', b'L', b'F'];
/// A jump of 5 bytes is the least that makes sense; a larger file than this is not code for a cache.
const LARGEST: u64 = 64 << 20;

impl Module {
    pub fn open(path: &Path) -> Result<Module, LoadError> {
        let name = path.display().to_string();
        let io = |action| move |cause| LoadError::Io { name: path.display().to_string(), action, cause };
        let found = std::fs::metadata(path).map_err(io("cannot open"))?;
        let unusable = |what: &str| LoadError::Unusable { name: name.clone(), what: what.to_owned() };
        if !found.is_file() {
            return Err(unusable("is not a regular file"));
        }
        if found.len() > LARGEST {
            return Err(unusable("is larger than any code cache"));
        }
        Module::parse(name.clone(), &std::fs::read(path).map_err(io("cannot read"))?)
    }

    /// A module from bytes as a file has them.
    pub fn parse(name: String, bytes: &[u8]) -> Result<Module, LoadError> {
        let unusable = |what: String| LoadError::Unusable { name: name.clone(), what };
        if bytes.is_empty() {
            return Err(unusable("is empty".into()));
        }
        if !bytes.starts_with(&ELF) {
            return Ok(Module::raw(name, bytes.to_vec()));
        }
        let unreadable = |error| unusable(format!("cannot be read as an ELF file: {error}"));
        let (isa, module) = if bytes.get(4) == Some(&object::elf::ELFCLASS32.0) {
            let file = ElfFile::<object::elf::FileHeader32<Endianness>>::parse(bytes).map_err(unreadable)?;
            (isa_of(&file).map_err(&unusable)?, read(&file, |_| Err("is a shared library".to_owned())))
        } else {
            let file = ElfFile::<object::elf::FileHeader64<Endianness>>::parse(bytes).map_err(unreadable)?;
            (isa_of(&file).map_err(&unusable)?, read(&file, shared::read))
        };
        let (layout, fixups, mut exports) = module.map_err(unusable)?;
        exports.sort_by_key(|export| export.offset);
        Ok(Module { name, isa: Some(isa.facts().name), layout, fixups, exports })
    }

    /// Refuses code for another instruction set.
    pub fn must_be_for(&self, isa: &dyn Isa) -> Result<(), LoadError> {
        match self.isa {
            Some(other) if other != isa.facts().name => {
                let what = format!("is for another machine ({other}), not {}", isa.facts().name);
                Err(LoadError::Unusable { name: self.name.clone(), what })
            }
            _ => Ok(()),
        }
    }

    /// Bytes that need nothing.
    pub fn raw(name: String, code: Vec<u8>) -> Module {
        let exports = vec![Export { name: String::new(), offset: 0, size: code.len() as u64 }];
        let layout = Layout { code, data: Vec::new(), data_size: 0, is_apart: false };
        Module { name, isa: None, layout, fixups: Vec::new(), exports }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The code of a function, before anything is filled in. If its size is not known, all code that follows.
    pub fn code_of(&self, export: &Export) -> &[u8] {
        let code = self.layout.code.get(export.offset as usize..).unwrap_or_default();
        match export.size {
            0 => code,
            size => code.get(..size as usize).unwrap_or(code),
        }
    }

    /// Bytes for code and for data.
    pub fn size(&self) -> (u64, u64) {
        let extra = relocate::extra_bytes(&self.fixups);
        (self.layout.code.len() as u64 + extra, self.layout.data_size)
    }

    /// Whether data must follow code at the distance that the file states: then it needs pages of its own.
    pub fn is_apart(&self) -> bool {
        self.layout.is_apart
    }

    /// The function of a name; without one, the one called `wanted`, or the only one.
    pub fn function(&self, name: Option<&str>, wanted: &str) -> Result<&Export, LoadError> {
        let find = |name: &str| self.exports.iter().find(|export| export.name == name);
        let found = match (name, &self.exports[..]) {
            (Some(name), _) => find(name),
            (None, [only]) => Some(only),
            (None, _) => find(wanted),
        };
        found.ok_or_else(|| LoadError::NoSymbol {
            name: self.name.clone(),
            symbol: name.unwrap_or(wanted).to_owned(),
            there: self.exports.iter().map(|export| export.name.clone()).collect(),
        })
    }

    /// The bytes for code at `code` and data at `data`. `resolve` knows the process's symbols.
    pub fn link(&self, code: Avma, data: Avma, resolve: &dyn Fn(&str) -> Option<Avma>) -> Result<Linked, LoadError> {
        relocate::link(&self.name, &self.layout, &self.fixups, code, data, resolve)
    }
}

type Read = Result<(Layout, Vec<Fixup>, Vec<Export>), String>;

/// The instruction set of a file, if Lancet knows it and it has addresses as wide as the file's.
fn isa_of<E: FileHeader<Endian = Endianness>>(file: &ElfFile<'_, E>) -> Result<&'static dyn Isa, String> {
    let machine = file.elf_header().e_machine(file.endian()).0;
    let wide = if file.is_64() { 8 } else { 4 };
    let isa = lancet_isa::for_elf_machine(machine).filter(|isa| isa.facts().pointer_bytes == wide);
    isa.ok_or_else(|| format!("is for another machine ({:?}), not x86-64", file.architecture()))
}

fn read<'a, E: FileHeader<Endian = Endianness>>(
    file: &ElfFile<'a, E>,
    shared: impl FnOnce(&ElfFile<'a, E>) -> Read,
) -> Read {
    match file.kind() {
        ObjectKind::Relocatable => relocatable::read(file, isa_of(file)?.facts().harvard),
        ObjectKind::Dynamic => shared(file),
        kind => Err(format!("is neither a relocatable object nor a shared library ({kind:?})")),
    }
}
