//! A user's analysis: a relocatable Blackfin object file that comes along with an edited program.
//!
//! Code goes to code memory and everything else to data memory, which on the chip are different memories. The object must
//! be complete by itself: it may not refer to the program, whose state it would disturb.

use std::collections::HashMap;
use std::path::Path;

use lancet_engine::layout::inplace::{Payload, PlacedPayload};
use lancet_isa::blackfin::EncodeError;
use object::{Architecture, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionKind};

use crate::Error;

// Relocations of the Blackfin ABI, as the GNU assembler writes them. The place is the 16-bit word that changes; for a call
// or a long jump it is the second word of the instruction.
const LUIMM16: u32 = 0x06;
const HUIMM16: u32 = 0x07;
const PCREL24_JUMP_X: u32 = 0x09;
const PCREL24: u32 = 0x0A;
const PCREL24_JUMP_L: u32 = 0x0D;
const PCREL24_CALL_X: u32 = 0x0E;
const BYTE4_DATA: u32 = 0x12;

/// An analysis that needs more than this, of code or of data, has no place on the chip nor beside it.
const LARGEST: u64 = 1 << 20;

/// The words in front of the data that switch instrumentation on and off use.
const SWITCH_BYTES: u32 = 16;

/// A part of the object, at an offset in code or data memory.
struct Piece {
    code: bool,
    offset: u32,
    bytes: Vec<u8>,
}

/// Where something is: in code or data memory, at an offset.
#[derive(Clone, Copy)]
struct Spot {
    code: bool,
    offset: u32,
}

struct Fixup {
    at: Spot,
    kind: u32,
    to: Spot,
    addend: u32,
}

pub struct Analysis {
    pieces: Vec<Piece>,
    fixups: Vec<Fixup>,
    routines: Vec<Spot>,
    data_bytes: u32,
    /// What the switch says at first.
    starts_on: bool,
}

impl Analysis {
    /// Reads an object, whose calls are on at first or not. `routines` are the names of what is called, in the order of
    /// their numbers.
    pub fn open(path: &Path, routines: &[String], starts_on: bool) -> Result<Analysis, Error> {
        let name = path.display().to_string();
        let wrong = |what: String| Error::AnalysisObject { path: name.clone(), what };
        let bytes = std::fs::read(path).map_err(|cause| Error::File { path: name.clone(), cause })?;
        let file = object::File::parse(&*bytes).map_err(|error| wrong(error.to_string()))?;
        let machine = bytes.get(18..20).map_or(0, |field| u16::from_le_bytes([field[0], field[1]]));
        // Where an analysis comes along, loops close in hardware.
        let is_blackfin = lancet_isa::for_elf_machine(machine).is_some_and(|isa| isa.facts().hardware_loops);
        if !is_blackfin || file.kind() != object::ObjectKind::Relocatable {
            let what = if file.architecture() == Architecture::Unknown { "no Blackfin object" } else { "no object" };
            return Err(wrong(format!("{what} that can be linked")));
        }
        let mut analysis = Analysis {
            pieces: Vec::new(),
            fixups: Vec::new(),
            routines: Vec::new(),
            data_bytes: SWITCH_BYTES,
            starts_on,
        };
        let too_large = || wrong("it is too large".to_owned());
        let mut spots = HashMap::new();
        let mut code_bytes: u32 = 0;
        for section in file.sections() {
            let code = match section.kind() {
                SectionKind::Text => true,
                SectionKind::Data
                | SectionKind::ReadOnlyData
                | SectionKind::ReadOnlyString
                | SectionKind::UninitializedData => false,
                _ => continue,
            };
            let end = if code { &mut code_bytes } else { &mut analysis.data_bytes };
            let offset = end.next_multiple_of(section.align().clamp(4, 64) as u32);
            *end = grown(offset, section.size()).ok_or_else(too_large)?;
            spots.insert(section.index(), Spot { code, offset });
            let data = section.data().map_err(|error| wrong(error.to_string()))?;
            analysis.pieces.push(Piece { code, offset, bytes: data.to_vec() });
        }
        let mut symbols = HashMap::new();
        for symbol in file.symbols() {
            let spot = match symbol.section_index().and_then(|index| spots.get(&index)) {
                Some(spot) => Spot { code: spot.code, offset: spot.offset.wrapping_add(symbol.address() as u32) },
                None if symbol.is_common() => {
                    let offset = analysis.data_bytes.next_multiple_of(8);
                    analysis.data_bytes = grown(offset, symbol.size()).ok_or_else(too_large)?;
                    Spot { code: false, offset }
                }
                None => continue,
            };
            symbols.insert(symbol.index(), spot);
        }
        for routine in routines {
            let found =
                file.symbols().find(|symbol| symbol.name() == Ok(routine) && symbols.contains_key(&symbol.index()));
            let spot = found.and_then(|symbol| symbols.get(&symbol.index())).filter(|spot| spot.code);
            analysis.routines.push(*spot.ok_or_else(|| wrong(format!("it has no routine {routine}")))?);
        }
        for section in file.sections() {
            let Some(spot) = spots.get(&section.index()).copied() else { continue };
            for (offset, relocation) in section.relocations() {
                let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
                let to = match relocation.target() {
                    RelocationTarget::Symbol(index) => symbols.get(&index).copied(),
                    _ => None,
                };
                let to = to.ok_or_else(|| wrong(format!("{:#x}: it refers to something outside", offset)))?;
                let kind = r_type.0;
                if !matches!(kind, LUIMM16 | HUIMM16 | BYTE4_DATA) && !is_jump(kind) {
                    return Err(wrong(format!("{offset:#x}: relocation {kind:#x} is not known")));
                }
                let at = Spot { code: spot.code, offset: spot.offset.wrapping_add(offset as u32) };
                analysis.fixups.push(Fixup { at, kind, to, addend: relocation.addend() as u32 });
            }
        }
        Ok(analysis)
    }
}

