//! Broken files: each is refused in one line that names the file, the place and the fault, or read as far as it is
//! sound. None may panic, hang, or allocate more than in proportion to its size.

use std::path::Path;

use lancet_engine::image::Image;

use crate::support::touch_everything;
use crate::tiny::without_section_headers;
use crate::tiny_elf::{TinyElf, X86_64, tiny_elf};

/// Why the tiny file is refused after a change; one line, without the name.
fn refusal(change: impl FnOnce(&mut TinyElf)) -> String {
    let mut elf = tiny_elf(X86_64);
    change(&mut elf);
    match Image::from_bytes("tiny", elf.bytes) {
        Ok(image) => {
            touch_everything(&image);
            panic!("the changed file was accepted");
        }
        Err(error) => one_line(&error.to_string()),
    }
}

fn one_line(error: &str) -> String {
    assert!(!error.contains('\n'), "more than one line: {error}");
    error.strip_prefix("tiny: ").unwrap_or_else(|| panic!("does not start with the file: {error}")).to_owned()
}

/// What the tiny file still gives after a change that does not make it useless.
fn accepted(change: impl FnOnce(&mut TinyElf)) -> Image {
    let mut elf = tiny_elf(X86_64);
    change(&mut elf);
    let image = Image::from_bytes("tiny", elf.bytes).unwrap_or_else(|error| panic!("{error}"));
    touch_everything(&image);
    image
}

const P_FLAGS: usize = 4;
const P_OFFSET: usize = 8;
const P_VADDR: usize = 16;
const P_FILESZ: usize = 32;
const P_MEMSZ: usize = 40;
const SH_NAME: usize = 0;
const SH_OFFSET: usize = 24;
const SH_SIZE: usize = 32;
const SH_LINK: usize = 40;

#[test]
fn what_is_no_elf_file() {
    let refused =
        |bytes: &[u8]| one_line(&Image::from_bytes("tiny", bytes.to_vec()).err().expect("refused").to_string());
    assert_eq!(refused(b""), "not an ELF file: the file is empty");
    assert_eq!(refused(b"#!/bin/sh\n"), "not an ELF file: it starts with 23 21 2f 62, not with 7f 45 4c 46");
    assert_eq!(refused(b"\x7fE"), "not an ELF file: it starts with 7f 45, not with 7f 45 4c 46");
    assert_eq!(refused(b"\x7fELF"), "not an ELF file: it ends inside the identification");
    assert_eq!(refused(b"\x7fELF\x07"), "not an ELF file: class 7 at offset 4 is neither 32-bit nor 64-bit");
    assert_eq!(refused(b"\x7fELF\x02\x01\x01"), "ELF header: the file ends inside it");
}

#[test]
fn what_is_no_file() {
    let refused = |path: &str| Image::open(Path::new(path)).err().expect("refused").to_string();
    assert_eq!(refused("/usr"), "/usr: is a directory");
    assert_eq!(refused("/dev/null"), "/dev/null: is not a regular file");
    assert_eq!(refused("/no/such/file"), "/no/such/file: cannot open: No such file or directory (os error 2)");
}

#[test]
fn other_machines_and_kinds() {
    assert_eq!(refusal(|elf| _ = elf.put(18, 183, 2)), "unsupported machine 183 (AArch64)");
    assert_eq!(refusal(|elf| _ = elf.put(18, 0xfeed, 2)), "unsupported machine 65261 (unknown)");
    assert_eq!(refusal(|elf| _ = elf.put(16, 1, 2)), "unsupported ELF type: an object file, not yet linked");
    assert_eq!(refusal(|elf| _ = elf.put(16, 4, 2)), "unsupported ELF type: a core dump");
    assert_eq!(refusal(|elf| _ = elf.put(16, 77, 2)), "unsupported ELF type: 77");
}

