//! What `/proc/PID` gives, and why it does not when it does not.
//!
//! The kernel lets a process look at another by two rules of different strength (`ptrace(2)`, "Ptrace access mode
//! checking"). Maps and links need the weaker one: the same user, and a program that did not change its privileges.
//! Memory needs the stronger one, on which Yama's `ptrace_scope` has a say too. An error names the rule that refused.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use lancet_isa::Avma;

use super::maps::Mapping;
use crate::image::error::ImageError;

const AT_PHDR: u64 = 3;
const PTRACE_SCOPE: &str = "/proc/sys/kernel/yama/ptrace_scope";
const NOT_DUMPABLE: &str = "it is not dumpable, or has capabilities that Lancet has not; CAP_SYS_PTRACE would allow it";

/// The kernel's names for the two rules are PTRACE_MODE_READ and PTRACE_MODE_ATTACH.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    Read,
    Attach,
}

pub(super) struct Access {
    pid: u32,
    folder: PathBuf,
    /// When the process started: a number that is used again is another process.
    started: String,
    exe: Option<PathBuf>,
    memory: io::Result<File>,
}

impl Access {
    pub fn open(pid: u32) -> Result<Access, ImageError> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let stat = fs::read_to_string(folder.join("stat")).map_err(|cause| {
            let what = match cause.kind() {
                io::ErrorKind::NotFound => "no such process".to_owned(),
                _ => format!("cannot read /proc/{pid}/stat: {cause}"),
            };
            ImageError::Process { pid, what }
        })?;
        let exe = fs::read_link(folder.join("exe")).ok();
        let memory = File::open(folder.join("mem"));
        let access = Access { pid, started: started(&stat), exe, memory, folder };
        match state(&stat) {
            Some("Z" | "X") => Err(access.error("has ended (zombie): it has no memory any more")),
            _ => Ok(access),
        }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn error(&self, what: impl Into<String>) -> ImageError {
        ImageError::Process { pid: self.pid, what: what.into() }
    }

