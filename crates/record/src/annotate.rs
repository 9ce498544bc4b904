//! Adds to rows what their source does not carry: owners, rules, connections.

use crate::{Accounting, Demand, Each, Next, Offer, RowCache, Scan, Source, SourceError, Stream, StreamState, Table};
use std::cell::RefCell;

/// Adds something to the rows of a table before filter and columns see them.
///
/// The calls for one batch of a stream, or one round of a table, are `begin`, a `row` for each row that arrives, `end`.
/// If the reader wants no more rows, `stop` follows at once.
pub trait Annotate<T: Table> {
    /// Adds what the annotator does to the lines of `--explain`.
    fn explain(&self, offer: &mut Offer) {
        let _ = offer;
    }

    /// Called before the rows of a batch or round are read: the moment to read what they need. May hand out rows that
    /// have waited; [`Next::Stop`] if no rows are to be read. `need` has the demand's bits.
    fn begin(&mut self, need: u64, each: &mut Each<'_, T>) -> Next {
        let _ = (need, each);
        Next::More
    }

    /// Hands `row` to `each` with what is to be added, or keeps a copy back until [`Annotate::end`] or a later batch.
    fn row(&mut self, row: &T::Row<'_>, each: &mut Each<'_, T>) -> Next;

    /// Called after the rows of a batch or round. May hand out rows that have waited; with `is_last` all of them, for
    /// no other batch follows.
    fn end(&mut self, need: u64, is_last: bool, each: &mut Each<'_, T>) -> Next {
        let _ = (need, is_last, each);
        Next::More
    }

    /// Called if the reader wants no more rows: those that wait are not handed out.
    fn stop(&mut self) {}

    /// Adds what could not be added to rows, and why, to the row counts of a stream or of one round.
    fn close(&mut self, stats: &mut Accounting);

    /// Wraps the cache of a round, if what is added may change while the row's bytes stay the same.
    fn cache<'c>(&self, cache: &'c dyn RowCache) -> Option<Box<dyn RowCache + 'c>>
    where
        Self: 'c,
    {
        let _ = cache;
        None
    }
}

/// The rows of a [`Source`] or a [`Stream`] with what an annotator adds. Costs one dynamic call per row.
pub struct Annotated<S, A> {
    rows: S,
    annotator: RefCell<A>,
}

impl<S, A> Annotated<S, A> {
    /// Adds to the rows of `rows` what `annotator` finds.
    pub fn new(rows: S, annotator: A) -> Annotated<S, A> {
        Annotated { rows, annotator: RefCell::new(annotator) }
    }
}

/// Adds to the rows of `stream` what each of `annotators` finds; later ones see what earlier ones have added.
pub fn annotated<'s, T: Table>(
    stream: &'s mut dyn Stream<T>,
    annotators: impl IntoIterator<Item = Box<dyn Annotate<T> + 's>>,
) -> Box<dyn Stream<T> + 's> {
    let stream: Box<dyn Stream<T> + 's> = Box::new(stream);
    annotators.into_iter().fold(stream, |stream, annotator| Box::new(Annotated::new(stream, annotator)))
}

/// Passes the rows that `read` hands out through `annotator`. `is_last` tells from the result of `read` whether
/// another batch follows. `None` if nothing was read.
fn pass_rows<T: Table, R>(
    annotator: &mut impl Annotate<T>,
    need: u64,
    each: &mut Each<'_, T>,
    read: impl FnOnce(&mut Each<'_, T>) -> R,
    is_last: impl FnOnce(&R) -> bool,
) -> Option<R> {
    let (mut next, mut result) = (annotator.begin(need, each), None);
    if next == Next::More {
        let read = read(&mut |row| {
            next = annotator.row(row, each);
            next
        });
        if next == Next::More {
            next = annotator.end(need, is_last(&read), each);
        }
        result = Some(read);
    }
    if next == Next::Stop {
        annotator.stop();
    }
    result
}

impl<T: Table, S: Stream<T>, A: Annotate<T>> Stream<T> for Annotated<S, A> {
    fn offer(&self, demand: &Demand<T>) -> Offer {
        let mut offer = self.rows.offer(demand);
        self.annotator.borrow().explain(&mut offer);
        offer
    }

    fn next(&mut self, demand: &Demand<T>, each: &mut Each<'_, T>) -> Result<StreamState, SourceError> {
        let Annotated { rows, annotator } = self;
        let is_last = |state: &Result<StreamState, SourceError>| !matches!(state, Ok(StreamState::Open));
        pass_rows(annotator.get_mut(), demand.need, each, |each| rows.next(demand, each), is_last)
            .unwrap_or(Ok(StreamState::Open))
    }

    fn close(&mut self) -> Accounting {
        let mut stats = self.rows.close();
        self.annotator.get_mut().close(&mut stats);
        stats
    }
}

impl<T: Table, S: Source<T>, A: Annotate<T>> Source<T> for Annotated<S, A> {
    fn prepare(&self, demand: &Demand<T>) -> Box<dyn Scan<T> + '_> {
        Box::new(AnnotatedScan { inner: self.rows.prepare(demand), annotator: &self.annotator, need: demand.need })
    }
}

struct AnnotatedScan<'s, T: Table, A> {
    inner: Box<dyn Scan<T> + 's>,
    annotator: &'s RefCell<A>,
    need: u64,
}

impl<T: Table, A: Annotate<T>> AnnotatedScan<'_, T, A> {
    fn read(&mut self, cache: Option<&dyn RowCache>, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        let annotator = &mut *self.annotator.borrow_mut();
        let own = cache.and_then(|cache| annotator.cache(cache));
        let (inner, cache) = (&mut self.inner, own.as_deref().or(cache));
        let read = pass_rows(annotator, self.need, each, |each| inner.run_with(cache, each), |_| true);
        let mut stats = read.unwrap_or_else(|| Ok(Accounting::default()))?;
        annotator.close(&mut stats);
        Ok(stats)
    }
}

impl<T: Table, A: Annotate<T>> Scan<T> for AnnotatedScan<'_, T, A> {
    fn offer(&self) -> Offer {
        let mut offer = self.inner.offer();
        self.annotator.borrow().explain(&mut offer);
        offer
    }

    fn run(&mut self, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        self.read(None, each)
    }

    fn run_cached(&mut self, cache: &dyn RowCache, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        self.read(Some(cache), each)
    }
}

impl<T: Table, A: Annotate<T> + ?Sized> Annotate<T> for Box<A> {
    fn explain(&self, offer: &mut Offer) {
        (**self).explain(offer);
    }

    fn begin(&mut self, need: u64, each: &mut Each<'_, T>) -> Next {
        (**self).begin(need, each)
    }

    fn row(&mut self, row: &T::Row<'_>, each: &mut Each<'_, T>) -> Next {
        (**self).row(row, each)
    }

    fn end(&mut self, need: u64, is_last: bool, each: &mut Each<'_, T>) -> Next {
        (**self).end(need, is_last, each)
    }

    fn stop(&mut self) {
        (**self).stop();
    }

    fn close(&mut self, stats: &mut Accounting) {
        (**self).close(stats);
    }

    fn cache<'c>(&self, cache: &'c dyn RowCache) -> Option<Box<dyn RowCache + 'c>>
    where
        Self: 'c,
    {
        (**self).cache(cache)
    }
}

#[cfg(test)]
mod tests;
