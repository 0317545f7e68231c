//! Relocatable objects (`.o`): sections are put one behind the other, and relocations name symbols.

use rustc_hash::FxHashMap;

use object::elf;
use object::read::elf::{ElfFile, FileHeader};
use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionIndex, SectionKind, SymbolKind,
};

use super::relocate::{Fixup, Goal, Kind, Layout, Spot};
use super::{Export, Read};

/// Reads an object. With `harvard`, loads may not reach its code: constants go with the data.
pub(super) fn read<E: FileHeader<Endian = Endianness>>(file: &ElfFile<'_, E>, harvard: bool) -> Read {
    let mut layout = Layout { code: Vec::new(), data: Vec::new(), data_size: 0, is_apart: false };
    let mut places: FxHashMap<SectionIndex, Spot> = FxHashMap::default();
    // What has bytes comes first, so that the rest of the data needs none.
    let mut zero = Vec::new();
    for section in file.sections() {
        let kind =
            match section.kind() {
                SectionKind::ReadOnlyData | SectionKind::ReadOnlyString | SectionKind::ReadOnlyDataWithRel => {
                    if harvard { SectionKind::Data } else { SectionKind::Text }
                }
                kind => kind,
            };
        match kind {
            SectionKind::Text => {
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
    let mut commons = FxHashMap::default();
    for symbol in file.symbols().filter(|symbol| harvard && symbol.is_common()) {
        let at = layout.data_size.next_multiple_of(8);
        commons.insert(symbol.index(), Spot::Data(at));
        layout.data_size = at
            .checked_add(symbol.size())
            .filter(|end| *end < super::LARGEST)
            .ok_or("has sections that are too large")?;
    }
    let exports = exports(file, &places, harvard);
    let mut fixups = Vec::new();
    for section in file.sections() {
        let Some(place) = places.get(&section.index()) else { continue };
        for (offset, relocation) in section.relocations() {
            let object::RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let goal = match relocation.target() {
                RelocationTarget::Symbol(index) => match commons.get(&index) {
                    Some(spot) => Goal::Inside(*spot),
                    None => goal(file, index, &places)?,
                },
                RelocationTarget::Section(index) => {
                    Goal::Inside(*places.get(&index).ok_or("a relocation refers to a section that is not loaded")?)
                }
                _ => Goal::Absolute(0),
            };
            let kind = if harvard { blackfin(r_type) } else { x86_64(r_type) };
            let kind = kind.ok_or_else(|| format!("has a relocation of an unsupported type ({})", r_type.0))?;
            fixups.push(Fixup { at: shifted(*place, offset), kind, goal, addend: relocation.addend() });
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

fn goal<E: FileHeader<Endian = Endianness>>(
    file: &ElfFile<'_, E>,
    index: object::SymbolIndex,
    places: &FxHashMap<SectionIndex, Spot>,
) -> Result<Goal, String> {
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

fn x86_64(r_type: elf::RelocationType) -> Option<Kind> {
    Some(match r_type {
        elf::R_X86_64_64 => Kind::Absolute64,
        elf::R_X86_64_PC32 => Kind::Relative32,
        elf::R_X86_64_PLT32 => Kind::Call32,
        elf::R_X86_64_PC64 => Kind::Relative64,
        elf::R_X86_64_32 => Kind::Absolute32,
        elf::R_X86_64_32S => Kind::Signed32,
        elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX => Kind::Slot32,
        _ => return None,
    })
}

/// As the GNU assembler writes them: R_BFIN_LUIMM16, HUIMM16, PCREL24_JUMP_X, PCREL24, PCREL24_JUMP_L, PCREL24_CALL_X,
/// BYTE4_DATA.
fn blackfin(r_type: elf::RelocationType) -> Option<Kind> {
    Some(match r_type.0 {
        0x06 => Kind::Low16,
        0x07 => Kind::High16,
        0x09 | 0x0A | 0x0D | 0x0E => Kind::Jump24,
        0x12 => Kind::Absolute32,
        _ => return None,
    })
}

/// Functions. Assembly for Blackfin rarely says which symbols these are, so there all of code are.
fn exports<E: FileHeader<Endian = Endianness>>(
    file: &ElfFile<'_, E>,
    places: &FxHashMap<SectionIndex, Spot>,
    harvard: bool,
) -> Vec<Export> {
    let is_function =
        |kind| kind == SymbolKind::Text || harvard && !matches!(kind, SymbolKind::Section | SymbolKind::File);
    let export = |symbol: object::read::elf::ElfSymbol<'_, '_, E>| {
        let Spot::Code(at) = *places.get(&symbol.section_index()?)? else { return None };
        let name = symbol.name().ok().filter(|name| !name.is_empty())?.to_owned();
        Some(Export { name, offset: at.wrapping_add(symbol.address()), size: symbol.size() })
    };
    let functions = file.symbols().filter(|symbol| is_function(symbol.kind()) && !symbol.is_undefined());
    functions.filter_map(export).collect()
}
