//! The library that people use: what the engine found, as reports.
#![forbid(unsafe_code)]

pub mod report;
