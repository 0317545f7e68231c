//! The run-time code and its data at their places.
//!
//! ```text
//! data chunk    header of the counts file (a page) | its path, state (a page) | shard: owner, counters
//! code chunk    run-time code | clones | ...
//! ```
//!
//! If every thread has its own counters there is no shard in the data chunk.

use lancet_isa::Svma;
use lancet_isa::edit::{Edit, Field};
use lancet_isa::runtime::{
    HEADER_LEN, PATH_LEN, RunTimePlaces, SHARD_HEADER_LEN, STATE_LEN, Shard, SignalCode, ThreadPlace,
};

use super::clone::Counters;
use super::patch::{Chunk, ChunkKind};
use super::{Keep, LayoutError, PAGE, Sharing, Slot};

const _: () = assert!(PATH_LEN + STATE_LEN <= PAGE);

pub(super) struct Made {
    pub data: Chunk,
    pub counters: Counters,
    /// If each thread has its own counters: where its area tells which thread has them.
    pub cell: Option<Svma>,
    /// In the code, in that case: to be filled with where fields are listed that are for threads' areas.
    pub own_places: Option<Field>,
    pub code_at: Svma,
    pub code: Vec<u8>,
    pub start_up: Svma,
    pub forked: Svma,
    pub new_thread: Svma,
    pub state: Svma,
    pub signals: Option<SignalCode>,
}

/// Bytes of a shard with so many counters.
pub fn shard_len(counters: u32) -> u64 {
    (SHARD_HEADER_LEN + 8 * u64::from(counters)).next_multiple_of(PAGE)
}

/// Data from `at` on, and the code behind it.
pub(super) fn make(edit: &dyn Edit, at: Svma, keep: &Keep<'_>, counters: u32) -> Result<Made, LayoutError> {
    if keep.header.len() as u64 > HEADER_LEN || keep.path.len() as u64 >= PATH_LEN {
        return Err(LayoutError::LongPath { len: keep.path.len() });
    }
    let (path, shard) = (at + HEADER_LEN, at + HEADER_LEN + PAGE);
    let shard_len = shard_len(counters);
    let (code_at, place) = match keep.sharing {
        Sharing::PerThread(slot) => {
            if shard_len + u64::from(slot.at) > u64::from(Slot::ROOM) {
                return Err(LayoutError::ManyCounters { counters });
            }
            (shard, Shard::PerThread(ThreadPlace { at: slot.at, index: slot.index }))
        }
        Sharing::Alone | Sharing::Atomic => (shard + shard_len, Shard::At(shard)),
    };
    let (start_up, state) = (keep.start_up, path + PATH_LEN);
    let cuts = keep.cuts.map(|first| SHARD_HEADER_LEN as u32 + 8 * first.0);
    let places = RunTimePlaces { at: code_at, header: at, path, state, shard: place, shard_len, start_up, cuts };
    let made = edit.run_time(&places)?;
    let mut bytes = keep.header.to_vec();
    bytes.resize(HEADER_LEN as usize, 0);
    bytes.extend_from_slice(keep.path);
    Ok(Made {
        data: Chunk { at, bytes, kind: ChunkKind::Data { size: code_at - at } },
        counters: match place {
            Shard::At(shard) if keep.sharing == Sharing::Atomic => Counters::Contended { at: shard + SHARD_HEADER_LEN },
            Shard::At(shard) => Counters::Shared { at: shard + SHARD_HEADER_LEN },
            Shard::PerThread(place) => Counters::PerThread { base: place.shard() + SHARD_HEADER_LEN as u32 },
        },
        cell: match place {
            Shard::At(_) => None,
            Shard::PerThread(place) => Some(Svma(place.cell().into())),
        },
        own_places: made.own_places,
        code_at,
        code: made.bytes,
        start_up: made.start_up,
        forked: made.forked,
        new_thread: made.new_thread,
        state,
        signals: made.signals,
    })
}
