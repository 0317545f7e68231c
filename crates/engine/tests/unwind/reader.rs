//! Reads unwind tables as an unwinder does: gimli for the frames, a plain reader for the search table and for landing
//! pads. Nothing of it is shared with what is tested.

use std::collections::BTreeMap;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EndianSlice, LittleEndian, Pointer, Reader, RegisterRule, UnwindContext,
    UnwindSection, UnwindTableRow,
};

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Bytes at an address.
#[derive(Clone, Copy)]
pub struct At<'a> {
    pub svma: u64,
    pub bytes: &'a [u8],
}

impl At<'_> {
    fn i32(&self, svma: u64) -> i64 {
        let offset = (svma - self.svma) as usize;
        i32::from_le_bytes(self.bytes[offset..offset + 4].try_into().expect("four bytes")).into()
    }
}

/// One FDE, all of it read.
#[derive(Debug)]
pub struct Frame {
    pub start: u64,
    pub end: u64,
    /// Where the entry is.
    pub entry: u64,
    pub lsda: Option<u64>,
    pub personality: Option<String>,
    /// From where on which rules hold.
    pub rows: Vec<(u64, String)>,
}

impl Frame {
    /// The rules at an address.
    pub fn row(&self, at: u64) -> &str {
        assert!(self.start <= at && at < self.end, "{at:#x} is not in {:#x}..{:#x}", self.start, self.end);
        let after = self.rows.partition_point(|row| row.0 <= at);
        after.checked_sub(1).map_or("", |index| &self.rows[index].1)
    }
}

/// Walks the chain of entries, which must take all of the bytes but for a terminator. FDEs by the place of the entry.
pub fn frames(table: At<'_>) -> BTreeMap<u64, Frame> {
    let section = EhFrame::new(table.bytes, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(table.svma);
    let mut found = BTreeMap::new();
    let mut entries = section.entries(&bases);
    let mut context = UnwindContext::new();
    while let Some(entry) = entries.next().expect("a sound chain") {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(EhFrame::cie_from_offset).expect("a sound FDE");
        let (start, end) = (fde.initial_address(), fde.end_address());
        if start == end {
            continue;
        }
        let mut rows = Vec::new();
        let mut unwind = fde.rows(&section, &bases, &mut context).expect("rules");
        while let Some(row) = unwind.next_row().expect("a sound rule") {
            if row.start_address() < row.end_address() {
                rows.push((row.start_address(), describe(row, &section)));
            }
        }
        let entry = table.svma + fde.offset() as u64;
        let lsda = fde.lsda().map(Pointer::pointer).filter(|&at| at.wrapping_sub(entry) > 64 && at != 0);
        let personality = fde.personality().map(|pointer| format!("{pointer:?}"));
        found.insert(entry, Frame { start, end, entry, lsda, personality, rows });
    }
    found
}

fn describe(row: &UnwindTableRow<usize>, section: &EhFrame<Bytes<'_>>) -> String {
    let code = |expression: &gimli::UnwindExpression<usize>| {
        format!("{:02x?}", expression.get(section).expect("an expression").0.slice())
    };
    let mut text = match row.cfa() {
        CfaRule::Expression(expression) => code(expression),
        rule => format!("{rule:?}"),
    };
    let mut registers: Vec<String> = row
        .registers()
        .map(|(register, rule)| match rule {
            RegisterRule::Expression(expression) => format!(" {}:[{}]", register.0, code(expression)),
            RegisterRule::ValExpression(expression) => format!(" {}:{}", register.0, code(expression)),
            rule => format!(" {}:{rule:?}", register.0),
        })
        .collect();
    registers.sort();
    text.extend(registers);
    text + &format!(" {}", row.saved_args_size())
}

/// `.eh_frame_hdr`: pairs of code and entry, in order.
pub fn search_table(header: At<'_>, eh_frame: u64) -> Vec<(u64, u64)> {
    assert_eq!(header.bytes[..4], [1, 0x1b, 0x03, 0x3b]);
    assert_eq!(header.svma % 4, 0);
    assert_eq!((header.svma + 4).wrapping_add_signed(header.i32(header.svma + 4)), eh_frame);
    let count = header.i32(header.svma + 8) as usize;
    assert_eq!(header.bytes.len(), 12 + 8 * count);
    let value = |index: u64| header.svma.wrapping_add_signed(header.i32(header.svma + 12 + 4 * index));
    let table: Vec<(u64, u64)> = (0..count as u64).map(|index| (value(2 * index), value(2 * index + 1))).collect();
    assert!(table.is_sorted_by(|a, b| a.0 < b.0), "the search table is not sorted");
    table
}

/// Where an exception thrown at an address goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handling {
    /// No call site: the program ends.
    None,
    /// It passes through.
    Through,
    Pad {
        pad: u64,
        actions: Vec<Action>,
    },
}

