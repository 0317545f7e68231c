//! An image against a file whose every part is known.

use lancet_engine::image::{Binding, Cfa, Image, Kind, RelocKind, SymbolKind};
use lancet_isa::Svma;

use crate::tiny_elf::{BUILD_ID, DATA_SHIFT, Form, TinyElf, X86_64, tiny_elf};

struct Known {
    image: Image,
    text: u64,
    data: u64,
}

fn known(change: impl FnOnce(&mut TinyElf)) -> Known {
    let mut elf = tiny_elf(X86_64);
    change(&mut elf);
    let (text, data) = (elf.offset(".text") as u64, elf.offset(".data") as u64 + DATA_SHIFT);
    Known { image: Image::from_bytes("tiny", elf.bytes).expect("the tiny file is sound"), text, data }
}

/// As `strip --strip-section-headers` leaves it.
pub fn without_section_headers(elf: &mut TinyElf) {
    elf.put(0x28, 0, 8).put(0x3c, 0, 4);
}

#[test]
fn headers() {
    let Known { image, text, data } = known(|_| {});
    assert_eq!((image.name(), image.kind()), ("tiny", Kind::SharedLibrary));
    assert_eq!(image.entry(), Some(Svma(text)));
    assert_eq!(image.segments().len(), 2);
    assert_eq!((image.segments()[1].svma, image.segments()[1].writable), (Svma(data), true));
    assert_eq!(image.code_ranges().len(), 1);
    assert_eq!((image.code_ranges()[0].name.as_str(), image.code_ranges()[0].len), (".text", 48));
    assert_eq!(image.build_id(), Some(&BUILD_ID[..]));
    assert_eq!(image.soname(), Some("libtiny.so"));
    assert_eq!(image.needed().collect::<Vec<_>>(), ["libneeded.so"]);
    assert_eq!(image.interpreter(), None);
}

#[test]
fn bytes_are_those_of_the_file_and_end_with_it() {
    let Known { image, text, data } = known(|_| {});
    assert_eq!(image.bytes(Svma(text), 2), Some(&[0xc3, 0x90][..]));
    let segment = &image.segments()[1];
    assert_eq!(image.bytes_from(Svma(data)).map(<[u8]>::len), Some(segment.file_size as usize));
    let end = Svma(data) + segment.file_size;
    assert!(segment.contains(end), "zeros follow what the file has");
    assert_eq!(image.bytes_from(end), None);
    assert_eq!(image.bytes(Svma(data), segment.file_size + 1), None);
    assert_eq!(image.bytes(Svma(u64::MAX), 1), None);
    assert_eq!(image.bytes(Svma(text), u64::MAX), None);
}

#[test]
fn symbols_of_both_tables_once() {
    let Known { image, text, .. } = known(|_| {});
    let symbols: Vec<_> = image.symbols().iter().map(|s| (s.svma.0, image.symbol_name(s), s.kind, s.binding)).collect();
    let expected = [
        (text, "exported", SymbolKind::Function, Binding::Global),
        (text + 16, "helper", SymbolKind::Function, Binding::Local),
    ];
    assert_eq!(symbols, expected);
    assert_eq!(image.symbols_at(Svma(text)).len(), 1);
    assert!(image.symbols_at(Svma(text + 1)).is_empty());
    assert_eq!(image.imports().collect::<Vec<_>>(), ["imported"]);
}

#[test]
fn relocations_of_all_tables() {
    for change in [(|_| {}) as fn(&mut TinyElf), without_section_headers] {
        let Known { image, text, data } = known(change);
        let relocs: Vec<_> = image.relocations().iter().map(|reloc| (reloc.place.0, reloc.kind)).collect();
        let expected = [
            (data, RelocKind::Relative(Svma(text + 16))),
            (data + 8, RelocKind::Symbol { index: 2, addend: 4 }),
            (data + 16, RelocKind::Symbol { index: 1, addend: 0 }),
            (data + 24, RelocKind::Irelative(Svma(text + 32))),
            (data + 32, RelocKind::Relative(Svma(text))),
            (data + 40, RelocKind::Relative(Svma(text + 16))),
            (data + 56, RelocKind::Relative(Svma(text + 32))),
        ];
        assert_eq!(relocs, expected);
        let pointers: Vec<_> = (0..8).map(|index| image.pointer_at(Svma(data + 8 * index)).map(|to| to.0)).collect();
        let to = |offset| Some(text + offset);
        assert_eq!(pointers, [to(16), to(4), None, None, to(0), to(16), None, to(32)]);
        assert_eq!(image.slot_name(Svma(data + 16)), Some("imported"));
        assert_eq!(image.slot_name(Svma(data + 24)), None);
        assert_eq!(image.init_functions(), [Svma(text), Svma(text + 16)]);
    }
}

#[test]
fn frames_with_and_without_section_headers() {
    for change in [(|_| {}) as fn(&mut TinyElf), without_section_headers] {
        let Known { image, text, .. } = known(change);
        let frames: Vec<_> = image.fdes().iter().map(|fde| (fde.start.0, fde.len, fde.entry_state, fde.lsda)).collect();
        assert_eq!(frames, [(text, 16, true, None), (text + 16, 16, false, None)]);
        let cfa = |offset| Some(Cfa::Register { dwarf: 7, offset });
        let at = |offset| image.cfa_at(Svma(text + offset));
        assert_eq!([at(0), at(3), at(4), at(15)], [cfa(8), cfa(8), cfa(48), cfa(48)]);
        assert_eq!([at(16), at(19), at(20), at(32)], [cfa(32), cfa(32), cfa(48), None]);
        assert_eq!(image.cie(&image.fdes()[0]).map(|cie| cie.entry), Some(cfa(8)));
        assert_eq!(image.problems(), [""; 0]);
    }
}

#[test]
fn a_file_without_section_headers_keeps_what_the_loader_needs() {
    let Known { image, text, .. } = known(without_section_headers);
    assert!(image.sections().is_empty());
    assert_eq!(image.code_ranges().len(), 1);
    assert_eq!(image.code_ranges()[0].name, "");
    assert!(image.is_code(Svma(text)));
    let names: Vec<_> = image.symbols().iter().map(|symbol| image.symbol_name(symbol)).collect();
    assert_eq!(names, ["exported"]);
    assert_eq!(image.imports().collect::<Vec<_>>(), ["imported"]);
    assert_eq!((image.soname(), image.build_id()), (Some("libtiny.so"), Some(&BUILD_ID[..])));
}

/// A 32-bit machine, through the same interface.
#[test]
fn a_blackfin_file() {
    let elf = tiny_elf(Form { is_64: false, big_endian: false, machine: 106 });
    let (text, data) = (elf.offset(".text") as u64, elf.offset(".data") as u64 + DATA_SHIFT);
    let image = Image::from_bytes("tiny", elf.bytes).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(image.isa().facts().pointer_bytes, 4);
    assert_eq!(image.symbols().len(), 2);
    assert_eq!(image.fdes().len(), 2);
    assert_eq!(image.pointer_at(Svma(data + 4 * 4)), Some(Svma(text)));
    assert_eq!(image.init_functions(), [Svma(text), Svma(text + 16)]);
}
