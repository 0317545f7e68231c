//! Real programs, built here or part of the system.

use std::process::Command;

use lancet_engine::image::{Image, Kind, Reference, RelocKind, SymbolKind, demangle};
use lancet_isa::Svma;

use crate::support::{build, open, run, touch_everything};

fn function(image: &Image, name: &str) -> Svma {
    let found = image
        .symbols()
        .iter()
        .find(|symbol| symbol.kind == SymbolKind::Function && demangle(image.symbol_name(symbol)) == name);
    found.unwrap_or_else(|| panic!("no function {name}")).svma
}

#[test]
fn kinds_of_programs() {
    let kind = |flags: &[&str]| open(&build(flags).path).kind();
    assert_eq!(kind(&["-pie", "-fPIE"]), Kind::Pie);
    assert_eq!(kind(&["-no-pie"]), Kind::Executable);
    assert_eq!(kind(&["-static"]), Kind::Static);
    assert_eq!(kind(&["-static-pie", "-fPIE"]), Kind::StaticPie);
    assert_eq!(kind(&["-shared", "-fPIC"]), Kind::SharedLibrary);
}

#[test]
fn function_pointers_are_found_in_every_kind() {
    for flags in [&["-pie"][..], &["-no-pie"], &["-static"], &["-static-pie"], &["-pie", "-Wl,-z,pack-relative-relocs"]]
    {
        let built = build(&[flags, &["-O1", "-g0"]].concat());
        let image = open(&built.path);
        let table = image.symbols().iter().find(|symbol| image.symbol_name(symbol) == "table").expect("a table").svma;
        let pointers = [image.pointer_at(table), image.pointer_at(table + 8)];
        let functions = [function(&image, "thrower(int)"), function(&image, "guarded(int)")];
        assert_eq!(pointers, functions.map(Some), "{flags:?}");
        // The constructor of `global` is among what runs before main.
        let constructors: Vec<_> = image
            .init_functions()
            .iter()
            .flat_map(|&at| image.symbols_at(at))
            .map(|symbol| image.symbol_name(symbol))
            .collect();
        assert!(constructors.iter().any(|name| name.starts_with("_GLOBAL__sub_I")), "{flags:?}: {constructors:?}");
    }
}

#[test]
fn exceptions_land_in_the_function_that_catches_them() {
    for flags in [&["-O0"][..], &["-O2"], &["-O2", "-no-pie"], &["-O2", "-fno-reorder-blocks-and-partition"]] {
        let built = build(flags);
        let image = open(&built.path);
        let guarded = function(&image, "guarded(int)");
        let fde = image.fde_at(guarded).expect("an FDE");
        assert_eq!((fde.start, fde.entry_state), (guarded, true));
        let pads = image.landing_pads(fde);
        let throwing = pads.iter().find(|pad| pad.action != 0).unwrap_or_else(|| panic!("{flags:?}: {pads:?}"));
        assert!(fde.contains(throwing.start));
        let catcher = image.fde_at(throwing.pad).expect("a landing pad has an FDE");
        let names: Vec<_> = image.symbols_at(catcher.start).iter().map(|s| demangle(image.symbol_name(s))).collect();
        assert!(names.iter().any(|name| name.starts_with("guarded(int)")), "{flags:?}: {names:?}");
        let personality = image.cie(fde).and_then(|cie| cie.personality);
        match personality {
            Some(Reference::Slot(slot)) => assert_eq!(image.slot_name(slot), Some("__gxx_personality_v0")),
            Some(Reference::Direct(at)) => assert!(image.is_code(at)),
            None => panic!("{flags:?}: no personality"),
        }
    }
}

#[test]
fn calls_of_the_library_go_through_named_slots() {
    let image = open(&build(&["-O1"]).path);
    let named = |name: &str| {
        image
            .relocations()
            .iter()
            .any(|reloc| matches!(reloc.kind, RelocKind::Symbol { .. }) && image.slot_name(reloc.place) == Some(name))
    };
    assert!(named("__cxa_throw"));
    assert!(image.imports().any(|name| name == "pause"));
    assert!(image.needed().any(|name| name.starts_with("libstdc++")));
    assert!(image.interpreter().is_some_and(|loader| loader.contains("ld-linux")));
}

