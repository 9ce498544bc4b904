//! Rate limits for records with the same key: token buckets.

use crate::KeyMap;
use crate::shares::Shares;
use std::collections::VecDeque;

/// Most keys that are tracked at once.
///
/// Bound: addresses of `--rate-by`; one rule leaves room for others. Beyond: further addresses of this rule share one
/// rate, counted as `limited`. By: any sender of packets that a rule logs.
pub const RATE_KEYS_MAX: usize = 65_536;
/// Time between two reports of limited records, in ns.
pub const RATE_WINDOW_NS: u64 = 10_000_000_000;

/// A rate of records, with a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Nanoseconds for each record.
    pub ns_per_record: u64,
    /// Records that may arrive at once.
    pub burst: u64,
}

#[derive(Debug)]
struct Bucket<K> {
    class: u16,
    is_shared: bool,
    /// Saved credit, in ns; a record costs [`Rate::ns_per_record`].
    credit_ns: u64,
    at_ns: u64,
    /// Records after the kept one that were not sent.
    limited: u64,
    kept: Option<K>,
}

/// Decides for each record whether its key is below the rate.
///
/// It tracks at most [`RATE_KEYS_MAX`] keys; beyond them the keys of a class share one bucket, so that a flood of keys
/// cannot evade the limit. The first record of a window that is above the rate is kept, and is sent at the window's
/// end with the count of the others. `K` is the caller's copy of a record.
#[derive(Debug)]
pub struct RateTable<K> {
    rate: Rate,
    keys: KeyMap<Bucket<K>>,
    /// When to look at each bucket, in ns, and its key.
    due: VecDeque<(u64, u128)>,
    shares: Shares,
}

/// What the caller does with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedAs {
    /// Sends it: it is below the rate.
    Below,
    /// Keeps it until the end of the window, to report the limited records.
    Kept,
    /// Drops it.
    Limited,
}

impl<K> RateTable<K> {
    /// A table that allows each key this rate.
    pub fn new(rate: Rate) -> RateTable<K> {
        RateTable { rate, keys: KeyMap::default(), due: VecDeque::new(), shares: Shares::new(RATE_KEYS_MAX) }
    }

    fn credit_max(&self) -> u64 {
        self.rate.ns_per_record.saturating_mul(self.rate.burst)
    }

    /// Counts a record at `now_ns` of a monotonic clock. For the first record of a window that is above the rate,
    /// calls `keep` and stores the result.
    pub fn add_record(&mut self, key: u128, class: u16, now_ns: u64, keep: impl FnOnce() -> K) -> LimitedAs {
        let (credit_max, cost) = (self.credit_max(), self.rate.ns_per_record);
        let Some(bucket) = self.bucket(key, class, now_ns) else { return LimitedAs::Below };
        let saved = now_ns.saturating_sub(bucket.at_ns);
        bucket.credit_ns = bucket.credit_ns.saturating_add(saved).min(credit_max);
        bucket.at_ns = now_ns;
        if let Some(left) = bucket.credit_ns.checked_sub(cost) {
            bucket.credit_ns = left;
            return LimitedAs::Below;
        }
        if bucket.kept.is_some() {
            bucket.limited += 1;
            return LimitedAs::Limited;
        }
        bucket.kept = Some(keep());
        LimitedAs::Kept
    }

    /// Returns the key's own bucket, or the shared bucket of its class.
    fn bucket(&mut self, key: u128, class: u16, now_ns: u64) -> Option<&mut Bucket<K>> {
        let (mut key, mut is_shared) = (key, false);
        if !self.keys.contains_key(&key) && !self.shares.take(class) {
            (key, is_shared) = (class.into(), true);
        }
        if !self.keys.contains_key(&key) {
            let credit_ns = self.credit_max();
            let bucket = Bucket { class, is_shared, credit_ns, at_ns: now_ns, limited: 0, kept: None };
            self.keys.insert(key, bucket);
            self.due.push_back((now_ns.saturating_add(RATE_WINDOW_NS), key));
        }
        self.keys.get_mut(&key)
    }

