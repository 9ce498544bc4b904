//! Rows of one round compared with those of the round before: what is new, what is gone, how fast counters grow.
//!
//! [`DiffState`] lives as long as the rounds do; [`DiffSource`] stands between a source and a plan for one of them. Knows
//! rows only by [`DiffTable`]; what a counter is, and where it comes from, is the table's business.
//!
//! # How a row is found again
//!
//! The kernel walks its tables in an order that changes only where sockets come and go. So the memory is a list with a
//! link from each row to the one that came behind it: nearly always that is the next one, and finding it is a look at
//! memory that lies side by side. Only where the guess fails, the index is asked (a hash table of identities).
//!
//! A row that is the same as before, byte for byte ([`record::RowCache`]), is not even looked for: its place is known,
//! and that it was seen is noted in a list of its own, four bytes a row.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use record::rows::{Change, Counters, DiffTable, Identity, Rate, RowDiff};
use record::{
    Accounting, Demand, Each, Next, Offer, Reused, RowBytes, RowCache, Scan, Source, SourceError, field_index,
};
use std::cell::RefCell;
use std::hash::BuildHasher;

/// How many rows are remembered at most: about 128 bytes each for sockets, so 256 MiB. More are shown, but neither
/// found again nor missed; the accounting says so.
pub const ROWS_MAX: usize = 2 << 20;

/// What was not seen for so many rounds that were not whole (`--limit` ended them) is forgotten: it cannot be known to
/// be gone.
const ROUNDS_UNSEEN_MAX: u32 = 16;

/// Rounds whose times are known: more than there are between two looks at a row that is not forgotten.
const TIMES: usize = 2 * ROUNDS_UNSEEN_MAX as usize;

/// No row.
const NONE: u32 = u32::MAX;

/// One remembered row.
struct Entry<K> {
    identity: Identity,
    counters: Option<Counters>,
    /// Place of the row that came behind it.
    next: u32,
    kept: K,
}

/// What is remembered from round to round.
pub struct DiffState<T: DiffTable> {
    rows_max: usize,
    /// `None`: a place that is free.
    rows: Vec<Option<Entry<T::Kept>>>,
    /// The round that each was seen in last; [`NONE`] where the place is free.
    seen: Vec<u32>,
    free: Vec<u32>,
    index: HashTable<u32>,
    hasher: RandomState,
    secret: u64,
    /// 0 before the first.
    round: u32,
    /// When the latest rounds were, by their numbers.
    times: [u64; TIMES],
    /// The place of the row just met, if it will tell nothing else when it comes again unchanged.
    settled: Option<u32>,
    /// The row seen last, and the first of the round.
    last: u32,
    first: u32,
    /// The round before was read to its end, so that what it had not is new.
    whole: bool,
    left_out: u64,
}

impl<T: DiffTable> Default for DiffState<T> {
    fn default() -> DiffState<T> {
        DiffState::with_rows(ROWS_MAX)
    }
}

impl<T: DiffTable> DiffState<T> {
    /// A memory of at most `rows_max` rows.
    pub fn with_rows(rows_max: usize) -> DiffState<T> {
        let hasher = RandomState::default();
        DiffState {
            rows_max: rows_max.min(NONE as usize),
            rows: Vec::new(),
            seen: Vec::new(),
            free: Vec::new(),
            index: HashTable::new(),
            secret: hasher.hash_one(NONE),
            hasher,
            round: 0,
            times: [0; TIMES],
            settled: None,
            last: NONE,
            first: NONE,
            whole: false,
            left_out: 0,
        }
    }

    /// A new round begins at `now_ns` of a clock that does not jump.
    fn begin(&mut self, now_ns: u64) {
        self.round = self.round.saturating_add(1).min(NONE - 1);
        if let Some(time) = self.times.get_mut(self.round as usize % TIMES) {
            *time = now_ns;
        }
        self.last = NONE;
        self.left_out = 0;
    }

    /// What is known of this row; from now on it is remembered.
    #[inline]
    fn meet(&mut self, row: &T::Row<'_>) -> RowDiff {
        self.settled = None;
        let (identity, counters) = (T::identity(row, self.secret), T::counters(row));
        let Some(place) = self.find(identity) else { return self.add(row, identity, counters) };
        self.link(place);
        let round = self.round;
        let interval_ns = self.time_of(round).saturating_sub(self.time_of(self.seen_in(place)));
        if self.see(place) == round {
            // It came twice: what is known of it was said the first time.
            return RowDiff { change: (round > 1).then_some(Change::Kept), rate: None };
        }
        let Some(Some(entry)) = self.rows.get_mut(place as usize) else { return RowDiff::default() };
        let same = T::is_same(&entry.kept, row);
        let rate = match (entry.counters, counters) {
            (Some(before), Some(now)) if same => Some(Rate { before, now, interval_ns }),
            _ => None,
        };
        (entry.counters, entry.kept) = (counters, T::keep(row));
        let rests = match rate {
            Some(rate) => rate.before == rate.now && rate.interval_ns > 0,
            None => counters.is_none(),
        };
        self.settled = Some(place).filter(|_| same && rests);
        // What was there under this identity is gone, and this row took its place: it is shown, the other is not.
        RowDiff { change: Some(if same { Change::Kept } else { Change::New }), rate }
    }

