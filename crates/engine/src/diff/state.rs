//! The rows that are remembered from round to round, and the search for a row of the next round among them.
//!
//! The kernel walks its tables in an order that changes only where rows come and go. So each remembered row has a link
//! to its successor: the next row is nearly always found there, next to the last one in memory. Otherwise a hash table
//! of identities finds it.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use record::rows::{Change, Counters, DiffTable, Identity, Rate, RowDiff};
use record::{Accounting, Next, SourceError};
use std::hash::BuildHasher;

/// Most rows that are remembered: about 128 bytes each for sockets, so 256 MiB. Further rows are shown without rates
/// and are not reported as gone; the accounting reports their number.
///
/// Bound: rows that `--watch` remembers. Beyond: further rows have no rates and are not reported as gone; reported. By:
/// a local user with as many sockets.
pub const ROWS_MAX: usize = 2 << 20;

/// After this many rounds that were not read to their end (`--limit`), a row that none of them had is forgotten. It
/// may still be there, so it is not reported as gone.
const ROUNDS_UNSEEN_MAX: u32 = 16;

/// Number of rounds whose times are kept: more than can pass before an unseen row is forgotten.
const TIMES: usize = 2 * ROUNDS_UNSEEN_MAX as usize;

/// Marks a missing place.
const NO_PLACE: u32 = u32::MAX;

/// A remembered row.
pub(super) struct Entry<K> {
    identity: Identity,
    counters: Option<Counters>,
    /// Place of its successor in the last round.
    next: u32,
    /// The data with which the row is shown once it is gone.
    kept: K,
}

/// The rows that are remembered from round to round. A *place* is an index into `rows` and `seen`; it stays the same
/// as long as the row is remembered.
pub struct DiffState<T: DiffTable> {
    /// Most rows that are remembered.
    rows_max: usize,
    /// The rows by place; `None` for a free place.
    pub(super) rows: Vec<Option<Entry<T::Saved>>>,
    /// For each place, the round in which the row was last seen; [`NONE`] for a free place.
    seen: Vec<u32>,
    /// Free places.
    free: Vec<u32>,
    /// Places by the hash of the row's identity.
    pub(super) index: HashTable<u32>,
    hasher: RandomState,
    /// Mixed into identities, so that outsiders cannot construct rows whose identities collide.
    secret: u64,
    /// Number of the round; 0 before the first.
    round: u32,
    /// Start of the latest rounds in nanoseconds; the index is the round's number modulo [`TIMES`].
    times: [u64; TIMES],
    /// Place of the last row, if the same bytes give the same cells in the next round: its rates are 0 or null.
    pub(super) settled: Option<u32>,
    /// Place of the last row in this round; next, of the round's first row.
    last: u32,
    first: u32,
    /// True if the last round was read to its end: then a row that it did not have is new.
    whole: bool,
    /// Rows of this round that were not remembered for lack of places.
    left_out: u64,
}

impl<T: DiffTable> Default for DiffState<T> {
    fn default() -> DiffState<T> {
        DiffState::with_rows(ROWS_MAX)
    }
}

impl<T: DiffTable> DiffState<T> {
    /// A state for at most `rows_max` rows.
    pub fn with_rows(rows_max: usize) -> DiffState<T> {
        let hasher = RandomState::default();
        DiffState {
            rows_max: rows_max.min(NO_PLACE as usize),
            rows: Vec::new(),
            seen: Vec::new(),
            free: Vec::new(),
            index: HashTable::new(),
            secret: hasher.hash_one(NO_PLACE),
            hasher,
            round: 0,
            times: [0; TIMES],
            settled: None,
            last: NO_PLACE,
            first: NO_PLACE,
            whole: false,
            left_out: 0,
        }
    }

    /// Begins a round at `now_ns` of a monotonic clock.
    pub(super) fn begin(&mut self, now_ns: u64) {
        self.round = self.round.saturating_add(1).min(NO_PLACE - 1);
        if let Some(time) = self.times.get_mut(self.round as usize % TIMES) {
            *time = now_ns;
        }
        self.last = NO_PLACE;
        self.left_out = 0;
    }

    /// Compares a row with the round before, and remembers it.
    #[inline]
    pub(super) fn compare_row(&mut self, row: &T::Row<'_>) -> RowDiff {
        self.settled = None;
        let (identity, counters) = (T::identity(row, self.secret), T::counters(row));
        let Some(place) = self.find(identity) else { return self.add(row, identity, counters) };
        self.link(place);
        let round = self.round;
        let interval_ns = self.time_of(round).saturating_sub(self.time_of(self.round_seen(place)));
        if self.mark_seen(place) == round {
            // The row came twice in this round; its first copy was compared with the round before.
            return RowDiff { change: (round > 1).then_some(Change::Kept), rate: None };
        }
        let Some(Some(entry)) = self.rows.get_mut(place as usize) else { return RowDiff::default() };
        let same = T::is_same(&entry.kept, row);
        let rate = match (entry.counters, counters) {
            (Some(before), Some(now)) if same => Some(Rate { before, now, interval_ns }),
            _ => None,
        };
        (entry.counters, entry.kept) = (counters, T::save(row));
        let rests = match rate {
            Some(rate) => rate.before == rate.now && rate.interval_ns > 0,
            None => counters.is_none(),
        };
        self.settled = Some(place).filter(|_| same && rests);
        // A different row has taken over the identity: it is new, and the old one is not reported as gone.
        RowDiff { change: Some(if same { Change::Kept } else { Change::New }), rate }
    }

    /// Records that the row at `place` came again unchanged.
    #[inline]
    pub(super) fn touch(&mut self, place: u32) {
        self.mark_seen(place);
        if self.last == NO_PLACE {
            self.first = place;
        }
        // The link to it is still right, or is corrected when its predecessor is next compared.
        self.last = place;
    }

