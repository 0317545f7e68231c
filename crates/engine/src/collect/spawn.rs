//! Starting a program so that it is watched from its first instruction.

use std::io;
use std::process::Command;

use super::CollectError;

pub use lancet_sys::spawn::Held;

/// A program to start and watch.
pub struct Launch {
    pub(super) held: Held,
    program: String,
}

impl Launch {
    /// Makes the process, which waits until it may run the program.
    pub fn new(command: Command) -> Result<Launch, CollectError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let failed = |cause: io::Error| CollectError::CannotRun { program: program.clone(), cause };
        Ok(Launch { held: Held::new(command).map_err(failed)?, program })
    }

    pub fn pid(&self) -> u32 {
        self.held.pid()
    }

    /// Lets it run.
    pub fn go(self) -> Result<std::process::Child, CollectError> {
        let program = self.program;
        self.held.go().map_err(|cause| CollectError::CannotRun { program, cause })
    }
}
