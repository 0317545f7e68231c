//! The programs that `bench count` runs, built in each way that it compares.
//!
//! A program comes in versions, each with what it is compared with: the same program, compiled by the same compiler,
//! without the profiling. A version that cannot be made (a peer is not installed, or refuses) is left out, with the
//! reason.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::sources::{self, BZIP2, LUA, SQLITE, Sources, ZSTD};
use crate::shell;

/// How a program is run, and the column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Native,
    Null,
    Count,
    /// Counting, without increments where induction variables tell.
    Induction,
    /// And with counters of loops in registers.
    Registers,
    CountEach,
    Gcov,
    GcovAtomic,
    ClangNative,
    ClangGenerate,
    Bolt,
    Callgrind,
}

impl Version {
    pub fn baseline(self) -> Version {
        match self {
            Version::ClangGenerate | Version::ClangNative => Version::ClangNative,
            _ => Version::Native,
        }
    }
}

pub struct Workload {
    pub name: &'static str,
    pub versions: Vec<(Version, Command)>,
}

struct Program {
    name: &'static str,
    from: Origin,
    /// [`INPUT`] stands for a file to work on, `@` in front of a word for bench/count.
    arguments: &'static [&'static str],
}

enum Origin {
    Package(&'static Sources),
    /// A file of bench/count.
    Own(&'static str, Language),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    C,
    Cpp,
    Rust,
}

const INPUT: &str = "INPUT";
const INPUT_SIZE: usize = 3_000_000;

static PROGRAMS: [Program; 6] = [
    Program { name: "bzip2", from: Origin::Package(&BZIP2), arguments: &["-9", "-c", INPUT] },
    Program { name: "lua", from: Origin::Package(&LUA), arguments: &["@work.lua", "8"] },
    Program {
        name: "sqlite3",
        from: Origin::Package(&SQLITE),
        arguments: &["-init", "@work.sql", ":memory:", "SELECT 1"],
    },
    Program {
        name: "zstd",
        from: Origin::Package(&ZSTD),
        arguments: &["-12", "-q", "-c", "--single-thread", "--no-asyncio", "--no-progress", INPUT],
    },
    Program { name: "shapes", from: Origin::Own("shapes.cpp", Language::Cpp), arguments: &["900"] },
    Program { name: "paths", from: Origin::Own("paths.rs", Language::Rust), arguments: &["120"] },
];

const BOLT: [&str; 2] = ["/usr/lib/llvm-19/bin/llvm-bolt", "/usr/bin/llvm-bolt"];

pub struct Maker<'a> {
    pub lancet: &'a Path,
    pub scratch: &'a Path,
    pub with_peers: bool,
}

impl Maker<'_> {
    /// All workloads, or those with the names.
    pub fn all(&self, names: &[&str]) -> Result<Vec<Workload>> {
        names.iter().try_for_each(|name| named(name).map(drop))?;
        let wanted = |program: &&Program| names.is_empty() || names.contains(&program.name);
        PROGRAMS.iter().filter(wanted).map(|program| self.workload(program)).collect()
    }

    /// How programs are run as their makers would ship them: all, or those with the names.
    pub fn native_runs(&self, names: &[String]) -> Result<Vec<(&'static str, Command)>> {
        names.iter().try_for_each(|name| named(name).map(drop))?;
        let wanted = |program: &&Program| names.is_empty() || names.iter().any(|name| name == program.name);
        let run = |program: &Program| {
            let mut command = Command::new(self.native(program.name)?);
            command.args(self.arguments(program)?);
            Ok((program.name, command))
        };
        PROGRAMS.iter().filter(wanted).map(run).collect()
    }

    fn arguments(&self, program: &Program) -> Result<Vec<String>> {
        program.arguments.iter().map(|word| self.argument(word)).collect()
    }

