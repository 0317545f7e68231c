//! Who has what mapped where.
//!
//! A process that was there already is read from `/proc`; what happens later comes from the kernel's records: mappings,
//! forks (the child has what its parent has) and execs (everything is new). Images are opened once, however many
//! processes use them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lancet_isa::{Avma, Svma};
use rustc_hash::FxHashMap;

use super::recording::{Object, ObjectId, Place};
use super::unwind::Unwinder;
use crate::image::{Image, Process};

#[derive(Clone, Copy)]
struct Mapping {
    end: u64,
    object: ObjectId,
    bias: u64,
}

/// One process's memory.
pub(super) struct Space {
    /// By start.
    mappings: BTreeMap<u64, Mapping>,
    /// Made when it is first needed after a change.
    unwinder: Option<Unwinder>,
}

impl Space {
    fn new() -> Space {
        Space { mappings: BTreeMap::new(), unwinder: None }
    }

    fn map(&mut self, start: u64, mapping: Mapping) {
        // What a new mapping covers is gone.
        self.mappings.retain(|old_start, old| *old_start >= mapping.end || old.end <= start);
        self.mappings.insert(start, mapping);
        self.unwinder = None;
    }

    pub fn place(&self, at: u64) -> Place {
        let mapping = self.mappings.range(..=at).next_back().filter(|(_, mapping)| at < mapping.end);
        match mapping {
            Some((_, mapping)) => Place::Object(mapping.object, Svma(at.wrapping_sub(mapping.bias))),
            None => Place::Unknown(at),
        }
    }

    pub fn unwinder(&mut self, objects: &Objects) -> &mut Unwinder {
        let mappings = &self.mappings;
        self.unwinder.get_or_insert_with(|| {
            let mut unwinder = Unwinder::new();
            for (start, mapping) in mappings {
                if let Some(image) = &objects.list[mapping.object.0 as usize].image {
                    unwinder.add(image, *start..mapping.end, mapping.bias);
                }
            }
            unwinder
        })
    }
}

/// All images, each once.
#[derive(Default)]
pub(super) struct Objects {
    pub list: Vec<Object>,
    by_path: FxHashMap<PathBuf, ObjectId>,
}

impl Objects {
    /// The object of a path, opened by `open` if it is new.
    fn get(&mut self, path: &Path, open: impl FnOnce() -> Option<Arc<Image>>) -> ObjectId {
        if let Some(id) = self.by_path.get(path) {
            return *id;
        }
        let id = ObjectId(self.list.len() as u32);
        self.list.push(Object { path: path.to_owned(), image: open() });
        self.by_path.insert(path.to_owned(), id);
        id
    }
}

#[derive(Default)]
pub(super) struct Spaces {
    pub objects: Objects,
    by_pid: FxHashMap<u32, Space>,
    /// The kernel's own, the same in all processes.
    vdso: Option<Arc<Image>>,
}

impl Spaces {
    /// The memory of a process, read from `/proc` if nothing was heard of it so far.
    pub fn of(&mut self, pid: u32) -> (&mut Space, &Objects) {
        let Spaces { by_pid, objects, .. } = self;
        let space = by_pid.entry(pid).or_insert_with(|| {
            let mut space = Space::new();
            // One that has ended has no memory to read; its samples stay addresses.
            if let Ok(process) = Process::open(pid) {
                read_all(&mut space, objects, process);
            }
            space
        });
        (space, objects)
    }

    /// Takes in a process that was opened already.
    pub fn insert(&mut self, process: Process) {
        let mut space = Space::new();
        let pid = process.pid();
        read_all(&mut space, &mut self.objects, process);
        self.by_pid.insert(pid, space);
    }

    /// A process that Lancet starts: what it maps will be told.
    pub fn expect(&mut self, pid: u32) {
        self.by_pid.insert(pid, Space::new());
    }

    pub fn mapped(&mut self, pid: u32, start: u64, len: u64, offset: u64, path: &Path) {
        let vdso = self.vdso_if_named(path);
        let space = self.by_pid.entry(pid).or_insert_with(Space::new);
        let object = self.objects.get(path, || vdso.or_else(|| open(pid, path)));
        let bias = self.objects.list[object.0 as usize].image.as_ref().and_then(|image| bias(image, start, offset));
        space.map(start, Mapping { end: start.saturating_add(len), object, bias: bias.unwrap_or(start) });
    }

    pub fn forked(&mut self, pid: u32, parent: u32) {
        if pid != parent && !self.by_pid.contains_key(&pid) {
            let mappings = self.by_pid.get(&parent).map(|space| space.mappings.clone()).unwrap_or_default();
            self.by_pid.insert(pid, Space { mappings, unwinder: None });
        }
    }

    pub fn executed(&mut self, pid: u32) {
        self.by_pid.insert(pid, Space::new());
    }

    pub fn ended(&mut self, pid: u32) {
        self.by_pid.remove(&pid);
    }

    fn vdso_if_named(&mut self, path: &Path) -> Option<Arc<Image>> {
        if path.as_os_str() != "[vdso]" {
            return None;
        }
        if self.vdso.is_none() {
            let own = Process::open(std::process::id()).ok()?;
            let found = own.into_objects().into_iter().find(|object| object.path == "[vdso]");
            self.vdso = found.map(|object| Arc::new(object.image));
        }
        self.vdso.clone()
    }
}

fn read_all(space: &mut Space, objects: &mut Objects, process: Process) {
    for object in process.into_objects() {
        let (range, bias) = (object.range.clone(), object.bias);
        let id = objects.get(Path::new(&object.path), || Some(Arc::new(object.image)));
        let (Avma(start), Avma(end)) = (range.start, range.end);
        space.map(start, Mapping { end, object: id, bias });
    }
}

fn open(pid: u32, path: &Path) -> Option<Arc<Image>> {
    let inside = path.strip_prefix("/").ok()?;
    let seen_by_process = Path::new("/proc").join(pid.to_string()).join("root").join(inside);
    let image = Image::open(&seen_by_process).or_else(|_| Image::open(path)).ok()?;
    Some(Arc::new(image.renamed(path.display().to_string())))
}

/// What to add to stated addresses, if the file's bytes at `offset` are mapped at `start`.
fn bias(image: &Image, start: u64, offset: u64) -> Option<u64> {
    const PAGE: u64 = 4096;
    let covers = |first: u64, size: u64| (first & !(PAGE - 1)..first.saturating_add(size)).contains(&offset);
    let segment =
        image.segments().iter().find(|segment| segment.executable && covers(segment.offset.0, segment.file_size))?;
    let stated = segment.svma.0.wrapping_sub(segment.offset.0).wrapping_add(offset);
    Some(start.wrapping_sub(stated))
}
