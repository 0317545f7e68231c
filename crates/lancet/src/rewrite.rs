//! From a program on disk to an edited one beside it.
//!
//! This is the whole flow in one place: open, analyse, survey, let a tool plan, lay out, write.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lancet_engine::image::{Image, Kind};
use lancet_engine::layout::{self, Arrivals, Frame, Keep, Layout, Survey};
pub use lancet_engine::layout::{Sharing, Slot};
use lancet_engine::plan::{CounterId, Plan};
use lancet_engine::program::{FuncId, Program};
use lancet_engine::sink::elf_writer::{self, Hook};
use lancet_isa::Svma;
use lancet_isa::edit::Edit;
use lancet_isa::runtime::StartUp;

use crate::Error;
use crate::tools::count::{self, Counted, Manner, Notes, Original, Rounds, file};

/// A program that is ready to be edited.
pub struct Editor {
    pub program: Program,
    pub survey: Survey,
    edit: &'static dyn Edit,
}

/// How to count.
#[derive(Default)]
pub struct CountOptions<'a> {
    /// Where the rewritten program shall leave its counts. By default `NAME.counts` in the directory
    /// that it is started in.
    pub counts: Option<&'a str>,
    /// Which threads count where; by default what is exact: see [`sharing`].
    pub sharing: Option<Sharing>,
    /// An earlier profile of the same program.
    pub profile: Option<&'a Counted>,
    /// Where the rounds of loops are counted.
    pub rounds: Rounds,
    /// Handlers of signals are noted even if the object seems to have none: those of others may interrupt it.
    pub notes_handlers: bool,
}

/// What became of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Share {
    /// Bytes of all functions, without stubs to other objects.
    pub text: u64,
    pub edited: u64,
}

impl Editor {
    /// Analyses a file and finds out which of the `wanted` functions can be edited.
    pub fn open(path: &Path, wanted: &(dyn Fn(&Program, FuncId) -> bool + Sync)) -> Result<Editor, Error> {
        Editor::new(Program::analyse(Arc::new(Image::open(path)?)), wanted)
    }

    pub fn new(program: Program, wanted: &(dyn Fn(&Program, FuncId) -> bool + Sync)) -> Result<Editor, Error> {
        let image = program.image();
        let edit = image
            .isa()
            .editor()
            .ok_or_else(|| Error::NoEditor { name: image.name().to_owned(), isa: image.isa().facts().name })?;
        let survey = Survey::of(&program, edit, Arrivals::Entries, &|id| wanted(&program, id));
        Ok(Editor { program, survey, edit })
    }

    pub fn share(&self) -> Share {
        let mut share = Share::default();
        for (i, func) in self.program.funcs().iter().enumerate() {
            match self.survey.obstacle(FuncId(i as u32)) {
                Some(layout::Obstacle::Stub) => continue,
                Some(_) => {}
                None => share.edited += func.size(),
            }
            share.text += func.size();
        }
        share
    }

    /// Moves every function and adds nothing: for comparison.
    pub fn write_null(&self, out: &Path) -> Result<(), Error> {
        let mut plan = Plan::new();
        for id in self.survey.edited() {
            plan.edit(id);
        }
        let layout = self.lay_out(&plan, None, false)?;
        self.write(&layout, out)
    }

    /// Counts every edge.
    pub fn write_counting(&self, out: &Path, options: &CountOptions<'_>) -> Result<(), Error> {
        let image = self.program.image();
        if let Some(profiled) = options.profile.map(|profile| profile.program.image())
            && !Original::of(image).is(profiled)
        {
            let (program, profiled) = (image.name().to_owned(), profiled.name().to_owned());
            return Err(Error::OtherProfile { program, profiled });
        }
        let sharing = options.sharing.unwrap_or_else(|| sharing(image));
        let cuts = options.notes_handlers || count::may_handle_signals(image);
        let made = count::instrument(&self.program, &self.survey, options.profile, options.rounds, cuts);
        let rounds = if made.holds { options.rounds } else { Rounds::Memory };
        let manner = Manner { sharing, rounds, cuts: made.cuts.is_some() };
        let notes = Notes { original: Original::of(image), manner, funcs: made.funcs }.to_bytes();
        self.write_keeping(out, &made.plan, made.cuts, sharing, &notes, options.counts)
    }

    /// The editor that notes were made by.
    pub(crate) fn of_notes(program: Program, notes: &Notes) -> Result<Editor, Error> {
        let is_noted = |at: Svma| notes.funcs.binary_search_by_key(&at, |noted| noted.entry).is_ok();
        Editor::new(program, &|program, id| is_noted(program.func(id).entry))
    }

    /// What [`write_counting`](Editor::write_counting) laid out when it made these notes, traced.
    pub(crate) fn trace(&self, notes: &Notes) -> Result<Layout, Error> {
        let image = self.program.image();
        let made = count::noted_plan(&self.program, notes);
        let Manner { sharing, .. } = notes.manner;
        let keep = Keep { start_up: start_up(image)?, header: &[], path: &[], notes: &[], sharing, cuts: made.cuts };
        self.lay_out(&made.plan, Some(keep), true)
    }

