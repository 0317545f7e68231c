//! What is not written, and that nothing is left of it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use lancet_engine::layout::{Chunk, ChunkKind, NewSection, NewSymbol, Patch};
use lancet_engine::program::Part;
use lancet_engine::sink::elf_writer::{SinkError, write, write_to_vec};
use lancet_isa::Svma;

use crate::patches::{announce, code, first_free, idle};
use crate::support::{Bench, open};

const PROGRAM: &str = "int main() {}";

fn build() -> (Bench, PathBuf) {
    let bench = Bench::new();
    let program = bench.compile("g++", PROGRAM, "program", &["-pie", "-fPIE"]);
    (bench, program)
}

fn refusal(program: &Path, out: &Path) -> SinkError {
    let image = open(program);
    write(&image, &idle(&image), out).expect_err("not written")
}

#[test]
fn its_own_input_by_any_name() {
    let (bench, program) = build();
    let before = fs::read(&program).expect("the program");
    symlink(&program, bench.path("symbolic")).expect("a link");
    fs::hard_link(&program, bench.path("hard")).expect("a link");
    let names = bench.names();
    for name in ["program", "symbolic", "hard", "./program"] {
        let error = refusal(&program, &bench.path(name));
        assert!(matches!(error, SinkError::OwnInput { .. }), "{name}: {error}");
    }
    assert_eq!(fs::read(&program).expect("the program"), before);
    assert_eq!(bench.names(), names);
}

#[test]
fn inputs_with_rights_of_their_own() {
    let (bench, program) = build();
    for mode in [0o4755, 0o2755] {
        fs::set_permissions(&program, Permissions::from_mode(mode)).expect("mode");
        let error = refusal(&program, &bench.path("out"));
        assert!(matches!(error, SinkError::Privileged { .. }), "{error}");
        assert!(error.to_string().contains("set-user-ID"), "{error}");
    }
    assert!(!bench.path("out").exists());
}

#[test]
fn places_that_cannot_be_written() {
    let (bench, program) = build();
    let names = bench.names();
    for out in [bench.path("missing/out"), program.join("out"), PathBuf::from("/proc/out")] {
        let error = refusal(&program, &out);
        let text = error.to_string();
        assert!(matches!(error, SinkError::Io { .. }), "{text}");
        assert!(text.starts_with(&out.display().to_string()), "{text}");
    }
    for out in [PathBuf::from("/dev/null"), bench.path(".")] {
        assert!(matches!(refusal(&program, &out), SinkError::NotAFile { .. }));
    }
    assert_eq!(bench.names(), names);
}

#[test]
fn the_mode_is_kept_and_an_old_output_replaced() {
    let (bench, program) = build();
    let image = open(&program);
    let out = bench.path("out");
    fs::write(&out, "something else").expect("an old output");
    for mode in [0o751, 0o500] {
        fs::set_permissions(&program, Permissions::from_mode(mode)).expect("mode");
        write(&image, &idle(&image), &out).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(fs::metadata(&out).expect("the output").permissions().mode() & 0o7777, mode);
    }
    let mut names = bench.names();
    names.retain(|name| !name.starts_with("program"));
    assert_eq!(names, ["out"]);
}

/// Runs itself once more with a limit on the size of files, which fails like a full disk.
#[test]
fn a_full_disk_leaves_nothing() {
    const FOLDER: &str = "ELF_WRITER_TEST_FOLDER";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let folder = PathBuf::from(folder);
        let error = refusal(&folder.join("program"), &folder.join("out"));
        assert!(matches!(error, SinkError::Io { action: "cannot write", .. }), "{error}");
        return;
    }
    let (bench, program) = build();
    let names = bench.names();
    let myself = std::env::current_exe().expect("this program");
    let status = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact refusals::a_full_disk_leaves_nothing"])
        .arg(myself)
        .env(FOLDER, program.parent().expect("its folder"))
        .output()
        .expect("sh runs");
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stdout));
    assert_eq!(bench.names(), names);
}

#[test]
fn code_that_the_loader_changes() {
    let bench = Bench::new();
    let source = "extern int there; extern \"C\" int *where() { return &there; } int there = 1;";
    let flags = ["-shared", "-fno-pic", "-mcmodel=large", "-Wl,-z,notext", "-w", "-Wl,--no-warnings"];
    let flags = if cfg!(any()) { &flags[..] } else { &flags[..5] };
    let library = bench.compile("g++", source, "library.so", flags);
    let image = open(&library);
    let error = write_to_vec(&image, &idle(&image)).expect_err("text relocations");
    assert!(error.to_string().contains("DT_TEXTREL"), "{error}");
}

#[test]
fn patches_that_do_not_fit() {
    let (_bench, program) = build();
    let image = open(&program);
    let free = first_free(&image);
    let with = |chunks: Vec<Chunk>| Patch { chunks, ..Patch::default() };
    let section = |start, end| NewSection { name: ".x", range: Part { start, end } };
    let data = |at, size| Chunk { at, bytes: vec![1; 10], kind: ChunkKind::Data { size } };
    let bad = [
        with(vec![code(Svma(0x1000), &[0xcc])]),
        with(vec![code(free + 1, &[0xcc])]),
        with(vec![code(free, &[])]),
        with(vec![data(free, 9)]),
        with(vec![data(free, 0x2000), code(free + 0x1000, &[0xcc])]),
        with(vec![data(free, u64::MAX)]),
        with(vec![code(Svma(!0xfff), &[0xcc])]),
        Patch { start_up: Some(Svma(0x1000)), ..idle(&image) },
        Patch { start_up: Some(free + 0x1000), ..announce(&image, "x") },
        Patch { sections: vec![section(free, free + 101)], ..idle(&image) },
        Patch { sections: vec![section(free + 5, free)], ..idle(&image) },
        Patch { sections: vec![section(free, free + 8), section(free + 4, free + 9)], ..idle(&image) },
        Patch { symbols: vec![NewSymbol { name: "x".into(), at: Svma(3), size: 1 }], ..idle(&image) },
        Patch { eh_frame_hdr: Some(Part { start: free, end: free + 101 }), ..idle(&image) },
    ];
    for (index, patch) in bad.iter().enumerate() {
        let result = write_to_vec(&image, patch);
        assert!(matches!(result, Err(SinkError::BadPatch { .. })), "{index}: {:?}", result.map(|it| it.1));
    }
}
