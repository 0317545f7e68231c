//! The images of a running process, without stopping it.
//!
//! `/proc/PID/maps` tells which files are mapped where. Mappings of one file are joined to an object, whose file is
//! opened, in this order:
//! 1. through `/proc/PID/map_files` (the very file that is mapped, even if it was deleted; needs privileges);
//! 2. for the program itself, through `/proc/PID/exe` (the same);
//! 3. by its path, as the process sees it (`/proc/PID/root`), if it still is the file that is mapped;
//! 4. out of the process's memory, as is the vdso.
//!
//! Everything here only reads. The process runs on meanwhile: objects that it loads or unloads during the look may be
//! missed or gone, and what cannot be read is listed in [`Process::skipped`], with the reason. Only the program itself
//! must be readable.

mod access;
pub(crate) mod maps;
mod memory;

use std::ops::Range;
use std::path::PathBuf;

use lancet_isa::{Avma, FileOff, Svma};

use super::error::ImageError;
use super::headers::Segment;
use super::{Image, data::Data};
use access::Access;
use maps::Mapping;

/// x86-64 and most others; segments are mapped in whole pages.
const PAGE: u64 = 4096;

pub struct Process {
    pid: u32,
    objects: Vec<MappedObject>,
    main: usize,
    skipped: Vec<Skipped>,
}

/// Something executable that is mapped and could not be read.
pub struct Skipped {
    pub path: String,
    pub why: ImageError,
}

/// An image and where a process has it.
pub struct MappedObject {
    pub image: Image,
    /// What to add to an address of the file to get the one in the process. Wraps around.
    pub bias: u64,
    pub range: Range<Avma>,
    /// As the process sees it; `[vdso]` for the kernel's own.
    pub path: String,
}

impl MappedObject {
    pub fn contains(&self, at: Avma) -> bool {
        self.range.contains(&at)
    }

    pub fn to_svma(&self, at: Avma) -> Svma {
        Svma(at.0.wrapping_sub(self.bias))
    }

    pub fn to_avma(&self, at: Svma) -> Avma {
        Avma(at.0.wrapping_add(self.bias))
    }
}

/// The file that a process has mapped at an address, by its path without links, and the place in it.
pub fn file_at(pid: u32, at: Avma) -> Option<(PathBuf, FileOff)> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let mapping = maps::parse(&maps).into_iter().find(|mapping| mapping.range.contains(&at) && mapping.is_file())?;
    Some((PathBuf::from(&mapping.name), FileOff(mapping.offset + (at - mapping.range.start))))
}

