//! The end of a run where rows become output: the sink, and what happened to it.

use super::Ended;
use super::gate::Pass;
use record::{Accounting, Columns, Next, Round, Sink, SinkError, Value};

/// The sink of a run. Calls `begin` before the first row, counts rows that were written, and keeps the first fault.
pub(super) struct Out<'s> {
    sink: &'s mut dyn Sink,
    /// For `begin`.
    columns: &'s Columns,
    /// The round of `--watch`, for `begin`.
    round: Option<Round>,
    /// True once `begin` was called.
    begun: bool,
    /// Why the sink takes nothing more.
    pub(super) fault: Option<SinkError>,
    /// Rows after which the sink wants to know only how many follow.
    rows_wanted: u64,
    /// How many followed.
    left_out: u64,
}

impl<'s> Out<'s> {
    /// The sink before the first row of a round.
    pub(super) fn new(sink: &'s mut dyn Sink, columns: &'s Columns, round: Option<Round>) -> Out<'s> {
        let rows_wanted = sink.rows_wanted().unwrap_or(u64::MAX);
        Out { sink, columns, round, begun: false, fault: None, rows_wanted, left_out: 0 }
    }

    /// Rows that the sink wants.
    pub(super) fn rows_wanted(&self) -> u64 {
        self.rows_wanted
    }

    /// True if the next row is only counted, by [`Out::leave_out`].
    #[inline]
    pub(super) fn is_full(&self, pass: &Pass) -> bool {
        pass.stats.emitted >= self.rows_wanted
    }

    /// Counts rows behind those that the sink wants.
    #[inline]
    pub(super) fn leave_out(&mut self, rows: u64, pass: &mut Pass) {
        pass.stats.emitted += rows;
        self.left_out += rows;
    }

    /// Writes a row and counts it. After `Stop` nothing more may be written.
    pub(super) fn row(&mut self, cells: &[Value<'_>], pass: &mut Pass) -> Next {
        self.put(pass, |sink| sink.row(cells))
    }

    /// Counts a row that `write` writes, as [`Out::row`] does.
    #[inline]
    pub(super) fn put(
        &mut self,
        pass: &mut Pass,
        write: impl FnOnce(&mut dyn Sink) -> Result<Next, SinkError>,
    ) -> Next {
        let begun = if self.begun { Ok(()) } else { self.begin() };
        match begun.and_then(|()| write(&mut *self.sink)) {
            Ok(next) => {
                pass.stats.emitted += 1;
                if next == Next::Stop {
                    pass.ended = Ended::Closed;
                }
                next
            }
            Err(fault) => {
                // A reader that went away has cut the table off; anything else is a row that could not be written.
                match fault {
                    SinkError::Closed => pass.stats.cut += 1,
                    SinkError::Io(_) => pass.stats.failed += 1,
                }
                pass.ended = Ended::Closed;
                self.fault = Some(fault);
                Next::Stop
            }
        }
    }

    /// Hands the columns to the sink, once.
    pub(super) fn begin(&mut self) -> Result<(), SinkError> {
        if self.begun {
            return Ok(());
        }
        self.begun = true;
        self.sink.begin(self.columns, self.round)
    }

    /// What waits reaches the reader; a reader that went away is learnt here, too.
    pub(super) fn flush(&mut self) {
        if self.fault.is_none() {
            self.fault = self.begin().and_then(|()| self.sink.flush()).err();
        }
    }

    /// Ends the sink's work; a run without rows begins it here.
    pub(super) fn end(&mut self, stats: &Accounting) {
        let ended = self.begin().and_then(|()| {
            if self.left_out > 0 {
                self.sink.leave_out(self.left_out);
            }
            self.sink.end(stats)
        });
        self.fault = ended.err();
    }
}