    /// What a tool of one's own planned.
    pub fn write_plan(&self, out: &Path, plan: &Plan) -> Result<(), Error> {
        self.write_keeping(out, plan, None, sharing(self.program.image()), &[], None)
    }

    fn write_keeping(
        &self,
        out: &Path,
        plan: &Plan,
        cuts: Option<CounterId>,
        sharing: Sharing,
        notes: &[u8],
        counts: Option<&str>,
    ) -> Result<(), Error> {
        let counters = plan.counters();
        let shard_len = layout::shard_len(counters);
        let program = std::path::absolute(out).unwrap_or_else(|_| out.to_owned());
        let first_cut = cuts.map_or(0, |first| first.0);
        let header = file::header(&program, u64::from(counters), first_cut, shard_len, file::fingerprint(notes));
        let path = match counts {
            Some(path) => path.as_bytes().to_vec(),
            None => default_counts(out).into_os_string().into_encoded_bytes(),
        };
        let start_up = start_up(self.program.image())?;
        let keep = Keep { start_up, header: &header, path: &path, notes, sharing, cuts };
        let layout = self.lay_out(plan, Some(keep), false)?;
        self.write(&layout, out)
    }

    fn lay_out(&self, plan: &Plan, keep: Option<Keep<'_>>, traced: bool) -> Result<Layout, Error> {
        let at = elf_writer::first_free(self.program.image())?;
        let frame = Frame { survey: &self.survey, at, keep, counters: None, old_returns: None, traced };
        let name = || self.program.image().name().to_owned();
        layout::lay_out(&self.program, self.edit, plan, &frame).map_err(|cause| Error::Layout { name: name(), cause })
    }

    fn write(&self, layout: &Layout, out: &Path) -> Result<(), Error> {
        elf_writer::write(self.program.image(), &layout.patch, out)?;
        Ok(())
    }
}

fn start_up(image: &Image) -> Result<StartUp, Error> {
    Ok(match elf_writer::hook(image)? {
        Hook::Entry { old } => StartUp::Program { old },
        Hook::Init { old } => StartUp::Library { old },
    })
}

/// How counters are shared by default, so that counts are exact. A static program cannot be asked whether there are
/// threads. Neither can a library.
pub fn sharing(image: &Image) -> Sharing {
    let is_library = image.kind() == Kind::SharedLibrary;
    match is_library || image.interpreter().is_none() || may_have_threads(image) {
        true => by_thread(image),
        false => Sharing::Alone,
    }
}

/// How an object that is rewritten by itself counts for each thread.
pub fn by_thread(image: &Image) -> Sharing {
    with_threads(image, if image.kind() == Kind::SharedLibrary { Slot::LIBRARY } else { Slot::PROGRAM })
}

/// How an object counts in which there may be threads. What was rewritten before has a slot already, and is not able to
/// leave it any more.
pub fn with_threads(image: &Image, slot: Slot) -> Sharing {
    match layout::lists::NOTES.find(image) {
        Some(_) => Sharing::Atomic,
        None => Sharing::PerThread(slot),
    }
}

/// May several threads run the code of a dynamic program? It, or a library that it loads, must be able to start one. What
/// cannot be found counts as able to. The loader is not asked, because which loader that is the program says, and nothing
/// is run in order to rewrite it.
pub fn may_have_threads(image: &Image) -> bool {
    starts_threads(image, &mut Vec::new())
}

/// The C library has threads for those who ask for them.
const OWN_THREADS: [&str; 3] = ["libc.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0"];
/// What starts a thread, or may load something that does.
const STARTS_A_THREAD: [&str; 11] = [
    "aio_read",
    "aio_write",
    "clone",
    "dlmopen",
    "dlopen",
    "getaddrinfo_a",
    "lio_listio",
    "mq_notify",
    "pthread_create",
    "thrd_create",
    "timer_create",
];
const LIBRARY_FOLDERS: [&str; 4] = ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64"];

fn starts_threads(image: &Image, seen: &mut Vec<String>) -> bool {
    if image.imports().any(|name| STARTS_A_THREAD.contains(&name)) {
        return true;
    }
    let needed: Vec<String> = image.needed().map(str::to_owned).collect();
    needed.into_iter().any(|name| {
        if OWN_THREADS.contains(&name.as_str()) || seen.contains(&name) {
            return false;
        }
        let found = LIBRARY_FOLDERS.iter().find_map(|folder| Image::open(&Path::new(folder).join(&name)).ok());
        seen.push(name);
        found.is_none_or(|library| starts_threads(&library, seen))
    })
}

/// Where a rewritten program leaves its counts if nobody says otherwise: in the directory that it is started in.
pub fn default_counts(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or(out.as_os_str()).to_owned();
    name.push(".counts");
    PathBuf::from(name)
}
