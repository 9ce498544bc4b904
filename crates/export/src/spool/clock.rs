//! The spool's clock, which only goes forward even if the machine's clock is set.

use super::position::Position;

/// Nanoseconds since the spool was made.
#[derive(Debug)]
pub(super) struct SpoolClock {
    base: u64,
    started: u64,
}

/// Readings of the machine's clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClockReadings {
    pub(super) wall: u64,
    pub(super) uptime: u64,
    /// A hash of the kernel's boot id; 0 if it is unknown.
    pub(super) boot: u64,
}

impl ClockReadings {
    pub(super) fn read_times() -> ClockReadings {
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let hash = boot.iter().fold(0u64, |hash, byte| hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte));
        ClockReadings { wall: sys::clock::wall_ns(), uptime: sys::clock::boottime_ns(), boot: hash >> 1 }
    }

    /// Returns the time since `position` was written. Within one boot, the wall clock is ignored. After a reboot the
    /// wall clock counts, but the result is at least the time since the boot.
    fn time_since(&self, position: &Position) -> u64 {
        if self.boot == position.boot && self.boot != 0 {
            self.uptime.saturating_sub(position.uptime)
        } else {
            self.wall.saturating_sub(position.wall).max(self.uptime)
        }
    }
}

impl SpoolClock {
    /// Continues from `position`, but not earlier than `newest`, the newest stamp in the spool.
    pub(super) fn new(position: Option<&Position>, newest: u64, now: ClockReadings) -> SpoolClock {
        let base = position.map_or(0, |position| position.clock.saturating_add(now.time_since(position)));
        SpoolClock { base: base.max(newest), started: now.uptime }
    }

    pub(super) fn now(&self) -> u64 {
        self.base.saturating_add(sys::clock::boottime_ns().saturating_sub(self.started))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_jumps_makes_nothing_older() {
        let hour = 3_600_000_000_000;
        let then = Position { clock: 5, wall: 100 * hour, uptime: 10 * hour, boot: 7, ..Position::default() };
        let base = |wall, uptime, boot| SpoolClock::new(Some(&then), 0, ClockReadings { wall, uptime, boot }).base;
        assert_eq!(base(9999 * hour, 11 * hour, 7), 5 + hour, "forward by a year");
        assert_eq!(base(0, 11 * hour, 7), 5 + hour, "back to 1970");
        assert_eq!(base(103 * hour, hour, 8), 5 + 3 * hour, "another start");
        assert_eq!(base(0, hour, 8), 5 + hour, "another start, without a clock");
        assert_eq!(SpoolClock::new(None, 9, ClockReadings { wall: 1, uptime: 1, boot: 1 }).base, 9);
    }
}
