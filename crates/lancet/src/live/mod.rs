//! A process that runs: find its functions, put code into it, lead calls there, and take everything back.
//!
//! ```no_run
//! use std::path::Path;
//! use lancet::live::{How, Live};
//!
//! # fn main() -> Result<(), lancet::Error> {
//! let mut live = Live::attach(1234)?;
//! let done = live.replace("vecadd", Path::new("vecadd-avx.o"), None, How::Entry)?;
//! println!("threads stood still for {:?}", done.receipt.pause);
//! live.undo(done.receipt.id)?;
//! # Ok(())
//! # }
//! ```
//!
//! Nothing is stopped but for the moment of a change. What a change is, and why it is safe, is described at
//! [`lancet_engine::sink::live`].
//!
//! | module | what |
//! | --- | --- |
//! | `entry.rs` | a jump at a function's entry |
//! | `sites.rs` | calls that lead elsewhere |
//! | `measure.rs`, `stub.rs`, `timed.rs` | one function, call by call |
//! | `reach.rs` | what a call of a function may run |
//! | `clones.rs` | clones of functions, with something added |
//! | `count.rs` | how often blocks run |
//! | `breakpoints.rs`, `parked.rs` | closures that run where threads come by |
//! | `relied.rs` | what callers know of a function, and its replacement must respect |
//! | `samples.rs` | where time is spent |
//! | `symbols.rs` | addresses of the process's symbols |

mod breakpoints;
mod clones;
mod count;
mod entry;
#[cfg(test)]
mod listing;
mod measure;
mod parked;
mod reach;
mod relied;
mod samples;
mod sites;
mod stub;
mod symbols;
mod timed;

use std::path::Path;
use std::sync::Arc;

pub use breakpoints::{Breakpoints, Hit, Next, Place};
pub use count::BlockCounts;
use lancet_engine::image::{Image, Process, demangle, demangle_short};
use lancet_engine::load::Module;
use lancet_engine::program::{Func, FuncId, Program};
pub use lancet_engine::sink::live::{Change, Entry, Overwrite, Receipt, Region, Room, State, Target, status};
use lancet_isa::{Avma, Svma};
pub use measure::{Counted, Counters, Measured};

use crate::{Error, Object, Subject, lookup, names};

/// How calls get to other code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// A jump where the function begins: every call goes there. Some calls are led there directly.
    Entry,
    /// Each call and each slot of the loader that leads to it: calls through other pointers stay.
    CallSites,
}

impl How {
    pub fn name(self) -> &'static str {
        match self {
            How::Entry => "entry",
            How::CallSites => "call-sites",
        }
    }
}

/// Something mapped in the process.
struct Mapped {
    image: Arc<Image>,
    bias: u64,
    /// Index into the subject's objects, once it was analysed.
    analysed: Option<usize>,
}

/// A process under Lancet's hand.
pub struct Live {
    target: Target,
    mapped: Vec<Mapped>,
    subject: Subject,
    command: String,
}

/// A function of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    object: usize,
    id: FuncId,
}

/// What a replacement came to.
#[derive(Clone, Debug)]
pub struct Replaced {
    pub function: String,
    pub at: Avma,
    /// Where the new code is.
    pub code: Avma,
    /// How many places lead there.
    pub places: usize,
    pub receipt: Receipt,
}

impl Live {
    /// Opens a process for changes. It runs on.
    pub fn attach(pid: u32) -> Result<Live, Error> {
        let process = Process::open(pid)?;
        let target = Target::open(pid)?;
        let mapped = process.into_objects().into_iter();
        let mapped = mapped.map(|object| Mapped { image: Arc::new(object.image), bias: object.bias, analysed: None });
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        Ok(Live { target, mapped: mapped.collect(), subject: Subject { pid: Some(pid), objects: Vec::new() }, command })
    }

    pub fn pid(&self) -> u32 {
        self.target.pid()
    }

    pub fn target(&mut self) -> &mut Target {
        &mut self.target
    }

    /// The function that a person means; see [`lookup`]. Only objects in which it may be are analysed.
    pub fn function(&mut self, query: &str) -> Result<Found, Error> {
        let may_have = |mapped: &Mapped| match lookup::address(query) {
            Some(at) => mapped.image.is_code(Svma(at.0.wrapping_sub(mapped.bias))) || mapped.image.is_code(at),
            None => names_function(&mapped.image, query),
        };
        let mut candidates: Vec<usize> = (0..self.mapped.len()).filter(|i| may_have(&self.mapped[*i])).collect();
        if candidates.is_empty() {
            // For names that Lancet gave, and for suggestions.
            candidates = (0..self.mapped.len()).collect();
        }
        candidates.into_iter().for_each(|index| self.analyse(index));
        let (object, id) = lookup::find(&self.subject, query)?;
        let object = self.subject.objects.iter().position(|known| std::ptr::eq(known, object)).unwrap_or_default();
        Ok(Found { object, id })
    }

    /// The function that an address of the process is in.
    pub fn function_at(&mut self, at: Avma) -> Result<Found, Error> {
        self.function(&at.to_string())
    }

    fn analyse(&mut self, index: usize) {
        let mapped = &mut self.mapped[index];
        if mapped.analysed.is_none() {
            mapped.analysed = Some(self.subject.objects.len());
            let program = Program::analyse(Arc::clone(&mapped.image));
            self.subject.objects.push(Object { program, bias: mapped.bias });
        }
    }

    pub fn object(&self, found: Found) -> &Object {
        &self.subject.objects[found.object]
    }

    pub fn func(&self, found: Found) -> &Func {
        self.object(found).program.func(found.id)
    }

