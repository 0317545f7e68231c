//! Rewritten programs that are kept for the next time.
//!
//! The cache is `lancet` in `XDG_CACHE_HOME` or `~/.cache`, and has a folder for each rewritten file, which keeps its name
//! there. The folder's name follows from everything that the copy depends on: the file itself (path, identity, size,
//! times), what is counted in it, and Lancet's own executable. A copy appears by renaming, so what is there is whole, and
//! several processes may make the same one at the same time. Where the cache cannot be used the copy is made in
//! the private folder of the run.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, DirBuilder};
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::Options;
use crate::Error;
use crate::rewrite::{CountOptions, Editor, Sharing};

pub struct Cache {
    /// Tried one after the other.
    folders: Vec<PathBuf>,
}

impl Cache {
    /// `private` is a folder that can be written to and will go away.
    pub fn new(private: &Path) -> Cache {
        Cache { folders: place().into_iter().chain([private.join("rewritten")]).collect() }
    }

    /// The path of a rewritten copy of a program or library.
    pub fn rewritten(
        &self,
        original: &Path,
        options: &Options<'_>,
        sharing: Option<Sharing>,
    ) -> Result<PathBuf, Error> {
        let at = |cause| Error::File { path: original.display().to_string(), cause };
        let key = key(original, options, sharing).map_err(at)?;
        let copy = Path::new(&key).join(original.file_name().unwrap_or(original.as_os_str()));
        let kept = self.folders.iter().map(|folder| folder.join(&copy)).find(|path| path.is_file());
        if let Some(kept) = kept {
            return Ok(kept);
        }
        let editor = Editor::open(original, options.wanted)?;
        let how = CountOptions {
            sharing,
            rounds: options.rounds,
            notes_handlers: options.libraries,
            ..CountOptions::default()
        };
        let mut result = Err(at(io::ErrorKind::NotFound.into()));
        for folder in &self.folders {
            let out = folder.join(&copy);
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder.join(&key));
            result = match made {
                Ok(()) => editor.write_counting(&out, &how).map(|()| out),
                Err(cause) => Err(Error::File { path: folder.display().to_string(), cause }),
            };
            if result.is_ok() {
                break;
            }
        }
        result
    }
}

fn place() -> Option<PathBuf> {
    // A relative path is to be ignored, as the XDG specification says.
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("lancet"))
}

fn key(original: &Path, options: &Options<'_>, sharing: Option<Sharing>) -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    fs::canonicalize(original)?.hash(&mut hasher);
    let lancet = std::env::current_exe()?;
    for path in [original, &lancet] {
        let file = fs::metadata(path)?;
        (file.dev(), file.ino(), file.size(), file.mode()).hash(&mut hasher);
        (file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()).hash(&mut hasher);
    }
    options.wanted_name.hash(&mut hasher);
    (sharing, options.rounds, options.libraries).hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}
