//! Running before others for a moment.
//!
//! While another process is stopped, every scheduling delay of Lancet is a delay of that process. With a real-time policy
//! Lancet gets a core at once; without the right to have one, nothing changes.

/// The calling thread runs before ordinary ones as long as this lives.
#[derive(Debug)]
pub struct Urgent {
    granted: bool,
}

impl Urgent {
    #[expect(clippy::new_without_default, reason = "it changes how the thread is scheduled")]
    pub fn new() -> Urgent {
        Urgent { granted: set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1) }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if self.granted {
            set_policy(libc::SCHED_OTHER, 0);
        }
    }
}

fn set_policy(policy: i32, priority: i32) -> bool {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads one `sched_param`; 0 means the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) == 0 }
}
