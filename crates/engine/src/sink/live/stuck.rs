//! Threads that do not stop when they are asked to.
//!
//! | what the thread does | how long everybody stands still for it |
//! | --- | --- |
//! | waits for its child of vfork, which may take for ever | [`CHILD`]: most run another program at once |
//! | sleeps in the kernel, where it cannot be interrupted | [`SHORT`]: disks and pages are faster than that |
//! | has no core, because others have them all | [`LONG`] |
//!
//! Before the next attempt the thread is looked at, which stops nobody: as long as it is in the same sleep there is none.

use std::fs;
use std::time::{Duration, Instant};

use super::LiveError;
use super::threads::state_of;

/// So often somebody looks what a thread does that has not stopped.
pub(super) const TICK: Duration = Duration::from_millis(2);
const CHILD: Duration = Duration::from_millis(6);
const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_millis(500);
/// Each pause between attempts is twice as long as the one before; together they are about two seconds.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(1024);
/// The kernel lets go of a thread soon after the one in control has ended.
const MOST_LETTING_GO: Duration = Duration::from_secs(5);

/// `clone`, `vfork`, `clone3`: a thread that waits in one of them without being interruptible waits for its child.
const MAKE_PROCESS: [&str; 3] = ["56", "58", "435"];

/// A thread that was asked to stop.
#[derive(Clone, Copy)]
pub(super) struct Stuck {
    pub pid: u32,
    pub tid: u32,
}

impl Stuck {
    /// It may be worth waiting for, this long after all were asked.
    pub fn may_still_stop(self, waited: Duration) -> bool {
        match waited {
            _ if waited >= LONG => false,
            _ if waited >= SHORT => !self.is_asleep(),
            _ if waited >= CHILD => !self.waits_for_child(),
            _ => true,
        }
    }

    /// It sleeps where it cannot be interrupted.
    fn is_asleep(self) -> bool {
        state_of(self.pid, self.tid) == Some('D')
    }

    /// The sleep that it is in, by how often it went to sleep; none if it is awake.
    fn sleep(self) -> Option<String> {
        let status = self.read("status").filter(|_| self.is_asleep())?;
        status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).map(str::to_owned)
    }

    fn waits_for_child(self) -> bool {
        self.is_asleep()
            && self.read("syscall").is_some_and(|call| {
                let number = call.split(' ').next().unwrap_or_default();
                MAKE_PROCESS.contains(&number)
            })
    }

    /// A file that the kernel has of it, if it is there and may be read.
    fn read(self, name: &str) -> Option<String> {
        fs::read_to_string(format!("/proc/{}/task/{}/{name}", self.pid, self.tid)).ok()
    }

    fn why(self) -> String {
        if self.waits_for_child() {
            let children = self.read("children").unwrap_or_default();
            // The kernel lists the youngest last.
            let child = children.split_whitespace().last().map_or(String::new(), |child| format!(", process {child},"));
            return format!("it waits until its child of vfork{child} runs another program or ends");
        }
        let place = self.read("wchan").filter(|name| name != "0").map_or(String::new(), |name| format!(" (in {name})"));
        match state_of(self.pid, self.tid) {
            Some('D') => format!("it sleeps in the kernel, where nothing can interrupt it{place}"),
            Some('R') => "other programs have all cores".into(),
            Some(state) => format!("the kernel says that its state is {state}{place}"),
            None => "it has ended".into(),
        }
    }

    /// The one in control has ended, but perhaps the kernel has not let go yet. Nobody else could take control before.
    fn wait_until_let_go(self) {
        let since = Instant::now();
        let is_held = || {
            let status = self.read("status").unwrap_or_default();
            status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|tracer| tracer.trim() != "0"))
        };
        while is_held() && since.elapsed() < MOST_LETTING_GO {
            std::thread::sleep(FIRST_PAUSE);
        }
    }
}

/// How long it is tried again.
pub(super) struct Patience {
    pause: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { pause: FIRST_PAUSE }
    }
}

impl Patience {
    /// Waits before the next attempt; an error if there shall be none.
    pub fn wait(&mut self, stuck: Stuck) -> Result<(), LiveError> {
        stuck.wait_until_let_go();
        let sleep = stuck.sleep();
        while self.pause <= LAST_PAUSE {
            std::thread::sleep(self.pause);
            self.pause *= 2;
            if sleep.is_none() || stuck.sleep() != sleep {
                return Ok(());
            }
        }
        Err(LiveError::Unstoppable { pid: stuck.pid, tid: stuck.tid, why: stuck.why() })
    }
}
