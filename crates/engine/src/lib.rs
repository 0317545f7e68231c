#![forbid(unsafe_code)]

pub mod program;
