//! The trend of several readings of the counters.
use record::rows::{StatCounter, StatCounts};

const SECOND: u64 = 1_000_000_000;
/// Samples that a forecast needs: two show only one step, which may be a burst.
pub const FORECAST_SAMPLES: usize = 3;

/// One reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Time of the reading, in nanoseconds of a monotonic clock.
    pub at_ns: u64,
    /// Number of entries.
    pub entries: u64,
    /// Counters, added up over all CPUs.
    pub counts: StatCounts,
}

/// How the table changes. Everything except `peak` and `totals` needs two samples at least a second apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trend {
    /// Most entries of any sample.
    pub peak: Option<u64>,
    /// Milliseconds between the first sample and the last.
    pub interval_ms: Option<u64>,
    /// Growth in entries per second; negative if the table shrinks.
    pub growth_per_s: Option<i64>,
    /// The steady part of the growth: the median of the steps between samples, the lower one of two, and at most the
    /// growth over all of them. Needs three samples.
    pub steady_growth_per_s: Option<i64>,
    /// Seconds until the table is full at the steady rate; `None` if it does not grow.
    pub full_in_s: Option<u64>,
    /// Growth of the counters; `None` for one that went backwards.
    pub grown: StatCounts,
    /// Present counters, since the namespace was made.
    pub totals: StatCounts,
}

/// A growth in entries within an interval.
#[derive(Debug, Clone, Copy)]
struct Rate {
    more: i128,
    /// Greater than 0.
    interval_ns: i128,
}

impl Rate {
    /// Returns the rate between two samples; `None` if no time passed.
    fn between(first: &Sample, last: &Sample) -> Option<Rate> {
        let interval_ns = last.at_ns.checked_sub(first.at_ns).filter(|interval| *interval > 0)?;
        // Far above any count of a kernel, and small enough to be multiplied.
        let bounded = |n: u64| i128::from(n.min(1 << 62));
        Some(Rate { more: bounded(last.entries) - bounded(first.entries), interval_ns: bounded(interval_ns) })
    }

    fn order(&self, other: &Rate) -> std::cmp::Ordering {
        (self.more * other.interval_ns).cmp(&(other.more * self.interval_ns))
    }

    /// Returns the rate per second, rounded for display; forecasts use the exact rate.
    fn per_s(self) -> Option<i64> {
        let rounded = (self.more * i128::from(SECOND) + self.more.signum() * self.interval_ns / 2) / self.interval_ns;
        i64::try_from(rounded).ok()
    }

    /// Returns the seconds until there are `left` more entries; `None` if the number does not grow.
    fn seconds_for(self, left: u64) -> Option<u64> {
        let seconds = i128::from(left) * self.interval_ns / Some(self.more).filter(|more| *more > 0)?;
        u64::try_from(seconds / i128::from(SECOND)).ok()
    }
}

impl Trend {
    /// Returns the trend of `samples`, which are in order of time, under the limit `max`.
    pub fn of(samples: &[Sample], max: Option<u64>) -> Trend {
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Trend::default() };
        let peak = samples.iter().map(|sample| sample.entries).max();
        let known = Trend { peak, totals: last.counts, ..Trend::default() };
        let interval_ns = last.at_ns.saturating_sub(first.at_ns);
        let Some(growth) = Rate::between(first, last).filter(|_| samples.len() > 1 && interval_ns >= SECOND) else {
            return known;
        };
        let steady = steady(samples, growth);
        let left = max.map(|max| max.saturating_sub(last.entries));
        Trend {
            interval_ms: Some(interval_ns / 1_000_000),
            growth_per_s: growth.per_s(),
            steady_growth_per_s: steady.and_then(Rate::per_s),
            full_in_s: left.zip(steady).and_then(|(left, steady)| steady.seconds_for(left)),
            grown: grown(&first.counts, &last.counts),
            ..known
        }
    }

    /// Returns the number of entries refused although the table had room: another entry had the same tuple, which
    /// happens when all source ports are exhausted. The kernel counts such a packet in `insert_failed` and in `drop`; a
    /// full table counts only in `drop`, a chain that is too long only in `insert_failed`.
    pub fn clashes(&self) -> u64 {
        clashes(&self.grown)
    }

    /// Returns the number of packets dropped because the table was full.
    pub fn without_room(&self) -> u64 {
        self.grown.get(StatCounter::Drop).unwrap_or(0).saturating_sub(self.clashes())
    }
}

/// See [`Trend::clashes`].
pub(super) fn clashes(counts: &StatCounts) -> u64 {
    let count = |counter| counts.get(counter).unwrap_or(0);
    let failed = count(StatCounter::InsertFailed).saturating_sub(count(StatCounter::ChainTooLong));
    failed.min(count(StatCounter::Drop))
}

/// Returns the steady growth, see [`Trend::steady_growth_per_s`].
fn steady(samples: &[Sample], growth: Rate) -> Option<Rate> {
    if samples.len() < FORECAST_SAMPLES {
        return None;
    }
    let pairs = samples.iter().zip(samples.iter().skip(1));
    let mut steps: Vec<Rate> = pairs.filter_map(|(before, now)| Rate::between(before, now)).collect();
    steps.sort_by(Rate::order);
    let median = *steps.get(steps.len().checked_sub(1)? / 2)?;
    Some(if median.order(&growth).is_lt() { median } else { growth })
}

fn grown(before: &StatCounts, now: &StatCounts) -> StatCounts {
    let mut grown = StatCounts::default();
    for counter in StatCounter::ALL {
        if let (Some(before), Some(now)) = (before.get(counter), now.get(counter)) {
            grown.set(counter, now.checked_sub(before));
        }
    }
    grown
}