    /// Marks the row at `place` as seen in this round. Returns the round in which it was seen before.
    #[inline]
    fn mark_seen(&mut self, place: u32) -> u32 {
        match self.seen.get_mut(place as usize) {
            Some(seen) => std::mem::replace(seen, self.round),
            None => NO_PLACE,
        }
    }

    /// Returns the round in which the row at `place` was last seen.
    fn round_seen(&self, place: u32) -> u32 {
        self.seen.get(place as usize).copied().unwrap_or(NO_PLACE)
    }

    /// Returns the start of a round in nanoseconds; wrong for rounds more than [`TIMES`] ago.
    fn time_of(&self, round: u32) -> u64 {
        self.times.get(round as usize % TIMES).copied().unwrap_or(0)
    }

    /// Finds the place of a row: first tries the successor of the last row, then the index.
    #[inline]
    fn find(&self, identity: Identity) -> Option<u32> {
        let guess = match self.rows.get(self.last as usize) {
            Some(Some(last)) => last.next,
            _ => self.first,
        };
        match self.rows.get(guess as usize) {
            Some(Some(entry)) if entry.identity == identity => Some(guess),
            _ => self.find_place(identity),
        }
    }

    /// Finds the place of a row in the index.
    fn find_place(&self, identity: Identity) -> Option<u32> {
        let is_it = |place: &u32| matches!(self.rows.get(*place as usize), Some(Some(e)) if e.identity == identity);
        self.index.find(self.hasher.hash_one(identity), is_it).copied()
    }

    /// Records that the row at `place` follows the last row.
    #[inline]
    fn link(&mut self, place: u32) {
        match self.rows.get_mut(self.last as usize) {
            Some(Some(last)) => last.next = place,
            _ => self.first = place,
        }
        self.last = place;
    }

    /// Remembers an unknown row.
    fn add(&mut self, row: &T::Row<'_>, identity: Identity, counters: Option<Counters>) -> RowDiff {
        // Without a complete round before, it is unknown whether the row is new.
        let change = (self.round > 1 && self.whole).then_some(Change::New);
        let diff = RowDiff { change, rate: None };
        let kept = T::save(row);
        let entry = Entry { identity, counters, next: NO_PLACE, kept };
        let Some(place) = self.room() else {
            self.left_out += 1;
            // It may also have been left out in the round before.
            return RowDiff::default();
        };
        if let Some(slot) = self.rows.get_mut(place as usize) {
            *slot = Some(entry);
        }
        self.mark_seen(place);
        let (rows, hasher) = (&self.rows, &self.hasher);
        let hash_at = |place: &u32| match rows.get(*place as usize) {
            Some(Some(entry)) => hasher.hash_one(entry.identity),
            _ => 0,
        };
        self.index.insert_unique(hasher.hash_one(identity), place, hash_at);
        self.link(place);
        diff
    }

    /// Returns a place for one more row; `None` if there are already `rows_max`.
    fn room(&mut self) -> Option<u32> {
        if let Some(place) = self.free.pop() {
            return Some(place);
        }
        if self.rows.len() >= self.rows_max {
            return None;
        }
        let place = u32::try_from(self.rows.len()).ok()?;
        self.rows.push(None);
        self.seen.push(NO_PLACE);
        Some(place)
    }

    /// Ends a round. After a `whole` round, rows that were not seen are gone: each is passed to `each` and forgotten.
    /// After an incomplete one, only rows not seen for [`ROUNDS_UNSEEN_MAX`] rounds are forgotten, and none is
    /// reported.
    fn end(&mut self, whole: bool, each: &mut dyn FnMut(&T::Row<'_>)) {
        let keep_from = if whole { self.round } else { self.round.saturating_sub(ROUNDS_UNSEEN_MAX) };
        let diff = RowDiff { change: Some(Change::Gone), rate: None };
        for (place, seen) in self.seen.iter_mut().enumerate() {
            // A free place has the largest number, so it is skipped here.
            if *seen >= keep_from {
                continue;
            }
            *seen = NO_PLACE;
            let Some(entry) = self.rows.get_mut(place).and_then(Option::take) else { continue };
            if let Ok(place) = u32::try_from(place) {
                let found = self.index.find_entry(self.hasher.hash_one(entry.identity), |at| *at == place);
                if let Ok(found) = found {
                    found.remove();
                }
                self.free.push(place);
            }
            if whole {
                each(&T::vanished_row(entry.identity, &entry.kept, &diff));
            }
        }
        self.whole = whole;
    }

    /// Ends a round with the result of its reading. Rows that are gone are passed to `each`, which returns `None` if
    /// they are not wanted; those that it takes count as seen.
    pub(super) fn finish(
        &mut self,
        read: Result<Accounting, SourceError>,
        mut stopped: bool,
        each: &mut dyn FnMut(&T::Row<'_>) -> Option<Next>,
    ) -> Result<Accounting, SourceError> {
        let mut stats = match read {
            Ok(stats) => stats,
            Err(error) => {
                self.end(false, &mut |_| {});
                return Err(error);
            }
        };
        // A namespace that cannot be entered was not in the round before either, or it is being removed.
        let whole = !stopped && !stats.lacks_rows_of_namespaces();
        let mut gone = 0;
        self.end(whole, &mut |row| {
            if !stopped {
                if let Some(next) = each(row) {
                    gone += 1;
                    stopped = next == Next::Stop;
                }
            }
        });
        stats.seen += gone;
        if self.left_out > 0 {
            let words = format!(
                "more than {} rows: the others have no rates, and their disappearance is not reported",
                self.rows_max
            );
            stats.add_reason(self.left_out, words);
        }
        Ok(stats)
    }
}
