//! A patch applied to an ELF file.
//!
//! The output is the input with changed bytes, plus segments behind everything that was there:
//!
//! ```text
//!   | header | program headers, more of them | old contents, edited ... | chunks | moved tables |
//!   | symbols, strings, section headers |
//! ```
//!
//! Nothing that code refers to changes its address. What had to make room for the program headers is found by the
//! loader through headers and dynamic entries, which are updated (see `room.rs`). Old section indices stay valid.
//!
//! | file | what |
//! | --- | --- |
//! | `raw.rs`, `headers.rs` | ELF records, and all headers of the input |
//! | `edits.rs` | changed bytes, pointers and the start-up hook |
//! | `room.rs` | where there is room for more program headers |
//! | `output.rs` | the new file, put together |
//! | `sections.rs` | section headers and symbols |
//! | `file.rs` | the file system: beside, then rename |
//!
//! Invariants of the output: loaded segments rise by address, share no page with a chunk, and have file offsets like
//! their addresses modulo the page size; `e_phoff` is where every loader expects it; and every chunk is covered by
//! sections if the input has any.

mod edits;
mod error;
mod file;
mod headers;
mod output;
mod raw;
mod room;
mod sections;

use std::path::Path;

use lancet_isa::Svma;
use object::elf;

pub use edits::Hook;
pub use error::SinkError;
pub use room::Tactic;

use crate::image::Image;
use crate::layout::{Chunk, ChunkKind, Patch};
use headers::{Headers, MIN_PAGE, MOST_SEGMENTS};
use output::Output;
use raw::Segment;

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    pub tactic: Tactic,
    /// Bytes of the file.
    pub size: u64,
}

/// The first address that layout may use for chunks: page-aligned, behind all that is loaded.
pub fn first_free(image: &Image) -> Result<Svma, SinkError> {
    Headers::read(image).map(|headers| Svma(headers.first_free()))
}

/// How start-up code would get control, so that it can be made to go on with what stood there before.
pub fn hook(image: &Image) -> Result<Hook, SinkError> {
    Hook::of(image, &Headers::read(image)?)
}

/// Writes the patched image to a new file, with the permissions of the old one.
pub fn write(image: &Image, patch: &Patch, out: &Path) -> Result<Written, SinkError> {
    file::check(image, out)?;
    let (bytes, tactic) = write_to_vec(image, patch)?;
    file::commit(image, &bytes, out)?;
    Ok(Written { tactic, size: bytes.len() as u64 })
}

/// The contents of the patched file.
pub fn write_to_vec(image: &Image, patch: &Patch) -> Result<(Vec<u8>, Tactic), SinkError> {
    let headers = Headers::read(image)?;
    let chunks = check(image, &headers, patch)?;
    let mut output = Output::edited(image, &headers, patch)?;
    output.make_room();
    output.add_chunks(&chunks);
    output.place_evicted();
    output.grow_dynamic();
    if let Some(frames) = patch.eh_frame_hdr {
        output.point_to_frames(frames)?;
    }
    output.place_table()?;
    output.add_sections(patch)?;
    Ok(output.finish())
}

/// Refuses what cannot be written, and gives the chunks by address.
fn check<'p>(image: &Image, headers: &Headers, patch: &'p Patch) -> Result<Vec<&'p Chunk>, SinkError> {
    let cannot = |what: &str| SinkError::CannotEdit { name: image.name().to_owned(), what: what.to_owned() };
    if headers.loads().next().is_none() {
        return Err(cannot("nothing of it is loaded"));
    }
    let flags = headers.dynamic(elf::DT_FLAGS).map_or(0, |(_, flags)| flags);
    if headers.dynamic(elf::DT_TEXTREL).is_some() || flags & elf::DF_TEXTREL.0 != 0 {
        return Err(cannot("the loader changes its code (DT_TEXTREL)"));
    }
    let mut chunks: Vec<&Chunk> = patch.chunks.iter().collect();
    chunks.sort_by_key(|chunk| chunk.at);
    // Behind the chunks there may be a segment with tables of the input.
    let last = headers.codec.last_address().saturating_sub(image.data().len() as u64 + 2 * headers.page());
    if headers.first_free() > last {
        return Err(cannot("there are no addresses behind it"));
    }
    let mut free = 0;
    for chunk in &chunks {
        let bad =
            |what: &str| SinkError::BadPatch { name: image.name().to_owned(), at: chunk.at, what: what.to_owned() };
        let size = size_in_memory(chunk);
        let end = chunk.at.0.checked_add(size).filter(|&end| end <= last);
        let Some(end) = end else { return Err(bad("a chunk past the end of the address space")) };
        if chunk.at.0 % MIN_PAGE != 0 {
            return Err(bad("a chunk that does not start at a page"));
        }
        if size == 0 || size < chunk.bytes.len() as u64 {
            return Err(bad("a chunk that is empty, or smaller than its bytes"));
        }
        // Not even a page is shared.
        let is_there = |load: &Segment| {
            let load_end = load.mem_end().checked_next_multiple_of(MIN_PAGE).unwrap_or(u64::MAX);
            chunk.at.0 < load_end && load.at / MIN_PAGE * MIN_PAGE < end
        };
        if chunk.at.0 < free || headers.loads().any(is_there) {
            return Err(bad("a chunk where something else is"));
        }
        free = end.next_multiple_of(MIN_PAGE);
    }
    let is_new_code = |at: Svma| {
        let mut code = chunks.iter().filter(|chunk| chunk.kind == ChunkKind::Code);
        code.any(|chunk| at >= chunk.at && at - chunk.at < chunk.bytes.len() as u64)
    };
    if let Some(at) = patch.start_up.filter(|&at| !is_new_code(at)) {
        let what = "start-up code outside of the new code".to_owned();
        return Err(SinkError::BadPatch { name: image.name().to_owned(), at, what });
    }
    if headers.segments.len() + chunks.len() + 5 >= MOST_SEGMENTS {
        return Err(cannot("it would have too many program headers"));
    }
    Ok(chunks)
}

fn size_in_memory(chunk: &Chunk) -> u64 {
    match chunk.kind {
        ChunkKind::Code => chunk.bytes.len() as u64,
        ChunkKind::Data { size } => size,
    }
}