impl Process {
    pub fn open(pid: u32) -> Result<Process, ImageError> {
        let access = Access::open(pid)?;
        let mappings = maps::parse(&access.maps()?);
        if mappings.is_empty() {
            return Err(access.why_no_maps());
        }
        let mut process = Process { pid, objects: Vec::new(), main: 0, skipped: Vec::new() };
        for group in candidates(&mappings) {
            match process.object(&access, &group) {
                Ok(Some(object)) => process.objects.push(object),
                Ok(None) => {}
                Err(why) => process.skipped.push(Skipped { path: group.name().to_owned(), why }),
            }
        }
        access.check_still_there()?;
        process.objects.sort_by_key(|object| object.range.start);
        process.main = process.find_main(&access)?;
        Ok(process)
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Everything with code that is mapped, sorted by address.
    pub fn objects(&self) -> &[MappedObject] {
        &self.objects
    }

    /// The same, to keep.
    pub fn into_objects(self) -> Vec<MappedObject> {
        self.objects
    }

    /// The program itself.
    pub fn main(&self) -> &MappedObject {
        &self.objects[self.main]
    }

    pub fn object_at(&self, at: Avma) -> Option<&MappedObject> {
        let after = self.objects.partition_point(|object| object.range.start <= at);
        self.objects[..after].last().filter(|object| object.contains(at))
    }

    /// What is mapped executable, and why it is not among the objects.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// `Ok(None)` if what is mapped is no ELF file: a program may map anything executable.
    fn object(&self, access: &Access, group: &Group<'_>) -> Result<Option<MappedObject>, ImageError> {
        let image = match open_image(access, group) {
            Err(ImageError::NotElf { .. }) => return Ok(None),
            other => other?,
        };
        let Some(first) = image.segments().first() else { return Ok(None) };
        let bias = group.start().0.wrapping_sub(page_of(first));
        let end = image.segments().iter().map(|segment| segment.svma.0.wrapping_add(segment.mem_size)).max();
        let end = end.unwrap_or(0).wrapping_add(bias);
        let range = group.start()..Avma(end).max(group.start());
        let path = group.name().to_owned();
        Ok(Some(MappedObject { image, bias, range, path }))
    }

    fn find_main(&self, access: &Access) -> Result<usize, ImageError> {
        let program = access.program_header_address();
        let by_headers = program.and_then(|at| self.objects.iter().position(|object| object.contains(at)));
        let by_path = || {
            let path = access.exe_path()?;
            self.objects.iter().position(|object| path.as_os_str() == object.path.as_str())
        };
        by_headers.or_else(by_path).ok_or_else(|| {
            // The reason why the program is not among the objects says more than that it is not.
            let path = access.exe_path().unwrap_or_default();
            let reason = self.skipped.iter().find(|skipped| path.as_os_str() == skipped.path.as_str());
            access.error(reason.map_or("none of its mappings is its program".into(), |skipped| skipped.why.to_string()))
        })
    }
}

/// Why the kernel does not let Lancet take control of a process.
pub(crate) fn why_not_attached(pid: u32) -> String {
    match Access::open(pid) {
        Ok(access) => access.why_not_attached(),
        Err(error) => error.to_string(),
    }
}

/// Which run of a number this is: the time at which the process started.
pub(crate) fn start_time(pid: u32) -> Result<String, ImageError> {
    Access::open(pid).map(|access| access.started().to_owned())
}

/// The mappings of one object, in order of address.
struct Group<'a>(Vec<&'a Mapping>);

impl Group<'_> {
    fn start(&self) -> Avma {
        self.0[0].range.start
    }

    fn name(&self) -> &str {
        &self.0[0].name
    }
}

/// Joins mappings of the same file: each mapping of the file's first page begins an object, which goes on to the next
/// such mapping. (A library can be loaded twice.) Only what has executable memory is of interest.
fn candidates(mappings: &[Mapping]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for mapping in mappings {
        if mapping.name == "[vdso]" {
            groups.push(Group(vec![mapping]));
        } else if mapping.is_file() {
            let of_file = groups
                .iter_mut()
                .rev()
                .find(|group| group.0[0].file == mapping.file && group.0[0].name == mapping.name);
            match of_file {
                // Two segments can share the first page of a small file; the second follows at once.
                Some(group) if mapping.offset != 0 || continues(group, mapping) => group.0.push(mapping),
                _ => groups.push(Group(vec![mapping])),
            }
        }
    }
    groups.retain(|group| group.0.iter().any(|mapping| mapping.executable));
    groups
}

fn continues(group: &Group<'_>, mapping: &Mapping) -> bool {
    group.0.last().is_some_and(|last| last.range.end == mapping.range.start)
        && !group.0.iter().any(|part| part.executable)
}

/// Where the first mapping of an object begins, as the file states it.
fn page_of(first: &Segment) -> u64 {
    first.svma.0 & !(PAGE - 1)
}

fn open_image(access: &Access, group: &Group<'_>) -> Result<Image, ImageError> {
    let mapping = group.0[0];
    if !mapping.is_file() {
        return memory::vdso(access, mapping);
    }
    let name = group.name().to_owned();
    let exact = [Some(access.map_file(mapping)), access.exe_of(mapping)];
    for path in exact.into_iter().flatten() {
        if let Ok(data) = Data::open(&path) {
            return Image::from_data(name, Some(PathBuf::from(&mapping.name)), data);
        }
    }
    if !mapping.deleted {
        let path = access.in_root(&mapping.name);
        match Data::open(&path) {
            Ok(data) => {
                let image = Image::from_data(name.clone(), Some(PathBuf::from(&mapping.name)), data)?;
                if access.is_same_file(&path, mapping) || memory::has_same_id(access, group, &image) {
                    return Ok(image);
                }
            }
            // Better than no image: what memory has of it.
            Err(error) => return memory::object(access, group).map_err(|_| error),
        }
    }
    memory::object(access, group)
}
