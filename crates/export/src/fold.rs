//! Folding of records that differ only in their time: one of them stands for the others.

use crate::KeyMap;
use crate::shares::Shares;
use std::collections::VecDeque;

/// Most keys that are tracked at once.
///
/// Bound: different rows in a window of `--fold`; one rule leaves room for others. Beyond: further rows are shipped
/// unfolded; nothing is lost. By: any sender of packets that a rule logs.
pub const FOLD_KEYS_MAX: usize = 65_536;

/// The records with one key, since the first of them was sent.
#[derive(Debug)]
struct FoldingKey<K> {
    class: u16,
    /// Number of records, including the first.
    records: u64,
    /// Times of the first and the last record, in ns since 1970.
    first_ns: u64,
    last_ns: u64,
    /// The second record, which is sent at the end of the window for all of them.
    kept: Option<K>,
}

/// The records that one record stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldedRecords {
    /// Number of records, including the first and the one that stands for them.
    pub records: u64,
    /// Time of the first record, in ns since 1970.
    pub first_ns: u64,
    /// Time of the last record.
    pub last_ns: u64,
    /// Time over which they were gathered, in ns.
    pub window_ns: u64,
}

/// Counts the records with the same key during a window of time, which begins with the first of them.
///
/// It tracks at most [`FOLD_KEYS_MAX`] keys; records with further keys are not folded. Costs one lookup per record,
/// and keeps a `K`, the caller's copy of a record, only for keys that occur again.
#[derive(Debug)]
pub struct FoldTable<K> {
    window_ns: u64,
    keys: KeyMap<FoldingKey<K>>,
    /// Start and key of each window. All windows have the same length, so the oldest ends first.
    began: VecDeque<(u64, u128)>,
    shares: Shares,
    unfolded: u64,
}

impl<K> FoldTable<K> {
    /// A table with windows of `window_ns`.
    pub fn new(window_ns: u64) -> FoldTable<K> {
        let shares = Shares::new(FOLD_KEYS_MAX);
        FoldTable { window_ns, keys: KeyMap::default(), began: VecDeque::new(), shares, unfolded: 0 }
    }

    /// Counts a record with the time `time_ns` that arrived at `now_ns` of a monotonic clock, and returns what to do
    /// with it. For the second record of a window, calls `keep` and stores the result.
    pub fn add_record(
        &mut self,
        key: u128,
        class: u16,
        time_ns: u64,
        now_ns: u64,
        keep: impl FnOnce() -> K,
    ) -> FoldOutcome {
        if let Some(folding) = self.keys.get_mut(&key) {
            folding.records += 1;
            folding.last_ns = time_ns;
            if folding.kept.is_some() {
                return FoldOutcome::Folded;
            }
            folding.kept = Some(keep());
            return FoldOutcome::Kept;
        }
        if !self.shares.take(class) {
            self.unfolded += 1;
            return FoldOutcome::First;
        }
        self.keys.insert(key, FoldingKey { class, records: 1, first_ns: time_ns, last_ns: time_ns, kept: None });
        self.began.push_back((now_ns, key));
        FoldOutcome::First
    }

    /// Returns the next record that stands for others and whose window is over at `now_ns`.
    pub fn next_due(&mut self, now_ns: u64) -> Option<(FoldedRecords, K)> {
        loop {
            let (began, key) =
                *self.began.front().filter(|(began, _)| began.saturating_add(self.window_ns) <= now_ns)?;
            if let Some(due) = self.end(began, key, now_ns) {
                return Some(due);
            }
        }
    }

    /// Returns the next record that stands for others, whether or not its window is over. For the end of the run.
    pub fn next_at_end(&mut self, now_ns: u64) -> Option<(FoldedRecords, K)> {
        loop {
            let (began, key) = *self.began.front()?;
            if let Some(due) = self.end(began, key, now_ns) {
                return Some(due);
            }
        }
    }

    fn end(&mut self, began: u64, key: u128, now_ns: u64) -> Option<(FoldedRecords, K)> {
        self.began.pop_front();
        let folding = self.keys.remove(&key)?;
        self.shares.remove_entry(folding.class);
        let window_ns = now_ns.saturating_sub(began).min(self.window_ns);
        let FoldingKey { records, first_ns, last_ns, kept, .. } = folding;
        Some((FoldedRecords { records, first_ns, last_ns, window_ns }, kept?))
    }

    /// Records that were sent although they may be repetitions, because there was no room for their keys.
    pub fn unfolded_records(&self) -> u64 {
        self.unfolded
    }
}

/// What the caller does with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldOutcome {
    /// Sends it: as far as is known, no record like it was sent in this window.
    First,
    /// Keeps it until the end of the window, where it stands for the others.
    Kept,
    /// Drops it: another record stands for it.
    Folded,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_record_stands_for_all_at_the_end_of_the_window() {
        let mut table = FoldTable::new(10);
        let mut note = |key, time, now| table.add_record(key, 0, time, now, || time);
        assert_eq!(
            [note(1, 100, 0), note(1, 101, 1), note(1, 102, 2)],
            [FoldOutcome::First, FoldOutcome::Kept, FoldOutcome::Folded]
        );
        assert_eq!(note(2, 103, 5), FoldOutcome::First);
        assert_eq!(table.next_due(9), None);
        let fold = FoldedRecords { records: 3, first_ns: 100, last_ns: 102, window_ns: 10 };
        assert_eq!(table.next_due(30), Some((fold, 101)));
        assert_eq!(table.next_due(30), None, "what came once needs no words");
        assert_eq!(table.add_record(1, 0, 200, 31, || 0), FoldOutcome::First, "the next window");
        assert_eq!(table.add_record(1, 0, 201, 33, || 201), FoldOutcome::Kept);
        let fold = FoldedRecords { records: 2, first_ns: 200, last_ns: 201, window_ns: 3 };
        assert_eq!((table.next_at_end(34), table.next_at_end(34)), (Some((fold, 201)), None));
        assert!(table.keys.is_empty() && table.began.is_empty());
    }

    /// A sender that makes a new key with each packet fills at most half of the table; other classes still fold.
    #[test]
    fn a_flood_of_keys_does_not_take_the_room_of_another_rule() {
        let mut table = FoldTable::new(10);
        for key in 0..200_000 {
            assert_eq!(table.add_record(key, 1, 0, 0, || ()), FoldOutcome::First);
        }
        assert_eq!(
            (table.keys.len(), table.unfolded_records()),
            (FOLD_KEYS_MAX / 2, 200_000 - FOLD_KEYS_MAX as u64 / 2)
        );
        for key in 1_000_000..1_001_000 {
            assert_eq!(table.add_record(key, 2, 0, 0, || ()), FoldOutcome::First);
            assert_eq!(table.add_record(key, 2, 0, 0, || ()), FoldOutcome::Kept);
        }
        assert_eq!(table.add_record(7, 1, 0, 0, || ()), FoldOutcome::Kept, "what was there before the flood stays");
        assert_eq!(std::iter::from_fn(|| table.next_due(10)).count(), 1001);
        assert!(table.shares.take(1));
    }
}
