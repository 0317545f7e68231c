//! Made-up functions, walks over them that know the truth, and slow second algorithms.

mod estimates;
mod made;
mod real;
mod solving;
mod trees;
mod walk;
