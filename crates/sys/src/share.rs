//! Limits work to a part of the time.

use std::cell::Cell;

/// Minimum cost charged for a piece of work.
pub const WORK_NS_MIN: u64 = 1_000_000;

/// Allows work to take one part in N of the time. Time that it does not use is saved up to a maximum burst.
///
/// The caller passes the time of any clock that does not go back; nothing here reads a clock.
#[derive(Debug)]
pub struct Share {
    parts: u64,
    burst_ns: i64,
    /// Negative after work that took longer than the saved time.
    saved_ns: Cell<i64>,
    /// The time up to which `saved_ns` has been earned; `None` before the first use.
    at_ns: Cell<Option<u64>>,
}

impl Share {
    /// Allows one part in `parts` of the time, and `burst_ns` at once: now and after a pause.
    pub fn one_in(parts: u64, burst_ns: u64) -> Share {
        let burst_ns = signed(burst_ns);
        Share { parts: parts.max(1), burst_ns, saved_ns: Cell::new(burst_ns), at_ns: Cell::new(None) }
    }

    /// True if work may start now. Charge its time afterwards, however long it took.
    pub fn may_start(&self, now_ns: u64) -> bool {
        self.save(now_ns);
        self.saved_ns.get() >= signed(WORK_NS_MIN)
    }

    /// Charges work that took this time, and at least [`WORK_NS_MIN`].
    pub fn charge(&self, took_ns: u64) {
        self.saved_ns.set(self.saved_ns.get().saturating_sub(signed(took_ns.max(WORK_NS_MIN))));
    }

    /// Charges up to `wanted` small pieces of work, which cost `each_ns`; returns how many may be done now.
    pub fn take(&self, now_ns: u64, wanted: u64, each_ns: u64) -> u64 {
        self.save(now_ns);
        let each_ns = each_ns.max(1);
        let taken = wanted.min(u64::try_from(self.saved_ns.get()).unwrap_or(0) / each_ns);
        self.saved_ns.set(self.saved_ns.get().saturating_sub(signed(taken.saturating_mul(each_ns))));
        taken
    }

    /// The pause after which work that took `took_ns` has taken one part in `parts` of the time.
    pub fn pause_ns(parts: u64, took_ns: u64) -> u64 {
        took_ns.saturating_mul(parts.saturating_sub(1))
    }

    fn save(&self, now_ns: u64) {
        let at_ns = self.at_ns.get().unwrap_or(now_ns);
        // Steps that are too short to earn anything add up.
        let earned_ns = now_ns.saturating_sub(at_ns) / self.parts;
        self.at_ns.set(Some(at_ns.saturating_add(earned_ns.saturating_mul(self.parts))));
        self.saved_ns.set(self.saved_ns.get().saturating_add(signed(earned_ns)).min(self.burst_ns));
    }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: u64 = 20;
    const BURST_NS: u64 = 200_000_000;

    #[test]
    fn long_work_is_paid_for() {
        let share = Share::one_in(PARTS, BURST_NS);
        assert!(share.may_start(0));
        share.charge(10 * BURST_NS);
        let due_ns = 9 * BURST_NS * PARTS;
        assert!(!share.may_start(due_ns));
        assert!(share.may_start(due_ns + WORK_NS_MIN * PARTS));
    }

    #[test]
    fn work_longer_than_the_saved_time_takes_its_share() {
        const TOOK_NS: u64 = BURST_NS / 2;
        let share = Share::one_in(PARTS, BURST_NS);
        let (mut now_ns, mut spent_ns) = (0, 0);
        while now_ns < 1000 * TOOK_NS {
            if share.may_start(now_ns) {
                share.charge(TOOK_NS);
                spent_ns += TOOK_NS;
                now_ns += TOOK_NS;
            }
            now_ns += WORK_NS_MIN;
        }
        let most_ns = BURST_NS + now_ns / PARTS + TOOK_NS;
        assert!((most_ns / 2..=most_ns).contains(&spent_ns), "{spent_ns} of {now_ns}");
    }

    #[test]
    fn small_pieces_are_bounded_by_time() {
        const AT_ONCE: u64 = 8192;
        const EACH_NS: u64 = 20_000;
        let share = Share::one_in(1, AT_ONCE * EACH_NS);
        let take = |wanted, now_ns| share.take(now_ns, wanted, EACH_NS);
        assert_eq!(take(AT_ONCE + 1, 5), AT_ONCE);
        assert_eq!((take(9, 5), take(9, 60_005), take(9, 60_005)), (0, 3, 0));
        assert_eq!(take(u64::MAX, u64::MAX), AT_ONCE);
        assert_eq!(take(1, 0), 0, "a clock that goes back");
    }

    #[test]
    fn a_pause_leaves_the_work_its_part() {
        assert_eq!((Share::pause_ns(4, 100), Share::pause_ns(1, 100), Share::pause_ns(0, 100)), (300, 0, 0));
        assert_eq!(Share::pause_ns(4, u64::MAX), u64::MAX);
    }
}