/// One step of a chain of actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Cleanup,
    /// Where the pointer to the type leads; 0 catches everything.
    Catch(u64),
    Allow(Vec<u64>),
}

/// A language-specific data area. The bytes start with it.
pub struct Lsda<'a> {
    at: At<'a>,
    function: u64,
    pads_start: u64,
    type_encoding: u8,
    types_end: usize,
    actions: usize,
    sites: Vec<[u64; 4]>,
}

impl<'a> Lsda<'a> {
    pub fn read(at: At<'a>, function: u64) -> Lsda<'a> {
        let mut rest = EndianSlice::new(at.bytes, LittleEndian);
        let whole = rest;
        let pads_start = match rest.read_u8().expect("LPStart") {
            0xff => function,
            0x1b => (at.svma + 1).wrapping_add_signed(rest.read_i32().expect("LPStart").into()),
            other => panic!("encoding {other:#x} of LPStart"),
        };
        let type_encoding = rest.read_u8().expect("types");
        let mut types_end = 0;
        if type_encoding != 0xff {
            let distance = rest.read_uleb128().expect("types") as usize;
            types_end = rest.offset_from(whole) + distance;
        }
        let encoding = rest.read_u8().expect("call sites");
        let size = rest.read_uleb128().expect("call sites") as usize;
        let mut coded = rest.split(size).expect("call sites");
        let mut sites = Vec::new();
        while !coded.is_empty() {
            let mut value = || match encoding {
                0x01 => coded.read_uleb128().expect("a call site"),
                0x03 => coded.read_u32().expect("a call site").into(),
                other => panic!("encoding {other:#x} of call sites"),
            };
            let [start, len, pad] = [value(), value(), value()];
            sites.push([start, len, pad, coded.read_uleb128().expect("a call site")]);
        }
        let actions = rest.offset_from(whole);
        Lsda { at, function, pads_start, type_encoding, types_end, actions, sites }
    }

    pub fn handling(&self, at: u64) -> Handling {
        let offset = at - self.function;
        let site = self.sites.iter().find(|&&[start, len, ..]| offset >= start && offset < start + len);
        match site {
            None => Handling::None,
            Some([_, _, 0, _]) => Handling::Through,
            Some(&[_, _, pad, action]) => {
                Handling::Pad { pad: self.pads_start.wrapping_add(pad), actions: self.actions(action) }
            }
        }
    }

    fn actions(&self, first: u64) -> Vec<Action> {
        let mut found = Vec::new();
        let mut next = (first != 0).then(|| self.actions + first as usize - 1);
        while let Some(offset) = next {
            let mut rest = self.slice(offset);
            let filter = rest.read_sleb128().expect("an action");
            let place = self.at.bytes.len() - rest.len();
            let distance = rest.read_sleb128().expect("an action") as isize;
            found.push(match filter {
                0 => Action::Cleanup,
                1.. => Action::Catch(self.type_at(filter as usize)),
                _ => {
                    let mut list = self.slice(self.types_end + filter.unsigned_abs() as usize - 1);
                    let indices = std::iter::from_fn(|| Some(list.read_uleb128().expect("a list of types")));
                    Action::Allow(indices.take_while(|&i| i != 0).map(|i| self.type_at(i as usize)).collect())
                }
            });
            next = (distance != 0).then(|| place.wrapping_add_signed(distance));
        }
        found
    }

    fn slice(&self, offset: usize) -> Bytes<'a> {
        EndianSlice::new(&self.at.bytes[offset..], LittleEndian)
    }

    fn type_at(&self, index: usize) -> u64 {
        match self.type_encoding {
            0x9b | 0x1b => {
                let place = self.at.svma + (self.types_end - 4 * index) as u64;
                match self.at.i32(place) {
                    0 => 0,
                    distance => place.wrapping_add_signed(distance),
                }
            }
            0x03 => self.slice(self.types_end - 4 * index).read_u32().expect("a type").into(),
            0x00 => self.slice(self.types_end - 8 * index).read_u64().expect("a type"),
            other => panic!("encoding {other:#x} of types"),
        }
    }
}
