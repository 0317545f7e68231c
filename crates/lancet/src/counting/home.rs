//! A rewritten copy that runs where it seems to be at home.
//!
//! Programs look for their files beside themselves: the loader does for `$ORIGIN`, others ask `/proc/self/exe`. So a copy
//! does not run in the cache but in a folder like the original's: what is there, and in all folders above it, stands there
//! as a symbolic link, and paths through `..` lead where they should.
//!
//! ```text
//! original   /opt/tool/bin/run
//! home       run-x/root/opt/tool/bin/run     the copy: another name of the file in the cache
//!            run-x/root/opt/tool/bin/other   -> /opt/tool/bin/other
//!            run-x/root/opt/tool/lib         -> /opt/tool/lib
//!            run-x/root/usr                  -> /usr
//! ```

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Of a folder with more than these, the first ones must do.
const MOST_NEIGHBOURS: usize = 10_000;

/// Is gone with this value.
pub struct Home {
    _folder: TempDir,
    /// What to execute.
    pub program: PathBuf,
}

impl Home {
    /// Beside the copy, because a file can have two names only in one file system.
    pub fn make(copy: &Path, original: &Path) -> io::Result<Home> {
        let nowhere = || io::Error::from(io::ErrorKind::NotFound);
        let folder = tempfile::Builder::new().prefix("run-").tempdir_in(copy.parent().ok_or_else(nowhere)?)?;
        let root = folder.path().join("root");
        // As the kernel names it: without links.
        let canonical = fs::canonicalize(original)?;
        let within = |path: &Path| path.strip_prefix("/").map(|path| root.join(path)).map_err(|_| nowhere());
        let at_home = within(&canonical)?;
        DirBuilder::new().recursive(true).mode(0o700).create(at_home.parent().ok_or_else(nowhere)?)?;
        fs::hard_link(copy, &at_home)?;
        for above in canonical.ancestors().skip(1) {
            surround(above, &within(above)?)?;
        }
        // It is called by the name that it was asked for by.
        let program = match original.file_name().filter(|name| canonical.file_name() != Some(name)) {
            None => at_home,
            Some(name) => {
                let called = folder.path().join("name");
                DirBuilder::new().mode(0o700).create(&called)?;
                symlink(&at_home, called.join(name))?;
                called.join(name)
            }
        };
        Ok(Home { _folder: folder, program })
    }
}

/// Links to all that is in a folder, but for what is there already.
fn surround(folder: &Path, at_home: &Path) -> io::Result<()> {
    // A folder that may not be listed can still be gone through: then nothing is known of it.
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.flatten().take(MOST_NEIGHBOURS) {
        match symlink(entry.path(), at_home.join(entry.file_name())) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
