//! Where a patch goes: into a new file, or into a process that runs.

pub mod elf_writer;
pub mod live;
