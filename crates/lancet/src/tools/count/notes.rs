//! What a rewritten program remembers of its counters, so that they can be read without the plan.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use lancet_engine::image::Image;
use lancet_engine::layout::Sharing;
use lancet_engine::program::{BlockId, EdgeId};
use lancet_isa::Svma;
use serde::{Deserialize, Serialize};

use super::{Derived, Placement, Rounds, Slot};

/// Changes with whatever would make old notes misunderstood, the analysis' numbering of edges included.
const VERSION: u32 = 6;

/// No program has so many counters that its notes are larger; what claims to be is not ours.
const MAX_BYTES: u64 = 1 << 30;

/// The counters of a rewritten program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notes {
    pub original: Original,
    pub manner: Manner,
    /// By entry.
    pub funcs: Vec<NotedFunc>,
}

/// What the code of a rewritten program depends on beside its counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Manner {
    pub sharing: Sharing,
    pub rounds: Rounds,
    /// Where a handler interrupts is noted, behind all counters.
    pub cuts: bool,
}

/// The program that was rewritten.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Original {
    pub path: String,
    pub len: u64,
    pub crc32: u32,
}

impl Original {
    pub fn of(image: &Image) -> Original {
        let path = image.path().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        Original {
            path: path.map_or_else(|| image.name().to_owned(), |path| path.to_string_lossy().into_owned()),
            len: image.data().len() as u64,
            crc32: crc32fast::hash(image.data()),
        }
    }

    /// Is this the same file?
    pub fn is(&self, image: &Image) -> bool {
        self.len == image.data().len() as u64 && self.crc32 == crc32fast::hash(image.data())
    }
}

/// The counters of one function: consecutive ones, in the order of the placement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotedFunc {
    pub entry: Svma,
    pub first: u32,
    pub placement: Placement,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    original: Original,
    manner: Manner,
    funcs: Vec<StoredFunc>,
}

#[derive(Serialize, Deserialize)]
struct StoredFunc {
    entry: u64,
    counters: Vec<u32>,
    open: Vec<u32>,
    joined: Vec<u32>,
    derived: Vec<(u32, i64)>,
}

impl Notes {
    pub fn to_bytes(&self) -> Vec<u8> {
        let func = |func: &NotedFunc| StoredFunc {
            entry: func.entry.0,
            counters: func.placement.counters.iter().map(|slot| pack(*slot)).collect(),
            open: func.placement.open.iter().map(|block| block.0).collect(),
            joined: func.placement.joined.iter().map(|edge| edge.0).collect(),
            derived: func.placement.derived.iter().map(|derived| (derived.block.0, derived.by)).collect(),
        };
        let (original, manner) = (self.original.clone(), self.manner);
        let stored = Stored { version: VERSION, original, manner, funcs: self.funcs.iter().map(func).collect() };
        // Into memory, of types without surprises: this cannot fail.
        let bytes = postcard::to_stdvec(&stored).unwrap_or_default();
        // More effort saves little and costs much.
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&bytes).and_then(|()| packed.finish()).unwrap_or_default()
    }

    /// `None` if these are no notes, or another version's.
    pub fn from_bytes(packed: &[u8]) -> Option<Notes> {
        let mut bytes = Vec::new();
        ZlibDecoder::new(packed).take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
        let stored: Stored = postcard::from_bytes(&bytes).ok().filter(|stored: &Stored| stored.version == VERSION)?;
        let mut first = 0u32;
        let mut funcs = Vec::with_capacity(stored.funcs.len());
        for func in stored.funcs {
            let placement = Placement {
                counters: func.counters.into_iter().map(unpack).collect(),
                open: func.open.into_iter().map(BlockId).collect(),
                joined: func.joined.into_iter().map(EdgeId).collect(),
                derived: func.derived.into_iter().map(|(block, by)| Derived { block: BlockId(block), by }).collect(),
            };
            let count = placement.numbers();
            funcs.push(NotedFunc { entry: Svma(func.entry), first, placement });
            first = first.checked_add(count)?;
        }
        Some(Notes { original: stored.original, manner: stored.manner, funcs })
    }
}

fn pack(slot: Slot) -> u32 {
    match slot {
        Slot::Edge(id) => id.0 << 2,
        Slot::Entry(i) => i << 2 | 1,
        Slot::Exit(i) => i << 2 | 2,
        Slot::Block(id) => id.0 << 2 | 3,
    }
}

fn unpack(packed: u32) -> Slot {
    let i = packed >> 2;
    match packed & 3 {
        0 => Slot::Edge(EdgeId(i)),
        1 => Slot::Entry(i),
        2 => Slot::Exit(i),
        _ => Slot::Block(BlockId(i)),
    }
}
