//! The DWARF sections of an image: its own, or those of its separate debug file.
//!
//! Sections stay in the mapped file; compressed ones (`SHF_COMPRESSED`) are inflated when somebody first asks for
//! DWARF.

use std::ops::Range;

use gimli::{Dwarf, DwarfSections, EndianSlice, RunTimeEndian, SectionId};
use object::read::elf::CompressionHeader;
use object::read::{CompressedData, CompressionFormat};
use object::{Endianness, elf};

use super::headers::{Class, Headers, Section, array};

/// Debug information shrinks to a third or a tenth. What claims to be a bomb is not inflated.
const MOST_INFLATION: u64 = 100;

enum Bytes {
    InFile(Range<usize>),
    Inflated(Vec<u8>),
}

/// Where the DWARF of one file is.
pub(super) struct Sections {
    sections: DwarfSections<Bytes>,
    endian: RunTimeEndian,
}

pub type ImageDwarf<'a> = Dwarf<EndianSlice<'a, RunTimeEndian>>;

impl Sections {
    /// `None` if the file has no debug information.
    pub fn find(data: &[u8], headers: &Headers) -> Option<Sections> {
        headers.section(SectionId::DebugInfo.name()).filter(|section| section.offset.is_some())?;
        let load = |id: SectionId| -> Result<Bytes, std::convert::Infallible> {
            let found = headers.section(id.name()).and_then(|section| bytes_of(data, headers, section));
            Ok(found.unwrap_or(Bytes::InFile(0..0)))
        };
        let Ok(sections) = DwarfSections::load(load);
        Some(Sections { sections, endian: headers.gimli_endian() })
    }

    /// `data` is the file that the sections were found in; `shared` has what `dwz` moved out of it.
    pub fn dwarf<'a>(&'a self, data: &'a [u8], shared: Option<(&'a Sections, &'a [u8])>) -> ImageDwarf<'a> {
        let mut dwarf = self.borrow(data);
        if let Some((shared, data)) = shared {
            dwarf.set_sup(shared.borrow(data));
        }
        dwarf
    }

    fn borrow<'a>(&'a self, data: &'a [u8]) -> ImageDwarf<'a> {
        self.sections.borrow(|bytes| {
            let bytes = match bytes {
                Bytes::InFile(range) => &data[range.clone()],
                Bytes::Inflated(bytes) => bytes,
            };
            EndianSlice::new(bytes, self.endian)
        })
    }
}

fn bytes_of(data: &[u8], headers: &Headers, section: &Section) -> Option<Bytes> {
    let range = section.file_range()?;
    if section.flags & elf::SHF_COMPRESSED.0 == 0 {
        return Some(Bytes::InFile(range));
    }
    let (header_len, format, size) = match headers.class {
        Class::Elf32 => compression::<elf::CompressionHeader32<Endianness>>(&data[range.clone()], headers.endian)?,
        Class::Elf64 => compression::<elf::CompressionHeader64<Endianness>>(&data[range.clone()], headers.endian)?,
    };
    let compressed = &data[range.start + header_len..range.end];
    if size > (compressed.len() as u64).saturating_mul(MOST_INFLATION) {
        return None;
    }
    let compressed = CompressedData { format, data: compressed, uncompressed_size: size };
    compressed.decompress().ok().map(|bytes| Bytes::Inflated(bytes.into_owned()))
}

/// Size of the header, format, size of what comes out.
fn compression<H>(section: &[u8], endian: Endianness) -> Option<(usize, CompressionFormat, u64)>
where
    H: CompressionHeader<Endian = Endianness>,
{
    let header = array::<H>(section, &(0..section.len())).first()?;
    let format = match header.ch_type(endian) {
        elf::ELFCOMPRESS_ZLIB => CompressionFormat::Zlib,
        elf::ELFCOMPRESS_ZSTD => CompressionFormat::Zstandard,
        _ => return None,
    };
    Some((size_of::<H>(), format, header.ch_size(endian).into()))
}
