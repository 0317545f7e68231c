//! Building, running and looking at programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lancet_engine::image::Image;
use lancet_engine::layout::Patch;
use lancet_engine::sink::elf_writer::{self, Tactic};
use tempfile::TempDir;

/// A folder in which things are built.
pub struct Bench {
    folder: TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        Bench { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Compiles a source file to `name`.
    pub fn compile(&self, compiler: &str, source: &str, name: &str, flags: &[&str]) -> PathBuf {
        let suffix = if compiler == "rustc" { "rs" } else { "cc" };
        let (file, out) = (self.path(&format!("{name}.{suffix}")), self.path(name));
        fs::write(&file, source).expect("the source is written");
        run(Command::new(compiler).arg(&file).arg("-o").arg(&out).args(flags).current_dir(self.folder.path()));
        out
    }

    /// Writes a patched copy.
    pub fn patched(&self, from: &Path, name: &str, patch: impl FnOnce(&Image) -> Patch) -> (PathBuf, Tactic) {
        let (image, out) = (open(from), self.path(name));
        let written = elf_writer::write(&image, &patch(&image), &out).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(fs::metadata(&out).expect("the output").len(), written.size);
        check_sound(&out);
        (out, written.tactic)
    }

    pub fn copy(&self, from: &Path, name: &str) -> PathBuf {
        let to = self.path(name);
        fs::copy(from, &to).expect("a copy");
        to
    }

    /// What is in the folder.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("the folder");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> = entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

pub fn open(path: &Path) -> Image {
    Image::open(path).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a command that must succeed, and gives what it wrote.
pub fn run(command: &mut Command) -> String {
    let output = loop {
        match command.output() {
            // Another test's child has been forked while this file was written, and has it open until it executes its own.
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            Err(error) => panic!("{command:?}: {error}"),
            Ok(output) => break output,
        }
    };
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{errors}", output.status);
    assert_eq!(errors, "", "{command:?} complains");
    out.into_owned()
}

pub fn run_program(path: &Path) -> String {
    run(&mut Command::new(path))
}

/// What readers of ELF files agree to be sound: readelf says nothing on stderr and has no warning.
pub fn check_sound(path: &Path) {
    let text = run(Command::new("readelf").arg("-aW").arg(path));
    let warnings: Vec<&str> =
        text.lines().filter(|line| line.contains("Warning:") || line.contains("Error:")).collect();
    assert!(warnings.is_empty(), "{}: {warnings:?}", path.display());
    let image = open(path);
    let page = 0x1000;
    for pair in image.segments().windows(2) {
        assert!(pair[0].svma.0 + pair[0].mem_size <= pair[1].svma.0);
    }
    for segment in image.segments() {
        assert_eq!(segment.svma.0 % page, segment.offset.0 % page, "{segment:?}");
    }
}

/// Hides the section headers, as some packers do.
pub fn drop_section_headers(path: &Path) {
    let mut bytes = fs::read(path).expect("the program");
    bytes[0x28..0x30].fill(0); // e_shoff
    bytes[0x3c..0x40].fill(0); // e_shnum, e_shstrndx
    fs::write(path, bytes).expect("the program again");
}