    pub fn name(&self, found: Found) -> String {
        names::of_function(&self.object(found).program, self.func(found))
    }

    /// Where it begins in the process.
    pub fn entry(&self, found: Found) -> Avma {
        Avma(self.func(found).entry.0.wrapping_add(self.object(found).bias))
    }

    /// Puts code into the process, within reach of `near`. Nothing leads there yet.
    pub fn insert(&mut self, near: Avma, code: &[u8]) -> Result<Avma, Error> {
        let room = self.target.reserve(near, code.len() as u64, 0)?;
        self.target.memory().write(room.code, code)?;
        Ok(room.code)
    }

    /// Replaces a function by one of a file: a relocatable object, a shared library, or raw bytes.
    pub fn replace(&mut self, query: &str, file: &Path, symbol: Option<&str>, how: How) -> Result<Replaced, Error> {
        let found = self.function(query)?;
        let name = self.name(found);
        let module = Module::open(file)?;
        module.must_be_for(self.object(found).program.image().isa())?;
        let export = module.function(symbol, &name)?;
        self.refuse_if_relied(found, &module, export)?;
        let near = self.entry(found);
        let key = format!("{} {:?}", file.display(), content_hash(file)?);
        let begin = match self.target.placed(&key) {
            Some((at, _)) => at,
            None => self.place(&module, near, key)?,
        };
        self.lead(found, begin + export.offset, how)
    }

    fn place(&mut self, module: &Module, near: Avma, key: String) -> Result<Avma, Error> {
        // Before anything is done to the process, see that all can be resolved.
        let resolve = |symbol: &str| symbols::address_of(&self.mapped, self.target.memory(), symbol);
        module.link(near, near, &resolve).or_else(|error| match error {
            // Distances are known only later.
            lancet_engine::load::LoadError::TooFar { .. } => {
                Ok(lancet_engine::load::Linked { code: Vec::new(), data: Vec::new() })
            }
            other => Err(other),
        })?;
        let (code, data) = module.size();
        let room = match module.is_apart() {
            true => self.target.reserve_apart(near, code, data)?,
            false => self.target.reserve(near, code, data)?,
        };
        let resolve = |symbol: &str| symbols::address_of(&self.mapped, self.target.memory(), symbol);
        let linked = module.link(room.code, room.data, &resolve)?;
        self.target.memory().write(room.code, &linked.code)?;
        self.target.memory().write(room.data, &linked.data)?;
        self.target.remember(key, room.code, code)?;
        Ok(room.code)
    }

    /// Leads calls of a function to code that is in the process.
    pub fn lead(&mut self, found: Found, to: Avma, how: How) -> Result<Replaced, Error> {
        let at = self.entry(found);
        self.refuse_if_changed(found)?;
        let (overwrites, moves) = match how {
            How::Entry => {
                let entry = entry::Entry::of(self, found)?;
                let displaced = self.insert_displaced(&entry, at)?;
                let mut overwrites = vec![entry.jump(self.pid(), to)?];
                overwrites.extend(sites::shortcuts(self, found, to)?);
                (overwrites, displaced)
            }
            How::CallSites => (sites::overwrites(self, found, to)?, Vec::new()),
        };
        let places = overwrites.len();
        let function = self.name(found);
        let change = Change {
            command: self.command.clone(),
            subject: function.clone(),
            how: how.name().into(),
            overwrites,
            moves,
        };
        Ok(Replaced { function, at, code: to, places, receipt: self.target.commit(change)? })
    }

    /// A copy of the instructions that a jump overwrites, for threads that are among them.
    fn insert_displaced(&mut self, entry: &entry::Entry, at: Avma) -> Result<Vec<(Avma, Avma)>, Error> {
        let key = format!("displaced {at}");
        let place = match self.target.placed(&key) {
            Some((place, _)) => place,
            None => {
                let room = self.target.reserve(at, entry.displaced_size(), 0)?;
                self.target.remember(key, room.code, entry.displaced_size())?;
                room.code
            }
        };
        match entry.displaced(place) {
            Some((code, moves)) => {
                self.target.memory().write(place, &code)?;
                Ok(moves)
            }
            // Threads there are waited for instead.
            None => Ok(Vec::new()),
        }
    }

    fn refuse_if_changed(&self, found: Found) -> Result<(), Error> {
        let entry = self.entry(found).0;
        let covers = |patch: &&Entry| {
            patch.writes.iter().any(|write| (write.at..write.at + write.new.len() as u64).contains(&entry))
        };
        let same = |patch: &&Entry| patch.subject == self.name(found);
        match self.target.patches().iter().find(|patch| covers(patch) || same(patch)) {
            Some(patch) => Err(Error::AlreadyChanged { pid: self.pid(), function: self.name(found), id: patch.id }),
            None => Ok(()),
        }
    }

    /// Takes a change back.
    pub fn undo(&mut self, id: u64) -> Result<Receipt, Error> {
        Ok(self.target.revert(id)?)
    }
}

/// A name for code by its content, so that the same code is placed once.
fn content_hash(file: &Path) -> Result<u64, Error> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let bytes = std::fs::read(file).map_err(|cause| Error::File { path: file.display().to_string(), cause })?;
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    Ok(hasher.finish())
}

/// Whether a symbol of the image may be what a person calls `query`.
fn names_function(image: &Image, query: &str) -> bool {
    let squeezed = |name: &str| name.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    let wanted = squeezed(query);
    image.symbols().iter().any(|symbol| {
        let name = image.symbol_name(symbol);
        name == query
            || (name.starts_with('_')
                && (squeezed(&demangle(name)) == wanted || squeezed(&demangle_short(name)) == wanted))
    })
}
