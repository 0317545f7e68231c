//! Clock, voltage, time and energy.
//!
//! The PLL multiplies the board's crystal (PLL_CTL), the core runs at a fraction of that (PLL_DIV), the voltage regulator
//! gives the core its voltage (VR_CTL). A new divisor counts at once; a new multiplier or voltage after `IDLE`, in which
//! the processor waits until PLL and regulator have settled.
//!
//! The power of CMOS logic is proportional to V²f, so a cycle costs energy proportional to V² whatever its length. Energy is
//! given in volt² cycles; ratios of it are what counts. Nothing is added up cycle by cycle: time and energy are kept as
//! of the last change.

/// Registers, by their offset from 0xFFC0_0000.
pub const PLL_CTL: u32 = 0x00;
pub const PLL_DIV: u32 = 0x04;
pub const VR_CTL: u32 = 0x08;
pub const PLL_STAT: u32 = 0x0C;
pub const PLL_LOCKCNT: u32 = 0x10;

/// A frequency and a voltage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OperatingPoint {
    pub megahertz: f64,
    pub volts: f64,
}

/// The crystal of the EZ-KIT Lite for the BF548.
const CRYSTAL_MHZ: f64 = 25.0;

/// 20 times the crystal: 500 MHz.
const FULL_SPEED_CTL: u32 = 20 << 9;
/// The core at the PLL's frequency, the system at a quarter of it.
const FULL_SPEED_DIV: u32 = 0x0004;
/// 1.20 V; the low bits are what the regulator has after reset.
const FULL_SPEED_VR: u32 = 0x40DB;
/// Locked, fully running.
const STATUS: u32 = 0x00A2;
const LOCK_COUNT: u32 = 0x0200;

pub struct Clock {
    control: u32,
    divisor: u32,
    regulator: u32,
    lock_count: u32,
    /// Written, and waiting for IDLE.
    new_control: Option<u32>,
    new_regulator: Option<u32>,
    /// How long PLL and regulator take, in core cycles.
    settle: u32,
    /// The cycle at which `seconds` and `energy` were right.
    since: u64,
    seconds: f64,
    energy: f64,
    pub changes: u64,
}

impl Clock {
    pub fn new(settle: u32) -> Clock {
        Clock {
            control: FULL_SPEED_CTL,
            divisor: FULL_SPEED_DIV,
            regulator: FULL_SPEED_VR,
            lock_count: LOCK_COUNT,
            new_control: None,
            new_regulator: None,
            settle,
            since: 0,
            seconds: 0.0,
            energy: 0.0,
            changes: 0,
        }
    }

    /// What the PLL makes of the crystal.
    fn pll_mhz(&self) -> f64 {
        let multiplier = match self.control >> 9 & 0x3F {
            0 => 64,
            multiplier => multiplier,
        };
        let halve = if self.control & 1 != 0 { 2.0 } else { 1.0 };
        CRYSTAL_MHZ / halve * f64::from(multiplier)
    }

    fn bypassed(&self) -> bool {
        self.control & 1 << 8 != 0
    }

    pub fn point(&self) -> OperatingPoint {
        let megahertz =
            if self.bypassed() { CRYSTAL_MHZ } else { self.pll_mhz() / f64::from(1 << (self.divisor >> 4 & 3)) };
        // 0.85 V at level 6, 50 mV a level.
        let volts = 0.85 + 0.05 * (f64::from(self.regulator >> 4 & 0xF) - 6.0);
        OperatingPoint { megahertz, volts }
    }

    /// The frequency of the bus to the memory.
    pub fn system_mhz(&self) -> f64 {
        if self.bypassed() { CRYSTAL_MHZ } else { self.pll_mhz() / f64::from((self.divisor & 0xF).max(1)) }
    }

    /// Brings time and energy up to the cycle `now`.
    pub fn settle_accounts(&mut self, now: u64) {
        let point = self.point();
        self.charge(now - self.since, point);
        self.since = now;
    }

    fn charge(&mut self, cycles: u64, point: OperatingPoint) {
        self.seconds += cycles as f64 / (point.megahertz * 1e6);
        self.energy += cycles as f64 * point.volts * point.volts;
    }

    /// Seconds and volt² cycles up to the last [`Clock::settle_accounts`].
    pub fn totals(&self) -> (f64, f64) {
        (self.seconds, self.energy)
    }

    pub fn read(&self, register: u32) -> Option<u32> {
        Some(match register {
            PLL_CTL => self.new_control.unwrap_or(self.control),
            PLL_DIV => self.divisor,
            VR_CTL => self.new_regulator.unwrap_or(self.regulator),
            PLL_STAT => STATUS,
            PLL_LOCKCNT => self.lock_count,
            _ => return None,
        })
    }

    /// Writes a register in the cycle `now`. `None` if there is none.
    pub fn write(&mut self, register: u32, value: u32, now: u64) -> Option<()> {
        let value = value & 0xFFFF;
        match register {
            PLL_CTL => self.new_control = Some(value),
            VR_CTL => self.new_regulator = Some(value),
            PLL_DIV if value != self.divisor => {
                self.settle_accounts(now);
                self.divisor = value;
                self.changes += 1;
            }
            PLL_LOCKCNT => self.lock_count = value,
            PLL_DIV | PLL_STAT => {}
            _ => return None,
        }
        Some(())
    }

    /// `IDLE`: if the PLL or the regulator was written, they change, and the processor sleeps until they have settled.
    /// Returns how many cycles that takes.
    pub fn change(&mut self, now: u64) -> Option<u32> {
        if self.new_control.is_none() && self.new_regulator.is_none() {
            return None;
        }
        self.settle_accounts(now);
        let before = self.point();
        self.control = self.new_control.take().unwrap_or(self.control);
        self.regulator = self.new_regulator.take().unwrap_or(self.regulator);
        let after = self.point();
        self.changes += 1;
        // While it settles, the slower clock and the higher voltage hold.
        let settling =
            OperatingPoint { megahertz: before.megahertz.min(after.megahertz), volts: before.volts.max(after.volts) };
        self.charge(u64::from(self.settle), settling);
        self.since = now + u64::from(self.settle);
        Some(self.settle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_operating_points_of_the_paper() {
        let mut clock = Clock::new(1000);
        assert_eq!(clock.system_mhz(), 125.0);
        let full = clock.point();
        assert!((full.megahertz - 500.0).abs() < 1e-9 && (full.volts - 1.20).abs() < 1e-9);
        // A million cycles at full speed, then half the clock and 1.00 V.
        assert_eq!(clock.change(1_000_000), None);
        clock.write(PLL_DIV, 0x0014, 1_000_000).unwrap();
        clock.write(VR_CTL, 0x409B, 1_000_000).unwrap();
        assert_eq!(clock.change(1_000_000), Some(1000));
        assert_eq!(clock.system_mhz(), 125.0, "the memory keeps its speed");
        let slow = clock.point();
        assert!((slow.megahertz - 250.0).abs() < 1e-9 && (slow.volts - 1.00).abs() < 1e-9);
        clock.settle_accounts(2_001_000);
        let (seconds, energy) = clock.totals();
        assert!((seconds - (0.002 + 4e-6 + 0.004)).abs() < 1e-9, "{seconds}");
        assert!((energy - (1_440_000.0 + 1_440.0 + 1_000_000.0)).abs() < 1e-3, "{energy}");
    }
}
