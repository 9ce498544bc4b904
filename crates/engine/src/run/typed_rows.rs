//! Typed rows: a run for a caller that writes rows itself instead of cells (the faces, file writers, shipments).
//!
//! The run tests the rest of the filter, polls `stop`, applies the limit, and compares the rows that arrived with the
//! row counts, like every other run. The caller gets rows and reports what it did with each.

use super::cells::{CellsOnDemand, fill};
use super::gate::{Gate, PassCounts};
use super::{EndReason, FeedPart, Receiver, Run, RunError};
use crate::plan::Plan;
use record::{Accounting, Each, Lookups, Next, Round, RowCells, SourceError, Table, Value};

/// The caller's answer for a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disposition {
    /// The row was written, or is kept for writing.
    Emitted,
    /// The row failed a test of the caller.
    Filtered,
    /// The row could not be written, and no more rows are wanted: the reader of the output went away.
    Closed,
}

impl From<Next> for Disposition {
    /// A row was emitted if the caller wants more after it.
    fn from(next: Next) -> Disposition {
        if next == Next::More { Disposition::Emitted } else { Disposition::Closed }
    }
}

/// Reads a batch: calls the given closure with each of its rows.
pub type ReadRows<'r, T> = dyn FnMut(&mut Each<'_, T>) + 'r;

/// A receiver of typed rows.
pub trait RowSink<T: Table> {
    /// Takes a row that passed the filter, with its planned cells. All of it is borrowed: copy what you keep.
    fn row(&mut self, row: &T::Row<'_>, cells: &mut dyn RowCells, lookups: &Lookups<'_>) -> Disposition;

    /// Takes all rows of a batch without a filter and without their cells: calls `read` once, with a closure that
    /// always wants more, and returns the number of rows. Returns `None`, without a call, if rows must go through
    /// [`RowSink::row`].
    fn all_rows(&mut self, read: &mut ReadRows<'_, T>) -> Option<u64> {
        let _ = read;
        None
    }

    /// Ends a batch: there are no more rows for now, and `cells` can make cells of rows that were kept.
    fn end_batch(&mut self, cells: &CellsOf<'_, T>) {
        let _ = cells;
    }

    /// Outputs the rows so far: there are no more for now.
    fn flush(&mut self);
}

/// Makes the planned cells of rows that a sink has kept.
pub struct CellsOf<'c, T: Table> {
    plan: &'c Plan<T>,
    lookups: &'c Lookups<'c>,
}

impl<T: Table> CellsOf<'_, T> {
    /// Returns the lookups that names come from.
    pub fn lookups(&self) -> &Lookups<'_> {
        self.lookups
    }

    /// Passes the cells of `row` to `then`. Allocates.
    pub fn with(&self, row: &T::Row<'_>, then: &mut dyn FnMut(&[Value<'_>])) {
        let mut cells = vec![Value::Null; self.plan.cells.len()];
        fill(&self.plan.cells, row, self.lookups, &mut cells);
        then(&cells);
    }
}

impl<T: Table> Plan<T> {
    /// Returns a maker of cells for rows that were kept; names come from `lookups`.
    pub fn cells_of<'c>(&'c self, lookups: &'c Lookups<'c>) -> CellsOf<'c, T> {
        CellsOf { plan: self, lookups }
    }
}

/// A function that takes each row, without cells.
pub struct EachRow<F>(pub F);

impl<T: Table, F: FnMut(&T::Row<'_>) -> Disposition> RowSink<T> for EachRow<F> {
    #[inline]
    fn row(&mut self, row: &T::Row<'_>, _: &mut dyn RowCells, _: &Lookups<'_>) -> Disposition {
        (self.0)(row)
    }

    fn flush(&mut self) {}
}

/// Passes typed rows on, with their cells on demand.
pub(super) struct TypedWriter<'w, T: Table, S: ?Sized> {
    plan: &'w Plan<T>,
    rows: &'w mut S,
    spare: Vec<Value<'static>>,
}

impl<'w, T: Table, S: RowSink<T> + ?Sized> TypedWriter<'w, T, S> {
    pub(super) fn new(plan: &'w Plan<T>, rows: &'w mut S) -> TypedWriter<'w, T, S> {
        TypedWriter { plan, rows, spare: vec![Value::Null; plan.cells.len()] }
    }
}

