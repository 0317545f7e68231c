//! Where new code and data go: on-chip memory first, because accesses to it leave the caches alone.
//!
//! | | code | data |
//! | --- | --- | --- |
//! | with an event controller | L1 instruction memory | the halves of the L1 data banks that are never cache, then L2 |
//! | then, and without | SDRAM, 7 MB up | SDRAM, 10 MB up |
//!
//! A jump reaches 16 MB. L1 instruction memory lies 6 MB below address 0, so what is less than 10 MB up reaches it and is
//! reached from it. The heap of a program must stay below; stacks start higher up.

use std::ops::Range;

use lancet_isa::blackfin::EncodeError;

use super::InPlaceError;
use super::levels::Environment;
use crate::image::Image;

const L1_CODE: Range<u32> = 0xFFA0_0000..0xFFA0_C000;
const L1_DATA: [Range<u32>; 2] = [0xFF80_0000..0xFF80_4000, 0xFF90_0000..0xFF90_4000];
const L2: Range<u32> = 0xFEB0_0000..0xFEB2_0000;
const SDRAM_CODE: Range<u32> = 0x0070_0000..0x00A0_0000;
const SDRAM_DATA: Range<u32> = 0x00A0_0000..0x0100_0000;

/// ELF writers want a chunk to share no page with another.
const PAGE: u32 = 0x1000;

/// Memory that a program leaves free.
#[derive(Clone, Debug)]
pub struct Room {
    code: Vec<Range<u32>>,
    data: Vec<Range<u32>>,
}

pub fn is_on_chip(at: u32) -> bool {
    at >= L2.start
}

impl Room {
    pub fn of(image: &Image, environment: Environment) -> Room {
        let (mut code, mut data) = (Vec::new(), Vec::new());
        if environment == Environment::Operating {
            code.push(L1_CODE);
            data.extend(L1_DATA);
            data.push(L2);
        }
        code.push(SDRAM_CODE);
        data.push(SDRAM_DATA);
        let used: Vec<Range<u32>> = image
            .segments()
            .iter()
            .map(|segment| {
                segment.svma.0 as u32..(segment.svma.0 + segment.mem_size).next_multiple_of(u64::from(PAGE)) as u32
            })
            .collect();
        // What stands at the start of a bank is common; holes behind other things are not worth the trouble.
        let free = |range: Range<u32>| {
            let start = used.iter().filter(|u| u.start < range.end && u.end > range.start).map(|u| u.end).max();
            start.unwrap_or(range.start).max(range.start)..range.end
        };
        Room { code: code.into_iter().map(free).collect(), data: data.into_iter().map(free).collect() }
    }
}

/// Hands out room.
pub struct Allocator {
    room: Room,
    /// What was placed: address, bytes, whether it is code. Neighbours are one.
    placed: Vec<(u32, Vec<u8>, bool)>,
}

impl Allocator {
    pub fn new(room: Room) -> Allocator {
        Allocator { room, placed: Vec::new() }
    }

    /// Zeroed data of this size.
    pub fn data(&mut self, bytes: u32) -> Result<u32, InPlaceError> {
        let bytes = bytes.next_multiple_of(8);
        let fits = |range: &&mut Range<u32>| range.end.saturating_sub(range.start) >= bytes;
        let range = self.room.data.iter_mut().find(fits).ok_or(InPlaceError::NoRoom { what: "data", bytes })?;
        let at = range.start;
        range.start += bytes;
        self.put(at, vec![0; bytes as usize], false);
        Ok(at)
    }

    /// Fills data that was handed out.
    pub fn fill(&mut self, at: u32, bytes: &[u8]) {
        for (start, placed, _) in &mut self.placed {
            if let Some(target) = at.checked_sub(*start).and_then(|from| {
                let from = from as usize;
                placed.get_mut(from..from + bytes.len())
            }) {
                target.copy_from_slice(bytes);
                return;
            }
        }
    }

    /// Code, which `write` makes for the address that it gets. It is made again elsewhere if it does not fit, or if it
    /// does not reach from there what it wants to.
    pub fn code(&mut self, mut write: impl FnMut(u32) -> Result<Vec<u8>, EncodeError>) -> Result<u32, InPlaceError> {
        let mut error = InPlaceError::NoRoom { what: "code", bytes: 0 };
        for i in 0..self.room.code.len() {
            let Range { start, end } = self.room.code[i].clone();
            if start >= end {
                continue;
            }
            match write(start) {
                Ok(bytes) if bytes.len() as u32 <= end - start => {
                    self.room.code[i].start = start + (bytes.len() as u32).next_multiple_of(2);
                    self.put(start, bytes, true);
                    return Ok(start);
                }
                Ok(bytes) => error = InPlaceError::NoRoom { what: "code", bytes: bytes.len() as u32 },
                Err(cause) => error = cause.into(),
            }
        }
        Err(error)
    }

    fn put(&mut self, at: u32, bytes: Vec<u8>, code: bool) {
        match self.placed.iter_mut().find(|(start, placed, kind)| *kind == code && start + placed.len() as u32 == at) {
            Some((_, placed, _)) => placed.extend(bytes),
            None => self.placed.push((at, bytes, code)),
        }
    }

    pub fn take(&mut self) -> Vec<(u32, Vec<u8>, bool)> {
        std::mem::take(&mut self.placed)
    }
}
