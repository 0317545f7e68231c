//! The separate debug file that distributions strip off a program.
//!
//! Two ways lead to it, as gdb documents under "Debugging Information in Separate Files":
//! - the build id: `/usr/lib/debug/.build-id/ab/cdef....debug`;
//! - `.gnu_debuglink`: a file name and a CRC. The file is beside the program, in `.debug` there, or under
//!   `/usr/lib/debug` followed by the program's folder.
//!
//! A file that is not of the very same link (build id, or CRC where there is none) is worse than none: its addresses
//! are wrong. It is never used.

use std::path::{Path, PathBuf};

use object::Endian;

use super::data::Data;
use super::headers::{Headers, Scope};
use super::notes;
use super::tables::{SymbolTable, Tables};

const DEBUG_ROOT: &str = "/usr/lib/debug";

#[derive(Debug)]
pub(super) struct DebugFile {
    pub path: PathBuf,
    pub data: Data,
    pub headers: Headers,
    pub symbols: Option<SymbolTable>,
}

impl DebugFile {
    /// Finds the debug file of the file at `path`.
    pub fn find(path: &Path, data: &[u8], headers: &Headers) -> Option<DebugFile> {
        let build_id = notes::build_id(data, headers);
        let by_id = build_id
            .and_then(build_id_path)
            .and_then(|path| DebugFile::open(&path))
            .filter(|found| found.has_id(build_id));
        by_id.or_else(|| {
            let (name, crc) = debug_link(data, headers)?;
            let candidates = beside(path, name)?;
            let sound = |found: &DebugFile| match (build_id, notes::build_id(&found.data, &found.headers)) {
                (Some(ours), Some(theirs)) => ours == theirs,
                _ => crc32fast::hash(&found.data) == crc,
            };
            candidates.iter().filter_map(|path| DebugFile::open(path)).find(sound)
        })
    }

    /// What `dwz` moved out of several debug files into one that they share (`.gnu_debugaltlink`).
    pub fn find_shared(path: &Path, data: &[u8], headers: &Headers) -> Option<DebugFile> {
        let bytes = &data[headers.section(".gnu_debugaltlink")?.file_range()?];
        let (name, build_id) = split_name(bytes)?;
        // `join` keeps an absolute name as it is.
        let named = path.parent()?.join(name);
        let candidates = [Some(named), build_id_path(build_id)];
        candidates.iter().flatten().filter_map(|path| DebugFile::open(path)).find(|found| found.has_id(Some(build_id)))
    }

    fn open(path: &Path) -> Option<DebugFile> {
        let data = Data::open(path).ok()?;
        let headers = Headers::read(&data, Scope::SectionsOnly).ok()?;
        let symbols = Tables::from_sections(&data, &headers).ok()?.symbols;
        Some(DebugFile { path: path.to_owned(), data, headers, symbols })
    }

    fn has_id(&self, build_id: Option<&[u8]>) -> bool {
        build_id.is_some() && notes::build_id(&self.data, &self.headers) == build_id
    }
}

fn build_id_path(id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = id.split_first()?;
    let hex: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(Path::new(DEBUG_ROOT).join(format!(".build-id/{first:02x}/{hex}.debug")))
}

/// `.gnu_debuglink`: a name, padded with zeros to four bytes, then the CRC.
fn debug_link<'a>(data: &'a [u8], headers: &Headers) -> Option<(&'a Path, u32)> {
    let bytes = &data[headers.section(".gnu_debuglink")?.file_range()?];
    let (name, _) = split_name(bytes)?;
    let crc = bytes.get((name.as_os_str().len() + 1).next_multiple_of(4)..)?.get(..4)?.try_into().ok()?;
    // A name with a folder in it could lead anywhere.
    let plain = name.file_name() == Some(name.as_os_str());
    plain.then_some((name, headers.endian.read_u32(crc)))
}

fn split_name(bytes: &[u8]) -> Option<(&Path, &[u8])> {
    let end = memchr::memchr(0, bytes)?;
    let name = std::str::from_utf8(&bytes[..end]).ok().filter(|name| !name.is_empty())?;
    Some((Path::new(name), &bytes[end + 1..]))
}

fn beside(path: &Path, name: &Path) -> Option<[PathBuf; 3]> {
    let path = path.canonicalize().ok()?;
    let folder = path.parent()?;
    let under_root = Path::new(DEBUG_ROOT).join(folder.strip_prefix("/").ok()?);
    Some([folder.join(name), folder.join(".debug").join(name), under_root.join(name)])
}
