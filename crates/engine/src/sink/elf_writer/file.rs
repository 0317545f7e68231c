//! The output file: written beside its final place, then renamed, so that a reader never sees half of it.
//!
//! Refused: the input itself as output, by whatever name; something that is no regular file (renaming would replace
//! `/dev/null`); an input with rights of its own. A link at the output's place is replaced, not followed.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::SinkError;
use crate::image::Image;

const SET_ID_BITS: u32 = 0o6000;
const PERMISSION_BITS: u32 = 0o777;
/// For an image that does not come from a file.
const PROGRAM_MODE: u32 = 0o755;
/// Holes in files are this large or a multiple of it on every usual file system.
const HOLE: usize = 4096;

/// Refuses what would be wrong to write, before any work is done.
pub(super) fn check(image: &Image, out: &Path) -> Result<(), SinkError> {
    let (name, shown) = (image.name().to_owned(), out.display().to_string());
    let io = |action| move |cause| SinkError::Io { out: out.display().to_string(), action, cause };
    let target = match fs::metadata(out) {
        Ok(target) => Some(target),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(io("cannot look at it")(error)),
    };
    if let Some(path) = image.path() {
        let source = fs::metadata(path).map_err(io("cannot look at its input"))?;
        if target.as_ref().is_some_and(|target| (target.dev(), target.ino()) == (source.dev(), source.ino())) {
            return Err(SinkError::OwnInput { name, out: shown });
        }
        let rights = [
            (source.mode() & SET_ID_BITS != 0, "it is set-user-ID or set-group-ID"),
            (has_capabilities(path), "it has file capabilities"),
        ];
        if let Some((_, what)) = rights.into_iter().find(|right| right.0) {
            return Err(SinkError::Privileged { name, what });
        }
    }
    if target.is_some_and(|target| !target.is_file()) {
        return Err(SinkError::NotAFile { out: shown });
    }
    Ok(())
}

fn has_capabilities(path: &Path) -> bool {
    // An empty buffer asks for the length; no such attribute, or no attributes at all, is an error.
    let mut length_only: [u8; 0] = [];
    rustix::fs::getxattr(path, "security.capability", &mut length_only).is_ok()
}

/// Puts `bytes` in place with the permissions of the image's file. On failure nothing is left behind.
pub(super) fn commit(image: &Image, bytes: &[u8], out: &Path) -> Result<(), SinkError> {
    let io = |action| move |cause| SinkError::Io { out: out.display().to_string(), action, cause };
    let mode = match image.path() {
        Some(path) => fs::metadata(path).map_err(io("cannot look at its input"))?.mode() & PERMISSION_BITS,
        None => PROGRAM_MODE,
    };
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut prefix = OsStr::new(".").to_owned();
    prefix.push(out.file_name().unwrap_or_default());
    // Removed when dropped, that is on every way out of here but the last.
    let mut beside = tempfile::Builder::new()
        .prefix(&prefix)
        .suffix(".part")
        .tempfile_in(folder)
        .map_err(io("cannot create a file in its directory"))?;
    write_with_holes(beside.as_file_mut(), bytes).map_err(io("cannot write"))?;
    beside.as_file().set_permissions(Permissions::from_mode(mode)).map_err(io("cannot set its mode"))?;
    beside.persist(out).map_err(|error| io("cannot put it in place")(error.error))?;
    Ok(())
}

/// Zeros that fill whole pages take no room on the disk: a table of headers may have to stand far behind the rest.
fn write_with_holes(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let mut at = 0;
    while at < bytes.len() {
        let mut pages = bytes[at..].chunks(HOLE);
        let zeros = pages.clone().take_while(|page| page.iter().all(|&byte| byte == 0)).map(<[u8]>::len).sum::<usize>();
        if zeros != 0 {
            at += zeros;
            continue;
        }
        let data = pages.by_ref().take_while(|page| page.iter().any(|&byte| byte != 0)).map(<[u8]>::len).sum::<usize>();
        file.seek(SeekFrom::Start(at as u64))?;
        file.write_all(&bytes[at..at + data])?;
        at += data;
    }
    file.set_len(bytes.len() as u64)
}
