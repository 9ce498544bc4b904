//! Records that are the same but for time: one of them stands for the others.

use crate::KeyMap;
use crate::shares::Shares;
use std::collections::VecDeque;

/// Keys that are known at once.
pub const FOLD_KEYS_MAX: usize = 65_536;

/// What is known of the records with one key, since the first of them was sent.
#[derive(Debug)]
struct Folding<K> {
    class: u16,
    /// With the first one.
    records: u64,
    /// Times of the first and the last record, in ns since 1970.
    first_ns: u64,
    last_ns: u64,
    /// The second record: it will be sent once more, for all.
    kept: Option<K>,
}

/// What a record stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fold {
    /// Records, with the first one and the one that stands for them.
    pub records: u64,
    /// Time of the first record, in ns since 1970.
    pub first_ns: u64,
    /// Time of the last record.
    pub last_ns: u64,
    /// How long they were gathered, in ns.
    pub window_ns: u64,
}

/// Counts the records with the same key during a window of time, which begins with the first of them.
///
/// It knows at most [`FOLD_KEYS_MAX`] keys: what finds no room is not folded. Costs one look-up a record; allocates
/// only for keys that come again. `K` is what the caller keeps of a record.
#[derive(Debug)]
pub struct FoldTable<K> {
    window_ns: u64,
    keys: KeyMap<Folding<K>>,
    /// When each window began. All are equally long: the oldest ends first.
    began: VecDeque<(u64, u128)>,
    shares: Shares,
    unfolded: u64,
}

impl<K> FoldTable<K> {
    /// A table whose windows last `window_ns`.
    pub fn new(window_ns: u64) -> FoldTable<K> {
        let shares = Shares::new(FOLD_KEYS_MAX);
        FoldTable { window_ns, keys: KeyMap::default(), began: VecDeque::new(), shares, unfolded: 0 }
    }

    /// Notes a record of the time `time_ns` at `now_ns`, of a clock that only goes forward, and says what becomes of
    /// it. The second record of a window is handed to `keep`.
    pub fn note(&mut self, key: u128, class: u16, time_ns: u64, now_ns: u64, keep: impl FnOnce() -> K) -> FoldedAs {
        if let Some(folding) = self.keys.get_mut(&key) {
            folding.records += 1;
            folding.last_ns = time_ns;
            if folding.kept.is_some() {
                return FoldedAs::Folded;
            }
            folding.kept = Some(keep());
            return FoldedAs::Kept;
        }
        if !self.shares.take(class) {
            self.unfolded += 1;
            return FoldedAs::First;
        }
        self.keys.insert(key, Folding { class, records: 1, first_ns: time_ns, last_ns: time_ns, kept: None });
        self.began.push_back((now_ns, key));
        FoldedAs::First
    }

    /// The next record that stands for others, if its window is over at `now_ns`.
    pub fn next_due(&mut self, now_ns: u64) -> Option<(Fold, K)> {
        loop {
            let (began, key) =
                *self.began.front().filter(|(began, _)| began.saturating_add(self.window_ns) <= now_ns)?;
            if let Some(due) = self.end(began, key, now_ns) {
                return Some(due);
            }
        }
    }

    /// The next record that stands for others, whether or not its window is over: the run ends.
    pub fn next_at_end(&mut self, now_ns: u64) -> Option<(Fold, K)> {
        loop {
            let (began, key) = *self.began.front()?;
            if let Some(due) = self.end(began, key, now_ns) {
                return Some(due);
            }
        }
    }

    fn end(&mut self, began: u64, key: u128, now_ns: u64) -> Option<(Fold, K)> {
        self.began.pop_front();
        let folding = self.keys.remove(&key)?;
        self.shares.give_back(folding.class);
        let window_ns = now_ns.saturating_sub(began).min(self.window_ns);
        let Folding { records, first_ns, last_ns, kept, .. } = folding;
        Some((Fold { records, first_ns, last_ns, window_ns }, kept?))
    }

    /// Records that were sent although they may be repetitions: there was no room for their keys.
    pub fn unfolded(&self) -> u64 {
        self.unfolded
    }
}

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldedAs {
    /// It is sent: none like it was sent in this window, as far as is known.
    First,
    /// It waits for the end of the window, and then stands for the others.
    Kept,
    /// Another one stands for it.
    Folded,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_record_stands_for_all_at_the_end_of_the_window() {
        let mut table = FoldTable::new(10);
        let mut note = |key, time, now| table.note(key, 0, time, now, || time);
        assert_eq!(
            [note(1, 100, 0), note(1, 101, 1), note(1, 102, 2)],
            [FoldedAs::First, FoldedAs::Kept, FoldedAs::Folded]
        );
        assert_eq!(note(2, 103, 5), FoldedAs::First);
        assert_eq!(table.next_due(9), None);
        let fold = Fold { records: 3, first_ns: 100, last_ns: 102, window_ns: 10 };
        assert_eq!(table.next_due(30), Some((fold, 101)));
        assert_eq!(table.next_due(30), None, "what came once needs no words");
        assert_eq!(table.note(1, 0, 200, 31, || 0), FoldedAs::First, "the next window");
        assert_eq!(table.note(1, 0, 201, 33, || 201), FoldedAs::Kept);
        let fold = Fold { records: 2, first_ns: 200, last_ns: 201, window_ns: 3 };
        assert_eq!((table.next_at_end(34), table.next_at_end(34)), (Some((fold, 201)), None));
        assert!(table.keys.is_empty() && table.began.is_empty());
    }

    /// A sender who makes a new key with each packet finds no more room than half; others fold on.
    #[test]
    fn a_flood_of_keys_does_not_take_the_room_of_another_rule() {
        let mut table = FoldTable::new(10);
        for key in 0..200_000 {
            assert_eq!(table.note(key, 1, 0, 0, || ()), FoldedAs::First);
        }
        assert_eq!((table.keys.len(), table.unfolded()), (FOLD_KEYS_MAX / 2, 200_000 - FOLD_KEYS_MAX as u64 / 2));
        for key in 1_000_000..1_001_000 {
            assert_eq!(table.note(key, 2, 0, 0, || ()), FoldedAs::First);
            assert_eq!(table.note(key, 2, 0, 0, || ()), FoldedAs::Kept);
        }
        assert_eq!(table.note(7, 1, 0, 0, || ()), FoldedAs::Kept, "what was there before the flood stays");
        assert_eq!(std::iter::from_fn(|| table.next_due(10)).count(), 1001);
        assert!(table.shares.take(1));
    }
}
