//! What commands show, as data: the JSON shapes.

pub mod cfg;
pub mod functions;
