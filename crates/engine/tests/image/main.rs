//! Tests of images: against files whose every part is known, real files, broken files, and running processes.

mod hostile;
mod mutation;
mod process;
mod real;
mod support;
mod tiny;
mod tiny_elf;