    pub fn maps(&self) -> Result<String, ImageError> {
        let bytes = fs::read(self.folder.join("maps")).map_err(|cause| match cause.kind() {
            io::ErrorKind::PermissionDenied => {
                self.error(format!("no permission to look at it: {}", self.why_refused(Rule::Read)))
            }
            io::ErrorKind::NotFound => self.error("no such process"),
            _ => self.error(format!("cannot read /proc/{}/maps: {cause}", self.pid)),
        })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub fn why_no_maps(&self) -> ImageError {
        match &self.exe {
            None => self.error("is a kernel thread: it has no program"),
            Some(_) => self.error("has no memory: it is ending"),
        }
    }

    /// Fails if the process went away, or another took its number.
    pub fn check_still_there(&self) -> Result<(), ImageError> {
        match fs::read_to_string(self.folder.join("stat")) {
            Ok(stat) if started(&stat) == self.started => Ok(()),
            _ => Err(self.error("ended while it was looked at")),
        }
    }

    /// Reads what is readable at `at`: perhaps less than asked for, or nothing.
    pub fn read_memory(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, ImageError> {
        let memory = self.memory.as_ref().map_err(|cause| self.memory_error(at, cause))?;
        let mut done = 0;
        while done < buffer.len() {
            match memory.read_at(&mut buffer[done..], at.0.wrapping_add(done as u64)) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                // The part before a hole was read.
                Err(_) if done > 0 => break,
                Err(cause) => return Err(self.memory_error(at, &cause)),
            }
        }
        Ok(done)
    }

    fn memory_error(&self, at: Avma, cause: &io::Error) -> ImageError {
        match cause.kind() {
            io::ErrorKind::PermissionDenied => {
                self.error(format!("no permission to read its memory: {}", self.why_refused(Rule::Attach)))
            }
            _ => self.error(format!("cannot read its memory at {at}: {cause}")),
        }
    }

    fn why_refused(&self, rule: Rule) -> String {
        let uids = |folder: &Path| {
            let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("Uid:").map(str::trim).map(str::to_owned));
            line.map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).unwrap_or_default()
        };
        let (theirs, ours) = (uids(&self.folder), uids(Path::new("/proc/self")));
        // Fields: real, effective, saved, file system. All three of theirs must be our file system uid.
        match (ours.get(3), theirs.get(..3)) {
            (Some(our), Some(their)) if their.iter().any(|uid| uid != our) => {
                return format!("it runs as uid {}, Lancet as uid {our}", their.join("/"));
            }
            _ => {}
        }
        let scope = fs::read_to_string(PTRACE_SCOPE).unwrap_or_default();
        match scope.trim() {
            "" | "0" => NOT_DUMPABLE.to_owned(),
            scope if rule == Rule::Attach => format!("{PTRACE_SCOPE} is {scope}; 0, or CAP_SYS_PTRACE, would allow it"),
            _ => NOT_DUMPABLE.to_owned(),
        }
    }

    pub fn started(&self) -> &str {
        &self.started
    }

    /// Why it cannot be traced: somebody else does so already, or may not be looked at.
    pub fn why_not_attached(&self) -> String {
        let status = fs::read_to_string(self.folder.join("status")).unwrap_or_default();
        let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).map_or("", str::trim);
        match tracer {
            "" | "0" => format!("no permission: {}", self.why_refused(Rule::Attach)),
            tracer => format!("process {tracer} traces it already"),
        }
    }

    /// The link to the very file of a mapping.
    pub fn map_file(&self, mapping: &Mapping) -> PathBuf {
        let name = format!("{:x}-{:x}", mapping.range.start.0, mapping.range.end.0);
        self.folder.join("map_files").join(name)
    }

    /// `/proc/PID/exe`, if that is the file of this mapping.
    pub fn exe_of(&self, mapping: &Mapping) -> Option<PathBuf> {
        let link = self.folder.join("exe");
        (self.exe_path()?.as_os_str() == mapping.name.as_str() && self.is_same_file(&link, mapping)).then_some(link)
    }

    /// The program's path, without the mark of a deleted file.
    pub fn exe_path(&self) -> Option<PathBuf> {
        let path = self.exe.as_ref()?.as_os_str().as_encoded_bytes();
        let path = String::from_utf8_lossy(path.strip_suffix(b" (deleted)").unwrap_or(path)).into_owned();
        Some(PathBuf::from(OsString::from(path)))
    }

    /// A path of the process, seen from here.
    pub fn in_root(&self, path: &str) -> PathBuf {
        self.folder.join("root").join(path.trim_start_matches('/'))
    }

    /// The same inode on the same device. Some file systems (overlayfs, btrfs) number devices one way for maps and
    /// another for stat, so `false` proves nothing.
    pub fn is_same_file(&self, path: &Path, mapping: &Mapping) -> bool {
        fs::metadata(path).is_ok_and(|found| {
            let (major, minor) = ((found.dev() >> 8) & 0xfff, (found.dev() & 0xff) | ((found.dev() >> 12) & 0xfff00));
            found.ino() == mapping.file.1 && format!("{major:02x}:{minor:02x}") == mapping.file.0
        })
    }

    /// Where the kernel says that the program's headers are in memory.
    pub fn program_header_address(&self) -> Option<Avma> {
        let vector = fs::read(self.folder.join("auxv")).ok()?;
        let mut words = vector.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
        while let (Some(key), Some(value)) = (words.next(), words.next()) {
            if key == AT_PHDR {
                return Some(Avma(value));
            }
        }
        None
    }
}

/// The fields of `/proc/PID/stat` behind the name, which may itself hold spaces and parentheses.
fn fields(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace()
}

fn state(stat: &str) -> Option<&str> {
    fields(stat).next()
}

/// Field 22; the state is field 3.
fn started(stat: &str) -> String {
    fields(stat).nth(22 - 3).unwrap_or_default().to_owned()
}
