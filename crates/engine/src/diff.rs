//! Comparison of a round's rows with the round before: which rows are new or gone, and how fast counters grow.
//!
//! A [`DiffState`] lives as long as the rounds do; a [`DiffSource`] is placed between a source and a plan for one
//! round. Both know rows only through [`DiffTable`], which defines the identity and the counters of a row.
//!
//! A row whose bytes are the same as in the round before ([`RowCache`]) is not compared at all: its place in the state
//! is known, and a write of four bytes marks it as seen.
mod state;

use record::rows::{DiffTable, RowDiff};
use record::{
    Accounting, CachedRow, Demand, Each, Next, Offer, RowBytes, RowCache, Scan, Source, SourceError, field_index,
};
use std::cell::RefCell;

pub use state::{DiffState, ROWS_MAX};

/// A source whose rows carry the difference to the round before.
///
/// If the demand has the field `change`, rows that are gone come last, in the form in which they were last seen. A row
/// that no longer passes the part of the filter that the inner source applies also counts as gone.
pub struct DiffSource<'s, T: DiffTable> {
    source: &'s dyn Source<T>,
    state: &'s RefCell<DiffState<T>>,
    now_ns: u64,
}

impl<'s, T: DiffTable> DiffSource<'s, T> {
    /// One round over `source`, at `now_ns` of a monotonic clock (in a replay: the recorded time).
    pub fn new(source: &'s dyn Source<T>, state: &'s RefCell<DiffState<T>>, now_ns: u64) -> DiffSource<'s, T> {
        DiffSource { source, state, now_ns }
    }
}

/// True if a field of the demand compares rounds; otherwise the inner source is used directly.
fn is_wanted<T: DiffTable>(demand: &Demand<T>) -> bool {
    let about = |&i: &usize| T::FIELDS.get(i).is_some_and(|f| f.name == CHANGE || f.name.ends_with("_per_s"));
    demand.fields.iter().any(about)
}

/// The field that requests rows that are gone.
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
    /// True if rows that are gone are also passed on.
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
            let next = each(&T::with_diff(row, &state.compare_row(row)));
            stopped |= next == Next::Stop;
            next
        });
        state.finish(read, stopped, &mut |row| if self.shows_gone { Some(each(row)) } else { None })
    }

    fn run_cached(&mut self, cache: &dyn RowCache, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        let mut state = self.state.borrow_mut();
        state.begin(self.now_ns);
        let through = MarkingCache { state: RefCell::new((&mut *state, false)), cache };
        let mut stopped = false;
        let read = self.inner.run_cached(&through, &mut |row| {
            let diff = through.compare_row(row);
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

/// A cache between the inner source and the engine's cache of rendered rows: marks the rows that the engine's cache
/// reuses as seen. Their place in the state is the cache's tag.
struct MarkingCache<'m, T: DiffTable> {
    /// The state, and true once a reused row has ended the round.
    state: RefCell<(&'m mut DiffState<T>, bool)>,
    cache: &'m dyn RowCache,
}

impl<T: DiffTable> MarkingCache<'_, T> {
    #[inline]
    fn compare_row(&self, row: &T::Row<'_>) -> RowDiff {
        let state = &mut *self.state.borrow_mut().0;
        let diff = state.compare_row(row);
        self.cache.set_tag(state.settled);
        diff
    }
}

impl<T: DiffTable> RowCache for MarkingCache<'_, T> {
    fn exclude_field(&self, field: usize) -> bool {
        self.cache.exclude_field(field)
    }

    #[inline]
    fn reuse(&self, bytes: RowBytes<'_>) -> Option<CachedRow> {
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