#[test]
fn source_lines() {
    for flags in [&["-g"][..], &["-g", "-gz=zlib"], &["-gdwarf-4"], &["-g", "-O2"]] {
        let image = open(&build(flags).path);
        for (name, line) in [("thrower(int)", 3), ("guarded(int)", 5)] {
            let found = image.source_line(function(&image, name)).unwrap_or_else(|| panic!("{flags:?}: {name}"));
            assert_eq!(found.line, line, "{flags:?}: {name}");
            assert!(found.file.ends_with("/program.cc"), "{}", found.file);
        }
        assert_eq!(image.source_line(Svma(1)), None);
    }
    assert_eq!(open(&build(&["-g0"]).path).source_line(Svma(0x1000)), None);
}

#[test]
fn a_separate_debug_file_counts_only_if_it_is_the_right_one() {
    let built = build(&["-g", "-O1", "-Wl,--build-id=none"]);
    let debug = built.folder.path().join("program.debug");
    let [program, debug_name] = [&built.path, &debug].map(|path| path.to_str().expect("a path in UTF-8"));
    let before = open(&built.path).symbols().len();
    run(Command::new("objcopy").args(["--only-keep-debug", program, debug_name]));
    run(Command::new("strip").arg(program));
    run(Command::new("objcopy").current_dir(built.folder.path()).arg("--add-gnu-debuglink=program.debug").arg(program));
    let image = open(&built.path);
    assert_eq!(image.debug_file_path(), Some(debug.as_path()));
    assert_eq!(image.symbols().len(), before);
    assert_eq!(image.source_line(function(&image, "guarded(int)")).map(|found| found.line), Some(5));

    let mut other = std::fs::read(&debug).expect("the debug file");
    *other.last_mut().expect("it is not empty") ^= 1;
    std::fs::write(&debug, other).expect("the debug file is written");
    let image = open(&built.path);
    assert_eq!(image.debug_file_path(), None);
    assert!(image.symbols().len() < before);
}

/// The loader's tables say the same as the section headers do.
#[test]
fn section_headers_are_not_needed() {
    for path in ["/usr/bin/true", "/usr/bin/bash", "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"] {
        let with = open(path.as_ref());
        let with = Image::from_bytes(path, with.data().to_vec()).unwrap_or_else(|error| panic!("{error}"));
        let mut bytes = with.data().to_vec();
        bytes[0x28..0x30].fill(0);
        bytes[0x3c..0x40].fill(0);
        let without = Image::from_bytes(path, bytes).unwrap_or_else(|error| panic!("{error}"));
        assert!(without.sections().is_empty());
        assert!(!with.fdes().is_empty());
        let frames =
            |image: &Image| image.fdes().iter().map(|f| (f.start, f.len, f.lsda, f.entry_state)).collect::<Vec<_>>();
        assert!(frames(&with) == frames(&without), "{path}");
        assert!(with.relocations() == without.relocations(), "{path}");
        assert_eq!(with.build_id(), without.build_id(), "{path}");
        assert_eq!(with.kind(), without.kind(), "{path}");
        let names = |image: &Image| image.symbols().iter().map(|s| image.symbol_name(s).to_owned()).collect::<Vec<_>>();
        assert!(names(&with) == names(&without), "{path}");
        assert!(with.imports().eq(without.imports()), "{path}");
        assert_eq!(with.init_functions(), without.init_functions(), "{path}");
    }
}

#[test]
fn truncated_system_files_are_refused_or_read() {
    let whole = open("/usr/bin/true".as_ref());
    for len in (0..whole.data().len()).step_by(251) {
        match Image::from_bytes("cut", whole.data()[..len].to_vec()) {
            Ok(image) => touch_everything(&image),
            Err(error) => assert!(error.to_string().starts_with("cut: "), "{error}"),
        }
    }
}
