//! What can go wrong between a request and its answer. One line each, that names the file or process.

use lancet_blackfin_sim::SimError;
use lancet_engine::collect::CollectError;
use lancet_engine::image::ImageError;
use lancet_engine::layout::LayoutError;
use lancet_engine::layout::inplace::InPlaceError;
use lancet_engine::load::LoadError;
use lancet_engine::sink::elf_writer::SinkError;
use lancet_engine::sink::live::LiveError;
use lancet_isa::Svma;

use crate::tools::count::CountsError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("{path}: {cause}")]
    File { path: String, cause: std::io::Error },
    /// Of several lines if the program stopped: its registers follow.
    #[error("{program}: {cause}")]
    Simulation { program: String, cause: SimError },
    #[error("{program}: it ended with status {status}")]
    SimulationFailed { program: String, status: i32 },
    #[error("{program}: instrumented, it prints something else")]
    OutputChanged { program: String },
    #[error("{program}: it does not let interrupts through itself: this needs a program for the operating environment")]
    NotOperating { program: String },
    #[error("{program}: {cause}")]
    InPlace { program: String, cause: InPlaceError },
    #[error("{program}: it has {points} zero-overhead loop setups; a phase profile has room for {most}")]
    ManyPhases { program: String, points: usize, most: usize },
    #[error("{path}: {what}")]
    Points { path: String, what: String },
    #[error("{program}: it did not end within {limit} instructions")]
    SimulationLimit { program: String, limit: u64 },
    #[error(transparent)]
    Live(#[from] LiveError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("process {pid}: {function}: no way to lead its calls elsewhere: {why}")]
    NoJump { pid: u32, function: String, why: String },
    #[error("process {pid}: {function}: it was not called within {seconds} s")]
    NotCalled { pid: u32, function: String, seconds: f64 },
    #[error("process {pid}: {function}: patch {id} changes it already; lancet undo takes it back")]
    AlreadyChanged { pid: u32, function: String, id: u64 },
    #[error(transparent)]
    Collect(#[from] CollectError),
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error("{name}: {cause}")]
    Layout { name: String, cause: LayoutError },
    #[error("{name}: Lancet does not edit {isa} programs")]
    NoEditor { name: String, isa: &'static str },
    #[error(transparent)]
    Counts(#[from] CountsError),
    #[error("{name}: it was not rewritten to count, or by another version of Lancet")]
    NoNotes { name: String },
    #[error("{counts}: these are not counts of {program}")]
    OtherCounts { counts: String, program: String },
    #[error("{program}: the profile is of another program, {profiled}")]
    OtherProfile { program: String, profiled: String },
    #[error("{program}: {function}: this function was left alone and has no counts")]
    NotCounted { program: String, function: String },
    #[error("{program}: it left no counts")]
    NoCounts { program: String },
    #[error("{program}: its libraries are not known: {interpreter}: {cause}")]
    NoLibraries { program: String, interpreter: String, cause: String },
    #[error("{library}: {program} asks for it by a path, so that no other can be loaded in its place")]
    LibraryByPath { program: String, library: String },
    #[error("{path}: it has changed since it was rewritten")]
    Changed { path: String },
    #[error("{subject}: no function {query}{}", suggestion(near))]
    NoSuchFunction {
        subject: String,
        query: String,
        /// Names that were perhaps meant, the likeliest first.
        near: Vec<String>,
    },
    #[error("{subject}: {at}: no function is there")]
    NoFunctionAt { subject: String, at: Svma },
    /// The only error of several lines: the candidates are one line each.
    #[error("{subject}: {query}: {} functions have this name; give the address of one\n  {}", .candidates.len(), .candidates.join("\n  "))]
    Ambiguous {
        subject: String,
        query: String,
        /// Address and full name of each.
        candidates: Vec<String>,
    },
    #[error("process {pid}: {object}: no object of this name is mapped; there are {}", .mapped.join(", "))]
    NoSuchObject { pid: u32, object: String, mapped: Vec<String> },
}

fn suggestion(near: &[String]) -> String {
    match near {
        [] => String::new(),
        [one] => format!("; did you mean {one}?"),
        [first @ .., last] => format!("; did you mean {} or {last}?", first.join(", ")),
    }
}