#[test]
fn program_headers_that_lie() {
    let header = |index: usize, field: usize, value: u64| {
        refusal(move |elf| _ = elf.put(elf.field("phdr", index, field), value, 8))
    };
    let wraps = header(1, P_VADDR, u64::MAX - 0x10);
    assert!(wraps.starts_with("program header 1 at offset 0x78: "), "{wraps}");
    assert!(wraps.ends_with(" wrap around the address space"), "{wraps}");
    assert!(header(1, P_MEMSZ, u64::MAX).ends_with(" wrap around the address space"));
    assert!(header(1, P_VADDR, 0x10).contains("loadable segments at 0x0 and 0x10 overlap"));
    assert!(header(1, P_MEMSZ, 1).contains(" of the file for 0x1 bytes of memory"));
    assert!(header(1, P_OFFSET, u64::MAX).contains(" end past the file's "));
    assert!(header(2, P_OFFSET, 1 << 40).starts_with("program header 2 at offset 0xb0: "));
    assert!(header(4, P_FILESZ, 1 << 40).starts_with("program header 4 at offset 0x120: "));
    let table = |value: u64| refusal(move |elf| _ = elf.put(0x20, value, 8));
    assert!(table(u64::MAX).starts_with("program header table at offset 0xffffffffffffffff: "));
    let count = refusal(|elf| _ = elf.put(0x38, 0xfffe, 2));
    assert!(count.starts_with("program header table at offset 0x40: "), "{count}");
    // So many that another header has the number, and it has none.
    let elsewhere = refusal(|elf| _ = elf.put(0x38, 0xffff, 2));
    assert!(elsewhere.starts_with("program header table at offset 0x40: "), "{elsewhere}");
    let entry_size = refusal(|elf| _ = elf.put(0x36, 1, 2));
    assert!(entry_size.contains("entry size"), "{entry_size}");
}

#[test]
fn section_headers_that_lie() {
    let section = |name: &'static str, field: usize, value: u64, size: usize| {
        refusal(move |elf| {
            let at = elf.field("shdr", elf.section_index(name), field);
            elf.put(at, value, size);
        })
    };
    let beyond = section(".text", SH_SIZE, u64::MAX, 8);
    assert!(beyond.starts_with("section header 2 (.text): 0xffffffffffffffff bytes at offset "), "{beyond}");
    assert!(section(".dynstr", SH_OFFSET, 1 << 50, 8).contains(" end past the file's "));
    assert_eq!(section(".symtab", SH_LINK, 0xffff, 4), "section .symtab: its string table 65535 is none");
    assert_eq!(section(".dynsym", SH_LINK, 2, 4), "section .dynsym: its string table 2 is none");
    let table = refusal(|elf| _ = elf.put(0x28, 1 << 60, 8));
    assert!(table.starts_with("section header table at offset 0x1000000000000000: "), "{table}");
    assert!(refusal(|elf| _ = elf.put(0x3c, 0xffff, 2)).starts_with("section header table at offset "));
    // With more sections than fit into the field, section 0 has the number.
    let extended = refusal(|elf| {
        let count = elf.field("shdr", 0, SH_SIZE);
        elf.put(0x3c, 0, 2).put(count, u64::MAX, 8);
    });
    assert!(extended.starts_with("section header table at offset "), "{extended}");
    assert!(refusal(|elf| _ = elf.put(0x3e, 0xfff0, 2)).starts_with("ELF header: names of sections: "));
}

#[test]
fn strings_without_an_end() {
    let symtab = refusal(|elf| {
        let size = elf.field("shdr", elf.section_index(".strtab"), SH_SIZE);
        elf.put(size, 5, 8);
    });
    assert!(symtab.starts_with("section .symtab: its string table at offset 0x"), "{symtab}");
    assert!(symtab.ends_with(" is not terminated"), "{symtab}");
    let dynamic = refusal(|elf| {
        without_section_headers(elf);
        let strsz = elf.offset(".dynamic") + 4 * 16 + 8;
        elf.put(strsz, 5, 8);
    });
    assert!(dynamic.starts_with("dynamic entry DT_STRTAB: its string table at offset 0x"), "{dynamic}");
    // A name that starts behind the strings is empty.
    let image = accepted(|elf| {
        let name = elf.field("shdr", elf.section_index(".text"), SH_NAME);
        elf.put(name, u32::MAX.into(), 4);
    });
    assert_eq!(image.code_ranges()[0].name, "");
}

