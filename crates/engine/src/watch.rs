//! `--watch` and `--for`: when the next round is due, and how long it takes. Pure arithmetic; callers read the clock
//! and wait.

use std::time::Duration;

/// Rounds on a fixed grid: the n-th is due n periods after the first, regardless of how long earlier rounds took.
#[derive(Clone, Debug)]
pub struct Rounds {
    start: Duration,
    period: Duration,
    /// Rounds that were due so far, including skipped ones.
    ticks: u64,
    /// Number of the current round; 1 for the first.
    n: u64,
}

/// The next round and the wait for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextRound {
    /// Number of the next round.
    pub n: u64,
    /// Time to wait from now.
    pub wait: Duration,
    /// Rounds skipped because the last one took longer than a period.
    pub skipped: u64,
}

impl Rounds {
    /// The shortest period; a shorter one would only measure netwren itself.
    pub const PERIOD_MIN: Duration = Duration::from_millis(10);

    /// The first round starts at `start` of a monotonic clock.
    pub fn new(start: Duration, period: Duration) -> Rounds {
        Rounds { start, period: period.max(Rounds::PERIOD_MIN), ticks: 0, n: 1 }
    }

    /// Number of the current round.
    pub fn current(&self) -> u64 {
        self.n
    }

    /// Ends the current round at `now` and moves on to the next. A round that is due exactly now runs at once.
    pub fn next(&mut self, now: Duration) -> NextRound {
        let period = self.period.as_nanos();
        let elapsed = now.saturating_sub(self.start).as_nanos();
        // The first point of the grid that is not past and was not used yet.
        let next = u64::try_from(elapsed.div_ceil(period)).unwrap_or(u64::MAX).max(self.ticks.saturating_add(1));
        let skipped = next.saturating_sub(self.ticks).saturating_sub(1);
        self.ticks = next;
        self.n += 1;
        let wait_ns = u128::from(next).saturating_mul(period).saturating_sub(elapsed);
        let wait = Duration::from_nanos(u64::try_from(wait_ns).unwrap_or(u64::MAX));
        NextRound { n: self.n, wait, skipped }
    }
}

/// How long the readings of a table take whose rows are about a time.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// The length of a single reading.
    pub once: Duration,
    /// The length of a round; `None` if there is only one reading.
    pub period: Option<Duration>,
    /// When the last round ends, in ns of the monotonic clock; `None` if the user ends it.
    pub ends_ns: Option<u64>,
}

impl Windows {
    /// Returns the length of a reading that begins at `now_ns`, and true if no other one follows.
    pub fn begin(&self, now_ns: u64) -> (Duration, bool) {
        match (self.period, time_left(self.ends_ns, now_ns)) {
            (None, _) => (self.once, true),
            (Some(period), Some(left)) if left <= period => (left, true),
            (Some(period), _) => (period, false),
        }
    }
}

/// Returns the time from `now_ns` until `ends_ns`; `None` if that is `None`.
pub fn time_left(ends_ns: Option<u64>, now_ns: u64) -> Option<Duration> {
    Some(Duration::from_nanos(ends_ns?.saturating_sub(now_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_window_ends_with_the_run() {
        let (once, period) = (ms(3), Some(ms(10)));
        for (period, ends_ms, now_ms, begun) in [
            (None, None, 5, (once, true)),
            (period, None, 5, (ms(10), false)),
            (period, Some(20), 5, (ms(10), false)),
            (period, Some(20), 10, (ms(10), true)),
            (period, Some(20), 15, (ms(5), true)),
            (period, Some(20), 25, (ms(0), true)),
        ] {
            let windows = Windows { once, period, ends_ns: ends_ms.map(|ms| ms * 1_000_000_u64) };
            assert_eq!(windows.begin(now_ms * 1_000_000), begun, "{windows:?} at {now_ms} ms");
        }
    }

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn rounds_do_not_drift() {
        let mut rounds = Rounds::new(ms(1_000), ms(100));
        assert_eq!(rounds.current(), 1);
        for (now, n, wait, skipped) in [
            (1_007, 2, 93, 0),  // a short round
            (1_100, 3, 100, 0), // no time at all: the grid's next point
            (1_299, 4, 1, 0),   // nearly late
            (1_300, 5, 100, 0), // due exactly now was used, so the next
            (1_650, 6, 50, 2),  // a long round: two points left out
            (1_800, 7, 0, 0),   // exactly due
            (1_500, 8, 400, 0), // a clock that jumped back waits for its point
        ] {
            assert_eq!(rounds.next(ms(now)), NextRound { n, wait: ms(wait), skipped }, "at {now} ms");
        }
    }

    #[test]
    fn bad_periods_are_harmless() {
        let mut rounds = Rounds::new(ms(5), Duration::ZERO);
        assert_eq!(rounds.next(ms(5)).wait, Rounds::PERIOD_MIN);
        let mut rounds = Rounds::new(ms(5), Duration::MAX);
        assert_eq!(rounds.next(ms(0)).skipped, 0);
        let mut rounds = Rounds::new(Duration::ZERO, ms(10));
        assert!(rounds.next(Duration::MAX).skipped > 0);
    }
}
