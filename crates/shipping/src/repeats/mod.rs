//! `--fold` and `--rate`: rows without a message of their own, and the rows that stand for them.

mod log;
mod nat;

use super::gate::{Fate, Notice, RateBy, RepeatRequest, RowGate};
use super::row_writer::Shipped;
use export::{FoldOutcome, FoldTable, FoldedRecords, KeyMaker, LimitedAs, RATE_WINDOW_NS, RateTable};
use record::Value;
use std::time::Duration;

/// A table whose rows can be folded and limited. Only these functions define which rows are equal.
pub(crate) trait Keyed: Shipped {
    /// A row that owns its data.
    type Kept;

    /// Appends the values that rows must share to be folded.
    fn put_fold_key(row: &Self::Row<'_>, key: &mut Vec<u8>);

    /// Appends the key of the rate limit.
    fn put_rate_key(row: &Self::Row<'_>, by: RateBy, key: &mut Vec<u8>);

    /// Appends the rate limit's key in human-readable form.
    fn put_rate_words(row: &Self::Row<'_>, by: RateBy, out: &mut Vec<u8>);

    /// Copies a row, reusing the memory of an earlier copy if given.
    fn keep(row: &Self::Row<'_>, spare: Option<Self::Kept>) -> Self::Kept;

    /// Hands a copied row to `then`, with a different time if given.
    fn with_kept(kept: &Self::Kept, time_ns: Option<u64>, then: &mut dyn FnMut(&Self::Row<'_>));
}

/// Maximum number of copies whose memory is kept for reuse.
const SPARE_MAX: usize = 1024;

/// The gate for a keyed table.
pub(crate) struct KeyedGate<T: Keyed> {
    keys: KeyMaker,
    fold: Option<FoldTable<T::Kept>>,
    rate: Option<(RateTable<T::Kept>, RateBy)>,
    spare: Vec<T::Kept>,
    /// Buffer for a key.
    key: Vec<u8>,
    /// The time when the current batch began, used for all its rows.
    now_ns: u64,
}

impl<T: Keyed> KeyedGate<T> {
    /// Makes a gate for the request; `None` if neither folding nor a rate is requested.
    pub(crate) fn new(request: &RepeatRequest) -> Option<KeyedGate<T>> {
        let window = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let fold = request.fold.map(|time| FoldTable::new(window(time)));
        let rate = request.rate.map(|(rate, by)| (RateTable::new(rate), by));
        (fold.is_some() || rate.is_some()).then(|| KeyedGate {
            keys: KeyMaker::default(),
            fold,
            rate,
            spare: Vec::new(),
            key: Vec::with_capacity(256),
            now_ns: sys::clock::monotonic_ns(),
        })
    }

    fn recycle(&mut self, kept: T::Kept) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(kept);
        }
    }

    fn say_limited(&mut self, is_end: bool, each: &mut dyn FnMut(&T::Row<'_>, &Notice)) {
        let now = self.now_ns;
        while let Some((rate, by)) = &mut self.rate {
            let Some((records, kept)) = (if is_end { rate.next_at_end() } else { rate.next_due(now) }) else { return };
            let by = *by;
            T::with_kept(&kept, None, &mut |row| each(row, &limited::<T>(row, by, records)));
            self.recycle(kept);
        }
    }

    fn say_folded(&mut self, is_end: bool, each: &mut dyn FnMut(&T::Row<'_>, &Notice)) {
        let now = self.now_ns;
        while let Some(fold) = &mut self.fold {
            let Some((fold, kept)) = (if is_end { fold.next_at_end(now) } else { fold.next_due(now) }) else { return };
            T::with_kept(&kept, Some(fold.last_ns), &mut |row| each(row, &folded(&fold)));
            self.recycle(kept);
        }
    }
}

impl<T: Keyed> RowGate<T> for KeyedGate<T> {
    fn fate(&mut self, row: &T::Row<'_>) -> Fate {
        let (class, now, spare) = (T::class(row), self.now_ns, &mut self.spare);
        if let Some((rate, by)) = &mut self.rate {
            self.key.clear();
            T::put_rate_key(row, *by, &mut self.key);
            match rate.add_record(self.keys.key(&self.key), class, now, || T::keep(row, spare.pop())) {
                LimitedAs::Below => {}
                LimitedAs::Kept => return Fate::StandsForLimited,
                LimitedAs::Limited => return Fate::Limited,
            }
        }
        let Some(fold) = &mut self.fold else { return Fate::Ship };
        self.key.clear();
        T::put_fold_key(row, &mut self.key);
        match fold.add_record(self.keys.key(&self.key), class, T::time_ns(row), now, || T::keep(row, spare.pop())) {
            FoldOutcome::First => Fate::Ship,
            FoldOutcome::Kept => Fate::StandsForFolded,
            FoldOutcome::Folded => Fate::Folded,
        }
    }

    fn take_due(&mut self, is_end: bool, each: &mut dyn FnMut(&T::Row<'_>, &Notice)) {
        self.now_ns = sys::clock::monotonic_ns();
        self.say_limited(is_end, each);
        self.say_folded(is_end, each);
    }

    fn unfolded(&self) -> u64 {
        self.fold.as_ref().map_or(0, FoldTable::unfolded_records)
    }
}

/// Makes the notice ` ×1203 in 10 s`.
fn folded(fold: &FoldedRecords) -> Notice {
    let seconds = fold.window_ns.div_ceil(1_000_000_000).max(1);
    Notice {
        is_fold: true,
        cells: [Value::U64(fold.records), Value::Time(fold.first_ns), Value::Null],
        words: format!(" ×{} in {seconds} s", fold.records).into_bytes(),
    }
}

/// Makes the notice ` (limited 5321 more records of prefix "fw-drop: " in 10 s)`.
fn limited<T: Keyed>(row: &T::Row<'_>, by: RateBy, records: u64) -> Notice {
    let mut words = Vec::new();
    if records > 0 {
        words.extend_from_slice(format!(" (limited {records} more records of ").as_bytes());
        T::put_rate_words(row, by, &mut words);
        words.extend_from_slice(format!(" in {} s)", RATE_WINDOW_NS / 1_000_000_000).as_bytes());
    }
    let count = if records > 0 { Value::U64(records) } else { Value::Null };
    Notice { is_fold: false, cells: [Value::Null, Value::Null, count], words }
}
