//! Filling in addresses.

use std::collections::BTreeMap;

use lancet_isa::Avma;

use super::LoadError;

/// What to place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub code: Vec<u8>,
    pub data: Vec<u8>,
    /// With what is zero behind `data`.
    pub data_size: u64,
    /// Data must directly follow the code's pages.
    pub is_apart: bool,
}

/// A place in a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    Code(u64),
    Data(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    Inside(Spot),
    Symbol(String),
    /// May be missing, and is 0 then.
    Weak(String),
    Absolute(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Absolute64,
    Absolute32,
    Signed32,
    /// A distance from the place.
    Relative32,
    /// The same, to something that is only called: a veneer may stand in.
    Call32,
    Relative64,
    /// A distance to a slot that holds the address.
    Slot32,
    /// Half of an address.
    Low16,
    High16,
    /// A distance from the instruction in units of 2 bytes: the low byte of its first word, and its second word, which
    /// is the place.
    Jump24,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fixup {
    pub at: Spot,
    pub kind: Kind,
    pub goal: Goal,
    pub addend: i64,
}

/// Final bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linked {
    pub code: Vec<u8>,
    pub data: Vec<u8>,
}

/// `jmp [rip]` and the address; also a slot.
const VENEER: [u8; 8] = [0xff, 0x25, 2, 0, 0, 0, 0x66, 0x90];
const VENEER_SIZE: u64 = 16;

fn needs_extra(fixup: &Fixup) -> bool {
    matches!(fixup.kind, Kind::Call32 | Kind::Slot32) && !matches!(fixup.goal, Goal::Absolute(_))
}

/// Room for a veneer or slot for each reference that may need one, and to align the first.
pub(super) fn extra_bytes(fixups: &[Fixup]) -> u64 {
    match fixups.iter().filter(|fixup| needs_extra(fixup)).count() as u64 {
        0 => 0,
        veneers => (veneers + 1) * VENEER_SIZE,
    }
}

pub(super) fn link(
    name: &str,
    layout: &Layout,
    fixups: &[Fixup],
    code_at: Avma,
    data_at: Avma,
    resolve: &dyn Fn(&str) -> Option<Avma>,
) -> Result<Linked, LoadError> {
    let addresses = resolved(name, fixups, resolve)?;
    let mut linked = Linked { code: layout.code.clone(), data: layout.data.clone() };
    // They stand behind the code, one for each goal.
    let mut veneers: BTreeMap<u64, u64> = BTreeMap::new();
    for fixup in fixups {
        let address_of = |spot: Spot| match spot {
            Spot::Code(offset) => code_at + offset,
            Spot::Data(offset) => data_at + offset,
        };
        let (goal, text) = match &fixup.goal {
            Goal::Inside(spot) => (address_of(*spot).0, "a part of it"),
            Goal::Symbol(symbol) | Goal::Weak(symbol) => {
                (addresses.get(symbol.as_str()).copied().unwrap_or(0), symbol.as_str())
            }
            Goal::Absolute(value) => (*value, "an absolute address"),
        };
        let place = address_of(fixup.at);
        let far = |to: u64| LoadError::TooFar { name: name.into(), symbol: text.into(), from: place, to: Avma(to) };
        let distance = |to: u64| to.wrapping_add_signed(fixup.addend).wrapping_sub(place.0).cast_signed();
        let sum = goal.wrapping_add_signed(fixup.addend);
        let value: u64 = match fixup.kind {
            Kind::Absolute64 => sum,
            Kind::Relative64 => distance(goal).cast_unsigned(),
            Kind::Absolute32 => u32::try_from(sum).map_err(|_| far(sum))?.into(),
            Kind::Signed32 => i32::try_from(sum.cast_signed()).map_err(|_| far(sum))? as u64,
            Kind::Relative32 => i32::try_from(distance(goal)).map_err(|_| far(goal))? as u64,
            Kind::Call32 => match i32::try_from(distance(goal)) {
                Ok(near) => near as u64,
                Err(_) => {
                    let at = veneer(&mut veneers, &mut linked.code, goal);
                    i32::try_from(distance(code_at.0 + at)).map_err(|_| far(goal))? as u64
                }
            },
            Kind::Slot32 => {
                let at = veneer(&mut veneers, &mut linked.code, goal) + VENEER.len() as u64;
                i32::try_from(distance(code_at.0 + at)).map_err(|_| far(goal))? as u64
            }
            Kind::Low16 => sum,
            Kind::High16 => sum >> 16,
            Kind::Jump24 => {
                // The address space has 32 bits and wraps around.
                let words = i64::from(distance(goal).wrapping_add(2) as i32 >> 1);
                if !(-(1 << 23)..1 << 23).contains(&words) {
                    return Err(far(sum));
                }
                words.cast_unsigned()
            }
        };
        let (bytes, offset) = match fixup.at {
            Spot::Code(offset) => (&mut linked.code, offset),
            Spot::Data(offset) => (&mut linked.data, offset),
        };
        let mut put = |at: Option<u64>, value: u64, len: usize| {
            let at = at.and_then(|at| usize::try_from(at).ok());
            let place = at.and_then(|at| bytes.get_mut(at..at.checked_add(len)?));
            let what = format!("a relocation lies outside of it ({offset:#x})");
            let place = place.ok_or_else(|| LoadError::Unusable { name: name.into(), what })?;
            place.copy_from_slice(&value.to_le_bytes()[..len]);
            Ok(())
        };
        match fixup.kind {
            Kind::Absolute64 | Kind::Relative64 => put(Some(offset), value, 8)?,
            Kind::Low16 | Kind::High16 => put(Some(offset), value, 2)?,
            Kind::Jump24 => {
                put(offset.checked_sub(2), value >> 16, 1)?;
                put(Some(offset), value, 2)?;
            }
            _ => put(Some(offset), value, 4)?,
        }
    }
    Ok(linked)
}

/// The offset of the veneer for an address. Its last 8 bytes are a slot.
fn veneer(veneers: &mut BTreeMap<u64, u64>, code: &mut Vec<u8>, goal: u64) -> u64 {
    *veneers.entry(goal).or_insert_with(|| {
        while !code.len().is_multiple_of(VENEER_SIZE as usize) {
            code.push(0x90);
        }
        let at = code.len() as u64;
        code.extend(VENEER);
        code.extend(goal.to_le_bytes());
        at
    })
}

fn resolved<'a>(
    name: &str,
    fixups: &'a [Fixup],
    resolve: &dyn Fn(&str) -> Option<Avma>,
) -> Result<BTreeMap<&'a str, u64>, LoadError> {
    let mut addresses: BTreeMap<&str, u64> = BTreeMap::new();
    let mut missing = Vec::new();
    for fixup in fixups {
        let (Goal::Symbol(symbol) | Goal::Weak(symbol)) = &fixup.goal else { continue };
        if addresses.contains_key(symbol.as_str()) || missing.contains(symbol) {
            continue;
        }
        match (resolve(symbol), &fixup.goal) {
            (Some(at), _) => drop(addresses.insert(symbol, at.0)),
            (None, Goal::Weak(_)) => {}
            (None, _) => missing.push(symbol.clone()),
        }
    }
    match missing.is_empty() {
        true => Ok(addresses),
        false => Err(LoadError::Unresolved { name: name.into(), symbols: missing }),
    }
}
