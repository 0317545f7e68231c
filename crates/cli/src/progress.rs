//! A sign of life on standard error while work goes on for more than a second; only on a terminal.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

pub struct Progress {
    bar: ProgressBar,
    /// Dropped when the work is done.
    _running: Sender<()>,
}

impl Progress {
    /// Of one step, or of several that are counted.
    pub fn new(steps: usize) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::hidden());
        let template = match steps {
            0 | 1 => "{spinner} {msg} {elapsed}",
            _ => "{wide_bar} {pos}/{len} {msg} {elapsed}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let (_running, done) = mpsc::channel::<()>();
        if io::stderr().is_terminal() {
            let bar = bar.clone();
            std::thread::spawn(move || {
                if done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    bar.enable_steady_tick(TICK);
                }
            });
        }
        Progress { bar, _running }
    }

    /// The next step begins; `done` are behind it.
    pub fn step(&self, done: usize, what: &str) {
        self.bar.set_position(done as u64);
        self.bar.set_message(what.to_owned());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
