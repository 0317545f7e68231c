//! Why nothing can be collected, in one line.

use std::io;

use crate::image::ImageError;

#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("{event}: no such event; `perf list` names this machine's, and there are {known}")]
    NoSuchEvent { event: String, known: String },
    #[error("{whom}: cannot sample {event}: {}", why(cause))]
    Refused { whom: String, event: String, cause: io::Error },
    #[error("{event} is not counted on this machine: {cause}")]
    NoCounter { event: String, cause: io::Error },
    #[error("CPU {cpu}: there is no such CPU; online are {online}")]
    NoSuchCpu { cpu: u32, online: String },
    #[error("{program}: cannot run it: {cause}")]
    CannotRun { program: String, cause: io::Error },
    #[error("cannot map a buffer for samples: {}", why(.0))]
    NoRing(io::Error),
    #[error("cannot read samples: {0}")]
    Lost(io::Error),
}

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// The kernel's answer, with the setting behind it.
fn why(cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => {
            let level = std::fs::read_to_string(PARANOID).unwrap_or_default();
            format!(
                "no permission ({PARANOID} is {}; own processes need 2 or less, a CPU or the system 0 or less, or CAP_PERFMON)",
                level.trim()
            )
        }
        io::ErrorKind::NotFound => "this machine does not have it".to_owned(),
        _ => cause.to_string(),
    }
}
