//! A small ELF file made by hand, of either class and byte order, with one of everything that an image reads.
//!
//! Tests know where each part is and what it says, so they can check it, or break it, without another tool's opinion.
//!
//! ```text
//! headers, text, unwind tables, dynamic tables | data, dynamic entries | symbols, strings, section headers
//! ------------- loaded, r-x ------------------ | --- loaded, rw- ----- | ---------- not loaded ----------
//! ```

use std::collections::BTreeMap;

#[derive(Clone, Copy)]
pub struct Form {
    pub is_64: bool,
    pub big_endian: bool,
    pub machine: u16,
}

pub const X86_64: Form = Form { is_64: true, big_endian: false, machine: 62 };

pub struct TinyElf {
    pub form: Form,
    pub bytes: Vec<u8>,
    /// Where the parts are: `text`, `data`, ...; `phdr` and `shdr` are tables.
    at: BTreeMap<&'static str, usize>,
    sections: Vec<SectionEntry>,
}

struct SectionEntry {
    name: &'static str,
    kind: u32,
    flags: u32,
    start: usize,
    size: usize,
    link: &'static str,
}

/// The data segment is loaded this much above its place in the file; all else is where the file has it.
pub const DATA_SHIFT: u64 = 0x1000;
pub const BUILD_ID: [u8; 8] = [0xba, 0x5e, 1, 2, 3, 4, 5, 6];

const PROGRAM_HEADERS: usize = 5;
const DYNAMIC_STRINGS: &[u8] = b"\0imported\0exported@@V1\0libtiny.so\0libneeded.so\0";
const STRINGS: &[u8] = b"\0helper\0exported\0";
const ALLOC: u32 = 2;
const EXECINSTR: u32 = 4;

pub fn tiny_elf(form: Form) -> TinyElf {
    let mut elf = TinyElf { form, bytes: Vec::new(), at: BTreeMap::new(), sections: Vec::new() };
    elf.section("", 0, 0, "", |_| {});
    elf.bytes.resize(elf.size_of(64, 52), 0);
    elf.mark("phdr");
    elf.bytes.resize(elf.bytes.len() + PROGRAM_HEADERS * elf.size_of(56, 32), 0);
    elf.section(".note.gnu.build-id", 7, ALLOC, "", |elf| {
        elf.half_words(&[4, BUILD_ID.len() as u32, 3]);
        elf.bytes.extend(b"GNU\0");
        elf.bytes.extend(BUILD_ID);
    });
    // Three functions of 16 bytes: `ret`, then padding.
    elf.section(".text", 1, ALLOC | EXECINSTR, "", |elf| {
        for _ in 0..3 {
            elf.bytes.push(0xc3);
            elf.bytes.extend([0x90; 15]);
        }
    });
    let text = elf.offset(".text") as u64;
    elf.section(".dynsym", 11, ALLOC, ".dynstr", |elf| {
        elf.symbol(0, 0, 0, 0, 0);
        elf.symbol(1, 0x12, 0, 0, 0);
        elf.symbol(10, 0x12, 2, text, 16);
    });
    elf.section(".dynstr", 3, ALLOC, "", |elf| elf.bytes.extend(DYNAMIC_STRINGS));
    // One bucket; as many chain entries as symbols.
    elf.section(".hash", 5, ALLOC, ".dynsym", |elf| elf.half_words(&[1, 3, 2, 0, 0, 0]));
    elf.eh_frame(text);
    // The data follows these two tables of known size.
    let relocation = elf.size_of(24, 12);
    let tables = elf.bytes.len().next_multiple_of(4) + 4 * relocation + 2 * elf.word_size();
    let data = tables.next_multiple_of(8) as u64 + DATA_SHIFT;
    let word = elf.word_size() as u64;
    elf.section(".rela.dyn", 4, ALLOC, ".dynsym", |elf| {
        elf.rela(data, 8, 0, text + 16);
        elf.rela(data + word, 1, 2, 4);
        elf.rela(data + 2 * word, 7, 1, 0);
        elf.rela(data + 3 * word, 37, 0, text + 32);
    });
    elf.section(".relr.dyn", 19, ALLOC, "", |elf| {
        elf.word(data + 4 * word);
        // Of the words behind: the first and the third.
        elf.word(0b1011);
    });
    elf.align(8);
    elf.section(".data", 1, ALLOC | 1, "", |elf| {
        for value in [0, 0, 0, 0, text, text + 16, 0, text + 32] {
            elf.word(value);
        }
    });
    assert_eq!(data, elf.offset(".data") as u64 + DATA_SHIFT);
    elf.dynamic(data);
    elf.mark("loaded end");
    elf.section(".symtab", 2, 0, ".strtab", |elf| {
        elf.symbol(0, 0, 0, 0, 0);
        elf.symbol(1, 0x02, 2, text + 16, 16);
        elf.symbol(8, 0x12, 2, text, 16);
    });
    elf.section(".strtab", 3, 0, "", |elf| elf.bytes.extend(STRINGS));
    elf.finish(text);
    elf
}

