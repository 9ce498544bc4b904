//! The gate that every row of a run passes: the rest of the filter, the stop request, and the row counts.

use super::EndReason;
use crate::predicate::ResidualFilter;
use record::{Accounting, Lookups, Next, Table};

/// Rows between two polls of `stop`. A poll is a call and an atomic load; rows arrive at up to 10 million per second,
/// so even this many take only a few microseconds.
const ROWS_BETWEEN_POLLS: u64 = 64;

/// Decides for each row of the source whether it goes on.
pub(super) struct Gate<'g, T: Table> {
    /// The parts of the filter that the source does not apply exactly.
    pub(super) residual: ResidualFilter<'g, T>,
    /// The lookups for joined fields of the filter and the cells.
    pub(super) lookups: &'g Lookups<'g>,
    /// Returns true once the run must end.
    pub(super) stop: &'g dyn Fn() -> bool,
}

impl<T: Table> Gate<'_, T> {
    /// True if the row passes; counts it either way.
    pub(super) fn admits(&self, row: &T::Row<'_>, pass: &mut PassCounts) -> bool {
        self.count(pass);
        let passes = self.residual.matches(row, self.lookups);
        pass.stats.filtered += u64::from(!passes);
        passes
    }

    /// True if every row passes.
    pub(super) fn admits_all(&self) -> bool {
        self.residual.is_empty()
    }

    /// Counts a row, and polls now and then whether the run must end.
    #[inline]
    pub(super) fn count(&self, pass: &mut PassCounts) {
        if pass.handed % ROWS_BETWEEN_POLLS == 0 && (self.stop)() {
            pass.ended = EndReason::Stopped;
        }
        pass.handed += 1;
    }
}

/// The row counts of a run so far.
pub(super) struct PassCounts {
    /// Only what the engine counts: `emitted`, `filtered`, `grouped`, `cut`, `failed`.
    pub(super) stats: Accounting,
    /// Rows that the source passed on.
    pub(super) handed: u64,
    /// Number of rows after which a run without an order ends.
    limit: u64,
    /// The reason for the end of the run; [`EndReason::Whole`] as long as it goes on.
    pub(super) ended: EndReason,
}

impl PassCounts {
    /// The counts of a run that writes at most `limit` rows. With a limit of 0 it has already ended, before any row is
    /// read.
    pub(super) fn new(limit: Option<u64>) -> PassCounts {
        let ended = if limit == Some(0) { EndReason::Limit } else { EndReason::Whole };
        PassCounts { stats: Accounting::default(), handed: 0, limit: limit.unwrap_or(u64::MAX), ended }
    }

    /// True if the run has a limit.
    pub(super) fn has_limit(&self) -> bool {
        self.limit < u64::MAX
    }

    /// Counts rows that all passed and were written or kept for writing.
    pub(super) fn emit(&mut self, rows: u64) {
        self.handed += rows;
        self.stats.emitted += rows;
    }

    /// Ends the run if the limit is reached. Only for rows that are output as they arrive: no order was requested, so
    /// any rows will do, and the source need not go on.
    #[inline]
    pub(super) fn check_limit(&mut self) {
        if self.stats.emitted >= self.limit && self.ended == EndReason::Whole {
            self.ended = EndReason::Limit;
        }
    }

    /// Adds the engine's counts to the source's own, and compares them.
    pub(super) fn merge_counts(&self, stats: &mut Accounting) {
        stats.emitted = self.stats.emitted;
        stats.filtered += self.stats.filtered;
        stats.grouped += self.stats.grouped;
        stats.cut = self.stats.cut;
        stats.failed += self.stats.failed;
        stats.compare();
    }

    /// Returns the answer to the source after a row.
    pub(super) fn next(&self) -> Next {
        if self.ended == EndReason::Whole { Next::More } else { Next::Stop }
    }
}
