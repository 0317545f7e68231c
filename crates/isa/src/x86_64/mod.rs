//! x86-64, on iced-x86.

mod decode;
mod effects;
mod facts;
mod text;
mod values;

use crate::{Facts, Isa};

#[derive(Debug)]
pub(crate) struct X86_64;

impl Isa for X86_64 {
    fn facts(&self) -> &'static Facts {
        &facts::FACTS
    }
}