    /// Returns the next kept record whose window is over at `now_ns`, with the number of records after it that were
    /// not sent.
    pub fn next_due(&mut self, now_ns: u64) -> Option<(u64, K)> {
        loop {
            let (_, key) = *self.due.front().filter(|(due, _)| *due <= now_ns)?;
            self.due.pop_front();
            if let Some(said) = self.take_due_record(key, now_ns) {
                return Some(said);
            }
        }
    }

    /// Returns the next kept record, whether or not its window is over. For the end of the run.
    pub fn next_at_end(&mut self) -> Option<(u64, K)> {
        loop {
            let (_, key) = self.due.pop_front()?;
            let bucket = self.keys.remove(&key)?;
            if let Some(kept) = bucket.kept {
                return Some((bucket.limited, kept));
            }
        }
    }

    /// Takes the kept record of a bucket. Removes the bucket if it has none and is full again: a new one would be the
    /// same.
    fn take_due_record(&mut self, key: u128, now_ns: u64) -> Option<(u64, K)> {
        let credit_max = self.credit_max();
        let bucket = self.keys.get_mut(&key)?;
        let said = bucket.kept.take().map(|kept| (std::mem::take(&mut bucket.limited), kept));
        let credit_ns = bucket.credit_ns.saturating_add(now_ns.saturating_sub(bucket.at_ns));
        if said.is_some() || credit_ns < credit_max {
            self.due.push_back((now_ns.saturating_add(RATE_WINDOW_NS), key));
            return said;
        }
        if !bucket.is_shared {
            self.shares.remove_entry(bucket.class);
        }
        self.keys.remove(&key);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn below(table: &mut RateTable<u64>, key: u128, class: u16, now: u64, records: u64) -> usize {
        (0..records).filter(|_| table.add_record(key, class, now, || now) == LimitedAs::Below).count()
    }

    #[test]
    fn records_above_the_rate_are_counted_and_reported_once() {
        let mut table = RateTable::new(Rate { ns_per_record: SECOND / 10, burst: 20 });
        assert_eq!(below(&mut table, 1, 0, 0, 100), 20, "the burst");
        assert_eq!(below(&mut table, 1, 0, SECOND, 100), 10);
        assert_eq!(below(&mut table, 2, 0, SECOND, 5), 5, "another key");
        assert_eq!(table.next_due(RATE_WINDOW_NS - 1), None);
        // 170 were above the rate: one of them reports the other 169.
        assert_eq!(table.next_due(RATE_WINDOW_NS), Some((169, 0)));
        assert_eq!(table.next_due(9 * RATE_WINDOW_NS), None);
        assert_eq!((table.keys.len(), table.due.len()), (0, 0), "full buckets are forgotten");
        assert_eq!(below(&mut table, 1, 0, 9 * RATE_WINDOW_NS, 100), 20);
        assert_eq!((table.next_at_end(), table.next_at_end()), (Some((79, 9 * RATE_WINDOW_NS)), None));
    }

    /// A sender that makes a new key with each packet gets one more bucket, not one for each key.
    #[test]
    fn a_flood_of_keys_goes_not_around_the_limit() {
        let mut table = RateTable::new(Rate { ns_per_record: SECOND, burst: 1 });
        let keys = (1..200_001_u128).map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
        let sent = keys.filter(|key| below(&mut table, *key, 1, 0, 1) == 1).count();
        assert_eq!(sent, RATE_KEYS_MAX / 2 + 1);
        assert_eq!(below(&mut table, 7 << 40, 2, 0, 9), 1, "another class has its own");
        assert_eq!(table.keys.len(), RATE_KEYS_MAX / 2 + 2);
        while table.next_due(u64::MAX / 2).is_some() {}
        assert_eq!(std::iter::from_fn(|| table.next_due(u64::MAX)).count(), 0);
        assert_eq!((table.keys.len(), table.shares.take(1)), (0, true));
    }
}
