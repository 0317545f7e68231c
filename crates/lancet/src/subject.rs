//! What to look at: a file, or a process with everything that it has mapped.
//!
//! Both are a list of objects, so that whatever works on one works on the other. A file is one object. Opening comes
//! first and is quick; [`Opened::analyse`] does the work and tells how far it is.

use std::path::Path;
use std::sync::Arc;

use lancet_engine::image::{Image, Process};
use lancet_engine::program::Program;

use crate::Error;

/// Images that were opened and not yet analysed.
pub struct Opened {
    pid: Option<u32>,
    images: Vec<(Arc<Image>, u64)>,
    skipped: Vec<String>,
}

impl Opened {
    pub fn file(path: &Path) -> Result<Opened, Error> {
        Ok(Opened { pid: None, images: vec![(Arc::new(Image::open(path)?), 0)], skipped: Vec::new() })
    }

    /// Everything that a process has mapped, or the objects of that name: a path, or a file's name, of which the
    /// beginning will do (`libc`). The process is not stopped.
    pub fn process(pid: u32, object: Option<&str>) -> Result<Opened, Error> {
        let process = Process::open(pid)?;
        let skipped = process.skipped().iter().map(|skipped| format!("{}: {}", skipped.path, skipped.why)).collect();
        let mut objects = process.into_objects();
        if let Some(wanted) = object {
            let mapped = objects.iter().map(|object| object.path.clone()).collect();
            objects.retain(|object| is_called(&object.path, wanted));
            if objects.is_empty() {
                return Err(Error::NoSuchObject { pid, object: wanted.to_owned(), mapped });
            }
        }
        let images = objects.into_iter().map(|object| (Arc::new(object.image), object.bias)).collect();
        Ok(Opened { pid: Some(pid), images, skipped })
    }

    /// The objects' names, in the order in which they will be analysed.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.images.iter().map(|(image, _)| image.name())
    }

    /// How many bytes of code the objects have.
    pub fn code_len(&self) -> u64 {
        self.images.iter().flat_map(|(image, _)| image.code_ranges()).map(|range| range.len).sum()
    }

    /// What is mapped executable and could not be read, each with the reason.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// Analyses all objects. `before` hears the name of each before its turn.
    pub fn analyse(self, mut before: impl FnMut(&str)) -> Subject {
        let analyse = |(image, bias): (Arc<Image>, u64)| {
            before(image.name());
            Object { program: Program::analyse(image), bias }
        };
        Subject { pid: self.pid, objects: self.images.into_iter().map(analyse).collect() }
    }
}

fn is_called(path: &str, wanted: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    path == wanted || file.trim_start_matches('[').starts_with(wanted.trim_start_matches('['))
}

pub struct Subject {
    /// The process, if it is one.
    pub pid: Option<u32>,
    /// By address in a process; exactly one in a file.
    pub objects: Vec<Object>,
}

pub struct Object {
    pub program: Program,
    /// What to add to an address of the file to get the one in the process. Wraps around. 0 for a file.
    pub bias: u64,
}

impl Object {
    /// The file's path; `[vdso]` for the kernel's own.
    pub fn name(&self) -> &str {
        self.program.image().name()
    }
}

impl Subject {
    /// How errors name it.
    pub fn name(&self) -> String {
        match (self.pid, &self.objects[..]) {
            (Some(pid), _) => format!("process {pid}"),
            (None, [object, ..]) => object.name().to_owned(),
            (None, []) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_called;

    #[test]
    fn objects_by_path_or_beginning_of_the_file_name() {
        let libc = "/usr/lib/x86_64-linux-gnu/libc.so.6";
        assert!(is_called(libc, libc) && is_called(libc, "libc.so.6") && is_called(libc, "libc"));
        assert!(!is_called(libc, "usr") && !is_called(libc, "/usr/lib/libc.so.6"));
        assert!(is_called("[vdso]", "vdso") && is_called("[vdso]", "[vdso]"));
    }
}