impl TinyElf {
    pub fn offset(&self, part: &str) -> usize {
        self.at[part]
    }

    /// Place of a field of a 64-bit header table's entry.
    pub fn field(&self, table: &str, index: usize, field: usize) -> usize {
        let entry = if table == "phdr" { self.size_of(56, 32) } else { self.size_of(64, 40) };
        self.offset(table) + index * entry + field
    }

    pub fn section_index(&self, name: &str) -> usize {
        self.sections.iter().position(|section| section.name == name).expect("a section of the tiny file")
    }

    /// Overwrites bytes of a little-endian file.
    pub fn put(&mut self, at: usize, value: u64, size: usize) -> &mut Self {
        self.bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
        self
    }

    pub fn word_size(&self) -> usize {
        self.size_of(8, 4)
    }

    fn size_of(&self, in_64: usize, in_32: usize) -> usize {
        if self.form.is_64 { in_64 } else { in_32 }
    }

    fn mark(&mut self, part: &'static str) {
        self.at.insert(part, self.bytes.len());
    }

    fn align(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    fn section(
        &mut self,
        name: &'static str,
        kind: u32,
        flags: u32,
        link: &'static str,
        fill: impl FnOnce(&mut TinyElf),
    ) {
        self.align(4);
        self.mark(name);
        let start = self.bytes.len();
        fill(self);
        let size = self.bytes.len() - start;
        self.sections.push(SectionEntry { name, kind, flags, start, size, link });
    }

    fn number(&mut self, value: u64, size: usize) {
        let bytes = value.to_be_bytes();
        match self.form.big_endian {
            true => self.bytes.extend(&bytes[8 - size..]),
            false => self.bytes.extend(bytes[8 - size..].iter().rev()),
        }
    }

    fn word(&mut self, value: u64) {
        self.number(value, self.word_size());
    }

    fn half_words(&mut self, values: &[u32]) {
        for &value in values {
            self.number(value.into(), 4);
        }
    }

    fn symbol(&mut self, name: u32, info: u8, section: u16, value: u64, size: u64) {
        self.half_words(&[name]);
        if !self.form.is_64 {
            self.word(value);
            self.word(size);
        }
        self.bytes.extend([info, 0]);
        self.number(section.into(), 2);
        if self.form.is_64 {
            self.word(value);
            self.word(size);
        }
    }

    fn rela(&mut self, place: u64, kind: u64, symbol: u64, addend: u64) {
        self.word(place);
        self.word(symbol << self.size_of(32, 8) | kind);
        self.word(addend);
    }

    /// One CIE; the first function enters with the CIE's rules, the second with a frame of 32 bytes.
    fn eh_frame(&mut self, text: u64) {
        const NOP: u8 = 0;
        let mut fdes = [0; 2];
        self.section(".eh_frame", 1, ALLOC, "", |elf| {
            let cie = elf.bytes.len();
            elf.half_words(&[20, 0]);
            // Version 1, "zR", code 1, data -8, return address 16; pc-relative sdata4; def_cfa r7+8; r16 at cfa-8.
            elf.bytes.extend([1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, NOP, NOP]);
            for (index, entry_rule) in [[NOP, NOP], [0x0e, 32]].into_iter().enumerate() {
                fdes[index] = elf.bytes.len();
                elf.half_words(&[20, (elf.bytes.len() + 4 - cie) as u32]);
                let start = text as u32 + 16 * index as u32;
                elf.half_words(&[start.wrapping_sub(elf.bytes.len() as u32), 16]);
                elf.bytes.push(0);
                elf.bytes.extend(entry_rule);
                // After 4 bytes of code: def_cfa_offset 48.
                elf.bytes.extend([0x44, 0x0e, 48, NOP, NOP]);
            }
            elf.half_words(&[0]);
        });
        let frames = self.offset(".eh_frame") as u32;
        self.section(".eh_frame_hdr", 1, ALLOC, "", |elf| {
            let start = elf.bytes.len() as u32;
            // Version; then the encodings: pointer to .eh_frame, number of FDEs, table (relative to this section).
            elf.bytes.extend([1, 0x1b, 0x03, 0x3b]);
            elf.half_words(&[frames.wrapping_sub(start + 4), 2]);
            for (index, fde) in fdes.into_iter().enumerate() {
                let function = text as u32 + 16 * index as u32;
                elf.half_words(&[function.wrapping_sub(start), (fde as u32).wrapping_sub(start)]);
            }
        });
    }

    fn dynamic(&mut self, data: u64) {
        let place = |name: &str| self.offset(name) as u64;
        let size = |name: &str| self.sections[self.section_index(name)].size as u64;
        let entries = [
            (1, 34),  // NEEDED
            (14, 23), // SONAME
            (6, place(".dynsym")),
            (5, place(".dynstr")),
            (10, size(".dynstr")),
            (7, place(".rela.dyn")),
            (8, size(".rela.dyn")),
            (36, place(".relr.dyn")),
            (35, size(".relr.dyn")),
            (25, data + 4 * self.word_size() as u64), // INIT_ARRAY
            (27, 2 * self.word_size() as u64),
            (4, place(".hash")),
            (0, 0),
        ];
        self.section(".dynamic", 6, ALLOC | 1, ".dynstr", |elf| {
            for (tag, value) in entries {
                elf.word(tag);
                elf.word(value);
            }
        });
    }

    fn finish(&mut self, entry: u64) {
        let mut names = vec![0];
        let mut name_offsets = Vec::new();
        for name in self.sections.iter().map(|section| section.name).chain([".shstrtab"]) {
            name_offsets.push(if name.is_empty() { 0 } else { names.len() as u64 });
            if !name.is_empty() {
                names.extend(name.bytes().chain([0]));
            }
        }
        self.section(".shstrtab", 3, 0, "", |elf| elf.bytes.extend(names));
        self.align(8);
        self.mark("shdr");
        self.section_headers(&name_offsets);
        let rest = self.bytes.split_off(self.offset("phdr") + PROGRAM_HEADERS * self.size_of(56, 32));
        self.bytes.clear();
        self.file_header(entry);
        self.program_headers();
        self.bytes.extend(rest);
    }

    fn section_headers(&mut self, names: &[u64]) {
        let (data, loaded_end) = (self.offset(".data"), self.offset("loaded end"));
        for (index, &name) in names.iter().enumerate() {
            let section = &self.sections[index];
            let (start, size, kind, flags) = (section.start as u64, section.size as u64, section.kind, section.flags);
            let link = if section.link.is_empty() { 0 } else { self.section_index(section.link) };
            let shift = if (data..loaded_end).contains(&section.start) { DATA_SHIFT } else { 0 };
            let address = if flags & ALLOC != 0 { start + shift } else { 0 };
            self.half_words(&[name as u32, kind]);
            let start = if kind == 0 { 0 } else { start };
            for value in [flags.into(), address, start, size] {
                self.word(value);
            }
            self.half_words(&[link as u32, 0]);
            self.word(4);
            self.word(0);
        }
    }

    fn file_header(&mut self, entry: u64) {
        let class = if self.form.is_64 { 2 } else { 1 };
        let order = if self.form.big_endian { 2 } else { 1 };
        self.bytes.extend([0x7f, b'E', b'L', b'F', class, order, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        self.number(3, 2); // ET_DYN
        self.number(self.form.machine.into(), 2);
        self.half_words(&[1]);
        self.word(entry);
        self.word(self.offset("phdr") as u64);
        self.word(self.offset("shdr") as u64);
        self.half_words(&[0]);
        let sizes = [
            self.size_of(64, 52),
            self.size_of(56, 32),
            PROGRAM_HEADERS,
            self.size_of(64, 40),
            self.sections.len(),
            self.section_index(".shstrtab"),
        ];
        for value in sizes {
            self.number(value as u64, 2);
        }
    }

    fn program_headers(&mut self) {
        let (data, end) = (self.offset(".data") as u64, self.offset("loaded end") as u64);
        let whole = |name: &str| {
            let section = &self.sections[self.section_index(name)];
            (section.start as u64, section.size as u64)
        };
        let (dynamic, header, note) = (whole(".dynamic"), whole(".eh_frame_hdr"), whole(".note.gnu.build-id"));
        let headers = [
            (1, 5, 0, 0, data, 0),
            (1, 6, data, DATA_SHIFT, end - data, 64),
            (2, 6, dynamic.0, DATA_SHIFT, dynamic.1, 0),
            (0x6474_e550, 4, header.0, 0, header.1, 0),
            (4, 4, note.0, 0, note.1, 0),
        ];
        for (kind, flags, offset, shift, size, zeros) in headers {
            self.half_words(&[kind]);
            if self.form.is_64 {
                self.half_words(&[flags]);
            }
            for value in [offset, offset + shift, offset + shift, size, size + zeros] {
                self.word(value);
            }
            if !self.form.is_64 {
                self.half_words(&[flags]);
            }
            self.word(8);
        }
    }
}
