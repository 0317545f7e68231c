//! The bytes of an image: mapped from a file, or held in memory.

use std::fs::File;
use std::ops::{Deref, Range};
use std::path::Path;

use super::error::ImageError;

#[derive(Debug)]
pub(super) enum Data {
    Mapped(lancet_sys::Mapped),
    Owned(Vec<u8>),
}

impl Deref for Data {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Data::Mapped(mapped) => mapped,
            Data::Owned(bytes) => bytes,
        }
    }
}

impl Data {
    pub fn open(path: &Path) -> Result<Data, ImageError> {
        let name = || path.display().to_string();
        let io = |action| move |cause| ImageError::Io { name: path.display().to_string(), action, cause };
        // Opening a FIFO or a device can block for ever, so the kind of file is checked first.
        let kind = std::fs::metadata(path).map_err(io("cannot open"))?.file_type();
        if kind.is_dir() {
            return Err(ImageError::NotAFile { name: name(), what: "is a directory" });
        }
        if !kind.is_file() {
            return Err(ImageError::NotAFile { name: name(), what: "is not a regular file" });
        }
        let file = File::open(path).map_err(io("cannot open"))?;
        lancet_sys::map_file(&file).map(Data::Mapped).map_err(io("cannot map"))
    }
}

/// `offset..offset + size` as indices, if a file of `len` bytes has all of it.
pub(super) fn range_in(len: usize, offset: u64, size: u64) -> Option<Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    (end <= len).then_some(start..end)
}
