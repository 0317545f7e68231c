//! The core timer: counts TCOUNT down once every TSCALE + 1 cycles and raises event 6 at zero.
//!
//! Without a model of time, instructions take a cycle each, far less than programs expect that wait for the timer in
//! code that is fetched from SDRAM. The prescaler is then left out.
//!
//! Enabled with a count of zero it expires at once. Having expired it rests, unless it reloads.
//!
//! Nothing is counted cycle by cycle: the registers hold what was true at `since`, and [`CoreTimer::deadline`] tells the
//! simulator when to look again.

const POWERED: u32 = 1 << 0;
const ENABLED: u32 = 1 << 1;
const RELOAD: u32 = 1 << 2;
const EXPIRED: u32 = 1 << 3;

pub struct CoreTimer {
    control: u32,
    period: u32,
    scale: u32,
    count: u32,
    /// It was set and has not expired since.
    armed: bool,
    /// Whether TSCALE counts.
    prescaler: bool,
    /// The cycle at which `count` was right.
    since: u64,
}

impl CoreTimer {
    pub fn new(prescaler: bool) -> CoreTimer {
        CoreTimer { control: 0, period: 0, scale: 0, count: 0, armed: false, prescaler, since: 0 }
    }

    fn running(&self) -> bool {
        self.control & (POWERED | ENABLED) == POWERED | ENABLED && self.armed
    }

    fn cycles_per_count(&self) -> u64 {
        if self.prescaler { u64::from(self.scale & 0xFF) + 1 } else { 1 }
    }

    /// The cycle in which the count reaches zero.
    pub fn deadline(&self) -> Option<u64> {
        self.running().then(|| self.since + u64::from(self.count) * self.cycles_per_count())
    }

    fn update(&mut self, now: u64) {
        if self.running() {
            // The last count is for `expire`.
            let counted = ((now - self.since) / self.cycles_per_count()).min(u64::from(self.count).saturating_sub(1));
            self.count -= counted as u32;
            self.since += counted * self.cycles_per_count();
        } else {
            self.since = now;
        }
    }

    /// Moves to `now`; tells whether the timer expired.
    pub fn expire(&mut self, now: u64) -> bool {
        let Some(deadline) = self.deadline().filter(|&deadline| deadline <= now) else {
            return false;
        };
        self.control |= EXPIRED;
        self.count = if self.control & RELOAD != 0 { self.period } else { 0 };
        self.armed = self.count != 0;
        self.since = deadline;
        true
    }

    /// TCNTL, TPERIOD, TSCALE, TCOUNT.
    pub fn read(&mut self, register: u32, now: u64) -> u32 {
        self.update(now);
        match register {
            0 => self.control,
            1 => self.period,
            2 => self.scale,
            _ => self.count,
        }
    }

    pub fn write(&mut self, register: u32, value: u32, now: u64) {
        self.update(now);
        match register {
            0 => {
                self.armed |= value & ENABLED != 0 && self.control & ENABLED == 0;
                self.control = value;
            }
            1 => (self.period, self.count) = (value, value),
            2 => self.scale = value,
            _ => self.count = value,
        }
        self.armed |= register != 0 && self.count != 0;
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_down_and_reloads() {
        let mut timer = CoreTimer::new(true);
        timer.write(1, 10, 0);
        timer.write(0, POWERED | ENABLED | RELOAD, 100);
        assert_eq!(timer.deadline(), Some(110));
        assert_eq!(timer.read(3, 104), 6);
        assert!(!timer.expire(109));
        assert!(timer.expire(112));
        assert_eq!(timer.deadline(), Some(120));
        assert_eq!(timer.read(0, 112) & EXPIRED, EXPIRED);
        timer.write(2, 3, 118);
        assert_eq!(timer.read(3, 121), 2);
        assert_eq!(timer.read(3, 122), 1);
        assert_eq!(timer.deadline(), Some(126));
    }

    #[test]
    fn expires_at_once_without_a_count() {
        let mut timer = CoreTimer::new(true);
        timer.write(0, POWERED | ENABLED, 7);
        assert!(timer.expire(7));
        assert_eq!(timer.deadline(), None);
        timer.write(0, POWERED | ENABLED, 8);
        assert_eq!(timer.deadline(), None);
        timer.write(3, 2, 9);
        assert_eq!(timer.deadline(), Some(11));
    }
}
