//! Images out of a process's memory: the vdso, and objects whose file is gone.
//!
//! The kernel maps the vdso as one whole ELF file. Of any other object, memory has the loaded segments, changed by the
//! loader; they are put back where the file had them, and what the loader changed in the tables that an image reads is
//! undone. Section headers are lost.

use lancet_isa::{Avma, Svma};
use object::{Endianness, elf};

use super::access::Access;
use super::maps::Mapping;
use super::{Group, page_of};
use crate::image::error::ImageError;
use crate::image::headers::{Headers, Scope, loaded_length};
use crate::image::relocs::RelocKind;
use crate::image::{Image, data::range_in, notes};

/// Headers that claim more than the process has mapped are not believed, apart from what is not loaded.
const MOST_UNLOADED: u64 = 1 << 20;
const LARGEST_HEADERS: usize = 64 * 1024;
const LARGEST_VDSO: u64 = 1 << 20;

pub(super) fn vdso(access: &Access, mapping: &Mapping) -> Result<Image, ImageError> {
    let mut bytes = vec![0; mapping.len().min(LARGEST_VDSO) as usize];
    let count = access.read_memory(mapping.range.start, &mut bytes)?;
    bytes.truncate(count);
    Image::from_bytes(mapping.name.clone(), bytes)
}

/// The object's file as far as memory has it.
pub(super) fn object(access: &Access, group: &Group<'_>) -> Result<Image, ImageError> {
    let (headers, bytes) = loaded_bytes(access, group)?;
    let name = format!("{} (memory of process {})", group.name(), access.pid());
    let Some(first) = headers.segments.first() else { return Image::from_bytes(name, bytes) };
    let undo = Undo { bias: group.start().0.wrapping_sub(page_of(first)), headers: &headers };
    let bytes = undo.dynamic(bytes);
    let image = Image::from_bytes(name.clone(), bytes)?;
    match undo.relocations(&image) {
        Some(bytes) => Image::from_bytes(name, bytes),
        None => Ok(image),
    }
}

/// Whether the image has the build id that is in memory. An image without one is not trusted.
pub(super) fn has_same_id(access: &Access, group: &Group<'_>, image: &Image) -> bool {
    let Ok((headers, bytes)) = loaded_bytes(access, group) else { return false };
    image.build_id().is_some() && notes::build_id(&bytes, &headers) == image.build_id()
}

/// The segments, each at its place in the file.
fn loaded_bytes(access: &Access, group: &Group<'_>) -> Result<(Headers, Vec<u8>), ImageError> {
    let mut start = vec![0; LARGEST_HEADERS.min(group.0[0].len() as usize)];
    let count = access.read_memory(group.start(), &mut start)?;
    start.truncate(count);
    without_sections(&mut start);
    let fault = |what: &str| access.error(format!("memory of {} at {}: {what}", group.name(), group.start()));
    let stated = loaded_length(&start).ok_or_else(|| fault("no sound ELF headers"))?;
    let mapped: u64 = group.0.iter().map(|mapping| mapping.len()).sum();
    if stated > mapped.saturating_add(MOST_UNLOADED) {
        return Err(fault("the headers claim more than is mapped"));
    }
    let mut bytes = start;
    bytes.resize(stated as usize, 0);
    let headers = Headers::read(&bytes, Scope::Whole).map_err(|_| fault("no sound ELF headers"))?;
    let Some(first) = headers.segments.first() else { return Err(fault("nothing is loaded")) };
    let bias = group.start().0.wrapping_sub(page_of(first));
    for segment in &headers.segments {
        if let Some(range) = range_in(bytes.len(), segment.offset.0, segment.file_size) {
            // What the process has unmapped stays zero.
            let _ = access.read_memory(Avma(segment.svma.0.wrapping_add(bias)), &mut bytes[range]);
        }
    }
    without_sections(&mut bytes);
    Ok((headers, bytes))
}

/// Section headers are not loaded, so the ELF header must not promise any: `e_shoff`, `e_shnum`, `e_shstrndx`.
fn without_sections(bytes: &mut [u8]) {
    let fields = match bytes.get(4) {
        Some(&class) if class == elf::ELFCLASS32.0 => [0x20..0x24, 0x30..0x32, 0x32..0x34],
        _ => [0x28..0x30, 0x3c..0x3e, 0x3e..0x40],
    };
    for field in fields {
        if let Some(field) = bytes.get_mut(field) {
            field.fill(0);
        }
    }
}

/// The dynamic entries that an image follows.
const ADDRESS_TAGS: [elf::DynamicTag; 13] = [
    elf::DT_HASH,
    elf::DT_GNU_HASH,
    elf::DT_STRTAB,
    elf::DT_SYMTAB,
    elf::DT_RELA,
    elf::DT_REL,
    elf::DT_RELR,
    elf::DT_JMPREL,
    elf::DT_INIT,
    elf::DT_FINI,
    elf::DT_PREINIT_ARRAY,
    elf::DT_INIT_ARRAY,
    elf::DT_FINI_ARRAY,
];