    /// The row at `place` is there again and is the same.
    #[inline]
    fn touch(&mut self, place: u32) {
        self.see(place);
        if self.last == NONE {
            self.first = place;
        }
        // The link to it is as it was, or will be made when the row before it is met again.
        self.last = place;
    }

    /// Notes that the row at `place` was seen; the round it was seen in before.
    #[inline]
    fn see(&mut self, place: u32) -> u32 {
        match self.seen.get_mut(place as usize) {
            Some(seen) => std::mem::replace(seen, self.round),
            None => NONE,
        }
    }

    fn seen_in(&self, place: u32) -> u32 {
        self.seen.get(place as usize).copied().unwrap_or(NONE)
    }

    fn time_of(&self, round: u32) -> u64 {
        self.times.get(round as usize % TIMES).copied().unwrap_or(0)
    }

    /// The place of a row: guessed from the order of the round before, else looked up.
    #[inline]
    fn find(&self, identity: Identity) -> Option<u32> {
        let guess = match self.rows.get(self.last as usize) {
            Some(Some(last)) => last.next,
            _ => self.first,
        };
        match self.rows.get(guess as usize) {
            Some(Some(entry)) if entry.identity == identity => Some(guess),
            _ => self.look_up(identity),
        }
    }

    fn look_up(&self, identity: Identity) -> Option<u32> {
        let is_it = |place: &u32| matches!(self.rows.get(*place as usize), Some(Some(e)) if e.identity == identity);
        self.index.find(self.hasher.hash_one(identity), is_it).copied()
    }

    /// The row at `place` was seen behind the last one.
    #[inline]
    fn link(&mut self, place: u32) {
        match self.rows.get_mut(self.last as usize) {
            Some(Some(last)) => last.next = place,
            _ => self.first = place,
        }
        self.last = place;
    }

    fn add(&mut self, row: &T::Row<'_>, identity: Identity, counters: Option<Counters>) -> RowDiff {
        // Without a whole round before, nobody knows whether it was there.
        let change = (self.round > 1 && self.whole).then_some(Change::New);
        let diff = RowDiff { change, rate: None };
        let kept = T::keep(row);
        let entry = Entry { identity, counters, next: NONE, kept };
        let Some(place) = self.room() else {
            self.left_out += 1;
            // It may have been left out before as well.
            return RowDiff::default();
        };
        if let Some(slot) = self.rows.get_mut(place as usize) {
            *slot = Some(entry);
        }
        self.see(place);
        let (rows, hasher) = (&self.rows, &self.hasher);
        let hash_at = |place: &u32| match rows.get(*place as usize) {
            Some(Some(entry)) => hasher.hash_one(entry.identity),
            _ => 0,
        };
        self.index.insert_unique(hasher.hash_one(identity), place, hash_at);
        self.link(place);
        diff
    }

    /// A place for one row more.
    fn room(&mut self) -> Option<u32> {
        if let Some(place) = self.free.pop() {
            return Some(place);
        }
        if self.rows.len() >= self.rows_max {
            return None;
        }
        let place = u32::try_from(self.rows.len()).ok()?;
        self.rows.push(None);
        self.seen.push(NONE);
        Some(place)
    }

    /// Forgets the rows that were not seen in this round and hands each to `each`, if the round was `whole`; otherwise
    /// only those that nobody has seen for long.
    fn end(&mut self, whole: bool, each: &mut dyn FnMut(&T::Row<'_>)) {
        let keep_from = if whole { self.round } else { self.round.saturating_sub(ROUNDS_UNSEEN_MAX) };
        let diff = RowDiff { change: Some(Change::Gone), rate: None };
        for (place, seen) in self.seen.iter_mut().enumerate() {
            // A free place has the greatest number.
            if *seen >= keep_from {
                continue;
            }
            *seen = NONE;
            let Some(entry) = self.rows.get_mut(place).and_then(Option::take) else { continue };
            if let Ok(place) = u32::try_from(place) {
                let found = self.index.find_entry(self.hasher.hash_one(entry.identity), |at| *at == place);
                if let Ok(found) = found {
                    found.remove();
                }
                self.free.push(place);
            }
            if whole {
                each(&T::gone(entry.identity, &entry.kept, &diff));
            }
        }
        self.whole = whole;
    }

    /// Ends a round that was read: hands the rows that are gone to `each`, which answers `None` if nobody wants them.
    fn finish(
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
        let whole = !stopped && !stats.lacks_rows();
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
            let words = format!("more than {} rows: the others have no rates and are not missed", self.rows_max);
            stats.add_reason(self.left_out, words);
        }
        Ok(stats)
    }
}