impl<T: Table, S: RowSink<T> + ?Sized> Receiver<T> for TypedWriter<'_, T, S> {
    fn begin(&mut self, _: Option<Round>) {}

    fn read(
        &mut self,
        part: &mut FeedPart<'_, T>,
        gate: &Gate<'_, T>,
        pass: &mut PassCounts,
    ) -> Result<Accounting, SourceError> {
        let TypedWriter { plan, rows, spare } = self;
        let (scan, lookups, mut counts) = (&mut *part.scan, part.lookups, Ok(Accounting::default()));
        let takes_all = gate.admits_all() && !pass.has_limit();
        let taken = if takes_all { rows.all_rows(&mut |each| counts = scan.run(each)) } else { None };
        match taken {
            Some(taken) => pass.emit(taken),
            None => {
                counts = scan.run(&mut |row| {
                    if gate.admits(row, pass) {
                        let mut cells = CellsOnDemand::new(&plan.cells, row, lookups, spare);
                        pass.count_row(rows.row(row, &mut cells, lookups));
                        cells.recycle();
                    }
                    pass.next()
                });
            }
        }
        rows.end_batch(&plan.cells_of(lookups));
        counts
    }

    fn flush(&mut self) {
        self.rows.flush();
    }

    fn takes_more(&self) -> bool {
        true
    }

    fn end(&mut self, pass: PassCounts, mut stats: Accounting) -> Result<Run, RunError> {
        pass.merge_counts(&mut stats);
        Ok(Run { stats, ended: pass.ended })
    }
}

impl PassCounts {
    /// Counts a row that passed the filter.
    #[inline]
    pub(super) fn count_row(&mut self, disposition: Disposition) {
        match disposition {
            Disposition::Emitted => {
                self.stats.emitted += 1;
                self.check_limit();
            }
            Disposition::Filtered => self.stats.filtered += 1,
            Disposition::Closed => {
                self.stats.cut += 1;
                self.ended = EndReason::Closed;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::plan::PlanRequest;
    use crate::run::OneRound;
    use crate::testing::{CannedSource, make_sockets, plan, request};
    use record::rows::Socket;

    /// Returns the ports of the rows that were passed on, and the run.
    fn rows(source: &CannedSource, asked: PlanRequest, each: impl Fn(u16) -> Disposition) -> (Vec<u16>, Run) {
        let mut ports = Vec::new();
        let lookups = Lookups::empty();
        let mut to = EachRow(|row: &Socket<'_>| {
            ports.push(row.local.port);
            each(row.local.port)
        });
        let run = plan(asked).run_rows(&mut OneRound::new(source, &lookups, &|| false), &mut to);
        (ports, run.unwrap())
    }

    fn three() -> CannedSource {
        CannedSource { rows: make_sockets(3), ..CannedSource::default() }
    }

    #[test]
    fn typed_rows_are_filtered_counted_and_limited() {
        let (all, run) = rows(&three(), request(&[], ""), |_| Disposition::Emitted);
        assert_eq!((all.len(), run.stats.emitted, run.ended), (3, 3, EndReason::Whole));
        let first = all[0];
        let filter = format!("local_port != {first}");
        let (left, run) = rows(&three(), request(&[], &filter), |_| Disposition::Filtered);
        let same = all.iter().filter(|port| **port == first).count();
        assert_eq!((left.len(), run.stats.emitted, run.stats.filtered), (3 - same, 0, 3));
        let limited = PlanRequest { limit: Some(2), ..request(&[], "") };
        let (left, run) = rows(&three(), limited, |_| Disposition::Emitted);
        assert_eq!((left.len(), run.stats.emitted, run.ended), (2, 2, EndReason::Limit));
        let (left, run) = rows(&three(), request(&[], ""), |_| Next::Stop.into());
        assert_eq!((left.len(), run.stats.cut, run.ended), (1, 1, EndReason::Closed));
        assert!(run.stats.balances());
    }

    #[test]
    fn issue_10_a_row_lost_before_a_face_is_reported() {
        let losing = CannedSource { loses: Some(2), ..three() };
        let (left, run) = rows(&losing, request(&[], ""), |_| Disposition::Emitted);
        assert!(left.len() == 2 && run.stats.is_partial() && !run.stats.balances(), "{:?}", run.stats);
        assert!(run.stats.why[0].text.contains("were read but not written: this is a bug in netwren"));
    }
}
