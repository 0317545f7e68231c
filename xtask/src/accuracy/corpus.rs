//! The corpus: our own test programs, built by every compiler at every level.
//!
//! A program is built the long way round, source to assembly to object to executable, so that the assembly listing
//! that the truth is checked against is the very one the program came from:
//!
//! ```text
//! x.c --compiler -S--> x.s --compiler -c -Wa,-L--> x.o --link --emit-relocs--> twin --strip -s--> stripped
//! ```
//!
//! `-Wa,-L` keeps the compiler's local labels as symbols: the addresses of jump tables and of their targets can be
//! looked up by name. Only the stripped file is ever shown to Lancet.
//!
//! Builds are cached by a hash of everything that goes in: sources, commands, the compiler's version.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use object::{Object, ObjectSegment};

use super::generate;
use crate::shell;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Compiler {
    Gcc,
    Gxx,
    Clang,
    Clangxx,
    Rustc,
}

pub(super) const COMPILERS: [Compiler; 5] =
    [Compiler::Gcc, Compiler::Gxx, Compiler::Clang, Compiler::Clangxx, Compiler::Rustc];
const LEVELS: [&str; 5] = ["0", "1", "2", "3", "s"];

impl Compiler {
    pub(super) fn command(self) -> &'static str {
        match self {
            Compiler::Gcc => "gcc",
            Compiler::Gxx => "g++",
            Compiler::Clang => "clang",
            Compiler::Clangxx => "clang++",
            Compiler::Rustc => "rustc",
        }
    }

    fn language(self) -> Language {
        match self {
            Compiler::Gcc | Compiler::Clang => Language::C,
            Compiler::Gxx | Compiler::Clangxx => Language::Cxx,
            Compiler::Rustc => Language::Rust,
        }
    }

    fn is_clang(self) -> bool {
        matches!(self, Compiler::Clang | Compiler::Clangxx)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    C,
    Cxx,
    Rust,
}

struct Program {
    name: &'static str,
    language: Language,
    sources: &'static [&'static str],
}

const fn program(name: &'static str, language: Language, sources: &'static [&'static str]) -> Program {
    Program { name, language, sources }
}

const PROGRAMS: &[Program] = &[
    program("switches", Language::C, &["switches.c"]),
    program("computed_goto", Language::C, &["computed_goto.c"]),
    program("cold", Language::C, &["cold.c"]),
    program("calls", Language::C, &["calls.c"]),
    program("assembly", Language::C, &["assembly.c", "assembly_cfi.S", "assembly_bare.S"]),
    program("generated", Language::C, &["generated_0.c", "generated_1.c"]),
    program("exceptions", Language::Cxx, &["exceptions.cc"]),
    program("virtuals", Language::Cxx, &["virtuals.cc"]),
    program("library", Language::Cxx, &["library.cc"]),
    program("matches", Language::Rust, &["matches.rs"]),
    program("panics", Language::Rust, &["panics.rs"]),
];

/// How a program is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Variant {
    pub(super) compiler: Compiler,
    pub(super) level: &'static str,
    pub(super) pie: bool,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pie = if self.pie { "pie" } else { "no-pie" };
        write!(f, "{} -O{} {pie}", self.compiler.command(), self.level)
    }
}

/// One program in one variant: what to build.
pub(super) struct Job {
    program: &'static Program,
    pub(super) variant: Variant,
}

impl Job {
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.program.name, self.variant)
    }
}

/// A built program.
pub(super) struct Built {
    pub(super) twin: PathBuf,
    pub(super) stripped: PathBuf,
    /// The assembly that each object was made from.
    pub(super) listings: Vec<PathBuf>,
}

/// The programs whose optimised build takes longer than all others of the small corpus together.
const SLOW: &[&str] = &["library"];

/// Everything to build. The small corpus has each program in two variants that differ in both respects.
pub(super) fn jobs(small: bool) -> Vec<Job> {
    let mut jobs = Vec::new();
    for compiler in COMPILERS {
        for program in PROGRAMS.iter().filter(|p| p.language == compiler.language()) {
            for level in LEVELS {
                for pie in [true, false] {
                    let is_slow = SLOW.contains(&program.name);
                    if !small || (level == "0" && !pie) || (level == "2" && pie && !is_slow) {
                        jobs.push(Job { program, variant: Variant { compiler, level, pie } });
                    }
                }
            }
        }
    }
    jobs
}

/// The folders that builds read and write.
pub(super) struct Folders {
    sources: PathBuf,
    generated: PathBuf,
    builds: PathBuf,
}

impl Folders {
    /// Finds the folders, and writes the generated sources.
    pub(super) fn prepare() -> Result<Folders> {
        let root = shell::root()?;
        let corpus = shell::target_dir()?.join("corpus");
        let generated = corpus.join("generated");
        std::fs::create_dir_all(&generated).with_context(|| format!("cannot create {}", generated.display()))?;
        for file in 0..generate::FILES {
            write(&generated.join(format!("generated_{file}.c")), &generate::c_file(file))?;
        }
        Ok(Folders { sources: root.join("testdata/x86_64/corpus"), generated, builds: corpus })
    }

