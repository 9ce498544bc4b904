//! The spool's clock: it only goes forward, whatever is done to the clock of the machine.

use super::position::Position;

/// Nanoseconds that the spool has existed.
#[derive(Debug)]
pub(super) struct SpoolClock {
    base: u64,
    started: u64,
}

/// What the machine's clocks say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) wall: u64,
    pub(super) uptime: u64,
    /// Which start of the machine this is; 0 if the kernel does not tell.
    pub(super) boot: u64,
}

impl Times {
    pub(super) fn now() -> Times {
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let hash = boot.iter().fold(0u64, |hash, byte| hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte));
        Times { wall: sys::clock::wall_ns(), uptime: sys::clock::boottime_ns(), boot: hash >> 1 }
    }

    /// Time since `position` was written. Within one start of the machine its clock of the time of day means nothing;
    /// across a start it counts, but no less than the time since the start.
    fn since(&self, position: &Position) -> u64 {
        if self.boot == position.boot && self.boot != 0 {
            self.uptime.saturating_sub(position.uptime)
        } else {
            self.wall.saturating_sub(position.wall).max(self.uptime)
        }
    }
}

impl SpoolClock {
    /// Goes on where `position` was written, and no earlier than `newest`, the newest stamp in the spool.
    pub(super) fn new(position: Option<&Position>, newest: u64, now: Times) -> SpoolClock {
        let base = position.map_or(0, |position| position.clock.saturating_add(now.since(position)));
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
        let base = |wall, uptime, boot| SpoolClock::new(Some(&then), 0, Times { wall, uptime, boot }).base;
        assert_eq!(base(9999 * hour, 11 * hour, 7), 5 + hour, "forward by a year");
        assert_eq!(base(0, 11 * hour, 7), 5 + hour, "back to 1970");
        assert_eq!(base(103 * hour, hour, 8), 5 + 3 * hour, "another start");
        assert_eq!(base(0, hour, 8), 5 + hour, "another start, without a clock");
        assert_eq!(SpoolClock::new(None, 9, Times { wall: 1, uptime: 1, boot: 1 }).base, 9);
    }
}
