//! Relocatable objects (`.o`): sections are put one behind the other, and relocations name symbols.

use rustc_hash::FxHashMap;

use object::elf;
use object::read::elf::ElfFile64;
use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionIndex, SectionKind, SymbolKind,
};

use super::Export;
use super::relocate::{Fixup, Goal, Kind, Layout, Spot};

type File<'a> = ElfFile64<'a, Endianness>;

pub(super) fn read(file: &File<'_>) -> Result<(Layout, Vec<Fixup>, Vec<Export>), String> {
    let mut layout = Layout { code: Vec::new(), data: Vec::new(), data_size: 0, is_apart: false };
    let mut places: FxHashMap<SectionIndex, Spot> = FxHashMap::default();
    // What has bytes comes first, so that the rest of the data needs none.
    let mut zero = Vec::new();
    for section in file.sections() {
        match section.kind() {
            SectionKind::Text
            | SectionKind::ReadOnlyData
            | SectionKind::ReadOnlyString
            | SectionKind::ReadOnlyDataWithRel => {
                let is_unwind = section.name().is_ok_and(|name| name == ".eh_frame" || name.starts_with(".note"));
                if !is_unwind {
                    let bytes = section.uncompressed_data().map_err(|error| error.to_string())?;
                    let at = append(&mut layout.code, &bytes, section.align())?;
                    places.insert(section.index(), Spot::Code(at));
                }
            }
            SectionKind::Data => {
                let bytes = section.uncompressed_data().map_err(|error| error.to_string())?;
                let at = append(&mut layout.data, &bytes, section.align())?;
                places.insert(section.index(), Spot::Data(at));
            }
            SectionKind::UninitializedData => zero.push((section.index(), section.size(), section.align())),
            SectionKind::Tls | SectionKind::UninitializedTls if section.size() > 0 => {
                return Err("has thread-local variables, which cannot be added to a running process".into());
            }
            _ => {}
        }
    }
    layout.data_size = layout.data.len() as u64;
    for (index, size, align) in zero {
        let at = layout.data_size.checked_next_multiple_of(align.max(1)).ok_or("has sections that are too large")?;
        places.insert(index, Spot::Data(at));
        layout.data_size =
            at.checked_add(size).filter(|end| *end < super::LARGEST).ok_or("has sections that are too large")?;
    }
    let exports = exports(file, &places);
    let mut fixups = Vec::new();
    for section in file.sections() {
        let Some(place) = places.get(&section.index()) else { continue };
        for (offset, relocation) in section.relocations() {
            let object::RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let goal = match relocation.target() {
                RelocationTarget::Symbol(index) => goal(file, index, &places)?,
                RelocationTarget::Section(index) => {
                    Goal::Inside(*places.get(&index).ok_or("a relocation refers to a section that is not loaded")?)
                }
                _ => Goal::Absolute(0),
            };
            fixups.push(Fixup { at: shifted(*place, offset), kind: kind(r_type)?, goal, addend: relocation.addend() });
        }
    }
    Ok((layout, fixups, exports))
}

fn append(to: &mut Vec<u8>, bytes: &[u8], align: u64) -> Result<u64, String> {
    let at =
        (to.len() as u64).checked_next_multiple_of(align.clamp(1, 4096)).ok_or("has sections that are too large")?;
    to.resize(at as usize, 0xcc);
    to.extend_from_slice(bytes);
    Ok(at)
}

fn shifted(spot: Spot, by: u64) -> Spot {
    match spot {
        Spot::Code(at) => Spot::Code(at.wrapping_add(by)),
        Spot::Data(at) => Spot::Data(at.wrapping_add(by)),
    }
}

fn goal(file: &File<'_>, index: object::SymbolIndex, places: &FxHashMap<SectionIndex, Spot>) -> Result<Goal, String> {
    let symbol = file.symbol_by_index(index).map_err(|error| error.to_string())?;
    let name = || symbol.name().unwrap_or_default().to_owned();
    if symbol.is_undefined() {
        return Ok(if symbol.is_weak() { Goal::Weak(name()) } else { Goal::Symbol(name()) });
    }
    match symbol.section_index() {
        Some(section) => {
            let place = places.get(&section).ok_or_else(|| format!("{} is in a section that is not loaded", name()))?;
            Ok(Goal::Inside(shifted(*place, symbol.address())))
        }
        None if symbol.is_common() => Err(format!("{} has no place of its own; compile with -fno-common", name())),
        None => Ok(Goal::Absolute(symbol.address())),
    }
}

fn kind(r_type: elf::RelocationType) -> Result<Kind, String> {
    Ok(match r_type {
        elf::R_X86_64_64 => Kind::Absolute64,
        elf::R_X86_64_PC32 => Kind::Relative32,
        elf::R_X86_64_PLT32 => Kind::Call32,
        elf::R_X86_64_PC64 => Kind::Relative64,
        elf::R_X86_64_32 => Kind::Absolute32,
        elf::R_X86_64_32S => Kind::Signed32,
        elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX => Kind::Slot32,
        other => return Err(format!("has a relocation of an unsupported type ({})", other.0)),
    })
}

fn exports(file: &File<'_>, places: &FxHashMap<SectionIndex, Spot>) -> Vec<Export> {
    let functions = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    let export = |symbol: object::read::elf::ElfSymbol64<'_, '_, Endianness>| {
        let Spot::Code(at) = *places.get(&symbol.section_index()?)? else { return None };
        let name = symbol.name().ok().filter(|name| !name.is_empty())?.to_owned();
        Some(Export { name, offset: at.wrapping_add(symbol.address()), size: symbol.size() })
    };
    functions.filter_map(export).collect()
}
