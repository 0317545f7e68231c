//! What an image knows of its source: the separate debug file, DWARF, lines. All of it is looked for on first use.

use std::path::Path;
use std::sync::OnceLock;

use lancet_isa::Svma;

use super::Image;
use super::debug_file::DebugFile;
use super::dwarf::{ImageDwarf, Sections};
use super::lines::{Lines, SourceLine};

#[derive(Default)]
pub(super) struct DebugInfo {
    file: OnceLock<Option<DebugFile>>,
    dwarf: OnceLock<Option<FoundDwarf>>,
    lines: OnceLock<Lines>,
}

struct FoundDwarf {
    sections: Sections,
    in_debug_file: bool,
    shared: Option<(DebugFile, Sections)>,
}

impl Image {
    /// The separate debug file that belongs to this image, if there is one.
    pub fn debug_file_path(&self) -> Option<&Path> {
        self.debug_file().map(|file| file.path.as_path())
    }

    pub(super) fn debug_file(&self) -> Option<&DebugFile> {
        let find = || DebugFile::find(self.path.as_deref()?, &self.data, &self.headers);
        self.debug.file.get_or_init(find).as_ref()
    }

    /// The image's debug information, with addresses as stated in the file.
    pub fn dwarf(&self) -> Option<ImageDwarf<'_>> {
        let found = self.debug.dwarf.get_or_init(|| self.find_dwarf()).as_ref()?;
        let data = match found.in_debug_file {
            true => &self.debug_file()?.data,
            false => &self.data,
        };
        let shared = found.shared.as_ref().map(|(file, sections)| (sections, &*file.data));
        Some(found.sections.dwarf(data, shared))
    }

    fn find_dwarf(&self) -> Option<FoundDwarf> {
        if let Some(sections) = Sections::find(&self.data, &self.headers) {
            let shared = self.path.as_deref().and_then(|path| DebugFile::find_shared(path, &self.data, &self.headers));
            return Some(FoundDwarf { sections, in_debug_file: false, shared: with_sections(shared) });
        }
        let file = self.debug_file()?;
        let sections = Sections::find(&file.data, &file.headers)?;
        let shared = DebugFile::find_shared(&file.path, &file.data, &file.headers);
        Some(FoundDwarf { sections, in_debug_file: true, shared: with_sections(shared) })
    }

    /// Which line of the source the instruction at `at` comes from.
    pub fn source_line(&self, at: Svma) -> Option<SourceLine<'_>> {
        let lines = self.debug.lines.get_or_init(|| self.dwarf().map(|dwarf| Lines::index(&dwarf)).unwrap_or_default());
        lines.at(|| self.dwarf(), at)
    }
}

fn with_sections(file: Option<DebugFile>) -> Option<(DebugFile, Sections)> {
    file.and_then(|file| Sections::find(&file.data, &file.headers).map(|sections| (file, sections)))
}
