//! Which shared libraries a program loads: the loader itself is asked, since only it knows all its rules.

use std::path::PathBuf;
use std::process::Command;

use lancet_engine::image::Image;

use crate::Error;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Library {
    /// What the program asks for.
    pub name: String,
    /// What the loader finds.
    pub path: PathBuf,
}

/// All libraries that are loaded at the start, in the loader's order. The loader itself is not among them.
pub fn loaded_by(program: &Image) -> Result<Vec<Library>, Error> {
    let (Some(interpreter), Some(path)) = (program.interpreter(), program.path()) else { return Ok(Vec::new()) };
    let failed = |cause: String| Error::NoLibraries {
        program: program.name().to_owned(),
        interpreter: interpreter.to_owned(),
        cause,
    };
    let listed =
        Command::new(interpreter).arg("--list").arg(path).output().map_err(|error| failed(error.to_string()))?;
    if !listed.status.success() {
        let complaint = String::from_utf8_lossy(&listed.stderr);
        return Err(failed(complaint.lines().next().unwrap_or("it lists nothing").to_owned()));
    }
    Ok(String::from_utf8_lossy(&listed.stdout).lines().filter_map(parse).collect())
}

/// `libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f0000000000)`. The loader and the kernel's own library have no
/// arrow.
fn parse(line: &str) -> Option<Library> {
    let (name, found) = line.trim().split_once(" => ")?;
    let (path, _) = found.rsplit_once(" (0x")?;
    let is_plain = !name.contains('/') && path.starts_with('/');
    is_plain.then(|| Library { name: name.to_owned(), path: PathBuf::from(path) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_loader() {
        let library = parse("\tlibz.so.1 => /lib/a folder/libz.so.1 (0x00007f1200000000)").expect("a library");
        assert_eq!((library.name.as_str(), library.path.to_str()), ("libz.so.1", Some("/lib/a folder/libz.so.1")));
        assert_eq!(parse("\tlinux-vdso.so.1 (0x00007ffc00000000)"), None);
        assert_eq!(parse("\t/lib64/ld-linux-x86-64.so.2 (0x00007f1200000000)"), None);
        assert_eq!(parse("\tlibgone.so => not found"), None);
    }
}
