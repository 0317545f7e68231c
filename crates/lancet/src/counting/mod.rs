//! Running a program so that it counts, without the user having to think of files.
//!
//! ```text
//! program, libraries ──> rewritten copies, kept in a cache ──> a command ──> counts in a private folder ──> Counted
//! ```
//!
//! The command is the user's own but for the file that is executed (see [`home`]), `LANCET_COUNTS` and, with libraries, the folder in
//! front of `LD_LIBRARY_PATH`. Every rewritten object has a counts file of its own in the folder.

mod cache;
mod ends;
mod home;
mod libraries;
mod slots;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use lancet_engine::image::Image;
use lancet_engine::program::{FuncId, Program};
use lancet_isa::runtime::VARIABLE;
use tempfile::TempDir;

use crate::Error;
use crate::rewrite::{self, Slot};
use crate::tools::count::{Counted, Rounds};
use cache::Cache;
pub use ends::{Ended, Ends, Watched};
use home::Home;
use libraries::Loaded;

/// What to count.
pub struct Options<'a> {
    pub wanted: &'a (dyn Fn(&Program, FuncId) -> bool + Sync),
    /// Different for different `wanted`.
    pub wanted_name: &'a str,
    /// Also the shared libraries that the loader would load.
    pub libraries: bool,
    /// Where the rounds of loops are counted.
    pub rounds: Rounds,
}

/// A program that is ready to run and count.
pub struct Prepared {
    /// The counts, and links to the libraries.
    folder: TempDir,
    original: PathBuf,
    /// The copy, or the original if that cannot be rewritten.
    program: PathBuf,
    home: Option<Home>,
    with_libraries: bool,
    left_out: Vec<Error>,
}

const LIBRARIES: &str = "libraries";

impl Prepared {
    /// An error says why nothing can be counted.
    pub fn new(program: &Path, options: &Options<'_>) -> Result<Prepared, Error> {
        let at = |cause| Error::File { path: std::env::temp_dir().display().to_string(), cause };
        let folder = tempfile::Builder::new().prefix("lancet-").tempdir().map_err(at)?;
        let cache = Cache::new(folder.path());
        let program = &std::path::absolute(program).unwrap_or_else(|_| program.to_owned());
        let mut prepared = Prepared {
            folder,
            original: program.to_owned(),
            program: program.to_owned(),
            home: None,
            with_libraries: options.libraries,
            left_out: Vec::new(),
        };
        if options.libraries {
            prepared.add_all(&cache, options)?;
        } else {
            prepared.program = cache.rewritten(program, options, None)?;
        }
        if prepared.program != prepared.original {
            // Where that cannot be, most programs do without.
            prepared.home = Home::make(&prepared.program, &prepared.original).ok();
        }
        Ok(prepared)
    }

    fn add_all(&mut self, cache: &Cache, options: &Options<'_>) -> Result<(), Error> {
        let links = self.folder.path().join(LIBRARIES);
        let at = |cause| Error::File { path: links.display().to_string(), cause };
        std::fs::create_dir(&links).map_err(at)?;
        let program = Image::open(&self.original)?;
        match cache.rewritten(&self.original, options, Some(rewrite::with_threads(&program, Slot::PROGRAM))) {
            Ok(path) => self.program = path,
            Err(error) => self.left_out.push(error),
        }
        let Loaded { libraries, by_path } = libraries::loaded_by(&program)?;
        let name = || program.name().to_owned();
        self.left_out.extend(by_path.into_iter().map(|library| Error::LibraryByPath { program: name(), library }));
        for (library, slot) in libraries.iter().zip(slots::of_libraries(&libraries)) {
            let sharing = Image::open(&library.path).map(|image| rewrite::with_threads(&image, slot));
            match sharing.map_err(Error::from).and_then(|how| cache.rewritten(&library.path, options, Some(how))) {
                Ok(path) => std::os::unix::fs::symlink(path, links.join(&library.name)).map_err(at)?,
                Err(error) => {
                    // Rewritten libraries that look for it beside themselves look here.
                    std::os::unix::fs::symlink(&library.path, links.join(&library.name)).map_err(at)?;
                    self.left_out.push(error);
                }
            }
        }
        Ok(())
    }

    /// Objects that could not be rewritten, each with the reason.
    pub fn left_out(&self) -> &[Error] {
        &self.left_out
    }

    /// Runs the rewritten program; the arguments are still to be given.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.home.as_ref().map_or(&self.program, |home| &home.program));
        command.env(VARIABLE, self.folder.path().join("%n.counts"));
        if self.with_libraries {
            let mut path: OsString = self.folder.path().join(LIBRARIES).into_os_string();
            if let Some(users) = std::env::var_os("LD_LIBRARY_PATH") {
                path.push(":");
                path.push(users);
            }
            command.env("LD_LIBRARY_PATH", path);
        }
        command
    }

    /// What was counted until now: the program first. `ends` tells where threads ended, as far as that is known.
    pub fn counted(&self, ends: &Ends) -> Result<Vec<Counted>, Error> {
        let at = |cause| Error::File { path: self.folder.path().display().to_string(), cause };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(self.folder.path()).map_err(at)? {
            files.push(entry.map_err(at)?.path());
        }
        files.retain(|path| path.extension().is_some_and(|extension| extension == "counts"));
        files.sort();
        if files.is_empty() {
            return Err(Error::NoCounts { program: self.original.display().to_string() });
        }
        let mut objects = Counted::open_all_ended(&files, None, None, ends)?;
        objects.sort_by_key(|counted| (Path::new(counted.name()) != self.original, counted.name().to_owned()));
        Ok(objects)
    }
}
