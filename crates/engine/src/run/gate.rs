//! The gate that every row of a run passes: the rest of the filter, the wish to stop, and the row counts.

use super::Ended;
use crate::predicate::ResidualFilter;
use record::{Accounting, Lookups, Next, Table};

/// How many rows may pass between two looks at `stop`. A look is a call and an atomic load; rows come at 10 million
/// a second at best, so even this many are a few microseconds.
const ROWS_BETWEEN_LOOKS: u64 = 64;

/// Decides of each row that the source hands out whether it goes on.
pub(super) struct Gate<'g, T: Table> {
    /// The parts of the filter that the source does not do exactly.
    pub(super) residual: ResidualFilter<'g, T>,
    /// A sentence about fields that the filter tests and the backend lacks.
    pub(super) gap: Option<String>,
    /// What joined fields of the filter and of the cells are found in.
    pub(super) lookups: &'g Lookups<'g>,
    /// True once the run shall end.
    pub(super) stop: &'g dyn Fn() -> bool,
}

impl<T: Table> Gate<'_, T> {
    /// True if the row passes; counts it either way.
    pub(super) fn admits(&self, row: &T::Row<'_>, pass: &mut Pass) -> bool {
        self.count(pass);
        let passes = self.residual.matches(row, self.lookups);
        pass.stats.filtered += u64::from(!passes);
        passes
    }

    /// True if every row passes.
    pub(super) fn admits_all(&self) -> bool {
        self.residual.is_empty()
    }

    /// Counts a row, and looks now and then whether the run shall end.
    #[inline]
    pub(super) fn count(&self, pass: &mut Pass) {
        if pass.handed % ROWS_BETWEEN_LOOKS == 0 && (self.stop)() {
            pass.ended = Ended::Stopped;
        }
        pass.handed += 1;
    }
}

/// What became so far of the rows of one run.
pub(super) struct Pass {
    /// Only what the engine counts: `emitted`, `filtered`, `grouped`, `cut`, `failed`.
    pub(super) stats: Accounting,
    /// Rows that the source handed out.
    pub(super) handed: u64,
    /// Rows after which a run without an order ends.
    limit: u64,
    /// Why the run ends; [`Ended::Whole`] as long as it goes on.
    pub(super) ended: Ended,
}

impl Pass {
    /// The begin of a run that writes at most `limit` rows. With a limit of 0 it has ended: no row is to be read.
    pub(super) fn new(limit: Option<u64>) -> Pass {
        let ended = if limit == Some(0) { Ended::Limit } else { Ended::Whole };
        Pass { stats: Accounting::default(), handed: 0, limit: limit.unwrap_or(u64::MAX), ended }
    }

    /// True if the run ends after so many rows.
    pub(super) fn has_limit(&self) -> bool {
        self.limit < u64::MAX
    }

    /// Counts rows that all passed and were written, or are kept to be.
    pub(super) fn emit(&mut self, rows: u64) {
        self.handed += rows;
        self.stats.emitted += rows;
    }

    /// Ends the run if the limit is reached. Only for rows that go out as they come: no order is asked for, so the
    /// first rows are as good as any, and the source need not go on.
    #[inline]
    pub(super) fn check_limit(&mut self) {
        if self.stats.emitted >= self.limit && self.ended == Ended::Whole {
            self.ended = Ended::Limit;
        }
    }

    /// Adds what became of the rows that the source handed out to what the source counted itself, and compares.
    pub(super) fn settle(&self, stats: &mut Accounting) {
        stats.emitted = self.stats.emitted;
        stats.filtered += self.stats.filtered;
        stats.grouped += self.stats.grouped;
        stats.cut = self.stats.cut;
        stats.failed += self.stats.failed;
        stats.compare();
    }

    /// The answer to the source after a row.
    pub(super) fn next(&self) -> Next {
        if self.ended == Ended::Whole { Next::More } else { Next::Stop }
    }
}