/// The offset behind something of this size.
fn grown(offset: u32, size: u64) -> Option<u32> {
    let end = u64::from(offset).checked_add(size)?;
    (end <= LARGEST).then_some(end as u32)
}

fn is_jump(kind: u32) -> bool {
    matches!(kind, PCREL24 | PCREL24_JUMP_X | PCREL24_JUMP_L | PCREL24_CALL_X)
}

impl Payload for Analysis {
    fn data_bytes(&self) -> u32 {
        self.data_bytes
    }

    fn place(&self, code_at: u32, data_at: u32) -> Result<PlacedPayload, EncodeError> {
        let address = |spot: Spot| if spot.code { code_at } else { data_at }.wrapping_add(spot.offset);
        let (mut code, mut data) = (Vec::new(), vec![u8::from(self.starts_on)]);
        for piece in &self.pieces {
            let into = if piece.code { &mut code } else { &mut data };
            into.resize(into.len().max(piece.offset as usize + piece.bytes.len()), 0);
            into[piece.offset as usize..piece.offset as usize + piece.bytes.len()].copy_from_slice(&piece.bytes);
        }
        for fixup in &self.fixups {
            let value = address(fixup.to).wrapping_add(fixup.addend);
            let into = if fixup.at.code { &mut code } else { &mut data };
            let at = fixup.at.offset as usize;
            match fixup.kind {
                LUIMM16 => put(into, at, &(value as u16).to_le_bytes()),
                HUIMM16 => put(into, at, &((value >> 16) as u16).to_le_bytes()),
                BYTE4_DATA => put(into, at, &value.to_le_bytes()),
                _ => {
                    // 24 bits in units of 2 bytes: the low byte of the first word, and the second word.
                    let insn = address(fixup.at).wrapping_sub(2);
                    let distance = value.wrapping_sub(insn) as i32 >> 1;
                    if !(-(1 << 23)..1 << 23).contains(&distance) {
                        return Err(EncodeError::OutOfReach { at: insn, target: value });
                    }
                    put(into, at.wrapping_sub(2), &[(distance >> 16) as u8]);
                    put(into, at, &(distance as u16).to_le_bytes());
                }
            }
        }
        let routines = self.routines.iter().map(|spot| address(*spot)).collect();
        Ok(PlacedPayload { code, routines, data })
    }
}

fn put(into: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(target) = into.get_mut(at..at.saturating_add(bytes.len())) {
        target.copy_from_slice(bytes);
    }
}
