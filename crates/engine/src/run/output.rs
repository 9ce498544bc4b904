//! The output of a run: its sink, and the sink's first error.

use super::gate::PassCounts;
use super::{EndReason, Run, RunError};
use record::{Accounting, Columns, Next, Round, Sink, SinkError, Value};

/// The sink of a run. Calls `begin` before the first row, counts rows that were written, and keeps the first error.
pub(super) struct Out<'s> {
    sink: &'s mut dyn Sink,
    /// The columns for `begin`.
    columns: &'s Columns,
    /// The round of `--watch`, for `begin`.
    round: Option<Round>,
    /// True once `begin` was called.
    begun: bool,
    /// The error after which the sink takes no more rows.
    pub(super) fault: Option<SinkError>,
    /// Number of rows after which the sink wants only the number of further ones.
    rows_wanted: u64,
    /// Number of further rows.
    left_out: u64,
}

impl<'s> Out<'s> {
    /// The sink before the first round.
    pub(super) fn new(sink: &'s mut dyn Sink, columns: &'s Columns) -> Out<'s> {
        Out { sink, columns, round: None, begun: false, fault: None, rows_wanted: u64::MAX, left_out: 0 }
    }

    /// Begins a round, before its first row.
    pub(super) fn begin_round(&mut self, round: Option<Round>) {
        let rows_wanted = self.sink.rows_wanted().unwrap_or(u64::MAX);
        (self.round, self.begun, self.rows_wanted, self.left_out) = (round, false, rows_wanted, 0);
    }

    /// True if texts of rows can be written again, and each of them is wanted.
    pub(super) fn can_reuse(&self) -> bool {
        self.rows_wanted == u64::MAX && self.sink.can_reuse()
    }

    /// Returns the number of rows that the sink wants.
    pub(super) fn rows_wanted(&self) -> u64 {
        self.rows_wanted
    }

    /// True if the next row is only counted, with [`Out::leave_out`].
    #[inline]
    pub(super) fn is_full(&self, pass: &PassCounts) -> bool {
        pass.stats.emitted >= self.rows_wanted
    }

    /// Counts rows after those that the sink wants.
    #[inline]
    pub(super) fn leave_out(&mut self, rows: u64, pass: &mut PassCounts) {
        pass.stats.emitted += rows;
        self.left_out += rows;
    }

    /// Writes a row and counts it. After `Stop` nothing more may be written.
    pub(super) fn row(&mut self, cells: &[Value<'_>], pass: &mut PassCounts) -> Next {
        self.put(pass, |sink| sink.row(cells))
    }

    /// Writes a row with `write` and counts it, like [`Out::row`].
    #[inline]
    pub(super) fn put(
        &mut self,
        pass: &mut PassCounts,
        write: impl FnOnce(&mut dyn Sink) -> Result<Next, SinkError>,
    ) -> Next {
        let begun = if self.begun { Ok(()) } else { self.begin() };
        match begun.and_then(|()| write(&mut *self.sink)) {
            Ok(next) => {
                pass.stats.emitted += 1;
                if next == Next::Stop {
                    pass.ended = EndReason::Closed;
                }
                next
            }
            Err(fault) => {
                // If the reader went away, the table was cut off; any other error is a row that could not be written.
                match fault {
                    SinkError::Closed => pass.stats.cut += 1,
                    SinkError::Io(_) => pass.stats.failed += 1,
                }
                pass.ended = EndReason::Closed;
                self.fault = Some(fault);
                Next::Stop
            }
        }
    }

    /// Appends the text of a row to `rendered` ([`Sink::render_row`]); `None` if that fails.
    #[inline]
    pub(super) fn render(&mut self, cells: &[Value<'_>], hole: Option<usize>, rendered: &mut Vec<u8>) -> Option<usize> {
        self.begin().and_then(|()| self.sink.render_row(cells, hole, rendered)).ok()
    }

    /// Passes the columns to the sink, once.
    pub(super) fn begin(&mut self) -> Result<(), SinkError> {
        if self.begun {
            return Ok(());
        }
        self.begun = true;
        self.sink.begin(self.columns, self.round)
    }

    /// Flushes waiting output to the reader; this also reveals a reader that went away.
    pub(super) fn flush(&mut self) {
        if self.fault.is_none() {
            self.fault = self.begin().and_then(|()| self.sink.flush()).err();
        }
    }

    /// Ends the round: closes its row counts and the sink's work. A round without rows begins first.
    pub(super) fn end(&mut self, pass: PassCounts, mut stats: Accounting) -> Result<Run, RunError> {
        pass.merge_counts(&mut stats);
        if self.fault.is_none() {
            self.fault = self.end_sink(&stats).err();
        }
        match self.fault.take() {
            Some(SinkError::Closed) => Ok(Run { stats, ended: EndReason::Closed }),
            Some(error) => Err(RunError::Sink(error)),
            None => Ok(Run { stats, ended: pass.ended }),
        }
    }

    fn end_sink(&mut self, stats: &Accounting) -> Result<(), SinkError> {
        self.begin()?;
        if self.left_out > 0 {
            self.sink.leave_out(self.left_out);
        }
        self.sink.end(stats)
    }
}
