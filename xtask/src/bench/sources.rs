//! Debian's source packages as workloads: fetched once, unpacked, and compiled in as many ways as a benchmark wants.
//!
//! `apt-get source` brings them, with lists of its own, so that the machine's own list of sources stays as it is. What
//! was fetched or built stays in the build folder. A program is built again when its command line has changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::packages::{self, Package, package};
use crate::shell;

/// A program in C of a source package.
pub struct Sources {
    pub package: &'static str,
    /// What a shell does in the folder of the package before anything can be compiled.
    pub prepare: &'static str,
    /// Patterns of a shell for the files to compile and to link.
    pub files: &'static str,
    /// Options of all compilers.
    pub options: &'static [&'static str],
}

pub const BZIP2: Sources = Sources {
    package: "bzip2",
    prepare: "",
    files: "blocksort.c huffman.c crctable.c randtable.c compress.c decompress.c bzlib.c bzip2.c",
    options: &["-D_FILE_OFFSET_BITS=64"],
};

pub const LUA: Sources = Sources {
    package: "lua5.4",
    // Its hashes depend on the time and on addresses otherwise, and no two runs do the same.
    prepare: "rm -f src/luac.c; echo '#define DEB_HOST_MULTIARCH \"\"' > src/lua5.4-deb-multiarch.h; \
              echo '#define luai_makeseed(L) 1' >> src/luaconf.h",
    files: "src/*.c",
    options: &["-DLUA_USE_POSIX", "-DLUA_COMPAT_5_3", "-lm"],
};

pub const SQLITE: Sources = Sources {
    package: "sqlite3",
    prepare: "sh configure --disable-tcl --disable-readline > configure.log 2>&1 && make sqlite3.c shell.c > make.log 2>&1",
    files: "sqlite3.c shell.c",
    options: &["-DSQLITE_THREADSAFE=1", "-DSQLITE_OMIT_LOAD_EXTENSION", "-lm", "-pthread"],
};

pub const ZSTD: Sources = Sources {
    package: "libzstd",
    prepare: "",
    files: "lib/common/*.c lib/compress/*.c lib/decompress/*.c lib/decompress/*.S lib/dictBuilder/*.c programs/*.c",
    options: &["-DXXH_NAMESPACE=ZSTD_", "-DZSTD_MULTITHREAD", "-DZSTD_LEGACY_SUPPORT=0", "-pthread"],
};

const NEEDED: &[Package] =
    &[package("dpkg-dev", "dpkg-source"), package("gcc", "gcc"), package("make", "make"), package("tcl", "tclsh")];

/// The folder of what was fetched and built.
pub fn folder() -> Result<PathBuf> {
    let folder = shell::target_dir()?.join("bench-count");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

impl Sources {
    /// The folder of the unpacked and prepared package.
    pub fn fetch(&self) -> Result<PathBuf> {
        let place = folder()?.join(self.package);
        let (unpacked, ready) = (place.join("source"), place.join("ready"));
        if ready.is_file() {
            return Ok(unpacked);
        }
        packages::install_missing(NEEDED)?;
        println!("fetching the source of {}", self.package);
        // Whatever an interrupted attempt has left.
        if place.exists() {
            fs::remove_dir_all(&place).with_context(|| format!("cannot remove {}", place.display()))?;
        }
        let lists = place.join("apt/lists");
        fs::create_dir_all(lists.join("partial")).with_context(|| format!("cannot make {}", lists.display()))?;
        fs::write(place.join("apt/debian.sources"), apt_sources()?).context("cannot write a list of sources")?;
        apt_get(&place, &["update"])?;
        apt_get(&place, &["source", "--only-source", "--download-only", self.package])?;
        let description = the_only(&place, "dsc")?;
        shell::output(Command::new("dpkg-source").arg("-x").arg(description).arg(&unpacked).current_dir(&place))?;
        shell::output(Command::new("sh").args(["-c", self.prepare]).current_dir(&unpacked))?;
        fs::write(&ready, "").context("cannot write")?;
        Ok(unpacked)
    }

    /// Builds the program with a compiler and its options, unless that was done before. `version` names the result.
    pub fn build(&self, version: &str, compiler: &[&str], options: &[&str]) -> Result<PathBuf> {
        let source = self.fetch()?;
        let program = source.with_file_name(format!("{}.{version}", self.package));
        // In a folder of its own, where compilers leave what they need at run time.
        let beside = source.with_file_name(format!("built.{version}"));
        fs::create_dir_all(&beside).with_context(|| format!("cannot make {}", beside.display()))?;
        let line = format!(
            "cd {} && {} {} {} {} -o {}",
            source.display(),
            compiler.join(" "),
            options.join(" "),
            self.files,
            self.options.join(" "),
            program.display()
        );
        let made_by = beside.join("made-by");
        if program.is_file() && fs::read_to_string(&made_by).is_ok_and(|old| old == line) {
            return Ok(program);
        }
        println!("building {}", program.file_name().unwrap_or_default().to_string_lossy());
        shell::output(Command::new("sh").args(["-c", &line]))?;
        fs::write(&made_by, &line).context("cannot write")?;
        Ok(program)
    }
}

/// The list of the sources of this release of Debian.
fn apt_sources() -> Result<String> {
    let release = fs::read_to_string("/etc/os-release").context("cannot read /etc/os-release")?;
    let field = |name: &str| {
        let value = release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        value.map(|value| value.trim_matches('"'))
    };
    ensure!(field("ID") == Some("debian"), "this is not a Debian system: its source packages cannot be had");
    let codename = field("VERSION_CODENAME").context("/etc/os-release states no VERSION_CODENAME")?;
    Ok(format!(
        "Types: deb-src\nURIs: http://deb.debian.org/debian\nSuites: {codename}\nComponents: main\n\
         Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    ))
}

fn apt_get(place: &Path, arguments: &[&str]) -> Result<()> {
    let apt = place.join("apt");
    let mut command = Command::new("apt-get");
    command.arg("-qq").current_dir(place);
    for (name, path) in [
        ("Dir::Etc::SourceList", Path::new("/dev/null")),
        ("Dir::Etc::SourceParts", &apt),
        ("Dir::State::Lists", &apt.join("lists")),
        ("Dir::Cache", &apt.join("cache")),
    ] {
        command.arg("-o").arg(format!("{name}={}", path.display()));
    }
    shell::output(command.args(arguments)).map(drop)
}

fn the_only(folder: &Path, extension: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut found = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let found = found.find(|path| path.extension().is_some_and(|e| e == extension));
    found.with_context(|| format!("no .{extension} file in {}", folder.display()))
}
