//! Where a patch goes: into a new file.

pub mod elf_writer;
