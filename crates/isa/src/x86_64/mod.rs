//! x86-64, on iced-x86.

mod common;
mod decode;
mod edit;
mod effects;
mod facts;
mod runtime;
mod text;
mod values;

use crate::edit::Edit;
use crate::{Facts, Isa};

#[derive(Debug)]
pub(crate) struct X86_64;

impl Isa for X86_64 {
    fn facts(&self) -> &'static Facts {
        &facts::FACTS
    }

    fn editor(&self) -> Option<&'static dyn Edit> {
        Some(&X86_64)
    }
}
