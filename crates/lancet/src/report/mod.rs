//! What a person gets to see: drawings.

pub mod layout;
