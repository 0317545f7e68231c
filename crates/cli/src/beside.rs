//! Files that the command writes: beside their place, then renamed, so that nothing is lost or half written.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The mode of a new file, less what the user's mask takes away.
const NEW_FILE: u32 = 0o666;

/// Writes a file whole, or leaves what was there. What is no file (a pipe, a terminal) is written to as it comes.
pub fn write(path: &Path, render: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    // Behind a link, the file is replaced and the link stays.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let known = fs::metadata(&place).ok();
    if known.as_ref().is_some_and(|known| !known.is_file()) {
        return render_to(File::create(path)?, render);
    }
    let mode = known.map_or(NEW_FILE, |known| known.permissions().mode());
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut new = tempfile::Builder::new();
    new.prefix(".").suffix(".part").permissions(Permissions::from_mode(mode));
    // What is wrong with the folder is said of the folder, not of a file in it that nobody asked for.
    fs::metadata(folder)?;
    let beside = new.tempfile_in(folder)?;
    render_to(beside.as_file(), render)?;
    beside.persist(&place).map_err(|error| error.error)?;
    Ok(())
}

fn render_to(out: impl Write, render: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    render(&mut out)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_leaves_what_was_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report");
        let names = || fs::read_dir(folder.path()).expect("it is there").count();
        let fail = |out: &mut dyn Write| out.write_all(b"half").and(Err(io::Error::other("no room")));
        write(&path, fail).expect_err("it fails");
        assert_eq!(names(), 0);
        write(&path, |out| out.write_all(b"whole")).expect("there is room");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("ours");
        write(&path, fail).expect_err("it fails");
        assert_eq!((fs::read(&path).expect("it is there").as_slice(), names()), (&b"whole"[..], 1));
        write(&path, |out| out.write_all(b"new")).expect("there is room");
        assert_eq!(fs::read(&path).expect("it is there"), b"new");
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o640);
    }
}
