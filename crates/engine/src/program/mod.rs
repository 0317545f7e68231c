pub mod dfs;
pub mod dom;
pub mod graph;
pub mod liveness;
pub mod loops;
