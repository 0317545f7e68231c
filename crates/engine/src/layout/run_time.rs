//! The run-time code and its data at their places.
//!
//! ```text
//! data chunk    header of the counts file (a page) | its path (a page) | shard: owner, counters
//! code chunk    run-time code | clones | ...
//! ```

use lancet_isa::Svma;
use lancet_isa::edit::Edit;
use lancet_isa::runtime::{HEADER_LEN, PATH_LEN, RunTimePlaces, SHARD_HEADER_LEN};

use super::patch::{Chunk, ChunkKind};
use super::{Keep, LayoutError, PAGE};

pub(super) struct Made {
    pub data: Chunk,
    pub counters: Svma,
    pub code_at: Svma,
    pub code: Vec<u8>,
    pub start_up: Svma,
    pub forked: Svma,
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
    let code_at = shard + shard_len;
    let start_up = keep.start_up;
    let made = edit.run_time(&RunTimePlaces { at: code_at, header: at, path, shard, shard_len, start_up })?;
    let mut bytes = keep.header.to_vec();
    bytes.resize(HEADER_LEN as usize, 0);
    bytes.extend_from_slice(keep.path);
    Ok(Made {
        data: Chunk { at, bytes, kind: ChunkKind::Data { size: code_at - at } },
        counters: shard + SHARD_HEADER_LEN,
        code_at,
        code: made.bytes,
        start_up: made.start_up,
        forked: made.forked,
    })
}
