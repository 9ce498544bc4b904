//! What several readings of the counters show.
use record::rows::{StatCounter, StatCounts};

const SECOND: u64 = 1_000_000_000;

/// One reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When: nanoseconds of a clock that does not jump.
    pub at_ns: u64,
    /// Entries that count.
    pub entries: u64,
    /// Counters of all CPUs together.
    pub counts: StatCounts,
}

/// How the table moves. All but the peak needs two samples that are a second apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trend {
    /// Most entries of any sample.
    pub peak: Option<u64>,
    /// Milliseconds between the first sample and the last.
    pub interval_ms: Option<u64>,
    /// Entries more each second, negative if they become fewer.
    pub growth_per_s: Option<i64>,
    /// Seconds until the table is full at this rate; `None` if it does not grow.
    pub full_in_s: Option<u64>,
    /// What counters grew by; `None` where one went backwards.
    pub grown: StatCounts,
    /// Counters as they are, since the namespace was made.
    pub totals: StatCounts,
}

impl Trend {
    /// The trend of `samples`, which are in the order of time, under this limit.
    pub fn of(samples: &[Sample], max: Option<u64>) -> Trend {
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Trend::default() };
        let peak = samples.iter().map(|sample| sample.entries).max();
        let known = Trend { peak, totals: last.counts, ..Trend::default() };
        let interval_ns = last.at_ns.saturating_sub(first.at_ns);
        if samples.len() < 2 || interval_ns < SECOND {
            return known;
        }
        let more = i128::from(last.entries) - i128::from(first.entries);
        // Exact until here; the number that is shown is rounded, the forecast is not made from it.
        let interval = i128::from(interval_ns);
        let growth = (more * i128::from(SECOND) + more.signum() * interval / 2) / interval;
        let left = max.map(|max| max.saturating_sub(last.entries));
        let full_in = |left: u64| u64::try_from(i128::from(left) * interval / more / i128::from(SECOND)).ok();
        Trend {
            interval_ms: Some(interval_ns / 1_000_000),
            growth_per_s: i64::try_from(growth).ok(),
            full_in_s: left.filter(|_| more > 0).and_then(full_in),
            grown: grown(&first.counts, &last.counts),
            ..known
        }
    }
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
