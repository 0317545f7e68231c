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

/// What a program loads at its start.
#[derive(Default)]
pub struct Loaded {
    /// All libraries that are asked for by name, in the loader's order. The loader itself is not among them.
    pub libraries: Vec<Library>,
    /// Those that are asked for by a path, for which the loader searches nothing.
    pub by_path: Vec<String>,
}

pub fn loaded_by(program: &Image) -> Result<Loaded, Error> {
    let (Some(interpreter), Some(path)) = (program.interpreter(), program.path()) else { return Ok(Loaded::default()) };
    let failed = |cause: String| Error::NoLibraries {
        program: program.name().to_owned(),
        interpreter: interpreter.to_owned(),
        cause,
    };
    // The kernel would tell the loader where the program itself is, for `$ORIGIN`; here the path does.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let listed =
        Command::new(interpreter).arg("--list").arg(path).output().map_err(|error| failed(error.to_string()))?;
    if !listed.status.success() {
        let complaint = String::from_utf8_lossy(&listed.stderr);
        return Err(failed(complaint.lines().next().unwrap_or("it lists nothing").to_owned()));
    }
    let lines = String::from_utf8_lossy(&listed.stdout);
    let by_path = lines.lines().filter_map(path_of).filter(|path| *path != interpreter);
    Ok(Loaded { libraries: lines.lines().filter_map(parse).collect(), by_path: by_path.map(str::to_owned).collect() })
}

/// `./libz.so (0x00007f0000000000)`: what is asked for by a path has no arrow, and neither has the loader, which the program
/// names, nor the kernel's own library, which is no file.
fn path_of(line: &str) -> Option<&str> {
    let asked = match line.trim().split_once(" => ") {
        Some((asked, _)) => asked,
        None => line.trim().rsplit_once(" (0x")?.0,
    };
    asked.contains('/').then_some(asked)
}

/// `libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f0000000000)`.
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
        assert_eq!(path_of("\t./a folder/libz.so (0x00007f1200000000)"), Some("./a folder/libz.so"));
        assert_eq!(path_of("\tlibz.so.1 => /lib/libz.so.1 (0x00007f1200000000)"), None);
        assert_eq!(path_of("\tlinux-vdso.so.1 (0x00007ffc00000000)"), None);
    }
}