#[test]
fn dynamic_entries_that_lead_nowhere() {
    let entry = |index: usize, value: u64| {
        refusal(move |elf| {
            without_section_headers(elf);
            elf.put(elf.offset(".dynamic") + index * 16 + 8, value, 8);
        })
    };
    assert!(entry(2, 1 << 50).starts_with("dynamic entry DT_SYMTAB: "));
    assert!(entry(3, 1 << 50).starts_with("dynamic entry DT_STRTAB: "));
    assert!(entry(5, u64::MAX).starts_with("dynamic entry DT_RELA: "));
    let huge = entry(6, u64::MAX);
    assert!(huge.starts_with("dynamic entry DT_RELA: 0xffffffffffffffff bytes at 0x"), "{huge}");
    assert!(huge.ends_with(" are not in a loaded segment"), "{huge}");
    assert!(entry(8, 1 << 40).starts_with("dynamic entry DT_RELR: "));
    // No hash table tells how many symbols there are: none are believed.
    let image = accepted(|elf| {
        without_section_headers(elf);
        elf.put(elf.offset(".dynamic") + 11 * 16 + 8, u64::MAX - 3, 8);
    });
    assert!(image.symbols().is_empty());
}

#[test]
fn relocations_in_a_loop_stop() {
    // A bitmap that runs past the data.
    let image = accepted(|elf| {
        let place = elf.offset(".relr.dyn");
        elf.put(place + 8, u64::MAX, 8);
    });
    assert!(image.relocations().len() <= image.data().len() / 8);
    // The same place again.
    let image = accepted(|elf| {
        let place = elf.offset(".relr.dyn");
        let first = u64::from_le_bytes(elf.bytes[place..place + 8].try_into().expect("eight bytes"));
        elf.put(place + 8, first, 8);
    });
    // Four of RELA, and the first of RELR.
    assert_eq!(image.relocations().len(), 5);
}

#[test]
fn frames_that_make_no_sense_are_left_out() {
    const FDE: usize = 24; // behind the CIE
    let with_frames = |at: usize, value: u64, size: usize| {
        accepted(move |elf| {
            let place = elf.offset(".eh_frame") + at;
            elf.put(place, value, size);
        })
    };
    let outside = with_frames(FDE + 8, 0x7000_0000, 4);
    assert_eq!(outside.fdes().len(), 1);
    assert!(outside.problems()[0].contains("are not in executable memory"), "{:?}", outside.problems());
    assert_eq!(with_frames(FDE + 12, u32::MAX.into(), 4).fdes().len(), 1, "longer than the segment");
    assert_eq!(with_frames(FDE + 12, 0, 4).fdes().len(), 1, "covers nothing");
    assert_eq!(with_frames(FDE + 4, 0x7fff_ffff, 4).fdes().len(), 1, "its CIE is outside");
    let cut = with_frames(FDE + 12, 20, 4);
    assert_eq!(cut.fdes()[0].end(), cut.fdes()[1].start, "runs into the next");
    let unknown_encoding = with_frames(8 + 8, 0x77, 1);
    assert!(unknown_encoding.fdes().is_empty());
    let endless = with_frames(FDE, 0xffff_fff0, 4);
    assert!(endless.fdes().is_empty());
    assert_eq!(endless.problems().len(), 1);
    let none = accepted(|elf| {
        without_section_headers(elf);
        // Half of the listed FDEs lead somewhere else.
        elf.put(elf.offset(".eh_frame_hdr") + 12 + 4, u32::MAX.into(), 4);
    });
    assert_eq!(none.fdes().len(), 1);
}

#[test]
fn truncated_anywhere() {
    let whole = tiny_elf(X86_64).bytes;
    for len in 0..whole.len() {
        let error = Image::from_bytes("tiny", whole[..len].to_vec()).err();
        let error = error.unwrap_or_else(|| panic!("cut to {len} bytes, it was accepted"));
        one_line(&error.to_string());
    }
}

#[test]
fn a_segment_that_may_not_run_has_no_code() {
    let image = accepted(|elf| _ = elf.put(elf.field("phdr", 0, P_FLAGS), 4, 4));
    assert!(image.code_ranges().is_empty());
    assert!(image.fdes().is_empty());
    assert_eq!(image.entry(), None);
}
