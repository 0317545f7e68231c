//! The run-time code and its data at their places.
//!
//! ```text
//! code chunk    run-time code | clones | ...
//! data chunk    header of the counts file (a page) | its path (a page) | shard: owner, counters
//! ```

use lancet_isa::Svma;
use lancet_isa::edit::{Edit, EncodeError};
use lancet_isa::runtime::{HEADER_LEN, PATH_LEN, RunTimePlaces, SHARD_HEADER_LEN};

use super::patch::{Chunk, ChunkKind};
use super::{Keep, LayoutError, PAGE};

/// Any distance to the data that a program can have gives the same code.
const SOMEWHERE: u64 = 1 << 20;

pub(super) struct RunTimeMaker<'a> {
    edit: &'static dyn Edit,
    at: Svma,
    keep: Keep<'a>,
    shard_len: u64,
    code_len: u64,
}

pub(super) struct Made {
    pub start_up: Svma,
    pub forked: Svma,
    pub counters: Svma,
    pub data: Chunk,
}

/// Bytes of a shard with so many counters.
pub fn shard_len(counters: u32) -> u64 {
    (SHARD_HEADER_LEN + 8 * u64::from(counters)).next_multiple_of(PAGE)
}

impl<'a> RunTimeMaker<'a> {
    pub fn new(
        edit: &'static dyn Edit,
        at: Svma,
        keep: Keep<'a>,
        counters: u32,
    ) -> Result<RunTimeMaker<'a>, LayoutError> {
        let mut maker = RunTimeMaker { edit, at, keep, shard_len: shard_len(counters), code_len: 0 };
        let fits = keep.header.len() as u64 <= HEADER_LEN && (keep.path.len() as u64) < PATH_LEN;
        if !fits {
            return Err(LayoutError::LongPath { len: keep.path.len() });
        }
        maker.code_len = edit.run_time(&maker.places(at + SOMEWHERE))?.bytes.len() as u64;
        Ok(maker)
    }

    /// Where the run-time code ends.
    pub fn code_end(&self) -> Svma {
        self.at + self.code_len
    }

    fn places(&self, data: Svma) -> RunTimePlaces {
        RunTimePlaces {
            at: self.at,
            header: data,
            path: data + HEADER_LEN,
            shard: data + HEADER_LEN + PAGE,
            shard_len: self.shard_len,
            start_up: self.keep.start_up,
        }
    }

    /// Appends the code, which knows its data at `data`.
    pub fn make(&self, data: Svma, code: &mut Vec<u8>) -> Result<Made, LayoutError> {
        let places = self.places(data);
        let made = self.edit.run_time(&places)?;
        if made.bytes.len() as u64 != self.code_len {
            let why = "its length depends on its place".to_owned();
            return Err(EncodeError { at: self.at, why }.into());
        }
        code.extend_from_slice(&made.bytes);
        let mut bytes = self.keep.header.to_vec();
        bytes.resize(HEADER_LEN as usize, 0);
        bytes.extend_from_slice(self.keep.path);
        let size = places.shard - data + self.shard_len;
        Ok(Made {
            start_up: made.start_up,
            forked: made.forked,
            counters: places.shard + SHARD_HEADER_LEN,
            data: Chunk { at: data, bytes, kind: ChunkKind::Data { size } },
        })
    }
}