    fn workload(&self, program: &Program) -> Result<Workload> {
        let name = program.name;
        let arguments = self.arguments(program)?;
        let run = |program: &Path| {
            let mut command = Command::new(program);
            command.args(&arguments);
            command
        };
        let language = program.language();
        let build =
            |version: &str, compiler: &[&str], options: &[&str]| self.build(program, version, compiler, options);
        let native = build("native", language.compiler(), &[])?;
        let mut versions = vec![(Version::Native, run(&native))];
        let tools: [(Version, &str, &[&str]); 5] = [
            (Version::Null, "null", &["--tool", "null"]),
            (Version::Count, "count", &["--counters", "together"]),
            (Version::Induction, "induction", &["--counters", "together", "--rounds", "induction"]),
            (Version::Registers, "registers", &["--counters", "together", "--rounds", "registers"]),
            (Version::CountEach, "each", &["--counters", "each"]),
        ];
        for (version, suffix, options) in tools {
            let edited = self.scratch.join(format!("{name}.{suffix}"));
            shell::output(Command::new(self.lancet).arg("rewrite").args(options).arg(&native).arg("-o").arg(&edited))?;
            let mut command = run(&edited);
            command.env("LANCET_COUNTS", self.scratch.join(format!("{name}.{suffix}.counts")));
            versions.push((version, command));
        }
        if !self.with_peers {
            return Ok(Workload { name, versions });
        }
        let mut add = |version, made: Result<Command>| match made {
            Ok(mut command) => {
                command.env("LLVM_PROFILE_FILE", self.scratch.join(format!("{name}.profraw")));
                versions.push((version, command));
            }
            Err(error) => println!("{name}, {version:?}: left out: {:.300}", format!("{error:#}")),
        };
        if let Some(clang) = language.clang() {
            let gcc = language.compiler();
            let gcov = |version, update| build(version, gcc, &["--coverage", update]).map(|path| run(&path));
            add(Version::Gcov, gcov("gcov", "-fprofile-update=single"));
            add(Version::GcovAtomic, gcov("gcov-atomic", "-fprofile-update=atomic"));
            add(Version::ClangNative, build("clang", clang, &[]).map(|path| run(&path)));
            add(Version::ClangGenerate, build("generate", clang, &["-fprofile-generate"]).map(|path| run(&path)));
        }
        add(Version::Bolt, self.bolt(program).map(|path| run(&path)));
        let mut callgrind = Command::new("valgrind");
        callgrind.args(["--quiet", "--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(&native).args(&arguments);
        add(Version::Callgrind, shell::find_program("valgrind").context("no valgrind").map(|_| callgrind));
        Ok(Workload { name, versions })
    }

    /// A program with threads and its library as it is, rewritten, and rewritten with locked increments.
    pub fn library(&self) -> Result<[Command; 3]> {
        let native = self.compile("library.c", "native", &["gcc", "-O2"], &["-shared", "-fPIC"])?;
        let linked = ["-Wl,--no-as-needed", &native.to_string_lossy()];
        let program = self.compile("threads.c", "native", &["gcc", "-O2", "-pthread"], &linked)?;
        // What is loaded first is called, whatever the program was linked with.
        let run = |library: &Path| {
            let mut command = Command::new(&program);
            command.arg("2000").env("LD_PRELOAD", library);
            command.env("LANCET_COUNTS", format!("{}.counts", library.display()));
            command
        };
        let rewritten = |counters: &str| -> Result<Command> {
            let out = self.scratch.join(format!("library.{counters}"));
            let mut command = Command::new(self.lancet);
            shell::output(command.args(["rewrite", "--counters", counters]).arg(&native).arg("-o").arg(&out))?;
            Ok(run(&out))
        };
        Ok([run(&native), rewritten("each")?, rewritten("atomic")?])
    }

    fn argument(&self, word: &str) -> Result<String> {
        let path = match word.strip_prefix('@') {
            Some(file) => shell::root()?.join("bench/count").join(file),
            None if word == INPUT => self.input()?,
            None => return Ok(word.to_string()),
        };
        Ok(path.to_string_lossy().into_owned())
    }

    /// Something to compress: text, of the same size on every machine.
    fn input(&self) -> Result<PathBuf> {
        let input = self.scratch.join("input");
        if !input.is_file() {
            let path = SQLITE.fetch()?.join("sqlite3.c");
            let mut text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            text.truncate(INPUT_SIZE);
            fs::write(&input, text).with_context(|| format!("cannot write {}", input.display()))?;
        }
        Ok(input)
    }

    fn compile(&self, file: &str, version: &str, compiler: &[&str], options: &[&str]) -> Result<PathBuf> {
        let source = shell::root()?.join("bench/count").join(file);
        let program = sources::folder()?.join(format!("{file}.{version}"));
        let mut command = Command::new(compiler.first().context("no compiler")?);
        command.args(&compiler[1..]).args(options).arg(&source).arg("-o").arg(&program).current_dir(self.scratch);
        shell::output(&mut command)?;
        Ok(program)
    }

    /// The program as its makers would ship it.
    pub fn native(&self, name: &str) -> Result<PathBuf> {
        let program = named(name)?;
        self.build(program, "native", program.language().compiler(), &[])
    }

    /// Instrumenting a program with llvm-bolt, which wants it linked with relocations.
    pub fn bolting(&self, name: &str) -> Result<Command> {
        Ok(self.bolting_to(named(name)?)?.0)
    }

    fn bolt(&self, program: &Program) -> Result<PathBuf> {
        let (mut command, output) = self.bolting_to(program)?;
        shell::output(&mut command)?;
        Ok(output)
    }

    fn bolting_to(&self, program: &Program) -> Result<(Command, PathBuf)> {
        let language = program.language();
        let linked = self.build(program, "relocatable", language.compiler(), &[language.with_relocations()])?;
        let bolt = BOLT.iter().find(|path| Path::new(path).is_file()).context("llvm-bolt is not installed")?;
        let at = |extension: &str| self.scratch.join(format!("{}.{extension}", program.name));
        let mut command = Command::new(bolt);
        command.arg(linked).arg("-instrument").arg("-o").arg(at("bolt"));
        command.arg(format!("--instrumentation-file={}", at("fdata").display()));
        Ok((command, at("bolt")))
    }

    fn build(&self, program: &Program, version: &str, compiler: &[&str], options: &[&str]) -> Result<PathBuf> {
        match &program.from {
            Origin::Package(sources) => sources.build(version, compiler, options),
            Origin::Own(file, _) => self.compile(file, version, compiler, options),
        }
    }
}

fn named(name: &str) -> Result<&'static Program> {
    PROGRAMS.iter().find(|program| program.name == name).with_context(|| format!("there is no workload {name}"))
}

impl Program {
    fn language(&self) -> Language {
        match self.from {
            Origin::Package(_) => Language::C,
            Origin::Own(_, language) => language,
        }
    }
}

impl Language {
    fn compiler(self) -> &'static [&'static str] {
        match self {
            Language::C => &["gcc", "-O2", "-w"],
            Language::Cpp => &["g++", "-O2", "-std=c++17"],
            Language::Rust => &["rustc", "--edition=2024", "-O"],
        }
    }

    fn clang(self) -> Option<&'static [&'static str]> {
        match self {
            Language::C => Some(&["clang", "-O2", "-w"]),
            Language::Cpp => Some(&["clang++", "-O2", "-std=c++17"]),
            Language::Rust => None,
        }
    }

    fn with_relocations(self) -> &'static str {
        match self {
            Language::C | Language::Cpp => "-Wl,-q",
            Language::Rust => "-Clink-arg=-Wl,-q",
        }
    }
}