/// Turns addresses of the process back into addresses of the file, where the loader wrote them.
struct Undo<'a> {
    bias: u64,
    headers: &'a Headers,
}

impl Undo<'_> {
    /// glibc's loader relocates pointers of the dynamic table in place.
    fn dynamic(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let Some(table) = self.headers.extra(elf::PT_DYNAMIC) else { return bytes };
        let word = usize::from(self.headers.class.pointer_bytes());
        let range = table.range.start..table.range.end.min(bytes.len());
        for at in range.step_by(2 * word) {
            let Some(tag) = self.word(&bytes, at) else { break };
            let Some(value) = self.word(&bytes, at + word) else { break };
            if ADDRESS_TAGS.contains(&elf::DynamicTag(tag as i64))
                && let Some(svma) = self.unrelocated(value)
            {
                self.set_word(&mut bytes, at + word, svma);
            }
        }
        bytes
    }

    /// A relative relocation whose addend is in place (RELR) was added to. `None` if nothing is to be done.
    fn relocations(&self, image: &Image) -> Option<Vec<u8>> {
        let mut patched = None;
        for reloc in image.relocations() {
            if let RelocKind::Relative(to) = reloc.kind
                && let Some(svma) = self.unrelocated(to.0)
                && let Some(range) = self.headers.file_range(reloc.place, 1)
            {
                let bytes = patched.get_or_insert_with(|| image.data().to_vec());
                self.set_word(bytes, range.start, svma);
            }
        }
        patched
    }

    /// The stated address, if `value` only makes sense as an actual one.
    fn unrelocated(&self, value: u64) -> Option<u64> {
        let stated = |at: u64| self.headers.segment_at(Svma(at)).is_some();
        let svma = value.wrapping_sub(self.bias);
        (!stated(value) && stated(svma)).then_some(svma)
    }

    fn word(&self, bytes: &[u8], at: usize) -> Option<u64> {
        self.headers.pointer_in(bytes.get(at..)?)
    }

    fn set_word(&self, bytes: &mut [u8], at: usize, value: u64) {
        let (word, little, big) =
            (usize::from(self.headers.class.pointer_bytes()), value.to_le_bytes(), value.to_be_bytes());
        if let Some(place) = bytes.get_mut(at..at + word) {
            match self.headers.endian {
                Endianness::Little => place.copy_from_slice(&little[..word]),
                Endianness::Big => place.copy_from_slice(&big[8 - word..]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{candidates, maps};
    use super::*;

    /// Every object of this process, put together from memory, says what its file says: the loader has relocated all
    /// of them, and its own tables too.
    #[test]
    fn memory_gives_back_what_the_file_says() {
        let access = Access::open(std::process::id()).unwrap_or_else(|error| panic!("{error}"));
        let mappings = maps::parse(&access.maps().unwrap_or_else(|error| panic!("{error}")));
        let mut compared = 0;
        for group in candidates(&mappings).iter().filter(|group| group.0[0].is_file()) {
            let image = object(&access, group).unwrap_or_else(|error| panic!("{error}"));
            let bytes = std::fs::read(group.name()).expect("the files of a test are there");
            let file = Image::from_bytes(group.name(), bytes).unwrap_or_else(|error| panic!("{error}"));
            assert!(has_same_id(&access, group, &file) || file.build_id().is_none());
            assert_eq!(image.relocations().len(), file.relocations().len(), "{}", group.name());
            // Variables may have changed since; what is read-only after relocation may not.
            let constant = file.headers.extra(elf::PT_GNU_RELRO).expect("the linker's default").clone();
            for (here, there) in image.relocations().iter().zip(file.relocations()) {
                assert_eq!(here.place, there.place);
                if here.place - constant.svma < constant.range.len() as u64 {
                    assert_eq!(here.kind, there.kind, "{} at {}", group.name(), here.place);
                }
            }
            assert_eq!(image.init_functions(), file.init_functions(), "{}", group.name());
            assert_eq!(image.kind(), file.kind());
            assert!(image.imports().eq(file.imports()), "{}", group.name());
            let frames =
                |image: &Image| image.fdes().iter().map(|fde| (fde.start, fde.len, fde.lsda)).collect::<Vec<_>>();
            assert!(!file.fdes().is_empty());
            assert!(frames(&image) == frames(&file), "{}", group.name());
            compared += 1;
        }
        assert!(compared >= 2, "the test and the C library are objects");
    }

    #[test]
    fn a_pointer_that_makes_sense_as_it_is_stays() {
        let file = std::fs::read("/proc/self/exe").expect("the test's own file");
        let Ok(headers) = Headers::read(&file, Scope::Whole) else { panic!("the test's own file is no ELF file") };
        let first = headers.segments[0].svma.0;
        let undo = Undo { bias: 0x7f00_0000_0000, headers: &headers };
        assert_eq!(undo.unrelocated(first), None);
        assert_eq!(undo.unrelocated(first + 0x7f00_0000_0000), Some(first));
        assert_eq!(undo.unrelocated(0x1234_5678_9abc_def0), None);
    }
}
