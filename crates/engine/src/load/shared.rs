//! Shared libraries: their segments, laid out as the file states, with dynamic relocations.
//!
//! Initializers are not run, and other libraries that it asks for must be in the process already.

use object::elf;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSegment, ObjectSymbol, RelocationTarget, SegmentFlags, SymbolKind};

use super::Export;
use super::relocate::{Fixup, Goal, Kind, Layout, Spot};

type File<'a> = ElfFile64<'a, Endianness>;

const PAGE: u64 = 4096;

pub(super) fn read(file: &File<'_>) -> Result<(Layout, Vec<Fixup>, Vec<Export>), String> {
    let is_writable =
        |flags: SegmentFlags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.0 & elf::PF_W.0 != 0);
    let segments: Vec<_> = file.segments().collect();
    let end_of = |address: u64, size: u64| {
        address.checked_add(size).filter(|end| *end < super::LARGEST).ok_or("is larger than any code cache")
    };
    let mut writable = u64::MAX;
    let mut end = 0;
    for segment in &segments {
        end = end_of(segment.address(), segment.size())?.max(end);
        if is_writable(segment.flags()) {
            writable = writable.min(segment.address() / PAGE * PAGE);
        }
    }
    let code_size = writable.min(end.next_multiple_of(PAGE));
    let data_size = end.saturating_sub(code_size);
    let mut layout =
        Layout { code: vec![0; code_size as usize], data: vec![0; data_size as usize], data_size, is_apart: true };
    for segment in &segments {
        let bytes = segment.data().map_err(|error| error.to_string())?;
        let to = match spot(segment.address(), code_size) {
            Spot::Code(at) => layout.code.get_mut(at as usize..),
            Spot::Data(at) => layout.data.get_mut(at as usize..),
        };
        let to = to.and_then(|to| to.get_mut(..bytes.len())).ok_or("has code behind what can be written")?;
        to.copy_from_slice(bytes);
    }
    let mut fixups = Vec::new();
    for (place, relocation) in file.dynamic_relocations().into_iter().flatten() {
        let object::RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
        let goal = match (r_type, relocation.target()) {
            (elf::R_X86_64_RELATIVE, _) => Goal::Inside(spot(0, code_size)),
            (elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_64, RelocationTarget::Symbol(index)) => {
                goal(file, index, code_size)?
            }
            (other, _) => return Err(format!("has a dynamic relocation of an unsupported type ({})", other.0)),
        };
        // The address of the file's beginning is where its code begins, so a sum with it is a place in the file.
        fixups.push(Fixup { at: spot(place, code_size), kind: Kind::Absolute64, goal, addend: relocation.addend() });
    }
    let functions = file.dynamic_symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    let exports = functions.filter_map(|symbol| {
        let name = symbol.name().ok()?.to_owned();
        (symbol.address() < code_size).then(|| Export { name, offset: symbol.address(), size: symbol.size() })
    });
    let exports = exports.collect();
    Ok((layout, fixups, exports))
}

fn spot(address: u64, code_size: u64) -> Spot {
    if address < code_size { Spot::Code(address) } else { Spot::Data(address - code_size) }
}

fn goal(file: &File<'_>, index: object::SymbolIndex, code_size: u64) -> Result<Goal, String> {
    use object::ObjectSymbolTable;
    let table = file.dynamic_symbol_table().ok_or("has no symbols")?;
    let symbol = table.symbol_by_index(index).map_err(|error| error.to_string())?;
    let name = symbol.name().unwrap_or_default().to_owned();
    Ok(match (symbol.is_undefined(), symbol.is_weak()) {
        (false, _) => Goal::Inside(spot(symbol.address(), code_size)),
        (true, true) => Goal::Weak(name),
        (true, false) => Goal::Symbol(name),
    })
}
