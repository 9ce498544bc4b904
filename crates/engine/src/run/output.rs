//! The output of a run: its sink, and the sink's first error.

use super::Ended;
use super::gate::Pass;
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
    /// The sink before the first row of a round.
    pub(super) fn new(sink: &'s mut dyn Sink, columns: &'s Columns, round: Option<Round>) -> Out<'s> {
        let rows_wanted = sink.rows_wanted().unwrap_or(u64::MAX);
        Out { sink, columns, round, begun: false, fault: None, rows_wanted, left_out: 0 }
    }

    /// Returns the number of rows that the sink wants.
    pub(super) fn rows_wanted(&self) -> u64 {
        self.rows_wanted
    }

    /// True if the next row is only counted, with [`Out::leave_out`].
    #[inline]
    pub(super) fn is_full(&self, pass: &Pass) -> bool {
        pass.stats.emitted >= self.rows_wanted
    }

    /// Counts rows after those that the sink wants.
    #[inline]
    pub(super) fn leave_out(&mut self, rows: u64, pass: &mut Pass) {
        pass.stats.emitted += rows;
        self.left_out += rows;
    }

    /// Writes a row and counts it. After `Stop` nothing more may be written.
    pub(super) fn row(&mut self, cells: &[Value<'_>], pass: &mut Pass) -> Next {
        self.put(pass, |sink| sink.row(cells))
    }

    /// Writes a row with `write` and counts it, like [`Out::row`].
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
                // If the reader went away, the table was cut off; any other error is a row that could not be written.
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

    /// Ends the sink's work; for a run without rows, begins it first.
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