    fn source(&self, name: &str) -> PathBuf {
        let folder = if name.starts_with("generated_") { &self.generated } else { &self.sources };
        folder.join(name)
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Builds one program, unless the same build is there already.
pub(super) fn build(job: &Job, folders: &Folders) -> Result<Built> {
    let Variant { compiler, level, pie } = job.variant;
    let tag = format!("{}-{}-O{level}-{}", job.program.name, compiler.command(), if pie { "pie" } else { "nopie" });
    let folder = folders.builds.join(&tag);
    let plan = Plan::new(job, folders, &folder);
    let hash = plan.hash(folders)?;
    let stamp = folder.join("stamp");
    if std::fs::read_to_string(&stamp).ok().as_deref() != Some(&hash) {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        for mut command in plan.commands() {
            // rustc leaves its temporary files in the current folder.
            shell::output(command.current_dir(&folder))?;
        }
        strip(&plan.built.twin, &plan.built.stripped)?;
        write(&stamp, &hash)?;
    }
    Ok(plan.built)
}

/// The command lines of one build, as words.
struct Plan {
    command_lines: Vec<Vec<String>>,
    source_files: Vec<PathBuf>,
    built: Built,
}

impl Plan {
    fn new(job: &Job, folders: &Folders, folder: &Path) -> Plan {
        let source_files: Vec<PathBuf> = job.program.sources.iter().map(|name| folders.source(name)).collect();
        let (twin, stripped) = (folder.join("twin"), folder.join("stripped"));
        let built = Built { twin, stripped, listings: Vec::new() };
        let mut plan = Plan { command_lines: Vec::new(), source_files, built };
        match job.variant.compiler {
            Compiler::Rustc => plan.rust(job.variant, folder),
            _ => plan.c(job.variant, folders, folder),
        }
        plan
    }

    fn c(&mut self, variant: Variant, folders: &Folders, folder: &Path) {
        let compiler = variant.compiler;
        let standard = if compiler.language() == Language::Cxx { "-std=c++17" } else { "-std=gnu17" };
        let level = format!("-O{}", variant.level);
        let (model, link_mode) = if variant.pie { ("-fPIE", "-pie") } else { ("-fno-pie", "-no-pie") };
        let include = format!("-I{}", folders.sources.display());
        let mut objects = Vec::new();
        for source in &self.source_files {
            let stem = source.file_stem().unwrap_or_default();
            let (listing, object) = (folder.join(stem).with_extension("s"), folder.join(stem).with_extension("o"));
            let is_assembly = source.extension().is_some_and(|e| e == "S");
            // Preprocessed assembly is its own listing.
            let to_listing: &[&str] =
                if is_assembly { &["-E"] } else { &["-S", "-g", "-w", standard, &level, model, &include] };
            self.command_lines.push(line(compiler.command(), to_listing, &["-o", &path(&listing), &path(source)]));
            self.command_lines.push(line(
                compiler.command(),
                &["-c", "-Wa,-L"],
                &["-o", &path(&object), &path(&listing)],
            ));
            self.built.listings.push(listing);
            objects.push(path(&object));
        }
        let mut link = line(compiler.command(), &[link_mode, "-Wl,--emit-relocs"], &["-o", &path(&self.built.twin)]);
        if compiler.is_clang() {
            link.push("-fuse-ld=lld".to_string());
        }
        link.extend(objects);
        self.command_lines.push(link);
    }

    fn rust(&mut self, variant: Variant, folder: &Path) {
        let level = format!("-Copt-level={}", variant.level);
        let model = if variant.pie { "-Crelocation-model=pie" } else { "-Crelocation-model=static" };
        for source in &self.source_files {
            let listing = folder.join("listing.s");
            let emit = format!("--emit=asm={},link={}", listing.display(), self.built.twin.display());
            // One codegen unit, so that one listing shows all of the program's own code.
            let options = ["--edition=2024", "-g", &level, model, "-Ccodegen-units=1", "-Clink-arg=-Wl,--emit-relocs"];
            self.command_lines.push(line("rustc", &options, &[&emit, &path(source)]));
            self.built.listings.push(listing);
        }
    }

    fn commands(&self) -> impl Iterator<Item = Command> {
        self.command_lines.iter().map(|words| {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            command
        })
    }

    fn hash(&self, folders: &Folders) -> Result<String> {
        let mut hasher = DefaultHasher::new();
        self.command_lines.hash(&mut hasher);
        for file in self.source_files.iter().chain([&folders.sources.join("corpus.h")]) {
            std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?.hash(&mut hasher);
        }
        if let Some(words) = self.command_lines.first() {
            shell::output(Command::new(&words[0]).arg("--version"))?.hash(&mut hasher);
        }
        Ok(format!("{:016x}", hasher.finish()))
    }
}

fn line(program: &str, options: &[&str], rest: &[&str]) -> Vec<String> {
    std::iter::once(&program).chain(options).chain(rest).map(|word| word.to_string()).collect()
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Strips the twin, and makes sure that what is loaded stayed the same.
fn strip(twin: &Path, stripped: &Path) -> Result<()> {
    shell::output(Command::new("strip").arg("-s").arg("-o").args([stripped, twin]))?;
    let (before, after) = (executable_segments(twin)?, executable_segments(stripped)?);
    ensure!(!before.is_empty(), "{} has no executable segment", twin.display());
    if before != after {
        bail!("strip changed the executable bytes of {}", twin.display());
    }
    Ok(())
}

fn executable_segments(file: &Path) -> Result<Vec<(u64, Vec<u8>)>> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let elf = object::File::parse(&*bytes).with_context(|| format!("cannot parse {}", file.display()))?;
    let mut segments = Vec::new();
    for segment in elf.segments() {
        let object::SegmentFlags::Elf { p_flags, .. } = segment.flags() else { continue };
        if p_flags.contains(object::elf::PF_X) {
            segments.push((segment.address(), segment.data()?.to_vec()));
        }
    }
    Ok(segments)
}
