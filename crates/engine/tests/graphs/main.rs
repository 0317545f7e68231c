//! The graph analyses against slow second algorithms that follow the definitions, on thousands of random graphs,
//! and on known examples.

mod dominators;
mod liveness;
mod loops;
mod random;
