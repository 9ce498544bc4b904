//! Typed rows: a run for a caller that writes rows itself instead of cells (the faces, file writers).
//!
//! The run tests the rest of the filter, polls `stop`, applies the limit, and compares the rows that arrived with the
//! row counts, like every other run. The caller gets rows and reports what it did with each.

use super::{Ended, Pass, Run, RunError};
use crate::answers::add_gap;
use crate::plan::Plan;
use record::{Accounting, Lookups, Next, Source, Table};

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

impl<T: Table> Plan<T> {
    /// Reads `source` once and hands every row that passes the filter to `each`.
    ///
    /// The statistics of the run balance: a row that arrives and is not reported by `each`, by the filter or by the
    /// source makes the run incomplete, with a reason. The plan's columns, order and groups are not used.
    ///
    /// Allocates nothing per row. Fails if nothing could be read, or if the forced backend lacks a field.
    pub fn run_rows(
        &self,
        source: &dyn Source<T>,
        lookups: &Lookups<'_>,
        stop: &dyn Fn() -> bool,
        mut each: impl FnMut(&T::Row<'_>) -> Disposition,
    ) -> Result<Run, RunError> {
        let mut scan = source.prepare(&self.demand);
        let gate = self.gate(&*scan, lookups, stop)?;
        let mut pass = Pass::new(self.limit);
        let mut stats = Accounting::default();
        if pass.ended == Ended::Whole {
            let read = scan.run(&mut |row| {
                if gate.admits(row, &mut pass) {
                    pass.dispose(each(row));
                }
                pass.next()
            });
            stats = read.map_err(RunError::Source)?;
        }
        add_gap(gate.gap.as_deref(), &mut stats);
        pass.settle(&mut stats);
        Ok(Run { stats, ended: pass.ended })
    }
}

impl Pass {
    /// Counts a row that passed the filter.
    #[inline]
    pub(super) fn dispose(&mut self, disposition: Disposition) {
        match disposition {
            Disposition::Emitted => {
                self.stats.emitted += 1;
                self.check_limit();
            }
            Disposition::Filtered => self.stats.filtered += 1,
            Disposition::Closed => {
                self.stats.cut += 1;
                self.ended = Ended::Closed;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::plan::PlanRequest;
    use crate::testing::{Canned, many, plan, request};

    /// Returns the ports of the rows that were passed on, and the run.
    fn rows(source: &Canned, asked: PlanRequest, each: impl Fn(u16) -> Disposition) -> (Vec<u16>, Run) {
        let mut ports = Vec::new();
        let run = plan(asked).run_rows(source, &Lookups::none(), &|| false, |row| {
            ports.push(row.local.port);
            each(row.local.port)
        });
        (ports, run.unwrap())
    }

    fn three() -> Canned {
        Canned { rows: many(3), ..Canned::default() }
    }

    #[test]
    fn typed_rows_are_filtered_counted_and_limited() {
        let (all, run) = rows(&three(), request(&[], ""), |_| Disposition::Emitted);
        assert_eq!((all.len(), run.stats.emitted, run.ended), (3, 3, Ended::Whole));
        let first = all[0];
        let filter = format!("local_port != {first}");
        let (left, run) = rows(&three(), request(&[], &filter), |_| Disposition::Filtered);
        let same = all.iter().filter(|port| **port == first).count();
        assert_eq!((left.len(), run.stats.emitted, run.stats.filtered), (3 - same, 0, 3));
        let limited = PlanRequest { limit: Some(2), ..request(&[], "") };
        let (left, run) = rows(&three(), limited, |_| Disposition::Emitted);
        assert_eq!((left.len(), run.stats.emitted, run.ended), (2, 2, Ended::Limit));
        let (left, run) = rows(&three(), request(&[], ""), |_| Next::Stop.into());
        assert_eq!((left.len(), run.stats.cut, run.ended), (1, 1, Ended::Closed));
        assert!(run.stats.balances());
    }

    #[test]
    fn issue_10_a_row_that_gets_lost_before_a_face_is_said() {
        let losing = Canned { loses: Some(2), ..three() };
        let (left, run) = rows(&losing, request(&[], ""), |_| Disposition::Emitted);
        assert!(left.len() == 2 && run.stats.is_partial() && !run.stats.balances(), "{:?}", run.stats);
        assert!(run.stats.why[0].text.contains("were read but not written: this is a bug in netwren"));
    }
}