/// A source whose rows know what they were in the round before.
///
/// Rows that are gone come last, if the demand has `change` in it; as what they were when they were seen last, they
/// have passed the part of the filter that the source does. What no longer passes that part is gone, too.
pub struct DiffSource<'s, T: DiffTable> {
    source: &'s dyn Source<T>,
    state: &'s RefCell<DiffState<T>>,
    now_ns: u64,
}

impl<'s, T: DiffTable> DiffSource<'s, T> {
    /// One round over `source`, at `now_ns` of a clock that does not jump (in a replay: the recorded time).
    pub fn new(source: &'s dyn Source<T>, state: &'s RefCell<DiffState<T>>, now_ns: u64) -> DiffSource<'s, T> {
        DiffSource { source, state, now_ns }
    }
}

/// True if some field of the demand is about the round before.
fn is_wanted<T: DiffTable>(demand: &Demand<T>) -> bool {
    let about = |&i: &usize| T::FIELDS.get(i).is_some_and(|f| f.name == CHANGE || f.name.ends_with("_per_s"));
    demand.fields.iter().any(about)
}

/// The field that asks for rows that are gone.
const CHANGE: &str = "change";

impl<T: DiffTable> Source<T> for DiffSource<'_, T> {
    fn prepare(&self, demand: &Demand<T>) -> Box<dyn Scan<T> + '_> {
        let inner = self.source.prepare(demand);
        if !is_wanted(demand) {
            return inner;
        }
        let shows_gone = field_index::<T>(CHANGE).is_some_and(|change| demand.fields.contains(&change));
        Box::new(DiffScan { inner, state: self.state, now_ns: self.now_ns, shows_gone })
    }
}

/// A scan whose rows are compared with the round before.
struct DiffScan<'s, T: DiffTable> {
    inner: Box<dyn Scan<T> + 's>,
    state: &'s RefCell<DiffState<T>>,
    now_ns: u64,
    /// True if rows that are gone are handed out, too.
    shows_gone: bool,
}

impl<T: DiffTable> Scan<T> for DiffScan<'_, T> {
    fn offer(&self) -> Offer {
        self.inner.offer()
    }

    fn run(&mut self, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        let state = &mut *self.state.borrow_mut();
        state.begin(self.now_ns);
        let mut stopped = false;
        let read = self.inner.run(&mut |row| {
            let next = each(&T::with_diff(row, &state.meet(row)));
            stopped |= next == Next::Stop;
            next
        });
        state.finish(read, stopped, &mut |row| if self.shows_gone { Some(each(row)) } else { None })
    }

    fn run_cached(&mut self, cache: &dyn RowCache, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        let mut state = self.state.borrow_mut();
        state.begin(self.now_ns);
        let through = Through { state: RefCell::new((&mut *state, false)), cache };
        let mut stopped = false;
        let read = self.inner.run_cached(&through, &mut |row| {
            let diff = through.meet(row);
            let next = each(&T::with_diff(row, &diff));
            stopped |= next == Next::Stop;
            next
        });
        let (state, stopped_by_reused) = through.state.into_inner();
        state.finish(read, stopped || stopped_by_reused, &mut |row| {
            self.shows_gone.then(|| {
                cache.set_tag(None);
                each(row)
            })
        })
    }
}

/// Passes rows on to the cache of the engine and marks those that it reuses as seen.
struct Through<'m, T: DiffTable> {
    /// With whether no more rows were wanted after a reused one.
    state: RefCell<(&'m mut DiffState<T>, bool)>,
    cache: &'m dyn RowCache,
}

impl<T: DiffTable> Through<'_, T> {
    #[inline]
    fn meet(&self, row: &T::Row<'_>) -> RowDiff {
        let state = &mut *self.state.borrow_mut().0;
        let diff = state.meet(row);
        self.cache.set_tag(state.settled);
        diff
    }
}

impl<T: DiffTable> RowCache for Through<'_, T> {
    fn exclude_field(&self, field: usize) -> bool {
        self.cache.exclude_field(field)
    }

    #[inline]
    fn reuse(&self, bytes: RowBytes<'_>) -> Option<Reused> {
        let again = self.cache.reuse(bytes)?;
        let mut state = self.state.borrow_mut();
        state.0.touch(again.tag);
        state.1 |= again.next == Next::Stop;
        Some(again)
    }

    fn invalidate(&self) {
        self.cache.invalidate();
    }

    fn set_tag(&self, _tag: Option<u32>) {}
}

#[cfg(test)]
mod tests;
