//! What Lancet did to a process, kept outside of it.
//!
//! One file per process, in `$XDG_RUNTIME_DIR/lancet`, in `/run/lancet` (root), or in the folder for temporary files. It
//! is written anew and renamed before anything is changed that it describes, so whenever Lancet is killed, the file knows
//! at least what was done. A process is known by its number and the time it started; files of processes that are gone are
//! removed, and what is said of a program in whose place the process runs another does not count. A lock keeps two Lancets
//! from changing one process at the same time.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::LiveError;

/// New memory in the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    pub start: u64,
    /// Executable bytes at the beginning; the rest is for data.
    pub code: u64,
    pub data: u64,
    pub code_used: u64,
    pub data_used: u64,
}

/// Memory that the process is about to get, or has got: Lancet did not live to see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    pub start: u64,
    pub code: u64,
    pub data: u64,
}

/// Bytes of the process that were changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    pub at: u64,
    pub old: Vec<u8>,
    pub new: Vec<u8>,
    /// Where it leads, if it is a jump on the way from another: a thread that is at it goes there when it is taken back.
    #[serde(default)]
    pub leads_on: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Perhaps written, perhaps not: Lancet was about to.
    Writing,
    Applied,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub id: u64,
    pub state: State,
    /// The command that made it.
    pub command: String,
    /// What it is about: a function.
    pub subject: String,
    pub how: String,
    /// Seconds since 1970.
    pub time: u64,
    pub writes: Vec<Written>,
}

/// Code in a region, to be found again by its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    pub key: String,
    pub at: u64,
    pub len: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    pub pid: u32,
    pub started: String,
    pub next_id: u64,
    pub regions: Vec<Region>,
    #[serde(default)]
    pub expected: Option<Expected>,
    pub patches: Vec<Entry>,
    pub placed: Vec<Placed>,
}

pub struct Journal {
    path: PathBuf,
    /// Held as long as the journal is open for changes.
    _lock: Option<File>,
    pub content: Content,
}

impl Journal {
    /// To look at.
    pub fn read(pid: u32, started: &str) -> Result<Journal, LiveError> {
        Journal::load(pid, started, &folder()?, None)
    }

    /// To change.
    pub fn lock(pid: u32, started: &str) -> Result<Journal, LiveError> {
        let folder = folder()?;
        let path = folder.join(format!("{pid}.lock"));
        let lock = File::create(&path).map_err(failed(&path, "cannot create"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => LiveError::Locked { pid },
            other => failed(&path, "cannot lock")(other.into()),
        })?;
        Journal::load(pid, started, &folder, Some(lock))
    }

    fn load(pid: u32, started: &str, folder: &Path, lock: Option<File>) -> Result<Journal, LiveError> {
        let path = folder.join(format!("{pid}.json"));
        let fresh = Content { pid, started: started.to_owned(), next_id: 1, ..Content::default() };
        let content = match fs::read(&path) {
            Ok(bytes) => {
                let content: Content =
                    serde_json::from_slice(&bytes).map_err(|error| failed(&path, "not a journal")(error.into()))?;
                if content.started == started { content } else { fresh }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => fresh,
            Err(error) => return Err(failed(&path, "cannot read")(error)),
        };
        Ok(Journal { path, _lock: lock, content })
    }

    /// Writes it down. From then on a later Lancet knows.
    pub fn save(&self) -> Result<(), LiveError> {
        let next = self.path.with_extension("new");
        let text = serde_json::to_vec(&self.content).map_err(|error| failed(&next, "cannot write")(error.into()))?;
        fs::write(&next, text).map_err(failed(&next, "cannot write"))?;
        fs::rename(&next, &self.path).map_err(failed(&self.path, "cannot write"))
    }
}

fn failed(path: &Path, what: &'static str) -> impl Fn(io::Error) -> LiveError {
    let path = path.display().to_string();
    move |cause| LiveError::Journal { path: path.clone(), what, cause }
}

/// The folder of journals, made if it is missing. Nobody else may write there.
fn folder() -> Result<PathBuf, LiveError> {
    let uid = rustix::process::getuid().as_raw();
    let own =
        std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute() && folder.is_dir());
    let system = (uid == 0).then(|| PathBuf::from("/run")).filter(|folder| folder.is_dir());
    let folder = match own.or(system) {
        Some(folder) => folder.join("lancet"),
        None => std::env::temp_dir().join(format!("lancet-{uid}")),
    };
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(failed(&folder, "cannot create")(error));
        }
        _ => {}
    }
    let found = fs::symlink_metadata(&folder).map_err(failed(&folder, "cannot look at"))?;
    if !found.is_dir() || found.uid() != uid || found.mode() & 0o022 != 0 {
        let cause = io::Error::from(io::ErrorKind::PermissionDenied);
        return Err(failed(&folder, "is not a folder of one's own")(cause));
    }
    remove_stale(&folder);
    Ok(folder)
}

/// Journals of processes that are gone are of no use.
fn remove_stale(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let pid = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_file(path);
        }
    }
}
